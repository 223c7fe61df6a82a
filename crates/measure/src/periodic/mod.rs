//! The periodic probe: a job every T that computes, with clocks and event counters read around each
//! (ERTS 2022, Fig. 2).
//!
//! Stamps in the paper's order: clock at the wake-up; the input is read; then clock, counters, CPU
//! time; the step; counters, CPU time, clock. What is stored is copied out of the measured section
//! only after the last stamp. Response time counts from the intended release, and a release that
//! passes while a job is still running is missed, counted and charged as in the wake-up probe.
//!
//! Releases are set in CLOCK_MONOTONIC by a timer, or under SCHED_DEADLINE by the scheduler:
//! `sched_yield(2)` ends the job, and the next begins when the scheduler's own clock says so
//! (sched(7)). That clock runs at a rate of its own: how it drifts against CLOCK_MONOTONIC is a
//! result (Figs. 10 to 12), and the release is taken from the deadline that the kernel holds, as in
//! [`super::releases`]. It is read behind the last stamp, since reading it may cost as much as the
//! job. Where it cannot be read, the grid of releases follows the wake-ups.

mod drain;

use super::job::feed::{Compared, Source};
use super::job::files::Pair;
use super::job::{Job, Verified, Work};
use super::kind::{Drain, Loop, LoopResult, Place, Probe, ProbeReport, Window, rehearsed};
use super::releases::{Count, Release, Releases};
use super::ring::Ring;
use drain::{PeriodicDrain, Placed};
use model::Cpus;
use model::probe::{JobCounter, JobRecord, PeriodicDetail, ProbeDetail};
use model::sample::Policy;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use sys::perf::{Chosen, MOST, Meters, Reading};
use sys::{clock, sched};

/// First record of a job: stamp = intended release, ns; value = its number.
const SERVED: u8 = 0;
/// The same, while warming up.
const WARM_UP: u8 = 1;
/// The job's further records in their order: wake-up and CPU number, start and CPU time, end and
/// [`Placed`], then one a counter (value 1: refused).
const MORE: u8 = 2;
/// Records of a job besides those of its counters.
const STAMPS: usize = 4;
/// What a refused counter value is stored as.
const REFUSED: i64 = -1;

/// The columns of the probe's own that every file has; `counter_NAME` follows for each counter.
const COLUMNS: [&str; 5] = ["wake_ns", "start_ns", "end_ns", "cpu_ns", "cpu"];

/// The periodic probe's own part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeriodicSpec {
    /// Interval of releases, ns.
    pub period_ns: i64,
    /// Releases at the start that every statistic excludes, whether they were served or not.
    pub warm_up: u32,
    /// What wakes it.
    pub wake: Wake,
    /// What a job computes.
    pub work: Work,
    /// Where it reads its inputs.
    pub input: ReadFrom,
    /// Inputs and expected outputs.
    pub files: Pair,
    /// Where the processes at its pipes run.
    pub io_cpus: Cpus,
    /// Its own executable, if not the common one.
    pub program: Option<PathBuf>,
    /// What is counted around each job.
    pub counters: Vec<Chosen>,
}

/// What begins a periodic job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wake {
    /// A timer in CLOCK_MONOTONIC.
    Timer,
    /// SCHED_DEADLINE's own: a yield ends the job, and the scheduler's clock begins the next.
    Scheduler,
}

/// Where a periodic job reads its inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReadFrom {
    /// From its own memory.
    Memory,
    /// From a file; it compares its outputs itself.
    File,
    /// From a pipe, which another process fills; a third compares the outputs.
    Pipe,
}

impl Wake {
    /// The word that a run records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Timer => "timer",
            Self::Scheduler => "scheduler",
        }
    }
}

impl ReadFrom {
    /// The word that a run records.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::File => "file",
            Self::Pipe => "pipe",
        }
    }
}

impl Probe for PeriodicSpec {
    fn period_ns(&self) -> Option<i64> {
        Some(self.period_ns)
    }

    fn yields(&self) -> bool {
        self.wake == Wake::Scheduler
    }

