//! The sentences around the tables: head, advice, comparisons, guarantee, losses, cost of the
//! observer, files.

use analysis::compare::Verdict;
use std::collections::BTreeSet;

use super::layout::{Page, Paint};
use crate::advice::{Advice, AdviceKind};
use crate::guarantee::GuaranteeVerdict;
use crate::json::paths;
use crate::verdict;
use crate::{Document, Status, breach, conditions, format, heading};

/// Pieces of advice shown before the list is cut.
const ADVICE: usize = 10;
/// Sentences about values that cannot be distinguished; the rest is only counted.
const UNDECIDED: usize = 3;

/// What ran where, and what limits it; then the outcome.
pub(super) fn head(page: &mut Page, document: &Document) {
    title(page, document);
    match document.outcome.status {
        Status::Pass => page.painted(Paint::Green, "pass: ", &document.outcome.reasons.join("; ")),
        Status::Measured => page.item("measured: ", &document.outcome.reasons.join("; ")),
        Status::Finding => page.painted(Paint::Red, "finding: ", &document.outcome.reasons.join("; ")),
    }
}

/// What ran where, and what limits it.
pub(super) fn title(page: &mut Page, document: &Document) {
    let (run, machine) = (&document.run, &document.machine.machine);
    let realtime = if machine.kernel.realtime { ", PREEMPT_RT" } else { "" };
    let host = machine.hypervisor.as_ref();
    let host = host.map_or_else(String::new, |name| format!(", virtual machine ({name})"));
    page.painted(
        Paint::Bold,
        "",
        &format!(
            "stillcore {}   CPU {}   {} {}{realtime}{host}   {}",
            heading::verb(run),
            run.measured_cpus,
            machine.kernel.release,
            machine.kernel.arch,
            format::moment(&run.started_at)
        ),
    );
    for limit in &run.limits {
        page.painted(Paint::Yellow, "  ! ", limit);
    }
    if !run.complete {
        let why = run.incomplete_reason.as_deref().unwrap_or("no reason recorded");
        page.painted(Paint::Red, "  ! ", &format!("PARTIAL RUN: {why}"));
    }
}

/// The worst wake-up and the longest gap: what, its cause, what is against it, where to look
/// closer.
pub(super) fn verdicts(page: &mut Page, document: &Document) {
    if let Some(found) = &document.breach {
        page.heading("BREACH");
        page.painted(Paint::Bold, "  ", &breach::what(found));
        if let Some(explained) = &found.explained {
            page.item("  its cause    ", &breach::cause(explained));
            for (at, line) in explained.against.iter().enumerate() {
                page.item(if at == 0 { "  against it   " } else { "               " }, line);
            }
        }
        for (at, line) in found.changed.iter().enumerate() {
            page.item(if at == 0 { "  changed      " } else { "               " }, line);
        }
    }
    for one in verdict::verdicts(document) {
        page.heading(&one.what.to_uppercase());
        page.painted(Paint::Bold, "  ", &one.value_words());
        page.item("  its cause    ", &one.sure_words());
        for (at, line) in one.against_words().iter().enumerate() {
            page.item(if at == 0 { "  against it   " } else { "               " }, line);
        }
        for line in &one.look {
            page.item("  look closer  ", line);
        }
    }
}

pub(super) fn conditions(page: &mut Page, document: &Document) {
    page.heading("CONDITIONS");
    for condition in conditions::conditions(document) {
        let name = format!("  {:12}", condition.name);
        if condition.weak {
            page.painted(Paint::Yellow, &name, &condition.text);
        } else {
            page.item(&name, &condition.text);
        }
    }
}

pub(super) fn advice(page: &mut Page, document: &Document) {
    let priced = document.advice.iter().any(|advice| advice.cost.is_some());
    page.heading(if priced { "WHAT IS WRONG, in order of cost" } else { "WHAT IS WRONG" });
    let mut mechanisms = BTreeSet::new();
    for (index, advice) in document.advice.iter().take(ADVICE).enumerate() {
        one(page, index + 1, advice, &mut mechanisms);
    }
    let rest = document.advice.len().saturating_sub(ADVICE);
    if rest > 0 {
        page.item("    ", &format!("... {rest} more in the report"));
    }
}

/// A mechanism that removes several classes is spelt out once: `mechanisms` holds those.
fn one<'a>(page: &mut Page, number: usize, advice: &'a Advice, mechanisms: &mut BTreeSet<&'a str>) {
    let first = format!("{number:3}. ");
    if advice.kind == AdviceKind::Loss {
        page.painted(Paint::Yellow, &first, &advice.what);
    } else {
        page.item(&first, &advice.what);
    }
    if let Some(cost) = &advice.cost
        && !cost.ran.is_empty()
    {
        page.item("       ran: ", &cost.ran.join(", "));
    }
    for step in &advice.steps {
        let fix = format!("{} ({})", step.mechanism, step.state.name());
        if !mechanisms.insert(&step.mechanism) {
            page.item("       fix: ", &format!("{fix}: as above"));
            continue;
        }
        let remedy = step.remedy.as_deref().unwrap_or(&step.reason);
        let caveat = step.caveat.as_ref().map_or_else(String::new, |caveat| format!(" ({caveat})"));
        page.item("       fix: ", &format!("{fix}: {remedy}{caveat}"));
        price(page, "            ", step.now.as_deref(), step.cost.as_deref());
    }
    if let Some(why) = &advice.no_step {
        page.item("       ", why);
    }
}

