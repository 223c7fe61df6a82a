//! `stillcore disturb`: workloads that provoke interference, confined, counted, and proven to have
//! worked.
//!
//! `text` renders the output; `disturb::suite` places the stressors, `crate::run::disturbed`
//! runs them.

pub(crate) mod text;

use crate::run::disturbed::{Disturbed, Groups};
use crate::run::place::{self, Place};
use crate::run::progress::Reporter;
use clap::{Args, ValueEnum};
use disturb::suite::{self, Member, Placing, Suite};
use disturb::{Order, StressorSpec, catalogue};
use journal::session::Session;
use model::quantity::duration;
use model::stressor::{StressorRecord, StressorState};
use model::{Cpus, Error};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use sys::sched;
use sys::signals::EndSignals;

const SCHEMA: &str = "stillcore.disturb/1";
/// How often it is asked whether all have ended, and shown how far they are.
const LOOK: Duration = Duration::from_millis(200);

/// What is asked of a stressor.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Asked {
    /// Operations per second of each stressor; 0 = unlimited [default: the stressor's own].
    #[arg(long, value_name = "N", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Bytes that each stressor works on, such as 20M [default: the stressor's own].
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub(crate) bytes: Option<u64>,
    /// Loops of each stressor that has several [default: the stressor's own].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) workers: Option<u32>,
}

/// Arguments of `disturb`.
#[derive(Debug, Args)]
pub(crate) struct DisturbArgs {
    /// Stressors by name; `--list` prints them.
    #[arg(value_name = "STRESSOR")]
    pub(crate) stressors: Vec<String>,
    /// Set of stressors by name; `--list` prints them.
    #[arg(long, value_name = "NAME")]
    pub(crate) suite: Option<String>,
    /// CPUs to run on [default: all except the measured CPUs].
    #[arg(long, value_name = "LIST")]
    pub(crate) cpus: Option<Cpus>,
    /// Measured CPUs, kept free of stressors [default: the isolated CPUs, else the highest one].
    #[arg(long, value_name = "LIST")]
    pub(crate) measured: Option<Cpus>,
    /// How long to run.
    #[arg(long, short = 'D', default_value = "10s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,
    /// What is asked of each stressor.
    #[command(flatten)]
    pub(crate) each: Asked,
    /// Directory on a disk for stressors that create files; the files are unnamed [default: that of
    /// the journal].
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// CPUs of each stressor [default: as the suite declares, else all].
    #[arg(long, value_name = "HOW")]
    pub(crate) place: Option<PlaceName>,
    /// Also load the measured CPUs, as some papers did.
    #[arg(long)]
    pub(crate) colocated: bool,
    /// Allow stressors whose harm to the machine may outlast them.
    #[arg(long)]
    pub(crate) dangerous: bool,
    /// List stressors and suites; run none.
    #[arg(long)]
    pub(crate) list: bool,
    /// Directory for the journal [default: /var/lib/stillcore; without root .local/state/stillcore
    /// in the home directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
}

/// CPUs of a stressor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlaceName {
    /// One of each on every CPU.
    OnePerCpu,
    /// One of each, on one CPU assigned round-robin.
    Spread,
    /// One of each, allowed on all CPUs.
    All,
}

impl From<PlaceName> for Placing {
    fn from(place: PlaceName) -> Self {
        match place {
            PlaceName::OnePerCpu => Self::OnePerCpu,
            PlaceName::Spread => Self::Spread,
            PlaceName::All => Self::All,
        }
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| (0.0..=1e9).contains(rate));
    rate.ok_or_else(|| format!("invalid rate {text:?}: expected operations per second, 0 = unlimited"))
}

pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    model::quantity::bytes(text)
        .filter(|bytes| (4096..=1 << 40).contains(bytes))
        .ok_or_else(|| format!("invalid size {text:?}: expected 4K to 1024G, such as 20M"))
}

/// Disturbs. Exit code 2 where a stressor did not do what its name says.
pub(crate) fn run(args: &DisturbArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    if args.list {
        list(args.json)?;
        return Ok(0);
    }
    let suite = chosen(args)?;
    let place = Place::resolve(&place::Asked {
        cpus: args.measured.as_ref(),
        state: args.state.as_deref(),
        all_cpus: args.colocated || suite.colocated,
        ..place::Asked::default()
    })?;
    let cpus = cpus(args, &suite, &place)?;
    let placing = args.place.map_or(suite.place, Placing::from);
    let mut orders = suite::place(&suite.members(cpus.len()), &cpus, placing)?;
    orders.iter_mut().for_each(|order| order.dir.clone_from(&args.dir));
    sched::pin(&place.housekeeping)?;
    let mut session = Session::open(&place.program, &place.state)?;
    let mut limits = place.limits.clone();
    let outcome = disturb(args, &orders, &place.measured, &mut session, &mut limits, signals);
    limits.extend(session.close().into_iter().map(|what| format!("could not be taken back: {what}")));
    let (records, interrupted) = outcome?;
    let answer = text::Answer {
        suite: &suite,
        cpus: &cpus,
        measured: &place.measured,
        records: &records,
        limits: &limits,
        interrupted,
    };
    if args.json {
        println!("{}", answer.json());
    } else {
        print!("{}", answer.page());
    }
    Ok(code(&records))
}

