//! Whether repetitions of two or more groups bear out a statement about them: it holds, it fails,
//! or so many repetitions do not decide it.
//!
//! Each quantity has its own instrument: numbers without chance are compared as they are, counts by
//! the exact test of two Poisson rates, anything else by exchanging the labels of repetitions. Each
//! direction of a statement is tested at half of [`ALPHA`], so that of two groups that do not
//! differ less than one in twenty is called different, either way.

mod exchange;
mod order;
mod power;
mod ratio;
mod single;
mod trend;

pub use order::{Pair, order};
pub use power::{Assumed, EFFECT, POWER, largest_spread, least_events, power};
pub use ratio::{ratio_at_least, ratio_between};
pub use single::{absent, at_least, at_most, present};
pub use trend::rising;

/// The share of wrong verdicts where there is no effect, both directions together: so much below
/// one in twenty that a thousand studies without an effect do not exceed it by chance.
pub const ALPHA: f64 = 0.04;

/// What kind of number is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// The same in every repetition, but for what is measured: a calculation, a number of nodes.
    Constant,
    /// Events, independent of one another, over the same time or number of operations in every
    /// repetition.
    Count,
    /// Anything else: times, shares.
    Measured,
}

/// What repetitions show of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// It holds.
    Holds,
    /// The opposite does.
    Fails,
    /// So many repetitions do not decide it.
    Undecided,
}

/// A finding with its probabilities.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Decision {
    /// What is shown.
    pub finding: Finding,
    /// Probability of what was seen, or of more of it, were the statement false; none where chance
    /// has no part.
    pub p_false: Option<f64>,
    /// The same were it true.
    pub p_true: Option<f64>,
}

impl Decision {
    /// By the probabilities, each at half of [`ALPHA`].
    fn tested(p_false: f64, p_true: f64) -> Self {
        let finding = if p_false <= ALPHA / 2.0 {
            Finding::Holds
        } else if p_true <= ALPHA / 2.0 {
            Finding::Fails
        } else {
            Finding::Undecided
        };
        Self { finding, p_false: Some(p_false), p_true: Some(p_true) }
    }

    /// Of numbers in which chance has no part.
    fn known(holds: bool) -> Self {
        let finding = if holds { Finding::Holds } else { Finding::Fails };
        Self { finding, p_false: None, p_true: None }
    }

    /// Where there is nothing to judge.
    const NOTHING: Self = Self { finding: Finding::Undecided, p_false: None, p_true: None };
}

/// Whether repetitions agree in every number.
fn constant(values: &[f64]) -> bool {
    values.windows(2).all(|pair| pair[0].total_cmp(&pair[1]).is_eq())
}

#[cfg(test)]
mod tests;
