//! A run directory → [`Analysis`]: reads the samples, streams the trace once, and puts the sections
//! together.

use crate::compare::{EventTrust, WindowData, compare};
use crate::distribution::distribution_at;
use crate::events::{self, window_events};
use crate::losses::{self, disagreements, trace_whole};
use crate::measured::Measured;
use crate::missed;
use crate::noise_causes::{self, Evidence, NoiseCauses};
use crate::overlap::Intervals;
use crate::samples::{belonging, unbiased};
use crate::schedule::schedule;
use crate::sections::Sections;
use crate::shape::{self, Analysis};
use crate::tally::Tally;
use crate::time::join::sources;
use crate::time::{TimeSection, section};
use crate::trace_pass::{Traced, read_trace};
use crate::{Error, graph, tail, task_groups};
use attribution::attribute::coverage::{Drivers, blocking_coverage, coverage};
use attribution::attribute::path_section::PathSection;
use attribution::attribute::paths::Keep;
use attribution::attribute::section::Attribution;
use attribution::attribute::watch;
use attribution::count_ns::CountNs;
use model::events::EventCatalogue;
use model::idle::IdleExits;
use model::run::{ProbeRecord, Run, TRACED, Window};
use model::sample::{ProbeKind, Sample};
use model::{growth, samples_file};
use rayon::prelude::*;
use stats::resample;
use std::collections::BTreeSet;
use std::num::NonZero;
use std::path::Path;
use std::thread;

/// Analyses a run directory.
///
/// A partial run is analysed as far as it goes, and its gaps are reported. A complete run with a
/// missing or damaged file is an error. So is a samples file that belongs to another record.
pub fn analyse(run_dir: &Path) -> Result<Analysis, Error> {
    analyse_keeping(run_dir, Keep::default())
}

/// The same, with the number of samples to explain in detail.
pub fn analyse_keeping(run_dir: &Path, keep: Keep) -> Result<Analysis, Error> {
    analyse_asked(run_dir, &Asked { keep, ..Asked::default() })
}

/// Optional parts of an analysis.
#[derive(Debug, Clone, Default)]
pub struct Asked {
    /// Number of samples to explain in detail.
    pub keep: Keep,
    /// Deadlines, ns, to count the releases beyond.
    pub deadlines_ns: Vec<i64>,
    /// Estimates tails; further levels, each reached once in so many releases.
    pub tail: Option<Vec<f64>>,
    /// Leaves out all that does not come from the trace: distributions, comparisons, samples over
    /// time, causes of noise. They take several times as long as the trace, and are empty then.
    pub trace_only: bool,
}

