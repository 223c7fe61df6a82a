//! Wake-ups of threads that are no probe's, taken apart, in words.

use crate::trace_verb::explain_text::{due, shares, story};
use attribution::attribute::path_section::SamplePath;
use attribution::attribute::step::Step;
use attribution::attribute::thread_paths::ThreadPaths;
use report::format;
use std::fmt::Write;

/// Threads that are printed.
const THREADS: usize = 6;

/// Where the latencies of each thread went, and its `worst` latest wake-ups; `sums`: not only
/// those.
pub(super) fn text(paths: &[ThreadPaths], worst: usize, stacks: bool, sums: bool) -> String {
    let mut text = String::new();
    for one in paths.iter().take(THREADS) {
        if sums {
            text.push_str(&boxes(one, stacks));
        }
        let latest = one.path.worst.iter().take(worst);
        latest.for_each(|sample| text.push_str(&story(head(sample), sample, &one.path, stacks)));
    }
    if sums && paths.len() > THREADS {
        let _ = writeln!(text, "and {} more threads (--json lists all)\n", paths.len() - THREADS);
    }
    text
}

/// The first line of a wake-up. Without its timer in the trace, it counts from the request: when it
/// was due, and so how late it was, is unknown.
fn head(sample: &SamplePath) -> String {
    let timed = sample.parts.iter().any(|part| matches!(part.step, Step::TimerLate | Step::TimerHandler));
    if timed {
        return due(sample);
    }
    format!("The wake-up asked for at {} ns took {} to run:\n", sample.t_ns, format::ns(sample.value_ns))
}

fn boxes(one: &ThreadPaths, stacks: bool) -> String {
    format!(
        "{}[{}], CPU {}: where the latencies of {} went ({} in all)\n{}",
        one.comm,
        one.tid,
        one.path.cpu,
        format::plural(one.path.samples, "wake-up"),
        format::ns(one.path.total_ns as i64),
        shares(&one.path, stacks)
    )
}
