//! One measured number with all that a reader needs to judge it: unit, n, interval, peer, ratio,
//! budget, verdict.

use serde::{Deserialize, Serialize};

/// One row of a result. Keys that do not apply are null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What was measured: unique within its result, without `/`, `;` and `*`, so that pages can
    /// name it.
    pub what: String,
    /// The number, in `unit`; null where there is none (the reason is in `why`).
    pub value: Option<f64>,
    /// Unit of `value`, `low`, `high` and the peer's value; empty for a plain count or share.
    pub unit: String,
    /// Runs, samples or trials behind the value.
    pub n: Option<u64>,
    /// Lower end of the interval of the value: 95 % unless a note of the result says otherwise.
    pub low: Option<f64>,
    /// Upper end of that interval.
    pub high: Option<f64>,
    /// Who else was measured, and its value.
    pub peer: Option<Peer>,
    /// The value divided by the peer's.
    pub ratio: Option<Ratio>,
    /// The requirement.
    pub budget: Option<Budget>,
    /// Whether the requirement is met; `none` without one, and where the interval contains the
    /// limit.
    pub verdict: Verdict,
    /// Why there is no value, or what else to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// The other side of a comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    /// Its name, and the option that matters.
    pub name: String,
    /// Its value in the unit of the row; null where only the ratio is known.
    pub value: Option<f64>,
}

/// Our value over the peer's, over interleaved rounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ratio {
    /// Median of the rounds' ratios.
    pub median: f64,
    /// Lower end of its 95 % interval; null where there are too few rounds.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// What a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Of {
    /// The value.
    Value,
    /// The ratio.
    Ratio,
}

/// The side on which a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The limit itself is allowed.
    AtMost(f64),
    /// The limit itself is allowed.
    AtLeast(f64),
}

/// A requirement, of section 7 of the design where it has the number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// What is limited.
    pub of: Of,
    /// The limit.
    pub limit: Limit,
}

/// Whether a budget is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The whole interval lies within the limit.
    Met,
    /// The whole interval lies outside.
    Missed,
    /// No budget, or these runs cannot decide.
    None,
}

impl Row {
    /// A row with a value.
    pub fn new(what: impl Into<String>, value: f64, unit: &str) -> Self {
        let value = value.is_finite().then_some(value);
        let what = what.into().replace(['/', ';', '*'], "-");
        Self {
            what,
            value,
            unit: unit.to_owned(),
            n: None,
            low: None,
            high: None,
            peer: None,
            ratio: None,
            budget: None,
            verdict: Verdict::None,
            why: None,
        }
    }

    /// A row without a value, and the reason.
    pub fn absent(what: impl Into<String>, why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..Self::new(what, f64::NAN, "") }
    }

    /// Runs, samples or trials behind it.
    #[must_use]
    pub fn n(self, n: u64) -> Self {
        Self { n: Some(n), ..self }
    }

    /// The interval of the value.
    #[must_use]
    pub fn between(self, low: f64, high: f64) -> Self {
        Self { low: finite(low), high: finite(high), ..self }.judged()
    }

    /// The peer and its value.
    #[must_use]
    pub fn beside(self, name: impl Into<String>, value: f64) -> Self {
        Self { peer: Some(Peer { name: name.into(), value: finite(value) }), ..self }
    }

    /// The ratio to the peer.
    #[must_use]
    pub fn ratio(self, ratio: Option<Ratio>) -> Self {
        Self { ratio, ..self }.judged()
    }

    /// The requirement.
    #[must_use]
    pub fn budget(self, of: Of, limit: Limit) -> Self {
        Self { budget: Some(Budget { of, limit }), ..self }.judged()
    }

    /// A remark.
    #[must_use]
    pub fn why(self, why: impl Into<String>) -> Self {
        Self { why: Some(why.into()), ..self }
    }

    /// The verdict that follows from the numbers.
    fn judged(mut self) -> Self {
        self.verdict = self.verdict_of_numbers();
        self
    }

    /// The verdict that follows from numbers and budget alone; a stored row must carry this one.
    pub fn verdict_of_numbers(&self) -> Verdict {
        let Some(budget) = self.budget else { return Verdict::None };
        let (middle, low, high) = match budget.of {
            Of::Value => (self.value, self.low, self.high),
            Of::Ratio => (
                self.ratio.map(|r| r.median),
                self.ratio.and_then(|r| r.low),
                self.ratio.and_then(|r| r.high),
            ),
        };
        let Some(middle) = middle else { return Verdict::None };
        let within = |value: f64| match budget.limit {
            Limit::AtMost(limit) => value <= limit,
            Limit::AtLeast(limit) => value >= limit,
        };
        match (within(low.unwrap_or(middle)), within(high.unwrap_or(middle))) {
            (true, true) => Verdict::Met,
            (false, false) => Verdict::Missed,
            _ => Verdict::None,
        }
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Median of the rounds' ratios with the 95 % interval of a median by order statistics (binomial,
/// no assumption on the distribution; null below six rounds). `None` without a round whose ratio is
/// finite.
pub fn ratio_of_rounds(ours: &[f64], theirs: &[f64]) -> Option<Ratio> {
    let mut ratios: Vec<f64> =
        ours.iter().zip(theirs).map(|(a, b)| a / b).filter(|ratio| ratio.is_finite()).collect();
    ratios.sort_by(f64::total_cmp);
    let [low, high] = median_interval(&ratios).map_or([None; 2], |[a, b]| [Some(a), Some(b)]);
    Some(Ratio { median: median(&ratios)?, low, high })
}

/// The middle of sorted values, of an even number the mean of the two.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    match sorted.len() % 2 {
        _ if sorted.is_empty() => None,
        0 => Some(f64::midpoint(sorted[half - 1], sorted[half])),
        _ => Some(sorted[half]),
    }
}

