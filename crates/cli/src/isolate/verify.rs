//! `stillcore isolate verify`: whether what was applied still holds; with `--watch`, what drifts
//! and when.

use super::State;
use audit::Catalogue;
use clap::Args;
use isolate::standing::Found;
use isolate::undone::{self, Undone};
use isolate::verify::{Verified, verify};
use journal::settings::Live;
use machine::Root;
use model::quantity::duration;
use std::collections::BTreeSet;
use std::path::Path;
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
    let look =
        Look { root: Root::open(Path::new("/"))?, catalogue: Catalogue::embedded()?, state: &args.state };
    let mut report = DriftReport::new(args);
    let first = look.once(&found)?;
    let mut drifted = !first.drifted.is_empty();
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

/// The result of a later check.
enum Next {
    Seen(Verified),
    /// Another call is changing the isolation: that is no drift.
    Changing,
    Undone,
}

struct Look<'a> {
    root: Root,
    catalogue: Catalogue,
    state: &'a State,
}

impl Look<'_> {
    fn once(&self, found: &Found) -> anyhow::Result<Verified> {
        let mut live = Live::new(&std::env::current_exe()?);
        Ok(verify(&self.root, &self.catalogue, found, &mut live)?)
    }

    /// Checks against the current journal. What cannot be read now may be readable at the next
    /// check.
    fn again(&self) -> Next {
        let found = match self.state.standing() {
            Ok(Some((_, found))) if found.this_boot => found,
            Ok(_) => return Next::Undone,
            Err(error) => return Next::Seen(unreadable(&error)),
        };
        let seen = self.once(&found).unwrap_or_else(|error| unreadable(&error));
        let still = self.state.standing().ok().flatten();
        if still.is_some_and(|(_, still)| still == found) { Next::Seen(seen) } else { Next::Changing }
    }
}

/// The result of a check that failed.
fn unreadable(error: &anyhow::Error) -> Verified {
    Verified { drifted: vec![format!("{error:#}")], ..Verified::default() }
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
    looks: u64,
    shown: BTreeSet<String>,
    vanished: BTreeSet<String>,
}

impl<'a> DriftReport<'a> {
    fn new(args: &'a VerifyArgs) -> Self {
        Self { args, begin: Instant::now(), looks: 0, shown: BTreeSet::new(), vanished: BTreeSet::new() }
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
