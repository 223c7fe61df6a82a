//! The text of `rtla timerlat hist` and `rtla osnoise hist` (the kernel's
//! `tools/tracing/rtla/src/timerlat_hist.c`, `osnoise_hist.c`).
//!
//! A head names the columns (`IRQ-001`, `Thr-001`, `Usr-001`, of osnoise `CPU-001`), rows begin
//! with the lower edge of a bin, rows of zeros are left out, then `over:`, `count:`, `min:`,
//! `avg:`, `max:`; newer versions add `ALL:` with sums. A column of timerlat is a series of its
//! own: the interrupt's latency, the thread's, the return to user space. The smallest distance
//! between edges gives the width of the bins.

use super::{Facts, Thread, as_many, single};
use crate::groups::bins::Bins;
use crate::groups::measured::{MeasuredRun, Tool};
use model::Error;
use model::sample::ProbeKind;

pub(super) fn is(text: &str) -> bool {
    text.lines().take(200).any(|line| line.starts_with("# RTLA ") && line.contains("histogram"))
}

/// A column: its kind and its CPU.
struct Column {
    kind: &'static str,
    cpu: u32,
    counts: Vec<(i64, u64)>,
    over: u64,
    total: Option<u64>,
    least: Option<i64>,
    most: Option<i64>,
}

pub(super) fn run(text: &str, name: String, part: Option<&str>) -> Result<MeasuredRun, Error> {
    let timerlat = text.contains("# RTLA timerlat");
    let unit_ns: i64 = if text.contains("# Time unit is nanoseconds") { 1 } else { 1_000 };
    let at = |number: usize| format!("{name}:{}", number + 1);
    let mut columns: Vec<Column> = Vec::new();
    let mut duration_ns = None;
    let mut edges: Vec<i64> = Vec::new();
    let mut has_end = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(duration) = line.strip_prefix("# Duration:") {
            duration_ns = seconds(duration).map(|seconds| seconds.saturating_mul(1_000_000_000));
            continue;
        }
        let Some((first, rest)) = line.trim_start().split_once(char::is_whitespace) else { continue };
        if first == "Index" {
            columns = head(rest, &at(number))?;
            continue;
        }
        if first == "ALL:" || first == "ALL" {
            break;
        }
        let words: Vec<&str> = rest.split_whitespace().collect();
        let row = first.trim_end_matches(':');
        let known =
            row.bytes().all(|byte| byte.is_ascii_digit()) || matches!(row, "over" | "min" | "max" | "count");
        if columns.is_empty() || first.starts_with('#') || !known {
            continue;
        }
        if words.len() != columns.len() {
            let found = format!("{} values", words.len());
            return Err(Error::invalid(
                at(number),
                found,
                format!("one for each of {} columns", columns.len()),
            ));
        }
        has_end |= row == "max";
        for (column, word) in columns.iter_mut().zip(words) {
            if word == "-" {
                continue;
            }
            let value: u64 = word
                .parse()
                .map_err(|_| Error::invalid(at(number), format!("{word:?}"), "a whole number"))?;
            let ns = i64::try_from(value).ok().and_then(|value| value.checked_mul(unit_ns));
            match row {
                "over" => column.over = value,
                "min" => column.least = ns,
                "max" => column.most = ns,
                "count" => column.total = Some(value),
                bin => {
                    let edge = bin.parse::<i64>().ok().and_then(|bin| bin.checked_mul(unit_ns));
                    let edge =
                        edge.ok_or_else(|| Error::invalid(at(number), bin, "the lower edge of a bin"))?;
                    column.counts.push((edge, value));
                    edges.push(edge);
                }
            }
        }
    }
    let (tool, probe, kind) = chosen(timerlat, part, &columns, &name)?;
    // The largest comes last.
    if !has_end {
        let expected =
            "a whole one, which ends with the smallest and the largest of each column (without --no-summary)";
        return Err(Error::invalid(name, "a histogram that breaks off", expected));
    }
    for (at, column) in columns.iter().enumerate() {
        column.total.map_or(Ok(()), |total| as_many(&column.counts, column.over, total, &name, at))?;
    }
    edges.sort_unstable();
    edges.dedup();
    let width_ns = edges.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(unit_ns).max(unit_ns);
    let end = edges.last().map_or(0, |edge| edge.saturating_add(width_ns));
    let thread = |column: Column| {
        let mut counts = column.counts;
        counts.retain(|(_, count)| *count > 0);
        counts.sort_unstable();
        let over_from_ns = (column.over > 0).then_some(end);
        let bins = Bins {
            counts,
            width_ns: width_ns as u64,
            over: column.over,
            over_from_ns,
            max_ns: column.most,
            min_ns: column.least,
        };
        Thread { cpu: Some(column.cpu), bins, duration_ns }
    };
    let threads = columns.into_iter().filter(|column| column.kind == kind).map(thread).collect();
    single(name, tool, probe, threads, Facts::default())
}

fn head(text: &str, place: &str) -> Result<Vec<Column>, Error> {
    let column = |word: &str| {
        let (kind, cpu) = word.split_once('-')?;
        let kind = ["IRQ", "Thr", "Usr", "CPU"].into_iter().find(|known| *known == kind)?;
        Some(Column {
            kind,
            cpu: cpu.parse().ok()?,
            counts: Vec::new(),
            over: 0,
            total: None,
            least: None,
            most: None,
        })
    };
    let columns: Option<Vec<Column>> = text.split_whitespace().map(column).collect();
    columns.ok_or_else(|| Error::invalid(place, text.trim(), "columns such as IRQ-001 or CPU-001"))
}

fn chosen(
    timerlat: bool,
    part: Option<&str>,
    columns: &[Column],
    name: &str,
) -> Result<(Tool, ProbeKind, &'static str), Error> {
    let has = |kind: &str| columns.iter().any(|column| column.kind == kind);
    let kinds = [
        ("thread", "Thr", Tool::RtlaTimerlatThread),
        ("irq", "IRQ", Tool::RtlaTimerlatIrq),
        ("user", "Usr", Tool::RtlaTimerlatUser),
    ];
    if !timerlat {
        return if has("CPU") {
            Ok((Tool::RtlaOsnoise, ProbeKind::Noise, "CPU"))
        } else {
            Err(Error::invalid(name, "no columns of CPUs", "the head that rtla prints without --no-header"))
        };
    }
    let wanted = |(word, kind, _): &&(&str, &str, Tool)| {
        part.map_or_else(|| has(kind), |part| part == *word && has(kind))
    };
    let found = kinds.iter().find(wanted);
    found.map(|(_, kind, tool)| (*tool, ProbeKind::Wakeup, *kind)).ok_or_else(|| {
        Error::invalid(
            name,
            format!("no series {}", part.unwrap_or("of latencies")),
            "irq, thread or user, as rtla recorded",
        )
    })
}

/// `0 00:00:10`: days, hours, minutes, seconds.
fn seconds(text: &str) -> Option<u64> {
    let (days, clock) = text.trim().split_once(' ')?;
    let mut parts = clock.split(':').map(|part| part.trim().parse::<u64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let days: u64 = days.parse().ok()?;
    days.checked_mul(24)?
        .checked_add(hours)?
        .checked_mul(3_600)?
        .checked_add(minutes.checked_mul(60)?)?
        .checked_add(seconds)
}
