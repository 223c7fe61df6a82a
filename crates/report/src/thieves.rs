//! Who took the time of busy loops: by the trace where there is one, else by counters, each cause
//! with its range.

use analysis::noise_causes::NoiseCauses;
use attribution::attribute::delay::Blocking;
use attribution::attribute::path_section::{PathBox, PathSection};
use model::EventClass;
use model::sample::ProbeKind;
use std::collections::BTreeMap;

use crate::words::{certainty_title, class_title, thief_title};
use crate::{Document, format};

/// How a cause is known that no event shows.
pub(crate) const UNRECORDED: &str = "no event was recorded";

/// What one cause took from one loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thieves {
    /// Phase of its window.
    pub phase: String,
    /// The CPU.
    pub cpu: u32,
    /// The cause.
    pub cause: String,
    /// How often it took time: by counters in so many gaps; by the trace also more than once in
    /// one.
    pub times: u64,
    /// At least and at most, all of it together, ns.
    pub range_ns: [u64; 2],
    /// The most in one gap, ns.
    pub max_ns: u64,
    /// How that is known.
    pub sure: &'static str,
}

impl Thieves {
    /// The range in words; one value where both ends are the same.
    pub fn range_words(&self) -> String {
        let [least, most] = self.range_ns.map(|ns| format::ns(ns as i64));
        if least == most { least } else { format!("{least} to {most}") }
    }
}

/// A row a cause, in the order of the windows; of each the largest first.
pub fn thieves(document: &Document) -> Vec<Thieves> {
    let analysis = &document.analysis;
    let gaps = |one: &&PathSection| one.probe == ProbeKind::Noise;
    let traced: Vec<&PathSection> = analysis.paths.iter().filter(gaps).collect();
    let seen = |one: &NoiseCauses| traced.iter().any(|path| (&path.phase, path.cpu) == (&one.phase, one.cpu));
    let counted = analysis.noise_causes.iter().filter(|one| !seen(one)).flat_map(by_counters);
    traced.iter().flat_map(|path| by_trace(path)).chain(counted).collect()
}

/// Boxes of the same class are one cause; of tasks the one that took most is named.
fn by_trace(path: &PathSection) -> Vec<Thieves> {
    let mut rows: Vec<Thieves> = Vec::new();
    let mut tasks = BTreeMap::<&str, u64>::new();
    for part in path.boxes.iter().filter(|part| part.ns > 0) {
        let cause = name(part);
        if part.class == Some(EventClass::Switch) {
            *tasks.entry(part.label.as_deref().unwrap_or("?")).or_default() += part.ns;
        }
        if let Some(row) = rows.iter_mut().find(|row| row.cause == cause) {
            row.times += part.count;
            row.range_ns = row.range_ns.map(|ns| ns + part.ns);
            row.max_ns = row.max_ns.max(part.max_ns);
            continue;
        }
        let sure = if part.is_step() { UNRECORDED } else { "by the trace" };
        let (phase, cpu) = (path.phase.clone(), path.cpu);
        rows.push(Thieves {
            phase,
            cpu,
            cause,
            times: part.count,
            range_ns: [part.ns; 2],
            max_ns: part.max_ns,
            sure,
        });
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.range_ns));
    // What boxes that are not listed are of is not known.
    let others = || path.others.iter();
    let ns = others().map(|sum| sum.ns).fold(0, u64::saturating_add);
    if ns > 0 {
        rows.push(Thieves {
            phase: path.phase.clone(),
            cpu: path.cpu,
            cause: "smaller ones, not listed".to_owned(),
            times: others().map(|sum| sum.count).fold(0, u64::saturating_add),
            range_ns: [ns; 2],
            max_ns: others().map(|sum| sum.max_ns).max().unwrap_or(0),
            sure: "by the trace",
        });
    }
    if let Some((most, _)) = tasks.iter().max_by_key(|(_, ns)| **ns) {
        let title = class_title(EventClass::Switch);
        let more = tasks.len() - 1;
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        for row in rows.iter_mut().filter(|row| row.cause == title) {
            row.cause = format!("{title}: {most}{more}");
        }
    }
    rows
}

fn name(part: &PathBox) -> String {
    match (part.class, part.blocking) {
        (Some(class), _) => class_title(class).to_owned(),
        (None, Some(blocking)) => Blocking::words(blocking).to_owned(),
        (None, None) => "nothing recorded".to_owned(),
    }
}

fn by_counters(one: &NoiseCauses) -> impl Iterator<Item = Thieves> {
    one.causes.iter().map(|cause| Thieves {
        phase: one.phase.clone(),
        cpu: one.cpu,
        cause: thief_title(cause.thief).to_owned(),
        times: cause.gaps,
        range_ns: cause.range_ns,
        max_ns: cause.max_ns,
        sure: certainty_title(cause.certainty),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use analysis::noise_causes::{Cause, Certainty, Thief, Totals};
    use attribution::attribute::step::Step;

    fn causes() -> NoiseCauses {
        let cause = Cause {
            thief: Thief::Interrupts,
            certainty: Certainty::Fits,
            gaps: 1_183,
            total_ns: 8_430_000,
            max_ns: 91_000,
            range_ns: [0, 50_300_000],
        };
        let (phase, probe) = ("measured".to_owned(), ProbeKind::Noise);
        NoiseCauses { phase, probe, cpu: 1, causes: vec![cause], counted: Totals::default() }
    }

    #[test]
    fn the_trace_goes_before_a_pattern_that_fits() {
        let mut document = fixture::document();
        document.analysis.noise_causes = vec![causes()];
        document.analysis.paths.clear();
        let rows = thieves(&document);
        assert_eq!((rows[0].range_words().as_str(), rows[0].sure), ("0 ns to 50.30 ms", "fits the pattern"));
        let part =
            |class, ns, count| PathBox { class, count, ..fixture::part(Step::NeverSlept, 1, ns, false) };
        let tick = Some(EventClass::TimerTick);
        document.analysis.paths = vec![PathSection {
            phase: "measured".to_owned(),
            probe: ProbeKind::Noise,
            cpu: 1,
            thread: 0,
            samples: 3,
            total_ns: 60,
            boxes: vec![part(None, 10, 3), part(tick, 30, 2), part(tick, 20, 1)],
            others: Vec::new(),
            worst: Vec::new(),
            bound: None,
        }];
        let named = |label: &str, ns| PathBox {
            label: Some(label.to_owned()),
            ..part(Some(EventClass::Switch), ns, 1)
        };
        let mut with_tasks = document.clone();
        with_tasks.analysis.paths[0].boxes.extend([
            named("logger", 40),
            named("web", 100),
            named("logger", 70),
        ]);
        let first = &thieves(&with_tasks)[0];
        assert_eq!((first.cause.as_str(), first.times), ("other task: logger and 1 more", 3));
        let rows: Vec<_> = thieves(&document)
            .into_iter()
            .map(|row| (row.cause, row.times, row.range_ns[1], row.sure))
            .collect();
        assert_eq!(
            rows,
            [
                ("scheduler tick".to_owned(), 3, 50, "by the trace"),
                ("nothing recorded".to_owned(), 3, 10, "no event was recorded"),
            ]
        );
    }
}
