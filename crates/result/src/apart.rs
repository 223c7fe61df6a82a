//! Which of several groups can be distinguished by their ranges, least to most repetition.
//!
//! Two whose ranges overlap, or touch, cannot. Ranges of n and m repetitions without a difference
//! lie apart in two of C(n + m, n) orders (Mann and Whitney, Annals of Mathematical Statistics
//! 18(1), 1947): 2 of 70 for four and four, 2 of 6 for two and two, which shows nothing. Above 5 %
//! two groups cannot be distinguished either. That is of one pair; nothing is corrected for the
//! number of pairs.

use crate::Row;
use std::collections::BTreeMap;

/// Two groups that come out so by chance more often are not apart.
const ALPHA: f64 = 0.05;

/// A group and its row.
#[derive(Debug, Clone, Copy)]
pub struct Group<'a> {
    /// What it is called.
    pub name: &'a str,
    /// Its range is `low` to `high`, over `n` repetitions.
    pub row: &'a Row,
}

/// Says which of the groups are apart, and that the others cannot be distinguished. One without a
/// range is apart from none, and is named.
pub fn sentence(groups: &[Group<'_>]) -> String {
    let ranged: Vec<(&Group<'_>, f64, f64)> =
        groups.iter().filter_map(|group| Some((group, group.row.low?, group.row.high?))).collect();
    let mut below: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (at, (one, _, high)) in ranged.iter().enumerate() {
        let above = ranged.iter().filter(|other| high < &other.1 && enough(one, other.0));
        let above = above.map(|(group, ..)| group.name);
        below.entry(at).or_default().extend(above);
    }
    below.retain(|_, above| !above.is_empty());
    let apart: usize = below.values().map(Vec::len).sum();
    let pairs = ranged.len() * ranged.len().saturating_sub(1) / 2;
    let less: Vec<String> = below
        .iter()
        .filter_map(|(at, above)| Some(format!("{} is below {}", ranged.get(*at)?.0.name, list(above))))
        .collect();
    let mut text = match (apart, pairs) {
        (_, 0) => "nothing can be compared".to_owned(),
        (0, _) => "no two can be distinguished".to_owned(),
        (apart, pairs) if apart == pairs => less.join("; "),
        _ => format!("{}; no other two can be distinguished", less.join("; ")),
    };
    let without: Vec<&str> = groups
        .iter()
        .filter(|one| one.row.low.is_none() || one.row.high.is_none())
        .map(|one| one.name)
        .collect();
    if !without.is_empty() {
        text = format!("{text}; {} without a range", list(&without));
    }
    text
}

/// Whether ranges of so many repetitions that lie apart show anything.
fn enough(one: &Group<'_>, other: &Group<'_>) -> bool {
    let (Some(n), Some(m)) = (one.row.n, other.row.n) else { return false };
    // C(n + m, n), as a product that stays a whole number at each step.
    let orders = (1..=n).fold(1.0_f64, |orders, k| orders * (m + k) as f64 / k as f64);
    2.0 / orders <= ALPHA
}

/// `a`, `a and b`, `a, b and c`.
fn list(names: &[&str]) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(ranges: &[(&str, f64, f64)]) -> String {
        let rows: Vec<Row> = ranges
            .iter()
            .map(|(name, low, high)| {
                Row::new(*name, f64::midpoint(*low, *high), "").between(*low, *high).n(4)
            })
            .collect();
        let groups: Vec<Group<'_>> = rows.iter().map(|row| Group { name: &row.what, row }).collect();
        sentence(&groups)
    }

    #[test]
    fn ranges_that_overlap_or_touch_are_not_distinguished() {
        let overlapping = [("a", 0.0, 20.0), ("b", 10.0, 30.0), ("c", 30.0, 40.0)];
        assert_eq!(said(&overlapping), "a is below c; no other two can be distinguished");
        assert_eq!(said(&[("a", 0.0, 20.0), ("b", 20.0, 30.0)]), "no two can be distinguished");
        assert_eq!(
            said(&[("a", 0.0, 1.0), ("b", 4.0, 5.0), ("c", 2.0, 3.0)]),
            "a is below b and c; c is below b"
        );
        assert_eq!(said(&[("a", 0.0, 0.0), ("b", 0.0, 0.0)]), "no two can be distinguished");
        assert_eq!(said(&[("a", 0.0, 1.0)]), "nothing can be compared");
    }

    #[test]
    fn what_has_no_range_is_named() {
        let rows = [
            Row::new("a", 1.0, "").between(0.0, 2.0).n(4),
            Row::new("b", 9.0, "").between(8.0, 9.0).n(4),
            Row::new("c", 3.0, ""),
        ];
        let groups: Vec<Group<'_>> = rows.iter().map(|row| Group { name: &row.what, row }).collect();
        assert_eq!(sentence(&groups), "a is below b; c without a range");
    }

    #[test]
    fn ranges_of_few_repetitions_show_nothing_wherever_they_lie() {
        let said = |n: u64, m: u64| {
            let rows = [
                Row::new("a", 1.0, "").between(0.0, 2.0).n(n),
                Row::new("b", 9.0, "").between(8.0, 9.0).n(m),
            ];
            let groups: Vec<Group<'_>> = rows.iter().map(|row| Group { name: &row.what, row }).collect();
            sentence(&groups)
        };
        // 2 of 6, of 20, of 21, of 35, of 70 orders.
        for (n, m, apart) in
            [(2, 2, false), (3, 3, false), (2, 5, false), (3, 4, false), (4, 4, true), (2, 9, true)]
        {
            assert_eq!(said(n, m) == "a is below b", apart, "{n} {m}: {}", said(n, m));
        }
    }
}
