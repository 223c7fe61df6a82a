//! The histories of many machines: which one is worse than the others, and what the worse ones have
//! in common.
//!
//! One machine is held against the mean of the others hour by hour, so that a busy evening that all
//! have counts against none ([`stats::paired`]). Groups of machines, such as those of one kernel,
//! are held against the rest with a value a machine, dealt out anew in every way
//! ([`stats::permute`]): hours of one machine are not many machines. Holm's adjustment is over the
//! machines, or groups, of each figure.

use crate::figures::{Figure, Hours, figures};
use model::monitor_history::Interval;
use serde::Serialize;
use stats::paired::p_above_zero;
use stats::permute;
use stats::rates::holm;
use std::collections::{BTreeMap, BTreeSet};

/// A difference that is less likely than this by chance is one.
const ALPHA: f64 = 0.05;

/// One machine, or what it was while it belonged to a group.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name, unlike that of all others.
    pub name: String,
    hours: BTreeMap<Figure, Hours>,
}

impl Member {
    /// Of its history; `figures`: all that any member has, so that what one never had counts as 0.
    pub fn new(name: String, history: &[Interval], figures: &BTreeSet<Figure>) -> Self {
        let hours = figures.iter().map(|figure| (figure.clone(), figure.hours(history))).collect();
        Self { name, hours }
    }

    /// Hours in which it was watched.
    pub fn hours(&self) -> BTreeSet<&str> {
        self.hours.values().flat_map(BTreeMap::keys).map(String::as_str).collect()
    }

    /// What it was in the hours of each label; those without a label are left out.
    pub fn split(&self, label: impl Fn(&str) -> Option<String>) -> Vec<(String, Self)> {
        let labels: BTreeMap<String, Option<String>> =
            self.hours().into_iter().map(|hour| (hour.to_owned(), label(hour))).collect();
        let distinct: BTreeSet<&String> = labels.values().flatten().collect();
        let only = |label: &String| {
            let is_of = |hour: &String| labels.get(hour).is_some_and(|of| of.as_ref() == Some(label));
            let of = |hours: &Hours| -> Hours {
                hours
                    .iter()
                    .filter(|(hour, _)| is_of(hour))
                    .map(|(hour, sums)| (hour.clone(), *sums))
                    .collect()
            };
            let hours = self.hours.iter().map(|(figure, hours)| (figure.clone(), of(hours))).collect();
            (label.clone(), Self { name: self.name.clone(), hours })
        };
        distinct.into_iter().map(only).collect()
    }

    /// The ratio of all its hours.
    pub fn value(&self, figure: &Figure) -> Option<f64> {
        ratio(self.hours.get(figure)?.values())
    }
}

fn ratio<'a>(hours: impl Iterator<Item = &'a [f64; 2]>) -> Option<f64> {
    let [part, whole] = hours.fold([0.0, 0.0], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
    (whole > 0.0).then(|| part / whole)
}

/// What the histories of a fleet have in common, which are added one after the other.
#[derive(Debug, Default)]
pub struct Common {
    figures: BTreeSet<Figure>,
    /// Limit and threads: they decide who is late.
    questions: BTreeSet<(u64, String)>,
}

impl Common {
    /// Adds a machine's.
    pub fn add(&mut self, history: &[Interval]) {
        self.figures.extend(figures(history));
        self.questions.extend(history.iter().map(|one| (one.limit_ns, one.threads_watched.clone())));
    }

    /// Whether late threads are the same question everywhere.
    pub fn is_same_question(&self) -> bool {
        self.questions.len() < 2
    }

    /// All figures that any has, without late threads where they are not the same question.
    pub fn figures(&self) -> BTreeSet<Figure> {
        let is_comparable = |figure: &&Figure| self.is_same_question() || **figure != Figure::Late;
        self.figures.iter().filter(is_comparable).cloned().collect()
    }
}

/// A figure of one machine against the others at the same hours.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Standing {
    /// The machine.
    pub machine: String,
    /// What the figure is of.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// Its mean of these hours, and that of the others' means.
    pub value: f64,
    /// As above.
    pub others: f64,
    /// Hours in which it and others were watched.
    pub hours: usize,
    /// Probability of standing so far above them by chance, adjusted for the number of machines;
    /// absent for too few hours.
    pub p_value: Option<f64>,
}

