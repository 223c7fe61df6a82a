//! One measuring window: probes on all measured CPUs, the recorder around them, the kernel's
//! counters outside of that.
//!
//! Order matters. Probes are set up and waiting before the counters are read; recording starts
//! after that and ends before the counters are read again, so the counters always cover the trace.

use crate::counters::Counters;
use crate::handle::{Hit, ProbeDrain, ProbeHandle, StoreIn, StoredProbe};
use crate::kernel_log::Tail;
use crate::look::Looks;
use crate::spec::ProbeSpec;
use crate::watch::Watch;
use journal::session::Session;
use model::Cpus;
use model::run::{ProbeRecord, StoppedAt, Window};
use model::sample::ProbeKind;
use record::recorder::Recorder;
use std::path::Path;
use sys::Error;
use sys::clock::{self, ClockId};

/// Polling interval of rings and signals while a window is open.
const POLL_NS: i64 = 20_000_000;
/// From the order to start to the first release: long enough for every probe to see the order.
const LEAD_NS: i64 = 30_000_000;
/// After its time a probe may still have the end of its last stretch or job to go; one that sleeps
/// on waits for a clock that was set back.
const GRACE_NS: i64 = 3 * clock::SECOND_NS;
/// How long probes may take to set themselves up, or to end after their time.
const PATIENCE_NS: i64 = 20 * clock::SECOND_NS;

/// What an open window shows to whoever watches.
#[derive(Clone, Copy)]
pub struct Progress<'a> {
    /// The start, CLOCK_MONOTONIC, ns.
    pub start_ns: i64,
    /// Time since the start, ns.
    pub elapsed_ns: i64,
    /// Length of the measurement, ns.
    pub duration_ns: i64,
    /// The probes, in the order of their specs.
    pub probes: &'a [ProbeDrain],
}

/// What the watcher answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Go {
    /// Continue.
    On,
    /// End the window now; what was measured is kept.
    Stop,
}

/// A closed window.
#[derive(Debug)]
pub struct Measured {
    /// The window.
    pub window: Window,
    /// One record a CPU.
    pub probes: Vec<ProbeRecord>,
    /// What the probes could not do.
    pub limits: Vec<String>,
    /// Whether the watcher ended it early.
    pub stopped: bool,
    /// The sample that ended it, where it reached the limit.
    pub stopped_at: Option<StoppedAt>,
    /// That the kernel took a CPU from a probe, which ended the window for all.
    pub taken: Option<String>,
    /// What one look at the kernel's counters cost, ns, where there were any.
    pub look_ns: Option<f64>,
}

/// Where and what to measure.
pub struct Order<'a> {
    /// The run directory.
    pub run: &'a Path,
    /// Name of the phase.
    pub phase: &'a str,
    /// Number of the window in the run.
    pub k: usize,
    /// One probe a measured CPU.
    pub probes: Vec<ProbeSpec>,
    /// The clock whose next full second the window starts at; none starts it at once.
    pub align: Option<ClockId>,
    /// What to keep besides samples, if anything.
    pub watch: Option<Watch>,
    /// The first sample of this value or more ends the window for all, ns.
    pub stop_over_ns: Option<i64>,
}

