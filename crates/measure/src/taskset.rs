//! One task of a task set on one core: at each release it burns its execution time, as in Algorithm
//! 2 of R. Delgado and B. W. Choi, "New Insights Into the Real-Time Performance of a Multicore
//! Processor", IEEE Access 8, 2020, section V.
//!
//! The paper burns slots of wall-clock time, so that a job that is preempted inside a slot executes
//! less than its C, and answers before the R that was calculated for it. That way is kept
//! ([`Burn::Slots`]); the other ([`Burn::CpuTime`]) burns C of the thread's own CPU-time clock,
//! whatever happens meanwhile.
//!
//! A job that overruns is not cut short: the next release is served late, once the job has ended.
//! One whose period has passed altogether by then is missed.

use super::burn;
use super::kind::{Drain, Drained, Loop, LoopResult, Place, Probe, Window, rehearsed};
use super::numbering::Numbering;
use super::ring::{Packed, Record, Ring};
use model::probe::{ProbeDetail, TaskRecord, TasksetDetail};
use model::sample::Policy;
use serde::{Deserialize, Serialize};
use std::io;
use sys::clock;

/// First record of a job: stamp = when it began, CLOCK_MONOTONIC ns; value = number of its release.
const START: u8 = 0;
/// Second: stamp = when it ended; value = CPU time it used, ns.
const END: u8 = 1;
/// Third: stamp = involuntary context switches since the end of the job before.
const SWITCHES: u8 = 2;

/// The columns of a job besides those that every sample has.
const COLUMNS: [&str; 4] = ["start_ns", "end_ns", "cpu_ns", "preemptions"];

/// One task of a task set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TasksetSpec {
    /// Its name.
    pub name: String,
    /// Interval of releases, ns.
    pub period_ns: i64,
    /// Relative deadline, ns.
    pub deadline_ns: i64,
    /// First release after the window's start, ns.
    pub offset_ns: i64,
    /// Execution time of a job, ns.
    pub cost_ns: i64,
    /// What it is burnt by.
    pub burn: Burn,
}

/// What the execution time of a job is measured by while it burns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Burn {
    /// Slots of wall-clock time: what others run inside a slot counts as the job's own.
    Slots {
        /// Length of a slot, ns.
        slot_ns: i64,
    },
    /// CPU time of the thread.
    CpuTime,
}

impl Probe for TasksetSpec {
    fn period_ns(&self) -> Option<i64> {
        Some(self.period_ns)
    }

    fn columns(&self) -> Vec<String> {
        COLUMNS.map(str::to_owned).to_vec()
    }

    fn prepare(&self, _place: Place) -> io::Result<Box<dyn Loop>> {
        Ok(Box::new(self.clone()))
    }

    fn drain(&self, _policy: &Policy, start_ns: i64) -> Box<dyn Drain> {
        Box::new(TasksetDrain::new(start_ns + self.offset_ns, self.period_ns))
    }
}

impl Loop for TasksetSpec {
    fn rehearse(&mut self, short: Window<'_>) {
        let (period_ns, cost_ns) = (short.duration_ns / 4, short.duration_ns / 40);
        rehearsed(&mut Self { period_ns, cost_ns, offset_ns: 0, ..self.clone() }, short);
    }

    fn run(&mut self, window: Window<'_>) -> io::Result<LoopResult> {
        Ok(run(self, window))
    }

    fn detail(&self) -> ProbeDetail {
        let TasksetSpec { name, deadline_ns, cost_ns, offset_ns, burn, .. } = self;
        let task = TaskRecord {
            name: name.clone(),
            deadline_ns: *deadline_ns as u64,
            cost_ns: *cost_ns as u64,
            offset_ns: *offset_ns as u64,
            slot_ns: match burn {
                Burn::Slots { slot_ns } => Some(*slot_ns as u64),
                Burn::CpuTime => None,
            },
        };
        ProbeDetail::Taskset(TasksetDetail { task: Some(task), ..TasksetDetail::default() })
    }
}

