//! One run as it is compared: of each probe and phase the samples of all CPUs together, and the
//! conditions they were taken under.
//!
//! Samples of one run share its boot and its neighbours, those of its CPUs also the moment: CPUs
//! are pooled, and blocks of time are drawn over all of them at once. Releases that passed unserved
//! are charged with the lateness they had ([`crate::missed`]).

use super::bins::Bins;
use crate::distribution::duration_ns;
use crate::samples::{belonging, unbiased};
use crate::{Error, missed};
use model::run::{ProbeRecord, Run, TRACED};
use model::sample::{ProbeKind, Sample};
use model::{Cpus, samples_file, store};
use serde::Serialize;
use stats::resample::{BlockedSamples, block_count, block_of};
use std::path::Path;

/// The tool that took the samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// This program.
    Stillcore,
    /// rt-tests' cyclictest.
    Cyclictest,
    /// rt-tests' oslat.
    Oslat,
    /// `rtla timerlat hist`, the latency of the timer's interrupt.
    RtlaTimerlatIrq,
    /// `rtla timerlat hist`, the latency of the thread.
    RtlaTimerlatThread,
    /// `rtla timerlat hist -u`, the return to user space.
    RtlaTimerlatUser,
    /// `rtla osnoise hist`.
    RtlaOsnoise,
    /// jitterdebugger.
    Jitterdebugger,
}

impl Tool {
    /// Its name in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stillcore => "stillcore",
            Self::Cyclictest => "cyclictest",
            Self::Oslat => "oslat",
            Self::RtlaTimerlatIrq => "rtla timerlat (interrupt)",
            Self::RtlaTimerlatThread => "rtla timerlat (thread)",
            Self::RtlaTimerlatUser => "rtla timerlat (user)",
            Self::RtlaOsnoise => "rtla osnoise",
            Self::Jitterdebugger => "jitterdebugger",
        }
    }
}

/// One run.
#[derive(Debug, Clone)]
pub struct MeasuredRun {
    /// Its path as given.
    pub name: String,
    /// What measured it.
    pub tool: Tool,
    /// `uname -r`, where known.
    pub kernel: Option<String>,
    /// Wall clock at the start, RFC 3339, where known.
    pub started_at: Option<String>,
    /// The processor's name, where known.
    pub cpu_model: Option<String>,
    /// Whether CPUs were kept out of idle states that take time to leave, in words, where known.
    pub idle_states: Option<String>,
    /// One entry a probe and phase.
    pub windows: Vec<MeasuredWindow>,
}

/// The measurement of one probe in one phase, all CPUs together.
#[derive(Debug, Clone)]
pub struct MeasuredWindow {
    /// The probe.
    pub probe: ProbeKind,
    /// The phase.
    pub phase: String,
    /// Whether stressors ran.
    pub disturbed: bool,
    /// The CPUs; empty if the tool does not report them.
    pub cpus: Cpus,
    /// Threads that measured.
    pub threads: usize,
    /// Interval between releases, ns.
    pub period_ns: Option<u64>,
    /// Shortest gap stored, ns (noise).
    pub threshold_ns: Option<u64>,
    /// Scheduling policy in force, in words.
    pub policy: Option<String>,
    /// Time measured, summed over the threads, ns.
    pub duration_ns: Option<u64>,
    /// Releases that passed unserved.
    pub missed: u64,
    /// Of them those that are among the samples, with the lateness they had: not those missed while
    /// the probe warmed up or the clock was set.
    pub charged: u64,
    /// Samples that were lost.
    pub lost: u64,
    /// The samples.
    pub samples: Samples,
}

/// The samples of one window.
#[derive(Clone)]
pub enum Samples {
    /// Each with its block of time.
    Blocked {
        /// Releases with their latencies, or gaps with their lengths.
        samples: BlockedSamples,
        /// The smallest that was measured, ns: releases that passed unserved are charged a bound of
        /// their lateness, which is no smallest latency.
        least_ns: Option<i64>,
        /// Of each block the ns in gaps, and the ns it was watched (noise).
        stolen: [Vec<f64>; 2],
    },
    /// Counts by bin; when they came is not known.
    Binned(Bins),
}

