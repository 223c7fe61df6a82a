//! Logarithm, exponential and rounding by additions, multiplications and divisions alone.
//!
//! IEEE 754 defines those to the last bit, and not the functions of a system's mathematical
//! library: with these, a set is the same on every machine. They have no branches, so that a
//! compiler turns loops over them into vector instructions. Within 2 units in the last place.
//!
//! Reduction and series: Muller, "Elementary Functions: Algorithms and Implementation", 3rd ed.
//! 2016, ch. 11.

/// ln 2 in two parts: the first has 32 trailing zero bits, so that a multiple of it is exact.
const LN2_HIGH: f64 = 6.931_471_803_691_238e-1;
const LN2_LOW: f64 = 1.908_214_929_270_587_7e-10;

/// Adding and subtracting 2^52 rounds to the nearest integer, ties to even.
const ROUNDER: f64 = 4_503_599_627_370_496.0;

/// The nearest integer of 0 ≤ x < 2^52, ties to even.
#[inline(always)]
pub(crate) fn nearest(x: f64) -> f64 {
    (x + ROUNDER) - ROUNDER
}

/// The integer at or below 0 ≤ x < 2^52.
#[inline(always)]
pub(crate) fn floor(x: f64) -> f64 {
    let nearest = nearest(x);
    nearest - if nearest > x { 1.0 } else { 0.0 }
}

/// The natural logarithm of a positive normal number.
///
/// x = 2^e m with m from √½ to √2; ln m = 2 artanh((m - 1) / (m + 1)), whose argument is at most
/// 0.172: ten terms reach 2^-55.
#[inline(always)]
#[expect(clippy::many_single_char_names, reason = "the names of the literature")]
pub(super) fn ln(x: f64) -> f64 {
    const ROOT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let shifted = x.to_bits().wrapping_sub(ROOT_HALF);
    let m = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff).wrapping_add(ROOT_HALF));
    // The exponent, biased by 2^11 to be positive, as the low bits of a number with unit 1.
    let biased = (shifted >> 52).wrapping_add(1 << 11) & 0xfff;
    let e = sign_extended(biased);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut sum = 1.0 / 21.0;
    for odd in [19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0] {
        sum = sum * z + 1.0 / odd;
    }
    let series = 2.0 * s * (z * sum) + 2.0 * s;
    e * LN2_HIGH + (series + e * LN2_LOW)
}

/// A 12-bit two's complement number plus 2^11, as the number.
#[inline(always)]
fn sign_extended(biased: u64) -> f64 {
    f64::from_bits(ROUNDER.to_bits() | biased) - (ROUNDER + 2048.0)
}

/// The exponential of |x| ≤ 700.
///
/// x = k ln 2 + r with |r| ≤ 0.35; the series of e^r to r^14.
#[inline(always)]
pub(super) fn exp(x: f64) -> f64 {
    // 1.5 * 2^52 rounds numbers of both signs, and leaves the integer in the low bits.
    const SIGNED: f64 = 6_755_399_441_055_744.0;
    let rounded = x * std::f64::consts::LOG2_E + SIGNED;
    let k = rounded - SIGNED;
    let r = (x - k * LN2_HIGH) - k * LN2_LOW;
    let mut sum = 1.0;
    for divisor in [14.0, 13.0, 12.0, 11.0, 10.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0] {
        sum = sum * (r * (1.0 / divisor)) + 1.0;
    }
    let exponent = rounded.to_bits().wrapping_sub(SIGNED.to_bits()).wrapping_add(1023);
    sum * f64::from_bits(exponent << 52)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// In units of the last place of what the system's library says, which is itself within one.
    fn ulps(ours: f64, theirs: f64) -> f64 {
        (ours - theirs).abs() / (theirs.abs() * f64::EPSILON).max(f64::MIN_POSITIVE)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn close_to_the_system_library(bits in any::<u64>(), x in -600f64..600.0) {
            let u = super::super::stream::unit(bits);
            prop_assert!(ulps(ln(u), u.ln()) < 3.0 || (ln(u) - u.ln()).abs() < 1e-16, "ln {u}");
            let large = f64::from_bits((bits >> 12) | (x.abs() as u64 + 900) << 52);
            prop_assert!(ulps(ln(large), large.ln()) < 3.0 || (ln(large) - large.ln()).abs() < 1e-16, "ln {large}");
            prop_assert!(ulps(exp(x), x.exp()) < 3.0, "exp {x}");
        }

        #[test]
        fn rounding_is_exact(whole in 0u64..(1 << 51), part in 0f64..1.0) {
            let x = whole as f64 + part;
            prop_assert_eq!(floor(x).to_bits(), x.floor().to_bits());
            prop_assert_eq!(nearest(x).to_bits(), x.round_ties_even().to_bits());
        }
    }

    #[test]
    fn exact_where_it_must_be() {
        assert_eq!(ln(1.0).to_bits(), 0f64.to_bits());
        assert_eq!(exp(0.0).to_bits(), 1f64.to_bits());
        assert_eq!(floor(3.0).to_bits(), 3f64.to_bits());
    }

    /// The same bits on every machine: stored from one.
    #[test]
    fn bits_are_fixed() {
        assert_eq!([ln(0.1).to_bits(), ln(3e7).to_bits()], [0xc002_6bb1_bbb5_5515, 0x4031_377a_2be9_7aa3]);
        assert_eq!(
            [exp(0.1).to_bits(), exp(-20.5).to_bits()],
            [0x3ff1_aec7_b35a_00d4, 0x3e15_7a3a_feed_00ac]
        );
    }
}
