//! Executors of ROS 2 against the adversary: polling points, ready sets, callbacks without
//! preemption, nanosecond by nanosecond. What comes in one nanosecond comes in any order, an
//! executor that waits wakes at the first of it, and supply is withheld for as long as it may be.

use super::Numbers;
use super::executor_sets::{Drawn, draw};
use super::search::Effort;
use sched::Limits;
use sched::executor::{
    Callback, CallbackKind, ExecutorAnalysis, ExecutorSystem, ExecutorVerdict, ReadyOrder, bound_executors,
};
use std::collections::VecDeque;

/// Instances whose costs and delays are drawn; later ones repeat them.
const DRAWN: usize = 8;

/// What came of one system.
pub(crate) enum Seen {
    /// The bounds hold; none was exceeded.
    Holds,
    /// Some chain may be late by its bound, and whether one was; none where nobody looked.
    Refused { late: Option<bool> },
    /// A bound was exceeded.
    Exceeded { system: Box<ExecutorSystem>, seen: Longest, bounds: ExecutorVerdict },
}

/// The longest responses and ways through chains that were seen, ns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Longest {
    responses: Vec<u64>,
    chains: Vec<u64>,
}

/// Draws a system with limits for its chains, asks for bounds, and looks for callbacks and chains
/// that take longer: in refused systems, too, if `all`.
pub(crate) fn look_at_one(order: ReadyOrder, all: bool, effort: Effort, numbers: &mut Numbers) -> Seen {
    let mut system = draw(Drawn { order, load: (10, 70), delay: 8, unit: 1 }, numbers);
    let costs: u64 = system.callbacks.iter().map(|one| one.cost_ns).sum();
    for chain in &mut system.chains {
        chain.limit_ns = Some((costs * numbers.between(60, 900) / 100).max(1));
    }
    let bounds = bound_executors(&system, ExecutorAnalysis::Best, Limits { rounds_per_task: 5_000 });
    if !(bounds.holds || all) {
        return Seen::Refused { late: None };
    }
    let limits: Vec<Option<u64>> = system.chains.iter().map(|chain| chain.limit_ns).collect();
    let none = vec![None; system.callbacks.len()];
    let promised = if bounds.holds { (&bounds.responses_ns, &bounds.chains_ns) } else { (&none, &limits) };
    match (beyond(&system, promised.0, promised.1, effort, numbers), bounds.holds) {
        (Some(seen), true) => Seen::Exceeded { system: Box::new(system), seen, bounds },
        (None, true) => Seen::Holds,
        (seen, false) => Seen::Refused { late: Some(seen.is_some()) },
    }
}

/// A run in which a callback or a chain takes longer than promised, if one is found.
pub(crate) fn beyond(
    system: &ExecutorSystem,
    responses: &[Option<u64>],
    chains: &[Option<u64>],
    effort: Effort,
    numbers: &mut Numbers,
) -> Option<Longest> {
    let excess = |seen: &Longest| {
        let of = |(seen, bound): (&u64, &Option<u64>)| Some(*seen as i64 - (*bound)? as i64);
        let callbacks = seen.responses.iter().zip(responses);
        callbacks.chain(seen.chains.iter().zip(chains)).filter_map(of).max().unwrap_or(i64::MIN)
    };
    for _ in 0..effort.starts {
        let mut plan = Plan::draw(system, numbers);
        let mut seen = run(system, &plan);
        for _ in 0..effort.changes {
            let changed = plan.changed(system, numbers);
            let then = run(system, &changed);
            if excess(&then) >= excess(&seen) {
                (plan, seen) = (changed, then);
            }
        }
        if excess(&seen) > 0 {
            return Some(seen);
        }
    }
    None
}

/// What the system leaves open.
#[derive(Debug, Clone)]
struct Plan {
    /// When the first external activation of each callback may come, and how much later each comes.
    offsets: Vec<u64>,
    late: Vec<[u64; DRAWN]>,
    /// How much less each instance executes than it may, in eighths.
    less: Vec<[u64; DRAWN]>,
    /// How much of it is done when it publishes, in eighths, and how long that takes.
    published: Vec<[u64; DRAWN]>,
    delays: Vec<[u64; DRAWN]>,
    /// Where the period of each supply begins, and from when on its budget comes last.
    phases: Vec<u64>,
    last_from: Vec<u64>,
    seed: u64,
}

