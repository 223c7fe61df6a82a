//! What `trace explain` prints of sources and wake-ups.

use crate::trace_verb::options::TraceExplainArgs;
use crate::trace_verb::same_name::{BoxGroup, SourceGroup, boxes as boxes_of, sources};
use attribution::attribute::Confidence;
use attribution::attribute::bound::shape::WakeBound;
use attribution::attribute::delay::Blocking;
use attribution::attribute::path_section::{PathBox, PathSection, SamplePath};
use attribution::attribute::section::{AttributedRow, SourceText};
use attribution::attribute::step::Step;
use model::EventClass;
use model::sample::ProbeKind;
use report::advice::Proposal;
use report::format;
use std::fmt::Write;

/// Number of `against` lines printed per proposal.
pub(crate) const AGAINST: usize = 3;

/// The samples of a window that the user asked for.
pub(crate) fn worst(path: &PathSection, args: &TraceExplainArgs) -> Vec<SamplePath> {
    let over_ns = args.over.map_or(0, |over| i64::try_from(over.as_nanos()).unwrap_or(i64::MAX));
    let wanted = path.worst.iter().filter(|sample| args.sample.is_none_or(|at| sample.t_ns == at));
    wanted.filter(|sample| sample.value_ns >= over_ns).take(args.of_each()).cloned().collect()
}

/// What ran, and its source, one line each.
pub(crate) fn rows(rows: &[AttributedRow], stacks: bool) -> String {
    let mut text = String::new();
    let groups = sources(rows);
    for group in groups.iter().take(ROWS) {
        text.push_str(&source_line(group));
        text.push_str(&stack(group.source.as_ref(), stacks));
    }
    if groups.len() > ROWS {
        let _ = writeln!(text, "  and {} more (--json lists all)", groups.len() - ROWS);
    }
    text.push('\n');
    text
}

/// Which of several threads.
pub(crate) fn thread(number: u32) -> String {
    if number == 0 { String::new() } else { format!(", thread {number}") }
}

fn source_line(group: &SourceGroup) -> String {
    let what = format!("{:<14} {:<22}", group.class.name(), group.label);
    let pieces = format::plural(group.pieces, "piece");
    if group.count == 0 {
        let ns = format::ns(group.pieces_ns as i64);
        let begun =
            if group.begun_in_several { "begun in rows of this name" } else { "no row has its beginning" };
        return format!("  {:>6}   {what} {ns:>9} in {pieces} after interruptions; {begun}\n", "");
    }
    let by = match (group.class, &group.source, group.confidence) {
        (EventClass::Switch, Some(source), Some(confidence)) => {
            format!("woken by {} ({})", who(source), word(confidence))
        }
        (EventClass::Switch, ..) => "woken by: unknown".to_owned(),
        (_, Some(source), Some(confidence)) => format!("{} ({})", who(source), word(confidence)),
        (EventClass::TimerTick, ..) => "the CPU's own tick".to_owned(),
        _ => "source unknown".to_owned(),
    };
    let most = format::ns(group.max_ns as i64);
    let range = match (group.count, group.p50_ns) {
        (1, _) => String::new(),
        (_, Some(p50_ns)) => format!(", half up to {}, at most {most}", format::ns(p50_ns as i64)),
        (_, None) => format!(", at most {most}"),
    };
    // Its time has those, its number of events does not.
    let resumed = match group.resumed {
        0 => String::new(),
        resumed => format!(" with {} after interruptions", format::plural(resumed, "piece")),
    };
    let beside = match group.pieces {
        0 => String::new(),
        _ => format!(", and {} more in {pieces} after interruptions", format::ns(group.pieces_ns as i64)),
    };
    let ns = format::ns(group.net_ns as i64);
    format!("  {:>6} x {what} {ns:>9}{resumed}{beside}{range}; {by}\n", group.count)
}

/// The functions of a source, a line of their own, where that is wanted.
pub(crate) fn stack(source: Option<&SourceText>, wanted: bool) -> String {
    let Some(source) = source.filter(|_| wanted) else { return String::new() };
    let line = |what: &str, functions: &[String]| match functions {
        [] => String::new(),
        _ => format!("           {what}{}\n", functions.join(" < ")),
    };
    line("", &source.frames) + &line("called in user space by ", &source.users)
}

