//! Stretches with interrupts or preemption off, and calls of probed functions, in words: the same
//! rows on a terminal and on a page.

use crate::format;
use attribution::attribute::delay::Blocking;
use attribution::attribute::off::{OffRow, OffSection};
use model::{Run, off};

/// What the columns of [`row`] are.
pub const HEAD: [&str; 11] = [
    "phase",
    "CPU",
    "by",
    "what",
    "n",
    "median",
    "p99",
    "longest",
    "at",
    "who, in the longest",
    "CPU given up in",
];

/// Its callers that are printed in a row; a page has the whole stack beside it.
const CALLERS: usize = 3;

/// Rows that are printed, of all CPUs.
const ROWS: usize = 16;

/// The longest of all CPUs and phases, and how many more there are.
pub fn longest(sections: &[OffSection]) -> (Vec<(&OffSection, &OffRow)>, usize) {
    let of = |section| move |row| (section, row);
    let rows = sections.iter().flat_map(|section| section.rows.iter().map(of(section)));
    let mut all: Vec<(&OffSection, &OffRow)> = rows.collect();
    all.sort_by_key(|(_, row)| std::cmp::Reverse(row.max_ns));
    let more = all.len().saturating_sub(ROWS);
    all.truncate(ROWS);
    (all, more)
}

/// One row; the moment of the longest counts from the begin of its phase.
pub fn row(run: &Run, section: &OffSection, row: &OffRow) -> Vec<String> {
    let time = |ns: u64| match row.count {
        0 => "-".to_owned(),
        _ => format::ns(i64::try_from(ns).unwrap_or(i64::MAX)),
    };
    let at = format::ns(row.max_t_ns.saturating_sub(begin_ns(run, section)));
    let who = row.by.as_ref().map(|by| {
        let callers = by.functions().into_iter().filter(|function| *function != row.function);
        let callers: Vec<String> = callers.take(CALLERS).collect();
        if callers.is_empty() { by.name() } else { format!("{} in {}", by.name(), callers.join(" < ")) }
    });
    vec![
        section.phase.clone(),
        section.cpu.to_string(),
        row.function.clone(),
        what(row.blocking).to_owned(),
        format::count(row.count),
        time(row.p50_ns),
        time(row.p99_ns),
        time(row.max_ns),
        if row.count == 0 { "-".to_owned() } else { format!("+{at}") },
        who.unwrap_or_else(|| "-".to_owned()),
        gave_up(row),
    ]
}

/// The windows of a section's phase; where there are none, as of a watched program, the phase.
fn windows(run: &Run, section: &OffSection) -> Vec<[i64; 2]> {
    let windows = run.windows.iter().filter(|window| window.phase == section.phase);
    let windows: Vec<_> = windows.map(|window| [window.t0_ns, window.t1_ns]).collect();
    if !windows.is_empty() {
        return windows;
    }
    let phases = run.phases.iter().filter(|phase| phase.name == section.phase);
    phases.map(|phase| [phase.t0_ns, phase.t1_ns]).collect()
}

/// When the first of them began.
fn begin_ns(run: &Run, section: &OffSection) -> i64 {
    windows(run, section).into_iter().map(|[t0_ns, _]| t0_ns).min().unwrap_or(0)
}

fn what(blocking: Blocking) -> &'static str {
    match blocking {
        Blocking::ProbedFunction => "call",
        blocking => blocking.words(),
    }
}

/// In how many calls the CPU was given up, of how many.
fn gave_up(row: &OffRow) -> String {
    match row.blocking {
        Blocking::ProbedFunction => {
            format!("{} of {}", format::count(row.gave_up), format::count(row.count))
        }
        _ => "-".to_owned(),
    }
}

/// What the lengths mean.
pub fn meaning(sections: &[OffSection]) -> &'static str {
    let mut rows = sections.iter().flat_map(|section| &section.rows);
    if rows.any(|row| row.blocking == Blocking::ProbedFunction) {
        "a call lasts from the probe at the entry to the one at the return, or until the CPU is given up inside, where \
         preemption is on; interrupts within it included; whether interrupts or preemption were off before is not recorded"
    } else {
        "recorded by the kernel where it turned interrupts or preemption off and on again"
    }
}

