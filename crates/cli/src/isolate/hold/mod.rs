//! `stillcore isolate hold`: applies a desired state and keeps it. What somebody changes is set
//! again, with the name of who did where the kernel shows it; another program that insists is left
//! alone.
//!
//! `keeper` is what is done again and again, `changer` and `names` find out who, `report` prints,
//! `service` is the systemd unit.

mod changer;
mod healers;
mod keeper;
mod names;
mod report;
mod service;
mod stamp;

use super::State;
use super::apply::{Order, carry_out, need_root, summary};
use super::desired::Reading;
use super::target::{Planned, Target, leaves_residents};
use super::undo::{UndoArgs, undo_what_stands};
use crate::stdout;
use anyhow::Context;
use audit::Profile;
use clap::{Args, ValueEnum};
use isolate::standing::Found;
use journal::alone::{self, Role};
use keeper::{End, Keeper};
use machine::Root;
use model::quantity::duration;
use std::path::{Path, PathBuf};
use std::time::Duration;
use sys::notify::Notify;
use sys::signals::EndSignals;

/// Arguments of `isolate hold`.
#[derive(Debug, Args)]
pub(crate) struct HoldArgs {
    /// What to isolate [default: what is applied].
    #[command(flatten)]
    pub(crate) target: Target,
    /// Location of the journal.
    #[command(flatten)]
    pub(crate) state: State,
    /// Interval between checks of the settings; writes to their files are also seen at once.
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = duration)]
    pub(crate) interval: Duration,
    /// Interval between checks of everything: new tasks and interrupts, mechanisms that were right.
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = duration)]
    pub(crate) full_interval: Duration,
    /// Set a setting again at most this often per window; then leave it to whoever changes it.
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub(crate) heals: u16,
    /// Length of that window.
    #[arg(long, default_value = "10m", value_name = "TIME", value_parser = duration)]
    pub(crate) window: Duration,
    /// What becomes of the isolation when holding ends.
    #[arg(long, default_value = "keep", value_name = "WHAT")]
    pub(crate) on_stop: OnStop,
    /// Do not record the beginning of processes: those that end at once then have no name.
    #[arg(long)]
    pub(crate) no_trace: bool,
    /// Stop after this time.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Option<Duration>,
    /// Write a systemd unit that makes this call after each boot.
    #[arg(long, conflicts_with_all = ["remove", "duration", "json"])]
    pub(crate) install: bool,
    /// Remove that unit.
    #[arg(long)]
    pub(crate) remove: bool,
    /// With --install: only print the unit.
    #[arg(long, requires = "install")]
    pub(crate) print: bool,
    /// With --install: program that the unit starts [default: this one].
    #[arg(long, value_name = "PATH", requires = "install")]
    pub(crate) program: Option<PathBuf>,
    /// Print one JSON object per event.
    #[arg(long)]
    pub(crate) json: bool,
}

/// What becomes of the isolation when holding ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnStop {
    /// It stays, and drifts.
    Keep,
    /// It is undone.
    Undo,
}

/// Applies where asked, and holds until it is stopped or undone.
pub(crate) fn run(args: &HoldArgs, signals: &EndSignals) -> anyhow::Result<u8> {
    if args.remove {
        return service::remove(args);
    }
    for (option, interval) in [("--interval", args.interval), ("--full-interval", args.full_interval)] {
        anyhow::ensure!(!interval.is_zero(), "{option}: 0, expected a time above 0");
    }
    if args.install {
        return service::install(args);
    }
    need_root()?;
    let state = args.state.path()?;
    let alone = alone::take(&state, Role::Hold)?;
    let found = apply_first(args, signals)?;
    let notify = Notify::of(
        std::env::var_os("NOTIFY_SOCKET").as_deref(),
        std::env::var("WATCHDOG_USEC").ok().as_deref(),
        std::env::var("WATCHDOG_PID").ok().as_deref(),
    );
    let mut keeper = Keeper::new(args, &state, found, &notify)?;
    let end = keeper.run(signals);
    notify.stopping();
    let counts = keeper.end(&end);
    // Undoing takes as long as it takes, and nobody else is to hold meanwhile.
    let undone = match (end?, args.on_stop) {
        (End::Undone(_), _) | (_, OnStop::Keep) => 0,
        (_, OnStop::Undo) => undo_what_stands(&UndoArgs {
            state: State { dir: args.state.dir.clone() },
            forget: false,
            json: args.json,
            crash_at: None,
        })?,
    };
    drop(alone);
    Ok(if counts.failed() { 2 } else { undone })
}

/// Whether anything is asked beyond what stands.
fn asks(target: &Target) -> bool {
    let Target { cpus, profile, placement, with, without, keep, .. } = target;
    let lists = [with.is_empty(), without.is_empty(), keep.is_empty()];
    cpus.is_some() || profile.is_some() || placement.is_some() || lists.contains(&false)
}

/// Applies what is asked, as `isolate apply` does; gives what stands.
fn apply_first(args: &HoldArgs, signals: &EndSignals) -> anyhow::Result<Found> {
    if asks(&args.target) {
        let root = Root::open(Path::new("/"))?;
        let Planned { plan, profile } = args.target.plan(&root, &args.state, Reading::ToActUpon)?;
        leaves_residents(&plan, profile.move_pinned)?;
        let order = Order {
            plan: &plan,
            profile: Some(&profile),
            deployment: None,
            strict: false,
            json: args.json,
            crash_at: None,
        };
        let applied = carry_out(&order, &args.state, signals)?;
        if !args.json {
            stdout::progress(format_args!("{}", summary(&plan, &applied)));
        }
    }
    let standing = args.state.standing()?.map(|(_, found)| found);
    let nothing =
        || format!("{}: nothing to hold; name what to isolate, or a --profile", args.state.nothing());
    let found = standing.with_context(nothing)?;
    anyhow::ensure!(found.this_boot, "what was isolated went with an earlier boot: apply it again");
    Ok(found)
}

/// What is wanted where something has come since; none where an earlier version wrote the journal.
fn wanted(found: &Found) -> Option<Profile> {
    let keep = found.purpose.keep.iter().map(ToString::to_string).collect();
    found.desired.as_ref().map(|desired| Profile { keep, ..desired.clone() })
}
