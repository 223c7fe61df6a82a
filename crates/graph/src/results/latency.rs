//! `latency_all.txt` and `latency_total.txt` of ros2-performance
//! (`performance_metrics/src/stat_logger.cpp`), written and read.

use super::table::{self, Column, Generation, Header, Row, significant};
use super::tracker::{Total, Tracker};
use model::Error;
use std::fmt::Write;
use std::path::Path;

/// The columns of `latency_all.txt`.
const ALL: &[Column] = &[
    Column::new("node", "node", 15),
    Column::new("topic", "topic", 15),
    Column::new("size[b]", "size_b", 10),
    Column::new("received[#]", "received_msgs", 15),
    Column::new("late[#]", "late_msgs", 10),
    Column::new("too_late[#]", "too_late_msgs", 15),
    Column::new("lost[#]", "lost_msgs", 10),
    Column::new("mean[us]", "mean_us", 10),
    Column::new("sd[us]", "sd_us", 10),
    Column::new("min[us]", "min_us", 10),
    Column::new("max[us]", "max_us", 10),
    Column::new("freq[hz]", "freq_hz", 10),
    Column::new("throughput[Kb/s]", "throughput_Kb_per_sec", 15),
    Column::new("duration[s]", "duration_s", 10),
];
/// Columns that a header line must have: node, topic, received.
const ALL_NEEDED: &[usize] = &[0, 1, 3];
/// The columns of `latency_total.txt`.
const TOTAL: &[Column] = &[
    Column::new("received[#]", "received_msgs", 15),
    Column::new("mean[us]", "mean_us", 10),
    Column::new("late[#]", "late_msgs", 10),
    Column::new("late[%]", "late_perc", 10),
    Column::new("too_late[#]", "too_late_msgs", 15),
    Column::new("too_late[%]", "too_late_perc", 15),
    Column::new("lost[#]", "lost_msgs", 10),
    Column::new("lost[%]", "lost_perc", 10),
];
const TOTAL_NEEDED: &[usize] = &[0, 2, 4, 6];
/// Titles of the sections, as the program writes them.
const SECTIONS: [(&str, Section); 3] = [
    ("Subscriptions stats:", Section::Subscriptions),
    ("Clients stats:", Section::Clients),
    ("Publishers stats:", Section::Publishers),
];

/// Which kind of end a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// What a subscriber received.
    Subscriptions,
    /// What a client asked, round trip.
    Clients,
    /// What a publisher published.
    Publishers,
}

/// One row of `latency_all.txt`.
#[derive(Debug, Clone, PartialEq)]
pub struct LatencyRow {
    /// The section.
    pub section: Section,
    /// Node.
    pub node: String,
    /// Topic or service.
    pub topic: String,
    /// Payload, bytes.
    pub size_bytes: u64,
    /// Messages.
    pub received: u64,
    /// Of these, late.
    pub late: u64,
    /// Of these, too late.
    pub too_late: u64,
    /// Gaps.
    pub lost: i64,
    /// Mean latency, µs.
    pub mean_us: f64,
    /// Standard deviation, µs.
    pub sd_us: f64,
    /// Smallest, µs.
    pub min_us: f64,
    /// Largest, µs.
    pub max_us: f64,
    /// Rate, Hz.
    pub freq_hz: f64,
    /// Payload a second, KiB, whatever its name says.
    pub throughput_kb_s: f64,
}

impl LatencyRow {
    /// The row of a tracker that ran for so long.
    pub fn of(
        section: Section,
        names: (&str, &str),
        size_bytes: u64,
        freq_hz: f64,
        tracker: &Tracker,
        seconds: f64,
    ) -> Self {
        // What is published is counted without being received.
        let bytes = tracker.received.max(tracker.counted) as f64 * size_bytes as f64;
        Self {
            section,
            node: names.0.to_owned(),
            topic: names.1.to_owned(),
            size_bytes,
            received: tracker.received,
            late: tracker.late,
            too_late: tracker.too_late,
            lost: tracker.lost,
            mean_us: tracker.mean_us.round(),
            sd_us: tracker.sd_us().round(),
            min_us: tracker.min_us as f64,
            max_us: tracker.max_us as f64,
            freq_hz,
            throughput_kb_s: if seconds > 0.0 { bytes / 1024.0 / seconds } else { 0.0 },
        }
    }
}

