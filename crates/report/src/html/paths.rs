//! Where the latency went: the steps of the wake-ups of each window, and the latest of them as it
//! passed.

use attribution::attribute::delay::Blocking;
use attribution::attribute::path_section::{PathBox, PathSection, SamplePath, SamplePiece};
use attribution::attribute::section::SourceText;
use attribution::attribute::step::Step;
use minijinja::{Value, context};
use model::sample::ProbeKind;

use super::plot::Top;
use super::windows::{seconds, style};
use super::{bounds, chart};
use crate::svg::{Mark, Piece, Segment, StepRow, steps, wake};
use crate::words::{step_name, who};
use crate::{Document, format};

/// Boxes in the table; the rest is counted.
const ROWS: usize = 30;
/// Windows that have a bar; those with the most time.
const BARS: usize = 24;
/// Parts of the worst wake-up in the opening.
const SHOWN: usize = 8;
/// Samples that have a bar by source, and hues of sources.
const LATEST: usize = 12;
const HUES: usize = 7;
/// Style and name of what else ran.
const RAN: (usize, &str) = (STEPS.len(), "what else ran there");

/// In their order: step, what it is called, and what its mark says.
const STEPS: [(Step, &str, &str); 8] = [
    named(Step::TimerLate, "timer expired"),
    named(Step::TimerHandler, "wake-up asked for"),
    named(Step::WakeUp, "task queued"),
    named(Step::IpiInFlight, "IPI arrived"),
    named(Step::Switch, "switched to the task"),
    named(Step::Return, "task read the clock"),
    named(Step::NeverSlept, "task read the clock"),
    named(Step::SwitchUnseen, "task read the clock"),
];

const fn named(step: Step, mark: &'static str) -> (Step, &'static str, &'static str) {
    (step, step_name(step), mark)
}

fn place(step: Step) -> usize {
    STEPS.iter().position(|(known, _, _)| *known == step).unwrap_or(0)
}

pub(super) fn figures(document: &Document) -> Value {
    let mut windows: Vec<&PathSection> = wakeups(document).collect();
    windows.sort_by_key(|window| std::cmp::Reverse(window.total_ns));
    let undrawn = windows.len().saturating_sub(BARS);
    let mut drawn: Vec<&PathSection> = windows.into_iter().take(BARS).collect();
    drawn.sort_by_key(|window| (style(document, &window.phase), window.cpu));
    let bars: Vec<StepRow> = drawn.iter().map(|window| bar(window)).collect();
    let (rows, left_out) = table(document);
    let keys = STEPS.iter().enumerate().map(|(style, (_, name, _))| (style, *name)).chain([RAN]);
    let used =
        |style: usize| bars.iter().flat_map(|bar| &bar.segments).any(|s| s.style == style && s.ns > 0.0);
    context! {
        bars => chart(steps("ps", "Mean latency by step", "mean latency of a wake-up", &bars)),
        keys => keys.filter(|(style, _)| used(*style))
            .map(|(style, name)| context! { style => style, name => name }).collect::<Vec<_>>(),
        undrawn => undrawn,
        rows => rows,
        left_out => left_out,
        by_source => by_source(document),
        samples => wakeups(document).map(|window| window.samples).fold(0, u64::saturating_add),
        worst => worst(document, "pw"),
        bounds => bounds::of_windows(document, wakeups(document)),
    }
}

fn bar(window: &PathSection) -> StepRow {
    let mean = |ns: u64| ns as f64 / window.samples.max(1) as f64;
    let listed = window.boxes.iter().map(|one| (one.step, one.is_step(), one.ns));
    let others = window.others.iter().map(|sum| (sum.step, sum.itself, sum.ns));
    let own = |step: Step| -> u64 {
        let its = |&(of, itself, _): &(Step, bool, u64)| of == step && itself;
        let ns = listed.clone().chain(others.clone()).filter(its).map(|(.., ns)| ns);
        ns.fold(0, u64::saturating_add)
    };
    let mut segments: Vec<Segment> = STEPS
        .iter()
        .enumerate()
        .map(|(style, (step, name, _))| Segment { label: (*name).to_owned(), style, ns: mean(own(*step)) })
        .collect();
    let known: u64 = STEPS.iter().map(|(step, _, _)| own(*step)).sum();
    let rest = window.total_ns.saturating_sub(known);
    segments.push(Segment { label: RAN.1.to_owned(), style: RAN.0, ns: mean(rest) });
    StepRow { label: format!("{}, CPU {}", window.phase, window.cpu), segments }
}

/// Windows of wake-ups; gaps of a busy loop have no way.
fn wakeups(document: &Document) -> impl Iterator<Item = &PathSection> {
    document.analysis.paths.iter().filter(|one| one.probe != ProbeKind::Noise)
}

