//! Passes of blocking a second and core: 20 cores of 10 tasks, one resource, one request a job.
//!
//! `cargo bench -p stillcore-sched --bench locks [-- ROUNDS]`. A pass bounds every task once for given response times (R = T, the worst that a
//! schedulable set has). Once with critical sections of one length, once of two hundred. Times are CPU time of the
//! thread: the best of the rounds.

use sched::locks::{Protocol, Semantics, Sharing, blocking};
use sched::{Access, Request, System, SystemTask, Task};
use std::hint::black_box;
use std::time::Duration;

mod clock;
use clock::thread_cpu;

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

fn race(title: &str, system: &System, rounds: u32) {
    println!("\n{title}");
    let sharing = Sharing::of(system);
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
    for (at, protocol) in PROTOCOLS.into_iter().enumerate() {
        let rate = 1.0 / best[at].as_secs_f64();
        println!("{:24} {rate:>12.0} passes/s   blocking in all {} ns", protocol.name(), sums[at]);
    }
    let start = thread_cpu();
    let built = (0..100).map(|_| Sharing::of(black_box(system))).map(black_box).count();
    println!(
        "{:24} {:>12.0} /s",
        "arranging the requests",
        built as f64 / (thread_cpu().saturating_sub(start)).as_secs_f64()
    );
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(50);
    println!("{CORES} cores of {TASKS_PER_CORE} tasks; one thread, its CPU time; best of {rounds} rounds");
    race("sections of 204 us, one request a job", &system((204_000, 204_000), 1), rounds);
    race("sections of 1 to 204 us, one request a job", &system((1_000, 204_000), 1), rounds);
    race("sections of 1 to 204 us, three requests a job", &system((1_000, 204_000), 3), rounds);
}