/// The text of `latency_all.txt`. `seconds` is the length of the run, which the old generation has
/// a column for.
pub fn write_all(rows: &[LatencyRow], generation: Generation, seconds: f64) -> String {
    // The old generation has no throughput, the new one no duration.
    let left_out = if generation == Generation::Brackets { 12 } else { 13 };
    let columns: Vec<_> =
        ALL.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, one)| Column { ..*one }).collect();
    let mut text = String::new();
    for (title, section) in SECTIONS {
        let mut of_section = rows.iter().filter(|row| row.section == section).peekable();
        if of_section.peek().is_none() {
            continue;
        }
        let _ = write!(text, "\n{title}\n{}", table::header(&columns, generation));
        for row in of_section {
            let last =
                if left_out == 12 { significant(seconds, 6) } else { significant(row.throughput_kb_s, 6) };
            let numbers = [row.mean_us, row.sd_us, row.min_us, row.max_us].map(|us| format!("{us:.0}"));
            let counts =
                [row.size_bytes as i64, row.received as i64, row.late as i64, row.too_late as i64, row.lost];
            let cells = [row.node.clone(), row.topic.clone()]
                .into_iter()
                .chain(counts.map(|count| count.to_string()));
            let cells = cells.chain(numbers).chain([significant(row.freq_hz, 6), last]);
            text.push_str(&table::line(&columns, cells));
        }
    }
    text
}

/// The rows of a `latency_all.txt` of either generation.
pub fn read_all(path: &Path, text: &str) -> Result<Vec<LatencyRow>, Error> {
    let mut rows = Vec::new();
    let mut section = Section::Subscriptions;
    let mut header: Option<Header> = None;
    for (line, number) in text.lines().zip(1..) {
        if let Some((_, named)) = SECTIONS.iter().find(|(title, _)| line.trim() == *title) {
            section = *named;
        } else if let Some(found) = table::find_header(ALL, ALL_NEEDED, line) {
            header = Some(found);
        } else if let Some(header) = header.as_ref().filter(|_| !line.trim().is_empty()) {
            let row = Row::of(path, number, header, line)?;
            rows.push(latency_row(section, &row)?);
        }
    }
    match header {
        Some(_) => Ok(rows),
        None => Err(no_header(path, "node, topic and received")),
    }
}

fn latency_row(section: Section, row: &Row<'_>) -> Result<LatencyRow, Error> {
    let number = |column| row.number(column, ALL);
    Ok(LatencyRow {
        section,
        node: row.text(0).unwrap_or_default().to_owned(),
        topic: row.text(1).unwrap_or_default().to_owned(),
        size_bytes: number(2)? as u64,
        received: number(3)? as u64,
        late: number(4)? as u64,
        too_late: number(5)? as u64,
        lost: number(6)? as i64,
        mean_us: number(7)?,
        sd_us: number(8)?,
        min_us: number(9)?,
        max_us: number(10)?,
        freq_hz: number(11)?,
        throughput_kb_s: number(12)?,
    })
}

/// The text of `latency_total.txt`.
pub fn write_total(total: &Total, generation: Generation) -> String {
    let cells = [
        total.received.to_string(),
        format!("{:.0}", total.mean_us),
        total.late.to_string(),
        significant(total.late_percent(), 4),
        total.too_late.to_string(),
        significant(total.too_late_percent(), 4),
        total.lost.to_string(),
        significant(total.lost_percent(), 4),
    ];
    table::header(TOTAL, generation) + &table::line(TOTAL, cells.into_iter())
}

