//! What an assessment will do: arguments resolved against this machine. Everything that can be refused is refused here, before
//! anything is written or changed.

use super::progress::Teller;
use crate::args::{AssessArgs, TraceMode};
use anyhow::Context;
use linux::disturb;
use linux::isolate::{Catalogue, undo};
use linux::machine::{self, Root};
use linux::measure::spec::ProbeSpec;
use linux::session;
use linux::sys::sched;
use model::events::EventCatalogue;
use model::sample::ProbeKind;
use model::{Cpus, Error, Machine};
use std::path::PathBuf;
use std::time::Duration;

/// Half of the shortest phase must hold at least this many releases.
const LEAST_RELEASES: u128 = 20;
/// How long the noise loop runs at a stretch, and pauses then: four fifths of the CPU, below the 95 % at which RT throttling begins.
const SPIN_NS: i64 = 800_000_000;
const PAUSE_NS: i64 = 200_000_000;
/// Samples of the wake-up probe that only warm it up.
const WARM_UP: u32 = 20;

/// An assessment, resolved.
pub(crate) struct Plan {
    /// The command line as typed.
    pub(crate) command: Vec<String>,
    /// This program.
    pub(crate) program: PathBuf,
    /// The machine as read.
    pub(crate) machine: Machine,
    /// What to measure.
    pub(crate) measured: Cpus,
    /// Where everything else runs.
    pub(crate) housekeeping: Cpus,
    /// Length of a window: half a phase.
    pub(crate) window: Duration,
    /// Distance of wake-up releases.
    pub(crate) period: Duration,
    /// Shortest gap stored, if asked for.
    pub(crate) threshold: Option<Duration>,
    /// SCHED_FIFO priority, 0 for SCHED_OTHER.
    pub(crate) priority: u32,
    /// The stressors.
    pub(crate) stressors: Vec<&'static str>,
    /// Whether to trace.
    pub(crate) trace: TraceMode,
    /// The mechanisms.
    pub(crate) mechanisms: Catalogue,
    /// The events.
    pub(crate) events: EventCatalogue,
    /// The run directory.
    pub(crate) out: PathBuf,
    /// Where the journal is.
    pub(crate) state: PathBuf,
    /// What cannot be done, known before the start.
    pub(crate) limits: Vec<String>,
}

impl Plan {
    /// Resolves arguments against the machine, after taking back what a killed stillcore may have left.
    pub(crate) fn resolve(args: &AssessArgs) -> anyhow::Result<Self> {
        let state = state(args)?;
        let mut limits = Vec::new();
        let restored = undo::recover(&state)?;
        if !restored.undone.is_empty() {
            Teller::say(&format!(
                "note: took back what a killed run had left: {}",
                restored.undone.join(", ")
            ));
        }
        limits.extend(
            restored.failed.iter().map(|what| format!("left by an earlier run and still there: {what}")),
        );

        let mechanisms = match &args.catalogue {
            Some(dir) => Catalogue::load(dir)?,
            None => Catalogue::embedded()?,
        };
        let mut machine = machine::read(&Root::live())?;
        machine.limits.fifo_allowed = Some(sched::fifo_allowed());
        let measured = match &args.cpus {
            Some(cpus) => cpus.clone(),
            None => machine::cpus_default(&machine)?,
        };
        machine::check_cpus(&machine, &measured)?;
        let housekeeping = machine::housekeeping(&machine, &measured)?;
        check_reachable(&housekeeping, "housekeeping")?;
        let (window, period) = times(args)?;
        Ok(Self {
            command: std::env::args().collect(),
            program: std::env::current_exe().context("cannot find this program's own file")?,
            machine,
            measured,
            housekeeping,
            window,
            period,
            threshold: args.threshold,
            priority: args.priority,
            stressors: stressors(&args.stressors)?,
            trace: args.trace,
            mechanisms,
            events: EventCatalogue::embedded()?,
            out: args.out.clone().unwrap_or_else(default_out),
            state,
            limits,
        })
    }

    /// The probes of one window, one a measured CPU.
    pub(crate) fn probes(&self, kind: ProbeKind) -> Vec<ProbeSpec> {
        let nanos = |time: Duration| time.as_nanos() as i64;
        let spec = |cpu| ProbeSpec {
            kind,
            cpu,
            priority: self.priority,
            duration_ns: nanos(self.window),
            period_ns: nanos(self.period),
            warm_up: WARM_UP,
            threshold_ns: self.threshold.map_or(0, |time| nanos(time) as u64),
            spin_ns: SPIN_NS,
            pause_ns: PAUSE_NS,
        };
        self.measured.iter().map(spec).collect()
    }
}

fn state(args: &AssessArgs) -> anyhow::Result<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let state = args.state.clone().or_else(|| session::default_state(home.as_deref()));
    state.context("no place for the journal: HOME is not set; give --state DIR")
}

/// A container may hold CPUs back that the machine has.
fn check_reachable(cpus: &Cpus, what: &str) -> anyhow::Result<()> {
    let allowed = sched::affinity()?;
    if cpus.and(&allowed).is_empty() {
        let found = format!("this process may only run on CPUs {allowed}, the {what} CPUs are {cpus}");
        return Err(Error::invalid("CPU affinity", found, "at least one of them in common").into());
    }
    Ok(())
}

fn times(args: &AssessArgs) -> Result<(Duration, Duration), Error> {
    let window = args.duration / 2;
    if args.period < Duration::from_micros(20) {
        return Err(Error::invalid("--period", format!("{:?}", args.period), "at least 20us"));
    }
    if window.as_nanos() < LEAST_RELEASES * args.period.as_nanos() {
        let least = args.period * 2 * LEAST_RELEASES as u32;
        return Err(Error::invalid(
            "--duration",
            format!("{:?}", args.duration),
            format!("at least {least:?} with this period"),
        ));
    }
    if args.duration > Duration::from_secs(7 * 86400) {
        return Err(Error::invalid("--duration", format!("{:?}", args.duration), "at most 168h"));
    }
    Ok((window, args.period))
}

fn stressors(names: &[String]) -> Result<Vec<&'static str>, Error> {
    let known = disturb::catalogue();
    if names.is_empty() {
        return Ok(known.iter().map(|spec| spec.name).collect());
    }
    let find = |name: &String| {
        let all = || known.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ");
        let found = known.iter().find(|spec| spec.name == name).map(|spec| spec.name);
        found.ok_or_else(|| {
            Error::invalid(
                "--stressors",
                format!("no stressor is called {name:?}"),
                format!("some of {}", all()),
            )
        })
    };
    names.iter().map(find).collect()
}

fn default_out() -> PathBuf {
    format!("stillcore-{}", jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ")).into()
}