/// The narrowest symmetric pair of order statistics that contains the median with 95 % at least.
pub fn median_interval(sorted: &[f64]) -> Option<[f64; 2]> {
    let n = sorted.len();
    // Chance that fewer than k of n fair coins show heads, summed until it exceeds 2.5 %.
    let (mut term, mut below, mut k) = (0.5f64.powi(i32::try_from(n).ok()?), 0.0, 0);
    while k < n && below + term <= 0.025 {
        below += term;
        k += 1;
        term *= (n - k + 1) as f64 / k as f64;
    }
    if k == 0 { None } else { Some([sorted[k - 1], sorted[n - k]]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_met_missed_or_open_by_the_interval() {
        let row =
            |low, high| Row::new("rate", 1.0, "").between(low, high).budget(Of::Value, Limit::AtMost(1.0));
        assert_eq!(row(0.8, 1.0).verdict, Verdict::Met);
        assert_eq!(row(0.9, 1.1).verdict, Verdict::None);
        assert_eq!(row(1.01, 1.2).verdict, Verdict::Missed);
        let alone = Row::new("rate", 3.0, "").budget(Of::Value, Limit::AtLeast(3.5));
        assert_eq!(alone.verdict, Verdict::Missed);
        assert_eq!(Row::new("rate", 3.0, "").verdict, Verdict::None);
        let ratio = Row::new("rate", 3.0, "").budget(Of::Ratio, Limit::AtLeast(2.0));
        assert_eq!(ratio.verdict, Verdict::None, "no ratio, no verdict");
        let rounds = ratio_of_rounds(&[3.0; 8], &[1.0; 8]);
        assert_eq!(ratio.ratio(rounds).verdict, Verdict::Met);
    }

    #[test]
    fn the_interval_of_a_median_is_the_binomial_one() {
        let upto = |n: usize| (1..=n).map(|k| k as f64).collect::<Vec<_>>();
        // Conover, Practical Nonparametric Statistics, table A3: n = 6: 1 and 6; 10: 2 and 9; 20: 6
        // and 15.
        assert_eq!(median_interval(&upto(5)), None);
        assert_eq!(median_interval(&upto(6)), Some([1.0, 6.0]));
        assert_eq!(median_interval(&upto(10)), Some([2.0, 9.0]));
        assert_eq!(median_interval(&upto(20)), Some([6.0, 15.0]));
        assert_eq!(median(&upto(4)), Some(2.5));
        assert_eq!(ratio_of_rounds(&[], &[]), None);
    }

    #[test]
    fn a_row_reads_back_and_unknown_keys_are_refused() {
        let row =
            Row::new("a/b; *", 0.5, "s").n(3).beside("peer", f64::NAN).budget(Of::Value, Limit::AtMost(1.0));
        assert_eq!(row.what, "a-b- -");
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
        assert!(serde_json::from_str::<Row>(&text.replace("\"unit\"", "\"unti\"")).is_err());
    }
}
