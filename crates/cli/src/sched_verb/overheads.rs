//! Kernel overheads for `--overheads`: from a file of numbers, or as a run of `measure overheads`
//! observed them.
//!
//! An observed maximum is no bound: standard error reports what is taken, and what the run lacks.

use crate::measure::overheads::TakeName;
use analysis::overheads::{Accounting, CacheDelay, accounting};
use anyhow::Context;
use clap::Args;
use model::Error;
use model::quantity::bytes;
use sched::overheads::Overheads;
use std::fs;
use std::path::{Path, PathBuf};

/// Source of overheads.
#[derive(Debug, Args)]
pub(crate) struct OverheadsArgs {
    /// Include kernel overheads (fp-rta, edf-qpa): a JSON object in ns, or a run of measure
    /// overheads.
    #[arg(long, value_name = "FILE.json|RUN")]
    pub(crate) overheads: Option<PathBuf>,
    /// Statistic of a run's distributions.
    #[arg(long, default_value = "max", value_name = "WHAT", requires = "overheads")]
    pub(crate) overheads_take: TakeName,
    /// Largest working set of a task, to select the run's cache delay; bytes, K or M [default: the
    /// largest delay].
    #[arg(long, value_name = "SIZE", requires = "overheads", value_parser = size)]
    pub(crate) working_set: Option<u64>,
}

fn size(text: &str) -> Result<u64, String> {
    bytes(text).ok_or_else(|| format!("invalid size {text:?}: expected bytes, such as 256K"))
}

impl OverheadsArgs {
    /// The overheads, if the user gave any; those of a run are reported on standard error.
    pub(crate) fn resolve(&self) -> anyhow::Result<Option<Overheads>> {
        let Some(path) = &self.overheads else { return Ok(None) };
        let (overheads, conditions) = if path.is_dir() {
            let (overheads, conditions) = self.observed(path)?;
            (overheads, Some(conditions))
        } else {
            (read(path)?, None)
        };
        overheads.check().map_err(|error| {
            let expected = format!("{} ns to 2^53 - 1", error.expected);
            Error::invalid(format!("{}, {}", path.display(), error.field), error.value, expected)
        })?;
        if let Some(conditions) = conditions {
            eprintln!("note: {conditions}");
        }
        Ok(Some(overheads))
    }

    fn observed(&self, dir: &Path) -> anyhow::Result<(Overheads, String)> {
        let analysis =
            analysis::analyse(dir).with_context(|| format!("{} cannot be analysed", dir.display()))?;
        let missing = |what: &str| {
            Error::invalid(
                dir.display(),
                what,
                "a run of measure overheads with all of release, sched, switch and crpd",
            )
        };
        let section = analysis.overheads.first().ok_or_else(|| missing("no overheads were measured"))?;
        let given = accounting(section, self.overheads_take.take());
        let (overheads, left_out) = self.terms(&given).map_err(|what| missing(&what))?;
        let left_out =
            if left_out.is_empty() { String::new() } else { format!("; without {}", left_out.join(", ")) };
        let conditions = format!(
            "overheads {} of {}, CPU {}: release {}, sched {}, switch {}, ipi {}, tick {} every {}, cache {} ns{left_out}; they \
             are no bounds, larger ones are possible",
            self.overheads_take.words(),
            dir.display(),
            section.cpu,
            overheads.release_ns,
            overheads.schedule_ns,
            overheads.context_switch_ns,
            overheads.ipi_ns,
            overheads.tick_ns,
            overheads.tick_period_ns,
            overheads.cache_related_ns,
        );
        Ok((overheads, conditions))
    }

