//! The kernel's own counts of interrupts, softirqs and steal time, read just before and just after
//! a window.

use model::Cpus;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// Counter values, row → CPU → count.
pub type Rows = BTreeMap<String, BTreeMap<u32, u64>>;

/// One reading.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters {
    /// `/proc/interrupts`.
    pub interrupts: Rows,
    /// `/proc/softirqs`.
    pub softirqs: Rows,
    /// Steal time, ns per CPU.
    pub steal_ns: BTreeMap<u32, u64>,
    /// Idle time, ns per CPU.
    pub idle_ns: BTreeMap<u32, u64>,
}

impl Counters {
    /// Reads all three for the given CPUs. `root` is `/` but in tests.
    pub fn read(root: &Path, cpus: &Cpus) -> io::Result<Self> {
        let read = |name: &str| std::fs::read_to_string(root.join(name));
        let stat = read("proc/stat")?;
        Ok(Self {
            interrupts: rows(&read("proc/interrupts")?, cpus),
            softirqs: rows(&read("proc/softirqs")?, cpus),
            steal_ns: parse_stat(&stat, STEAL, cpus),
            idle_ns: parse_stat(&stat, IDLE, cpus),
        })
    }

    /// How much each counter grew from `self` to `later`; rows that did not grow are left out.
    #[must_use]
    pub fn growth(&self, later: &Self) -> Self {
        Self {
            interrupts: rows_growth(&self.interrupts, &later.interrupts),
            softirqs: rows_growth(&self.softirqs, &later.softirqs),
            steal_ns: times_growth(&self.steal_ns, &later.steal_ns),
            idle_ns: times_growth(&self.idle_ns, &later.idle_ns),
        }
    }
}

/// Times that grew. Idle time may go back by a tick (proc(5)).
fn times_growth(earlier: &BTreeMap<u32, u64>, later: &BTreeMap<u32, u64>) -> BTreeMap<u32, u64> {
    // One that went back says nothing.
    let grown = |(cpu, ns): (&u32, &u64)| Some((*cpu, ns.checked_sub(*earlier.get(cpu)?)?));
    later.iter().filter_map(grown).collect()
}

fn rows_growth(earlier: &Rows, later: &Rows) -> Rows {
    let mut growth = Rows::new();
    for (row, counts) in later {
        for (cpu, count) in counts {
            let before = earlier.get(row).and_then(|counts| counts.get(cpu)).copied().unwrap_or(0);
            // The kernel's per-CPU counts are 32 bits wide and wrap.
            let grown = u64::from((*count as u32).wrapping_sub(before as u32));
            if grown > 0 {
                growth.entry(row.clone()).or_default().insert(*cpu, grown);
            }
        }
    }
    growth
}

fn rows(text: &str, cpus: &Cpus) -> Rows {
    let rows = machine::cpu_table(text, Some(cpus)).unwrap_or_default();
    rows.into_iter().map(|row| (row.name, row.counts)).collect()
}

/// Columns of `cpuN` lines behind the name, from 0 (proc(5)).
const IDLE: usize = 3;
const STEAL: usize = 7;

/// A column of `cpuN` lines, in clock ticks (USER_HZ, 100 on every architecture stillcore runs on).
fn parse_stat(text: &str, column: usize, cpus: &Cpus) -> BTreeMap<u32, u64> {
    const TICK_NS: u64 = 10_000_000;
    let time = |line: &str| {
        let mut words = line.strip_prefix("cpu")?.split_whitespace();
        let cpu = words.next()?.parse().ok()?;
        Some((cpu, words.nth(column)?.parse::<u64>().ok()? * TICK_NS))
    };
    text.lines().filter_map(time).filter(|(cpu, _)| cpus.contains(*cpu)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERRUPTS: &str = "           CPU0       CPU2       CPU3
 24:          1          0         17  IO-APIC   5-edge      ACPI:Ged
LOC:      10668      11955      14194   Local timer interrupts
ERR:          0
";

    #[test]
    fn columns_are_online_cpus_not_positions() {
        let rows = super::rows(INTERRUPTS, &"2-3".parse().unwrap());
        assert_eq!(rows["LOC"], BTreeMap::from([(2, 11955), (3, 14194)]));
        assert_eq!(rows["24"], BTreeMap::from([(2, 0), (3, 17)]));
        assert!(!rows.contains_key("ERR"));
    }

    #[test]
    fn growth_wraps_at_32_bits_and_drops_what_did_not_grow() {
        let row = |count| Rows::from([("LOC".to_owned(), BTreeMap::from([(1, count)]))]);
        let earlier = Counters { interrupts: row(u64::from(u32::MAX)), ..Counters::default() };
        let later = Counters { interrupts: row(4), ..Counters::default() };
        assert_eq!(earlier.growth(&later).interrupts["LOC"][&1], 5);
        assert_eq!(later.growth(&later), Counters::default());
    }

    #[test]
    fn steal_is_the_eighth_column_and_idle_the_fourth() {
        let text = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu1 1 2 3 4 5 6 7 80 9 10\nintr 5\n";
        assert_eq!(parse_stat(text, STEAL, &Cpus::one(1)), BTreeMap::from([(1, 800_000_000)]));
        assert_eq!(parse_stat(text, IDLE, &Cpus::one(1)), BTreeMap::from([(1, 40_000_000)]));
    }

    #[test]
    fn times_that_go_back_have_not_grown() {
        let at = |ns| Counters { idle_ns: BTreeMap::from([(1, ns)]), ..Counters::default() };
        assert_eq!(at(30).growth(&at(20)), Counters::default());
        assert_eq!(at(20).growth(&at(30)).idle_ns, BTreeMap::from([(1, 10)]));
    }
}
