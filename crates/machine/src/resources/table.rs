//! The kernel's tables with a column a CPU: `/proc/interrupts` and `/proc/softirqs`.
//!
//! Format: proc(5), Linux `kernel/irq/proc.c` (`show_interrupts`): a header names the CPUs that are online, each row has as many counts,
//! then words. `ERR` and `MIS` have one count for the whole machine; they belong to no CPU.

use crate::Root;
use crate::resources::refusal::refusal;

/// One row, of which the one CPU's column is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Row {
    /// The text before the colon.
    pub(super) name: String,
    /// The CPU's count since boot.
    pub(super) count: u64,
    /// The text after the counts.
    pub(super) text: String,
}

/// The rows for the CPU, or why there are none.
pub(super) fn read(root: &Root, cpu: u32, file: &str) -> Result<Vec<Row>, String> {
    let text = root.text(file).map_err(|error| refusal(file, &error))?;
    let text = text.ok_or_else(|| format!("there is no /{file}"))?;
    parse(&text, cpu).ok_or_else(|| format!("/{file} has no column for CPU {cpu}"))
}

fn parse(text: &str, cpu: u32) -> Option<Vec<Row>> {
    let (header, body) = text.split_once('\n')?;
    let columns: Vec<_> = header.split_whitespace().collect();
    let wanted = format!("CPU{cpu}");
    let column = columns.iter().position(|name| *name == wanted)?;
    Some(body.lines().filter_map(|line| row(line, column, columns.len())).collect())
}

fn row(line: &str, column: usize, columns: usize) -> Option<Row> {
    let (name, rest) = line.split_once(':')?;
    let words: Vec<_> = rest.split_whitespace().collect();
    let counts: Vec<u64> = words.iter().take(columns).map_while(|word| word.parse().ok()).collect();
    (counts.len() == columns).then(|| Row {
        name: name.trim().to_owned(),
        count: counts[column],
        text: words[columns..].join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn columns_are_found_by_name_and_rows_of_the_whole_machine_left_out() {
        let text = "      CPU0   CPU2   CPU10\n  4:  1  2  3  IO-APIC  4-edge  ttyS0\nLOC: 5 6 7 Local timer interrupts\nERR: 0\nIPI0: 8 9 10\n";
        let rows = parse(text, 10).unwrap();
        let seen: Vec<_> = rows.iter().map(|row| (row.name.as_str(), row.count, row.text.as_str())).collect();
        assert_eq!(
            seen,
            [("4", 3, "IO-APIC 4-edge ttyS0"), ("LOC", 7, "Local timer interrupts"), ("IPI0", 10, "")]
        );
        assert_eq!(parse(text, 1), None, "an offline CPU has no column");
        assert_eq!(parse("", 0), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(CPU[0-3] |[0-9]{1,25} |[a-z:]{1,5} |\n){0,60}", cpu in 0u32..4) {
            let _ = parse(&text, cpu);
        }
    }
}
