//! The opening of clocks against CLOCK_MONOTONIC.

use analysis::clocks::Rate;

use super::{Card, Opening};
use crate::precision::{Precision, Quantity};
use crate::{Document, format};

/// Standard errors within which no drift is claimed.
const ERRORS: f64 = 2.0;
/// What a billionth makes in an hour.
const US_PER_HOUR: f64 = 3.6;
const CARDS: usize = 3;

pub(super) fn opening(document: &Document) -> Option<Opening> {
    let clocks = document.analysis.clocks.as_ref()?;
    let mut drifts: Vec<(&Rate, f64, f64)> = clocks
        .rates
        .iter()
        .filter_map(|rate| rate.drift.as_ref().map(|drift| (rate, drift.ppb, ERRORS * drift.ppb_error)))
        .collect();
    drifts.sort_by(|a, b| (b.1.abs() - b.2).total_cmp(&(a.1.abs() - a.2)));
    let seen = drifts.first().filter(|(_, ppb, error)| ppb.abs() > *error);
    let sentence = match (seen, drifts.is_empty()) {
        (Some((rate, ppb, error)), _) => format!(
            "{} drifts from CLOCK_MONOTONIC by {} \u{b1} {} ppb, {} us an hour.",
            rate.clock,
            Precision::within(*error).signed(*ppb, Quantity::Number),
            Precision::within(*error).text(*error, Quantity::Number),
            Precision::within(error * US_PER_HOUR).signed(ppb * US_PER_HOUR, Quantity::Number)
        ),
        (None, false) => "No clock drifts from CLOCK_MONOTONIC by more than this run can detect.".to_owned(),
        (None, true) => "No drift was measured: too few readings.".to_owned(),
    };
    let card = |(rate, ppb, error): &(&Rate, f64, f64)| {
        Card::of_one(
            format!("{} against CLOCK_MONOTONIC", rate.clock),
            format!("{} ppb", Precision::within(*error).signed(*ppb, Quantity::Number)),
            format!(
                "\u{b1} {} ppb (95 %), over {}",
                Precision::within(*error).text(*error, Quantity::Number),
                format::span(clocks.span_ns.unsigned_abs())
            ),
        )
    };
    Some(Opening { sentence, cause: None, cards: drifts.iter().take(CARDS).map(card).collect() })
}