    fn program(&self) -> Option<&Path> {
        self.program.as_deref()
    }

    fn columns(&self) -> Vec<String> {
        let counters = self.counters.iter().map(|one| format!("counter_{}", one.event.name));
        COLUMNS.iter().map(|&name| name.to_owned()).chain(counters).collect()
    }

    /// Starts the processes at the pipes, opens the counters, allocates.
    fn prepare(&self, _place: Place) -> io::Result<Box<dyn Loop>> {
        let source = match self.input {
            ReadFrom::Memory => Source::memory(&self.files)?,
            ReadFrom::File => Source::files(&self.files)?,
            ReadFrom::Pipe => Source::pipes(&self.files, &self.io_cpus)?,
        };
        Ok(Box::new(Kit {
            spec: self.clone(),
            job: Job::new(self.work),
            source,
            meters: Meters::open(&self.counters)?,
            compared: Compared::default(),
            verified: None,
            step: 0,
            failed: None,
        }))
    }

    fn drain(&self, _policy: &Policy, _start_ns: i64) -> Box<dyn Drain> {
        Box::new(PeriodicDrain::new(self.counters.len()))
    }
}

/// The measuring side: everything a job needs, set up before the window.
struct Kit {
    spec: PeriodicSpec,
    job: Job,
    source: Source,
    meters: Meters,
    compared: Compared,
    verified: Option<Verified>,
    /// Steps done so far: the rehearsal's count, because inputs and outputs continue in order.
    step: u64,
    failed: Option<io::Error>,
}

impl Loop for Kit {
    /// Measures the real time of busy work, too. Inputs and outputs continue in their order.
    fn rehearse(&mut self, short: Window<'_>) {
        let releases = short.releases;
        let period_ns = std::mem::replace(&mut self.spec.period_ns, short.duration_ns / 4);
        rehearsed(self, Window { releases: None, ..short });
        self.spec.period_ns = period_ns;
        if let Some(releases) = releases {
            std::hint::black_box(releases.of_job(clock::now_ns()));
        }
        self.verified = self.job.verify();
    }

    fn run(&mut self, window: Window<'_>) -> io::Result<LoopResult> {
        let Window { ring, start_ns, duration_ns, releases } = window;
        // Without releases the policy was refused, and a yield would return at once.
        Ok(match releases.filter(|_| self.spec.wake == Wake::Scheduler) {
            Some(releases) if releases.unread().is_none() => {
                serve_releases(ring, self, releases, start_ns, duration_ns)
            }
            found => serve(ring, self, found.is_some(), start_ns, duration_ns),
        })
    }

    fn detail(&self) -> ProbeDetail {
        let counter =
            |one: &Chosen| JobCounter { name: one.event.to_string(), source: one.source.name().to_owned() };
        let jobs = JobRecord {
            work: self.spec.work.name(),
            input: self.spec.input.name().to_owned(),
            wake: self.spec.wake.name().to_owned(),
            own_files: self.spec.program.is_some(),
            counters: self.spec.counters.iter().map(counter).collect(),
            counters_in_user_space: self.meters.in_user_space() as u64,
            outputs_compared: self.compared.compared,
            outputs_wrong: self.compared.wrong,
            busy_asked_ns: self.verified.map(|one| one.asked_ns),
            busy_found_ns: self.verified.map(|one| one.found_ns),
        };
        let releases =
            model::probe::Releases { warm_up: Some(self.spec.warm_up.into()), ..Default::default() };
        ProbeDetail::Periodic(PeriodicDetail { releases, jobs: Some(jobs) })
    }

