//! Derives a verdict and its reason from three values of a statistic and the intervals of their
//! differences.
//!
//! The verdict is worse or better only if disturbed differs from both controls to the same side,
//! beyond chance, and by more than the controls differ from each other. Two idle windows that
//! differ show the machine's own variation.

use crate::compare::{Comparison, Verdict};
use crate::words::figure as say;

/// One statistic in the three phases.
#[derive(Debug, Clone, PartialEq)]
pub struct Trio {
    /// What is compared.
    pub figure: String,
    /// Its unit.
    pub unit: &'static str,
    /// The CPU.
    pub cpu: u32,
    /// A condition that the statistic's name does not state; follows the name in every sentence.
    pub condition: Option<&'static str>,
    /// Before, disturbed, after.
    pub values: [Option<f64>; 3],
    /// 95 % intervals of disturbed minus before and minus after.
    pub intervals: [Option<[f64; 2]>; 2],
}

impl Trio {
    /// The statistic with its condition, for a sentence.
    pub(super) fn said(&self) -> String {
        self.condition.map_or_else(|| self.figure.clone(), |what| format!("{} ({what})", self.figure))
    }
}

/// Whether the differences are beyond chance.
#[derive(Debug, Clone, PartialEq)]
pub enum Chance {
    /// Both intervals must exclude zero.
    Intervals,
    /// A test over several statistics at once: the adjusted probability, and their number.
    Tested {
        /// Probability after adjustment; the larger of both controls.
        adjusted_p: f64,
        /// Number of statistics that were tested together.
        family: usize,
    },
}

/// Nothing is concluded; the reason is given.
pub fn withheld(trio: Trio, reason: String) -> Comparison {
    comparison(trio, Verdict::Withheld, reason)
}

/// The verdict.
pub fn decide(trio: Trio, chance: &Chance) -> Comparison {
    let [Some(before), Some(disturbed), Some(after)] = trio.values else {
        let reason =
            format!("{}: a phase has too few samples for this figure, so it is not compared", trio.said());
        return withheld(trio, reason);
    };
    let effects = [disturbed - before, disturbed - after];
    let least = effects[0].abs().min(effects[1].abs());
    let drift = (before - after).abs();
    let Trio { unit, .. } = &trio;
    let values = format!(
        "disturbed {} was {} against {} and {} idle",
        trio.said(),
        say(disturbed, unit),
        say(before, unit),
        say(after, unit)
    );
    let (verdict, sentence) = if effects.iter().all(|effect| *effect == 0.0) {
        (Verdict::CannotTell, format!("{values}: no difference was seen"))
    } else if effects[0] * effects[1] <= 0.0 {
        (Verdict::CannotTell, format!("{values}, not beyond both idle controls on one side: inconclusive"))
    } else if least <= drift {
        let sentence = format!(
            "{values}; the two idle controls differ by {} themselves, no less than the {} between disturbed and the nearer one: \
             inconclusive",
            say(drift, unit),
            say(least, unit)
        );
        (Verdict::CannotTell, sentence)
    } else if let Some(doubt) = doubt(&trio, effects[0] > 0.0, chance) {
        (Verdict::CannotTell, format!("{values}; {doubt}: inconclusive"))
    } else {
        let verdict = if effects[0] > 0.0 { Verdict::Worse } else { Verdict::Better };
        (verdict, format!("{values}: distinguished"))
    };
    comparison(trio, verdict, sentence)
}

/// Why chance could have done it.
fn doubt(trio: &Trio, higher: bool, chance: &Chance) -> Option<String> {
    match chance {
        Chance::Tested { adjusted_p, family } if *adjusted_p > 0.05 => {
            let together = if *family > 1 {
                format!(", allowing for the {family} classes looked at")
            } else {
                String::new()
            };
            Some(format!("counts so far apart come by chance with probability {adjusted_p:.2}{together}"))
        }
        Chance::Tested { .. } => None,
        Chance::Intervals => {
            let beyond = |interval: &Option<[f64; 2]>| {
                interval.is_some_and(|[low, high]| if higher { low > 0.0 } else { high < 0.0 })
            };
            if trio.intervals.iter().all(beyond) {
                return None;
            }
            if trio.intervals.contains(&None) {
                return Some(
                    "too little of the time is free of single long stalls to say what chance does".to_owned(),
                );
            }
            let intervals: Vec<String> =
                trio.intervals.iter().flatten().map(|i| interval(*i, trio.unit)).collect();
            Some(format!(
                "the 95 % intervals of the difference ({}) do not both leave zero out",
                intervals.join(" and ")
            ))
        }
    }
}