impl Plan {
    fn draw(system: &ExecutorSystem, numbers: &mut Numbers) -> Self {
        let moment = numbers.between(60, 160);
        let mut plan = Self {
            offsets: Vec::new(),
            late: Vec::new(),
            less: Vec::new(),
            published: Vec::new(),
            delays: Vec::new(),
            phases: Vec::new(),
            last_from: Vec::new(),
            seed: numbers.between(0, u64::MAX - 1),
        };
        for one in &system.callbacks {
            let jitter = jitter(one);
            plan.offsets.push(match numbers.between(0, 3) {
                0 => numbers.between(0, moment),
                1 => moment.saturating_sub(jitter + numbers.between(0, 3)),
                _ => moment.saturating_sub(jitter),
            });
            let dense = numbers.between(0, 1) == 0;
            // Late at first, then as early as can be.
            let late = |at: usize, numbers: &mut Numbers| match (dense, at) {
                (true, 0) => jitter,
                (true, _) => jitter.saturating_sub(at as u64 * gap(one)),
                (false, _) => drawn(jitter, numbers),
            };
            plan.late.push(std::array::from_fn(|at| late(at, numbers)));
            plan.less.push([0; DRAWN].map(|_| drawn(8, numbers) * numbers.between(0, 3) / 3));
            plan.published.push([0; DRAWN].map(|_| 8 - drawn(8, numbers) * numbers.between(0, 1)));
            plan.delays.push([0; DRAWN].map(|_| drawn(one.delay_ns, numbers)));
        }
        for supply in &system.executors {
            let period = supply.map_or(1, |supply| supply.period_ns);
            plan.phases.push(numbers.between(0, period - 1));
            plan.last_from.push(moment.saturating_sub(numbers.between(0, period)));
        }
        plan
    }

    fn changed(&self, system: &ExecutorSystem, numbers: &mut Numbers) -> Self {
        let mut plan = self.clone();
        let at = numbers.between(0, system.callbacks.len() as u64 - 1) as usize;
        let one = &system.callbacks[at];
        let instance = numbers.between(0, DRAWN as u64 - 1) as usize;
        let supply = numbers.between(0, system.executors.len() as u64 - 1) as usize;
        match numbers.between(0, 8) {
            0 => plan.offsets[at] = numbers.between(0, 160),
            1 => plan.offsets[at] += numbers.between(1, 4),
            2 => plan.offsets[at] = plan.offsets[at].saturating_sub(numbers.between(1, 4)),
            3 => plan.late[at][instance] = drawn(jitter(one), numbers),
            4 => plan.less[at][instance] = drawn(8, numbers),
            5 => plan.published[at][instance] = numbers.between(0, 8),
            6 => plan.delays[at][instance] = drawn(one.delay_ns, numbers),
            7 => {
                let period = system.executors[supply].map_or(1, |supply| supply.period_ns);
                plan.phases[supply] = numbers.between(0, period - 1);
                plan.last_from[supply] = numbers.between(0, 200);
            }
            _ => plan.seed = numbers.between(0, u64::MAX - 1),
        }
        plan
    }

    /// Whether an executor has its core in this nanosecond.
    fn supplies(&self, system: &ExecutorSystem, executor: usize, now: u64) -> bool {
        let Some(supply) = system.executors[executor] else { return true };
        let since = now + self.phases[executor];
        let (period, at) = (since / supply.period_ns, since % supply.period_ns);
        let comes_last = period * supply.period_ns >= self.last_from[executor] + self.phases[executor];
        if comes_last { at >= supply.period_ns - supply.budget_ns } else { at < supply.budget_ns }
    }
}

fn jitter(one: &Callback) -> u64 {
    one.external.as_ref().map_or(0, |external| external.jitter_ns)
}

/// Between two external activations in the long run, ns.
fn gap(one: &Callback) -> u64 {
    let Some(external) = &one.external else { return 1 };
    let last = external.intervals_ns.last();
    last.map_or(external.period_ns, |last| last / external.intervals_ns.len() as u64)
}

/// Mostly nothing or all, else between.
fn drawn(most: u64, numbers: &mut Numbers) -> u64 {
    match numbers.between(0, 5) {
        0..=2 => 0,
        3 | 4 => most,
        _ => numbers.between(0, most),
    }
}