impl std::fmt::Debug for Samples {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} samples", self.n())
    }
}

impl Samples {
    /// How many.
    pub fn n(&self) -> u64 {
        match self {
            Self::Blocked { samples, .. } => samples.values().len() as u64,
            Self::Binned(bins) => bins.n(),
        }
    }

    /// Resolution of a value, ns.
    pub fn resolution_ns(&self) -> u64 {
        match self {
            Self::Blocked { .. } => 1,
            Self::Binned(bins) => bins.width_ns.max(1),
        }
    }

    /// The nearest-rank quantile of `parts` in 100,000, ns; `None` with fewer than ten samples
    /// above it.
    pub fn quantile(&self, parts: u64) -> Option<i64> {
        match self {
            Self::Blocked { samples, .. } => samples.quantile(parts),
            Self::Binned(bins) => bins.quantile(parts),
        }
    }

    /// The smallest value, ns.
    pub fn min(&self) -> Option<i64> {
        match self {
            Self::Blocked { least_ns, .. } => *least_ns,
            Self::Binned(bins) => bins.min_ns.or_else(|| bins.counts.first().map(|(edge, _)| *edge)),
        }
    }

    /// The largest observed value, ns; `None` where it is known only to lie beyond the last bin.
    pub fn max(&self) -> Option<i64> {
        match self {
            Self::Blocked { samples, .. } => samples.values().last().copied(),
            Self::Binned(bins) => {
                let last = bins.counts.last().map(|(edge, _)| *edge);
                bins.max_ns.or(if bins.over == 0 { last } else { None })
            }
        }
    }

    /// Samples of at least `from_ns`; `None` where bins end below it.
    pub fn at_least(&self, from_ns: i64) -> Option<u64> {
        match self {
            Self::Blocked { samples, .. } => {
                let values = samples.values();
                Some((values.len() - values.partition_point(|&value| value < from_ns)) as u64)
            }
            Self::Binned(bins) => bins.at_least(from_ns),
        }
    }

    /// Whether some lie beyond the last bin.
    pub fn beyond_bins(&self) -> bool {
        matches!(self, Self::Binned(bins) if bins.over > 0)
    }

    /// Values in ns with their counts, ascending; what lies beyond the last bin stands at that
    /// bin's end.
    pub fn steps(&self) -> Vec<(i64, u64)> {
        match self {
            Self::Blocked { samples, .. } => {
                samples.values().chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect()
            }
            Self::Binned(bins) => {
                let mut steps = bins.counts.clone();
                steps.extend(bins.over_from_ns.filter(|_| bins.over > 0).map(|from| (from, bins.over)));
                steps
            }
        }
    }
}

/// Reads a run directory. Runs that were not completed are refused: their conditions are not known
/// completely.
pub fn read(dir: &Path, name: String) -> Result<MeasuredRun, Error> {
    let run = model::run::stored::read_run(dir)?;
    if !run.complete {
        let why = run.incomplete_reason.as_deref().unwrap_or("no reason given");
        return Err(
            model::Error::invalid(name, format!("the run is not complete ({why})"), "a whole run").into()
        );
    }
    if let Some(at) = &run.stopped_at {
        let what = format!(
            "the run was stopped by its first sample over {} ns, so its length and its largest samples depend on each other",
            at.over_ns
        );
        return Err(model::Error::invalid(name, what, "a run of its planned length").into());
    }
    let mut kinds: Vec<(ProbeKind, &str)> = Vec::new();
    for record in run.probes.iter().filter(|record| compared(record)) {
        let kind = (record.probe(), record.phase.as_str());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        let mut probes: Vec<_> = run.probes.iter().map(|record| record.probe().name()).collect();
        probes.dedup();
        let what = format!(
            "samples of {} only",
            if probes.is_empty() { "nothing".into() } else { probes.join(", ") }
        );
        return Err(model::Error::invalid(name, what, "wake-ups, noise or periodic jobs").into());
    }
    let windows = kinds.into_iter().map(|(probe, phase)| window(dir, &run, probe, phase));
    let windows = windows.collect::<Result<_, _>>()?;
    let before: Option<model::machine::Snapshot> = store::read_json(&dir.join(&run.machine_before)).ok();
    Ok(MeasuredRun {
        name,
        tool: Tool::Stillcore,
        kernel: before.as_ref().map(|snapshot| snapshot.machine.kernel.release.clone()),
        cpu_model: before.and_then(|snapshot| snapshot.machine.cpu_model),
        idle_states: Some(match run.dma_latency_us {
            Some(us) => format!("/dev/cpu_dma_latency held at {us} us"),
            None => "idle states left to the machine".to_owned(),
        }),
        started_at: Some(run.started_at),
        windows,
    })
}

