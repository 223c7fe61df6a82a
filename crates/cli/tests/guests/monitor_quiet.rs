//! A monitor that watches isolated CPUs interrupts neither a program that never enters the kernel
//! nor one that sleeps: the kernel's counters of interrupts and softirqs, in turns without it and
//! with it.

use crate::machine::{Case, Guest};
use crate::support::print_row;
use result::{Limit, Of, Row};
use std::collections::BTreeMap;

/// Turns, seconds of a window, and the CPUs.
const ARGUMENTS: [&str; 4] = ["10", "10", "2", "3"];
/// Student's t of 95 %, two-sided, for ten differences.
const T: f64 = 2.262;

/// The case for a boot with both CPUs isolated.
pub(crate) fn case() -> Case {
    Case::new("monitor-quiet", "monitor_quiet.sh", isolated_cpus_see_no_monitor).with(&ARGUMENTS).limit(1500)
}

/// The counters of a CPU by name, of one of the two files: a line has a name, and a number a CPU.
fn of_cpu(text: &str, cpu: &str) -> BTreeMap<String, u64> {
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    let at = heads.iter().position(|head| head.strip_prefix("CPU") == Some(cpu));
    let at = at.unwrap_or_else(|| panic!("CPU {cpu} is not in {heads:?}"));
    let counter = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        Some((name.trim().to_owned(), rest.split_whitespace().nth(at)?.parse().ok()?))
    };
    lines.filter_map(counter).collect()
}

/// What a window added to each counter of a CPU.
fn added(guest: &Guest, window: &str, cpu: &str) -> BTreeMap<String, u64> {
    let mut all = BTreeMap::new();
    for file in ["interrupts", "softirqs"] {
        let read = |when: &str| of_cpu(&guest.read(&format!("{window}.{when}.{file}")), cpu);
        let before = read("before");
        for (name, count) in read("after") {
            all.insert(name.clone(), count - before.get(&name).copied().unwrap_or(0));
        }
    }
    all.retain(|_, count| *count > 0);
    all
}

fn isolated_cpus_see_no_monitor(guest: &Guest) {
    let [turns, window_s, cpus @ ..] = ARGUMENTS;
    let turns: usize = turns.parse().unwrap();
    let kernel = guest.kernel();
    for turn in 0..turns {
        assert_eq!(guest.read(&format!("code-{turn}")).trim(), "0", "{}", guest.read("errors"));
    }
    let mut failed = Vec::new();
    for (cpu, what) in cpus.into_iter().zip(["never enters the kernel", "sleeps 10 ms again and again"]) {
        let sums = |kind: &str| -> Vec<f64> {
            let of = |turn| {
                let all = added(guest, &format!("{kind}-{turn}"), cpu);
                println!("{kernel:>7} CPU {cpu} {kind}: {all:?}");
                all.values().sum::<u64>() as f64
            };
            (0..turns).map(of).collect()
        };
        let (without, with) = (sums("without"), sums("with"));
        let more: Vec<f64> = with.iter().zip(&without).map(|(with, without)| with - without).collect();
        let mean = |all: &[f64]| all.iter().sum::<f64>() / all.len() as f64;
        let (n, extra) = (turns as f64, mean(&more));
        let spread = more.iter().map(|one| (one - extra).powi(2)).sum::<f64>() / (n - 1.0);
        let half = T * (spread / n).sqrt();
        let head = format!("{kernel}: interrupts and softirqs in {window_s} s where a program {what}");
        print_row(&Row::new(format!("{head}, without a monitor"), mean(&without), "").n(turns as u64));
        print_row(&Row::new(format!("{head}, with one"), mean(&with), "").n(turns as u64));
        let row = Row::new(
            format!("{head}, more with one, beyond the interval of 95 %"),
            (extra - half).max(0.0),
            "",
        );
        print_row(&row.n(turns as u64).budget(Of::Value, Limit::AtMost(0.0)));
        if extra - half > 0.0 {
            failed.push(format!("CPU {cpu}: {extra} more, give or take {half}"));
        }
    }
    assert!(failed.is_empty(), "{kernel}: {failed:?}");
}
