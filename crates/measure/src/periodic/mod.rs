//! The periodic probe: a job every T that computes, with clocks and event counters read around each (ERTS 2022, Fig. 2).
//!
//! Stamps in the paper's order: clock at the wake-up; the input is read; then clock, counters, CPU time; the step; counters, CPU time,
//! clock. What is stored is copied out of the measured section only after the last stamp. Response time counts from the intended release,
//! and a release that passes while a job is still running is missed, counted and charged as in the wake-up probe.
//!
//! Releases are set in CLOCK_MONOTONIC by a timer, or under SCHED_DEADLINE by the scheduler: `sched_yield(2)` ends the job, and the next
//! begins when the scheduler's own clock says so (sched(7)). That clock runs at a rate of its own: how it drifts against CLOCK_MONOTONIC is
//! a result (Figs. 10 to 12), and the release is taken from the deadline that the kernel holds, as in [`super::wakeup_deadline`]. It is
//! read behind the last stamp, since reading it may cost as much as the job. Where it cannot be read, the grid of releases follows the
//! wake-ups.

mod drain;

pub(crate) use drain::PeriodicDrain;

use super::job::feed::{Compared, Source};
use super::job::{Job, Verified};
use super::ring::Ring;
use super::spec::{LoopResult, PeriodicSpec, ProbeSpec, ReadFrom, Task, Wake};
use super::wakeup_deadline::{Count, Release, Releases};
use drain::Placed;
use model::run::{JobCounter, JobRecord};
use std::io;
use sys::perf::{Chosen, MOST, Meters, Reading};
use sys::{clock, sched};

/// First record of a job: stamp = intended release, ns; value = its number.
const SERVED: u8 = 0;
/// The same, while warming up.
const WARM_UP: u8 = 1;
/// The job's further records in their order: wake-up and CPU number, start and CPU time, end and [`Placed`], then one a counter (value 1:
/// refused).
const MORE: u8 = 2;
/// Records of a job besides those of its counters.
const STAMPS: usize = 4;
/// What a refused counter value is stored as.
pub(crate) const REFUSED: i64 = -1;

/// The columns of the probe's own that every file has; `counter_NAME` follows for each counter.
pub(crate) const COLUMNS: [&str; 5] = ["wake_ns", "start_ns", "end_ns", "cpu_ns", "cpu"];

/// Everything a job needs, set up before the window.
pub(crate) struct Kit {
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

impl Kit {
    /// The kit of a periodic probe, none for any other. Starts the processes at the pipes, opens the counters, allocates. To be made
    /// before the policy is set: a SCHED_DEADLINE thread cannot fork.
    pub(crate) fn of(spec: &ProbeSpec) -> io::Result<Option<Self>> {
        let Task::Periodic(spec) = &spec.task else { return Ok(None) };
        let source = match spec.input {
            ReadFrom::Memory => Source::memory(&spec.files)?,
            ReadFrom::File => Source::files(&spec.files)?,
            ReadFrom::Pipe => Source::pipes(&spec.files, &spec.io_cpus)?,
        };
        Ok(Some(Self {
            spec: spec.clone(),
            job: Job::new(spec.work),
            source,
            meters: Meters::open(&spec.counters)?,
            compared: Compared::default(),
            verified: None,
            step: 0,
            failed: None,
        }))
    }

    /// Does some jobs as the window will, so that nothing is touched there for the first time, and
    /// measures the real time of busy work. The ring is empty afterwards; inputs and outputs
    /// continue in their order.
    pub(crate) fn rehearse(&mut self, ring: &mut Ring, releases: Option<&Releases>) {
        const SHORT_NS: i64 = 5_000_000;
        let period_ns = std::mem::replace(&mut self.spec.period_ns, SHORT_NS / 4);
        serve(ring, self, false, clock::now_ns(), SHORT_NS);
        self.spec.period_ns = period_ns;
        if let Some(releases) = releases {
            std::hint::black_box(releases.of_job(clock::now_ns()));
        }
        self.verified = self.job.verify();
        ring.rewind();
    }

