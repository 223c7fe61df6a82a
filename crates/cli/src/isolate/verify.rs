//! `stillcore isolate verify`: whether what was applied still holds; with `--watch`, what drifts
//! and when.

use super::State;
use super::desired::{self, Reading};
use super::look::{Look, Next};
use super::target::{NextBoot, plan_of};
use audit::placement;
use clap::Args;
use isolate::undone::{self, Undone};
use isolate::verify::Verified;
use journal::settings::{Live, Settings, value};
use model::plan::StepKind;
use model::quantity::duration;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use sys::signals::EndSignals;

const SCHEMA: &str = "stillcore.isolate-verify/1";
/// The same of what was undone.
const UNDONE_SCHEMA: &str = "stillcore.isolate-undone/1";

/// Arguments of `isolate verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Location of the journal.
    #[command(flatten)]
    pub(crate) state: State,
    /// Also compare with this desired state: a file of stillcore isolate profile.
    #[arg(long, value_name = "FILE", conflicts_with = "watch")]
    pub(crate) profile: Option<PathBuf>,
    /// Check repeatedly until stopped; print what drifts, with the time since the start.
    #[arg(long)]
    pub(crate) watch: bool,
    /// Interval between checks.
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = duration, requires = "watch")]
    pub(crate) interval: Duration,
    /// Stop watching after this time.
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "watch")]
    pub(crate) duration: Option<Duration>,
    /// Print one JSON object per check.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What was undone beside what it was before; 2 where anything is otherwise.
fn given_back(args: &VerifyArgs, undone: &Undone) -> anyhow::Result<u8> {
    let compared = undone.compare(&mut Live::new(&std::env::current_exe()?));
    if args.json {
        let mut value = serde_json::to_value(&compared)?;
        value["schema"] = UNDONE_SCHEMA.into();
        println!("{value}");
    } else {
        let gone = match compared.gone {
            0 => String::new(),
            gone => format!(", {gone} are of tasks or interrupts that are gone"),
        };
        println!("{}: compared with what was before the last isolation of this boot", args.state.nothing());
        println!("{} values are what they were{gone}", compared.as_before);
        compared.differ.iter().for_each(|differs| println!("not as before: {differs}"));
        compared.unread.iter().for_each(|unread| println!("not read: {unread}"));
    }
    Ok(if compared.differ.is_empty() { 0 } else { 2 })
}

/// Verifies; 2 when anything drifted.
pub(crate) fn run(args: &VerifyArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    if let Some(file) = &args.profile {
        let wanted = wanted(args, file)?;
        if args.state.standing()?.is_none_or(|(_, found)| !found.this_boot) {
            return Ok(not_applied(args, &wanted));
        }
        return verified(args, signals, wanted);
    }
    verified(args, signals, Vec::new())
}

/// What a desired state wants otherwise than the machine is, a sentence each.
fn wanted(args: &VerifyArgs, file: &Path) -> anyhow::Result<Vec<String>> {
    let look = Look::at(&args.state)?;
    let machine = machine::read(&look.root)?;
    let profile = desired::read(file, Reading::AsData, &look.catalogue)?;
    let plan = plan_of(&look.root, &machine, &look.catalogue, &profile, &args.state, NextBoot::default())?;
    let found = args.state.standing()?.map(|(_, found)| found).filter(|found| found.this_boot);
    let mut wanted = Vec::new();
    if let Some(head) = found.as_ref().map(|found| &found.head).filter(|head| head.cpus != plan.cpus) {
        wanted.push(format!("CPUs {} are isolated, and CPUs {} are wanted", head.cpus, plan.cpus));
    }
    // Where no placement is named, what the kernel has refused is not wanted.
    let fallen_back = found.as_ref().is_some_and(|found| found.placement() != plan.placement);
    let spared = |id: &str| fallen_back && profile.placement.is_none() && placement::IDS.contains(&id);
    let immovable = found.map(|found| found.immovable).unwrap_or_default();
    let mut settings = Live::new(&std::env::current_exe()?);
    for step in plan.steps.iter().filter(|step| !step.kind.remembers() && !spared(&step.mechanism)) {
        let now = settings.read(step.kind, &step.target);
        let ended = matches!(step.kind, StepKind::Task | StepKind::Process | StepKind::Member);
        wanted.extend(match now {
            Ok(Some(now)) if value::same(&now, &step.new) => None,
            Ok(None) if ended => None,
            _ if immovable.contains(&step.target) => None,
            Ok(now) => {
                let now = now.unwrap_or_else(|| "not there".to_owned());
                Some(format!("{} {} is {now}; {} is wanted", step.mechanism, step.target, step.new))
            }
            Err(error) => Some(format!("{} {} is not known: {error}", step.mechanism, step.target)),
        });
    }
    Ok(wanted)
}

/// Nothing is isolated by stillcore: what is wanted may be there all the same.
fn not_applied(args: &VerifyArgs, wanted: &[String]) -> u8 {
    if args.json {
        println!(
            "{}",
            serde_json::json!({ "schema": SCHEMA, "t_s": 0.0, "stands": false, "wanted": wanted })
        );
    } else {
        println!("{}", args.state.nothing());
        wanted.iter().for_each(|sentence| println!("wanted: {sentence}"));
    }
    if wanted.is_empty() { 0 } else { 2 }
}

