//! Wake-ups of threads that are no probe's, taken apart, in words.

use crate::trace_verb::explain_text::{after_start, bound, due, latest_first, shares, story};
use attribution::attribute::path_section::SamplePath;
use attribution::attribute::step::Step;
use attribution::attribute::thread_paths::ThreadPaths;
use report::format;
use std::fmt::Write;

/// Threads that are printed.
const THREADS: usize = 6;

/// Each thread's latest wake-ups, `worst` of each, and where its latencies went, thread by thread.
pub(super) fn text(paths: &[ThreadPaths], worst: usize, stacks: bool, t0_ns: i64) -> String {
    let mut text = String::new();
    for one in paths.iter().take(THREADS) {
        text.push_str(&boxes(one, stacks));
        let latest = one.path.worst.iter().take(worst);
        latest.for_each(|sample| text.push_str(&of_sample(one, sample, stacks, t0_ns)));
    }
    more(&mut text, paths);
    text
}

/// The latest wake-ups of all threads, the latest first.
pub(super) fn stories(paths: &[ThreadPaths], most: usize, stacks: bool, t0_ns: i64) -> String {
    let of_thread = |one: &ThreadPaths| {
        let story = |sample: &SamplePath| (sample.value_ns, of_sample(one, sample, stacks, t0_ns));
        one.path.worst.iter().map(story).collect::<Vec<_>>()
    };
    latest_first(paths.iter().flat_map(of_thread).collect(), most)
}

/// Where the latencies of each thread went.
pub(super) fn sums(paths: &[ThreadPaths], stacks: bool) -> String {
    let mut text: String = paths.iter().take(THREADS).map(|one| boxes(one, stacks)).collect();
    more(&mut text, paths);
    text
}

fn more(text: &mut String, paths: &[ThreadPaths]) {
    if paths.len() > THREADS {
        let _ = writeln!(text, "and {} more threads (--json lists all)\n", paths.len() - THREADS);
    }
}

/// One wake-up. Without its timer in the trace, it counts from the request: when it was due, and so
/// how late it was, is unknown.
fn of_sample(one: &ThreadPaths, sample: &SamplePath, stacks: bool, t0_ns: i64) -> String {
    let timed = sample.parts.iter().any(|part| matches!(part.step, Step::TimerLate | Step::TimerHandler));
    let after = after_start("trace", sample.t_ns, t0_ns);
    let place = format!("{}[{}], CPU {}, {after}", one.comm, one.tid, one.path.cpu);
    let head = if timed {
        due(sample, &place)
    } else {
        let (at, took) = (format::instant(sample.t_ns), format::ns(sample.value_ns));
        format!("The wake-up asked for at {at} s took {took} to run ({place}):\n")
    };
    story(head, sample, &one.path, stacks)
}

fn boxes(one: &ThreadPaths, stacks: bool) -> String {
    format!(
        "{}[{}], CPU {}: where the latencies of {} went ({} in all)\n{}{}\n",
        one.comm,
        one.tid,
        one.path.cpu,
        format::plural(one.path.samples, "wake-up"),
        format::ns(one.path.total_ns as i64),
        shares(&one.path, stacks),
        one.path.bound.as_ref().map(bound).unwrap_or_default()
    )
}
