//! A run directory → [`Analysis`]: reads the samples, streams the trace once, and puts the sections together.

use crate::Error;
use crate::compare::{EventTrust, WindowData, compare};
use crate::distribution::distribution;
use crate::events::{self, window_events};
use crate::losses::{self, disagreements, trace_whole};
use crate::overlap::Intervals;
use crate::resample;
use crate::shape::{self, Analysis, CountNs, Distribution};
use crate::tally::Tally;
use crate::trace_pass::read_trace;
use model::events::EventCatalogue;
use model::run::{ProbeRecord, Run, Window};
use model::sample::ProbeKind;
use model::{samples_file, store};
use std::collections::BTreeSet;
use std::path::Path;

/// Everything that a run directory says.
///
/// A partial run is analysed as far as it goes, and what is missing is said; a complete run with a file missing or damaged is an
/// error.
pub fn analyse(run_dir: &Path) -> Result<Analysis, Error> {
    let run = store::read_run(run_dir)?;
    let catalogue = EventCatalogue::embedded()?;
    let mut remarks = Vec::new();
    let mut measured = read_samples(run_dir, &run, &mut remarks)?;
    let traced = read_trace(run_dir, &run, &catalogue, &mut measured, &mut remarks)?;
    let mut section = losses::losses(&run, traced.as_ref().map(|traced| &traced.reading), remarks);
    let mut events = Vec::new();
    let mut overlaps = Vec::new();
    if let Some(traced) = &traced {
        let context = events::Context {
            catalogue: &catalogue,
            recorded: &traced.recorded,
            names: traced.decoder.names(),
            labels: traced.decoder.labels(),
            observable: &traced.observable,
        };
        for one in &mut measured {
            let (Some(window), Some(tally)) = (one.window, &one.tally) else { continue };
            let record = one.record;
            events.push(window_events(&context, record, window, tally, trace_whole(&section, record.cpu)));
            overlaps.extend(tally.intervals.overlaps(&record.phase, record.probe, record.cpu));
            if let Some(stolen) = &mut one.distribution.stolen {
                stolen.unexplained = Some(unexplained(&tally.intervals));
            }
        }
    }
    section.statements.extend(disagreements(&section, &events));
    let none = BTreeSet::new();
    let trust = EventTrust {
        observable: traced.as_ref().map_or(&none, |traced| &traced.observable),
        whole: &|cpu| trace_whole(&section, cpu),
    };
    let windows: Vec<WindowData<'_>> = measured
        .iter()
        .map(|one| WindowData { record: one.record, intervals: one.intervals(), tally: one.tally.as_ref() })
        .collect();
    let comparisons = compare(&run, &windows, &trust, resample::DRAWS);
    Ok(Analysis {
        schema: shape::SCHEMA.to_owned(),
        complete: run.complete,
        losses: section,
        distributions: measured.into_iter().map(|one| one.distribution).collect(),
        events,
        overlaps,
        comparisons,
    })
}

/// One probe record with its samples and, once the trace has been read, its events.
pub(crate) struct Measured<'r> {
    pub(crate) record: &'r ProbeRecord,
    pub(crate) window: Option<&'r Window>,
    distribution: Distribution,
    /// Moves into the tally while there is one.
    pub(crate) intervals: Intervals,
    pub(crate) tally: Option<Tally>,
}

impl Measured<'_> {
    fn intervals(&self) -> &Intervals {
        self.tally.as_ref().map_or(&self.intervals, |tally| &tally.intervals)
    }
}

fn read_samples<'r>(dir: &Path, run: &'r Run, remarks: &mut Vec<String>) -> Result<Vec<Measured<'r>>, Error> {
    let mut measured = Vec::with_capacity(run.probes.len());
    for record in &run.probes {
        let samples = match samples_file::read(&dir.join(&record.file)) {
            Ok((_, samples)) => samples,
            Err(error) if !run.complete => {
                remarks.push(format!("samples are missing: {error}"));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        remarks.extend(accounts(record, samples.len() as u64));
        // A gap's place on the clock is known as well as the counter was fitted to it.
        let slack_ns = if record.probe == ProbeKind::Noise { record.clock_error_ns.unwrap_or(0) } else { 0 };
        measured.push(Measured {
            record,
            window: window_of(run, record),
            distribution: distribution(record, &samples),
            intervals: Intervals::new(&samples, slack_ns),
            tally: None,
        });
    }
    Ok(measured)
}

/// Whether the samples file holds what the probe says it wrote, and every release is accounted for.
fn accounts(record: &ProbeRecord, rows: u64) -> Vec<String> {
    let place = format!("CPU {}, {} window of phase {}", record.cpu, record.probe.name(), record.phase);
    let mut remarks = Vec::new();
    if rows != record.samples {
        remarks
            .push(format!("{place}: the samples file has {rows} rows, the probe wrote {}", record.samples));
    }
    let told = record.samples.saturating_add(record.missed).saturating_add(record.ring_lost);
    if record.probe == ProbeKind::Wakeup && told != record.released {
        remarks.push(format!(
            "{place}: {} releases were asked for, but served, missed and lost ones are {told}: the account does not balance",
            record.released
        ));
    }
    remarks
}

/// The window a probe ran in: phase and probe agree, and times overlap where two windows would do.
fn window_of<'r>(run: &'r Run, record: &ProbeRecord) -> Option<&'r Window> {
    let mut named =
        run.windows.iter().filter(|window| window.phase == record.phase && window.probe == record.probe);
    let shared = |window: &&Window| window.t0_ns < record.t1_ns && record.t0_ns < window.t1_ns;
    named.clone().find(shared).or_else(|| named.next())
}

/// Time in gaps that no recorded event touches.
fn unexplained(intervals: &Intervals) -> CountNs {
    let add = |sum: CountNs, gap: i64| CountNs {
        count: sum.count + 1,
        ns: sum.ns.saturating_add(gap.max(0) as u64),
    };
    intervals.untouched().fold(CountNs::default(), add)
}
