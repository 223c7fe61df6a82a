//! The kernel's tables with a column a CPU: `/proc/interrupts` and `/proc/softirqs`.
//!
//! Format: proc(5), Linux `kernel/irq/proc.c` (`show_interrupts`): a header names the CPUs that are
//! online, each row has as many counts, then words. `ERR` and `MIS` have one count for the whole
//! machine; they belong to no CPU.

use model::Cpus;
use std::collections::BTreeMap;

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuCounts {
    /// The text before the colon.
    pub name: String,
    /// CPU → its count since boot.
    pub counts: BTreeMap<u32, u64>,
    /// The text after the counts, one blank between words.
    pub text: String,
}

/// The rows, with the columns of these CPUs or of all; `None` where none of them has one.
pub fn cpu_table(text: &str, cpus: Option<&Cpus>) -> Option<Vec<CpuCounts>> {
    let (header, body) = text.split_once('\n')?;
    let wanted = |word: &str| {
        let cpu = word.strip_prefix("CPU")?.parse().ok()?;
        cpus.is_none_or(|cpus| cpus.contains(cpu)).then_some(cpu)
    };
    let columns: Vec<Option<u32>> = header.split_whitespace().map(wanted).collect();
    let row = |line: &str| {
        let (name, rest) = line.split_once(':')?;
        let mut words = rest.split_whitespace();
        let mut counts = BTreeMap::new();
        for column in &columns {
            let count = words.next()?.parse().ok()?;
            counts.extend(column.map(|cpu| (cpu, count)));
        }
        let text = words.collect::<Vec<_>>().join(" ");
        Some(CpuCounts { name: name.trim().to_owned(), counts, text })
    };
    columns.iter().any(Option::is_some).then(|| body.lines().filter_map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_are_found_by_name_and_rows_of_the_whole_machine_left_out() {
        let text = "      CPU0   CPU2   CPU10\n  4:  1  2  3  IO-APIC  4-edge  ttyS0\nLOC: 5 6 7 Local timer interrupts\nERR: 0\nIPI0: 8 9 10\n";
        let rows = cpu_table(text, Some(&"2,10".parse().unwrap())).unwrap();
        let seen: Vec<_> =
            rows.iter().map(|row| (row.name.as_str(), &row.counts, row.text.as_str())).collect();
        let counts = [[2, 3], [6, 7], [9, 10]].map(|[two, ten]| BTreeMap::from([(2, two), (10, ten)]));
        assert_eq!(
            seen,
            [
                ("4", &counts[0], "IO-APIC 4-edge ttyS0"),
                ("LOC", &counts[1], "Local timer interrupts"),
                ("IPI0", &counts[2], "")
            ]
        );
        // The count of the whole machine stands in the first column.
        let first = cpu_table(text, Some(&Cpus::one(0))).unwrap();
        assert!(first.iter().all(|row| row.name != "ERR"));
        assert_eq!(cpu_table(text, Some(&Cpus::one(1))), None, "an offline CPU has no column");
        assert_eq!(cpu_table("", None), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(CPU[0-3] |[0-9]{1,25} |[a-z:]{1,5} |\n){0,60}", cpu in 0u32..4) {
            let _ = cpu_table(&text, Some(&Cpus::one(cpu)));
        }
    }
}
