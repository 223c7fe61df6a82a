//! The histogram that `cyclictest -h US` prints: lines of a bin and one count a thread, then totals
//! behind `#`.
//!
//! A column whose counts are not what its total says is refused.
//!
//! Bins are us, or ns with `-N`. The text does not state which: us is assumed. With `-H` a further
//! column sums the threads; it is recognised by the totals, of which there is one less.

use super::{Facts, Thread, as_many, single};
use crate::groups::bins::Bins;
use crate::groups::measured::{MeasuredRun, Tool};
use model::Error;
use model::sample::ProbeKind;

const WIDTH_NS: i64 = 1_000;

/// Totals or overflows stand in no other text.
pub(super) fn is(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("# Histogram") || line.starts_with("# Max Latencies:"))
}

pub(super) fn run(text: &str, name: String) -> Result<MeasuredRun, Error> {
    let mut rows: Vec<(i64, Vec<u64>)> = Vec::new();
    let (mut totals, mut least, mut most, mut over) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let numbers = |words: &str| -> Result<Vec<u64>, Error> {
            let parse = |word: &str| {
                word.parse().map_err(|_| {
                    Error::invalid(format!("{name}:{}", number + 1), format!("{word:?}"), "a whole number")
                })
            };
            words.split_whitespace().map(parse).collect()
        };
        if let Some(rest) = line.strip_prefix("# Total:") {
            totals = numbers(rest)?;
        } else if let Some(rest) = line.strip_prefix("# Min Latencies:") {
            least = numbers(rest)?;
        } else if let Some(rest) = line.strip_prefix("# Max Latencies:") {
            most = numbers(rest)?;
        } else if let Some(rest) = line.strip_prefix("# Histogram Overflows:") {
            over = numbers(rest)?;
        } else if line.starts_with(|c: char| c.is_ascii_digit()) {
            let row = numbers(line)?;
            let (bin, counts) = row.split_first().unwrap_or((&0, &[]));
            let edge = i64::try_from(*bin).ok().and_then(|bin| bin.checked_mul(WIDTH_NS));
            let edge =
                edge.ok_or_else(|| Error::invalid(format!("{name}:{}", number + 1), bin, "a bin in us"))?;
            rows.push((edge, counts.to_vec()));
        }
    }
    let columns = rows.first().map_or(0, |(_, counts)| counts.len());
    let threads = if most.is_empty() { columns } else { columns.min(most.len()) };
    if threads == 0 || rows.iter().any(|(_, counts)| counts.len() != columns) {
        return Err(Error::invalid(
            name,
            "rows without the same number of counts",
            "a histogram as cyclictest -h prints it",
        ));
    }
    // The overflows come last; with -H the sum of all threads has a column, and no totals.
    if [&least, &over].iter().any(|totals| totals.len() < threads) || most.is_empty() {
        let expected = "a whole one, which ends with the latencies and overflows of each thread";
        return Err(Error::invalid(name, "a histogram that breaks off", expected));
    }
    let end = rows.last().map_or(0, |(edge, _)| edge.saturating_add(WIDTH_NS));
    let of =
        |list: &[u64], at: usize| list.get(at).and_then(|us| i64::try_from(us.saturating_mul(1_000)).ok());
    let thread = |at: usize| {
        let mut counts: Vec<(i64, u64)> = rows.iter().map(|(edge, counts)| (*edge, counts[at])).collect();
        counts.retain(|(_, count)| *count > 0);
        counts.sort_unstable();
        let over = over.get(at).copied().unwrap_or(0);
        let over_from_ns = (over > 0).then_some(end);
        let bins = Bins {
            counts,
            width_ns: WIDTH_NS as u64,
            over,
            over_from_ns,
            max_ns: of(&most, at),
            min_ns: of(&least, at),
        };
        Thread { cpu: None, bins, duration_ns: None }
    };
    let threads: Vec<Thread> = (0..threads).map(thread).collect();
    // Those beyond the last bin are no part of these totals.
    for (at, (thread, total)) in threads.iter().zip(&totals).enumerate() {
        as_many(&thread.bins.counts, 0, *total, &name, at)?;
    }
    single(name, Tool::Cyclictest, ProbeKind::Wakeup, threads, Facts::default())
}
