//! The formulas of global tests, computed once more with plain fractions over common denominators,
//! for tasks so small that these fit.

use proptest::prelude::*;
use sched::global::{GlobalTest, global};
use sched::{Limits, Task};
use std::cmp::Ordering;
use std::ops::{Add, Div, Mul, Sub};

/// A fraction in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Q(i128, i128);

fn q(over: impl Into<i128>, under: impl Into<i128>) -> Q {
    let (over, under) = (over.into(), under.into());
    let (mut a, mut b) = (over.abs(), under.abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    let sign = under.signum();
    Q(sign * over / a.max(1), sign * under / a.max(1))
}

impl Add for Q {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        q(self.0 * other.1 + other.0 * self.1, self.1 * other.1)
    }
}
impl Sub for Q {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self + q(-other.0, other.1)
    }
}
impl Mul for Q {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        q(self.0 * other.0, self.1 * other.1)
    }
}
impl Div for Q {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        q(self.0 * other.1, self.1 * other.0)
    }
}
impl PartialOrd for Q {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Q {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0 * other.1).cmp(&(other.0 * self.1))
    }
}

fn n(value: impl Into<i128>) -> Q {
    q(value, 1)
}
fn sum(all: impl Iterator<Item = Q>) -> Q {
    all.fold(n(0), Q::add)
}
fn u(task: &Task) -> Q {
    q(task.cost_ns, task.period_ns)
}
fn density(task: &Task) -> Q {
    q(task.cost_ns, task.deadline_ns)
}

fn possible(tasks: &[Task], m: i128) -> bool {
    tasks.iter().all(|task| task.cost_ns <= task.deadline_ns) && sum(tasks.iter().map(u)) <= n(m)
}

fn gfb(tasks: &[Task], m: i128) -> bool {
    let largest = tasks.iter().map(density).max().unwrap_or(n(0));
    possible(tasks, m) && sum(tasks.iter().map(density)) <= n(m) - n(m - 1) * largest
}

fn bak(tasks: &[Task], m: i128) -> bool {
    possible(tasks, m)
        && tasks.iter().all(|k| {
            let l = density(k);
            let b = |i: &Task| {
                let plain =
                    u(i) * (n(1) + q(i128::from(i.period_ns) - i128::from(i.deadline_ns), k.deadline_ns));
                let more = (n(i.cost_ns) - l * n(i.period_ns)) / n(k.deadline_ns);
                (if u(i) > l { plain + more } else { plain }).min(n(1))
            };
            sum(tasks.iter().map(b)) <= n(m) * (n(1) - l) + l
        })
}

/// What the load may be, and the load itself over all intervals up to `longest`.
fn load(tasks: &[Task], m: i128, longest: u64) -> (Q, Q) {
    let l = tasks.iter().map(density).max().unwrap_or(n(0));
    let mu = n(m) - n(m - 1) * l;
    let whole = n(mu.0.div_euclid(mu.1) + i128::from(mu.0.rem_euclid(mu.1) > 0));
    let bound = (mu - (whole - n(1)) * l).max((whole - n(1)) - (whole - n(2)) * l);
    let demand = |t: u64| {
        let jobs = |task: &Task| t.checked_sub(task.deadline_ns).map_or(0, |room| room / task.period_ns + 1);
        q(tasks.iter().map(|task| jobs(task) * task.cost_ns).sum::<u64>(), t)
    };
    (bound, (1..=longest).map(demand).max().unwrap_or(n(0)))
}

