//! The load that the cells of an experiment got, in sentences: how fast each stressor was, and
//! which stayed below half of what was asked for.

use report::format;
use std::collections::BTreeMap;
use study::Cell;
use study::experiment::{CellResult, Load};

/// Of all cells together: each stressor with its lowest and highest rate, then those that were weak
/// or did not happen, with the number of cells. Nothing where no cell was disturbed.
pub(super) fn sentences(results: &[(Cell, CellResult)]) -> Vec<String> {
    let mut named: BTreeMap<&str, Vec<&Load>> = BTreeMap::new();
    for load in results.iter().flat_map(|(_, result)| &result.loads) {
        named.entry(&load.stressor).or_default().push(load);
    }
    let rates: Vec<String> = named.iter().map(|(name, loads)| rate(name, loads)).collect();
    let rates = (!rates.is_empty()).then(|| format!("load, operations per second: {}", rates.join("; ")));
    let below: Vec<String> = named.iter().flat_map(|(name, loads)| lacking(name, loads)).collect();
    rates.into_iter().chain(below).collect()
}

fn rate(name: &str, loads: &[&Load]) -> String {
    let by_rate = |one: &&&Load, other: &&&Load| one.per_s.total_cmp(&other.per_s);
    let (low, high) = (loads.iter().min_by(by_rate), loads.iter().max_by(by_rate));
    let of = |load: Option<&&Load>| load.map_or(0.0, |load| load.per_s);
    let copies = loads.iter().map(|load| load.copies).max().unwrap_or(1);
    let copies = if copies > 1 { format!(" x {copies}") } else { String::new() };
    match (number(of(low)), number(of(high))) {
        (low, high) if low == high => format!("{name}{copies} {low}"),
        (low, high) => format!("{name}{copies} {low} to {high}"),
    }
}

/// A rate with as many digits as it means.
fn number(per_s: f64) -> String {
    if per_s < 100.0 { format!("{per_s:.1}") } else { format::count(per_s as u64) }
}

/// What was less than asked for, a sentence for each verdict.
fn lacking(name: &str, loads: &[&Load]) -> Vec<String> {
    let mut by_word: BTreeMap<&str, Vec<&&Load>> = BTreeMap::new();
    for load in loads {
        by_word.entry(load.state.word()).or_default().push(load);
    }
    let sentence = |(word, some): (&str, Vec<&&Load>)| {
        let cells = format::plural(some.len() as u64, "cell");
        let sum = |of: &dyn Fn(&Load) -> Option<u64>| some.iter().map(|load| of(load)).sum::<Option<u64>>();
        let (done, asked) = (sum(&|load| Some(load.operations)).unwrap_or(0), sum(&|load| load.asked));
        let asked = asked.map_or_else(String::new, |asked| format!(" of {} asked for", format::count(asked)));
        format!("{name} was {word} in {cells} of {}: {} operations{asked}", loads.len(), format::count(done))
    };
    by_word.into_iter().filter(|(word, _)| *word != "ok").map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::stressor::StressorState;
    use study::experiment::CellState;

    fn cell(loads: Vec<Load>) -> (Cell, CellResult) {
        let result = CellResult::without(CellState::Ok, String::new(), "here", false, "0");
        let json = serde_json::json!({ "id": "a", "study": "s", "factors": {}, "repetition": 0, "seed": 1 });
        (serde_json::from_value(json).unwrap(), CellResult { loads, ..result })
    }

    #[test]
    fn weak_loads_are_counted_by_cell_and_rates_have_their_range() {
        let load = |per_s: f64, state, operations| Load {
            stressor: "u_fork".to_owned(),
            copies: 3,
            state,
            asked: Some(2000),
            operations,
            per_s,
        };
        let results = [
            cell(vec![load(53.5, StressorState::Weak, 107)]),
            cell(vec![load(1000.0, StressorState::Ok, 2000)]),
            cell(Vec::new()),
        ];
        let expected = [
            "load, operations per second: u_fork x 3 53.5 to 1,000",
            "u_fork was weak in 1 cell of 2: 107 operations of 2,000 asked for",
        ];
        assert_eq!(sentences(&results), expected);
        assert_eq!(sentences(&results[2..]), Vec::<String>::new());
    }
}
