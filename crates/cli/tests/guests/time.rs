//! Periods over time on a real kernel: a planted double periodicity is found in the samples, and
//! its source in the trace.
//!
//! The ERTS 2022 paper (§VI-B) saw nine small peaks between two large ones and could not say where
//! they came from. Structure and names are judged; of times only that they are the planted ones,
//! within the reported interval.

use crate::machine::Guest;
use crate::support::print_row;
use crate::support::{read_json, stillcore, text};
use analysis::time::{FoundIn, Periodicity, TimeSection};
use result::Row;
use serde_json::Value;
use stats::time::periods::Multiple;
use std::fs;
use std::path::Path;

fn section(root: &Path, run: &str) -> TimeSection {
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    assert!(matches!(read(&format!("{run}.code")).trim(), "0" | "2"), "{}", read(&format!("{run}.log")));
    let analysis: Value = read_json(&root.join(run).join("analysis.json"));
    let sections: Vec<TimeSection> = serde_json::from_value(analysis["time"].clone()).unwrap();
    assert_eq!(sections.len(), 1, "{}", analysis["time"]);
    sections.into_iter().next().unwrap()
}

/// The period planted, with the share of its turns that were seen.
fn of_about(section: &TimeSection, period_ms: f64) -> &Periodicity {
    let about = |one: &&Periodicity| (one.period_ns / (period_ms * 1e6) - 1.0).abs() < 0.01;
    let found: Vec<_> = section.periods.iter().map(|one| (one.period_ns, one.seen, one.turns)).collect();
    section.periods.iter().find(about).unwrap_or_else(|| panic!("no period of {period_ms} ms: {found:?}"))
}

/// Where the host hardly runs the emulated CPU, one job takes as long as many, and nothing that was
/// planted is there.
pub(crate) fn was_there(root: &Path) -> bool {
    if !root.join("run/run.json").exists() {
        return false;
    }
    let record = &read_json(&root.join("run/run.json"))["probes"][0];
    let [released, missed] = ["released", "missed"].map(|key| record[key].as_u64().unwrap());
    missed * 4 <= released
}

/// Arguments of the script: both periods, ms, and for how long to measure.
pub(crate) fn periods_are_found(guest: &Guest) {
    let [small_ms, large_ms] = [0, 1].map(|at: usize| guest.case.arguments[at].parse::<u32>().unwrap());
    let root = &guest.root;
    let section = section(root, "run");
    let (small, large) = (of_about(&section, f64::from(small_ms)), of_about(&section, f64::from(large_ms)));
    for one in [small, large] {
        assert!(one.named, "{one:?}");
        assert_eq!(one.suspects[0].label, "pump", "{:?}", one.suspects);
        assert_eq!(one.suspects[0].class, model::EventClass::Switch);
        assert!(one.seen * 10 >= one.turns * 8, "{one:?}");
        // Six digits, as the interval has.
        let (unit, scale) = if one.period_ns < 1e9 { ("ms", 1e6) } else { ("s", 1e9) };
        let rounded = |value: f64| (value / scale * 1e5).round() / 1e5;
        let of = format!("period of {} {unit}", rounded(one.period_ns));
        let (low, high) = (one.period_ns - one.half_width_ns, one.period_ns + one.half_width_ns);
        let found = Row::new(format!("{of}: found"), rounded(one.period_ns), unit);
        print_row(&found.between(rounded(low), rounded(high)));
        print_row(&Row::new(format!("{of}: turns in which it was seen"), one.seen as f64, "").n(one.turns));
    }
    assert_eq!(large.found_in, FoundIn::LargerSpikes, "{large:?}");
    let Multiple { of, times } = large.multiple_of.unwrap();
    assert_eq!(
        (section.periods[of].period_ns.to_bits(), times),
        (small.period_ns.to_bits(), large_ms / small_ms)
    );
    assert!(large.height_ns > small.height_ns);
    let report = stillcore(&["report"]).arg(root.join("run")).output().unwrap();
    let stdout = text(&report.stdout);
    println!("{stdout}");
    let words = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("9 small spikes between two large ones"), "{words}");
    unplanted(root);
}

/// The kernel's own periods that the busy loop on the other CPU has seen are reported with its
/// window, whatever they are.
fn unplanted(root: &Path) {
    let section = section(root, "still");
    for one in section.periods.iter().filter(|one| one.named) {
        assert!(one.suspects[0].label != "pump", "it never ran there: {one:?}");
        println!("{} ns: {:?} {}", one.period_ns, one.suspects[0].class, one.suspects[0].label);
    }
}