fn compared(record: &ProbeRecord) -> bool {
    record.phase != TRACED
        && matches!(record.probe(), ProbeKind::Wakeup | ProbeKind::Noise | ProbeKind::Periodic)
}

fn window(dir: &Path, run: &Run, probe: ProbeKind, phase: &str) -> Result<MeasuredWindow, Error> {
    let mine = |record: &&ProbeRecord| record.probe() == probe && record.phase == phase;
    let records: Vec<&ProbeRecord> = run.probes.iter().filter(mine).collect();
    let t0_ns = records.iter().map(|record| record.t0_ns).min().unwrap_or(0);
    let t1_ns = records.iter().map(|record| record.t1_ns).max().unwrap_or(0);
    let mut points: Vec<(i64, i64)> = Vec::new();
    let mut stalls = Vec::new();
    let mut charged_releases = 0;
    let mut least_ns: Option<i64> = None;
    for record in &records {
        let path = dir.join(&record.file);
        let (meta, samples) = samples_file::read(&path)?;
        let samples = unbiased(record, belonging(record, &path, &meta, samples)?);
        let charged = missed::of_probe(record, &samples);
        stalls.extend(missed::rows(&charged));
        charged_releases += charged.len() as u64;
        let served = samples.iter().filter(|sample| sample.counts());
        let least = served.clone().map(|sample: &Sample| sample.value_ns).min();
        least_ns = least_ns.into_iter().chain(least).min();
        points.extend(served.map(|sample| (sample.t_ns, sample.value_ns)));
        points.extend(charged.iter().map(|release| (release.release_ns, release.lateness_ns)));
    }
    let total = |of: fn(&ProbeRecord) -> u64| records.iter().map(|one| of(one)).fold(0, u64::saturating_add);
    let duration = total(duration_ns);
    let stolen = if probe == ProbeKind::Noise {
        let blocks = block_count(t1_ns.saturating_sub(t0_ns));
        let mut gaps = vec![0.0; blocks];
        points.iter().for_each(|&(t, gap)| gaps[block_of(t, t0_ns, t1_ns, blocks)] += gap.max(0) as f64);
        [gaps, vec![duration as f64 / blocks as f64; blocks]]
    } else {
        [Vec::new(), Vec::new()]
    };
    let first = records.first();
    let mut policies: Vec<String> = records.iter().map(|record| policy(record)).collect();
    policies.dedup();
    Ok(MeasuredWindow {
        probe,
        phase: phase.to_owned(),
        disturbed: run.phases.iter().any(|one| one.name == phase && one.disturbed),
        cpus: records.iter().map(|record| record.cpu).collect(),
        threads: records.len(),
        period_ns: first.and_then(|record| record.period_ns()),
        threshold_ns: first.and_then(|record| Some(record.noise()?.threshold_ns)),
        policy: Some(policies.join(", ")),
        duration_ns: Some(duration),
        missed: total(ProbeRecord::missed),
        charged: charged_releases,
        lost: total(|record| record.ring_lost),
        samples: Samples::Blocked {
            samples: BlockedSamples::new(points.into_iter(), &stalls, t0_ns, t1_ns),
            least_ns,
            stolen,
        },
    })
}

fn policy(record: &ProbeRecord) -> String {
    let policy = &record.policy_effective;
    if policy.priority > 0 { format!("{} {}", policy.name, policy.priority) } else { policy.name.clone() }
}
