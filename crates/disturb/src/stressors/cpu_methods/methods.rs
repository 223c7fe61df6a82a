//! The methods of `cpu_methods`: each a computation with a result that is known beforehand.
//!
//! Inputs pass through `black_box`, so that no result is computed when the program is compiled.

use std::hint::black_box;

/// A name, and the computation: whether its result was right.
type Method = (&'static str, fn() -> bool);

pub(super) const METHODS: [Method; 15] = [
    ("collatz", collatz),
    ("series", series),
    ("queens", queens),
    ("matrix", matrix),
    ("sort", sort),
    ("fnv", fnv),
    ("search", search),
    ("crc", crc),
    ("sieve", sieve),
    ("bits", bits),
    ("power", power),
    ("calls", calls),
    ("random", random),
    ("circle", circle),
    ("gcd", gcd),
];

/// Integers and branches: of all starts below 10,000 the longest Collatz sequence is that of 6171,
/// of 262 terms (OEIS A006877).
fn collatz() -> bool {
    let terms = |start: u64| {
        let (mut value, mut terms) = (start, 1);
        while value != 1 {
            value = if value % 2 == 0 { value / 2 } else { 3 * value + 1 };
            terms += 1;
        }
        terms
    };
    (1..black_box(10_000)).map(|start| (terms(start), start)).max() == Some((262, 6171))
}

/// Floating-point division: the sum of 1/k² falls short of π²/6 by 1/n, nearly (Euler 1735).
fn series() -> bool {
    let n = black_box(50_000u32);
    let sum: f64 = (1..=n).rev().map(|k| 1.0 / (f64::from(k) * f64::from(k))).sum();
    let whole = std::f64::consts::PI.powi(2) / 6.0;
    (whole - sum - 1.0 / f64::from(n)).abs() < 1e-8
}

/// Branches that no predictor knows: eight queens have 92 places to stand (Nauck 1850).
fn queens() -> bool {
    fn place(row: u32, columns: u32, left: u32, right: u32) -> u32 {
        if row == 0 {
            return 1;
        }
        let mut free = 0xff & !(columns | left | right);
        let mut found = 0;
        while free != 0 {
            let at = free & free.wrapping_neg();
            free ^= at;
            found += place(row - 1, columns | at, (left | at) << 1, (right | at) >> 1);
        }
        found
    }
    place(black_box(8), 0, 0, 0) == 92
}

/// A matrix product in floating point: with entries i + j the square has n·i·j + (i + j)·Σk + Σk²
/// at i, j.
fn matrix() -> bool {
    const N: usize = 48;
    let entry = |row: usize, column: usize| (row + column) as f64;
    let a: Vec<f64> = (0..N * N).map(|at| entry(at / N, at % N)).collect();
    let a = black_box(a);
    let product = |row: usize, column: usize| (0..N).map(|k| a[row * N + k] * a[k * N + column]).sum::<f64>();
    let (sum, squares) = (N * (N - 1) / 2, (N - 1) * N * (2 * N - 1) / 6);
    let known = |row: usize, column: usize| (N * row * column + (row + column) * sum + squares) as f64;
    (0..N * N).all(|at| (product(at / N, at % N) - known(at / N, at % N)).abs() < 0.5)
}

/// Sorting: a linear congruential generator of full period meets each number once (Hull and Dobell
/// 1962).
fn sort() -> bool {
    const N: u32 = 1 << 13;
    let mut value = black_box(1u32);
    let mut all: Vec<u32> = (0..N)
        .map(|_| {
            value = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223) % N;
            value
        })
        .collect();
    all.sort_unstable();
    all.iter().enumerate().all(|(at, value)| at as u32 == *value)
}

/// Hashing: FNV-1a of "foobar" (test vector of draft-eastlake-fnv).
fn fnv() -> bool {
    let hash = |text: &[u8]| {
        text.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        })
    };
    (0..1000).all(|_| hash(black_box(b"foobar")) == 0x8594_4171_f739_67e8)
}

/// Search in a string: the Fibonacci word of 10,946 letters has 4,181 times "b", each but the last
/// followed by "a", and nowhere "bb".
fn search() -> bool {
    let (mut word, mut before) = (b"ab".to_vec(), b"a".to_vec());
    while word.len() < black_box(10_946) {
        let next = [&word[..], &before[..]].concat();
        before = std::mem::replace(&mut word, next);
    }
    let count = |what: &[u8]| word.windows(what.len()).filter(|window| *window == what).count();
    let last = usize::from(word.ends_with(b"b"));
    [count(b"b"), count(b"ba"), count(b"bb")] == [4181, 4181 - last, 0]
}

/// A checksum bit by bit: the check value of CRC-32 (ITU-T V.42) over the digits 1 to 9.
fn crc() -> bool {
    let crc = |text: &[u8]| {
        !text.iter().fold(!0u32, |crc, byte| {
            (0..8)
                .fold(crc ^ u32::from(*byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
        })
    };
    (0..200).all(|_| crc(black_box(b"123456789")) == 0xcbf4_3926)
}

/// Memory in strides: 9,592 primes lie below 100,000 (OEIS A006880).
fn sieve() -> bool {
    let below = black_box(100_000usize);
    let mut composite = vec![false; below];
    let mut primes = 0;
    for number in 2..below {
        if composite[number] {
            continue;
        }
        primes += 1;
        (number * number..below).step_by(number).for_each(|multiple| composite[multiple] = true);
    }
    primes == 9592
}

/// Bits: all numbers of 16 bits have half of their 16 · 65,536 bits set.
fn bits() -> bool {
    (0..=black_box(u16::MAX)).map(u16::count_ones).sum::<u32>() == 16 * 32_768
}

/// Division by a large prime: a^(p − 1) is 1 modulo p (Fermat 1640).
fn power() -> bool {
    let prime = black_box(1_000_000_007u64);
    let fermat = |base: u64| {
        let (mut result, mut square, mut exponent) = (1, base, prime - 1);
        while exponent > 0 {
            if exponent % 2 == 1 {
                result = result * square % prime;
            }
            square = square * square % prime;
            exponent /= 2;
        }
        result
    };
    (2..200).all(|base| fermat(base) == 1)
}

/// Calls: the twentieth Fibonacci number by its definition is 6,765.
fn calls() -> bool {
    fn fibonacci(n: u32) -> u32 {
        if n < 2 { n } else { fibonacci(black_box(n - 1)) + fibonacci(n - 2) }
    }
    fibonacci(black_box(20)) == 6765
}

/// Dependent multiplications: the 10,000th number of the minimal standard generator (Park and
/// Miller 1988).
fn random() -> bool {
    (0..10_000).fold(black_box(1u64), |value, _| value * 16_807 % 2_147_483_647) == 1_043_618_065
}

/// Transcendental functions: sin² + cos² = 1 all around.
fn circle() -> bool {
    let steps = black_box(2000u32);
    (0..steps).map(f64::from).all(|step| {
        let (sine, cosine) = step.sin_cos();
        (sine * sine + cosine * cosine - 1.0).abs() < 1e-12
    })
}

/// Remainders: of the pairs of numbers from 1 to 100 there are 6,087 without a common divisor (OEIS
/// A018805).
fn gcd() -> bool {
    let divisor = |mut a: u32, mut b: u32| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let most = black_box(100);
    (1..=most).flat_map(|a| (1..=most).map(move |b| (a, b))).filter(|(a, b)| divisor(*a, *b) == 1).count()
        == 6087
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_finds_what_is_known() {
        for (name, method) in METHODS {
            assert!(method(), "{name}");
        }
    }
}
