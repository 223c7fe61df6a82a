//! `resources.txt` of ros2-performance (`performance_metrics/src/resource_usage_logger.cpp`),
//! written and read.
//!
//! Its `cpu` is the process's CPU time of the last interval over all CPUs of the machine, its `rss`
//! the largest so far. The three heap values are those of glibc's `mallinfo`; where they are not
//! counted they are 0.

use super::table::{self, Column, Generation, Row, significant};
use model::Error;
use serde::{Deserialize, Serialize};
use std::path::Path;

const COLUMNS: &[Column] = &[
    Column::new("time[ms]", "time_ms", 15),
    Column::new("cpu[%]", "cpu_perc", 10),
    Column::new("arena[KB]", "arena_KB", 15),
    Column::new("in_use[KB]", "in_use_KB", 15),
    Column::new("mmap[KB]", "mmap_KB", 15),
    Column::new("rss[KB]", "rss_KB", 15),
    Column::new("vsz[KB]", "vsz_KB", 15),
];
/// Columns that a header line must have: time, cpu, rss.
const NEEDED: &[usize] = &[0, 1, 5];

/// What a process used at one time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Used {
    /// Since the start, ms.
    pub time_ms: u64,
    /// CPU time of the last interval, percent of all CPUs.
    pub cpu_percent: f64,
    /// Peak resident memory so far, KiB.
    pub rss_kib: u64,
    /// Address space, KiB.
    pub vsz_kib: u64,
}

/// The text of `resources.txt`.
pub fn write(rows: &[Used], generation: Generation) -> String {
    let mut text = table::header(COLUMNS, generation);
    for row in rows {
        let cells = [row.time_ms.to_string(), significant(row.cpu_percent, 2)];
        let heap = std::iter::repeat_n("0".to_owned(), 3);
        let memory = [row.rss_kib, row.vsz_kib].map(|kib| kib.to_string());
        text.push_str(&table::line(COLUMNS, cells.into_iter().chain(heap).chain(memory)));
    }
    text
}

/// The rows of a `resources.txt` of either generation.
pub fn read(path: &Path, text: &str) -> Result<Vec<Used>, Error> {
    let mut lines = text.lines().zip(1..);
    let Some(header) = lines.by_ref().find_map(|(line, _)| table::find_header(COLUMNS, NEEDED, line)) else {
        return Err(Error::invalid(
            path.display(),
            "no header",
            "a line of column names with time, cpu and rss",
        ));
    };
    let rows = lines.filter(|(line, _)| !line.trim().is_empty());
    rows.map(|(line, number)| {
        let row = Row::of(path, number, &header, line)?;
        let number = |column| row.number(column, COLUMNS);
        Ok(Used {
            time_ms: number(0)? as u64,
            cpu_percent: number(1)?,
            rss_kib: number(5)? as u64,
            vsz_kib: number(6)? as u64,
        })
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_in_both_generations() {
        let rows =
            [Used::default(), Used { time_ms: 1_000, cpu_percent: 1.5, rss_kib: 20_480, vsz_kib: 123_456 }];
        for generation in [Generation::Brackets, Generation::Words] {
            let text = write(&rows, generation);
            assert_eq!(read(Path::new("resources.txt"), &text).unwrap(), rows);
        }
        // As the program writes it with --csv-out.
        let text = "time[ms],cpu[%],arena[KB],in_use[KB],mmap[KB],rss[KB],vsz[KB],\n5,0.5,1,2,3,4,6,\n";
        assert_eq!(read(Path::new("r"), text).unwrap()[0].vsz_kib, 6);
        assert!(read(Path::new("r"), "time cpu").is_err());
    }
}
