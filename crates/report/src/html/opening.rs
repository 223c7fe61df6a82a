//! The top of the page, at most two screens: the sentence, three numbers, the plot that matters,
//! the worst event as it passed, and the next command.

use minijinja::{Value, context};
use model::sample::ProbeKind;

use super::plot::{Top, list, plot};
use super::windows::{curves, of, style, worst_cpus};
use super::{clocks, graph, ipi, overheads, paths, periodic, taskset, timeline, value, wakeup, watch};
use crate::opening::Value as Number;
use crate::svg::{Tail, exceedance};
use crate::thieves::UNRECORDED;
use crate::{Card, Document, Known, Opening, Status, Thieves, format, thieves};

/// Bars of who took the time.
const TOPS: usize = 6;

pub(super) fn figures(document: &Document) -> Value {
    let opening = crate::opening(document);
    let worst = paths::worst(document, "ow");
    let (word, tone) = outcome(document);
    context! {
        word => word,
        tone => tone,
        sentence => opening.sentence.as_str(),
        cause => cause(&opening),
        cards => opening.cards.iter().map(|one| card(one, |phase| style(document, phase))).collect::<Vec<_>>(),
        plots => plots(document).into_iter().filter(|one| !one.is_undefined()).collect::<Vec<_>>(),
        worst => worst,
        conditions => value(&super::summary::brief(document)),
    }
}

/// The outcome in a word, and the class of its colour.
fn outcome(document: &Document) -> (&'static str, &'static str) {
    match document.outcome.status {
        Status::Pass => ("Pass", "good"),
        Status::Finding => ("Finding", "bad"),
        Status::Measured => ("Measured", "plain"),
    }
}

fn cause(opening: &Opening) -> Value {
    let Some(cause) = &opening.cause else { return Value::from(()) };
    context! {
        words => cause.words.as_str(),
        sure => cause.known.words(),
        is_known => cause.known != Known::Unknown,
        against => cause.against.as_deref(),
    }
}

/// A number; `style` gives the line of each phase.
pub(super) fn card(card: &Card, style: impl Fn(&str) -> usize) -> Value {
    let (number, needs) = match &card.value {
        Number::Known(text) => (Some(text.as_str()), None),
        Number::Needs(text) => (None, Some(text.as_str())),
    };
    let phase = |one: &crate::PhaseValue| {
        context! {
            phase => one.phase.as_str(),
            style => style(&one.phase),
            value => one.value.as_deref(),
        }
    };
    context! {
        what => card.what.as_str(), number => number, needs => needs, note => card.note.as_str(),
        phases => card.phases.iter().map(phase).collect::<Vec<_>>(),
    }
}

/// The plot that matters for what was measured, and what explains it beside it.
fn plots(document: &Document) -> Vec<Value> {
    let analysis = &document.analysis;
    if !analysis.taskset.is_empty() {
        return taskset::opening(document);
    }
    if !analysis.periodic.is_empty() {
        return periodic::opening(document);
    }
    if analysis.graph.is_some() {
        return vec![graph::opening(document)];
    }
    if !analysis.ipi.is_empty() {
        return ipi::opening(document);
    }
    if !analysis.overheads.is_empty() {
        return overheads::opening(document);
    }
    if analysis.clocks.is_some() {
        return vec![clocks::opening(document)];
    }
    if analysis.watch.is_some() {
        return vec![watch::opening(document)];
    }
    vec![latency(document), beside(document)]
}

/// Exceedance on the worst CPU: of wake-ups, else of gaps.
fn latency(document: &Document) -> Value {
    let wakeups = of(document, ProbeKind::Wakeup);
    if let Some(&cpu) = worst_cpus(&wakeups, 1).0.first() {
        let svg = wakeup::exceedance_of(document, &wakeups, cpu, "oe");
        let caption = format!(
            "Share of wake-ups on CPU {cpu} later than x. A curve ends at its observed maximum; bands are 95 % intervals."
        );
        return plot(svg, caption);
    }
    let noise = of(document, ProbeKind::Noise);
    let Some(&cpu) = worst_cpus(&noise, 1).0.first() else { return Value::UNDEFINED };
    let curves = curves(document, &noise, cpu, |d| d.duration_ns as f64 / 1e9);
    let title = format!("Gaps in the busy loop on CPU {cpu}");
    let svg = exceedance("og", &title, "length of a gap", Tail::PerSecond, &curves, None);
    plot(svg, format!("Gaps per second on CPU {cpu} that are longer than x."))
}

/// Who took the time of the busy loop, else what took the time of wake-ups, else maxima over time.
fn beside(document: &Document) -> Value {
    let stolen = stolen(document);
    if !stolen.is_undefined() {
        return stolen;
    }
    let steps = paths::tops(document, TOPS);
    if !steps.is_empty() {
        let caption = "Share of the latency of all wake-ups that the trace shows.".to_owned();
        return list("What the wake-ups waited for", caption, &steps);
    }
    let drawn =
        |d: &&analysis::distribution::Distribution| matches!(d.probe, ProbeKind::Wakeup | ProbeKind::Noise);
    let all: Vec<_> = document.analysis.distributions.iter().filter(drawn).collect();
    let Some(&cpu) = worst_cpus(&all, 1).0.first() else { return Value::UNDEFINED };
    plot(timeline::maxima(document, cpu, "om"), format!("Maxima over time on CPU {cpu}."))
}

/// Of the window that lost most: time per second, by cause.
fn stolen(document: &Document) -> Value {
    let rows = thieves(document);
    let lost = |phase: &str, cpu: u32| -> u64 {
        rows.iter().filter(|one| one.phase == phase && one.cpu == cpu).map(|one| one.range_ns[1]).sum()
    };
    let Some(worst) = rows.iter().max_by_key(|one| lost(&one.phase, one.cpu)) else {
        return Value::UNDEFINED;
    };
    let (phase, cpu) = (worst.phase.as_str(), worst.cpu);
    let window = of(document, ProbeKind::Noise).into_iter().find(|d| d.phase == phase && d.cpu == cpu);
    let Some(seconds) = window.map(|d| d.duration_ns as f64 / 1e9).filter(|s| *s > 0.0) else {
        return Value::UNDEFINED;
    };
    let row = |one: &Thieves| Top {
        name: one.cause.clone(),
        value: format!("{}/s", format::ns_f(one.range_ns[1] as f64 / seconds)),
        note: format!("{} times, {}", format::count(one.times), one.sure),
        length: one.range_ns[1] as f64,
        fill: if one.sure == UNRECORDED { "unknown" } else { "known" }.to_owned(),
    };
    let ours = rows.iter().filter(|one| one.phase == phase && one.cpu == cpu && one.range_ns[1] > 0);
    let ours: Vec<Top> = ours.take(TOPS).map(row).collect();
    let caption = format!(
        "Time taken from the busy loop on CPU {cpu}, phase {phase}; the upper end where a cause is a range."
    );
    list("Who took the time, per second", caption, &ours)
}