/// The sums of a `latency_total.txt` of either generation.
pub fn read_total(path: &Path, text: &str) -> Result<Total, Error> {
    let mut lines = text.lines().zip(1..);
    let header = lines.by_ref().find_map(|(line, _)| table::find_header(TOTAL, TOTAL_NEEDED, line));
    let Some(header) = header else { return Err(no_header(path, "received, late, too_late and lost")) };
    let Some((line, number)) = lines.find(|(line, _)| !line.trim().is_empty()) else {
        return Err(Error::invalid(path.display(), "a header alone", "one row of sums below it"));
    };
    let row = Row::of(path, number, &header, line)?;
    let number = |column| row.number(column, TOTAL);
    Ok(Total {
        received: number(0)? as u64,
        mean_us: number(1)?,
        late: number(2)? as u64,
        too_late: number(4)? as u64,
        lost: number(6)? as i64,
    })
}

fn no_header(path: &Path, columns: &str) -> Error {
    Error::invalid(path.display(), "no header", format!("a line of column names with {columns}"))
}

#[cfg(test)]
mod tests {
    use super::super::tracker::Bounds;
    use super::*;

    fn rows() -> Vec<LatencyRow> {
        let limits = Bounds { tracking: true, ..Bounds::default() }.of(10_000_000);
        let mut tracker = Tracker::default();
        for number in [0, 1, 2, 5] {
            tracker.scan(limits, number, 0, 1_000_000 + number as i64 * 900_000);
        }
        let subscriber = LatencyRow::of(Section::Subscriptions, ("lyon", "amazon"), 36, 100.0, &tracker, 2.0);
        let client =
            LatencyRow { section: Section::Clients, topic: "reset".to_owned(), ..subscriber.clone() };
        vec![subscriber, client]
    }

    #[test]
    fn what_is_written_is_read_in_both_generations() {
        for generation in [Generation::Brackets, Generation::Words] {
            let text = write_all(&rows(), generation, 2.0);
            let mut expected = rows();
            if generation == Generation::Brackets {
                expected.iter_mut().for_each(|row| row.throughput_kb_s = 0.0);
            } else {
                expected.iter_mut().for_each(|row| row.throughput_kb_s = 0.070_312_5);
            }
            let read = read_all(Path::new("latency_all.txt"), &text).unwrap();
            assert_eq!(read.len(), 2);
            for (read, expected) in read.iter().zip(&expected) {
                assert!((read.throughput_kb_s - expected.throughput_kb_s).abs() < 1e-6);
                assert_eq!(
                    LatencyRow { throughput_kb_s: expected.throughput_kb_s, ..read.clone() },
                    *expected
                );
            }
            assert!(text.starts_with("\nSubscriptions stats:\nnode           topic          "), "{text}");
            assert_eq!(text.contains("duration[s]"), generation == Generation::Brackets);
        }
    }

    #[test]
    fn totals_are_read_in_both_generations() {
        let total = Total { received: 5_278, mean_us: 131.0, late: 10, too_late: 2, lost: 3 };
        for generation in [Generation::Brackets, Generation::Words] {
            let text = write_total(&total, generation);
            assert_eq!(read_total(Path::new("latency_total.txt"), &text).unwrap(), total);
        }
        assert!(
            write_total(&total, Generation::Brackets)
                .starts_with("received[#]    mean[us]  late[#]   late[%]")
        );
    }

    #[test]
    fn nobody_received_anything() {
        // What C++ prints for 0 / 0.
        let text = "received_msgs mean_us late_msgs late_perc too_late_msgs too_late_perc lost_msgs lost_perc\n0 -nan 0 -nan 0 -nan 0 -nan\n";
        assert_eq!(read_total(Path::new("t"), text).unwrap(), Total::default());
    }

    #[test]
    fn what_is_no_table_is_one_sentence() {
        let path = Path::new("latency_all.txt");
        let error = |text: &str| read_all(path, text).unwrap_err().to_string();
        assert_eq!(
            error("hello"),
            "latency_all.txt: no header; expected a line of column names with node, topic and received"
        );
        assert_eq!(
            error("node topic received[#]\na b\n"),
            "latency_all.txt: line 2: 2 columns; expected 3, as the header has"
        );
        assert_eq!(
            error("node topic received[#]\na b c\n"),
            "latency_all.txt: line 2: received_msgs is \"c\"; expected a number"
        );
    }
}
