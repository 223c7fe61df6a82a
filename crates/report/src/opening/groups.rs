//! The opening of a comparison of runs: what differs and by how much, else what could not be
//! decided.

use analysis::groups::{FigureComparison, GroupComparison, WindowComparison};
use stats::decide::Verdict;

use super::{Card, Opening};
use crate::format;
use crate::precision::{Precision, Quantity};

/// Statistics named in the sentence.
const NAMED: usize = 2;
const CARDS: usize = 3;

/// A statistic and the probe that it is of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compared<'a> {
    pub(crate) window: &'a WindowComparison,
    pub(crate) figure: &'a FigureComparison,
}

impl Compared<'_> {
    /// `p99`; with its probe where there are several.
    pub(crate) fn name(self, comparison: &GroupComparison) -> String {
        let name = self.figure.figure.name();
        if comparison.windows.len() > 1 { format!("{name} of {}", self.window.probe.name()) } else { name }
    }

    fn quantity(self) -> Quantity {
        Quantity::of(self.figure.unit)
    }

    /// The digits of all its numbers: those that the interval of the difference leaves certain.
    fn precision(self) -> Precision {
        Precision::of(self.figure.interval)
    }

    /// The difference with its sign.
    pub(crate) fn difference(self) -> Option<String> {
        Some(self.precision().signed(self.figure.difference?, self.quantity()))
    }

    /// Its interval, in brackets behind a space; empty where none is known.
    pub(crate) fn interval(self) -> String {
        let range = |interval| self.precision().signed_range(interval, self.quantity());
        self.figure.interval.map_or_else(String::new, |interval| format!(" ({})", range(interval)))
    }

    /// How far it lies beyond what matters: decides what is named first.
    fn weight(self) -> f64 {
        let by = self.figure.difference.unwrap_or_default().abs();
        self.figure.margin.filter(|margin| *margin > 0.0).map_or(0.0, |margin| by / margin)
    }
}

/// All statistics: those that differ first, by how much that matters; then those that are
/// equivalent, then what cannot be decided, then what is withheld.
pub(crate) fn ordered(comparison: &GroupComparison) -> Vec<Compared<'_>> {
    let of = |window| -> Vec<Compared<'_>> {
        let window: &WindowComparison = window;
        window.figures.iter().map(|figure| Compared { window, figure }).collect()
    };
    let mut all: Vec<Compared<'_>> = comparison.windows.iter().flat_map(of).collect();
    let rank = |verdict| match verdict {
        Verdict::Worse | Verdict::Better => 0,
        Verdict::Equivalent => 1,
        Verdict::CannotTell | Verdict::OneRun => 2,
        Verdict::Withheld => 3,
    };
    all.sort_by(|a, b| {
        let by_rank = rank(a.figure.verdict).cmp(&rank(b.figure.verdict));
        // What is not decided stays in the order of the tables.
        let by_weight = if rank(a.figure.verdict) == 0 {
            b.weight().total_cmp(&a.weight())
        } else {
            std::cmp::Ordering::Equal
        };
        by_rank.then(by_weight)
    });
    all
}

pub(crate) fn opening(comparison: &GroupComparison) -> Opening {
    let all = ordered(comparison);
    let cards = all.iter().filter_map(|one| card(comparison, *one)).take(CARDS).collect();
    Opening { sentence: sentence(comparison, &all), cause: None, cards }
}

fn sentence(comparison: &GroupComparison, all: &[Compared<'_>]) -> String {
    let of = |verdict| all.iter().filter(move |one| one.figure.verdict == verdict).copied();
    let count = |verdict| of(verdict).count();
    let differ = |verdict: Verdict| {
        let each: Vec<String> = of(verdict)
            .take(NAMED)
            .filter_map(|one| {
                let by = one.precision().text(one.figure.difference?.abs(), one.quantity());
                Some(format!("{} by {by}", one.name(comparison)))
            })
            .collect();
        let more = count(verdict).saturating_sub(each.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!each.is_empty()).then(|| format!("{} in {}{more}", verdict.words(), each.join(", ")))
    };
    let parts: Vec<String> = [Verdict::Worse, Verdict::Better].into_iter().filter_map(differ).collect();
    let statistics = format::plural(all.len() as u64, "statistic");
    if !parts.is_empty() {
        return format!("The other runs are {}, of {statistics} compared.", parts.join("; "));
    }
    let (alike, open) = (count(Verdict::Equivalent), count(Verdict::CannotTell));
    match (alike, open) {
        (0, 0) if count(Verdict::OneRun) > 0 => {
            "One run a side says nothing of configurations, whatever differs between the two runs.".to_owned()
        }
        (0, 0) => "These runs give none of the statistics that were to be compared.".to_owned(),
        (0, _) => format!("These runs cannot distinguish the two sides in any of {statistics}."),
        (_, 0) => {
            format!("The two sides are equivalent: no difference of {statistics} is as large as its margin.")
        }
        _ => format!("Of {statistics}, {alike} are equivalent and these runs cannot distinguish {open}."),
    }
}

fn card(comparison: &GroupComparison, one: Compared<'_>) -> Option<Card> {
    let figure = one.figure;
    let say = |value: f64| one.precision().text(value, one.quantity());
    let sides = figure.base.zip(figure.other);
    let sides = sides.map(|(base, other)| format!("{} to {}; ", say(base), say(other))).unwrap_or_default();
    let range = figure.interval.map(|interval| one.precision().signed_range(interval, one.quantity()));
    let range = range.map(|range| format!("95 %: {range}; ")).unwrap_or_default();
    Some(Card::of_one(
        format!("{}: {}", one.name(comparison), figure.verdict.words()),
        one.difference()?,
        format!("{sides}{range}n = {} and {} runs", figure.runs[0].len(), figure.runs[1].len()),
    ))
}
