//! One stretch of the trace while it streams by: what each of its measuring threads receives.
//!
//! Spans are seen from one thread on each CPU: what it causes itself is `self`, and everything else
//! interferes with it. Where several threads measure on a CPU, the tasks of a task set for one, the
//! stretch is seen once for each, in layers that know nothing of one another.

use crate::measured::Measured;
use crate::snapshots::Around;
use attribution::attribute::paths::{PathSums, Paths};
use attribution::holes::Hole;
use attribution::labels::CpuSets;
use attribution::spans::{Known, MeasuredCpu, Span, SpanBuilder};
use attribution::view::KernelEvent;
use model::cpus::MAX_CPU;
use model::run::Window;
use model::sample::ProbeKind;

/// What is counted in, for one stretch.
pub(crate) struct Sums<'s, 'r> {
    pub(crate) measured: &'s mut [Measured<'r>],
    pub(crate) around: &'s mut Around,
}

/// A thread on each CPU.
struct Layer {
    builder: SpanBuilder,
    paths: Paths,
    /// Place in `measured` by CPU.
    places: Vec<Option<usize>>,
}

/// All threads of a stretch.
pub(crate) struct Layers(Vec<Layer>);

impl Layers {
    /// For the stretch from `t0_ns` to `t1_ns` of a window.
    pub(crate) fn new(
        [t0_ns, t1_ns]: [i64; 2],
        window: &Window,
        known: Known,
        sums: &mut Sums<'_, '_>,
    ) -> Self {
        let mut layers: Vec<(Vec<MeasuredCpu>, Paths, Vec<Option<usize>>)> = Vec::new();
        for (one, measured) in sums.measured.iter().enumerate() {
            let inside = measured.window.is_some_and(|own| std::ptr::eq(own, window));
            let (Some(tally), record) = (&measured.tally, measured.record) else { continue };
            if !inside || record.cpu > MAX_CPU {
                continue;
            }
            let cpu = record.cpu as usize;
            let taken = |layer: &(_, _, Vec<Option<usize>>)| layer.2.get(cpu).is_some_and(Option::is_some);
            let at = layers.iter().position(|layer| !taken(layer)).unwrap_or(layers.len());
            if at == layers.len() {
                layers.push(Default::default());
            }
            let (cpus, paths, places) = &mut layers[at];
            cpus.push(MeasuredCpu { cpu: record.cpu, tid: record.tid });
            places.resize(places.len().max(cpu + 1), None);
            places[cpu] = Some(one);
            let whole =
                |(t_ns, value_ns): &(i64, i64)| *t_ns >= t0_ns && t_ns.saturating_add(*value_ns) <= t1_ns;
            let samples = || tally.intervals.samples().filter(whole);
            let thread = MeasuredCpu { cpu: record.cpu, tid: record.tid };
            match record.probe() {
                ProbeKind::Wakeup | ProbeKind::Noise => {
                    paths.add(one, thread, measured.keep, known, samples());
                }
                ProbeKind::Graph => {
                    paths.add(one, thread, measured.keep, known, of_releases(samples()).into_iter());
                }
                _ => {}
            }
        }
        let layer = |(cpus, paths, places): (Vec<MeasuredCpu>, Paths, _)| Layer {
            builder: SpanBuilder::new(t0_ns, t1_ns, &cpus, known),
            paths,
            places,
        };
        Self(layers.into_iter().map(layer).collect())
    }

    /// The next event of the merged stream.
    pub(crate) fn event(&mut self, event: &KernelEvent, sets: &CpuSets, sums: &mut Sums<'_, '_>) {
        for Layer { builder, paths, places } in &mut self.0 {
            if let Some(one) = place(places, event.cpu)
                && let Some(tally) = &mut sums.measured[one].tally
            {
                tally.event(event);
            }
            paths.event(event);
            builder.event(event, sets, &mut sink(places, paths, sums));
        }
    }

    /// Events are missing from here on.
    pub(crate) fn lost(&mut self, hole: Hole, sums: &mut Sums<'_, '_>) {
        for Layer { builder, paths, places } in &mut self.0 {
            paths.lost(hole);
            builder.lost(hole, &mut sink(places, paths, sums));
        }
    }

    /// Ends the stretch.
    pub(crate) fn close(self, sums: &mut Sums<'_, '_>) {
        for Layer { builder, mut paths, places } in self.0 {
            for (cpu, breaks) in builder.breaks() {
                let tally = place(&places, cpu).and_then(|one| sums.measured[one].tally.as_mut());
                tally.into_iter().for_each(|tally| tally.breaks += breaks);
            }
            builder.finish(&mut sink(&places, &mut paths, sums));
            for (one, found) in paths.finish() {
                let measured = &mut sums.measured[one];
                measured.paths.get_or_insert_with(|| PathSums::keeping(measured.keep)).append(found);
            }
        }
    }
}

/// Messages by release, of each release the last to be received: an executor is woken once for all
/// of them.
fn of_releases(samples: impl Iterator<Item = (i64, i64)>) -> Vec<(i64, i64)> {
    let mut last = std::collections::BTreeMap::new();
    for (release_ns, latency_ns) in samples {
        let longest = last.entry(release_ns).or_insert(latency_ns);
        *longest = latency_ns.max(*longest);
    }
    last.into_iter().collect()
}

fn place(places: &[Option<usize>], cpu: u32) -> Option<usize> {
    places.get(cpu as usize).copied().flatten()
}

/// Gives each span to the sums of its CPU.
fn sink<'s>(
    places: &'s [Option<usize>],
    paths: &'s mut Paths,
    sums: &'s mut Sums<'_, '_>,
) -> impl FnMut(&Span) {
    move |span| {
        paths.span(span);
        if let Some(one) = place(places, span.cpu)
            && let Some(tally) = &mut sums.measured[one].tally
        {
            tally.span(span);
            sums.around.span(one, span);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_messages_of_one_release_the_last_counts() {
        let samples = [(500, 20), (100, 5), (500, 90), (500, 30), (300, 1)];
        assert_eq!(of_releases(samples.into_iter()), [(100, 5), (300, 1), (500, 90)]);
    }
}