impl Standing {
    /// Whether it is worse than the others.
    pub fn is_worse(&self) -> bool {
        // Not by the last digit of a sum.
        self.value > self.others * (1.0 + 1e-9) && self.p_value.is_some_and(|p| p < ALPHA)
    }
}

/// All figures of all machines that others have as well; the worst first, as a multiple of the
/// others.
pub fn standings(members: &[Member]) -> Vec<Standing> {
    let all: BTreeSet<&Figure> = members.iter().flat_map(|member| member.hours.keys()).collect();
    let mut found: Vec<Standing> = all.into_iter().flat_map(|figure| of_figure(members, figure)).collect();
    let times = |one: &Standing| one.value / one.others;
    found.sort_by(|a, b| b.is_worse().cmp(&a.is_worse()).then(times(b).total_cmp(&times(a))));
    found
}

fn of_figure(members: &[Member], figure: &Figure) -> Vec<Standing> {
    let mut sums = BTreeMap::<&str, (f64, f64)>::new();
    let of = |member: &'_ Member| -> Vec<(String, f64)> {
        let hours = member.hours.get(figure).into_iter().flatten();
        hours.map(|(hour, [part, whole])| (hour.clone(), part / whole)).collect()
    };
    let values: Vec<Vec<(String, f64)>> = members.iter().map(of).collect();
    for (hour, value) in values.iter().flatten() {
        let sum = sums.entry(hour).or_default();
        *sum = (sum.0 + value, sum.1 + 1.0);
    }
    let stands = |(member, mine): (&Member, &Vec<(String, f64)>)| {
        let pair = |(hour, value): &(String, f64)| {
            let (sum, count) = sums[hour.as_str()];
            (count > 1.0).then(|| (*value, ((sum - value) / (count - 1.0)).max(0.0)))
        };
        let pairs: Vec<(f64, f64)> = mine.iter().filter_map(pair).collect();
        let differences: Vec<f64> = pairs.iter().map(|(value, others)| value - others).collect();
        let mean = |of: fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64;
        (!pairs.is_empty()).then(|| Standing {
            machine: member.name.clone(),
            what: figure.name(),
            unit: figure.unit(),
            value: mean(|pair| pair.0),
            others: mean(|pair| pair.1),
            hours: pairs.len(),
            p_value: p_above_zero(&differences),
        })
    };
    let mut found: Vec<Standing> = members.iter().zip(&values).filter_map(stands).collect();
    let adjusted = holm(&found.iter().map(|one| one.p_value.unwrap_or(1.0)).collect::<Vec<f64>>());
    for (one, adjusted) in found.iter_mut().zip(adjusted) {
        one.p_value = one.p_value.map(|_| adjusted);
    }
    found.retain(|one| one.value > 0.0 || one.others > 0.0);
    found
}

/// A figure of a group of machines against all other machines.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupStanding {
    /// The group.
    pub group: String,
    /// What the figure is of.
    pub what: String,
    /// Its unit.
    pub unit: &'static str,
    /// Mean of the machines' values in it, and of those outside.
    pub value: f64,
    /// As above.
    pub others: f64,
    /// Machines in it, and outside.
    pub machines: [usize; 2],
    /// Probability of such a difference by chance, adjusted for the number of groups.
    pub p_value: f64,
    /// The least that so many machines can give, adjusted as well.
    pub least: f64,
}

impl GroupStanding {
    /// What follows from it.
    pub fn verdict(&self) -> &'static str {
        match (self.p_value < ALPHA, self.value > self.others) {
            (true, true) => "worse",
            (true, false) => "better",
            (false, _) if self.least >= ALPHA => "too few machines",
            (false, _) => "cannot tell",
        }
    }
}

/// Each group against all members outside it, for all figures.
pub fn groups(members: &[(String, Member)]) -> Vec<GroupStanding> {
    let all: BTreeSet<&Figure> = members.iter().flat_map(|(_, member)| member.hours.keys()).collect();
    all.into_iter().flat_map(|figure| groups_of(members, figure)).collect()
}