    /// Ends the processes at the pipes. An error where a job could not be fed.
    fn close(self: Box<Self>, report: &mut ProbeReport) -> io::Result<()> {
        let Self { source, mut compared, verified, failed, .. } = *self;
        if let Some(error) = failed {
            let what = format!("a job could not read its input or give its output: {error}");
            return Err(io::Error::new(error.kind(), what));
        }
        source.close(&mut compared)?;
        let Compared { compared, wrong } = compared;
        if let ProbeDetail::Periodic(PeriodicDetail { jobs: Some(jobs), .. }) = &mut report.detail {
            (jobs.outputs_compared, jobs.outputs_wrong) = (compared, wrong);
        }
        if wrong > 0 {
            report.limits.push(format!("{wrong} of {compared} outputs were not the expected ones"));
        }
        if let Some(Verified { asked_ns, found_ns }) = verified.filter(Verified::is_off) {
            let median_ns = found_ns.median;
            report.limits.push(format!(
                "busy work that was calibrated to {asked_ns} ns took {median_ns} ns when it was verified"
            ));
        }
        Ok(())
    }
}

/// One job as it was measured.
#[derive(Default)]
struct Stamps {
    wake_ns: i64,
    start_ns: i64,
    end_ns: i64,
    cpu_time_ns: i64,
    before: Reading,
    after: Reading,
}

/// Whether a release is one of the warm-up.
fn kind(spec: &PeriodicSpec, number: u64) -> u8 {
    if number < u64::from(spec.warm_up) { WARM_UP } else { SERVED }
}

/// Does a job every period, from `start_ns` on, until the end of the window or until asked to stop.
fn serve(ring: &mut Ring, kit: &mut Kit, yields: bool, start_ns: i64, duration_ns: i64) -> LoopResult {
    let period_ns = kit.spec.period_ns;
    let wanted = (duration_ns.max(0) as u64).div_ceil(period_ns as u64);
    let (mut number, mut release) = (0u64, start_ns);
    let mut stamps = Stamps::default();
    clock::sleep_until(start_ns);
    while number < wanted && !ring.stopped() {
        stamps.wake_ns = if yields { wait_for_scheduler(ring, release, period_ns) } else { wait(release) };
        if stamps.wake_ns < release && ring.stopped() {
            break;
        }
        if yields {
            release = follow(&mut number, release, stamps.wake_ns, period_ns);
            if number >= wanted {
                break;
            }
        }
        if let Err(error) = job(kit, &mut stamps) {
            kit.failed = Some(error);
            break;
        }
        let exact = Release { ns: release, error_ns: 0, postponed: false };
        store(ring, kit, &stamps, exact, number, kind(&kit.spec, number));
        let step = if yields { 1 } else { 1 + (stamps.end_ns - release).max(0) / period_ns };
        number += step as u64;
        release += step * period_ns;
        if yields && number < wanted {
            sched::yield_now();
        }
    }
    let released = if ring.stopped() || kit.failed.is_some() { number.min(wanted) } else { wanted };
    LoopResult { t1_ns: clock::now_ns(), released, iterations: 0 }
}

/// Does a job at every release of the kernel, until the end of the window or until asked to stop.
fn serve_releases(
    ring: &mut Ring,
    kit: &mut Kit,
    releases: &Releases,
    start_ns: i64,
    duration_ns: i64,
) -> LoopResult {
    let end = start_ns + duration_ns;
    let mut count = Count::new(releases.period_ns(), 0);
    let mut stamps = Stamps::default();
    clock::sleep_until(start_ns);
    while !ring.stopped() {
        sched::yield_now();
        stamps.wake_ns = clock::now_ns();
        // A job that was released before the end counts as requested, however late it wakes.
        if stamps.wake_ns >= end && releases.of_job(stamps.wake_ns).ns >= end {
            count.passed(end);
            break;
        }
        if let Err(error) = job(kit, &mut stamps) {
            kit.failed = Some(error);
            break;
        }
        let release = releases.of_job(stamps.wake_ns);
        if release.ns >= end {
            count.passed(end);
            break;
        }
        let number = count.served(release.ns);
        store(ring, kit, &stamps, release, number, kind(&kit.spec, number));
        if stamps.end_ns >= end {
            count.passed(end);
            break;
        }
    }
    LoopResult { t1_ns: clock::now_ns(), released: count.released, iterations: 0 }
}

/// Sleeps by the timer; gives the wake-up date.
#[inline(always)]
fn wait(release: i64) -> i64 {
    clock::sleep_until(release);
    clock::now_ns()
}

