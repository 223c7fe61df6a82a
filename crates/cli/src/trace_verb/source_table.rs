//! The table of who interrupted the CPUs of a trace.

use crate::trace_verb::explain_text::rows;
use attribution::any_trace::shape::Record;
use attribution::attribute::thread_paths::CpuSources;
use std::fmt::Write;

/// The longest name of a task, bytes (`TASK_COMM_LEN` without its end).
pub(crate) const LONGEST_NAME: usize = 15;

/// Columns of a command line that is printed.
pub(crate) const COLUMNS: usize = 96;

/// What ran on each CPU, and its source.
pub(crate) fn all_sources(all: &[CpuSources], stacks: bool) -> String {
    let mut text: String = all.iter().take(CPUS).map(|one| sources(one, stacks)).collect();
    if all.len() > CPUS {
        let _ = writeln!(text, "and {} more CPUs (--cpus chooses)\n", all.len() - CPUS);
    }
    text
}

pub(crate) fn sources(one: &CpuSources, stacks: bool) -> String {
    let all = one.exact + one.by_order + one.unknown;
    let beside = match (&one.comm, one.tid) {
        (Some(comm), Some(tid)) => format!(", beside {comm}[{tid}]"),
        (None, Some(tid)) => format!(", beside thread {tid}"),
        _ => String::new(),
    };
    format!(
        "CPU {}{beside}: {all} events asked for by somebody; source exact for {}, by order for {}, unknown for {}\n{}",
        one.cpu,
        one.exact,
        one.by_order,
        one.unknown,
        rows(&one.rows, stacks)
    )
}

/// The command that would record what is not in the trace.
pub(crate) fn record(record: &Record) -> String {
    let Record { have, missing, later } = record;
    if missing.is_empty() && later.is_empty() {
        return String::new();
    }
    let mut text = String::new();
    if !missing.is_empty() {
        text.push_str("None of these events are in it, because they did not happen or were not recorded; the command below records all that show sources:\n");
        text.push_str(&wrapped(missing.iter().map(|name| format!(" {name}")), ""));
        let words = have.iter().chain(missing).map(|name| format!(" -e {name}"));
        text.push_str(&wrapped(std::iter::once(" trace-cmd record -C mono".to_owned()).chain(words), " \\"));
    }
    if !later.is_empty() {
        text.push_str("Later kernels have more:\n");
        text.push_str(&wrapped(later.iter().map(|(name, since)| format!(" {name} (from {since} on)")), ""));
    }
    text.push('\n');
    text
}

/// CPUs whose sources are printed.
pub(super) const CPUS: usize = 8;

/// Words, each with the space before it, in lines that end with `joint` where another follows.
pub(super) fn wrapped(words: impl Iterator<Item = String>, joint: &str) -> String {
    let (mut text, mut line) = (String::new(), " ".to_owned());
    for word in words {
        if line.len() + word.len() + joint.len() > COLUMNS {
            let _ = writeln!(text, "{line}{joint}");
            line.replace_range(.., "   ");
        }
        line.push_str(&word);
    }
    let _ = writeln!(text, "{line}");
    text
}