fn groups_of(members: &[(String, Member)], figure: &Figure) -> Vec<GroupStanding> {
    let valued = members.iter().filter_map(|(group, member)| Some((group, member.value(figure)?)));
    let valued: Vec<(&String, f64)> = valued.collect();
    let names: BTreeSet<&String> = valued.iter().map(|(group, _)| *group).collect();
    let mut found: Vec<GroupStanding> =
        names.iter().filter_map(|group| group_of(&valued, group, figure)).collect();
    // Of two groups each is the other's rest: one question.
    if names.len() > 2 {
        let adjusted = holm(&found.iter().map(|one| one.p_value).collect::<Vec<f64>>());
        let least = holm(&found.iter().map(|one| one.least).collect::<Vec<f64>>());
        for (one, (p_value, least)) in found.iter_mut().zip(adjusted.into_iter().zip(least)) {
            (one.p_value, one.least) = (p_value, least);
        }
    }
    found
}

fn group_of(valued: &[(&String, f64)], group: &String, figure: &Figure) -> Option<GroupStanding> {
    let side = |inside: bool| -> Vec<f64> {
        valued.iter().filter(|(of, _)| (*of == group) == inside).map(|(_, value)| *value).collect()
    };
    let [outside, inside] = [side(false), side(true)];
    let values = [&outside[..], &inside[..]].concat();
    if values.iter().all(|value| *value <= 0.0) {
        return None;
    }
    let mean = |labels: &[bool], of: bool| {
        let mine = || values.iter().zip(labels).filter(|(_, label)| **label == of);
        mine().map(|(value, _)| value).sum::<f64>() / mine().count() as f64
    };
    let apart = |labels: &[bool]| (mean(labels, true) - mean(labels, false)).abs();
    let found = permute::p_value(outside.len(), inside.len(), true, apart)?;
    let average = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    Some(GroupStanding {
        group: group.clone(),
        what: figure.name(),
        unit: figure.unit(),
        value: average(&inside),
        others: average(&outside),
        machines: [inside.len(), outside.len()],
        p_value: found.p,
        least: found.least,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::periods::tests::period;
    use stats::random::uniform;
    use stats::resample::generator;

    /// A fleet whose machines have so much interference in the given hour, ns.
    fn fleet(hours: u64, irq_ns: &[&dyn Fn(u64) -> u64]) -> Vec<Member> {
        let histories: Vec<Vec<Interval>> = irq_ns.iter().map(|of| period(0, hours, of, 0)).collect();
        let mut common = Common::default();
        histories.iter().for_each(|history| common.add(history));
        let figures = common.figures();
        assert!(common.is_same_question() && figures.contains(&Figure::Late));
        let member =
            |(at, history): (usize, &Vec<Interval>)| Member::new(format!("node-{at}"), history, &figures);
        histories.iter().enumerate().map(member).collect()
    }

    /// Hours that know nothing of each other.
    fn noise(seed: u64) -> impl Fn(u64) -> u64 {
        move |hour| 1_000_000 + (uniform(&mut generator(seed, hour)) * 3e5) as u64
    }

    fn busy_evenings(of: impl Fn(u64) -> u64) -> impl Fn(u64) -> u64 {
        move |hour| of(hour) + if hour % 24 > 17 { 20_000_000 } else { 0 }
    }

    #[test]
    fn the_worse_machine_is_named_and_a_busy_evening_of_all_counts_against_none() {
        let worse = busy_evenings(|hour| noise(2)(hour) + 150_000);
        let [a, b, c] = [0, 1, 3].map(|seed| busy_evenings(noise(seed)));
        let found = standings(&fleet(72, &[&a, &b, &worse, &c]));
        let named: Vec<&Standing> = found.iter().filter(|one| one.is_worse()).collect();
        assert_eq!(named.len(), 1, "{named:?}");
        assert_eq!((named[0].machine.as_str(), named[0].what.as_str()), ("node-2", "interference by irq"));
        assert_eq!(named[0].hours, 72);
        assert_eq!(found[0], *named[0], "the worst is first");
        // Within its own history the evenings hide it.
        assert!(named[0].value < 1.2 * named[0].others, "{named:?}");
    }

    #[test]
    fn machines_that_are_alike_are_not_told_apart() {
        let mut alarms = 0;
        for round in 0..100 {
            let all: Vec<_> = (0..5).map(|at| noise(round * 5 + at)).collect();
            let all: Vec<&dyn Fn(u64) -> u64> = all.iter().map(|of| of as _).collect();
            alarms += u32::from(standings(&fleet(48, &all)).iter().any(Standing::is_worse));
        }
        assert!(alarms <= 10, "{alarms} of 100");
    }

    #[test]
    fn a_class_that_only_one_machine_has_counts_as_none_of_the_others() {
        let found = standings(&fleet(30, &[&|_| 0, &|_| 1_000_000, &|_| 0]));
        let irq = |machine: &str| {
            found.iter().find(|one| one.machine == machine && one.what == "interference by irq").unwrap()
        };
        assert!(irq("node-1").is_worse() && irq("node-1").others == 0.0, "{found:?}");
        assert!(!irq("node-0").is_worse());
    }

    #[test]
    fn a_machine_is_divided_where_it_became_another_one() {
        let all = fleet(30, &[&|hour| if hour < 12 { 1_000_000 } else { 9_000_000 }]);
        let hours: Vec<String> = all[0].hours().into_iter().map(str::to_owned).collect();
        let label = |hour: &str| match hours.iter().position(|one| one == hour).unwrap() {
            at @ ..11 => Some(format!("old{}", at / 100)),
            11..15 => None,
            _ => Some("new".to_owned()),
        };
        let parts = all[0].split(label);
        assert_eq!(parts.iter().map(|(of, _)| of.as_str()).collect::<Vec<_>>(), ["new", "old0"]);
        assert_eq!(parts.iter().map(|(_, part)| part.hours().len()).collect::<Vec<_>>(), [15, 11]);
        let irq = Figure::Interference(model::EventClass::Irq);
        let values: Vec<f64> = parts.iter().map(|(_, part)| part.value(&irq).unwrap()).collect();
        assert!((values[0] - 9.0 * values[1]).abs() < 1e-9, "{values:?}");
    }

    #[test]
    fn with_another_limit_late_threads_are_another_question() {
        let mut history = period(0, 5, |_| 1_000, 1);
        let mut common = Common::default();
        common.add(&history);
        history[3].limit_ns += 1;
        common.add(&history);
        assert!(!common.is_same_question() && !common.figures().contains(&Figure::Late));
        assert!(common.figures().contains(&Figure::Steal));
    }

    #[test]
    fn few_hours_say_nothing() {
        let found = standings(&fleet(5, &[&|_| 1_000_000, &|_| 9_000_000]));
        assert!(found.iter().all(|one| one.p_value.is_none() && !one.is_worse()), "{found:?}");
        assert!(standings(&fleet(50, &[&|_| 1_000_000])).is_empty(), "there are no others");
    }

    fn grouped(values_ns: &[(&str, u64)]) -> Vec<GroupStanding> {
        let of: Vec<_> = values_ns.iter().map(|(_, ns)| move |_: u64| *ns).collect();
        let all: Vec<&dyn Fn(u64) -> u64> = of.iter().map(|of| of as _).collect();
        let members = fleet(12, &all).into_iter();
        let all: Vec<(String, Member)> =
            values_ns.iter().map(|(group, _)| (*group).to_owned()).zip(members).collect();
        groups(&all).into_iter().filter(|one| one.what == "interference by irq").collect()
    }

    #[test]
    fn a_kernel_is_worse_only_if_there_are_machines_enough_to_say_so() {
        let few = grouped(&[("6.1", 10), ("6.1", 11), ("6.1", 12), ("6.12", 20), ("6.12", 21), ("6.12", 22)]);
        assert_eq!(few.iter().map(GroupStanding::verdict).collect::<Vec<_>>(), ["too few machines"; 2]);
        let four = [("6.1", 10), ("6.1", 11), ("6.1", 12), ("6.1", 13)];
        let enough = [&four[..], &[("6.12", 20), ("6.12", 21), ("6.12", 22), ("6.12", 23)]].concat();
        let found = grouped(&enough);
        assert_eq!(found.iter().map(GroupStanding::verdict).collect::<Vec<_>>(), ["better", "worse"]);
        assert_eq!(found[1].machines, [4, 4]);
        assert!((found[1].p_value - 2.0 / 70.0).abs() < 1e-12, "{found:?}");
        // Hours are no machines: one of each says nothing, however many hours.
        let one = grouped(&[("6.1", 10), ("6.12", 20)]);
        assert_eq!(one[0].verdict(), "too few machines");
        // With a third group there are three questions.
        let three = grouped(&[&enough[..], &[("6.18", 15), ("6.18", 16)]].concat());
        assert!((three[1].p_value - 3.0 / 210.0).abs() < 1e-12, "{three:?}");
        assert_eq!(three[2].verdict(), "cannot tell");
    }
}