/// Serves the releases of a window until its end or until asked to stop.
fn run(spec: &TasksetSpec, window: Window<'_>) -> LoopResult {
    let Window { ring, start_ns, duration_ns, .. } = window;
    let first = start_ns + spec.offset_ns;
    let length_ns = (duration_ns - spec.offset_ns).max(0) as u64;
    let wanted = length_ns.div_ceil(spec.period_ns as u64) as i64;
    let mut number = 0;
    let mut switches = involuntary_switches();
    while number < wanted && !ring.stopped() {
        let release = first + number * spec.period_ns;
        clock::sleep_until(release);
        let begin = clock::now_ns();
        if begin < release {
            // A signal ended the sleep; the job has not been released yet.
            continue;
        }
        let cpu_begin = clock::thread_cpu_ns();
        if !burn(ring, spec, cpu_begin) {
            break;
        }
        let end = clock::now_ns();
        let cpu_ns = clock::thread_cpu_ns() - cpu_begin;
        let switches_now = involuntary_switches();
        ring.push_all(&[
            (begin as u64, number as u64, START),
            (end as u64, cpu_ns as u64, END),
            (switches_now - switches, 0, SWITCHES),
        ]);
        switches = switches_now;
        number = next_release(number, end - first, spec.period_ns);
    }
    // A job that the end of the window cuts short does not count as requested.
    let released = number.min(wanted) as u64;
    LoopResult { t1_ns: clock::now_ns(), released, iterations: 0 }
}

/// The release to serve after `number`, at a time counted from release 0: the next, or the last of
/// those behind it that have come.
fn next_release(number: i64, now_ns: i64, period_ns: i64) -> i64 {
    (number + 1).max(now_ns.div_euclid(period_ns))
}

/// Burns the execution time of a job; false where the window was ended meanwhile.
fn burn(ring: &Ring, spec: &TasksetSpec, cpu_begin: i64) -> bool {
    match spec.burn {
        Burn::Slots { slot_ns } => burn_slots(ring, spec.cost_ns, slot_ns),
        Burn::CpuTime => burn::until_cpu_time(cpu_begin + spec.cost_ns, || ring.stopped()),
    }
}

/// Slots of wall-clock time, as many as make up the execution time; the last one is shorter where
/// it is no multiple.
fn burn_slots(ring: &Ring, cost_ns: i64, slot_ns: i64) -> bool {
    let mut burnt = 0;
    while burnt < cost_ns && !ring.stopped() {
        let slot = slot_ns.min(cost_ns - burnt);
        burn::until(clock::now_ns() + slot);
        burnt += slot;
    }
    burnt >= cost_ns
}

fn involuntary_switches() -> u64 {
    clock::thread_usage().map_or(0, |usage| usage.switches.involuntary)
}

/// Records of jobs → samples: response times from the release, with [`COLUMNS`].
#[derive(Debug)]
struct TasksetDrain {
    first_ns: i64,
    period_ns: i64,
    numbering: Numbering,
    begun: Option<(i64, Packed)>,
    ended: Option<(i64, i64)>,
}

impl TasksetDrain {
    /// For releases `first + k · period`.
    fn new(first_ns: i64, period_ns: i64) -> Self {
        Self { first_ns, period_ns, numbering: Numbering::default(), begun: None, ended: None }
    }
}

