//! The results of the kernel's own latency tracers, read from a trace recorded with them:
//! timerlat's samples, the noise that osnoise counted between release and sample, and our account
//! of the same time.
//!
//! timerlat's thread sleeps until its timer; the handler notes its latency (context 0), then the
//! thread (1), then its user side (2). Noise events give the net length of what ran, at its end. If
//! the trace also has the events of interrupts and the scheduler, each noise event gets its source,
//! and the sample its path.
//! Source: Documentation/trace/timerlat-tracer.rst, osnoise-tracer.rst;
//! kernel/trace/trace_osnoise.c.

mod apart;
mod read;

use crate::Error;
use crate::attribute::Confidence;
use crate::attribute::path_section::SamplePath;
use crate::attribute::section::SourceText;
use ftrace::TraceFile;
use model::events::EventCatalogue;
use serde::Serialize;

pub(crate) use read::of_tracers;

/// The results of the tracers in one trace.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct KernelResults {
    /// timerlat, CPU by CPU.
    pub timerlat: Vec<TimerlatCpu>,
    /// Its latest samples, latest first.
    pub worst: Vec<TimerlatSample>,
    /// osnoise, CPU by CPU.
    pub osnoise: Vec<OsnoiseCpu>,
    /// Places where the trace misses events.
    pub holes: u64,
}

/// timerlat on one CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TimerlatCpu {
    /// The CPU.
    pub cpu: u32,
    /// Samples of the timer's handler.
    pub irq_samples: u64,
    /// Samples of the thread.
    pub thread_samples: u64,
    /// The observed maximum of the handler, ns.
    pub irq_max_ns: u64,
    /// The observed maximum of the thread, ns.
    pub thread_max_ns: u64,
    /// Samples whose latest latency is at or above the threshold.
    pub over: u64,
}

/// One sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TimerlatSample {
    /// The CPU.
    pub cpu: u32,
    /// Its number.
    pub seq: u64,
    /// When it was due, ns of the trace clock: time of recording minus latency.
    pub release_ns: i64,
    /// Until the timer's handler ran, ns.
    pub irq_latency_ns: Option<u64>,
    /// Until the thread ran, ns; absent where tracing stopped before.
    pub thread_latency_ns: Option<u64>,
    /// Until it was back in user space, ns.
    pub user_latency_ns: Option<u64>,
    /// What the kernel counted as noise from the release to the last of these, by end.
    pub noise: Vec<Noise>,
    /// The path of the thread, if the trace has the events for it.
    pub path: Option<SamplePath>,
}

impl TimerlatSample {
    /// The latest of its latencies, ns.
    pub fn latency_ns(&self) -> u64 {
        self.thread_latency_ns.or(self.irq_latency_ns).unwrap_or(0)
    }
}

/// What kind of noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum NoiseKind {
    /// A non-maskable interrupt.
    Nmi,
    /// An interrupt.
    Irq,
    /// A softirq.
    Softirq,
    /// A task, idle included.
    Thread,
}

/// Something that ran.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Noise {
    /// What kind.
    pub kind: NoiseKind,
    /// As the kernel names it.
    pub what: String,
    /// Its end, ns of the trace clock.
    pub end_ns: i64,
    /// Its length without what interrupted it, ns.
    pub net_ns: u64,
    /// Its name in our own account.
    pub ours: Option<String>,
    /// Who caused it.
    pub source: Option<SourceText>,
    /// The confidence of the source.
    pub confidence: Option<Confidence>,
}

/// osnoise on one CPU, over all its periods.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OsnoiseCpu {
    /// The CPU.
    pub cpu: u32,
    /// Periods.
    pub periods: u64,
    /// Time in the loop, ns.
    pub runtime_ns: u64,
    /// Noise in that time, ns.
    pub noise_ns: u64,
    /// The longest single noise, ns.
    pub max_ns: u64,
    /// Noise with no event: hardware, firmware, hypervisor.
    pub hardware: u64,
    /// NMIs.
    pub nmis: u64,
    /// Interrupts.
    pub irqs: u64,
    /// Softirqs.
    pub softirqs: u64,
    /// Tasks.
    pub threads: u64,
}

/// Which of timerlat's samples are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// At least this late, ns.
    pub over_ns: u64,
    /// Only what was due at this time.
    pub release_ns: Option<i64>,
    /// How many, latest first.
    pub keep: usize,
}

/// The tracers' results in some buffers of a trace; the wanted samples of timerlat are taken apart
/// as far as the trace's other events allow. `None` where no tracer has left any.
pub fn kernel_results(
    file: &TraceFile,
    buffers: &[&str],
    wanted: &Wanted,
) -> Result<Option<KernelResults>, Error> {
    let mut read = read::read(file, buffers, wanted)?;
    if read.results.timerlat.is_empty() && read.results.osnoise.is_empty() {
        return Ok(None);
    }
    apart::take_apart(file, &EventCatalogue::embedded()?, buffers, &read.threads, &mut read.results.worst)?;
    Ok(Some(read.results))
}

#[cfg(test)]
mod tests;