/// The same, with the optional parts that the caller chose.
pub fn analyse_asked(run_dir: &Path, asked: &Asked) -> Result<Analysis, Error> {
    let run = model::run::stored::read_run(run_dir)?;
    let catalogue = EventCatalogue::embedded()?;
    let mut remarks = Vec::new();
    let mut sections = Sections::default();
    let mut measured = read_samples(run_dir, &run, asked, &mut remarks, &mut sections)?;
    let snapshots = run.trace.as_ref().and_then(|trace| trace.snapshots.as_ref());
    let mut traced = read_trace(run_dir, &run, &catalogue, &mut measured, &mut remarks)?;
    let mut section = losses::losses(&run, traced.as_ref().map(|traced| &traced.reading), remarks);
    let mut events = Vec::new();
    let mut overlaps = Vec::new();
    let (mut attribution, mut paths, mut covered) = (Vec::new(), Vec::new(), Vec::new());
    if let Some(traced) = &traced {
        let context = events::Context {
            catalogue: &catalogue,
            recorded: &traced.recorded,
            names: traced.decoder.names(),
            labels: traced.decoder.labels(),
            observable: &traced.observable,
        };
        let sender = run.trace.as_ref().and_then(|trace| trace.sender.as_ref());
        // Where every CPU is measured, senders are recorded as what ran there.
        let sent = sender.map_or(&traced.recorded, |sender| &sender.events);
        covered = coverage(&traced.observable, &traced.recorded, sent);
        for one in &mut measured {
            let (Some(window), Some(tally)) = (one.window, &one.tally) else { continue };
            let record = one.record;
            attribution.push(attributed(record, tally, traced));
            let path = one.paths.as_ref().and_then(|sums| {
                sums.section(
                    (&record.phase, record.probe()),
                    [record.cpu, record.thread],
                    traced.decoder.labels(),
                    &|pid| traced.comms.get(&pid).cloned(),
                )
            });
            paths.extend(path.map(|path| bounded(path, tally, snapshots.is_some())));
            // Snapshots are kept because a sample was late, so they give no rates.
            if snapshots.is_some() {
                continue;
            }
            let whole = trace_whole(&section, record.cpu);
            events.push(window_events(&context, record, window, tally, whole));
            let touched = tally.intervals.overlaps(&record.phase, record.probe(), record.cpu);
            overlaps.extend(touched.into_iter().filter(|overlap| whole || overlap.samples > 0));
            if let Some(stolen) = &mut one.distribution.stolen {
                // With events missing every gap would be unexplained, for no other reason.
                stolen.unexplained = whole.then(|| unexplained(&tally.intervals));
            }
        }
    }
    let slept = |cpu: u32| traced.as_ref().is_some_and(|traced| traced.slept.contains(&cpu));
    let drivers = Drivers {
        idle_exits: IdleExits::of(&run).traced(&run.measured_cpus, slept),
        frequency_changes: model::frequency::are_known(&run),
    };
    let kept = traced.as_mut().zip(snapshots).map(|(traced, record)| {
        let over = measured.iter().map(|one| one.over).fold(0, u64::saturating_add);
        let (around, comm) = (std::mem::take(&mut traced.around), |pid| traced.comms.get(&pid).cloned());
        around.into_section(record, over, &measured, &paths, traced.decoder.labels(), &comm)
    });
    if let Some((cpu, lengths)) = traced.as_ref().and_then(|traced| traced.lengths.as_ref()) {
        let ours = sections.overheads.iter_mut().filter(|one| one.cpu == *cpu);
        ours.for_each(|one| one.traced.clone_from(lengths));
    }
    section.statements.extend(disagreements(&section, &events));
    section.statements.extend(measured.iter().filter_map(unrecorded));
    section.statements.extend(measured.iter().filter(|_| run.trace.is_some()).filter_map(roaming));
    let is_wanted = |one: &&Measured<'_>| {
        !asked.trace_only && one.record.phase != TRACED && section::applies(one.record.probe())
    };
    let time = measured.iter().filter(is_wanted);
    let whole = traced.as_ref().filter(|_| snapshots.is_none());
    let time = in_parallel(&time.collect::<Vec<_>>(), |one| over_time(one, whole));
    let none = BTreeSet::new();
    let trust = EventTrust {
        observable: traced.as_ref().map_or(&none, |traced| &traced.observable),
        whole: &|cpu| trace_whole(&section, cpu),
    };
    let windows: Vec<WindowData<'_>> = measured
        .iter()
        .map(|one| WindowData {
            record: one.record,
            intervals: one.intervals(),
            charged: &one.charged,
            tally: one.tally.as_ref(),
        })
        .collect();
    let (mut noise, mut comparisons, mut distributions) = (Vec::new(), Vec::new(), Vec::new());
    if !asked.trace_only {
        noise = measured.iter().map(|one| noise_causes(run_dir, &run, one)).collect::<Result<_, _>>()?;
        comparisons = compare(&run, &windows, &trust, resample::DRAWS);
        distributions = measured.into_iter().filter(apart).map(|one| one.distribution).collect();
    }
    let off = traced.as_mut().map_or_else(Vec::new, |traced| {
        let comm = |pid| traced.comms.get(&pid).cloned();
        std::mem::take(&mut traced.offs).sections(traced.decoder.labels(), &comm)
    });
    let mut analysis = Analysis {
        schema: shape::SCHEMA.to_owned(),
        complete: run.complete,
        losses: section,
        distributions,
        events,
        overlaps,
        comparisons,
        attribution,
        paths,
        coverage: covered,
        blocking: traced.as_ref().map_or_else(Vec::new, |traced| {
            blocking_coverage(&traced.recorded, traced.decoder.has_symbols(), drivers)
        }),
        off,
        snapshots: kept,
        ipi: sections.ipi,
        periodic: sections.periodic,
        taskset: sections.taskset,
        schedule: schedule(&sections.first_jobs),
        tail: sections.tail,
        overheads: sections.overheads,
        clocks: sections.clocks,
        time,
        noise_causes: noise.into_iter().flatten().collect(),
        graph: graph::read(run_dir, &run)?,
        watch: watch::read(run_dir, &run)?,
    };
    let groups = run.trace.as_ref().map_or(&[][..], |trace| &trace.groups);
    task_groups::fill(&mut analysis, groups);
    Ok(analysis)
}

