//! Values taken from the JSON that a verb printed.

use super::declared::SeriesOf;
use super::result::{Row, Series};
use crate::experiment::parts::Take;
use serde_json::Value;

/// Rows of a list that are kept of a cell.
const MOST_ROWS: usize = 4000;

/// The number at `path` (keys and indices between slashes, `*` for every element of an array or
/// object, `[KEY=TEXT]` for the elements of an array whose KEY, a key or an index, is TEXT,
/// `[KEY!=TEXT]` for the others); `true` is 1. `None` if it is not a number.
pub fn taken(value: &Value, path: &str, take: Take) -> Option<f64> {
    let found = at(value, path);
    if take == Take::Count {
        return Some(found.len() as f64);
    }
    let numbers: Vec<f64> = found.into_iter().filter_map(number).collect();
    made(&numbers, take)
}

/// What is at a path.
pub(super) fn at<'a>(value: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![value];
    for step in path.split('/').filter(|step| !step.is_empty()) {
        found = found.into_iter().flat_map(|value| children(value, step)).collect();
    }
    found
}

/// What is made of several numbers; `None` where there are none.
pub(super) fn made(numbers: &[f64], take: Take) -> Option<f64> {
    let first = *numbers.first()?;
    Some(match take {
        Take::First => first,
        Take::Count => numbers.len() as f64,
        Take::Max => numbers.iter().copied().fold(first, f64::max),
        Take::Min => numbers.iter().copied().fold(first, f64::min),
        Take::Sum => numbers.iter().sum(),
        Take::Mean => numbers.iter().sum::<f64>() / numbers.len() as f64,
        Take::Median => {
            let mut sorted = numbers.to_vec();
            sorted.sort_by(f64::total_cmp);
            let upper = sorted[sorted.len() / 2];
            if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[sorted.len() / 2 - 1], upper) }
        }
    })
}

/// The rows at the path of a list, each with the numbers of its columns; a row that lacks one is
/// left out, and so is what is beyond [`MOST_ROWS`], counted.
pub fn rows(value: &Value, of: &SeriesOf) -> Series {
    let mut series = Series::default();
    for place in at(value, &of.at) {
        for row in place.as_array().into_iter().flatten() {
            let numbers: Option<Vec<f64>> =
                of.columns.get_ref().iter().map(|key| number(part(row, key)?)).collect();
            let text = |key: &Option<String>| {
                key.as_ref().and_then(|key| part(row, key)).map(said).unwrap_or_default()
            };
            match numbers {
                Some(at) if series.rows.len() < MOST_ROWS => {
                    series.rows.push(Row { at, lane: text(&of.lane), label: text(&of.label) });
                }
                _ => series.left_out += 1,
            }
        }
    }
    series
}

fn part<'a>(row: &'a Value, key: &str) -> Option<&'a Value> {
    match row {
        Value::Array(parts) => parts.get(key.parse::<usize>().ok()?),
        other => other.get(key),
    }
}

fn said(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Why an answer has no number at `path`: what its `limits` report about a name that the path
/// selects by, such as the counter of `counters/[0=l2d_refill]/1/mean`.
pub fn absent(value: &Value, path: &str) -> Option<String> {
    let chosen =
        path.split('/').filter_map(|step| step.strip_prefix('[')?.strip_suffix(']')?.split_once('='));
    let names: Vec<&str> = chosen.map(|(_, name)| name).collect();
    let mut limits = value.get("limits")?.as_array()?.iter().filter_map(Value::as_str);
    limits.find(|limit| names.iter().any(|name| names_it(limit, name))).map(str::to_owned)
}

/// Whether a sentence has this name as a word.
fn names_it(sentence: &str, name: &str) -> bool {
    sentence.split(|c: char| !(c.is_alphanumeric() || "_.-".contains(c))).any(|word| word == name)
}

fn children<'a>(value: &'a Value, step: &str) -> Vec<&'a Value> {
    match (value, step) {
        (Value::Array(items), "*") => items.iter().collect(),
        (Value::Object(map), "*") => map.values().collect(),
        (Value::Array(items), chosen) if chosen.starts_with('[') => {
            let pair = chosen.trim_start_matches('[').trim_end_matches(']').split_once('=');
            let Some((key, wanted)) = pair else { return Vec::new() };
            let (key, others) = key.strip_suffix('!').map_or((key, false), |key| (key, true));
            let part = |item: &'a Value| match item {
                Value::Array(parts) => parts.get(key.parse::<usize>().ok()?),
                other => other.get(key),
            };
            let is = |item: &&'a Value| match part(item) {
                Some(Value::String(text)) => text == wanted,
                Some(other) => serde_json::from_str::<Value>(wanted).is_ok_and(|wanted| wanted == *other),
                None => false,
            };
            items.iter().filter(|item| is(item) != others).collect()
        }
        (Value::Array(items), index) => {
            index.parse::<usize>().ok().and_then(|at| items.get(at)).into_iter().collect()
        }
        (Value::Object(map), key) => map.get(key).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(yes) => Some(f64::from(u8::from(*yes))),
        other => other.as_f64().filter(|number| number.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_limit_that_names_what_is_chosen_says_why_it_is_absent() {
        let answer = json!({ "limits": ["counter l2 is slow", "counter l2d_refill is unavailable"], "counters": [["switches", 1]] });
        let why = |path| absent(&answer, path);
        assert_eq!(why("counters/[0=l2d_refill]/1").as_deref(), Some("counter l2d_refill is unavailable"));
        assert_eq!(why("counters/[0=l2d]/1"), None);
        assert_eq!(why("counters/l2d_refill"), None);
        assert_eq!(absent(&json!({}), "counters/[0=l2d_refill]/1"), None);
    }
}
