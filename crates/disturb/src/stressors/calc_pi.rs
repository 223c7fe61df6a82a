//! `calc_pi`: the negative control. Decimals of π are computed over and over, with no system call
//! in the computation.
//!
//! A core that this disturbs shares something that software isolation cannot take away (an SMT
//! sibling, power, a hypervisor). Formula: Machin 1706, π/4 = 4 arctan(1/5) − arctan(1/239), each
//! arctangent by its Taylor series in fixed point.

use crate::Error;
use crate::account::{Account, asked};
use crate::job::Job;
use crate::spec::StressorSpec;
use crate::tally::Tally;
use model::stressor::Witness;
use rustix::io::Errno;
use sys::clock::{now_ns, thread_cpu_ns};

const DECIMALS: usize = 1000;
/// One limb holds nine decimals.
const BASE: u64 = 1_000_000_000;
/// Two limbs more than the decimals need absorb the truncation of some 1,000 terms.
const LIMBS: usize = 1 + DECIMALS.div_ceil(9) + 2;
/// No machine makes the 100,000 dependent divisions of one operation in less, ns: that would be
/// five a nanosecond.
const LEAST_COST_NS: u64 = 20_000;

pub(crate) const SPEC: StressorSpec = StressorSpec {
    name: "calc_pi",
    title: "the negative control: 1,000 decimals of pi, computed without system calls",
    class: "ctl",
    operation: "1,000 decimals computed and checked",
    privilege: "none",
    needs: "a CPU",
    kernel_paths: &[],
    witness: "CPU time of the thread, us (20 us an operation at the very least); every result checked against known decimals",
    cleanup: "none",
    danger: "a CPU's time; bounded by one thread at a weak nice value",
    default_rate: None,
    work,
    ..StressorSpec::PLAIN
};

fn work(job: &mut Job<'_>) -> Result<Account, Error> {
    job.begin()?;
    let mut pace = job.pace(1);
    let mut tally = Tally::default();
    let mut machin = Machin::default();
    let (t0_ns, cpu0_ns) = (now_ns(), thread_cpu_ns());
    while pace.proceed(1) {
        let right = tally.count(if is_pi(machin.compute()) { Ok(()) } else { Err(Errno::BADMSG) });
        job.meter.add(u64::from(right));
    }
    let (t1_ns, cpu1_ns) = (now_ns(), thread_cpu_ns());
    let (expected, seen) = (tally.ok * LEAST_COST_NS / 1000, (cpu1_ns - cpu0_ns).max(0) as u64 / 1000);
    let witness = Witness { name: "thread CPU time, us".into(), expected, seen };
    let wrong = tally.failed.values().sum::<u64>();
    let wrong = (wrong > 0).then(|| format!("{wrong} of {} results were not pi", tally.ok + wrong));
    Ok(Account { asked: asked(job.rate, t0_ns, t1_ns), tally, t0_ns, t1_ns, witness, wrong })
}

/// Whether fixed-point limbs hold π, by decimals anyone can look up: the first 36, the six nines
/// from the 762nd (the "Feynman point"), and the ten that end the first thousand.
pub(super) fn is_pi(limbs: &[u64; LIMBS]) -> bool {
    let block = |index: usize| limbs[1 + index];
    // Decimals 9n+1 … 9n+9 are block n: 757–765 and 766–774 hold the nines of 762–767.
    let first =
        [block(0), block(1), block(2), block(3)] == [141_592_653, 589_793_238, 462_643_383, 279_502_884];
    let nines = block(84) % 10_000 == 9_999 && block(85) / 10_000_000 == 99;
    // Decimals 991–999 are block 110; the thousandth begins block 111.
    let last = block(110) == 216_420_198 && block(111) / 100_000_000 == 9;
    limbs[0] == 3 && first && nines && last
}

/// The decimals as text, without the 3 and the point.
pub(super) fn decimals(limbs: &[u64; LIMBS]) -> String {
    let mut text = limbs[1..].iter().map(|limb| format!("{limb:09}")).collect::<Vec<_>>().concat();
    text.truncate(DECIMALS);
    text
}

/// The three numbers that the series needs; limb 0 is the integer part, each further limb nine
/// decimals.
#[derive(Debug)]
pub(super) struct Machin {
    sum: [u64; LIMBS],
    power: [u64; LIMBS],
    term: [u64; LIMBS],
}

impl Default for Machin {
    fn default() -> Self {
        Self { sum: [0; LIMBS], power: [0; LIMBS], term: [0; LIMBS] }
    }
}