/// An absent stressor has not failed, but if none could run, nothing was disturbed.
fn code(records: &[StressorRecord]) -> u8 {
    let broken = |record: &StressorRecord| matches!(record.state, StressorState::Void | StressorState::Stuck);
    let none = records.iter().all(|record| record.state == StressorState::Absent);
    if none || records.iter().any(broken) { 2 } else { 0 }
}

/// The suite that the user named, or one made of the stressors named.
fn chosen(args: &DisturbArgs) -> anyhow::Result<Suite> {
    let mut suite = match (&args.suite, args.stressors.is_empty()) {
        (Some(id), true) => suite::find(id)?,
        (Some(_), false) => {
            anyhow::bail!("both --suite and stressors are given; expected one of them")
        }
        (None, true) => anyhow::bail!(
            "nothing to run; expected stressors or --suite (`stillcore disturb --list` prints them)"
        ),
        (None, false) => by_name(args)?,
    };
    for member in &mut suite.stressors {
        let spec = catalogue::find(&member.name)?;
        if spec.dangerous && !args.dangerous {
            let found = format!("{} may harm the machine beyond its own end ({})", spec.name, spec.danger);
            return Err(Error::invalid("STRESSOR", found, "--dangerous, or another stressor").into());
        }
        member.rate = args.each.rate.or(member.rate);
        member.bytes = args.each.bytes.or(member.bytes);
        member.workers = args.each.workers.or(member.workers);
    }
    Ok(suite)
}

fn by_name(args: &DisturbArgs) -> anyhow::Result<Suite> {
    let member = |name: &String| {
        catalogue::find(name)?;
        Ok(Member { name: name.clone(), ..Member::default() })
    };
    Ok(Suite {
        id: "by name".to_owned(),
        title: title(&args.stressors),
        source: "the command line".to_owned(),
        place: Placing::All,
        colocated: false,
        expect: suite::Expect::Any,
        unpaced: false,
        paced_like: None,
        published_cpus: None,
        every: None,
        stressors: args.stressors.iter().map(member).collect::<anyhow::Result<_>>()?,
    })
}

/// A title that fits into one line.
fn title(names: &[String]) -> String {
    if names.len() <= 4 { names.join(", ") } else { format!("{} stressors", names.len()) }
}

fn cpus(args: &DisturbArgs, suite: &Suite, place: &Place) -> anyhow::Result<Cpus> {
    let colocated = args.colocated || suite.colocated;
    let Some(cpus) = &args.cpus else {
        let all = place
            .housekeeping
            .iter()
            .chain(colocated.then_some(&place.measured).into_iter().flat_map(Cpus::iter));
        return Ok(all.collect());
    };
    machine::check_online(&place.machine, cpus)?;
    let shared = cpus.and(&place.measured);
    if !shared.is_empty() && !colocated {
        let found = format!("CPU {shared} is measured");
        return Err(Error::invalid("--cpus", found, "CPUs that are not, or --colocated").into());
    }
    Ok(cpus.clone())
}

type Disturbances = (Vec<StressorRecord>, Option<&'static str>);

fn disturb(
    args: &DisturbArgs,
    orders: &[Order],
    measured: &Cpus,
    session: &mut Session,
    limits: &mut Vec<String>,
    signals: &EndSignals,
) -> anyhow::Result<Disturbances> {
    let groups = Groups::make(orders, measured, session, limits)?;
    let reporter = Reporter::new(args.json);
    let disturbed = Disturbed::start(orders, args.duration, measured, &groups, session, signals)?;
    let step = reporter.step("disturbing", args.duration);
    let (begun, mut interrupted) = (Instant::now(), None);
    while begun.elapsed() < args.duration && !disturbed.over() {
        interrupted = signals.arrived();
        if interrupted.is_some() {
            break;
        }
        step.update(begun.elapsed(), || text::live(&disturbed.status(), begun.elapsed()));
        signals.wait_for(args.duration.saturating_sub(begun.elapsed()).min(LOOK))?;
    }
    step.done();
    let records = disturbed.stop(session)?;
    groups.remove(session)?;
    Ok((records, interrupted))
}

fn list(json: bool) -> anyhow::Result<()> {
    let (stressors, suites): (&[StressorSpec], _) = (catalogue(), suite::suites()?);
    if json {
        println!("{}", text::list_json(stressors, &suites));
    } else {
        print!("{}", text::list_page(stressors, &suites));
    }
    Ok(())
}