impl Drain for TasksetDrain {
    /// The last record of a job gives out its sample.
    fn convert(&mut self, record: Record, out: &mut Drained) {
        let packed = Packed::from_word(record.packed);
        match packed.kind {
            START => self.begun = Some((record.stamp as i64, packed)),
            END => self.ended = Some((record.stamp as i64, packed.value as i64)),
            SWITCHES => {
                let (Some((start_ns, begun)), Some((end_ns, cpu_ns))) =
                    (self.begun.take(), self.ended.take())
                else {
                    return;
                };
                let release_ns = self.first_ns + begun.value as i64 * self.period_ns;
                let (lost, response_ns) = (u64::from(begun.lost), end_ns - release_ns);
                let sample = self.numbering.sample(begun.value, lost, false, release_ns, response_ns);
                out.push(sample, &[start_ns, end_ns, cpu_ns, record.stamp as i64]);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::BYTES;
    use model::Sample;
    use model::sample::flag;
    use proptest::prelude::*;
    use sys::memory::shared_file;

    const MS: i64 = 1_000_000;

    fn job(drain: &mut TasksetDrain, number: u64, begin: i64, end: i64, lost: u16) -> (Sample, [i64; 4]) {
        let record = |stamp: i64, value, kind, lost| Record {
            stamp: stamp as u64,
            packed: Packed { value, kind, lost }.word(),
        };
        let mut out = Drained::default();
        drain.convert(record(begin, number, START, lost), &mut out);
        drain.convert(record(end, 2_500, END, 0), &mut out);
        assert!(out.samples.is_empty());
        drain.convert(record(3, 0, SWITCHES, 0), &mut out);
        (out.samples[0], out.own.try_into().unwrap())
    }

    #[test]
    fn a_job_is_its_response_from_the_release_and_what_it_did() {
        let mut drain = TasksetDrain::new(1_000_000, 10_000);
        let (first, columns) = job(&mut drain, 0, 1_000_100, 1_003_000, 0);
        assert_eq!((first.t_ns, first.value_ns, first.flags), (1_000_000, 3_000, flag::FIRST));
        assert_eq!(columns, [1_000_100, 1_003_000, 2_500, 3]);
        let (late, _) = job(&mut drain, 3, 1_031_000, 1_034_000, 1);
        assert_eq!((late.t_ns, late.value_ns), (1_030_000, 4_000));
        assert_eq!((late.seq, late.missed, late.flags), (2, 1, flag::RING_GAP));
    }

    #[test]
    fn a_release_is_served_late_while_its_period_runs_and_missed_after() {
        assert_eq!(next_release(0, 7, 10), 1);
        assert_eq!(next_release(0, 10, 10), 1);
        // Release 1 came at 10 and its period runs until 20.
        assert_eq!(next_release(0, 19, 10), 1);
        assert_eq!(next_release(0, 20, 10), 2);
        assert_eq!(next_release(4, 95, 10), 9);
    }

    proptest! {
        #[test]
        fn no_release_is_served_early_or_out_of_turn(number in 0i64..1000, over in 0i64..100_000, period in 1i64..1000) {
            let now = number * period + over;
            let next = next_release(number, now, period);
            prop_assert!(next > number);
            // Either it is the next one, or it has come already and the one behind it has not.
            prop_assert!(next == number + 1 || (next * period <= now && now < (next + 1) * period));
        }
    }

    #[test]
    fn every_release_of_a_window_is_served_or_skipped() {
        let file = shared_file("taskset-test", BYTES).unwrap();
        let (mut ring, mut other) = (Ring::map(&file).unwrap(), Ring::map(&file).unwrap());
        for burn in [Burn::CpuTime, Burn::Slots { slot_ns: MS / 2 }] {
            // Longer than its period: every other release at least goes unserved.
            let (name, cost_ns) = (String::new(), 5 * MS / 2);
            let spec = TasksetSpec { name, period_ns: MS, deadline_ns: MS, offset_ns: 0, cost_ns, burn };
            let start = clock::now_ns();
            let window = Window { ring: &mut ring, start_ns: start, duration_ns: 20 * MS, releases: None };
            let result = run(&spec, window);
            assert_eq!(result.released, 20);
            let mut drain = TasksetDrain::new(start, spec.period_ns);
            let mut out = Drained::default();
            std::iter::from_fn(|| other.pop()).for_each(|one| drain.convert(one, &mut out));
            assert!(!out.samples.is_empty() && out.samples.len() <= 10, "{out:?}");
            for (sample, own) in out.samples.iter().zip(out.own.chunks(COLUMNS.len())) {
                let [begin, end, cpu_ns, _] = own else { panic!("{own:?}") };
                assert!(*begin >= sample.t_ns && end > begin);
                assert!(end - begin >= spec.cost_ns || burn == Burn::CpuTime);
                assert!(*cpu_ns >= spec.cost_ns || burn != Burn::CpuTime, "{cpu_ns}");
            }
        }
    }
}