impl Machin {
    /// π, truncated, with an error in the last two limbs.
    pub(super) fn compute(&mut self) -> &[u64; LIMBS] {
        self.sum.fill(0);
        self.add_arctan(16, 5, true);
        self.add_arctan(4, 239, false);
        &self.sum
    }

    /// Adds `factor · arctan(1/inverse)` to the sum, or subtracts it.
    fn add_arctan(&mut self, factor: u64, inverse: u64, mut adding: bool) {
        self.power.fill(0);
        self.power[0] = factor;
        divide(&mut self.power, inverse, 0);
        let mut first = 0;
        for odd in (1u64..).step_by(2) {
            self.term[first..].copy_from_slice(&self.power[first..]);
            divide(&mut self.term, odd, first);
            if adding {
                add(&mut self.sum, &self.term, first);
            } else {
                subtract(&mut self.sum, &self.term, first);
            }
            adding = !adding;
            divide(&mut self.power, inverse * inverse, first);
            // Limbs that have become zero stay zero: skipping them halves the work.
            while first < LIMBS && self.power[first] == 0 {
                first += 1;
            }
            if first == LIMBS {
                return;
            }
        }
    }
}

/// Divides by a small number; the limbs before `first` are zero.
fn divide(number: &mut [u64; LIMBS], divisor: u64, first: usize) {
    let mut remainder = 0;
    for limb in &mut number[first..] {
        let value = remainder * BASE + *limb;
        *limb = value / divisor;
        remainder = value % divisor;
    }
}

fn add(sum: &mut [u64; LIMBS], term: &[u64; LIMBS], first: usize) {
    let mut carry = 0;
    for index in (0..LIMBS).rev() {
        if index < first && carry == 0 {
            return;
        }
        let value = sum[index] + carry + if index < first { 0 } else { term[index] };
        (sum[index], carry) = if index > 0 && value >= BASE { (value - BASE, 1) } else { (value, 0) };
    }
}

fn subtract(sum: &mut [u64; LIMBS], term: &[u64; LIMBS], first: usize) {
    let mut borrow = 0;
    for index in (0..LIMBS).rev() {
        if index < first && borrow == 0 {
            return;
        }
        let less = borrow + if index < first { 0 } else { term[index] };
        (sum[index], borrow) =
            if sum[index] >= less { (sum[index] - less, 0) } else { (sum[index] + BASE - less, 1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// π by another road: the digit-by-digit spigot of Rabinowitz and Wagon (American Mathematical
    /// Monthly 102, 1995).
    fn spigot(digits: usize) -> String {
        let mut remainders = vec![2u64; digits * 10 / 3 + 1];
        let (mut out, mut nines, mut held) = (String::new(), 0, None::<u64>);
        while out.len() < digits {
            let mut carry = 0;
            for index in (1..remainders.len()).rev() {
                let value = remainders[index] * 10 + carry * (index as u64 + 1);
                remainders[index] = value % (2 * index as u64 + 1);
                carry = value / (2 * index as u64 + 1);
            }
            let value = remainders[0] * 10 + carry;
            remainders[0] = value % 10;
            // A digit is held back until it is known whether a carry will run through the nines
            // behind it.
            match value / 10 {
                9 => nines += 1,
                digit => {
                    let carried = digit / 10;
                    if let Some(held) = held {
                        out.push_str(&(held + carried).to_string());
                    }
                    out.push_str(&if carried == 1 { "0" } else { "9" }.repeat(nines));
                    (held, nines) = (Some(digit % 10), 0);
                }
            }
        }
        out.truncate(digits);
        out
    }

    #[test]
    fn two_algorithms_agree_on_a_thousand_decimals() {
        let mut machin = Machin::default();
        let limbs = machin.compute();
        // The spigot's own last digits are not settled; a few more than needed are computed.
        assert_eq!(format!("{}{}", limbs[0], decimals(limbs)), spigot(DECIMALS + 10)[..=DECIMALS]);
    }

    #[test]
    fn the_check_accepts_pi_again_and_again_and_refuses_anything_else() {
        let mut machin = Machin::default();
        assert!(is_pi(machin.compute()));
        let mut limbs = *machin.compute();
        assert!(is_pi(&limbs));
        for index in [0, 1, 4, 85, 86, 111, 112] {
            let limb = limbs[index];
            limbs[index] = limb ^ 0x1fff_ffff;
            assert!(!is_pi(&limbs), "limb {index}");
            limbs[index] = limb;
        }
    }
}