pub(crate) fn who(source: &SourceText) -> String {
    let site = source.place().map(|site| format!(" by {site}")).unwrap_or_default();
    format!("{} on CPU {}{site}", source.name(), source.cpu)
}

pub(crate) fn word(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Exact => "exact",
        Confidence::Order => "by order",
    }
}

/// The boxes of a window.
pub(crate) fn boxes(path: &PathSection, stacks: bool) -> String {
    let what = match path.probe {
        ProbeKind::Noise => format!("where the time of {} went", format::plural(path.samples, "gap")),
        ProbeKind::Graph => {
            format!("where the latencies of {} went", format::plural(path.samples, "release"))
        }
        _ => format!("where the latencies of {} went", format::plural(path.samples, "wake-up")),
    };
    let place = format!("CPU {}{}, phase {}", path.cpu, thread(path.thread), path.phase);
    let bound = path.bound.as_ref().map(bound).unwrap_or_default();
    let all = format::ns(path.total_ns as i64);
    format!("{place}: {what} ({all} in all)\n{}{bound}\n", shares(path, stacks))
}

/// How late a wake-up could have come, with what that is put together from.
pub(crate) fn bound(bound: &WakeBound) -> String {
    let mut text = format!("  A wake-up {}\n", report::bound::sentence(bound));
    for (ns, what) in report::bound::pieces(bound) {
        let _ = writeln!(text, "  {:>9}  {what}", format::ns(ns as i64));
    }
    if let Some(limits) = report::bound::limits(bound) {
        let _ = writeln!(text, "  {limits}");
    }
    text
}

/// The boxes, with their shares; together they are all of the time.
pub(crate) fn shares(path: &PathSection, stacks: bool) -> String {
    let mut text = String::new();
    let share = |ns: u64| ns as f64 * 100.0 / path.total_ns.max(1) as f64;
    let others = path.others.iter().map(|sum| (sum.boxes, sum.ns));
    let mut small = others.fold((0, 0), |(boxes, ns), (more, and)| (boxes + more, ns + and));
    for (at, BoxGroup { part, boxes }) in boxes_of(&path.boxes).into_iter().enumerate() {
        if at >= ROWS {
            small = (small.0 + boxes, small.1 + part.ns);
            continue;
        }
        if part.ns == 0 {
            continue;
        }
        // Several tasks may have been in the way of one sample.
        let count = match boxes {
            1 => part.count.to_string(),
            _ => format!("<={}", part.count.min(path.samples)),
        };
        let each = if boxes > 1 { " of one" } else { "" };
        let _ = writeln!(
            text,
            "  {:>5.1} %  {:<60} in {count:>6}, at most {}{each}",
            share(part.ns),
            describe(&part, path.cpu, path.probe),
            format::ns(part.max_ns as i64)
        );
        text.push_str(&stack(part.source.as_ref(), stacks));
    }
    if small.1 > 0 {
        let _ = writeln!(text, "  {:>5.1} %  in {} smaller ones", share(small.1), small.0);
    }
    text
}

/// What could be changed, each with what it is against.
pub(crate) fn proposed(proposals: &[Proposal]) -> String {
    if proposals.is_empty() {
        return String::new();
    }
    let mut text = "What could be changed against it, by the catalogue and this run's audit:\n".to_owned();
    for one in proposals {
        let now = one.now.as_deref().filter(|now| !now.is_empty() && now.len() <= LONGEST_VALUE);
        let now =
            now.map_or_else(|| "is not set as isolation wants".to_owned(), |now| format!("is {now} here"));
        let kind = match (one.risky, one.choice) {
            (true, _) => ", a risk",
            (false, true) => ", a choice",
            (false, false) => "",
        };
        let _ = writeln!(text, "  {} {now}{kind}", one.mechanism);
        for seen in one.against.iter().take(AGAINST) {
            let _ = writeln!(text, "      against: {}", seen.what);
        }
        let typed = one.remedy.iter().map(|remedy| format!("do: {remedy}"));
        let applied = one.apply.iter().map(|apply| format!("or: {apply}"));
        let costs = one.cost.iter().map(|cost| format!("costs: {cost}"));
        for line in typed.chain(applied).chain(costs) {
            let _ = writeln!(text, "      {line}");
        }
    }
    text.push('\n');
    text
}

