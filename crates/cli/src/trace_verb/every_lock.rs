//! `trace watch --locks=every`: probes on the functions by which the watched program locks.

use crate::run::output::RunOutput;
use crate::run::place::Place;
use crate::run::progress::Reporter;
use anyhow::ensure;
use journal::session::Session;
use model::events::EventSpec;
use record::locking;
use report::format;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The files that the program runs, or will run where it is a command.
pub(super) fn files(command: Option<&Path>, tgids: &BTreeSet<i32>) -> BTreeSet<PathBuf> {
    command.map_or_else(|| locking::mapped(tgids), locking::of_program)
}

/// The events that probes on those files make. Measures what they cost, and prints it: every program
/// that uses one of the files pays, watched or not.
pub(super) fn probes(
    files: &BTreeSet<PathBuf>,
    place: &Place,
    output: &mut RunOutput,
    session: &mut Session,
) -> anyhow::Result<Vec<EventSpec>> {
    let probes = locking::probes(files);
    ensure!(
        !probes.is_empty(),
        "--locks=every: no file of the program has pthread_mutex_lock as a function with a name; expected a program that \
         uses the C library's mutexes, in a file that root alone can replace, with its symbols where it is static"
    );
    let tracefs = session.tracefs()?;
    ensure!(
        tracefs.join("uprobe_events").exists(),
        "--locks=every: this kernel has no probes of programs (CONFIG_UPROBE_EVENTS); expected --locks=contended"
    );
    let name = format!("stillcore-{}-locking", std::process::id());
    let cost_ns = locking::cost_ns(session, &tracefs, &name, &place.housekeeping)?;
    output.run.observer.trace_lock_ns = cost_ns;
    let cost = cost_ns.map_or_else(|| "an unknown time".to_owned(), format::ns_f);
    Reporter::say(&format!(
        "every locking is recorded: until this ends, locking and unlocking a mutex takes about {cost} longer in every program that \
         uses {}",
        probed(&probes)
    ));
    Ok(probes)
}

/// The probed files.
fn probed(probes: &[EventSpec]) -> String {
    let places = probes.iter().flat_map(|event| &event.uprobes);
    let files: BTreeSet<&str> = places.filter_map(|place| Some(place.rsplit_once(":0x")?.0)).collect();
    files.into_iter().collect::<Vec<_>>().join(", ")
}