/// The scheduler has put the thread to sleep at its yield; gives the date at which it runs again. A
/// yield that returned well before the release (a job that outran its budget is replenished in
/// between) is repeated.
#[inline(always)]
fn wait_for_scheduler(ring: &Ring, release: i64, period_ns: i64) -> i64 {
    loop {
        let now = clock::now_ns();
        if release - now < period_ns / 2 || ring.stopped() {
            return now;
        }
        sched::yield_now();
    }
}

/// The release that a wake-up by the scheduler serves, its number moved on over those that passed.
///
/// Its grid has the period of the scheduler's clock, which is not quite ours: an early wake-up
/// shows that the grid lies earlier, a late one moves it by a 1024th of a period at most, more than
/// two clocks of one machine ever differ by (NTP slews by a 2000th).
#[inline(always)]
fn follow(number: &mut u64, release: i64, wake_ns: i64, period_ns: i64) -> i64 {
    // The grid is known as well as the wake-ups behind it were on time: what comes shortly before a
    // release is that release.
    let passed = (wake_ns - release + period_ns / 4).max(0) / period_ns;
    *number += passed as u64;
    let on_grid = release + passed * period_ns;
    on_grid + (wake_ns - on_grid).min(period_ns / 1024)
}

/// One job, measured.
#[inline(always)]
fn job(kit: &mut Kit, stamps: &mut Stamps) -> io::Result<()> {
    let input = kit.source.take(kit.step)?;
    stamps.start_ns = clock::now_ns();
    kit.meters.read(&mut stamps.before);
    let cpu_time_before = clock::thread_cpu_ns();
    let output = kit.job.step(&input);
    kit.meters.read(&mut stamps.after);
    stamps.cpu_time_ns = clock::thread_cpu_ns() - cpu_time_before;
    stamps.end_ns = clock::now_ns();
    kit.source.give(kit.step, &output, &mut kit.compared)?;
    kit.step += 1;
    Ok(())
}

fn store(ring: &mut Ring, kit: &Kit, stamps: &Stamps, release: Release, number: u64, kind: u8) {
    let placed = Placed { error_ns: release.error_ns.max(0) as u64, postponed: release.postponed };
    let mut records = [(0u64, 0u64, MORE); STAMPS + MOST];
    records[0] = (release.ns as u64, number, kind);
    records[1] = (stamps.wake_ns as u64, u64::from(sched::current_cpu()), MORE);
    records[2] = (stamps.start_ns as u64, stamps.cpu_time_ns.max(0) as u64, MORE);
    records[3] = (stamps.end_ns as u64, placed.word(), MORE);
    for position in 0..kit.meters.count() {
        let counted = stamps.after.since(&stamps.before, position);
        records[STAMPS + position] = (counted.unwrap_or(0), u64::from(counted.is_none()), MORE);
    }
    ring.push_all(&records[..STAMPS + kit.meters.count()]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_grid_follows_the_scheduler_s_clock() {
        const PERIOD: i64 = 1_000_000;
        // A clock that is 200 ppm slow, then one that is 200 ppm fast: no release is taken for
        // missed.
        for rate in [1.0002, 0.9998] {
            let (mut number, mut release) = (0u64, 0i64);
            for k in 0..20_000i64 {
                let wake = (k as f64 * PERIOD as f64 * rate) as i64;
                release = follow(&mut number, release, wake, PERIOD);
                assert_eq!(number, k as u64);
                number += 1;
                release += PERIOD;
            }
        }
    }

    proptest! {
        #[test]
        fn whole_periods_of_lateness_are_releases_that_passed(passed in 0i64..50, late in -200_000i64..700_000) {
            let mut number = 7;
            let release = follow(&mut number, 0, passed * 1_000_000 + late, 1_000_000);
            prop_assert_eq!(number, 7 + passed as u64);
            prop_assert!(release <= passed * 1_000_000 + late);
            prop_assert!(release >= passed * 1_000_000 + late.min(0));
        }
    }
}
