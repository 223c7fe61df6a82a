//! The tracers' entries and noise events, as they were recorded.

use super::{KernelResults, Noise, NoiseKind, OsnoiseCpu, TimerlatCpu, TimerlatSample, Wanted};
use crate::Error;
use crate::decode::SOFTIRQS;
use ftrace::{Endian, Event, EventFormat, Field, Item, TraceFile};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// The most noise events kept per CPU: a sample with more loses its earliest.
const MOST: usize = 4096;

/// What was read.
#[derive(Default)]
pub(super) struct Read {
    pub(super) results: KernelResults,
    /// timerlat's threads by CPU.
    pub(super) threads: FxHashMap<u32, i32>,
}

/// One CPU while the trace streams by.
#[derive(Default)]
struct Cpu {
    timerlat: TimerlatCpu,
    osnoise: OsnoiseCpu,
    open: Option<TimerlatSample>,
    noise: VecDeque<Noise>,
}

pub(super) fn read(file: &TraceFile, buffers: &[&str], wanted: &Wanted) -> Result<Read, Error> {
    let formats = file.formats();
    let endian = formats.endian();
    let mut cpus: FxHashMap<u32, Cpu> = FxHashMap::default();
    let (mut read, mut worst) = (Read::default(), Worst { wanted: *wanted, samples: Vec::new() });
    let tracers = of_tracers(file);
    if tracers.is_empty() {
        return Ok(read);
    }
    let mut stream = file.stream_buffers(buffers)?;
    while let Some(item) = stream.next()? {
        let event = match item {
            Item::Event(event) => event,
            Item::Lost { cpu, .. } => {
                read.results.holes += 1;
                // Its noise is incomplete, too.
                cpus.remove(&cpu).into_iter().for_each(|one| worst.close(one, &mut cpus, cpu));
                continue;
            }
        };
        if !tracers.get(usize::from(event.id)).copied().unwrap_or(false) {
            continue;
        }
        let Some(format) = formats.by_id(event.id) else { continue };
        let fields = Fields { format, event: &event, endian };
        let cpu = cpus.entry(event.cpu).or_default();
        match (format.system.as_str(), format.name.as_str()) {
            ("ftrace", "timerlat") => {
                if fields.number("context") == 1 {
                    read.threads.insert(event.cpu, event.pid);
                }
                cpu.sample(&fields, &mut worst);
            }
            ("ftrace", "osnoise") => cpu.period(&fields),
            ("osnoise", _) => cpu.noise(&fields),
            _ => {}
        }
    }
    let mut all: Vec<(u32, Cpu)> = cpus.into_iter().collect();
    all.sort_by_key(|(cpu, _)| *cpu);
    for (cpu, mut one) in all {
        worst.take(one.open.take(), &mut one.timerlat);
        if one.timerlat.irq_samples + one.timerlat.thread_samples > 0 {
            read.results.timerlat.push(TimerlatCpu { cpu, ..one.timerlat });
        }
        if one.osnoise.periods > 0 {
            read.results.osnoise.push(OsnoiseCpu { cpu, ..one.osnoise });
        }
    }
    read.results.worst = worst.samples;
    Ok(read)
}

/// By number, whether an event is of these tracers; empty where the kernel has neither.
pub(crate) fn of_tracers(file: &TraceFile) -> Vec<bool> {
    let mut tracers = Vec::new();
    for format in file.formats().iter() {
        if matches!(
            (format.system.as_str(), format.name.as_str()),
            ("ftrace", "timerlat" | "osnoise") | ("osnoise", _)
        ) {
            let at = usize::from(format.id);
            tracers.resize(tracers.len().max(at + 1), false);
            tracers[at] = true;
        }
    }
    tracers
}

/// The latest samples.
struct Worst {
    wanted: Wanted,
    samples: Vec<TimerlatSample>,
}

impl Worst {
    fn take(&mut self, sample: Option<TimerlatSample>, sums: &mut TimerlatCpu) {
        let Some(sample) = sample.filter(|sample| sample.latency_ns() >= self.wanted.over_ns) else { return };
        sums.over += 1;
        if self.wanted.release_ns.is_some_and(|wanted| wanted != sample.release_ns) {
            return;
        }
        let at = self.samples.partition_point(|other| other.latency_ns() >= sample.latency_ns());
        if at < self.wanted.keep {
            self.samples.insert(at, sample);
            self.samples.truncate(self.wanted.keep);
        }
    }

