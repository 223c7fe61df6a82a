//! Clocks against CLOCK_MONOTONIC: a row and a chart each, and what follows for SCHED_DEADLINE.

use analysis::clocks::Rate;
use minijinja::{Value, context};
use model::run::ProbeRecord;

use super::filters::minus;
use super::plot::plot;
use super::{chart, value};
use crate::svg::{Course, Upright, course};
use crate::{Document, clocks};

pub(super) fn figures(document: &Document) -> Value {
    let facts = document.run.probes.iter().find_map(ProbeRecord::clocks);
    let (Some(clock_analysis), Some(facts)) = (&document.analysis.clocks, facts) else {
        return Value::from(());
    };
    let rows = clock_analysis.rates.iter().map(|rate| {
        let numbers = rate.drift.as_ref().map(clocks::rate);
        let shown = |at: usize| numbers.as_ref().map(|numbers| minus(&numbers[at]));
        context! {
            clock => rate.clock.as_str(), drift => value(&rate.drift),
            ppb => shown(0), ppb_error => shown(1), us_per_hour => shown(2),
            cost_ns => clocks::cost(facts, &rate.clock),
        }
    });
    context! {
        span_ns => clock_analysis.span_ns, step_ns => facts.step_ns,
        rows => rows.collect::<Vec<_>>(),
        charts => clock_analysis.rates.iter().enumerate().map(draw).collect::<Vec<_>>(),
        remarks => clocks::remarks(clock_analysis, facts),
        limits => clock_analysis.limits.clone(),
        offsets => value(&facts.core_offsets.iter().take(64).collect::<Vec<_>>()),
    }
}

/// The clock that gained or lost most.
pub(super) fn opening(document: &Document) -> Value {
    let rates = document.analysis.clocks.iter().flat_map(|clocks| &clocks.rates);
    let drift = |rate: &&Rate| rate.drift.as_ref().map_or(0.0, |drift| drift.ppb.abs());
    let Some(rate) = rates.max_by(|a, b| drift(a).total_cmp(&drift(b))) else { return Value::UNDEFINED };
    let one = [Course { label: &rate.clock, style: 0, slots: &rate.gained_ns[..] }];
    let title = format!("{} against CLOCK_MONOTONIC", rate.clock);
    let svg = course("ok", &title, "gained since the first", Upright::Linear, &one);
    plot(svg, format!("{}: gained on CLOCK_MONOTONIC since the first reading.", rate.clock))
}

fn draw((index, rate): (usize, &Rate)) -> Value {
    let slots = &rate.gained_ns[..];
    let one = [Course { label: &rate.clock, style: 0, slots }];
    let title = format!("{} against CLOCK_MONOTONIC", rate.clock);
    let svg = course(&format!("ck{index}"), &title, "gained since the first", Upright::Linear, &one);
    context! { clock => rate.clock.as_str(), svg => chart(svg) }
}