/// What is set now, so that it can be put back, and what the change costs.
fn price(page: &mut Page, first: &str, now: Option<&str>, cost: Option<&str>) {
    let now = now.map(|now| format!("now: {now}"));
    let cost = cost.map(|cost| format!("costs: {}", cost.trim_end_matches('.')));
    let parts: Vec<String> = now.into_iter().chain(cost).collect();
    if !parts.is_empty() {
        page.item(first, &parts.join("; "));
    }
}

pub(super) fn comparisons(page: &mut Page, document: &Document) {
    page.heading("CAN THE DISTURBED PHASE BE DISTINGUISHED FROM IDLE?");
    let all = &document.analysis.comparisons;
    if all.is_empty() {
        return page.item("  ", "no comparison was possible");
    }
    let decided = all.iter().filter(|c| matches!(c.verdict, Verdict::Worse | Verdict::Better));
    for comparison in decided {
        let sign = if comparison.verdict == Verdict::Worse { "  + " } else { "  - " };
        page.item(sign, &format!("CPU {}: {}", comparison.cpu, comparison.sentence));
    }
    let open: Vec<_> =
        all.iter().filter(|c| matches!(c.verdict, Verdict::CannotTell | Verdict::Withheld)).collect();
    for comparison in open.iter().take(UNDECIDED) {
        page.item("  ? ", &format!("CPU {}: {}", comparison.cpu, comparison.sentence));
    }
    if open.len() > UNDECIDED {
        let more = format::plural((open.len() - UNDECIDED) as u64, "more figure");
        page.item("  ? ", &format!("{more} that this run cannot distinguish"));
    }
}

pub(super) fn guarantee(page: &mut Page, document: &Document) {
    let guarantee = &document.guarantee;
    let tasks = guarantee.tasks.iter();
    let tasks: Vec<String> =
        tasks.map(|t| format!("({}, {})", t.cost_ns as f64 / 1e6, t.period_ns as f64 / 1e6)).collect();
    page.heading(&format!("WHAT CAN BE GUARANTEED   for tasks (C, T = D) {} ms", tasks.join(" ")));
    let paint = match guarantee.verdict {
        GuaranteeVerdict::Holds => Paint::Green,
        GuaranteeVerdict::Fails => Paint::Red,
        GuaranteeVerdict::Withheld => Paint::Yellow,
    };
    page.painted(paint, "  ", &guarantee.sentence);
    let times = |times: &[Option<u64>]| {
        let texts: Vec<String> =
            times.iter().map(|t| t.map_or_else(|| "late".to_owned(), format::ms_exact)).collect();
        texts.join(", ")
    };
    page.item("  response times without jitter: ", &times(&guarantee.at_zero.response_times_ns));
    if let Some(answer) = &guarantee.at_observed {
        let jitter = format::ns(answer.jitter_ns as i64);
        page.item(&format!("  with {jitter} of jitter: "), &times(&answer.response_times_ns));
    }
    for condition in &guarantee.conditions {
        page.painted(Paint::Dim, "  - ", condition);
    }
}

/// What a run that was killed has lost.
const NOT_COUNTED: &str = "not known: the run was cut off before it counted its losses";

pub(super) fn losses(page: &mut Page, document: &Document) {
    page.heading("LOSSES");
    let losses = document.run.losses;
    let counted = || {
        format!(
            "missed releases {}, samples lost {}, trace events lost {}, failed operations of disturbances {}",
            format::count(losses.missed_releases),
            format::count(losses.ring_samples),
            format::count(losses.trace_events),
            format::count(losses.failed_operations)
        )
    };
    let text = if document.run.has_ended() { counted() } else { NOT_COUNTED.to_owned() };
    page.item("  ", &text);
    for statement in &document.analysis.losses.statements {
        page.item("  ", statement);
    }
}

pub(super) fn observer(page: &mut Page, document: &Document) {
    let observer = &document.run.observer;
    let ns = |name: &str, value: Option<f64>| value.map(|value| format!("{name} {}", format::ns_f(value)));
    let costs = [
        ns("clock read", observer.clock_read_ns),
        ns("counter read", observer.counter_read_ns),
        ns("trace event", observer.trace_event_ns),
        ns("recorded stack", observer.trace_stack_ns),
        ns("stack of user space", observer.trace_user_stack_ns),
        ns("wake-up sample", observer.wakeup_sample_ns),
        ns("turn of the noise loop", observer.noise_turn_ns),
    ];
    let costs: Vec<String> = costs.into_iter().flatten().collect();
    page.heading("WHAT MEASURING COSTS");
    page.item("  ", if costs.is_empty() { "not measured".to_owned() } else { costs.join(", ") }.as_str());
}

pub(super) fn files(page: &mut Page, document: &Document) {
    let paths = paths(document);
    page.heading("FILES");
    for (key, name) in [
        ("report", "  report    "),
        ("analysis", "  analysis  "),
        ("trace", "  trace     "),
        ("dir", "  all       "),
    ] {
        if let Some(path) = paths.get(key) {
            page.item(name, path);
        }
    }
}

pub(super) fn next(page: &mut Page, document: &Document) {
    page.heading("NEXT");
    page.painted(Paint::Bold, "  ", &document.next.command);
    if let Some(caveat) = &document.next.caveat {
        page.item("  ", caveat);
    }
    price(page, "  ", document.next.now.as_deref(), document.next.cost.as_deref());
    page.item("  ", &document.next.why);
    if let Some(boot) = &document.next.at_boot {
        page.item("  at the next boot: ", boot);
    }
}