fn interval([low, high]: [f64; 2], unit: &str) -> String {
    format!("{} to {}", say(low, unit), say(high, unit))
}

fn comparison(trio: Trio, verdict: Verdict, sentence: String) -> Comparison {
    let [idle_before, disturbed, idle_after] = trio.values;
    let [versus_before, versus_after] = trio.intervals;
    Comparison {
        figure: trio.figure,
        unit: trio.unit.to_owned(),
        cpu: trio.cpu,
        idle_before,
        disturbed,
        idle_after,
        versus_before,
        versus_after,
        verdict,
        sentence,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trio(values: [f64; 3], intervals: [[f64; 2]; 2]) -> Trio {
        let figure = "wakeup p99".to_owned();
        let (values, intervals) = (values.map(Some), intervals.map(Some));
        Trio { figure, unit: "ns", cpu: 1, condition: None, values, intervals }
    }

    #[test]
    fn beyond_both_controls_and_their_difference_is_a_verdict() {
        let comparison =
            decide(trio([12_000.0, 41_000.0, 13_000.0], [[20e3, 35e3], [19e3, 34e3]]), &Chance::Intervals);
        assert_eq!(comparison.verdict, Verdict::Worse);
        assert_eq!(
            comparison.sentence,
            "disturbed wakeup p99 was 41.0 us against 12.0 us and 13.0 us idle: distinguished"
        );
        let comparison =
            decide(trio([41e3, 12e3, 40e3], [[-35e3, -20e3], [-34e3, -19e3]]), &Chance::Intervals);
        assert_eq!(comparison.verdict, Verdict::Better);
    }

    #[test]
    fn controls_that_differ_more_forbid_a_verdict() {
        let comparison = decide(trio([12e3, 24e3, 21e3], [[5e3, 15e3], [1e3, 5e3]]), &Chance::Intervals);
        assert_eq!(comparison.verdict, Verdict::CannotTell);
        assert!(
            comparison.sentence.contains("differ by 9.00 us themselves, no less than the 3.00 us"),
            "{}",
            comparison.sentence
        );
    }

    #[test]
    fn between_the_controls_or_inside_an_interval_is_no_verdict() {
        let comparison = decide(trio([10.0, 15.0, 20.0], [[1.0, 9.0], [-9.0, -1.0]]), &Chance::Intervals);
        assert_eq!(comparison.verdict, Verdict::CannotTell);
        let comparison = decide(trio([10.0, 15.0, 10.0], [[1.0, 9.0], [-1.0, 9.0]]), &Chance::Intervals);
        assert_eq!(comparison.verdict, Verdict::CannotTell);
        assert!(comparison.sentence.contains("-1 ns to 9 ns"), "{}", comparison.sentence);
    }

    #[test]
    fn too_few_samples_withhold() {
        let none = Trio { values: [Some(1.0), None, Some(1.0)], ..trio([0.0; 3], [[0.0; 2]; 2]) };
        assert_eq!(decide(none, &Chance::Intervals).verdict, Verdict::Withheld);
    }

    #[test]
    fn a_test_over_many_decides_by_its_adjusted_probability() {
        let rates = trio([0.0, 2.0, 0.1], [[1.0, 3.0], [1.0, 3.0]]);
        let by = |adjusted_p| decide(rates.clone(), &Chance::Tested { adjusted_p, family: 15 }).verdict;
        assert_eq!((by(0.01), by(0.2)), (Verdict::Worse, Verdict::CannotTell));
    }
}
