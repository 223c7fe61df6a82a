//! The spectrum of real values whose number is a power of two.
//!
//! Two neighbours are taken as one complex value, so a transform of half the length is enough
//! (W. H. Press and others, *Numerical Recipes*, 3rd ed. 2007, §12.3.2). That transform is
//! `rustfft`'s for powers of two. The planner of the library is up to twice as fast with AVX, but
//! it brings code for all other lengths and for vector units, which this crate compiled twice.

use rustfft::algorithm::Radix4;
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum};
use std::f64::consts::TAU;

/// A transform of one length, with its sines and its room.
pub(crate) struct Transform<T> {
    half: Radix4<T>,
    /// e^(-2πik/length), k up to length/2.
    turns: Vec<Complex<T>>,
    packed: Vec<Complex<T>>,
    room: Vec<Complex<T>>,
    a_half: T,
}

/// A number that every kind of float has, to its precision.
fn float<T: FftNum>(number: f64) -> T {
    T::from_f64(number).unwrap_or_else(T::zero)
}

impl<T: FftNum> Transform<T> {
    /// For `length` values: a power of two, at least 2.
    pub(crate) fn new(length: usize) -> Self {
        debug_assert!(length.is_power_of_two() && length >= 2, "{length}");
        let half = Radix4::new(length / 2, FftDirection::Forward);
        let turn = |k: usize| {
            let (sin, cos) = (-TAU * k as f64 / length as f64).sin_cos();
            Complex::new(float(cos), float(sin))
        };
        let zero = Complex::new(T::zero(), T::zero());
        Self {
            turns: (0..=length / 2).map(turn).collect(),
            packed: vec![zero; length / 2],
            room: vec![zero; half.get_inplace_scratch_len()],
            half,
            a_half: float(0.5),
        }
    }

    /// Of how many values it is.
    pub(crate) fn length(&self) -> usize {
        2 * self.packed.len()
    }

    /// The coefficients at 0, 1, … length/2 turns over the values, as many as are taken.
    pub(crate) fn of(&mut self, values: &[T]) -> impl Iterator<Item = Complex<T>> {
        debug_assert_eq!(values.len(), self.length());
        for (pair, both) in self.packed.iter_mut().zip(values.chunks_exact(2)) {
            *pair = Complex::new(both[0], both[1]);
        }
        self.half.process_with_scratch(&mut self.packed, &mut self.room);
        // Of a power of two the remainder is a mask.
        let (packed, n) = (&self.packed[..], self.packed.len());
        let (at, a_half) = (move |k: usize| packed[k & (n - 1)], self.a_half);
        self.turns.iter().enumerate().map(move |(k, turn)| {
            let (here, there) = (at(k), at(n - k).conj());
            let (even, odd) = (here + there, here - there);
            // Less i times half of the odd part, turned.
            let odd = odd * turn;
            Complex::new(even.re + odd.im, even.im - odd.re).scale(a_half)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resample::generator;
    use fixture::noise::normal;

    fn is_the_sum_of_the_definition<T: FftNum + Into<f64>>(precision: f64) {
        let mut random = generator(11, 0);
        for bits in 1..9 {
            let length = 1usize << bits;
            let values: Vec<f64> = (0..length).map(|_| normal(&mut random)).collect();
            let rounded: Vec<T> = values.iter().map(|value| float(*value)).collect();
            let mut transform = Transform::new(length);
            assert_eq!(transform.length(), length);
            for _ in 0..2 {
                let found: Vec<_> = transform.of(&rounded).collect();
                assert_eq!(found.len(), length / 2 + 1);
                for (k, found) in found.iter().enumerate() {
                    let term = |(at, value): (usize, &f64)| {
                        Complex::cis(-TAU * (k * at % length) as f64 / length as f64) * value
                    };
                    let expected: Complex<f64> = values.iter().enumerate().map(term).sum();
                    let found = Complex::<f64>::new(found.re.into(), found.im.into());
                    assert!((found - expected).norm() < precision * length as f64, "{length} {k}");
                }
            }
        }
    }

    #[test]
    fn it_is_the_sum_of_the_definition() {
        is_the_sum_of_the_definition::<f64>(1e-11);
        is_the_sum_of_the_definition::<f32>(1e-5);
    }
}
