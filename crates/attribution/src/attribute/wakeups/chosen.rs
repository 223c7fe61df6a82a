//! Which threads of a trace are taken apart, and in which layers.

use crate::attribute::thread_paths::ThreadPaths;
use crate::attribute::watch::program::Wakeup;
use crate::spans::MeasuredCpu;
use model::Cpus;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};

/// No thread: on a CPU where no thread is taken apart, nothing is self-caused.
pub(super) const NOBODY: i32 = -1;
/// The most threads per CPU that are taken apart, unless all are wanted.
const MOST_A_CPU: usize = 4;

/// A thread on one CPU, with release and latency of each of its wake-ups there, by release, ns.
type Thread = (MeasuredCpu, Vec<(i64, i64)>);

/// The threads to be taken apart.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    /// By total waiting time, longest first.
    threads: Vec<Thread>,
    /// The CPUs.
    cpus: Vec<u32>,
    left_out: usize,
}

/// Chooses among the wake-ups of a trace: those on the CPUs `wanted`, else on all `recorded`.
/// `all`: every thread; else those of each CPU that waited longest.
pub(crate) fn choose(wakeups: &[Wakeup], recorded: &Cpus, wanted: Option<&Cpus>, all: bool) -> Chosen {
    let is_wanted = |cpu: u32| wanted.unwrap_or(recorded).contains(cpu);
    let mut by_thread: BTreeMap<(u32, i32), Vec<(i64, i64)>> = BTreeMap::new();
    for one in wakeups.iter().filter(|one| is_wanted(one.cpu)) {
        let sample = (one.release_ns, one.ran_ns.saturating_sub(one.release_ns));
        by_thread.entry((one.cpu, one.tid)).or_default().push(sample);
    }
    let mut threads: Vec<Thread> =
        by_thread.into_iter().map(|((cpu, tid), samples)| (MeasuredCpu { cpu, tid }, samples)).collect();
    threads.iter_mut().for_each(|(_, samples)| samples.sort_unstable());
    threads.sort_by_key(|(_, samples)| {
        std::cmp::Reverse(samples.iter().fold(0i64, |sum, (_, ns)| sum.saturating_add(*ns)))
    });
    let found = threads.len();
    if !all {
        let mut of_cpu: FxHashMap<u32, usize> = FxHashMap::default();
        threads.retain(|(thread, _)| {
            let before = of_cpu.entry(thread.cpu).or_default();
            *before += 1;
            *before <= MOST_A_CPU
        });
    }
    let of_threads: BTreeSet<u32> = threads.iter().map(|(thread, _)| thread.cpu).collect();
    let cpus = match wanted {
        Some(cpus) => cpus.iter().filter(|cpu| recorded.contains(*cpu)).collect(),
        None if of_threads.is_empty() => recorded.iter().collect(),
        None => of_threads.into_iter().collect(),
    };
    Chosen { left_out: found - threads.len(), threads, cpus }
}

/// A thread on one CPU of a layer.
pub(super) struct Measured<'c> {
    pub(super) thread: MeasuredCpu,
    /// Its place among the chosen ones, and its wake-ups; none for [`NOBODY`].
    pub(super) samples: Option<(usize, &'c [(i64, i64)])>,
}

impl Chosen {
    /// As many layers as the CPU with most threads needs; the first has every CPU.
    pub(super) fn layers(&self) -> Vec<Vec<Measured<'_>>> {
        let mut layers: Vec<Vec<Measured<'_>>> = vec![Vec::new()];
        for (place, (thread, samples)) in self.threads.iter().enumerate() {
            let free = |measured: &Vec<Measured<'_>>| measured.iter().all(|one| one.thread.cpu != thread.cpu);
            let at = layers.iter().position(free).unwrap_or(layers.len());
            if at == layers.len() {
                layers.push(Vec::new());
            }
            layers[at].push(Measured { thread: *thread, samples: Some((place, samples)) });
        }
        for &cpu in &self.cpus {
            if layers[0].iter().all(|one| one.thread.cpu != cpu) {
                layers[0].push(Measured { thread: MeasuredCpu { cpu, tid: NOBODY }, samples: None });
            }
        }
        layers
    }

    /// Whether the same threads are measured in the same layers.
    pub(crate) fn is_measured_as(&self, other: &Self) -> bool {
        let measured = |chosen: &Self| -> Vec<Vec<(u32, i32)>> {
            let sorted = |layer: Vec<Measured<'_>>| {
                let mut layer: Vec<_> = layer.iter().map(|one| (one.thread.cpu, one.thread.tid)).collect();
                layer.sort_unstable();
                layer
            };
            chosen.layers().into_iter().map(sorted).collect()
        };
        measured(self) == measured(other)
    }

    /// Whether it has this thread on this CPU.
    pub(crate) fn has(&self, cpu: u32, tid: i32) -> bool {
        self.threads.iter().any(|(thread, _)| *thread == MeasuredCpu { cpu, tid })
    }

    pub(super) fn place(&self, one: &ThreadPaths) -> Option<usize> {
        let thread = MeasuredCpu { cpu: one.path.cpu, tid: one.tid };
        self.threads.iter().position(|(other, _)| *other == thread)
    }

    /// Whether all threads that were seen are in it.
    pub(crate) fn is_complete(&self) -> bool {
        self.left_out == 0
    }

    /// The same without their wake-ups.
    pub(crate) fn without_wakeups(mut self) -> Self {
        self.threads.iter_mut().for_each(|(_, wakeups)| wakeups.clear());
        self
    }

    /// Whether any thread is to be taken apart.
    pub(crate) fn has_threads(&self) -> bool {
        !self.threads.is_empty()
    }

    /// The statement that some are left out.
    pub(crate) fn statement(&self) -> Option<String> {
        let more = match self.left_out {
            0 => return None,
            1 => "1 more thread".to_owned(),
            many => format!("{many} more threads"),
        };
        Some(format!(
            "the wake-ups of {more} were not taken apart: of each CPU those {MOST_A_CPU} were that waited longest in all"
        ))
    }
}
