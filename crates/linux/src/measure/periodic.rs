//! The periodic probe: a job every T that computes, with clocks and event counters read around each (ERTS 2022, Fig. 2).
//!
//! Stamps in the paper's order: clock at the wake-up; the input is read; then clock, counters, CPU time; the step; counters, CPU time,
//! clock. What is stored is copied out of the measured section only after the last stamp. Response time counts from the intended release,
//! and a release that passes while a job is still running is missed, counted and charged as in the wake-up probe.
//!
//! Releases are set in CLOCK_MONOTONIC by a timer, or under SCHED_DEADLINE by the scheduler: `sched_yield(2)` ends the job, and the next
//! begins when the scheduler's own clock says so (sched(7)). That clock runs at a rate of its own, so there the grid of releases follows
//! the wake-ups, and how it drifts against CLOCK_MONOTONIC is a result (Figs. 10 to 12).

use super::job::feed::{Compared, Source};
use super::job::{Job, Verified};
use super::ring::{Packed, Record, Ring};
use super::spec::{LoopResult, PeriodicSpec, ProbeSpec, ReadFrom, Task, Wake};
use crate::sys::perf::{Chosen, MOST, Meters, Reading};
use crate::sys::{clock, sched};
use model::Sample;
use model::run::{JobCounter, JobRecord};
use model::sample::flag;
use std::io;

/// First record of a job: stamp = intended release, ns; value = its number.
const SERVED: u8 = 0;
/// The same, while warming up.
const WARM_UP: u8 = 1;
/// The job's further records in their order: wake-up and CPU number, start and CPU time, end, then one a counter (value 1: refused).
const MORE: u8 = 2;
/// Records of a job besides those of its counters.
const STAMPS: usize = 4;
/// What a refused counter value is stored as.
pub const REFUSED: i64 = -1;

/// The columns of the probe's own that every file has; `counter_NAME` follows for each counter.
pub const COLUMNS: [&str; 5] = ["wake_ns", "start_ns", "end_ns", "cpu_ns", "cpu"];

/// Everything a job needs, set up before the window.
pub struct Kit {
    spec: PeriodicSpec,
    job: Job,
    source: Source,
    meters: Meters,
    compared: Compared,
    verified: Option<Verified>,
    /// Steps done so far: the rehearsal's count, because inputs and outputs go on in their order.
    step: u64,
    failed: Option<io::Error>,
}