fn table(document: &Document) -> (Vec<Value>, u64) {
    let mut all: Vec<(&PathSection, &PathBox)> =
        wakeups(document).flat_map(|window| window.boxes.iter().map(move |one| (window, one))).collect();
    all.retain(|(_, one)| one.ns > 0);
    all.sort_by_key(|(_, one)| std::cmp::Reverse(one.ns));
    let small = wakeups(document).flat_map(|window| &window.others).map(|sum| sum.boxes).sum::<u64>();
    let left_out = all.len().saturating_sub(ROWS) as u64 + small;
    all.truncate(ROWS);
    let row = |(window, one): (&PathSection, &PathBox)| {
        context! {
            what => describe(one, window.cpu),
            phase => window.phase.as_str(), style => style(document, &window.phase), cpu => window.cpu,
            key => if one.is_step() { place(one.step) } else { RAN.0 },
            count => one.count, ns => one.ns, max_ns => one.max_ns,
            share => one.ns as f64 / window.total_ns.max(1) as f64,
        }
    };
    (all.into_iter().map(row).collect(), left_out)
}

/// What a box means.
fn describe(part: &PathBox, cpu: u32) -> Value {
    let (_, name, _) = STEPS[place(part.step)];
    let elsewhere = (part.cpu != cpu).then_some(part.cpu);
    context! {
        step => name,
        elsewhere => elsewhere,
        class => part.class.map(model::EventClass::name).or(part.blocking.map(Blocking::words)),
        label => part.ran(),
        source => part.source.as_ref().map(who),
        site => part.source.as_ref().and_then(SourceText::place),
        frames => part.source.as_ref().map(SourceText::functions).unwrap_or_default(),
    }
}

/// What the latency of all wake-ups was spent on, most first; at most `most`.
pub(super) fn tops(document: &Document, most: usize) -> Vec<Top> {
    let total: u64 = wakeups(document).map(|window| window.total_ns).fold(0, u64::saturating_add);
    let mut sums: Vec<(String, &PathBox, u64, u64)> = Vec::new();
    for part in wakeups(document).flat_map(|window| &window.boxes).filter(|part| part.ns > 0) {
        let name = taker(part);
        match sums.iter_mut().find(|(known, ..)| *known == name) {
            Some((_, _, ns, count)) => (*ns, *count) = (*ns + part.ns, *count + part.count),
            None => sums.push((name, part, part.ns, part.count)),
        }
    }
    sums.sort_by_key(|(_, _, ns, _)| std::cmp::Reverse(*ns));
    sums.truncate(most);
    let top = |(name, part, ns, count): (String, &PathBox, u64, u64)| Top {
        name,
        value: format::share(ns as f64 / total.max(1) as f64),
        note: format!("in {}", format::plural(count, "wake-up")),
        length: ns as f64,
        fill: format!("p{}", if part.is_step() { place(part.step) } else { RAN.0 }),
    };
    sums.into_iter().map(top).collect()
}

/// The largest samples, each cut by what took its time: a bar a sample, a hue a source.
fn by_source(document: &Document) -> Value {
    let mut all: Vec<(&PathSection, &SamplePath)> =
        wakeups(document).flat_map(|window| window.worst.iter().map(move |one| (window, one))).collect();
    all.sort_by_key(|(_, sample)| std::cmp::Reverse(sample.value_ns));
    all.truncate(LATEST);
    // The sources with most time over these samples have a hue; all others share the last.
    let mut sums: Vec<(String, u64)> = Vec::new();
    for part in all.iter().flat_map(|(_, sample)| &sample.parts) {
        let name = taker(part);
        match sums.iter_mut().find(|(known, _)| *known == name) {
            Some((_, ns)) => *ns += part.ns,
            None => sums.push((name, part.ns)),
        }
    }
    sums.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    sums.truncate(HUES);
    let hue = |part: &PathBox| {
        let name = taker(part);
        sums.iter().position(|(known, _)| *known == name).unwrap_or(HUES)
    };
    let row = |(window, sample): &(&PathSection, &SamplePath)| {
        let ns = |style: usize| {
            sample.parts.iter().filter(|part| hue(part) == style).map(|part| part.ns).sum::<u64>() as f64
        };
        let label = |style: usize| sums.get(style).map_or("others", |(name, _)| name.as_str()).to_owned();
        let segments = (0..=HUES).map(|style| Segment { label: label(style), style, ns: ns(style) });
        let at = seconds(document, sample.t_ns).unwrap_or_default();
        StepRow { label: format!("CPU {}, {at:.3} s", window.cpu), segments: segments.collect() }
    };
    let rows: Vec<StepRow> = all.iter().map(row).collect();
    let mut keys: Vec<Value> = Vec::new();
    for (style, (name, ns)) in sums.iter().enumerate() {
        keys.push(context! { style => style, name => name.as_str(), ns => ns });
    }
    let others = rows.iter().map(|row| row.segments.last().map_or(0.0, |last| last.ns)).sum::<f64>();
    if others > 0.0 {
        keys.push(context! { style => HUES, name => "others", ns => others as u64 });
    }
    context! {
        svg => chart(steps("pb", "The largest samples by source", "latency", &rows)),
        keys => keys,
        n => rows.len(),
    }
}

/// What took the time of a part: what ran, with its class and who asked for it; else the step
/// itself.
fn taker(part: &PathBox) -> String {
    let by = part.source.as_ref().map(|source| format!(", by {}", source.who)).unwrap_or_default();
    part.what().map_or_else(|| step_name(part.step).to_owned(), |what| format!("{what}{by}"))
}

