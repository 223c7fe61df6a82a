//! Spans and paths of the threads that are taken apart, made from decoded steps.

use super::apart::Naming;
use super::chosen::{Chosen, Measured};
use super::steps::{Rare, Step, Steps};
use crate::attribute::paths::{Keep, Paths};
use crate::attribute::table::Table;
use crate::attribute::thread_paths::{CpuSources, ThreadPaths};
use crate::beside::Work;
use crate::by_cpu::ByCpu;
use crate::labels::CpuSets;
use crate::spans::{Known, MeasuredCpu, Span, SpanBuilder};
use crate::view::{At, Switch, Task};

/// Spans and paths of one thread per CPU.
struct Layer {
    builder: SpanBuilder,
    paths: Paths,
    /// What ran on each CPU beside that thread; first layer only.
    tables: ByCpu<(i32, Table)>,
}

impl Layer {
    fn new(measured: &[Measured<'_>], is_first: bool, window: [i64; 2], keep: Keep, known: Known) -> Self {
        let mut paths = Paths::default();
        for one in measured {
            if let Some((place, samples)) = one.samples {
                paths.add(place, one.thread, keep, known, samples.iter().copied());
            }
        }
        let threads: Vec<MeasuredCpu> = measured.iter().map(|one| one.thread).collect();
        let builder = SpanBuilder::new(window[0], window[1], &threads, known);
        let mut tables = ByCpu::default();
        for one in threads.iter().filter(|_| is_first) {
            tables.insert(one.cpu, (one.tid, Table::default()));
        }
        Self { builder, paths, tables }
    }

    fn take(&mut self, given: &Steps, sets: &CpuSets) -> bool {
        let Self { builder, paths, tables } = self;
        let (mut events, mut rare) = (given.events.iter(), given.rare.iter());
        for step in &given.all {
            match *step {
                Step::Switch { ts_ns, cpu, level, irqs_off, runnable, pids, prios, comms, softirqd } => {
                    let at = At { ts_ns, cpu, pid: pids[0], level, irqs_off };
                    let task = |of: usize| Task {
                        pid: pids[of],
                        prio: prios[of],
                        comm: comms[of],
                        softirqd: softirqd[of],
                    };
                    let switch = Switch { prev: task(0), runnable, next: task(1) };
                    paths.switch(at, switch);
                    builder.switch(at, switch, &mut |span| give(span, paths, tables));
                }
                Step::Wake(at, wake) => {
                    paths.wake(at, wake);
                    builder.wake(at, wake, &mut |span| give(span, paths, tables));
                }
                Step::Other => {
                    let Some(event) = events.next() else { continue };
                    paths.event(event);
                    builder.event(event, sets, &mut |span| give(span, paths, tables));
                }
                Step::Rare => match rare.next() {
                    Some(Rare::Lost(hole)) => {
                        paths.lost(*hole);
                        builder.lost(*hole, &mut |span| give(span, paths, tables));
                    }
                    Some(Rare::Released(tid, release_ns)) => {
                        let is_useful = paths.released(*tid, *release_ns);
                        if !is_useful {
                            return false;
                        }
                    }
                    Some(Rare::Ran(tid, ran)) => paths.ran(*tid, *ran),
                    None => {}
                },
            }
        }
        true
    }
}

#[inline(always)]
fn give(span: &Span, paths: &mut Paths, tables: &mut ByCpu<(i32, Table)>) {
    paths.span(span);
    if let Some((_, table)) = tables.get_mut(span.cpu) {
        table.add(span, span.net_ns);
    }
}

/// All layers.
pub(super) struct Layers {
    all: Vec<Layer>,
    sets: CpuSets,
}

impl Layers {
    /// For events inside a window.
    pub(super) fn new(chosen: &Chosen, known: Known, window: [i64; 2], keep: Keep) -> Self {
        let layers = chosen.layers();
        let layer =
            |(at, measured): (usize, &Vec<Measured<'_>>)| Layer::new(measured, at == 0, window, keep, known);
        Self { all: layers.iter().enumerate().map(layer).collect(), sets: CpuSets::default() }
    }

    /// The last event was at `t1_ns`.
    pub(super) fn until(&mut self, t1_ns: i64) {
        self.all.iter_mut().for_each(|layer| layer.builder.until(t1_ns));
    }

    /// The results for the chosen threads, the most late time first; and for the CPUs.
    pub(super) fn finish(self, names: &Naming<'_>, chosen: &Chosen) -> (Vec<ThreadPaths>, Vec<CpuSources>) {
        let (mut paths, mut attribution) = (Vec::new(), Vec::new());
        for mut layer in self.all {
            layer.builder.finish(&mut |span| give(span, &mut layer.paths, &mut layer.tables));
            attribution.extend(names.sources(&layer.tables));
            let mut of_layer = names.paths(layer.paths);
            of_layer.sort_by_key(|one| chosen.place(one));
            paths.extend(of_layer);
        }
        paths.sort_by_key(|one| std::cmp::Reverse(one.path.total_ns));
        (paths, attribution)
    }
}

impl Work for Layers {
    type Batch = Steps;

    fn work(&mut self, batch: &mut Steps) -> bool {
        let Self { all, sets } = self;
        sets.extend(batch.sets.drain(..));
        let useful = all.iter_mut().all(|layer| layer.take(batch, sets));
        batch.all.clear();
        batch.events.clear();
        batch.rare.clear();
        useful
    }
}