    /// Ends what is open on a CPU whose events are missing; its sums stay.
    fn close(&mut self, mut one: Cpu, cpus: &mut FxHashMap<u32, Cpu>, cpu: u32) {
        self.take(one.open.take(), &mut one.timerlat);
        cpus.insert(cpu, Cpu { open: None, noise: VecDeque::new(), ..one });
    }
}

impl Cpu {
    fn sample(&mut self, fields: &Fields<'_>, worst: &mut Worst) {
        let (seq, latency_ns) = (fields.number("seqnum"), fields.number("timer_latency"));
        let release_ns = fields.ts_ns().saturating_sub_unsigned(latency_ns);
        if self.open.as_ref().is_none_or(|open| open.seq != seq) {
            worst.take(self.open.take(), &mut self.timerlat);
            // What ended before the release does not touch this sample or a later one.
            while self.noise.front().is_some_and(|noise| noise.end_ns <= release_ns) {
                self.noise.pop_front();
            }
            let cpu = fields.event.cpu;
            self.open = Some(TimerlatSample { cpu, seq, release_ns, ..TimerlatSample::default() });
        }
        let Some(open) = &mut self.open else { return };
        match fields.number("context") {
            0 => {
                self.timerlat.irq_samples += 1;
                self.timerlat.irq_max_ns = self.timerlat.irq_max_ns.max(latency_ns);
                open.irq_latency_ns = Some(latency_ns);
            }
            1 => {
                self.timerlat.thread_samples += 1;
                self.timerlat.thread_max_ns = self.timerlat.thread_max_ns.max(latency_ns);
                open.thread_latency_ns = Some(latency_ns);
            }
            _ => open.user_latency_ns = Some(latency_ns),
        }
        open.noise = self.noise.iter().filter(|noise| noise.end_ns > open.release_ns).cloned().collect();
    }

    fn period(&mut self, fields: &Fields<'_>) {
        let sums = &mut self.osnoise;
        let add = |sum: &mut u64, name: &str| *sum = sum.saturating_add(fields.number(name));
        sums.periods += 1;
        add(&mut sums.runtime_ns, "runtime");
        add(&mut sums.noise_ns, "noise");
        add(&mut sums.hardware, "hw_count");
        add(&mut sums.nmis, "nmi_count");
        add(&mut sums.irqs, "irq_count");
        add(&mut sums.softirqs, "softirq_count");
        add(&mut sums.threads, "thread_count");
        sums.max_ns = sums.max_ns.max(fields.number("max_sample"));
    }

    fn noise(&mut self, fields: &Fields<'_>) {
        let (kind, what) = match fields.format.name.as_str() {
            "nmi_noise" => (NoiseKind::Nmi, String::new()),
            "irq_noise" => (NoiseKind::Irq, format!("{}:{}", fields.text("desc"), fields.number("vector"))),
            "softirq_noise" => {
                let name = SOFTIRQS.get(fields.number("vector") as usize).copied().unwrap_or("?");
                (NoiseKind::Softirq, name.to_owned())
            }
            "thread_noise" => {
                (NoiseKind::Thread, format!("{}:{}", fields.text("comm"), fields.number("pid")))
            }
            _ => return,
        };
        if self.noise.len() == MOST {
            self.noise.pop_front();
        }
        let (end_ns, net_ns) = (fields.ts_ns(), fields.number("duration"));
        self.noise.push_back(Noise {
            kind,
            what,
            end_ns,
            net_ns,
            ours: None,
            source: None,
            confidence: None,
        });
    }
}

/// The fields of an event, by name.
struct Fields<'e> {
    format: &'e EventFormat,
    event: &'e Event<'e>,
    endian: Endian,
}

impl Fields<'_> {
    fn field(&self, name: &str) -> Option<&Field> {
        self.format.field(name)
    }

    fn number(&self, name: &str) -> u64 {
        self.field(name).and_then(|field| field.uint(self.event.data, self.endian)).unwrap_or(0)
    }

    fn text(&self, name: &str) -> String {
        let text = self.field(name).and_then(|field| field.text(self.event.data, self.endian));
        text.map_or_else(String::new, std::borrow::Cow::into_owned)
    }

    fn ts_ns(&self) -> i64 {
        i64::try_from(self.event.ts_ns).unwrap_or(i64::MAX)
    }
}