/// An instance of a callback that waits, or is executed.
#[derive(Debug, Clone)]
struct Instance {
    activation: u64,
    /// For each chain when the first callback was activated of which this comes.
    origins: Vec<Option<u64>>,
}

/// One that is executed.
struct Running {
    callback: usize,
    instance: Instance,
    left: u64,
    /// It publishes when so much is left.
    publishes_at: u64,
    number: usize,
}

/// The thread of an executor.
#[derive(Default)]
struct Thread {
    running: Option<Running>,
    /// Callbacks of the ready set that are not executed yet, in order.
    ready: VecDeque<usize>,
    /// Instances that wait for it.
    waiting: usize,
    /// Whether it ended an instance just before now, on its core.
    ended: bool,
}

/// A message under way, or an activation to come.
struct Coming {
    at: u64,
    callback: usize,
    origins: Vec<Option<u64>>,
}

struct World<'a> {
    system: &'a ExecutorSystem,
    plan: &'a Plan,
    waiting: Vec<VecDeque<Instance>>,
    threads: Vec<Thread>,
    coming: Vec<Coming>,
    started: Vec<usize>,
    /// Of the last instances of each callback.
    costs: Vec<VecDeque<u64>>,
    seen: Longest,
    coins: Numbers,
}

fn run(system: &ExecutorSystem, plan: &Plan) -> Longest {
    let callbacks = system.callbacks.len();
    let mut coming = Vec::new();
    for at in 0..callbacks {
        for (number, base) in external(system, plan, at, 300).into_iter().enumerate() {
            coming.push(Coming {
                at: base + plan.late[at][number % DRAWN],
                callback: at,
                origins: Vec::new(),
            });
        }
    }
    coming.sort_by_key(|one| one.at);
    let mut world = World {
        system,
        plan,
        waiting: vec![VecDeque::new(); callbacks],
        threads: system.executors.iter().map(|_| Thread::default()).collect(),
        coming: Vec::new(),
        started: vec![0; callbacks],
        costs: vec![VecDeque::new(); callbacks],
        seen: Longest { responses: vec![0; callbacks], chains: vec![0; system.chains.len()] },
        coins: Numbers(plan.seed),
    };
    let mut outside = coming.into_iter().peekable();
    for now in 0..420 {
        while let Some(one) = outside.next_if(|one| one.at == now) {
            world.coming.push(one);
        }
        world.step(now);
    }
    world.seen
}

/// When a callback is activated from outside, before jitter: as densely as it may be.
fn external(system: &ExecutorSystem, plan: &Plan, callback: usize, until: u64) -> Vec<u64> {
    let Some(external) = &system.callbacks[callback].external else { return Vec::new() };
    let mut all: Vec<u64> = Vec::new();
    let mut next = plan.offsets[callback];
    while next < until {
        all.push(next);
        let each = all.iter().rev().zip(&external.intervals_ns).map(|(before, far)| before + far);
        next = if external.intervals_ns.is_empty() {
            next + external.period_ns
        } else {
            each.max().unwrap_or(next).max(next)
        };
    }
    all
}

