//! Sets a second and core of the fixed-priority and EDF tests, beside the plain response-time analysis on the same sets, in turns.
//!
//! `cargo bench -p stillcore-sched --bench fp [-- ROUNDS]`. Times are of this process on this machine, as good as its neighbours are quiet;
//! ratios of neighbouring turns are what to read.

use sched::generate::{Generator, Spec};
use sched::{
    Limits, Path, Task, TaskSet, are_generated_schedulable, are_schedulable, edf_qpa, is_schedulable,
    response_times,
};
use std::hint::black_box;
use std::time::{Duration, Instant};

const SETS: u64 = 4096;
const JITTER_NS: u64 = 104_000;

/// The equation as in the papers, from w = C, without bounds or floating point.
fn textbook(set: &TaskSet) -> bool {
    let tasks = set.tasks();
    (0..tasks.len()).all(|i| {
        let mut w = tasks[i].cost_ns;
        loop {
            if w + tasks[i].jitter_ns > tasks[i].deadline_ns {
                return false;
            }
            let jobs = |k: &Task| (w + k.jitter_ns).div_ceil(k.period_ns) * k.cost_ns;
            let next = tasks[i].cost_ns + tasks[..i].iter().map(jobs).sum::<u64>();
            if next == w {
                return true;
            }
            w = next;
        }
    })
}

type Turn<'a> = (&'a str, Box<dyn Fn() -> usize + 'a>);

/// Every turn once a round, the best time of each; the count of schedulable sets is printed so that nothing is optimised away, and because
/// it must be the same.
fn race(title: &str, sets: u64, turns: &[Turn<'_>], rounds: usize) {
    let mut best = vec![Duration::MAX; turns.len()];
    let mut found = vec![0; turns.len()];
    for _ in 0..rounds {
        for (at, (_, turn)) in turns.iter().enumerate() {
            let start = Instant::now();
            found[at] = black_box(turn());
            best[at] = best[at].min(start.elapsed());
        }
    }
    println!("\n{title}");
    for (at, (name, _)) in turns.iter().enumerate() {
        let rate = sets as f64 / best[at].as_secs_f64();
        let ratio = best[0].as_secs_f64() / best[at].as_secs_f64();
        println!("{name:44} {rate:>12.0} sets/s {ratio:>9.1} x   {} of {sets} schedulable", found[at]);
    }
}

fn main() {
    let rounds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    println!("vector path: {}; one thread; best of {rounds} rounds, in turns", Path::Widest.name());
    let limits = Limits::default();
    let count = |verdicts: Vec<bool>| verdicts.into_iter().filter(|one| *one).count();
    for utilization in [0.7, 0.8, 0.85, 0.9] {
        let generator =
            Generator::new(Spec { utilization, ..Spec::default() }, 1).expect("a good specification");
        let drawn: Vec<TaskSet> = (0..SETS)
            .map(|set| generator.set(set).map(|set| set.with_added_jitter(JITTER_NS).expect("small")))
            .collect::<Result<_, _>>()
            .expect("every set can be drawn");
        let generated = |path| {
            are_generated_schedulable(&generator, 0..SETS, &[JITTER_NS], limits, path)
                .expect("as above")
                .remove(0)
        };
        let title = format!("FP, 40 tasks, U = {utilization}, RM, uniform [10, 100] ms, J = 104 us");
        race(
            &title,
            SETS,
            &[
                ("textbook, u64 divisions", Box::new(|| drawn.iter().filter(|set| textbook(set)).count())),
                (
                    "response times of all tasks",
                    Box::new(|| drawn.iter().filter(|set| response_times(set, limits).schedulable).count()),
                ),
                ("bounds first", Box::new(|| drawn.iter().filter(|set| is_schedulable(set, limits)).count())),
                (
                    "lanes, baseline instructions",
                    Box::new(|| count(are_schedulable(&drawn, limits, Path::Portable))),
                ),
                ("lanes", Box::new(|| count(are_schedulable(&drawn, limits, Path::Widest)))),
                (
                    "generation and lanes, baseline instructions",
                    Box::new(|| count(generated(Path::Portable))),
                ),
                ("generation and lanes", Box::new(|| count(generated(Path::Widest)))),
            ],
            rounds,
        );
        race(
            "generation alone, set by set",
            SETS,
            &[(
                "generation",
                Box::new(|| {
                    (0..SETS)
                        .filter(|set| generator.set(*set).is_ok_and(|set| !set.tasks().is_empty()))
                        .count()
                }),
            )],
            rounds,
        );
        race(
            &title.replace("FP", "EDF").replace(", RM", ""),
            SETS,
            &[("QPA", Box::new(|| drawn.iter().filter(|set| edf_qpa(set, limits).schedulable).count()))],
            rounds,
        );
    }
    constrained(rounds);
    scaling(rounds);
}

/// Deadlines below periods make processor demand look at many more intervals.
fn constrained(rounds: usize) {
    let limits = Limits::default();
    for utilization in [0.8, 0.9] {
        let spec = Spec { utilization, deadlines: [0.7, 1.0], ..Spec::default() };
        let generator = Generator::new(spec, 1).expect("a good specification");
        let drawn: Vec<TaskSet> = (0..SETS)
            .map(|set| generator.set(set))
            .collect::<Result<_, _>>()
            .expect("every set can be drawn");
        race(
            &format!("40 tasks, U = {utilization}, uniform [10, 100] ms, D uniform in [0.7, 1] T"),
            SETS,
            &[
                (
                    "FP, response times of all tasks",
                    Box::new(|| drawn.iter().filter(|set| response_times(set, limits).schedulable).count()),
                ),
                (
                    "FP, lanes",
                    Box::new(|| {
                        are_schedulable(&drawn, limits, Path::Widest).into_iter().filter(|one| *one).count()
                    }),
                ),
                (
                    "EDF, QPA",
                    Box::new(|| drawn.iter().filter(|set| edf_qpa(set, limits).schedulable).count()),
                ),
            ],
            rounds,
        );
    }
}

/// Parts of the sets on several threads.
fn scaling(rounds: usize) {
    const MANY: u64 = 65_536;
    let generator = Generator::new(Spec::default(), 1).expect("a good specification");
    let part = |range| {
        let found =
            are_generated_schedulable(&generator, range, &[JITTER_NS], Limits::default(), Path::Widest);
        found.expect("every set can be drawn").remove(0).into_iter().filter(|one| *one).count()
    };
    let on = |threads: u64| {
        let part = &part;
        std::thread::scope(|scope| {
            let of = |at: u64| scope.spawn(move || part(MANY * at / threads..MANY * (at + 1) / threads));
            let handles: Vec<_> = (0..threads).map(of).collect();
            handles.into_iter().map(|handle| handle.join().expect("no part panics")).sum()
        })
    };
    let turns: [Turn<'_>; 2] = [("one thread", Box::new(|| on(1))), ("two threads", Box::new(|| on(2)))];
    race("generation and lanes, FP, U = 0.8, J = 104 us", MANY, &turns, rounds);
}