/// Carries out one window.
pub fn measure(
    session: &mut Session,
    mut recorder: Option<&mut Recorder>,
    order: &Order<'_>,
    watch: &mut dyn FnMut(Progress<'_>) -> Go,
) -> Result<Measured, Error> {
    let cpus: Cpus = order.probes.iter().flat_map(|spec| spec.cpus.iter()).collect();
    let mut handles = Vec::new();
    let mut adopted = Vec::new();
    for spec in &order.probes {
        let handle = ProbeHandle::spawn(session.program(), spec)?;
        adopted.push(session.adopt(handle.pid())?);
        handles.push(handle);
    }
    wait_ready(&mut handles)?;
    let place = StoreIn { run: order.run, phase: order.phase, k: order.k };
    let stored = handles.into_iter().map(|handle| handle.store_in(place, order.watch));
    let stored = stored.collect::<Result<Vec<_>, _>>()?;
    let before = read_counters(&cpus)?;
    if let Some(recorder) = &mut recorder {
        recorder.record(true)?;
    }
    let log = order.watch.map(|_| Tail::begin());
    let t0_ns = clock::now_ns();
    let start_ns = order.align.map_or(t0_ns + LEAD_NS, |clock| full_second(clock, t0_ns + LEAD_NS));
    let result = run_probes(stored, order, start_ns, recorder.as_deref_mut(), watch);
    if let Some(recorder) = &mut recorder {
        recorder.record(false)?;
    }
    let t1_ns = clock::now_ns();
    let growth = before.growth(&read_counters(&cpus)?);
    if let Some(recorder) = recorder {
        recorder.look();
    }
    let Ran { drains, stopped, hit, look_ns } = result?;
    let (mut probes, mut limits) = (Vec::new(), Vec::new());
    for drain in drains {
        let (record, said) = drain.finish(order.phase)?;
        probes.push(record);
        limits.extend(said);
    }
    adopted.iter().try_for_each(|child| session.forget(*child))?;
    let probe = order.probes.first().map_or(ProbeKind::Wakeup, ProbeSpec::kind);
    let window = Window {
        phase: order.phase.to_owned(),
        probe,
        t0_ns,
        t1_ns,
        interrupts: growth.interrupts,
        softirqs: growth.softirqs,
        steal_ns: growth.steal_ns,
        kernel_log: log.map_or_else(Vec::new, Tail::of_scheduler),
    };
    let taken = probes.iter().find_map(|record| taken(record, t0_ns));
    let stopped_at = hit.and_then(|(at, hit)| stopped_at(order, at, hit, start_ns));
    Ok(Measured { window, probes, limits, stopped, stopped_at, taken, look_ns })
}

/// What the run says of the sample that ended the window: one of the probe with this place in the
/// order.
fn stopped_at(order: &Order<'_>, at: usize, hit: Hit, start_ns: i64) -> Option<StoppedAt> {
    let spec = order.probes.get(at)?;
    Some(StoppedAt {
        over_ns: order.stop_over_ns?,
        probe: spec.kind(),
        phase: order.phase.to_owned(),
        thread: spec.thread,
        cpu: spec.cpu(),
        sample: hit.number,
        t_ns: hit.t_ns,
        value_ns: hit.value_ns,
        after_ns: hit.end_ns() - start_ns,
        planned_ns: duration_ns(order),
    })
}

/// The planned length of a window.
fn duration_ns(order: &Order<'_>) -> i64 {
    order.probes.iter().map(|spec| spec.duration_ns).max().unwrap_or(0)
}

/// What to say of a probe that the kernel took a CPU from.
fn taken(record: &ProbeRecord, t0_ns: i64) -> Option<String> {
    let after_s = (record.taken_ns? - t0_ns) as f64 / clock::SECOND_NS as f64;
    Some(format!(
        "the {} probe lost its place: CPU {} was taken from it while it measured, as happens to one that goes offline; its samples count \
         up to {after_s:.2} s after the window had opened",
        record.probe().name(),
        record.cpus.as_ref().map_or_else(|| record.cpu.to_string(), |cpus| format!("one of {cpus}")),
    ))
}

fn read_counters(cpus: &Cpus) -> Result<Counters, Error> {
    Counters::read(Path::new("/"), cpus).map_err(|source| Error::os("read", "/proc/interrupts", source))
}

fn wait_ready(handles: &mut [ProbeHandle]) -> Result<(), Error> {
    let give_up = clock::now_ns() + PATIENCE_NS;
    for handle in handles {
        while !handle.ready()? {
            if clock::now_ns() > give_up {
                return Err(Error::failed("a probe", "it was not ready within 20 s"));
            }
            clock::sleep_until(clock::now_ns() + 1_000_000);
        }
    }
    Ok(())
}

/// The first full second of the clock from `t_ns` on; both that and the result are CLOCK_MONOTONIC.
fn full_second(clock: ClockId, t_ns: i64) -> i64 {
    let ahead_ns = if clock == ClockId::Monotonic { 0 } else { clock.now_ns() - clock::now_ns() };
    let past_ns = (t_ns + ahead_ns).rem_euclid(clock::SECOND_NS);
    if past_ns == 0 { t_ns } else { t_ns + clock::SECOND_NS - past_ns }
}

/// Probes that have ended.
struct Ran {
    drains: Vec<ProbeDrain>,
    stopped: bool,
    /// The place in the order of the probe whose sample ended it, and the sample.
    hit: Option<(usize, Hit)>,
    look_ns: Option<f64>,
}

/// Starts all probes at once and stores their samples until they are done.
fn run_probes(
    stored: Vec<StoredProbe>,
    order: &Order<'_>,
    start_ns: i64,
    mut recorder: Option<&mut Recorder>,
    watch: &mut dyn FnMut(Progress<'_>) -> Go,
) -> Result<Ran, Error> {
    let duration_ns = duration_ns(order);
    let threads = stored.iter().map(StoredProbe::pid).collect();
    let cpus = order.probes.iter().flat_map(|spec| spec.cpus.iter()).collect();
    let mut looks = order.watch.map(|_| Looks::begin(cpus, threads)).transpose()?;
    let mut drains: Vec<_> = stored.into_iter().map(|one| one.start(start_ns, order.stop_over_ns)).collect();
    if let Some(over_ns) = recorder.as_deref().and_then(Recorder::over_ns) {
        drains.iter_mut().for_each(|drain| drain.collect_over(over_ns));
    }
    let (mut stopped, mut hit) = (false, None);
    loop {
        let now = clock::now_ns();
        // What is done is asked before the rings are emptied: nothing comes behind.
        let done = drains.iter_mut().all(ProbeDrain::done);
        drains.iter_mut().try_for_each(ProbeDrain::poll)?;
        if hit.is_none() {
            hit = first_hit(&drains);
        }
        if let Some(recorder) = &mut recorder {
            recorder.seen(drains.iter_mut().flat_map(ProbeDrain::take_over).collect());
        }
        if let Some(looks) = &mut looks
            && (done || looks.due(now) || drains.iter().any(ProbeDrain::wants_look))
        {
            looks.take()?;
            drains.iter_mut().try_for_each(|drain| drain.looked(looks))?;
        }
        if done {
            return Ok(Ran { drains, stopped, hit, look_ns: looks.map(|looks| looks.cost_ns()) });
        }
        if now > start_ns + duration_ns + PATIENCE_NS {
            return Err(Error::failed("a probe", "it did not end within 20 s after its time"));
        }
        if now > start_ns + duration_ns + GRACE_NS {
            drains.iter_mut().for_each(ProbeDrain::wake);
        }
        let progress = Progress { start_ns, elapsed_ns: now - start_ns, duration_ns, probes: &drains };
        let broken = recorder.as_deref().is_some_and(Recorder::failed);
        let taken = drains.iter().any(|drain| drain.taken_ns().is_some());
        if !stopped && (hit.is_some() || taken || broken || watch(progress) == Go::Stop) {
            stopped = true;
            drains.iter().for_each(ProbeDrain::stop);
        }
        clock::sleep_until(now + POLL_NS);
    }
}

/// The earliest of the samples that have reached the limit.
fn first_hit(drains: &[ProbeDrain]) -> Option<(usize, Hit)> {
    let hits = drains.iter().enumerate().filter_map(|(at, drain)| Some((at, drain.hit()?)));
    hits.min_by_key(|(_, hit)| hit.end_ns())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_starts_at_a_full_second_of_the_clock() {
        let second = clock::SECOND_NS;
        for (t_ns, start_ns) in
            [(7 * second, 7 * second), (7 * second + 1, 8 * second), (8 * second - 1, 8 * second)]
        {
            assert_eq!(full_second(ClockId::Monotonic, t_ns), start_ns);
        }
        let now_ns = clock::now_ns();
        assert!((now_ns..=now_ns + second).contains(&full_second(ClockId::Realtime, now_ns)));
    }
}
