//! Results of other tools as runs, so that existing measurements can be compared.
//!
//! They leave histograms: no times, so chance within a run is unknown, and values are known to the
//! width of a bin. One format per file; a file is recognised by its content, not by its name.

mod cyclictest;
mod cyclictest_json;
mod jitterdebugger;
mod json;
mod oslat;
mod rtla;
#[cfg(test)]
mod tests;

use crate::groups::bins::Bins;
use crate::groups::measured::{MeasuredRun, MeasuredWindow, Samples, Tool};
use model::sample::ProbeKind;
use model::{Cpus, Error};
use std::path::Path;

/// Larger files are none of these.
const MOST_BYTES: u64 = 256 << 20;

/// No run has more samples than this; sums of counts stay far from overflowing.
const MOST_SAMPLES: u64 = 1 << 60;
/// Nor so large ones.
const MOST_NS: u64 = 1_000_000_000_000_000_000;

/// One thread's histogram, as a tool reports it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Thread {
    /// Its CPU, if reported.
    cpu: Option<u32>,
    /// Its histogram.
    bins: Bins,
    /// How long it measured, ns, if reported.
    duration_ns: Option<u64>,
}

/// What a file says besides its histograms.
#[derive(Debug, Clone, Default)]
struct Facts {
    /// `uname -r`.
    kernel: Option<String>,
    /// Interval between releases, ns.
    period_ns: Option<u64>,
    /// Policy in words.
    policy: Option<String>,
}

/// Reads a file of another tool. `part` chooses, of a file that holds several series, the one that
/// is compared: `irq`, `thread`, `user`.
pub fn read(path: &Path, name: String, part: Option<&str>) -> Result<MeasuredRun, Error> {
    let size = std::fs::metadata(path).map_err(|source| Error::io("read", path, source))?.len();
    if size > MOST_BYTES {
        return Err(Error::invalid(name, format!("{size} bytes"), "a result file of at most 256 MiB"));
    }
    let bytes = std::fs::read(path).map_err(|source| Error::io("read", path, source))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Error::invalid(&name, format!("byte {} is no text", error.utf8_error().valid_up_to()), KNOWN)
    })?;
    parse(&text, name, part)
}

/// The same of a file that lies among results: `None` where it is of no tool that is known, such as
/// a log.
pub fn read_if_known(path: &Path, name: String, part: Option<&str>) -> Result<Option<MeasuredRun>, Error> {
    let size = std::fs::metadata(path).map_err(|source| Error::io("read", path, source))?.len();
    if size > MOST_BYTES {
        return Ok(None);
    }
    let bytes = std::fs::read(path).map_err(|source| Error::io("read", path, source))?;
    let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
    match recognised(&text, &name, part) {
        // A result that was cut off is not passed over in silence.
        Err(_) if is_json(&text) && !text.contains("histogram") => Ok(None),
        known => known,
    }
}

const KNOWN: &str = "a run directory, cyclictest's --json or histogram (-h), oslat's --json, the text of rtla timerlat hist or osnoise hist, \
                     or jitterdebugger's results.json";

/// The run in a text.
fn parse(text: &str, name: String, part: Option<&str>) -> Result<MeasuredRun, Error> {
    let what =
        if is_json(text) { "JSON of no tool that is known" } else { "a text of no tool that is known" };
    recognised(text, &name, part)?.ok_or_else(|| Error::invalid(name, what, KNOWN))
}

