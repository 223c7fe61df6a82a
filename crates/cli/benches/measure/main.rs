//! The probes beside rt-tests' tools: same CPU, policy, priority, period and length, run in turns.
//! `cargo bench -p stillcore --bench measure [-- SECTION… --cpu N --repetitions N --seconds N --long N]`;
//! needs root and the package rt-tests. Sections: typed, wakeup, load, noise, hog; all without one.
//!
//! Times of a crowded machine mean nothing; ratios of runs made in turns do, with an interval over
//! the pairs of runs (`stats::runs`). Budgets are those of section 7 of the design.

#[path = "../common/mod.rs"]
mod common;
mod hog;
mod load;
mod noise;
mod typed;
mod wakeup;

use common::{Failed, option, run};
use result::Sink;

/// Priority of what measures; above most real-time threads, below a hog.
const PRIORITY: u32 = 80;

/// Where and how often.
struct Plan {
    /// The measured CPU.
    cpu: u32,
    /// Runs of each tool; half as many of busy loops, which take a CPU for themselves.
    repetitions: u32,
    /// Length of a run.
    seconds: u64,
    /// Length of the run under load.
    long: u64,
}

fn main() {
    let last = std::thread::available_parallelism().map_or(1, |n| n.get() as u32) - 1;
    let plan = Plan {
        cpu: option("--cpu", last),
        repetitions: option("--repetitions", 12),
        seconds: option("--seconds", 3),
        long: option("--long", 60),
    };
    run("measure", |rows| sections(&plan, rows));
}

fn sections(plan: &Plan, rows: &mut Sink) -> Result<(), Failed> {
    type Section = fn(&Plan, &mut Sink) -> Result<(), Failed>;
    let all: [(&str, Section); 5] = [
        ("typed", typed::section),
        ("wakeup", wakeup::section),
        ("hog", hog::section),
        ("noise", noise::section),
        ("load", load::section),
    ];
    let named = |name: &str| std::env::args().any(|word| word == name);
    let some = all.iter().any(|(name, _)| named(name));
    for (name, section) in all {
        if !some || named(name) {
            eprintln!("== {name}");
            section(plan, rows)?;
        }
    }
    Ok(())
}
