//! Every test and protocol against an adversary that looks for late jobs: accepted sets in which it
//! found one (none may be), and the share of refused sets in which it found none.
//!
//! `cargo bench -p stillcore-sched --bench adversary [-- --rounds N --rows FILE]`; a round is 1,000
//! accepted sets of each. `--only TEXT` leaves out those whose name does not have it.

use result::{Limit, Of, Row, Sink};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

#[path = "../tests/common/adversary/mod.rs"]
mod adversary;
mod clock;
#[path = "../tests/common/numbers.rs"]
mod numbers;

use adversary::campaign::{Tally, Trial, trials};
use adversary::search::Effort;

/// Scripts drawn for a set, and changes tried of each.
const EFFORT: Effort = Effort { starts: 6, changes: 12 };
const SEED: u64 = 20_261_125;

fn main() {
    let accepted = clock::rounds(20) * 1_000;
    let only = std::env::args().skip_while(|word| word != "--only").nth(1);
    let mut trials = trials();
    trials.retain(|trial| only.as_ref().is_none_or(|only| trial.name.contains(only)));
    let tallies = Mutex::new(vec![Tally::default(); trials.len()]);
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(trial) = trials.get(at) else { return };
            let tally = trial.run(accepted, EFFORT, SEED ^ seed(&trial.name));
            if let Some(first) = &tally.first {
                eprintln!("{}: {first}", trial.name);
            }
            tallies.lock().expect("no thread panicked")[at] = tally;
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    let tallies = tallies.into_inner().expect("no thread panicked");
    let mut rows = Sink::of_arguments();
    let note = format!(
        "adversary: sets of up to 7 tasks in ticks, jobs at quarters of a tick; {} scripts a set, {} changes of each",
        EFFORT.starts, EFFORT.changes
    );
    rows.note(note).expect("the file of rows can be written");
    for (trial, tally) in trials.iter().zip(&tallies) {
        push(&mut rows, trial, tally);
    }
    print!("{}", rows.table());
}

/// A number of a name (FNV-1a), so that others beside it change nothing.
fn seed(name: &str) -> u64 {
    name.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn push(rows: &mut Sink, trial: &Trial, tally: &Tally) {
    let Tally { accepted, wrong, refused, none_found, .. } = tally;
    let late = Row::new(format!("{}: accepted, yet a job was late", trial.name), *wrong as f64, "sets");
    let late = late.n(*accepted).budget(Of::Value, Limit::AtMost(0.0));
    let share = *none_found as f64 / (*refused).max(1) as f64 * 100.0;
    let none = Row::new(format!("{}: refused, no late job found", trial.name), share, "%").n(*refused);
    for row in [Some(late), (*refused > 0).then_some(none)].into_iter().flatten() {
        rows.push(row).expect("the file of rows can be written");
    }
}
