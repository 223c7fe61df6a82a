//! Pairs of cells that differ only in the compared level: in how many the first has less, and the
//! sign test on them.

use super::result::CellResult;
use super::words::text;
use crate::cell::Cell;
use crate::experiment::concluded::{Judgement, Pairs};
use crate::experiment::factors::{KERNEL, SETTING};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Two groups differ at this significance level.
const ALPHA: f64 = 0.05;

/// Whether `less` has less of a value than `than`, repetition by repetition: both name one
/// combination each.
pub(super) fn pairs_by(
    results: &[(Cell, CellResult)],
    value: &str,
    less: impl Fn(&Cell) -> bool,
    than: impl Fn(&Cell) -> bool,
) -> Pairs {
    counted(results, value, false, less, than, |_| BTreeMap::new())
}

/// Counts of one kernel and setting.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    holds: u64,
    fails: u64,
}

/// Pairs that are alike in `rest` and the repetition, of a value that is a `time` or not. A pair
/// with an unmeasured side does not count as a pair, but is counted apart. Kernels and settings
/// that contradict one another are not averaged.
pub(super) fn counted(
    results: &[(Cell, CellResult)],
    value: &str,
    time: bool,
    less: impl Fn(&Cell) -> bool,
    than: impl Fn(&Cell) -> bool,
    rest: impl Fn(&Cell) -> BTreeMap<String, serde_json::Value>,
) -> Pairs {
    let alike = |a: &Cell, b: &Cell| a.repetition == b.repetition && rest(a) == rest(b);
    let number = |result: &CellResult| result.values.get(value).copied().flatten();
    let mut tallies: BTreeMap<String, Tally> = BTreeMap::new();
    let (mut ties, mut one_sided) = (0, 0);
    let mut emulated = false;
    let mut reason = None;
    for (first, result) in results.iter().filter(|(cell, _)| less(cell)) {
        let other = results.iter().find(|(cell, _)| than(cell) && alike(cell, first));
        let Some((a, b)) = number(result).zip(other.and_then(|(_, other)| number(other))) else {
            one_sided += 1;
            let why = result.reason.clone().or_else(|| other.and_then(|(_, other)| other.reason.clone()));
            reason = reason.or(why);
            continue;
        };
        emulated |= result.emulated;
        let tally = tallies.entry(condition(first)).or_default();
        match a.total_cmp(&b) {
            Ordering::Less => tally.holds += 1,
            Ordering::Greater => tally.fails += 1,
            Ordering::Equal => ties += 1,
        }
    }
    let holds: u64 = tallies.values().map(|tally| tally.holds).sum();
    let fails: u64 = tallies.values().map(|tally| tally.fails).sum();
    if holds + fails + ties == 0 {
        let why = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        return Pairs {
            holds,
            fails,
            judgement: Judgement::NotApplicable,
            why: format!("no pair was measured{why}"),
        };
    }
    let p = sign_test(holds, fails);
    let for_it = |tally: &&Tally| tally.holds > tally.fails;
    let against = |tally: &&Tally| tally.fails > tally.holds;
    let contradict =
        tallies.values().any(|tally| for_it(&tally)) && tallies.values().any(|tally| against(&tally));
    let judgement = match (p <= ALPHA && !contradict, holds > fails) {
        _ if time && emulated => Judgement::NotComparable,
        (true, true) => Judgement::Agrees,
        (true, false) => Judgement::Differs,
        (false, _) => Judgement::Inconclusive,
    };
    let mut why = format!("holds in {holds} of {} pairs, sign test p = {p:.3}", holds + fails + ties);
    if time && emulated {
        why.push_str(", of times in emulated guests");
    }
    if tallies.len() > 1 {
        let each =
            tallies.iter().map(|(name, tally)| format!("{name} {} against {}", tally.holds, tally.fails));
        let contradict = if contradict { ", which contradict one another" } else { "" };
        why = format!("{why} ({}{contradict})", each.collect::<Vec<_>>().join(", "));
    }
    if one_sided > 0 {
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        why = format!("{why}; {one_sided} more were not measured on both sides{reason}");
    }
    Pairs { holds, fails, judgement, why }
}

/// Kernel and setting of a cell.
fn condition(cell: &Cell) -> String {
    let parts = [KERNEL, SETTING].map(|name| text(cell.factors.get(name)));
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Two-sided p of the exact sign test.
fn sign_test(holds: u64, fails: u64) -> f64 {
    let (n, most) = (holds + fails, holds.max(fails));
    let mut term = 0.5_f64.powi(n.min(1000) as i32);
    // The sum of the upper tail, from n of n downwards.
    let mut tail = 0.0;
    for k in (most..=n).rev() {
        tail += term;
        term *= k as f64 / (n - k + 1) as f64;
    }
    (2.0 * tail).min(1.0)
}