impl World<'_> {
    fn step(&mut self, now: u64) {
        for executor in 0..self.threads.len() {
            // What comes at this moment may come just after the thread looked.
            if self.coins.between(0, 1) == 0 {
                self.choose(executor, now);
            }
        }
        if self.coming.iter().any(|one| one.at <= now) {
            self.deliver(now);
        }
        for executor in 0..self.threads.len() {
            self.choose(executor, now);
            self.threads[executor].ended = false;
            if self.plan.supplies(self.system, executor, now) {
                self.execute(executor, now);
            }
        }
    }

    /// What comes now, in any order.
    fn deliver(&mut self, now: u64) {
        let (mut here, later): (Vec<Coming>, Vec<Coming>) =
            std::mem::take(&mut self.coming).into_iter().partition(|one| one.at <= now);
        self.coming = later;
        for at in (1..here.len()).rev() {
            let other = self.coins.between(0, at as u64) as usize;
            // Messages of one topic stay in order.
            if here[at].callback != here[other].callback {
                here.swap(at, other);
            }
        }
        for one in here {
            self.activate(one, now);
        }
    }

    fn activate(&mut self, one: Coming, now: u64) {
        let mut origins = one.origins;
        origins.resize(self.system.chains.len(), None);
        for (origin, chain) in origins.iter_mut().zip(&self.system.chains) {
            if chain.callbacks[0] == one.callback {
                *origin = Some(now);
            }
        }
        self.waiting[one.callback].push_back(Instance { activation: now, origins });
        let executor = self.system.callbacks[one.callback].executor;
        self.threads[executor].waiting += 1;
        // A thread that waits wakes at once, and finds what is there so far.
        if self.coins.between(0, 2) > 0 {
            self.choose(executor, now);
        }
    }

    /// Chooses what is executed next, if nothing is; polls where that is needed.
    fn choose(&mut self, executor: usize, now: u64) {
        let thread = &self.threads[executor];
        if thread.waiting == 0
            || thread.running.is_some()
            || !(thread.ended || self.plan.supplies(self.system, executor, now))
        {
            return;
        }
        let callbacks = &self.system.callbacks;
        let here = |at: &usize| callbacks[*at].executor == executor && !self.waiting[*at].is_empty();
        let immediate = |at: &usize| {
            self.system.order == ReadyOrder::TimersFirst && callbacks[*at].kind == CallbackKind::Timer
        };
        let timer = (0..callbacks.len()).filter(here).find(immediate);
        let next = timer.or_else(|| {
            if self.threads[executor].ready.is_empty() {
                let mut ready: Vec<usize> =
                    (0..callbacks.len()).filter(here).filter(|at| !immediate(at)).collect();
                ready.sort_by_key(|&at| (callbacks[at].kind, at));
                if self.system.order == ReadyOrder::Any {
                    for at in (1..ready.len()).rev() {
                        ready.swap(at, self.coins.between(0, at as u64) as usize);
                    }
                }
                self.threads[executor].ready = ready.into();
            }
            self.threads[executor].ready.pop_front()
        });
        let Some(callback) = next else { return };
        let Some(instance) = self.waiting[callback].pop_front() else { return };
        self.threads[executor].waiting -= 1;
        let number = self.started[callback] % DRAWN;
        self.started[callback] += 1;
        let left = self.cost(callback, number);
        let publishes_at = left - left * self.plan.published[callback][number] / 8;
        self.threads[executor].running = Some(Running { callback, instance, left, publishes_at, number });
    }

    /// What an instance executes: as much as it may after those before it, or less.
    fn cost(&mut self, callback: usize, number: usize) -> u64 {
        let one = &self.system.callbacks[callback];
        let (mut most, mut spent) = (one.cost_ns, 0);
        for (cost, sum) in self.costs[callback].iter().zip(one.costs_ns.iter().skip(1)) {
            spent += cost;
            most = most.min(sum.saturating_sub(spent));
        }
        let cost = (most - most * self.plan.less[callback][number] / 8).max(1);
        self.costs[callback].push_front(cost);
        self.costs[callback].truncate(8);
        cost
    }

    fn execute(&mut self, executor: usize, now: u64) {
        let Some(running) = &mut self.threads[executor].running else { return };
        running.left -= 1;
        let publishes =
            running.left == running.publishes_at || (running.left == 0 && running.publishes_at > 0);
        let publishes = publishes && running.publishes_at != u64::MAX;
        if publishes {
            running.publishes_at = u64::MAX;
            for (next, one) in self.system.callbacks.iter().enumerate() {
                if one.after.contains(&running.callback) {
                    let step =
                        |chain: &[usize]| chain.windows(2).any(|pair| *pair == [running.callback, next]);
                    let origins = self.system.chains.iter().zip(&running.instance.origins);
                    let origins =
                        origins.map(|(chain, origin)| origin.filter(|_| step(&chain.callbacks))).collect();
                    let at = now + 1 + self.plan.delays[next][running.number];
                    self.coming.push(Coming { at, callback: next, origins });
                }
            }
        }
        if running.left > 0 {
            return;
        }
        let end = now + 1;
        let longest = &mut self.seen.responses[running.callback];
        *longest = (*longest).max(end - running.instance.activation);
        let chains = self.system.chains.iter().zip(&running.instance.origins);
        for (longest, (chain, origin)) in self.seen.chains.iter_mut().zip(chains) {
            if let (Some(origin), true) = (origin, chain.callbacks.last() == Some(&running.callback)) {
                *longest = (*longest).max(end - origin);
            }
        }
        self.threads[executor].running = None;
        self.threads[executor].ended = true;
    }
}