/// Reports switches that are missing from the trace although the kernel counted none as lost.
fn unrecorded(one: &Measured<'_>) -> Option<String> {
    let breaks = one.tally.as_ref().map_or(0, |tally| tally.breaks);
    (breaks > 0).then(|| {
        format!(
            "CPU {}, {} window of phase {}: {breaks} context switches are missing from the trace and were not counted as lost by \
             the kernel. They were inferred from the next event, so their start may be late",
            one.record.cpu,
            one.record.probe().name(),
            one.record.phase
        )
    })
}

/// Reports a thread that had more than one CPU: no events are joined with it.
fn roaming(one: &Measured<'_>) -> Option<String> {
    let cpus = one.record.cpus.as_ref()?;
    Some(format!(
        "thread {} of the {} probe could run on CPUs {cpus}: the trace is of CPUs, so that nobody is named for it",
        one.record.thread,
        one.record.probe().name()
    ))
}

/// Results in the order of the items. The threads end with the call, since a process that forks
/// must have one; where none can be started, this one does the work.
fn in_parallel<T: Sync, R: Send>(items: &[T], each: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(items.len());
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads.max(1))
        .build_scoped(rayon::ThreadBuilder::run, |pool| {
            pool.install(|| items.par_iter().with_max_len(1).map(&each).collect())
        })
        .unwrap_or_else(|_| items.iter().map(&each).collect())
}

/// Its samples over time, and the sources of their periods.
fn over_time(one: &Measured<'_>, traced: Option<&Traced>) -> TimeSection {
    let sources = traced.zip(one.tally.as_ref()).map(|(traced, tally)| {
        sources(&tally.sources, traced.decoder.labels(), &|pid| traced.comms.get(&pid).cloned())
    });
    let samples: Vec<(i64, i64)> = one.intervals().samples().collect();
    section::section(one.record, &samples, &sources.unwrap_or_default())
}

fn attributed(record: &ProbeRecord, tally: &Tally, traced: &Traced) -> Attribution {
    let [exact, by_order, unknown] = tally.sources.known();
    Attribution {
        phase: record.phase.clone(),
        probe: record.probe(),
        cpu: record.cpu,
        thread: record.thread,
        exact,
        by_order,
        unknown,
        more_senders: tally.sources.more_senders,
        rows: tally.sources.attributed_rows(traced.decoder.labels(), &|pid| traced.comms.get(&pid).cloned()),
    }
}

/// The causes of a busy loop's lost time, if counters were read beside it.
fn noise_causes(dir: &Path, run: &Run, one: &Measured<'_>) -> Result<Option<NoiseCauses>, Error> {
    let record = one.record;
    let noise = record.noise().and_then(|noise| noise.noise.as_ref());
    let (Some(noise), Some(file)) = (noise, &record.counters_file) else { return Ok(None) };
    let growths = match growth::read(&dir.join(file)) {
        Err(_) if !run.complete => Vec::new(),
        read => read?,
    };
    let mut log = one.window.iter().flat_map(|window| &window.kernel_log);
    let evidence = Evidence {
        gaps: &one.gaps,
        growths: &growths,
        real_time: record.policy_effective.is_real_time(),
        throttling: noise.throttling,
        fair_server: noise.fair_server,
        throttling_logged: log.any(|line| line.contains("RT throttling activated")),
    };
    Ok(Some(NoiseCauses {
        phase: record.phase.clone(),
        probe: record.probe(),
        cpu: record.cpu,
        causes: noise_causes::causes(&evidence),
        counted: noise_causes::totals(&growths),
    }))
}