    /// The window.
    pub(crate) fn run(
        &mut self,
        ring: &mut Ring,
        start_ns: i64,
        duration_ns: i64,
        releases: Option<&Releases>,
    ) -> LoopResult {
        // Without releases the policy was refused, and a yield would return at once.
        match releases.filter(|_| self.spec.wake == Wake::Scheduler) {
            Some(releases) if releases.unread().is_none() => {
                serve_releases(ring, self, releases, start_ns, duration_ns)
            }
            found => serve(ring, self, found.is_some(), start_ns, duration_ns),
        }
    }

    /// Ends the processes at the pipes and gives what the run records. An error where a job could
    /// not be fed.
    pub(crate) fn close(mut self) -> io::Result<JobRecord> {
        if let Some(error) = self.failed.take() {
            let what = format!("a job could not read its input or give its output: {error}");
            return Err(io::Error::new(error.kind(), what));
        }
        let mut record = self.record();
        self.source.close(&mut self.compared)?;
        record.outputs_compared = self.compared.compared;
        record.outputs_wrong = self.compared.wrong;
        Ok(record)
    }

    /// What the run records, as of now.
    pub(crate) fn record(&self) -> JobRecord {
        let counter =
            |one: &Chosen| JobCounter { name: one.event.to_string(), source: one.source.name().to_owned() };
        JobRecord {
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
        }
    }
}

/// Reasons why results of the jobs are limited, one sentence each.
pub(crate) fn limits(jobs: &JobRecord) -> Vec<String> {
    let wrong = (jobs.outputs_wrong > 0).then(|| {
        format!("{} of {} outputs were not the expected ones", jobs.outputs_wrong, jobs.outputs_compared)
    });
    let off = jobs.busy_asked_ns.zip(jobs.busy_found_ns).and_then(|(asked_ns, found_ns)| {
        let verified = Verified { asked_ns, found_ns };
        verified.is_off().then(|| {
            let median_ns = found_ns.median;
            format!("busy work that was calibrated to {asked_ns} ns took {median_ns} ns when it was verified")
        })
    });
    wrong.into_iter().chain(off).collect()
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

/// Does a job every period, from `start_ns` on, until the end of the window or until asked to stop.
fn serve(ring: &mut Ring, kit: &mut Kit, yields: bool, start_ns: i64, duration_ns: i64) -> LoopResult {
    let period_ns = kit.spec.period_ns;
    let wanted = (duration_ns.max(0) as u64).div_ceil(period_ns as u64);
    let (mut number, mut warm_up, mut release) = (0u64, u64::from(kit.spec.warm_up), start_ns);
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
        store(ring, kit, &stamps, exact, number, if warm_up > 0 { WARM_UP } else { SERVED });
        warm_up = warm_up.saturating_sub(1);
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
    let (mut warm_up, mut stamps) = (u64::from(kit.spec.warm_up), Stamps::default());
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
        store(ring, kit, &stamps, release, number, if warm_up > 0 { WARM_UP } else { SERVED });
        warm_up = warm_up.saturating_sub(1);
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

/// The scheduler has put the thread to sleep at its yield; gives the date at which it runs again. A yield that returned well before the
/// release (a job that outran its budget is replenished in between) is repeated.
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
/// Its grid has the period of the scheduler's clock, which is not quite ours: an early wake-up shows that the grid lies earlier, a late
/// one moves it by a 1024th of a period at most, more than two clocks of one machine ever differ by (NTP slews by a 2000th).
#[inline(always)]
fn follow(number: &mut u64, release: i64, wake_ns: i64, period_ns: i64) -> i64 {
    // The grid is known as well as the wake-ups behind it were on time: what comes shortly before a release is that release.
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

/// The columns of a file of this probe.
pub(crate) fn columns(spec: &PeriodicSpec) -> Vec<String> {
    let counters = spec.counters.iter().map(|one| format!("counter_{}", one.event.name));
    COLUMNS.iter().map(|&name| name.to_owned()).chain(counters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_grid_follows_the_scheduler_s_clock() {
        const PERIOD: i64 = 1_000_000;
        // A clock that is 200 ppm slow, then one that is 200 ppm fast: no release is taken for missed.
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
