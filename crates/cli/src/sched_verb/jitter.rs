//! Release jitter from a run: how late wake-ups were observed to be, as an assumption on every
//! release.
//!
//! An observed maximum is no bound, and a quantile is by construction exceeded: standard error
//! reports the value taken with its conditions, and whether the run lost samples.

use analysis::distribution::Distribution;
use anyhow::Context;
use clap::Args;
use model::Error;
use model::sample::ProbeKind;
use report::{distribution, format};
use std::path::{Path, PathBuf};

/// Source of jitter.
#[derive(Debug, Args)]
pub(crate) struct JitterArgs {
    /// Add the latest wake-up of a measured run to every task's release jitter.
    #[arg(long, value_name = "RUN")]
    pub(crate) jitter_from: Option<PathBuf>,
    /// Statistic of the run's worst window: max = observed maximum, or a quantile such as 0.999.
    #[arg(long, value_name = "max|P", default_value = "max", requires = "jitter_from", value_parser = read_at)]
    pub(crate) jitter_at: At,
}

/// What to take of a distribution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum At {
    /// The observed maximum.
    Max,
    /// A quantile.
    Quantile(f64),
}

impl At {
    fn words(self) -> String {
        match self {
            Self::Max => "observed maximum".to_owned(),
            Self::Quantile(p) => format!("quantile {p}"),
        }
    }
}

/// `max`, or a probability below 1.
pub(crate) fn read_at(text: &str) -> Result<At, String> {
    if text == "max" {
        return Ok(At::Max);
    }
    let known = text.parse().ok().filter(|p: &f64| *p > 0.0 && *p < 1.0);
    known
        .map(At::Quantile)
        .ok_or_else(|| format!("invalid statistic {text:?}: expected max, or a quantile such as 0.999"))
}

/// A jitter and the sentence that belongs to it.
#[derive(Debug, Clone)]
pub(crate) struct Observed {
    pub(crate) jitter_ns: u64,
    pub(crate) conditions: String,
}

impl JitterArgs {
    /// The jitter to add, 0 where no run is named; its conditions go to standard error.
    pub(crate) fn resolve(&self) -> anyhow::Result<u64> {
        let Some(dir) = &self.jitter_from else { return Ok(0) };
        let observed = observed(dir, self.jitter_at)?;
        eprintln!("note: {}", observed.conditions);
        Ok(observed.jitter_ns)
    }
}

/// Reads a run.
pub(crate) fn observed(dir: &Path, at: At) -> anyhow::Result<Observed> {
    let analysis = analysis::analyse(dir).with_context(|| format!("{} cannot be analysed", dir.display()))?;
    let windows = || analysis.distributions.iter().filter(|window| window.probe == ProbeKind::Wakeup);
    let value = |window: &&Distribution| match at {
        At::Max => distribution::maximum(window),
        At::Quantile(p) => distribution::quantile(window, p),
    };
    let missing = |what: &str, expected: String| Error::invalid(dir.display(), what.to_owned(), expected);
    if windows().next().is_none() {
        let expected = "a run of assess or of measure wakeup".to_owned();
        return Err(missing("no wake-up was measured", expected).into());
    }
    // A window without the quantile could be the worst.
    if let Some(window) = windows().find(|window| value(window).is_none()) {
        let known = distribution::quantiles(window).iter().filter(|quantile| quantile.value_ns.is_some());
        let known: Vec<String> = known.map(|quantile| quantile.p.to_string()).collect();
        let what = format!("no {} in phase {} on CPU {}", at.words(), window.phase, window.cpu);
        return Err(missing(&what, format!("max or one of {}", known.join(", "))).into());
    }
    let worst = windows().max_by_key(value).context("a window was found above")?;
    let jitter_ns = value(&worst).unwrap_or(0).max(0) as u64;
    let lost: Option<u64> = windows().map(|window| window.ring_lost).sum();
    let n: u64 = windows().map(|window| window.n).sum();
    let lost = match lost {
        Some(0) => String::new(),
        Some(lost) => format!("; {} lost", format::plural(lost, "sample")),
        None => "; the run was cut off, and what it lost is not known".to_owned(),
    };
    let conditions = format!(
        "release jitter {} of {}: {} of {} (phase {}, CPU {}, {}{lost}); larger ones are possible",
        format::ns(jitter_ns as i64),
        dir.display(),
        at.words(),
        format::plural(n, "wake-up"),
        worst.phase,
        worst.cpu,
        worst.policy.name,
    );
    Ok(Observed { jitter_ns, conditions })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_take() {
        assert_eq!(read_at("max"), Ok(At::Max));
        assert_eq!(read_at("0.999"), Ok(At::Quantile(0.999)));
        for bad in ["", "1", "0", "NaN", "p99", "-0.5"] {
            assert!(read_at(bad).is_err(), "{bad}");
        }
    }
}