/// Whether the samples of a file are of one kind, and were taken for their own sake.
/// [`crate::sections`] separates samples of several kinds.
fn apart(one: &Measured<'_>) -> bool {
    one.record.phase != TRACED
        && !matches!(one.record.probe(), ProbeKind::Ipi | ProbeKind::Overheads | ProbeKind::Clocks)
}

fn read_samples<'r>(
    dir: &Path,
    run: &'r Run,
    asked: &Asked,
    remarks: &mut Vec<String>,
    sections: &mut Sections,
) -> Result<Vec<Measured<'r>>, Error> {
    let mut measured = Vec::with_capacity(run.probes.len());
    let snapshots = run.trace.as_ref().and_then(|trace| trace.snapshots.as_ref());
    let over_ns = snapshots.map(|snapshots| snapshots.over_ns);
    for record in &run.probes {
        let path = dir.join(&record.file);
        let read =
            samples_file::read(&path).and_then(|(meta, samples)| belonging(record, &path, &meta, samples));
        let samples = match read {
            Ok(samples) => samples,
            Err(error) if !run.complete => {
                remarks.push(format!("samples are missing: {error}"));
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        sections.add(record, &path, &samples)?;
        remarks.extend(accounts(record).into_iter().chain(missed::uncharged(record)));
        // A gap's place on the clock is known as well as the counter was fitted to it.
        let slack_ns = record.noise().and_then(|noise| noise.clock_error_ns).unwrap_or(0);
        let intervals = Intervals::new(&samples, slack_ns);
        let over = over_ns.map_or(0, |limit| {
            samples.iter().filter(|sample| sample.counts() && sample.value_ns >= limit).count() as u64
        });
        let samples = unbiased(record, samples);
        let tail = asked.tail.as_ref().and_then(|levels| tail::of_window(record, &samples, levels));
        sections.tail.extend(tail.map(|tail| if run.stopped_at.is_some() { tail.stopped() } else { tail }));
        let watched = record.noise().is_some() && record.counters_file.is_some();
        let described: &[Sample] = if asked.trace_only { &[] } else { &samples };
        measured.push(Measured {
            record,
            window: window_of(run, record),
            distribution: distribution_at(record, described, &asked.deadlines_ns),
            charged: missed::of_probe(record, described),
            intervals,
            over,
            gaps: if watched { samples.into_iter().filter(Sample::counts).collect() } else { Vec::new() },
            tally: None,
            keep: asked.keep,
            paths: None,
        });
    }
    Ok(measured)
}

/// Whether every release is accounted for.
fn accounts(record: &ProbeRecord) -> Option<String> {
    let accounted = record.samples.saturating_add(record.missed()).saturating_add(record.ring_lost);
    (record.probe().has_releases() && accounted != record.released()).then(|| {
        format!(
            "CPU {}, {} window of phase {}: {} releases were asked for, but served, missed and lost ones are {accounted}: the account \
             does not balance",
            record.cpu,
            record.probe().name(),
            record.phase,
            record.released()
        )
    })
}

/// The window a probe ran in: phase and probe agree, and times overlap where two windows would do.
fn window_of<'r>(run: &'r Run, record: &ProbeRecord) -> Option<&'r Window> {
    let mut named =
        run.windows.iter().filter(|window| window.phase == record.phase && window.probe == record.probe());
    let shared = |window: &&Window| window.t0_ns < record.t1_ns && record.t0_ns < window.t1_ns;
    named.clone().find(shared).or_else(|| named.next())
}

/// A bound holds for the wake-ups of a window only where all of them are in the recording.
fn bounded(mut path: PathSection, tally: &Tally, snapshots: bool) -> PathSection {
    let late = tally.intervals.samples().filter(|(_, value_ns)| *value_ns >= 0).count() as u64;
    let lacks = snapshots || (path.probe == ProbeKind::Wakeup && late != path.samples);
    if let Some(bound) = path.bound.as_mut().filter(|_| lacks) {
        bound.withhold("not every wake-up of the window is in the recording");
    }
    path
}

/// Time in gaps that no recorded event touches.
fn unexplained(intervals: &Intervals) -> CountNs {
    let add = |sum: CountNs, gap: i64| CountNs {
        count: sum.count + 1,
        ns: sum.ns.saturating_add(gap.max(0) as u64),
    };
    intervals.untouched().fold(CountNs::default(), add)
}
