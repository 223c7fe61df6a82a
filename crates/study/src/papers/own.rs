//! A text against the numbers of its own paper: what its tables say needs no run. Counts are judged
//! as counts, so that a difference that chance explains is not called shown because it is printed.

use crate::experiment::Published;
use serde::Deserialize;
use stats::judge::{self, Decision, Finding, Pair, Quantity};

/// A comparison of published numbers. It has one form: `rising`, `ratio`, or `of`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Own {
    /// What is compared, in a sentence.
    pub says: String,
    /// Numbers, each more than the one before it; lists of them, at every position. One list: its
    /// numbers rise.
    #[serde(default)]
    pub rising: Vec<String>,
    /// An order holds also where two are as much.
    #[serde(default)]
    pub or_as_much: bool,
    /// Two numbers, the first of which is so many times the second.
    #[serde(default)]
    pub ratio: Vec<String>,
    /// One number, or every number of a list.
    #[serde(default)]
    pub of: String,
    /// The ratio or number is at least this.
    pub at_least: Option<f64>,
    /// At most this.
    pub at_most: Option<f64>,
    /// The numbers are events over the same time or number of samples.
    #[serde(default)]
    pub counts: bool,
}

/// What its own numbers say of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnFinding {
    /// What it says stands in them; whether it is so is another question.
    Stands,
    /// They say the opposite.
    Contradicted,
    /// Counts that show it.
    Shown,
    /// Counts that show the opposite.
    Refuted,
    /// Counts that do not decide it.
    NotShown,
}

impl OwnFinding {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Stands => "stands in its own numbers",
            Self::Contradicted => "contradicts its own numbers",
            Self::Shown => "shown by its own counts",
            Self::Refuted => "refuted by its own counts",
            Self::NotShown => "not shown by its own counts",
        }
    }

    /// Whether that decides the statement without a run.
    pub const fn decides(self) -> bool {
        !matches!(self, Self::Stands)
    }
}

impl Own {
    /// What is wrong with it, if anything.
    pub(super) fn check(&self, published: &Published) -> Result<(), String> {
        let forms = [!self.rising.is_empty(), !self.ratio.is_empty(), !self.of.is_empty()];
        if forms.iter().filter(|has| **has).count() != 1 {
            return Err("own; expected one of rising, ratio, of".to_owned());
        }
        let mut lengths = Vec::new();
        for key in self.keys() {
            lengths.push(published.numbers(key).map_err(|error| error.to_string())?.len());
        }
        let bounded = self.at_least.is_some() || self.at_most.is_some();
        let good = if !self.rising.is_empty() {
            !bounded
                && if lengths.len() == 1 {
                    lengths[0] > 1
                } else {
                    lengths.windows(2).all(|pair| pair[0] == pair[1])
                }
        } else if self.ratio.is_empty() {
            bounded
        } else {
            bounded && lengths == [1, 1]
        };
        if good {
            Ok(())
        } else {
            Err("own; expected lists of one length, and bounds for ratio and of".to_owned())
        }
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        let single = Some(self.of.as_str()).filter(|key| !key.is_empty());
        self.rising.iter().chain(&self.ratio).map(String::as_str).chain(single)
    }

    /// Judges it; what was compared, with its numbers.
    pub fn judged(&self, published: &Published) -> (OwnFinding, String) {
        let lists: Vec<Vec<f64>> =
            self.keys().map(|key| published.numbers(key).unwrap_or_default()).collect();
        let quantity = if self.counts { Quantity::Count } else { Quantity::Constant };
        let decisions = self.decisions(quantity, &lists);
        let has = |finding| decisions.iter().any(|one| one.finding == finding);
        let finding = match (self.counts, has(Finding::Fails), has(Finding::Undecided)) {
            (false, false, _) => OwnFinding::Stands,
            (false, true, _) => OwnFinding::Contradicted,
            (true, true, _) => OwnFinding::Refuted,
            (true, false, true) => OwnFinding::NotShown,
            (true, false, false) => OwnFinding::Shown,
        };
        let worst =
            decisions.iter().filter_map(|one| if has(Finding::Fails) { one.p_true } else { one.p_false });
        let p = if has(Finding::Fails) { worst.reduce(f64::min) } else { worst.reduce(f64::max) };
        let p = p.map_or_else(String::new, |p| {
            if p < 0.001 { "; p < 0.001".to_owned() } else { format!("; p = {p:.3}") }
        });
        (finding, format!("{}: {}{p}", self.says, self.in_numbers(&lists)))
    }

    fn decisions(&self, quantity: Quantity, lists: &[Vec<f64>]) -> Vec<Decision> {
        let bounds = |value: f64, scale: f64| {
            let single = [value];
            let low = self.at_least.map(|low| judge::at_least(quantity, &single, low * scale));
            let high = self.at_most.map(|high| judge::at_most(quantity, &single, high * scale));
            low.into_iter().chain(high)
        };
        if let [first, second] = lists
            && !self.ratio.is_empty()
        {
            let (first, second) = (&first[..1], &second[..1]);
            let pairs = [Pair { first, second }];
            let low = self.at_least.map(|times| judge::ratio_at_least(quantity, &pairs, times));
            // At most so many times as much: the other way round, at least one part of it.
            let pairs = [Pair { first: second, second: first }];
            let high = self.at_most.map(|times| judge::ratio_at_least(quantity, &pairs, 1.0 / times));
            return low.into_iter().chain(high).collect();
        }
        if !self.of.is_empty() {
            return lists.iter().flatten().flat_map(|value| bounds(*value, 1.0)).collect();
        }
        let rows: Vec<Vec<f64>> = match lists {
            [single] => vec![single.clone()],
            several => {
                (0..several[0].len()).map(|at| several.iter().map(|list| list[at]).collect()).collect()
            }
        };
        let neighbours = |row: &Vec<f64>| -> Vec<Decision> {
            let pair = |pair: &[f64]| {
                judge::order(quantity, &[Pair { first: &pair[..1], second: &pair[1..] }], self.or_as_much)
            };
            row.windows(2).map(pair).collect()
        };
        rows.iter().flat_map(neighbours).collect()
    }

    fn in_numbers(&self, lists: &[Vec<f64>]) -> String {
        let list = |list: &Vec<f64>| list.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
        lists.iter().map(list).collect::<Vec<_>>().join(if self.ratio.is_empty() { " | " } else { " / " })
    }
}