fn verified(args: &VerifyArgs, signals: &EndSignals, wanted: Vec<String>) -> anyhow::Result<u8> {
    let Some((journal, found)) = args.state.standing()? else {
        let undone = undone::find(&args.state.places())?.filter(|_| !args.watch);
        let Some(undone) = undone else { anyhow::bail!("{}: nothing to verify", args.state.nothing()) };
        return given_back(args, &undone);
    };
    if !found.this_boot {
        anyhow::bail!("what was isolated went with an earlier boot: apply it again");
    }
    if !args.json {
        println!("compared with {}", journal.display());
    }
    let look = Look::at(&args.state)?;
    let mut drifted = !wanted.is_empty();
    let mut report = DriftReport::new(args, wanted);
    let first = look.once(&found)?;
    drifted |= !first.drifted.is_empty();
    report.print_changes(&first)?;
    while args.watch && !report.over() && !wait(args.interval, signals) {
        match look.again() {
            Next::Seen(seen) => {
                drifted |= !seen.drifted.is_empty();
                report.print_changes(&seen)?;
            }
            Next::Changing => {}
            Next::Undone => {
                report.end();
                break;
            }
        }
    }
    Ok(if drifted { 2 } else { 0 })
}

/// Waits for the next check; true when asked to stop.
fn wait(interval: Duration, signals: &EndSignals) -> bool {
    let until = Instant::now() + interval;
    while Instant::now() < until {
        if signals.arrived().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20).min(interval));
    }
    false
}

/// Prints of each check what the one before did not show.
struct DriftReport<'a> {
    args: &'a VerifyArgs,
    begin: Instant,
    /// What a desired state wants otherwise.
    wanted: Vec<String>,
    looks: u64,
    shown: BTreeSet<String>,
    vanished: BTreeSet<String>,
}

impl<'a> DriftReport<'a> {
    fn new(args: &'a VerifyArgs, wanted: Vec<String>) -> Self {
        let (shown, vanished) = (BTreeSet::new(), BTreeSet::new());
        Self { args, begin: Instant::now(), wanted, looks: 0, shown, vanished }
    }

    /// Whether there is no time for another check.
    fn over(&self) -> bool {
        self.args.duration.is_some_and(|duration| self.begin.elapsed() + self.args.interval > duration)
    }

    fn print_changes(&mut self, verified: &Verified) -> anyhow::Result<()> {
        self.looks += 1;
        if self.args.json {
            let mut value = serde_json::to_value(verified)?;
            value["schema"] = SCHEMA.into();
            value["t_s"] = self.begin.elapsed().as_secs_f64().into();
            if self.args.profile.is_some() {
                value["wanted"] = self.wanted.clone().into();
            }
            println!("{value}");
            return Ok(());
        }
        if self.looks == 1 {
            let Verified { holding, gone, right, .. } = verified;
            let gone = match gone {
                0 => String::new(),
                1 => {
                    "; the target of 1 is gone: a task that ended, or an interrupt that was freed".to_owned()
                }
                several => {
                    format!(
                        "; the targets of {several} are gone: tasks that ended, or interrupts that were freed"
                    )
                }
            };
            println!("{holding} changes hold{gone}; {right} mechanisms are right as they were");
        }
        self.wanted.drain(..).for_each(|sentence| println!("wanted: {sentence}"));
        let now = sentences(verified);
        let vanished: BTreeSet<_> = verified.vanished.iter().cloned().collect();
        for target in vanished.difference(&self.vanished) {
            println!("{}{target} is gone", self.at());
        }
        for new in now.difference(&self.shown) {
            println!("{}{new}", self.at());
        }
        for healed in self.shown.difference(&now) {
            println!("{}no longer: {healed}", self.at());
        }
        (self.shown, self.vanished) = (now, vanished);
        Ok(())
    }

    /// Reports that somebody has undone the isolation.
    fn end(&self) {
        if self.args.json {
            let t_s = self.begin.elapsed().as_secs_f64();
            println!("{}", serde_json::json!({ "schema": SCHEMA, "t_s": t_s, "stands": false }));
        } else {
            println!("{}nothing stands any more: it was undone", self.at());
        }
    }

    fn at(&self) -> String {
        if self.args.watch {
            format!("{:8.1} s  ", self.begin.elapsed().as_secs_f64())
        } else {
            String::new()
        }
    }
}

/// The sentences of a check; only what drifted fails.
fn sentences(verified: &Verified) -> BTreeSet<String> {
    let lists = [
        ("", &verified.drifted),
        ("a choice: ", &verified.choices),
        ("on purpose: ", &verified.guests),
        ("to come: ", &verified.pending),
        ("not seen: ", &verified.unread),
    ];
    let with = |(what, list): (&str, &Vec<String>)| {
        list.iter().map(|sentence| format!("{what}{sentence}")).collect::<Vec<_>>()
    };
    lists.into_iter().flat_map(with).collect()
}
