//! Derives a verdict from a difference and its draws: better, worse, equivalent, or cannot tell and
//! how many more runs it would take.
//!
//! *Equivalent* is claimed by two one-sided tests against a margin (TOST, Schuirmann 1987),
//! *better* and *worse* by the difference from zero; each family of probabilities is adjusted over
//! all statistics (Holm 1979). *Equivalent* takes precedence over a significant difference: that is
//! smaller than matters. More runs: the least number per side for which a repetition with the same
//! means and spreads would decide with a probability of 80 %, by the normal theory of two means.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The level of every claim.
pub const ALPHA: f64 = 0.05;
/// With what probability a repetition with more runs would decide.
pub const POWER: f64 = 0.8;
/// No more runs than this are suggested.
pub const MOST_RUNS: usize = 1_000;

/// What the runs show of a statistic; lower is better for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The other group's statistic is lower.
    Better,
    /// It is higher.
    Worse,
    /// It differs by less than the margin.
    Equivalent,
    /// These runs cannot distinguish the groups.
    CannotTell,
    /// One run per side: no conclusion about the configurations.
    OneRun,
    /// These runs do not give the statistic.
    Withheld,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Equivalent => "equivalent",
            Self::CannotTell => "cannot tell",
            Self::OneRun => "one run a side",
            Self::Withheld => "withheld",
        }
    }
}

/// How large a difference must be to matter.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Margin {
    /// In ns, for times.
    pub ns: Option<f64>,
    /// As a share of the base's value.
    pub share: Option<f64>,
}

/// Unless the user says otherwise: 1 us or 5 % of the base, whichever is more.
const USUAL_NS: f64 = 1_000.0;
const USUAL_SHARE: f64 = 0.05;

impl Margin {
    /// The margin for a statistic of this unit with this value in the base group. `floor`: of
    /// shares and rates, what three events more or fewer make.
    pub fn of(&self, unit: &str, base: f64, floor: f64) -> f64 {
        let relative = |share: f64| base.abs() * share;
        match (unit, self.ns, self.share) {
            ("ns", Some(ns), None) => ns,
            ("ns", Some(ns), Some(share)) => ns.max(relative(share)),
            ("ns", None, None) => USUAL_NS.max(relative(USUAL_SHARE)),
            (_, _, Some(share)) => relative(share),
            (_, _, None) => floor.max(relative(USUAL_SHARE)),
        }
    }
}

/// The verdict by the adjusted probabilities.
pub fn verdict(difference: f64, p_differs: f64, p_equivalent: f64) -> Verdict {
    if p_equivalent <= ALPHA {
        Verdict::Equivalent
    } else if p_differs > ALPHA {
        Verdict::CannotTell
    } else if difference > 0.0 {
        Verdict::Worse
    } else {
        Verdict::Better
    }
}

/// Runs a side that would be needed beyond the larger group's, for statistics with these variances
/// between runs; `None` beyond [`MOST_RUNS`].
pub fn more_runs(difference: f64, margin: f64, variances: [f64; 2], runs: [usize; 2]) -> Option<usize> {
    let have = runs[0].max(runs[1]);
    let decides = |runs: &usize| {
        let runs = *runs as f64;
        let error = ((variances[0] + variances[1]) / runs).sqrt();
        let Ok(student) = StudentsT::new(0.0, 1.0, 2.0 * (runs - 1.0)) else { return false };
        let power = student.inverse_cdf(POWER);
        let detectable = difference.abs() >= (student.inverse_cdf(1.0 - ALPHA / 2.0) + power) * error;
        // Both one-sided tests must pass; far from the middle one of them decides.
        let equal = margin - difference.abs() >= (student.inverse_cdf(1.0 - ALPHA) + power) * error;
        (detectable && difference != 0.0) || (equal && margin > 0.0)
    };
    (have.max(1) + 1..=MOST_RUNS).find(decides).map(|runs| runs - have)
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_words_follow_the_tests() {
        assert_eq!(verdict(5.0, 0.01, 0.9), Verdict::Worse);
        assert_eq!(verdict(-5.0, 0.01, 0.9), Verdict::Better);
        assert_eq!(verdict(5.0, 0.2, 0.2), Verdict::CannotTell);
        assert_eq!(verdict(0.1, 0.01, 0.01), Verdict::Equivalent, "distinguished, and too small to matter");
    }

    #[test]
    fn margins_are_what_the_user_says() {
        let usual = Margin::default();
        assert_eq!((usual.of("ns", 4_000.0, 0.0), usual.of("ns", 100_000.0, 0.0)), (1_000.0, 5_000.0));
        assert_eq!(usual.of("share", 0.0, 3e-6), 3e-6);
        let asked = Margin { ns: Some(200.0), share: None };
        assert_eq!((asked.of("ns", 100_000.0, 0.0), asked.of("share", 0.2, 0.0)), (200.0, 0.2 * 0.05));
        assert_eq!(Margin { ns: None, share: Some(0.1) }.of("ns", 50.0, 0.0), 5.0);
    }

    #[test]
    fn more_runs_agree_with_the_sample_size_of_textbooks() {
        // Two means one standard deviation apart, 5 %, 80 %: 17 a side (Cohen, "Statistical Power
        // Analysis", 2nd ed. 1988, table 2.4.1).
        assert_eq!(more_runs(1.0, 0.0, [1.0, 1.0], [5, 5]), Some(12));
        assert_eq!(more_runs(0.0, 0.0, [1.0, 1.0], [5, 5]), None, "no margin and no difference");
        assert_eq!(more_runs(0.01, 0.0, [1.0, 1.0], [5, 5]), None, "beyond a thousand");
    }

    proptest! {
        #[test]
        fn a_wider_margin_never_asks_for_more(difference in -5.0f64..5.0, margin in 0.0f64..5.0, wider in 0.0f64..5.0, spread in 0.1f64..9.0) {
            let runs = |margin| more_runs(difference, margin, [spread, spread], [3, 4]).unwrap_or(MOST_RUNS);
            prop_assert!(runs(margin + wider) <= runs(margin));
        }
    }
}
