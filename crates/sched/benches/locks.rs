//! Passes of blocking per second and core: 20 cores of 10 tasks, one resource, one request a job.
//!
//! `cargo bench -p stillcore-sched --bench locks [-- --rounds N --rows FILE]`. A pass bounds every
//! task once for given response times (R = T, the worst that a schedulable set has). Once with
//! critical sections of one length, once of two hundred. Times are CPU time of the thread: the best
//! of the rounds.

use result::{Limit, Of, Ratio, Row, Sink};
use sched::locks::{LocalLocks, Protocol, Semantics, Sharing, blocking};
use sched::{Access, Request, System, SystemTask, Task};
use std::hint::black_box;
use std::time::Duration;

mod clock;
use clock::thread_cpu;

/// The integer programs of RTSS 2013, solved by GLPK 5.0 for SchedCAT (commit 86211bc), of a system
/// of this size: the fastest recorded.
const MIP_PASSES_PER_S: f64 = 1.16;
const CORES: u32 = 20;
const TASKS_PER_CORE: u32 = 10;
/// Those with a pass of their own.
const PROTOCOLS: [Protocol; 14] = [
    Protocol::FifoNp,
    Protocol::FifoP,
    Protocol::Priority,
    Protocol::PriorityP,
    Protocol::PriorityFifo,
    Protocol::PriorityFifoP,
    Protocol::Unordered,
    Protocol::UnorderedP,
    Protocol::Baseline,
    Protocol::PhaseFair,
    Protocol::TaskFair,
    Protocol::TaskFairMutex,
    Protocol::MsrpHolistic,
    Protocol::MsrpClassic,
];

/// Numbers that look random and are the same everywhere: splitmix64 (Steele, Lea and Flood 2014).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, least: u64, most: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        least + (mixed ^ (mixed >> 31)) % (most - least + 1)
    }
}

fn system(lengths: (u64, u64), requests: u64) -> System {
    let mut numbers = Numbers(20);
    let mut tasks: Vec<SystemTask> = (0..CORES * TASKS_PER_CORE)
        .map(|at| {
            let period = numbers.next(10_000_000, 100_000_000);
            let access = if numbers.next(0, 1) == 0 { Access::Read } else { Access::Write };
            let request = Request {
                resource: 0,
                count: requests,
                length_ns: numbers.next(lengths.0, lengths.1),
                access,
            };
            SystemTask {
                core: at % CORES,
                requests: vec![request],
                ..Task::implicit(period, period * 3 / 40).into()
            }
        })
        .collect();
    tasks.sort_by_key(|one| one.task.period_ns);
    System { cores: CORES, tasks }
}

fn race(rows: &mut Sink, title: &str, system: &System, rounds: u32) {
    let sharing = Sharing::of(system, LocalLocks::NonPreemptable);
    let responses: Vec<u64> = system.tasks.iter().map(|one| one.task.period_ns).collect();
    let mut best = vec![Duration::MAX; PROTOCOLS.len()];
    let mut sums = vec![0u64; PROTOCOLS.len()];
    for _ in 0..rounds {
        for (at, protocol) in PROTOCOLS.into_iter().enumerate() {
            // Long enough for the clock, short enough to find a quiet moment.
            let passes = if best[at] < Duration::from_micros(50) { 200 } else { 4 };
            let start = thread_cpu();
            for _ in 0..passes {
                let bound = blocking(black_box(&sharing), protocol, Semantics::Sound, black_box(&responses));
                sums[at] = bound.spin.iter().chain(&bound.arrival).sum();
            }
            best[at] = best[at].min((thread_cpu().saturating_sub(start)) / passes);
        }
    }
    let mut push = |row| rows.push(row).expect("the file of rows can be written");
    for (at, protocol) in PROTOCOLS.into_iter().enumerate() {
        let rate = 1.0 / best[at].as_secs_f64();
        let row =
            Row::new(format!("{title}: {}", protocol.name()), rate, "passes per s").n(u64::from(rounds));
        let row = row.why(format!("blocking in all {} ns", sums[at]));
        push(if protocol == Protocol::FifoNp {
            let ratio = Ratio { median: rate / MIP_PASSES_PER_S, low: None, high: None };
            let row = row.beside("integer program, recorded", MIP_PASSES_PER_S).ratio(Some(ratio));
            row.budget(Of::Ratio, Limit::AtLeast(1_000.0))
        } else {
            row
        });
    }
    let start = thread_cpu();
    let built =
        (0..100).map(|_| Sharing::of(black_box(system), LocalLocks::NonPreemptable)).map(black_box).count();
    let rate = built as f64 / (thread_cpu().saturating_sub(start)).as_secs_f64();
    push(Row::new(format!("{title}: arranging the requests"), rate, "per s"));
}

fn main() {
    let rounds = clock::rounds(50) as u32;
    let mut rows = Sink::of_arguments();
    let note = format!(
        "locks: {CORES} cores of {TASKS_PER_CORE} tasks; one thread, its CPU time; best of {rounds} rounds"
    );
    rows.note(note).expect("the file of rows can be written");
    race(&mut rows, "204 us, one request a job", &system((204_000, 204_000), 1), rounds);
    race(&mut rows, "1 to 204 us, one request a job", &system((1_000, 204_000), 1), rounds);
    race(&mut rows, "1 to 204 us, three requests a job", &system((1_000, 204_000), 3), rounds);
    print!("{}", rows.table());
}
