//! A task set: measured response times beside the calculated ones, in both metrics.

use analysis::schedule::{Schedule, Span, State};
use analysis::taskset::{MeasuredTask, Spread as Figures};
use minijinja::{Value, context};

use super::plot::rooms;
use super::{chart, value};
use crate::Document;
use crate::svg::{LaneSpan, Room, Spread, lanes, spread};

pub(super) fn figures(document: &Document) -> Value {
    let tasks = &document.analysis.taskset;
    let bound = |at: usize| document.responses.get(at).copied().flatten();
    let bars: Vec<Spread> = tasks.iter().enumerate().filter_map(|(at, one)| bar(one, bound(at))).collect();
    let rows = tasks.iter().enumerate().map(|(at, one)| row(one, bound(at)));
    let first = tasks.first();
    context! {
        cpu => first.map(|one| one.cpu),
        slot_ns => first.and_then(|one| one.task.slot_ns),
        chart => chart(spread("ts", "Response times beside the calculated ones", "response time from the release", &bars, Room::Desk)),
        schedule => chart(lanes("tg", "What the jobs did when", &spans(document), Room::Desk)),
        scheduled => document.analysis.schedule.as_ref().map(scheduled),
        rows => rows.collect::<Vec<_>>(),
        utilization => tasks.iter().map(|one| one.task.cost_ns as f64 / one.period_ns.max(1) as f64).sum::<f64>(),
        under_executed => tasks.iter().map(|one| one.figures.under_executed).fold(0, u64::saturating_add),
    }
}

/// What the jobs did when, with a trace; the response times beside their deadlines.
pub(super) fn opening(document: &Document) -> Vec<Value> {
    let tasks = &document.analysis.taskset;
    let bound = |at: usize| document.responses.get(at).copied().flatten();
    let bars: Vec<Spread> = tasks.iter().enumerate().filter_map(|(at, one)| bar(one, bound(at))).collect();
    let responses = |room| {
        let id = if room == Room::Desk { "os" } else { "osh" };
        spread(id, "Response times and deadlines", "response time from the release", &bars, room)
    };
    let spans = spans(document);
    let schedule = |room| {
        let id = if room == Room::Desk { "ol" } else { "olh" };
        lanes(id, "What the jobs did when", &spans, room)
    };
    vec![
        rooms(schedule, "What each task did when, from the first releases on.".to_owned()),
        rooms(
            responses,
            "Response times: from the least to the observed maximum, a dot at the median; triangle: \
             calculated; upright line: deadline."
                .to_owned(),
        ),
    ]
}

/// Lanes in the order of priorities.
fn spans(document: &Document) -> Vec<LaneSpan> {
    let spans = document.analysis.schedule.iter().flat_map(|schedule| &schedule.spans);
    let lane_span = |span: &Span| LaneSpan {
        lane: format!("task {}", span.task),
        label: state(span.state).to_owned(),
        from_ns: span.from_ns as f64,
        ns: span.ns as f64,
    };
    spans.map(lane_span).collect()
}

fn state(state: State) -> &'static str {
    match state {
        State::Waiting => "waiting",
        State::Running => "running",
        State::Preempted => "preempted",
    }
}

/// What the chart leaves out.
fn scheduled(schedule: &Schedule) -> Value {
    let length_ns = schedule.to_ns.saturating_sub(schedule.from_ns);
    let whole = schedule.hyperperiod_ns.is_some_and(|ns| ns as i64 == length_ns);
    context! { whole => whole, length_ns => length_ns, left_out => schedule.left_out }
}

fn bar(one: &MeasuredTask, calculated: Option<u64>) -> Option<Spread> {
    let response = &one.figures.response;
    Some(Spread {
        label: one.task.name.clone(),
        min_ns: response.min_ns?,
        median_ns: response.median_ns?,
        p99_ns: None,
        max_ns: response.observed_max_ns?,
        calculated_ns: calculated.map(|ns| ns as i64),
        deadline_ns: Some(one.task.deadline_ns as i64),
    })
}

fn row(one: &MeasuredTask, calculated: Option<u64>) -> Value {
    let figures = &one.figures;
    let above = calculated.zip(figures.response.observed_max_ns);
    context! {
        name => one.task.name.as_str(), priority => one.priority, period_ns => one.period_ns,
        cost_ns => one.task.cost_ns, deadline_ns => one.task.deadline_ns, calculated_ns => calculated,
        above_ns => above.map(|(calculated, most)| most - calculated as i64),
        f => value(figures), released => one.released, served => one.served, lost => one.ring_lost,
        period => spread_of(&figures.period), from_start => spread_of(&figures.response_from_start),
        jitter => spread_of(&figures.jitter),
    }
}

/// A mean needs a value, a deviation two.
fn spread_of(spread: &Figures) -> Value {
    context! {
        mean => (spread.n > 0).then_some(spread.mean_ns), sd => (spread.n > 1).then_some(spread.sd_ns),
        min => spread.min_ns, max => spread.observed_max_ns,
    }
}
