//! A long system call of an ordinary task in the way of a FIFO wake-up: it is named where the
//! kernel does not preempt it, and nobody blames it where the kernel does.

use crate::machine::Guest;
use crate::support::read_json;
use analysis::attribute::blocking::Blocking;
use analysis::attribute::path::Step;
use analysis::shape::{PathBox, PathSection, SamplePath};

/// Longer than a switch by itself can take.
const LONG_NS: u64 = 5_000_000;

/// Whether the time of a part is that of the planted call.
fn planted(part: &PathBox) -> bool {
    let source = part.source.as_ref();
    let functions = source.map_or(&[][..], |source| &source.frames);
    part.blocking == Some(Blocking::KernelCode)
        && part.label.as_deref() == Some("system call write")
        && source.is_some_and(|source| source.who == "sh")
        && functions.iter().any(|function| function == "write_sysrq_trigger")
}

/// Of the time that a sample waited for the switch, all and what the planted call took.
fn waited(sample: &SamplePath) -> [u64; 2] {
    let switch = sample.parts.iter().filter(|part| part.step == Step::Switch);
    switch.fold([0, 0], |[all, held], part| [all + part.ns, held + if planted(part) { part.ns } else { 0 }])
}

pub(crate) fn the_system_call_is_named(guest: &Guest) {
    let code = guest.read("code");
    assert!(matches!(code.trim(), "0" | "2"), "{code}: {}", guest.read("log"));
    let analysis = read_json(&guest.root.join("run/analysis.json"));
    let paths: Vec<PathSection> = serde_json::from_value(analysis["paths"].clone()).unwrap();
    let told = guest.read("explained");
    let late: u64 = paths[0].worst.iter().map(|sample| sample.value_ns.unsigned_abs()).sum();
    let waits: Vec<[u64; 2]> = paths[0].worst.iter().map(waited).collect();
    if guest.kernel().ends_with("-rt") {
        // Inside the call preemption is off at times.
        let held: u64 = waits.iter().map(|[_, held]| held).sum();
        assert!(held < late / 2, "a preemptible kernel: {held} of {late} ns\n{told}");
        return;
    }
    let long: Vec<_> = waits.iter().filter(|[all, _]| *all > LONG_NS).collect();
    let [all, held] = long.iter().fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    // Interrupts inside it have boxes of their own, and a crowded host takes the emulated CPU away.
    assert!(long.len() >= 5 && held * 100 >= all * 95, "{waits:?}\n{told}");
    assert!(told.contains("non-preemptible kernel code, system call write, by sh["), "{told}");
}