impl Kit {
    /// The kit of a periodic probe, none for any other. Starts the processes at the pipes, opens the counters, allocates. To be made
    /// before the policy is set: a SCHED_DEADLINE thread cannot fork.
    pub fn of(spec: &ProbeSpec) -> io::Result<Option<Self>> {
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

    /// Does some jobs as the window will, so that nothing is touched there for the first time, and measures what busy work really takes.
    /// The ring is empty afterwards; inputs and outputs go on in their order.
    pub fn rehearse(&mut self, ring: &mut Ring) {
        const SHORT_NS: i64 = 5_000_000;
        let period_ns = std::mem::replace(&mut self.spec.period_ns, SHORT_NS / 4);
        serve(ring, self, false, clock::now_ns(), SHORT_NS);
        self.spec.period_ns = period_ns;
        self.verified = self.job.verify();
        ring.rewind();
    }

    /// The window.
    pub fn run(&mut self, ring: &mut Ring, start_ns: i64, duration_ns: i64) -> LoopResult {
        // Where the policy was refused, a yield would return at once.
        let reserved = sched::effective().is_ok_and(|policy| policy.reservation.is_some());
        let yields = self.spec.wake == Wake::Scheduler && reserved;
        serve(ring, self, yields, start_ns, duration_ns)
    }

    /// Ends the processes at the pipes and puts together what the run records. An error where a job could not be fed.
    pub fn close(mut self) -> io::Result<JobRecord> {
        if let Some(error) = self.failed.take() {
            let what = format!("a job could not read its input or give its output: {error}");
            return Err(io::Error::new(error.kind(), what));
        }
        self.source.close(&mut self.compared)?;
        let counter =
            |one: &Chosen| JobCounter { name: one.event.to_string(), source: one.source.name().to_owned() };
        Ok(JobRecord {
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
        })
    }
}

/// What of the jobs does not bear the figures it should, one sentence each.
pub fn limits(jobs: &JobRecord) -> Vec<String> {
    let wrong = (jobs.outputs_wrong > 0).then(|| {
        format!("{} of {} outputs were not the expected ones", jobs.outputs_wrong, jobs.outputs_compared)
    });
    let off = jobs.busy_asked_ns.zip(jobs.busy_found_ns).and_then(|(asked_ns, found_ns)| {
        let verified = Verified { asked_ns, found_ns };
        verified.is_off().then(|| {
            let median_ns = found_ns[1];
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

/// Does a job every period, from `start_ns` on, until the end of the window or until told to stop.
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
        store(ring, kit, &stamps, release, number, if warm_up > 0 { WARM_UP } else { SERVED });
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

fn store(ring: &mut Ring, kit: &Kit, stamps: &Stamps, release: i64, number: u64, kind: u8) {
    let mut records = [(0u64, 0u64, MORE); STAMPS + MOST];
    records[0] = (release as u64, number, kind);
    records[1] = (stamps.wake_ns as u64, u64::from(sched::current_cpu()), MORE);
    records[2] = (stamps.start_ns as u64, stamps.cpu_time_ns.max(0) as u64, MORE);
    records[3] = (stamps.end_ns as u64, 0, MORE);
    for position in 0..kit.meters.count() {
        let counted = stamps.after.since(&stamps.before, position);
        records[STAMPS + position] = (counted.unwrap_or(0), u64::from(counted.is_none()), MORE);
    }
    ring.push_all(&records[..STAMPS + kit.meters.count()]);
}

/// Records → samples with their own columns.
#[derive(Debug)]
pub struct PeriodicDrain {
    parts: Vec<(u64, Packed)>,
    /// Records of a job.
    whole: usize,
    next_number: u64,
    seq: u64,
}

impl PeriodicDrain {
    /// For jobs with so many counters.
    pub fn new(counters: usize) -> Self {
        Self {
            parts: Vec::with_capacity(STAMPS + counters),
            whole: STAMPS + counters,
            next_number: 0,
            seq: 0,
        }
    }

    /// The sample whose last record this is.
    pub fn convert(&mut self, record: Record) -> Option<(Sample, Vec<i64>)> {
        let packed = Packed::from_word(record.packed);
        if packed.kind != MORE {
            self.parts.clear();
        }
        self.parts.push((record.stamp, packed));
        (self.parts.len() == self.whole).then(|| self.sample())
    }

    fn sample(&mut self) -> (Sample, Vec<i64>) {
        let stamp = |part: usize| self.parts[part].0 as i64;
        let value = |part: usize| self.parts[part].1.value;
        let head = self.parts[0].1;
        let lost = u64::from(head.lost);
        let missed = head.value.saturating_sub(self.next_number).saturating_sub(lost);
        self.seq += lost;
        let (release_ns, end_ns) = (stamp(0), stamp(3));
        let mut flags = 0;
        flags |= if self.seq == 0 { flag::FIRST } else { 0 };
        flags |= if head.kind == WARM_UP { flag::WARM_UP } else { 0 };
        flags |= if lost > 0 { flag::RING_GAP } else { 0 };
        let mut own = vec![stamp(1), stamp(2), end_ns, value(2) as i64, value(1) as i64];
        own.extend((STAMPS..self.whole).map(|part| if value(part) == 0 { stamp(part) } else { REFUSED }));
        let missed = u32::try_from(missed).unwrap_or(u32::MAX);
        let sample = Sample { t_ns: release_ns, value_ns: end_ns - release_ns, seq: self.seq, missed, flags };
        self.next_number = head.value + 1;
        self.seq += 1;
        (sample, own)
    }
}

/// The columns of a file of this probe.
pub fn columns(spec: &PeriodicSpec) -> Vec<String> {
    let counters = spec.counters.iter().map(|one| format!("counter_{}", one.event.name));
    COLUMNS.iter().map(|&name| name.to_owned()).chain(counters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn job_records(release: i64, number: u64, kind: u8, lost: u16, counters: &[(u64, u64)]) -> Vec<Record> {
        let record = |stamp: i64, value, kind, lost| Record {
            stamp: stamp as u64,
            packed: Packed { value, kind, lost }.word(),
        };
        let mut records = vec![
            record(release, number, kind, lost),
            record(release + 10, 3, MORE, 0),
            record(release + 20, 500, MORE, 0),
            record(release + 900, 0, MORE, 0),
        ];
        records.extend(counters.iter().map(|&(count, refused)| record(count as i64, refused, MORE, 0)));
        records
    }

    #[test]
    fn records_become_rows_and_lost_jobs_are_told_from_missed_ones() {
        let mut drain = PeriodicDrain::new(2);
        let records = [
            job_records(1_000, 0, WARM_UP, 0, &[(7, 0), (8, 0)]),
            // Of the releases 1 to 5 two were served and lost, three missed.
            job_records(7_000, 6, SERVED, 2, &[(9, 0), (0, 1)]),
        ];
        let rows: Vec<_> = records.concat().into_iter().filter_map(|record| drain.convert(record)).collect();
        let (first, own) = &rows[0];
        assert_eq!(
            *first,
            Sample { t_ns: 1_000, value_ns: 900, seq: 0, missed: 0, flags: flag::FIRST | flag::WARM_UP }
        );
        assert_eq!(own[..], [1_010, 1_020, 1_900, 500, 3, 7, 8]);
        let (second, own) = &rows[1];
        assert_eq!(*second, Sample { t_ns: 7_000, value_ns: 900, seq: 3, missed: 3, flags: flag::RING_GAP });
        assert_eq!(own[5..], [9, REFUSED]);
    }

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
