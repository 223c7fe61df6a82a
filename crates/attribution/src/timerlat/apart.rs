//! Our own account of the time of timerlat's latest samples: the sources of what the kernel calls
//! noise, and the path of the wake-up.

use super::{Noise, NoiseKind, TimerlatSample};
use crate::Error;
use crate::attribute::paths::{Keep, Paths};
use crate::attribute::table::source_text;
use crate::decode::Decoder;
use crate::holes::Hole;
use crate::spans::{MeasuredCpu, Span, SpanBuilder};
use ftrace::{Item, TraceFile};
use model::EventClass;
use model::events::EventCatalogue;
use model::sample::ProbeKind;
use rustc_hash::FxHashMap;

/// Adds sources and paths to samples. `threads`: timerlat's thread by CPU.
pub(super) fn take_apart(
    file: &TraceFile,
    catalogue: &EventCatalogue,
    buffers: &[&str],
    threads: &FxHashMap<u32, i32>,
    samples: &mut [TimerlatSample],
) -> Result<(), Error> {
    let mut decoder = Decoder::of(file, catalogue)?;
    let mut cpus: Vec<u32> = samples.iter().map(|sample| sample.cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    // If only the handler was late, no thread is known, and nothing is its own.
    let tid = |cpu: u32| threads.get(&cpu).copied().unwrap_or(-1);
    let measured: Vec<MeasuredCpu> = cpus.iter().map(|&cpu| MeasuredCpu { cpu, tid: tid(cpu) }).collect();
    let mut paths = Paths::default();
    for &cpu in &cpus {
        let mut releases: Vec<(i64, i64)> =
            samples.iter().filter_map(|sample| release(sample, cpu)).collect();
        releases.sort_unstable();
        let thread = MeasuredCpu { cpu, tid: tid(cpu) };
        paths.add(cpu as usize, thread, Keep::default(), decoder.known(), releases.into_iter());
    }
    let mut found = Found::new(samples);
    let mut builder = SpanBuilder::new(i64::MIN, i64::MAX, &measured, decoder.known());
    let mut stream = file.stream_buffers(buffers)?;
    while let Some(item) = stream.next()? {
        match item {
            Item::Event(event) => {
                let Some(event) = decoder.decode(&event) else { continue };
                paths.event(&event);
                builder.event(&event, decoder.sets(), &mut |span| {
                    paths.span(span);
                    found.span(span, &decoder);
                });
            }
            Item::Lost { cpu, after_ts_ns, before_ts_ns, .. } => {
                let hole = Hole::new(cpu, after_ts_ns, before_ts_ns);
                paths.lost(hole);
                builder.lost(hole, &mut |span| found.span(span, &decoder));
            }
        }
    }
    builder.finish(&mut |span| {
        paths.span(span);
        found.span(span, &decoder);
    });
    let comm = |pid: i32| decoder.comm(pid).or_else(|| file.comm(pid)).map(str::to_owned);
    found.annotate(samples, &decoder, &comm);
    for (cpu, sums) in paths.finish() {
        let Some(section) = sums.section(("", ProbeKind::Wakeup), [cpu as u32, 0], decoder.labels(), &comm)
        else {
            continue;
        };
        for sample in samples.iter_mut().filter(|sample| sample.cpu as usize == cpu) {
            let mine = |path: &&crate::attribute::path_section::SamplePath| {
                release(sample, sample.cpu) == Some((path.t_ns, path.value_ns))
            };
            sample.path = section.worst.iter().find(mine).cloned();
        }
    }
    Ok(())
}

/// Release and latency of the thread, for a sample of this CPU.
fn release(sample: &TimerlatSample, cpu: u32) -> Option<(i64, i64)> {
    let latency_ns = sample.thread_latency_ns.filter(|_| sample.cpu == cpu)?;
    Some((sample.release_ns, i64::try_from(latency_ns).unwrap_or(i64::MAX)))
}

/// The place and content of a noise event.
struct Wanted {
    /// Place among the samples, and in the sample's noise.
    at: (usize, usize),
    cpu: u32,
    kind: NoiseKind,
    comm: String,
    /// The end of the previous one of its kind, and its own.
    between_ns: [i64; 2],
}

/// The span that ends nearest to each noise event.
struct Found {
    wanted: Vec<Wanted>,
    nearest: Vec<Option<(u64, Span)>>,
}

impl Found {
    fn new(samples: &[TimerlatSample]) -> Self {
        let of = |(at, sample): (usize, &TimerlatSample)| {
            let one = |(place, noise): (usize, &Noise)| {
                let before = sample.noise[..place].iter().rev().find(|before| before.kind == noise.kind);
                // The first one may have begun before the release.
                let first_ns = sample.release_ns.min(noise.end_ns.saturating_sub_unsigned(noise.net_ns));
                Wanted {
                    at: (at, place),
                    cpu: sample.cpu,
                    kind: noise.kind,
                    comm: comm(noise).to_owned(),
                    between_ns: [before.map_or(first_ns, |before| before.end_ns), noise.end_ns],
                }
            };
            sample.noise.iter().enumerate().map(one).collect::<Vec<_>>()
        };
        let wanted: Vec<_> = samples.iter().enumerate().flat_map(of).collect();
        Self { nearest: vec![None; wanted.len()], wanted }
    }

    /// The kernel counts noise in the same exit, or switch, in which our event is recorded: before
    /// or after it, but with nothing of its kind between them. So a noise event belongs to what
    /// ended last, or is about to end.
    fn span(&mut self, span: &Span, decoder: &Decoder) {
        for (wanted, nearest) in self.wanted.iter().zip(&mut self.nearest) {
            let ([after_ns, end_ns], far) = (wanted.between_ns, span.t1_ns.abs_diff(wanted.between_ns[1]));
            let here = wanted.cpu == span.cpu && span.t0_ns < end_ns && span.t1_ns > after_ns;
            let named =
                || wanted.kind != NoiseKind::Thread || decoder.labels().text(span.label) == wanted.comm;
            if here
                && fits(wanted.kind, span.class)
                && nearest.is_none_or(|(known, _)| far < known)
                && named()
            {
                *nearest = Some((far, *span));
            }
        }
    }

    fn annotate(
        &self,
        samples: &mut [TimerlatSample],
        decoder: &Decoder,
        comm: &dyn Fn(i32) -> Option<String>,
    ) {
        for (wanted, nearest) in self.wanted.iter().zip(&self.nearest) {
            let (at, n) = wanted.at;
            let (Some(noise), Some((_, span))) =
                (samples.get_mut(at).and_then(|one| one.noise.get_mut(n)), nearest)
            else {
                continue;
            };
            let cause = span.causes.iter().next();
            noise.ours = Some(format!("{} {}", span.class.name(), decoder.labels().text(span.label)));
            noise.source = cause.map(|cause| source_text(&cause.source, decoder.labels(), comm));
            noise.confidence = cause.map(|cause| cause.confidence);
        }
    }
}

/// The task that a thread's noise names.
fn comm(noise: &Noise) -> &str {
    noise.what.rsplit_once(':').map_or("", |(comm, _)| comm)
}

/// Whether a span of this class may be what the kernel counts as noise of this kind.
fn fits(kind: NoiseKind, class: EventClass) -> bool {
    match kind {
        NoiseKind::Nmi => class == EventClass::Nmi,
        NoiseKind::Softirq => class == EventClass::Softirq,
        NoiseKind::Thread => class == EventClass::Switch,
        NoiseKind::Irq => matches!(
            class,
            EventClass::IpiCall
                | EventClass::IpiResched
                | EventClass::IpiIrqwork
                | EventClass::Irq
                | EventClass::TimerTick
                | EventClass::TimerHrtimer
                | EventClass::SelfCaused
        ),
    }
}
