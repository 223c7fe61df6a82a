//! Sets per second and core of the fixed-priority and EDF tests, beside the plain response-time
//! analysis on the same sets, in turns.
//!
//! `cargo bench -p stillcore-sched --bench fp [-- --rounds N --rows FILE]`. Times are CPU time of
//! the thread, and depend on how much other cores disturb the caches; read the ratios of
//! neighbouring turns. Two threads run beside one in turns, by the clock and by CPU time. The clock
//! includes whatever else runs here; CPU time excludes waiting for one another, which is counted
//! apart.

use result::row::{median_interval, ratio_of_rounds};
use result::{Limit, Of, Row, Sink};
use sched::asked::Unit;
use sched::generate::{Generator, Spec};
use sched::simple::{SimpleSet, SimpleTests};
use sched::{
    Ask, Limits, Path, Task, TaskSet, Test, analyze, are_generated_schedulable, are_schedulable, edf_qpa,
    is_schedulable, question, question_line, response_times,
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

/// Runs every turn once per round: rows of the best time of each, and the ratio to the first turn
/// by rounds. The row has the share of schedulable sets so that nothing is optimised away, and
/// because it must be the same.
fn race(rows: &mut Sink, title: &str, sets: u64, turns: &[Turn<'_>], rounds: usize) {
    let mut rates = vec![Vec::new(); turns.len()];
    let mut found = vec![0; turns.len()];
    for _ in 0..rounds {
        for (at, (_, turn)) in turns.iter().enumerate() {
            let start = thread_cpu();
            found[at] = black_box(turn());
            rates[at].push(sets as f64 / thread_cpu().saturating_sub(start).as_secs_f64() / 1e6);
        }
    }
    let best = |rates: &[f64]| rates.iter().copied().fold(0.0, f64::max);
    for (at, (name, _)) in turns.iter().enumerate() {
        let mut row = Row::new(format!("{title}: {name}"), best(&rates[at]), "M sets per s").n(rounds as u64);
        if at > 0 {
            row = row.beside(turns[0].0, best(&rates[0])).ratio(ratio_of_rounds(&rates[at], &rates[0]));
        }
        let row = row.why(format!("{} of {sets} schedulable", found[at]));
        let least = BUDGETS.iter().find(|(budgeted, of, _)| *budgeted == title && of == name);
        push(
            rows,
            match least {
                Some((_, _, least)) => row.budget(Of::Value, Limit::AtLeast(*least)),
                None => row,
            },
        );
    }
}

/// Section 7 of the design, million sets per second and core.
const BUDGETS: [(&str, &str, f64); 2] =
    [("FP, U 0.8", "lanes", 1.0), ("FP, U 0.8", "generation and lanes", 0.7)];

fn push(rows: &mut Sink, row: Row) {
    rows.push(row).expect("the file of rows can be written");
}

fn main() {
    let rounds = clock::rounds(20) as usize;
    let mut rows = Sink::of_arguments();
    let note = format!(
        "40 tasks, uniform [10, 100] ms; FP: RM, J = 104 us; vector path {}; one thread, its CPU time; best of {rounds} rounds, in turns",
        Path::Widest.name()
    );
    rows.note(note).expect("the file of rows can be written");
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
        let title = format!("FP, U {utilization}");
        race(
            &mut rows,
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
            &mut rows,
            &format!("set by set, U {utilization}"),
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
            &mut rows,
            &title.replace("FP", "EDF, J 104 us"),
            SETS,
            &[("QPA", Box::new(|| drawn.iter().filter(|set| edf_qpa(set, limits).schedulable).count()))],
            rounds,
        );
    }
    constrained(&mut rows, rounds);
    lines(&mut rows, rounds);
    scaling(&mut rows, rounds);
    print!("{}", rows.table());
}

/// The cost of a line of `sched analyze`: to read it, and to answer it.
fn lines(rows: &mut Sink, rounds: usize) {
    let generator = Generator::new(Spec::default(), 1).expect("a good specification");
    let line = |set| {
        let system = generator.system(set).expect("every set can be drawn");
        question_line(&system, Unit::Ns).expect("times are whole ns")
    };
    let lines: Vec<String> = (0..SETS).map(line).collect();
    let simple = |test| {
        let (mut set, mut tests, ask) = (SimpleSet::default(), SimpleTests::default(), Ask::of(test));
        let mut schedulable = |line: &&String| {
            assert!(set.read(line.as_bytes()), "a simple set");
            tests.answer(&ask, &mut set).is_some_and(|verdict| verdict.schedulable)
        };
        lines.iter().filter(|line| schedulable(line)).count()
    };
    let schedulable = |line: &&String, test| {
        let question = question::read(line).expect("a good line");
        analyze(&question.system, test, Limits::default()).is_ok_and(|verdict| verdict.schedulable)
    };
    race(
        rows,
        "lines of JSON, U 0.8",
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
            (
                "read the short way",
                Box::new(|| {
                    let mut set = SimpleSet::default();
                    lines.iter().filter(|line| set.read(line.as_bytes())).count()
                }),
            ),
            ("read, fp-rta with response times, the short way", Box::new(|| simple(Test::FpRta))),
            ("read, edf-qpa, the short way", Box::new(|| simple(Test::EdfQpa))),
        ],
        rounds,
    );
}

/// Deadlines below periods make processor demand visit many more intervals.
fn constrained(rows: &mut Sink, rounds: usize) {
    let limits = Limits::default();
    for utilization in [0.8, 0.9] {
        let spec = Spec { utilization, deadlines: [0.7, 1.0], ..Spec::default() };
        let generator = Generator::new(spec, 1).expect("a good specification");
        let drawn: Vec<TaskSet> = (0..SETS)
            .map(|set| generator.set(set))
            .collect::<Result<_, _>>()
            .expect("every set can be drawn");
        race(
            rows,
            &format!("D in 0.7 T to T, U {utilization}"),
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

/// Each of two threads takes as many sets as one alone: how much more two do.
fn scaling(rows: &mut Sink, rounds: usize) {
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
    for (name, ratios, [one, two]) in
        [("by the clock", &mut by_clock, best[0]), ("by CPU time", &mut by_cpu, best[1])]
    {
        ratios.sort_by(f64::total_cmp);
        let n = ratios.len() as u64;
        let best = 2.0 * one.as_secs_f64() / two.as_secs_f64();
        push(rows, Row::new(format!("two threads over one {name}, best turn of each"), best, "").n(n));
        let row =
            Row::new(format!("two threads over one {name}, median of pairs"), ratios[ratios.len() / 2], "")
                .n(n);
        push(
            rows,
            match median_interval(ratios) {
                Some([low, high]) => row.between(low, high),
                None => row,
            },
        );
    }
    push(
        rows,
        Row::new("times that two threads waited for anything", waited as f64, "").n(by_clock.len() as u64),
    );
}