/// Some speed of the grid whose forced-forward demand fits into every interval at which it changes.
fn ff_dbf(tasks: &[Task], m: i128) -> bool {
    let densest = tasks.iter().map(density).max().unwrap_or(n(0));
    let total = sum(tasks.iter().map(u));
    let most = ((n(m) - total) / n(m - 1) - q(1, 10)).min(n(1));
    let longest = n(10 * i128::from(tasks.iter().map(|task| task.cost_ns).sum::<u64>()));
    let steps = (1..=50).map(|step| q(step, 50)).filter(|speed| *speed > densest);
    let fits = |speed: Q, t: Q| {
        let demand = |task: &Task| {
            let jobs = t.0.div_euclid(t.1 * i128::from(task.period_ns));
            let rest = t - n(jobs * i128::from(task.period_ns));
            let early = (n(task.deadline_ns) - rest).max(n(0));
            n(jobs * i128::from(task.cost_ns)) + (n(task.cost_ns) - speed * early).max(n(0))
        };
        sum(tasks.iter().map(demand)) <= (n(m) - n(m - 1) * speed) * t
    };
    let passes = |speed: Q| {
        tasks.iter().all(|task| {
            let begins = (n(task.deadline_ns) - n(task.cost_ns) / speed).max(n(0));
            [begins, n(task.deadline_ns)].into_iter().all(|first| {
                let points = (0..).map(|job: u64| first + n(job * task.period_ns));
                points.take_while(|t| *t <= longest).all(|t| fits(speed, t))
            })
        })
    };
    possible(tasks, m) && std::iter::once(densest).chain(steps).filter(|speed| *speed <= most).any(passes)
}

fn devi_anderson(tasks: &[Task], m: i128) -> Vec<Option<u64>> {
    let total = sum(tasks.iter().map(u));
    if !possible(tasks, m) {
        return vec![None; tasks.len()];
    }
    let some = (1..=tasks.len()).find(|whole| n(*whole as i128) >= total).unwrap_or(1) - 1;
    let mut costs: Vec<u64> = tasks.iter().map(|task| task.cost_ns).collect();
    costs.sort_unstable();
    let mut shares: Vec<Q> = tasks.iter().map(u).collect();
    shares.sort_unstable();
    let over = i128::from(costs.iter().rev().take(some).sum::<u64>()) - i128::from(costs[0]);
    let left = n(m) - sum(shares.iter().rev().take(some.saturating_sub(1)).copied());
    let x = if m == 1 { n(0) } else { n(over.max(0)) / left };
    let late = x.0.div_euclid(x.1) + i128::from(x.0.rem_euclid(x.1) > 0);
    tasks.iter().map(|task| Some(task.deadline_ns + task.cost_ns + late as u64)).collect()
}

fn tasks(rows: &[(u64, u64, u64)], cores: u32, implicit: bool) -> Vec<Task> {
    let one = |&(period_ns, cost, deadline): &(u64, u64, u64)| {
        let cost_ns = (period_ns * cost * u64::from(cores) / (rows.len() as u64 * 100)).clamp(1, period_ns);
        let deadline_ns = if implicit { period_ns } else { cost_ns + (period_ns - cost_ns) * deadline / 100 };
        Task { deadline_ns, ..Task::implicit(period_ns, cost_ns) }
    };
    rows.iter().map(one).collect()
}

fn periods() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![4u64, 5, 6, 8, 9, 10, 12, 15, 18, 20, 24, 30, 36, 40, 60])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn by_the_formula(
        rows in prop::collection::vec((periods(), 10u64..130, 50u64..101), 1..7), cores in 1u32..5, implicit in any::<bool>(),
    ) {
        let tasks = tasks(&rows, cores, implicit);
        let m = i128::from(cores);
        let says = |test| global(&tasks, cores, test, Limits::default());
        prop_assert_eq!(says(GlobalTest::EdfGfb).schedulable, gfb(&tasks, m));
        prop_assert_eq!(says(GlobalTest::EdfBak).schedulable, bak(&tasks, m));
        if implicit {
            prop_assert_eq!(says(GlobalTest::EdfDa).response_times, devi_anderson(&tasks, m));
        }
        // The load is approximated from above, within 0.1.
        let (bound, load) = load(&tasks, m, 720);
        let total = sum(tasks.iter().map(u));
        let says = says(GlobalTest::EdfLoad).schedulable;
        prop_assert!(!says || (load <= bound && total <= bound));
        prop_assert!(says || !possible(&tasks, m) || load.max(total) + q(1, 10) > bound);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn forced_forward_demand_by_the_formula(
        rows in prop::collection::vec((periods(), 10u64..110, 50u64..101), 1..6), cores in 2u32..5, implicit in any::<bool>(),
    ) {
        let tasks = tasks(&rows, cores, implicit);
        let says = global(&tasks, cores, GlobalTest::EdfFfDbf, Limits::default()).schedulable;
        prop_assert_eq!(says, ff_dbf(&tasks, cores.into()));
    }
}