    /// The terms of a run, and which optional ones it lacks; an error names a required one that it
    /// lacks.
    fn terms(&self, given: &Accounting) -> Result<(Overheads, Vec<&'static str>), String> {
        let need = |name: &str, ns: Option<i64>| {
            ns.map(|ns| ns as u64)
                .ok_or_else(|| format!("no {name}, or too few samples for {}", self.overheads_take.words()))
        };
        // A run measures no release latency: the wake-ups of measure wakeup hold it.
        let mut left_out = vec!["release latency"];
        let tick = given.tick.zip(given.tick_period);
        if tick.is_none() {
            left_out.push("ticks (none seen)");
        }
        let (tick_ns, tick_period_ns) = tick.map_or((0, 0), |(tick, period)| (tick as u64, period as u64));
        if given.ipi.is_none() {
            left_out.push("interrupts from other CPUs");
        }
        let overheads = Overheads {
            release_latency_ns: 0,
            ipi_ns: given.ipi.unwrap_or(0) as u64,
            release_ns: need("release", given.release)?,
            schedule_ns: need("sched", given.sched)?,
            context_switch_ns: need("switch", given.switch)?,
            tick_ns,
            tick_period_ns,
            cache_related_ns: need("crpd", self.cache_delay(&given.crpd)?)?,
        };
        Ok((overheads, left_out))
    }

    /// The largest delay of all sizes up to the first that holds the given working set.
    fn cache_delay(&self, sizes: &[CacheDelay]) -> Result<Option<i64>, String> {
        let enough = |asked: u64| sizes.iter().map(|one| one.bytes).filter(|&bytes| bytes >= asked).min();
        let up_to = match self.working_set {
            None => u64::MAX,
            Some(asked) => enough(asked).ok_or_else(|| format!("no working set of {asked} bytes or more"))?,
        };
        let looked_at: Vec<Option<i64>> =
            sizes.iter().filter(|one| one.bytes <= up_to).map(|one| one.ns).collect();
        // One size without its statistic could be the largest.
        Ok(looked_at.into_iter().collect::<Option<Vec<i64>>>().and_then(|all| all.into_iter().max()))
    }
}

/// Overheads as written in a file.
fn read(path: &Path) -> anyhow::Result<Overheads> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let expected = "a JSON object of overheads in ns, such as {\"context_switch_ns\":2000}, or a run of measure overheads";
    serde_json::from_str(&text).map_err(|error| Error::invalid(path.display(), error, expected).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(working_set: Option<u64>) -> OverheadsArgs {
        OverheadsArgs { overheads: None, overheads_take: TakeName::Max, working_set }
    }

    fn measured() -> Accounting {
        let delay = |bytes, ns| CacheDelay { bytes, ns: Some(ns) };
        Accounting {
            release: Some(1500),
            sched: Some(300),
            switch: Some(1200),
            tick: Some(2500),
            tick_period: Some(4_000_000),
            ipi: Some(900),
            crpd: vec![delay(4096, 400), delay(16384, 350), delay(65536, 2000)],
            migrate: None,
            cpmd: vec![],
        }
    }

    #[test]
    fn terms_of_a_run_and_the_ones_it_may_lack() {
        let (overheads, left_out) = args(None).terms(&measured()).unwrap();
        let fields = overheads.fields().map(|(_, ns)| ns);
        assert_eq!(fields, [0, 900, 1500, 300, 1200, 2500, 4_000_000, 2000]);
        assert_eq!(left_out, ["release latency"]);
        let still = Accounting { tick: None, tick_period: None, ipi: None, ..measured() };
        let (overheads, left_out) = args(None).terms(&still).unwrap();
        assert_eq!((overheads.tick_ns, overheads.ipi_ns, left_out.len()), (0, 0, 3));
        for lacking in [
            Accounting { release: None, ..measured() },
            Accounting { switch: None, ..measured() },
            Accounting { crpd: vec![], ..measured() },
        ] {
            assert!(args(None).terms(&lacking).unwrap_err().contains("too few samples for observed maxima"));
        }
    }

    #[test]
    fn a_working_set_takes_the_largest_delay_up_to_the_next_size() {
        let delay =
            |asked| args(Some(asked)).terms(&measured()).map(|(overheads, _)| overheads.cache_related_ns);
        assert_eq!(delay(4096), Ok(400));
        assert_eq!(delay(5000), Ok(400));
        assert_eq!(delay(16385), Ok(2000));
        assert!(delay(65537).unwrap_err().contains("65537 bytes"));
    }
}
