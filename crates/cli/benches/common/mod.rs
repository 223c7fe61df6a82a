//! Shared parts of the benches: errors, options, rows for `--rows FILE`, medians, cyclictest's
//! histogram; tools in turns, what a process costs, and programs that keep the machine busy.

#![allow(dead_code, reason = "each bench uses its own part")]

pub(crate) mod growth;
pub(crate) mod load;
pub(crate) mod plants;
pub(crate) mod process;
pub(crate) mod turns;

use result::Sink;
use std::fmt::Display;
use std::str::FromStr;

/// Why a bench cannot continue.
#[derive(Debug)]
pub(crate) struct Failed(pub(crate) String);

impl Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

impl Failed {
    /// From any error.
    pub(crate) fn because(what: impl Display) -> Self {
        Self(what.to_string())
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self::because(error)
    }
}

/// The value after `name` on the command line; the default where it is absent or invalid.
pub(crate) fn option<T: FromStr>(name: &str, default: T) -> T {
    let arguments: Vec<String> = std::env::args().collect();
    let value =
        arguments.iter().position(|word| word == name).and_then(|at| arguments.get(at + 1)?.parse().ok());
    value.unwrap_or(default)
}

/// Runs the bench, which puts its rows into the sink; prints them where no file takes them. An
/// error ends the process with 1. Progress of a run goes to standard error.
pub(crate) fn run(name: &str, bench: impl FnOnce(&mut Sink) -> Result<(), Failed>) {
    let mut sink = Sink::of_arguments();
    let done = bench(&mut sink);
    print!("{}", sink.table());
    if let Err(error) = done {
        eprintln!("{name}: {error}");
        std::process::exit(1);
    }
}

/// The middle of the values, of an even number the mean of the two; NaN without any.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    stats::runs::median(&mut values).unwrap_or(f64::NAN)
}

/// A histogram that cyclictest printed for one thread: latency and count of each bin that holds
/// any, and the overflow.
pub(crate) fn histogram(text: &str) -> Result<(Vec<(u64, u64)>, u64), Failed> {
    let bin = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    let bins: Vec<(u64, u64)> = text.lines().filter(|line| !line.starts_with('#')).filter_map(bin).collect();
    let bins: Vec<_> = bins.into_iter().filter(|(_, count)| *count > 0).collect();
    let overflow = text.lines().find_map(|line| line.strip_prefix("# Histogram Overflows:"));
    let overflow = overflow.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    match overflow {
        Some(overflow) if !bins.is_empty() => Ok((bins, overflow)),
        _ => Err(Failed::because("cyclictest printed no histogram")),
    }
}

/// Nearest rank; none where that lies in the overflow.
pub(crate) fn quantile(bins: &[(u64, u64)], overflow: u64, p: f64) -> Option<u64> {
    let total = bins.iter().map(|(_, count)| count).sum::<u64>() + overflow;
    let rank = (total as f64 * p).ceil() as u64;
    let mut seen = 0;
    let found = bins.iter().find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    found.map(|(ns, _)| *ns)
}