fn is_json(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

/// The same; `None` for a text of no tool that is known.
fn recognised(text: &str, name: &str, part: Option<&str>) -> Result<Option<MeasuredRun>, Error> {
    let name = name.to_owned();
    if is_json(text) {
        let value = json::Document::parse(text, &name)?;
        return match () {
            () if jitterdebugger::is(&value) => jitterdebugger::run(&value, name).map(Some),
            () if oslat::is(&value) => oslat::run(&value, name).map(Some),
            () if cyclictest_json::is(&value) => cyclictest_json::run(&value, name).map(Some),
            () => Ok(None),
        };
    }
    match () {
        () if rtla::is(text) => rtla::run(text, name, part).map(Some),
        () if cyclictest::is(text) => cyclictest::run(text, name).map(Some),
        () => Ok(None),
    }
}

/// One run of one window, all threads together.
fn single(
    name: String,
    tool: Tool,
    probe: ProbeKind,
    threads: Vec<Thread>,
    facts: Facts,
) -> Result<MeasuredRun, Error> {
    threads.iter().try_for_each(|thread| in_one_piece(&thread.bins, &name))?;
    let mut bins = Bins::default();
    threads.iter().for_each(|thread| bins.merge(&thread.bins));
    if bins.n() == 0 {
        return Err(Error::invalid(name, "the histogram is empty", "at least one sample"));
    }
    if bins.n() >= MOST_SAMPLES {
        return Err(Error::invalid(
            name,
            format!("{} samples", bins.n()),
            "samples of less than 2^60 in all",
        ));
    }
    if let Some((edge, _)) = bins.counts.iter().find(|(edge, _)| edge.unsigned_abs() > MOST_NS) {
        return Err(Error::invalid(name, format!("a bin at {edge} ns"), "a latency of less than 31 years"));
    }
    let cpus: Option<Vec<u32>> = threads.iter().map(|thread| thread.cpu).collect();
    let durations: Option<Vec<u64>> = threads.iter().map(|thread| thread.duration_ns).collect();
    let window = MeasuredWindow {
        probe,
        phase: "measured".to_owned(),
        disturbed: false,
        cpus: cpus.map(|cpus| cpus.into_iter().collect::<Cpus>()).unwrap_or_default(),
        threads: threads.len(),
        period_ns: facts.period_ns,
        threshold_ns: None,
        policy: facts.policy,
        duration_ns: durations.map(|all| all.into_iter().fold(0, u64::saturating_add)),
        missed: 0,
        charged: 0,
        lost: 0,
        samples: Samples::Binned(bins),
    };
    let windows = vec![window];
    Ok(MeasuredRun {
        name,
        tool,
        kernel: facts.kernel,
        started_at: None,
        cpu_model: None,
        idle_states: None,
        windows,
    })
}

/// Whether the bins of a thread lie between its reported minimum and maximum.
fn in_one_piece(bins: &Bins, name: &str) -> Result<(), Error> {
    let edges = bins.counts.first().zip(bins.counts.last()).map(|(first, last)| (first.0, last.0));
    let wrong = |what: String, expected: String| Err(Error::invalid(name, what, expected));
    match (edges, bins.min_ns, bins.max_ns) {
        (Some((_, last)), _, Some(max)) if max < last => {
            wrong(format!("a sample in the bin at {last} ns"), format!("none above the largest, {max} ns"))
        }
        (Some((first, _)), Some(min), _) if min < first => {
            wrong(format!("no sample below the bin at {first} ns"), format!("one as the smallest, {min} ns"))
        }
        _ => Ok(()),
    }
}

/// Whether as many samples are in the bins, `over` among them, as the tool's own total of a column
/// says.
fn as_many(counts: &[(i64, u64)], over: u64, total: u64, name: &str, column: usize) -> Result<(), Error> {
    let found = counts.iter().fold(u128::from(over), |sum, (_, count)| sum + u128::from(*count));
    if found == u128::from(total) {
        return Ok(());
    }
    let what = format!("{found} samples in column {}", column + 1);
    Err(Error::invalid(name, what, format!("{total}, as its total says")))
}

/// The value of an option in a command line: `-i1000`, `-i 1000`, `--interval=1000`,
/// `--interval 1000`.
fn option<'a>(command: &'a str, short: &str, long: &str) -> Option<&'a str> {
    let mut words = command.split_whitespace();
    while let Some(word) = words.next() {
        if let Some(rest) = word.strip_prefix(long) {
            match rest.strip_prefix('=') {
                Some(value) => return Some(value),
                None if rest.is_empty() => return words.next(),
                None => {}
            }
        } else if !word.starts_with("--")
            && let Some(rest) = word.strip_prefix(short)
        {
            return if rest.is_empty() { words.next() } else { Some(rest) };
        }
    }
    None
}
