//! `stillcore monitor`: watches CPUs and threads for as long as it runs, keeps the recording of
//! each breach, and says how things stand.
//!
//! `start` sets up and loops; `watcher` is what is done again and again; `store` has breaches on a
//! bounded amount of disk; `keeping` makes the run of one and finds what took its time, in a
//! process of its own, and `changed` what is different on the machine; `reports` hears programs;
//! `standing` sums, `offences` who reached the watched CPUs from others, `outlets` gives away;
//! `stored` reads what is there, `fleet` what many machines have; `service` is the systemd unit.

mod action;
mod changed;
mod entry;
mod fleet;
mod history;
pub(crate) mod keeping;
mod moments;
mod offences;
mod options;
mod outlets;
mod packages;
mod past;
mod reports;
mod service;
mod standing;
mod start;
mod store;
mod stored;
mod taken;
mod watcher;

use clap::Args;
use journal::session;
use std::path::PathBuf;

verbs! {
    /// Verbs under `monitor`.
    MonitorVerb {
        /// Watch CPUs and threads until stopped; keep the recording of each breach.
        Start(options::StartArgs) => changes(start::run),
        /// Show how things stand with the monitor that runs here.
        Status(stored::StatusArgs) => reads(stored::status),
        /// List the breaches that were seen, and what became of each.
        List(stored::ListArgs) => reads(stored::list),
        /// List who on other CPUs caused what ran on the watched ones, though nothing was late.
        Offences(offences::OffencesArgs) => reads(offences::run),
        /// Show what was seen, day by day.
        History(past::HistoryArgs) => reads(past::history),
        /// Hold two periods of a history against each other, such as this week and last.
        Compare(past::CompareArgs) => reads(past::compare),
        /// Find when something in a history changed for good, and what was different from then on.
        Changes(moments::ChangesArgs) => reads(moments::changes),
        /// Hold the histories of many machines against each other: which machine, kernel or package
        /// is worse.
        Fleet(fleet::FleetArgs) => reads(fleet::run),
        /// Report to the monitor that a program was late.
        Report(reports::ReportArgs) => reads(reports::report),
        /// Show one breach and what took its time.
        Show(stored::ShowArgs) => reads(stored::show),
    }
}

/// Where a monitor keeps what it knows.
#[derive(Debug, Args)]
pub(crate) struct Kept {
    /// Directory of the journal; breaches are in its subdirectory monitor [default:
    /// /var/lib/stillcore].
    #[arg(long = "state", value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

/// The subdirectory of a state directory.
const DIRECTORY: &str = "monitor";

impl Kept {
    /// The directory of the monitor that writes, or has written, there.
    pub(crate) fn path(&self) -> anyhow::Result<PathBuf> {
        let places = match &self.state {
            Some(state) => vec![state.clone()],
            None => session::states_to_read(session::home().as_deref()),
        };
        let there = places.iter().map(|state| state.join(DIRECTORY)).find(|dir| dir.is_dir());
        there.ok_or_else(|| {
            let names: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
            anyhow::anyhow!("no monitor has run here: there is no {DIRECTORY} in {}", names.join(" or "))
        })
    }
}
