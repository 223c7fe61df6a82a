//! Periods over time on a real kernel: a planted double periodicity is found in the samples, and its source in the trace.
//!
//! The ERTS 2022 paper (§VI-B) saw nine small peaks between two large ones and could not say where they came from. Structure and names are
//! judged; of times only that they are what was planted, as far as the interval told says.
#![cfg(feature = "guest-matrix")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use analysis::time::{FoundIn, Periodicity, TimeSection};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use support::{read_json, stillcore, text};

/// Boots a kernel and plants interference of two periods, ms. Emulated CPUs of a crowded host hang now and then: a guest that has not
/// ended in time is booted again.
fn boot(kernel: &str, periods_ms: [&str; 2], duration: &str, timeout: &str) -> (tempfile::TempDir, PathBuf) {
    let again = || try_boot(kernel, periods_ms, duration, timeout);
    (0..3).find_map(|_| again()).expect("three guests in a row did not end in time, or stood still")
}

fn try_boot(
    kernel: &str,
    [small, large]: [&str; 2],
    duration: &str,
    timeout: &str,
) -> Option<(tempfile::TempDir, PathBuf)> {
    let place = tempfile::tempdir().unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guest_time.sh");
    let out = place.path().join("lab");
    let mut command = stillcore(&["lab", "run", "--kernel", kernel, "--smp", "4"]);
    // An emulated machine's counters agree, but its kernel takes them for unsynchronised and reads the HPET instead. The emulator serves that
    // under a lock for all devices: a job that looks at the clock in a loop took some 500 ms for its 12.
    command.args(["--append", "isolcpus=2,3 nohz_full=2,3 rcu_nocbs=2,3 tsc=reliable"]);
    command.args(["--packages", "busybox-static", "--timeout", timeout]);
    command.arg("--add").arg(format!("{}:/root/guest.sh", script.display())).arg("--out").arg(&out);
    command.args(["--", "/bin/busybox", "sh", "/root/guest.sh", small, large, duration]);
    let output = command.output().unwrap();
    let told = text(&output.stderr);
    if told.contains("did not finish within") || told.contains("because its time was over") {
        println!("{kernel}: the guest did not end in time\n{told}");
        return None;
    }
    assert_eq!(output.status.code(), Some(0), "{told}");
    let root = out.join("root");
    // Where the host hardly runs the emulated CPU, one job takes as long as many, and nothing that was planted is there.
    let record = &read_json(&root.join("run/run.json"))["probes"][0];
    let [released, missed] = ["released", "missed"].map(|key| record[key].as_u64().unwrap());
    if missed * 4 > released {
        println!("{kernel}: {missed} of {released} releases passed while the guest stood still");
        return None;
    }
    Some((place, root))
}

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

fn planted(kernel: &str, [small_ms, large_ms]: [u32; 2], duration: &str, timeout: &str) {
    let periods = [small_ms.to_string(), large_ms.to_string()];
    let (_place, root) = boot(kernel, [&periods[0], &periods[1]], duration, timeout);
    let section = section(&root, "run");
    let (small, large) = (of_about(&section, f64::from(small_ms)), of_about(&section, f64::from(large_ms)));
    for one in [small, large] {
        assert!(one.named, "{one:?}");
        assert_eq!(one.suspects[0].label, "pump", "{:?}", one.suspects);
        assert_eq!(one.suspects[0].class, model::EventClass::Switch);
        assert!(one.seen * 10 >= one.turns * 8, "{one:?}");
    }
    assert_eq!(large.found_in, FoundIn::LargerSpikes, "{large:?}");
    let (of, times) = large.multiple_of.unwrap();
    assert_eq!(
        (section.periods[of].period_ns.to_bits(), times),
        (small.period_ns.to_bits(), large_ms / small_ms)
    );
    assert!(large.height_ns > small.height_ns);
    let report = stillcore(&["report"]).arg(root.join("run")).output().unwrap();
    let told = text(&report.stdout);
    println!("{told}");
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("9 small spikes between two large ones"), "{told}");
    unplanted(&root);
}

/// What the busy loop on the other CPU has seen of the kernel's own periods is told with its window, whatever it is.
fn unplanted(root: &Path) {
    let section = section(root, "still");
    for one in section.periods.iter().filter(|one| one.named) {
        assert!(one.suspects[0].label != "pump", "it never ran there: {one:?}");
        println!("{} ns: {:?} {}", one.period_ns, one.suspects[0].class, one.suspects[0].label);
    }
}

#[test]
fn matrix_periods_of_a_third_of_a_second_and_three() {
    planted("6.1", [300, 3_000], "36s", "300s");
}

#[test]
fn matrix_periods_of_three_and_thirty_seconds() {
    planted("6.1", [3_000, 30_000], "190s", "600s");
}
