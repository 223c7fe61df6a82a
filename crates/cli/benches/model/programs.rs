//! Programs drawn at random, light enough for one core of a shared machine.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// Kinds of threads that begin a chain or are alone.
const KINDS: [&str; 6] = ["absolute", "timerfd", "signal", "sporadic", "relative", "deadline"];
/// With a jitter of a quarter, 120 jobs do not show which of two periods a ten-thousandth apart
/// they follow: the rounder one is reported.
const NOT_ROUND_US: u64 = 16_667;
const PERIODS_US: [u64; 8] = [4_000, 5_000, 8_000, 10_000, 12_500, NOT_ROUND_US, 20_000, 25_000];

/// A thread, in the words of the plant.
#[derive(Debug, Clone)]
pub(crate) struct Thread {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) priority: u64,
    pub(crate) cpu: u64,
    pub(crate) period_us: u64,
    pub(crate) cost_us: u64,
    pub(crate) jitter_us: u64,
    pub(crate) drop: u64,
    pub(crate) suspend_us: u64,
    pub(crate) lock: Option<u64>,
    pub(crate) receives: Option<u64>,
    pub(crate) sends: Option<u64>,
    by_condition: bool,
}

impl Thread {
    /// The same for one CPU that is so many times slower. `SCHED_DEADLINE` is left out: there is no
    /// bound for it.
    pub(crate) fn slower(&mut self, times: u64) {
        if self.kind == "deadline" {
            self.kind = "absolute";
        }
        self.cpu = 0;
        for time_us in [&mut self.period_us, &mut self.cost_us, &mut self.jitter_us, &mut self.suspend_us] {
            *time_us *= times;
        }
    }

    pub(crate) fn argument(&self) -> String {
        let optional =
            |key: &str, value: Option<u64>| value.map(|value| format!(",{key}={value}")).unwrap_or_default();
        format!(
            "name={},kind={},prio={},cpu={},period={},cost={},jitter={},drop={},suspend={}{}{}{},via={}",
            self.name,
            self.kind,
            self.priority,
            self.cpu,
            self.period_us,
            self.cost_us,
            self.jitter_us,
            self.drop,
            self.suspend_us,
            optional("lock", self.lock),
            optional("in", self.receives),
            optional("out", self.sends),
            if self.by_condition { "cond" } else { "pipe" }
        )
    }
}

/// A program.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) jobs: u64,
    pub(crate) threads: Vec<Thread>,
}

struct Draw(ChaCha8Rng);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    /// In so many of a hundred cases.
    fn now_and_then(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

impl Program {
    /// One to three threads, of which the first may begin a chain of three.
    pub(crate) fn draw(seed: u64) -> Self {
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(seed));
        let by_condition = draw.now_and_then(50);
        let alone = 1 + draw.below(3);
        let mut threads: Vec<Thread> =
            (0..alone).map(|index| thread(&mut draw, index, by_condition)).collect();
        if draw.now_and_then(50) {
            threads[0].sends = Some(0);
            for stage in 0..2 {
                let first = &threads[0];
                threads.push(Thread {
                    name: format!("stage{stage}"),
                    kind: "stage",
                    priority: first.priority - 1 - stage,
                    cpu: draw.below(2),
                    cost_us: 100 + draw.below(200),
                    jitter_us: 0,
                    drop: 0,
                    suspend_us: 0,
                    lock: None,
                    receives: Some(stage),
                    sends: (stage == 0).then_some(1),
                    ..first.clone()
                });
            }
        }
        Self { jobs: 120, threads }
    }
}

fn thread(draw: &mut Draw, index: u64, by_condition: bool) -> Thread {
    let kind = draw.of(&KINDS);
    let period_us = draw.of(&PERIODS_US);
    let absolute = kind == "absolute";
    let is_late = absolute && period_us != NOT_ROUND_US && draw.now_and_then(40);
    let jitter_us = if is_late { period_us * (5 + draw.below(20)) / 100 } else { 0 };
    let drop = if absolute && draw.now_and_then(30) { 5 + draw.below(10) } else { 0 };
    let suspend_us = if kind != "deadline" && draw.now_and_then(25) { period_us / 8 } else { 0 };
    Thread {
        name: format!("{}{index}", &kind[..3]),
        kind,
        priority: 80 - 10 * index,
        cpu: draw.below(2),
        period_us,
        cost_us: period_us * (3 + draw.below(6)) / 100,
        jitter_us,
        drop,
        suspend_us,
        // Under SCHED_DEADLINE a wait may move the periods that follow (sched-deadline.rst).
        lock: (kind != "deadline" && draw.now_and_then(20)).then_some(0),
        receives: None,
        sends: None,
        by_condition,
    }
}
