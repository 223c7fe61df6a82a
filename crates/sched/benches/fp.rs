//! Sets a second and core of the fixed-priority and EDF tests, beside the plain response-time analysis on the same sets, in turns.
//!
//! `cargo bench -p stillcore-sched --bench fp [-- ROUNDS]`. Times are CPU time of the thread, as good as its neighbours leave the caches alone;
//! ratios of neighbouring turns are what to read. Two threads are put beside one in turns, by the clock and by CPU time: the clock counts whoever else
//! runs here, CPU time does not count waiting for one another, which is therefore counted by itself.

use sched::generate::{Generator, Spec};
use sched::question::{self, Unit};
use sched::{
    Limits, Path, Task, TaskSet, Test, answer, are_generated_schedulable, are_schedulable, edf_qpa,
    is_schedulable, question_line, response_times,
};
use std::hint::black_box;
use std::time::{Duration, Instant};

mod clock;
use clock::{thread_cpu, waits};

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
            let start = thread_cpu();
            found[at] = black_box(turn());
            best[at] = best[at].min(thread_cpu().saturating_sub(start));
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
    println!(
        "vector path: {}; one thread, its CPU time; best of {rounds} rounds, in turns",
        Path::Widest.name()
    );
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
    lines(rounds);
    scaling(rounds);
}

/// What a line of `sched analyze` costs: to read it, and to answer it.
fn lines(rounds: usize) {
    let generator = Generator::new(Spec::default(), 1).expect("a good specification");
    let line = |set| {
        let system = generator.system(set).expect("every set can be drawn");
        question_line(&system, Unit::Ns).expect("times are whole ns")
    };
    let lines: Vec<String> = (0..SETS).map(line).collect();
    let schedulable = |line: &&String, test| {
        let question = question::read(line).expect("a good line");
        answer(&question, test, Limits::default()).is_ok_and(|verdict| verdict.schedulable)
    };
    race(
        "lines of JSON, 40 tasks, U = 0.8, uniform [10, 100] ms",
        SETS,
        &[
            ("read", Box::new(|| lines.iter().filter(|line| question::read(line).is_ok()).count())),
            (
                "read, fp-rta with response times",
                Box::new(|| lines.iter().filter(|line| schedulable(line, Test::FpRta)).count()),
            ),
            (
                "read, edf-qpa",
                Box::new(|| lines.iter().filter(|line| schedulable(line, Test::EdfQpa)).count()),
            ),
        ],
        rounds,
    );
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

/// What a share of the work took one thread.
struct Share {
    cpu: Duration,
    waits: u64,
}

/// As many sets for each of two threads as for one: how much more two of them do.
fn scaling(rounds: usize) {
    const MANY: u64 = 16_384;
    let generator = Generator::new(Spec::default(), 1).expect("a good specification");
    let share = |range| {
        let (start, before) = (thread_cpu(), waits());
        let found =
            are_generated_schedulable(&generator, range, &[JITTER_NS], Limits::default(), Path::Widest);
        black_box(found.expect("every set can be drawn"));
        Share { cpu: thread_cpu().saturating_sub(start), waits: waits() - before }
    };
    let on = |threads: u64| {
        let share = &share;
        let start = Instant::now();
        let shares: Vec<Share> = std::thread::scope(|scope| {
            let handles: Vec<_> =
                (0..threads).map(|at| scope.spawn(move || share(MANY * at..MANY * (at + 1)))).collect();
            handles.into_iter().map(|handle| handle.join().expect("no share panics")).collect()
        });
        let longest = shares.iter().map(|share| share.cpu).max().unwrap_or_default();
        (start.elapsed(), longest, shares.iter().map(|share| share.waits).sum::<u64>())
    };
    let (mut by_clock, mut by_cpu, mut waited) = (Vec::new(), Vec::new(), 0);
    let mut best = [[Duration::MAX; 2]; 2];
    for _ in 0..rounds * 10 {
        let (clock_1, cpu_1, _) = on(1);
        let (clock_2, cpu_2, waits) = on(2);
        by_clock.push(2.0 * clock_1.as_secs_f64() / clock_2.as_secs_f64());
        by_cpu.push(2.0 * cpu_1.as_secs_f64() / cpu_2.as_secs_f64());
        waited += waits;
        best[0] = [best[0][0].min(clock_1), best[0][1].min(clock_2)];
        best[1] = [best[1][0].min(cpu_1), best[1][1].min(cpu_2)];
    }
    println!(
        "\nscaling: generation and lanes, FP, U = 0.8, J = 104 us; {MANY} sets a thread, {} pairs of turns",
        by_clock.len()
    );
    for (name, ratios, [one, two]) in
        [("by the clock", &mut by_clock, best[0]), ("by CPU time", &mut by_cpu, best[1])]
    {
        ratios.sort_by(f64::total_cmp);
        println!(
            "two threads do {:.2} x of one {name}, best turn of each; median of pairs {:.2}, a tenth above {:.2}",
            2.0 * one.as_secs_f64() / two.as_secs_f64(),
            ratios[ratios.len() / 2],
            ratios[ratios.len() * 9 / 10],
        );
    }
    println!("threads waited {waited} times for anything in all these turns");
}
