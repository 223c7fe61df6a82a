//! A long system call of a nice task in the way of a FIFO wake-up: it is named where the kernel does
//! not preempt it, and nobody blames it where the kernel does.

use crate::machine::Guest;
use crate::support::read_json;
use analysis::attribute::blocking::Blocking;
use analysis::shape::{PathBox, PathSection, SamplePath};

/// Of a sample so late that a wake-up by itself cannot be.
const LATE_NS: i64 = 5_000_000;

/// Whether the time of a part is that of the planted call.
fn planted(part: &PathBox) -> bool {
    let source = part.source.as_ref();
    part.blocking == Some(Blocking::KernelCode)
        && part.label.as_deref() == Some("system call write")
        && source.is_some_and(|source| source.who == "sh")
        && source.and_then(|source| source.site.as_deref()).is_some_and(|site| site.contains(" < "))
}

fn share(sample: &SamplePath) -> f64 {
    let ns: u64 = sample.parts.iter().filter(|part| planted(part)).map(|part| part.ns).sum();
    ns as f64 / sample.value_ns as f64
}

pub(crate) fn the_system_call_is_named(guest: &Guest) {
    let code = guest.read("code");
    assert!(matches!(code.trim(), "0" | "2"), "{code}: {}", guest.read("log"));
    let analysis = read_json(&guest.root.join("run/analysis.json"));
    let paths: Vec<PathSection> = serde_json::from_value(analysis["paths"].clone()).unwrap();
    let late = paths[0].worst.iter().filter(|sample| sample.value_ns > LATE_NS);
    let shares: Vec<f64> = late.map(share).collect();
    let held = shares.iter().filter(|share| **share > 0.5).count();
    let told = guest.read("explained");
    if guest.kernel().ends_with("-rt") {
        assert_eq!(held, 0, "a preemptible kernel: {shares:?}\n{told}");
        return;
    }
    // Now and then a crowded host takes the emulated CPU away for long.
    assert!(shares.len() >= 5 && held * 2 > shares.len(), "{shares:?}\n{told}");
    assert!(told.contains("non-preemptible kernel code, system call write, by sh["), "{told}");
}
