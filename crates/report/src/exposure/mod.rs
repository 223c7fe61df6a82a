//! The exposure of a machine's measured CPUs to a set of stressors, as text, JSON and one HTML
//! page.
//!
//! Conclusions are `analysis::exposure`'s; here are their words and the format of numbers: digits
//! by the interval, bounds rounded up, and never "none" for what was not seen.

mod text;

use crate::format;
use crate::precision::{Precision, Quantity};
use analysis::exposure::{Coefficient, Exposure, Row, SourceCount};
use model::{EventClass, Machine};
use serde_json::{Value, json};

pub use text::{exposure_line, exposure_text};

/// Schema of `exposure.json`, and of the verb's object.
const SCHEMA: &str = "stillcore.exposure/1";

/// A study of exposure with its conditions.
#[derive(Debug, Clone, PartialEq)]
pub struct ExposureStudy {
    /// Its name.
    pub title: String,
    /// Its directory as the user would type it.
    pub dir: String,
    /// What it was measured under: names and values in words.
    pub conditions: Vec<(String, String)>,
    /// The machine when it began; none where cells ran on several, or elsewhere.
    pub machine: Option<Machine>,
    /// What was concluded.
    pub exposure: Exposure,
}

impl ExposureStudy {
    /// One object.
    pub fn json(&self) -> Value {
        let conditions: serde_json::Map<String, Value> =
            self.conditions.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let mut object = json!({
            "schema": SCHEMA,
            "study": self.title,
            "conditions": conditions,
            "machine": self.machine,
        });
        if let (Value::Object(object), Value::Object(found)) = (&mut object, json!(self.exposure)) {
            object.extend(found);
        }
        object
    }

    /// Classes that at least one stressor was seen in, in the order of reports.
    pub(crate) fn seen(&self) -> Vec<EventClass> {
        let is_seen = |class: &&EventClass| {
            let rows = self.exposure.rows.iter().flat_map(|row| &row.classes);
            rows.into_iter().any(|one| one.class == **class && one.coefficient.seen)
        };
        EventClass::ALL.iter().filter(is_seen).copied().collect()
    }
}

/// Events per operation with three significant digits: `3`, `0.0123`, `4.5e-5`.
pub(crate) fn per_operation(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        v if v < 5e-4 => format!("{value:.1e}"),
        v => {
            let decimals = (2 - v.log10().floor() as i32).clamp(0, 5) as usize;
            let text = format!("{value:.decimals$}");
            if text.contains('.') {
                text.trim_end_matches('0').trim_end_matches('.').to_owned()
            } else {
                text
            }
        }
    }
}

/// An upper bound: two significant digits, rounded up.
pub(crate) fn at_most(value: f64) -> String {
    if !value.is_finite() {
        return "unknown".to_owned();
    }
    let step = 10f64.powf(value.max(1e-12).log10().floor() - 1.0);
    per_operation((value / step - 1e-9).ceil() * step)
}

/// A coefficient: its value where it was seen, with the digits that its interval leaves certain;
/// else the bound.
pub(crate) fn figure(one: &Coefficient) -> String {
    if one.seen { value(one) } else { format!("<={}", at_most(one.high)) }
}

/// The value, with the digits that its interval leaves certain.
pub(crate) fn value(one: &Coefficient) -> String {
    precision(one).text(one.per_operation, Quantity::Number)
}

/// Its interval.
pub(crate) fn range(one: &Coefficient) -> String {
    precision(one).range([one.low, one.high], |precision, end| precision.text(end, Quantity::Number))
}

fn precision(one: &Coefficient) -> Precision {
    Precision::of(Some([one.low, one.high]))
}

/// The interval, or the bound.
pub(crate) fn interval(one: &Coefficient) -> String {
    if one.events == 0 {
        return format!("at most {}, of no event", at_most(one.high));
    }
    range(one)
}

/// What ran and who asked.
pub(crate) fn source(one: &SourceCount) -> String {
    let who = one.who.as_deref().unwrap_or("nobody known");
    let site = one.site.as_deref().map_or_else(String::new, |site| format!(" in {site}"));
    let label = if one.label.is_empty() { String::new() } else { format!(" {}", one.label) };
    format!("{}{label}: {who}{site}, {} events", one.class, one.count)
}

/// Operations of a row, with those asked for where they are more than twice as many.
pub(crate) fn operations(row: &Row) -> String {
    let done = format::count(row.operations);
    match row.asked.filter(|_| row.is_weak()) {
        Some(asked) => format!("{done} of {} (weak)", format::count(asked)),
        None => done,
    }
}

/// What weakens a row, one sentence each.
pub(crate) fn weak(row: &Row) -> Vec<String> {
    let sentence =
        |what: &str, list: &[String]| (!list.is_empty()).then(|| format!("{what}: {}", list.join("; ")));
    let failed: Vec<String> = row.failed.iter().map(|(name, count)| format!("{name} {count}")).collect();
    let each = row.each.iter().map(|one| per_operation(*one)).collect::<Vec<_>>();
    let differ = each.iter().any(|one| *one != each[0]);
    let below = if row.is_weak() { vec![operations(row)] } else { Vec::new() };
    [
        sentence("it did less than half of the operations asked for", &below),
        sentence("contaminated, later cells measured another machine", &row.contaminated),
        sentence(
            "the idle controls before and after do not agree, so the background is not known",
            &row.idle_apart,
        ),
        sentence("left out", &row.left_out),
        sentence("operations that failed, and whose events are counted all the same", &failed),
        sentence("by repetition", if differ { &each } else { &[] }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests;