/// What is said where functions were probed and no measured CPU called any of them.
pub fn nothing(run: &Run, sections: &[OffSection]) -> Option<String> {
    let functions = probed(run);
    let is_empty = sections.iter().all(|section| section.rows.is_empty());
    if !is_empty {
        return None;
    }
    let silent = (!functions.is_empty())
        .then(|| format!("no call of a probed function was recorded ({})", functions.join(", ")));
    let all: Vec<String> = silent.into_iter().chain(refused(run)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// Functions that were probed and that no measured CPU called; `None` where all were called.
pub fn not_called(run: &Run, sections: &[OffSection]) -> Option<String> {
    let is_called = |name: &&str| sections.iter().flat_map(|one| &one.rows).any(|row| row.function == *name);
    let silent: Vec<&str> = probed(run).into_iter().filter(|name| !is_called(name)).collect();
    (!silent.is_empty()).then(|| format!("no call was recorded of {}", silent.join(", ")))
}

/// Functions with probes at both ends.
fn probed(run: &Run) -> Vec<&str> {
    let of = |end: off::End| {
        let events = run.trace.iter().flat_map(|trace| &trace.events);
        let ours = events.filter(move |event| off::end_of(event) == Some(end));
        ours.filter_map(|event| off::function_of(event))
    };
    of(off::End::Entry).filter(|name| of(off::End::Return).any(|other| other == *name)).collect()
}

/// Functions that the kernel takes no probe on; `None` where there are none.
pub fn refused(run: &Run) -> Option<String> {
    let absent = run.trace.iter().flat_map(|trace| &trace.absent);
    let mut names: Vec<&str> = absent.filter_map(|event| off::function_of(event)).collect();
    names.dedup();
    (!names.is_empty())
        .then(|| format!("not recorded, since this kernel takes no probe there: {}", names.join(", ")))
}

/// What the probes cost on the CPU and in the phase with the most calls; `None` where nothing was
/// probed or the cost is not known.
pub fn cost(run: &Run, sections: &[OffSection]) -> Option<String> {
    let each_ns = run.observer.trace_function_ns?;
    let calls = |section: &&OffSection| -> u64 {
        let probed = section.rows.iter().filter(|row| row.blocking == Blocking::ProbedFunction);
        probed.map(|row| row.count).fold(0, u64::saturating_add)
    };
    let section = sections.iter().max_by_key(calls)?;
    let calls = Some(calls(&section)).filter(|calls| *calls > 0)?;
    let spans = windows(run, section).into_iter().map(|[t0_ns, t1_ns]| t1_ns.abs_diff(t0_ns));
    let span_ns = spans.fold(0, u64::saturating_add);
    Some(format!(
        "the two probes add about {} to each call, measured just before: {} calls on CPU {}, about {} of {}",
        format::ns_f(each_ns),
        format::count(calls),
        section.cpu,
        format::ns_f(each_ns * calls as f64),
        format::span(span_ns)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use attribution::attribute::section::SourceText;

    fn one() -> OffRow {
        let mut by = SourceText::new(3, "bash", Some(812));
        by.frames = vec!["free_pcppages_bulk".to_owned(), "free_unref_page".to_owned()];
        OffRow {
            blocking: Blocking::ProbedFunction,
            function: "free_pcppages_bulk".to_owned(),
            count: 1500,
            gave_up: 0,
            total_ns: 9_000_000,
            p50_ns: 4_000,
            p99_ns: 31_000,
            max_ns: 84_000,
            max_t_ns: 2_500_000,
            by: Some(by),
        }
    }

    #[test]
    fn functions_that_nobody_called_are_named() {
        let mut document = crate::fixture::document();
        let sections = &document.analysis.off;
        assert_eq!(not_called(&document.run, sections), None);
        let trace = document.run.trace.as_mut().unwrap();
        trace.absent.push("stillcore:out_do_idle".to_owned());
        let events = &mut trace.events;
        events.extend(["stillcore:in_do_idle".to_owned()]);
        events.extend(["stillcore:in_multi_cpu_stop", "stillcore:out_multi_cpu_stop"].map(str::to_owned));
        let silent = not_called(&document.run, sections);
        assert_eq!(silent.as_deref(), Some("no call was recorded of multi_cpu_stop"));
        assert_eq!(nothing(&document.run, sections), None);
        let said = nothing(&document.run, &[]);
        assert_eq!(
            said.as_deref(),
            Some(
                "no call of a probed function was recorded (multi_cpu_stop); not recorded, since this kernel takes no probe there: do_idle"
            )
        );
    }

    #[test]
    fn a_row_says_how_long_by_whom_and_whether_the_cpu_was_given_up() {
        let run = crate::fixture::document().run;
        let section = OffSection { phase: "none of them".to_owned(), cpu: 3, rows: Vec::new() };
        let cells = |one: &OffRow| row(&run, &section, one);
        assert_eq!(
            cells(&one())[1..].join("|"),
            "3|free_pcppages_bulk|call|1,500|4.000 us|31.00 us|84.00 us|+2.500 ms|bash[812] in free_unref_page|0 of 1,500"
        );
        let left = OffRow { gave_up: 7, by: None, ..one() };
        assert_eq!(cells(&left)[9..].join("|"), "-|7 of 1,500");
        let kernel = cells(&OffRow { blocking: Blocking::InterruptsOff, ..one() });
        assert_eq!((kernel[3].as_str(), kernel[10].as_str()), ("interrupts off", "-"));
    }

    #[test]
    fn of_many_cpus_the_longest_are_printed_and_the_others_counted() {
        let section = |cpu: u32| OffSection {
            phase: "idle".to_owned(),
            cpu,
            rows: vec![OffRow { max_ns: u64::from(cpu), ..one() }],
        };
        let sections: Vec<_> = (0..20).map(section).collect();
        let (rows, more) = longest(&sections);
        assert_eq!((rows.len(), rows[0].0.cpu, more), (ROWS, 19, 4));
    }
}