/// The latest of all wake-ups that were taken apart; `key` is the id of its chart.
pub(super) fn worst(document: &Document, key: &str) -> Value {
    let all = wakeups(document).flat_map(|window| window.worst.iter().map(move |one| (window, one)));
    let Some((window, sample)) = all.max_by_key(|(_, sample)| sample.value_ns) else {
        return Value::from(());
    };
    let pieces: Vec<Piece> = sample.pieces.iter().filter_map(|piece| drawn(sample, piece)).collect();
    let marks = marks(sample);
    let title = format!("The latest wake-up, CPU {}", window.cpu);
    context! {
        svg => chart(wake(key, &title, window.cpu, sample.value_ns.unsigned_abs(), &pieces, &marks)),
        phase => window.phase.as_str(),
        style => style(document, &window.phase),
        cpu => window.cpu,
        at_s => seconds(document, sample.t_ns),
        t_ns => sample.t_ns,
        value_ns => sample.value_ns,
        marks => marks.iter().map(|mark| context! {
            at_ns => mark.at_ns, cpu => mark.cpu, label => mark.label.as_str(),
        }).collect::<Vec<_>>(),
        shown => shown(sample, window.cpu),
        more => sample.parts.len().saturating_sub(SHOWN),
        parts => sample.parts.iter().map(|part| context! {
            what => describe(part, window.cpu), ns => part.ns,
            key => if part.is_step() { place(part.step) } else { RAN.0 },
            share => part.ns as f64 / sample.value_ns.max(1) as f64,
        }).collect::<Vec<_>>(),
    }
}

/// The longest parts of a sample in words, in the order in which they passed.
fn shown(sample: &SamplePath, cpu: u32) -> Vec<Value> {
    let mut longest: Vec<usize> = (0..sample.parts.len()).collect();
    longest.sort_by_key(|at| std::cmp::Reverse(sample.parts[*at].ns));
    longest.truncate(SHOWN);
    longest.sort_unstable();
    let part = |at: usize| {
        let part = &sample.parts[at];
        let (step, elsewhere) = (step_name(part.step), part.cpu != cpu);
        let on = if elsewhere { format!(" on CPU {}", part.cpu) } else { String::new() };
        let words =
            if part.is_step() { format!("{step}{on}") } else { format!("{}{on}, {step}", taker(part)) };
        context! {
            words => words,
            ns => part.ns,
            key => if part.is_step() { place(part.step) } else { RAN.0 },
            share => part.ns as f64 / sample.value_ns.max(1) as f64,
        }
    };
    longest.into_iter().map(part).collect()
}

fn drawn(sample: &SamplePath, piece: &SamplePiece) -> Option<Piece> {
    let part = sample.parts.get(usize::try_from(piece.part).ok()?)?;
    let taker = part.class.map(model::EventClass::name).or(part.blocking.map(Blocking::words));
    let ran = taker.map(|taker| part.ran().unwrap_or_else(|| taker.to_owned()));
    let style = if ran.is_some() { RAN.0 } else { place(part.step) };
    Some(Piece { from_ns: piece.from_ns, ns: piece.ns, cpu: part.cpu, style, ran })
}

/// The end of each step is its mark. Parts of a step follow one another.
fn marks(sample: &SamplePath) -> Vec<Mark> {
    let mut marks: Vec<(Step, Mark)> = Vec::new();
    let mut at_ns = 0;
    for part in &sample.parts {
        at_ns += part.ns;
        let (_, _, label) = STEPS[place(part.step)];
        match marks.last_mut() {
            Some((step, mark)) if *step == part.step => mark.at_ns = at_ns,
            _ => marks.push((part.step, Mark { at_ns, cpu: part.cpu, label: label.to_owned() })),
        }
    }
    marks.into_iter().map(|(_, mark)| mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn bars_add_up_to_the_mean_latency_whatever_is_given() {
        let document = fixture::document();
        assert!(!document.analysis.paths.is_empty());
        for window in &document.analysis.paths {
            let mean = window.total_ns as f64 / window.samples as f64;
            let length: f64 = bar(window).segments.iter().map(|segment| segment.ns).sum();
            assert!((length - mean).abs() < 1e-6, "{length} {mean}");
        }
    }

    #[test]
    fn each_step_ends_in_a_mark_and_the_last_is_the_whole_latency() {
        let document = fixture::document();
        let sample = &document.analysis.paths[0].worst[0];
        let marks = marks(sample);
        let labels: Vec<_> = marks.iter().map(|mark| (mark.label.as_str(), mark.cpu)).collect();
        let expected = [
            ("timer expired", 0),
            ("wake-up asked for", 0),
            ("IPI arrived", 2),
            ("switched to the task", 2),
            ("task read the clock", 2),
        ];
        assert_eq!(labels, expected);
        assert!(marks.is_sorted_by_key(|mark| mark.at_ns));
        assert_eq!(marks.last().map(|mark| mark.at_ns), Some(sample.value_ns as u64));
    }
}
