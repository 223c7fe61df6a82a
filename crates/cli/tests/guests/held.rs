//! A long system call of an ordinary task delays a FIFO wake-up: it is named where the kernel does
//! not preempt it, and not blamed where the kernel does.

use crate::machine::Guest;
use crate::support::read_json;
use attribution::attribute::delay::Blocking;
use attribution::attribute::path_section::{PathBox, PathSection, SamplePath};
use attribution::attribute::step::Step;
use attribution::attribute::thread_paths::ThreadPaths;

/// Longer than a switch by itself can take.
const LONG_NS: u64 = 5_000_000;

/// Whether the time of a part is that of the planted call, by name.
fn named(part: &PathBox) -> bool {
    let functions = part.source.as_ref().map_or(&[][..], |source| &source.frames);
    part.label.as_deref() == Some("system call write")
        && functions.iter().any(|function| function == "write_sysrq_trigger")
}

/// Whether it is that call's. Where its CPU was to reschedule already the wake-up sends no
/// interrupt, so that no stack has the call's name: the talker was in some system call.
fn planted(part: &PathBox) -> bool {
    let by_talker = part.source.as_ref().is_some_and(|source| source.who == "sh");
    let some_call = part.label.as_deref() == Some("system call");
    part.blocking == Some(Blocking::KernelCode) && by_talker && (named(part) || some_call)
}

/// The parts of a sample before the switch, without interrupts: one inside the call has a box of
/// its own, and lasts as long as a crowded host likes.
fn waits(sample: &SamplePath) -> impl Iterator<Item = &PathBox> {
    let in_interrupt = |part: &PathBox| part.class.is_some() && part.task.is_none();
    sample.parts.iter().filter(move |part| part.step == Step::Switch && !in_interrupt(part))
}

fn sum<'p>(parts: impl Iterator<Item = &'p PathBox>) -> u64 {
    parts.map(|part| part.ns).sum()
}

pub(crate) fn the_system_call_is_named(guest: &Guest) {
    let code = guest.read("code");
    assert!(matches!(code.trim(), "0" | "2"), "{code}: {}", guest.read("log"));
    let analysis = read_json(&guest.root.join("run/analysis.json"));
    let paths: Vec<PathSection> = serde_json::from_value(analysis["paths"].clone()).unwrap();
    let explanation = guest.read("explained");
    is_named(&paths[0].worst, 5, preemptible(guest), &explanation);
    assert!(
        preemptible(guest) || explanation.contains("non-preemptible kernel code, system call write, by sh["),
        "{explanation}"
    );
    watch_names_the_call(guest);
}

fn preemptible(guest: &Guest) -> bool {
    guest.kernel().ends_with("-rt")
}

/// `trace watch` reports the same for a program that it does not know.
fn watch_names_the_call(guest: &Guest) {
    assert_eq!(guest.read("watched.code").trim(), "0", "{}", guest.read("watched.log"));
    let answer = read_json(&guest.root.join("watched.json"));
    let paths: Vec<ThreadPaths> = serde_json::from_value(answer["watch"]["paths"].clone()).unwrap();
    let paths_json = answer["watch"]["paths"].to_string();
    // The measuring thread waits longest in all.
    is_named(&paths[0].path.worst, 2, preemptible(guest), &paths_json);
    let senders = answer["watch"]["attribution"].as_array().map_or(0, Vec::len);
    assert!(senders > 0, "nobody interrupted the CPU: {}", answer["watch"]);
}

/// Of the latest wake-ups at least so many waited long, and for the planted call; on a kernel that
/// preempts it, they did not wait for it.
fn is_named(worst: &[SamplePath], least: usize, preemptible: bool, message: &str) {
    if preemptible {
        // Inside the call preemption is off at times.
        let late: u64 = worst.iter().map(|sample| sample.value_ns.unsigned_abs()).sum();
        let held = sum(worst.iter().flat_map(waits).filter(|part| planted(part)));
        assert!(held < late / 2, "a preemptible kernel: {held} of {late} ns\n{message}");
        return;
    }
    let long: Vec<_> = worst.iter().filter(|sample| sum(waits(sample)) > LONG_NS).collect();
    let of_name = long.iter().filter(|sample| waits(sample).any(named)).count();
    assert!(of_name >= least, "{of_name} of {} long switches have the call's name\n{message}", long.len());
    let all = || long.iter().flat_map(|sample| waits(sample));
    let [held, waited] = [sum(all().filter(|part| planted(part))), sum(all())];
    if held * 100 < waited * 95 {
        let others: Vec<_> = all().filter(|part| !planted(part)).collect();
        panic!("{held} of {waited} ns are the planted call's, and these are not: {others:#?}");
    }
}