/// The first line of a wake-up whose intended time is known; `place`: whose, where, how long after
/// the start.
pub(crate) fn due(sample: &SamplePath, place: &str) -> String {
    let (at, late) = (format::instant(sample.t_ns), format::ns(sample.value_ns));
    format!("The wake-up due at {at} s was {late} late ({place}):\n")
}

/// How long after the start of the trace or measurement something was.
pub(crate) fn after_start(of: &str, t_ns: i64, t0_ns: i64) -> String {
    format!("{} after the start of the {of}", format::ns(t_ns.saturating_sub(t0_ns)))
}

/// The latest first.
pub(crate) fn latest_first(mut stories: Vec<(i64, String)>, most: usize) -> String {
    stories.sort_by_key(|(value_ns, _)| std::cmp::Reverse(*value_ns));
    stories.into_iter().take(most).map(|(_, story)| story).collect()
}

/// One sample as sentences, below its first line.
pub(crate) fn story(head: String, sample: &SamplePath, path: &PathSection, stacks: bool) -> String {
    let mut text = head;
    for part in &sample.parts {
        let _ =
            writeln!(text, "  {:>9}  {}", format::ns(part.ns as i64), describe(part, path.cpu, path.probe));
        let held = part.blocking == Some(Blocking::KernelCode);
        text.push_str(&stack(part.source.as_ref(), stacks || held));
    }
    text.push('\n');
    text
}

/// What a box means; the steps of a wake-up are named. A gap has none, unless the loop has slept in
/// it.
pub(crate) fn describe(part: &PathBox, cpu: u32, probe: ProbeKind) -> String {
    let gap = probe == ProbeKind::Noise;
    let Some(what) = part.what() else {
        return match (gap, part.step) {
            (true, Step::NeverSlept) => "nothing recorded took it".to_owned(),
            (true, _) => format!("the loop's own wake-up: {}", step_words(part, cpu)),
            (false, _) => step_words(part, cpu),
        };
    };
    let by = part.source.as_ref().map(|source| format!(", by {}", who(source))).unwrap_or_default();
    let sure = match (part.blocking, part.confidence) {
        (Some(blocking), _) if blocking.is_inferred() => " (inferred)".to_owned(),
        // What kept the CPU may have done so for a part of the time only.
        (Some(_), Some(Confidence::Order)) => format!(" ({})", word(Confidence::Order)),
        _ => String::new(),
    };
    let step = if gap { String::new() } else { format!("; {}", step_words(part, cpu)) };
    format!("{what}{by}{sure}{step}")
}

pub(crate) fn step_words(part: &PathBox, cpu: u32) -> String {
    let place = if part.cpu == cpu { String::new() } else { format!(" on CPU {}", part.cpu) };
    match part.step {
        Step::TimerLate => {
            let elsewhere = part.confidence.filter(|_| part.label.is_none() && part.cpu != cpu);
            let known = elsewhere.map(|known| format!(" ({})", word(known))).unwrap_or_default();
            format!("until the timer expired{place}{known}")
        }
        Step::TimerHandler => format!("in the timer's handler{place}"),
        Step::WakeUp => format!("until the task was queued{place}"),
        Step::IpiInFlight => "until the IPI arrived".to_owned(),
        Step::Switch => "until the scheduler switched to it".to_owned(),
        Step::Return => "until it had read the clock".to_owned(),
        Step::SwitchUnseen => "until it had read the clock (the switch to it is not in the trace)".to_owned(),
        Step::NeverSlept => "late already, did not sleep".to_owned(),
    }
}

/// Rows of sources and boxes that are printed of each window.
pub(super) const ROWS: usize = 12;

/// The longest present value that is printed.
pub(super) const LONGEST_VALUE: usize = 40;
