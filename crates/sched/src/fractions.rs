//! The sign of a sum of fractions, exactly: no verdict depends on the rounding of a quotient.
//!
//! A sum of C/T over many tasks has no common denominator that fits a machine word. Its sign needs
//! none: whole parts are added, then the remainders are divided on, 60 binary digits a round, as in
//! long division. With k remainders left, the sum lies in [whole, whole + k) units of the last
//! digit, so that a round ends the search unless whole is in (-k, 0]. A sum that is not 0 is at
//! least 1 / L away from it, L the product of the denominators; after as many digits it is 0.

use std::cmp::Ordering;
use std::collections::BTreeMap;

/// Digits per round: a remainder below 2^64 shifted by this many fits 128 bits.
const DIGITS: u32 = 60;

/// Most divisions of one question: thousands of unlike denominators whose sum is 0 or close to it
/// stay undecided.
const MOST_DIVISIONS: u64 = 1 << 27;

/// `over / under`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fraction {
    pub(crate) over: i128,
    /// At least 1.
    pub(crate) under: u64,
}

impl Fraction {
    /// `over / under`; both are sizes of times or counts, far below 2^127.
    pub(crate) fn new(over: impl Into<i128>, under: u64) -> Self {
        Self { over: over.into(), under }
    }

    /// A whole number.
    pub(crate) fn whole(value: impl Into<i128>) -> Self {
        Self::new(value, 1)
    }
}

/// A question that would take too long, or numbers beyond a machine word: neither yes nor no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Open;

/// Whether the sum is below, at or above 0.
pub(crate) fn sign(terms: impl IntoIterator<Item = Fraction>) -> Result<Ordering, Open> {
    let mut whole = 0i128;
    let mut remainders: BTreeMap<u64, u64> = BTreeMap::new();
    for term in terms {
        let under = i128::from(term.under);
        whole = whole.checked_add(term.over.div_euclid(under)).ok_or(Open)?;
        let rest = u64::try_from(term.over.rem_euclid(under)).map_err(|_| Open)?;
        let sum = remainders.entry(term.under).or_default();
        let (added, carried) = sum.overflowing_add(rest);
        if carried || added >= term.under {
            whole = whole.checked_add(1).ok_or(Open)?;
            *sum = added.wrapping_sub(term.under);
        } else {
            *sum = added;
        }
    }
    remainders.retain(|_, rest| *rest > 0);
    let bits = |value: u64| u64::from(u64::BITS - value.leading_zeros());
    let mut digits_left: u64 = remainders.keys().map(|under| bits(*under)).sum::<u64>() + 64;
    let mut divisions = 0u64;
    loop {
        let count = remainders.len() as i128;
        if whole > 0 || (whole == 0 && count > 0) {
            return Ok(Ordering::Greater);
        }
        if whole <= -count {
            return Ok(whole.cmp(&0));
        }
        if digits_left == 0 {
            return Ok(Ordering::Equal);
        }
        divisions += remainders.len() as u64;
        if divisions > MOST_DIVISIONS {
            return Err(Open);
        }
        // Here -count < whole < 0, so that this fits for any count of tasks.
        whole <<= DIGITS;
        for (under, rest) in &mut remainders {
            let moved = u128::from(*rest) << DIGITS;
            whole += (moved / u128::from(*under)) as i128;
            *rest = (moved % u128::from(*under)) as u64;
        }
        remainders.retain(|_, rest| *rest > 0);
        digits_left = digits_left.saturating_sub(u64::from(DIGITS));
    }
}

/// Whether the sum is at most 0.
pub(crate) fn at_most_zero(terms: impl IntoIterator<Item = Fraction>) -> Result<bool, Open> {
    sign(terms).map(|sign| sign != Ordering::Greater)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fraction((over, under): (i64, u64)) -> Fraction {
        Fraction::new(over, under)
    }

    #[test]
    fn thirds_add_up_to_one_and_large_primes_are_distinguished() {
        let third = Fraction::new(1, 3);
        assert_eq!(sign([third, third, third, Fraction::whole(-1)]), Ok(Ordering::Equal));
        assert_eq!(sign([]), Ok(Ordering::Equal));
        // 1/p - 1/q differ by 6 parts in 10^36.
        let (p, q) = (999_999_999_999_999_989, 999_999_999_999_999_983);
        assert_eq!(sign([Fraction::new(1, p), Fraction::new(-1, q)]), Ok(Ordering::Less));
        assert_eq!(sign([Fraction::new(-1, p), Fraction::new(1, q)]), Ok(Ordering::Greater));
        assert_eq!(
            sign([Fraction::new(u64::MAX - 1, u64::MAX), Fraction::new(2, u64::MAX), Fraction::whole(-1)]),
            Ok(Ordering::Greater)
        );
    }

    proptest! {
        #[test]
        fn as_over_a_common_denominator(
            terms in prop::collection::vec((-30i64..30, 1u64..13), 0..7), extra in -1i64..2,
        ) {
            // 27720 is a multiple of 1 to 12.
            let sum: i64 = terms.iter().map(|(over, under)| over * (27_720 / *under as i64)).sum();
            let all = terms.iter().copied().map(fraction);
            prop_assert_eq!(sign(all.clone()), Ok(sum.cmp(&0)));
            // Subtracting the same sum leaves 0, or the small added part.
            let back = Fraction::new(-sum, 27_720);
            let little = Fraction::new(extra, 1 << 50);
            prop_assert_eq!(sign(all.chain([back, little])), Ok(extra.cmp(&0)));
        }
    }
}
