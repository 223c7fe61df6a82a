//! Where threads should run and with which priorities, so that all costs can grow most until a
//! deadline may be missed.
//!
//! On one CPU, priorities are assigned from the lowest up (Audsley, "On priority assignment in
//! fixed priority scheduling", Information Processing Letters 79, 2001): whichever thread is in
//! time below all others may be the lowest. That finds an order wherever there is one, if the bound
//! of a thread depends on which threads are above it and not on their order (Davis and Burns,
//! "Improved priority assignment for global fixed priority pre-emptive scheduling in multiprocessor
//! real-time systems", Real-Time Systems 47, 2011). The bounds here do, as long as no thread
//! suspends itself; one that does interferes by its own response time. There it counts with its
//! deadline instead, and the order found is a beginning, improved by exchanging neighbours. The
//! largest growth that has an order is found by bisection.
//!
//! Placements are all tried where they are few, else built thread by thread and improved by moves
//! and exchanges. What is proposed is answered by the test of the verdict.
//!
//! Long because: the search, the orders that it asks for and the changes that come of it share what
//! is fixed and what may change.

use super::change::{Change, NoChange, Value, changed, dispatch_on, name_for};
use super::shape::{TaskModel, ThreadModel};
use super::system::{Assumed, has_curve, of_interference, of_thread};
use super::verdict::{Guarantee, TEST, guarantee};
use model::Cpus;
use sched::asked::{Question, Unit};
use sched::{Ask, Limits, MAX_NS, System, SystemTask, Task, TaskSet, equals, response_times};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Factors of all costs are looked for in steps of a thousandth, up to a hundredfold growth.
const MOST: u64 = 101_000;
const AS_THEY_ARE: u64 = 1_000;
/// Threads that are placed: they are counted in the bits of a word.
const MOST_THREADS: usize = 60;
/// All placements are tried up to so many, and sets of threads of a CPU.
const MOST_PLACEMENTS: u64 = 100_000;
const MOST_SETS: u64 = 2_048;
/// Else sets that are looked at.
const MOST_TRIED: usize = 1_500;
/// Orders that are tried to improve one.
const MOST_ORDERS: usize = 200;
/// The last number of a real-time priority (`task_struct.prio` of priority 1).
const LAST: i32 = 98;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Optimised {
    /// The CPUs that threads may have.
    pub cpus: Vec<u32>,
    /// Placements that were compared.
    pub placements: u64,
    /// Whether these are all.
    pub is_exhaustive: bool,
    /// Whether no priorities could be better on any CPU: no thread suspends itself, and none counts
    /// by the curve of its releases, which the search takes by its line.
    pub is_optimal: bool,
    /// The best factor of all costs that was found, parts per million.
    pub best_ppm: u64,
    /// As it is, on all these CPUs.
    pub now: Guarantee,
    /// `None` where nothing better was found, or nothing meets all deadlines.
    pub proposal: Option<Proposal>,
    /// What is assumed, a sentence each.
    pub assumed: Vec<String>,
}

/// A better placement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Proposal {
    /// What changes.
    pub changes: Vec<Change>,
    /// The guarantee then.
    pub then: Guarantee,
}

/// Looks for the best placement on these CPUs. Refuses CPUs that were not recorded.
pub fn optimise(model: &TaskModel, assumed: &Assumed, cpus: &Cpus) -> Result<Optimised, NoChange> {
    if let Some(unknown) = cpus.iter().find(|cpu| !model.knows(*cpu)) {
        return Err(NoChange::unrecorded(unknown));
    }
    let now = guarantee(model, assumed);
    let now = now.ok_or_else(|| NoChange::new("no thread of the program can be analysed"))?;
    let problem = Problem::new(model, assumed, cpus)?;
    let mut search = Search { problem: &problem, known: BTreeMap::new() };
    let found = search.placement();
    let (found, changes) = search.settle(found);
    let better = Some(changes).filter(|changes| !changes.is_empty());
    let proposal = match better {
        Some(changes) => {
            let then = guarantee(&changed(model, &changes)?, assumed);
            then.filter(|then| is_better(&now, then)).map(|then| Proposal { changes, then })
        }
        None => None,
    };
    Ok(Optimised {
        cpus: problem.cpus.clone(),
        placements: found.placements,
        is_exhaustive: found.is_exhaustive,
        is_optimal: !problem.suspends() && !problem.has_curves() && !problem.shares(),
        best_ppm: found.factor * 1_000,
        now,
        proposal,
        assumed: problem.assumptions(),
    })
}

fn is_better(now: &Guarantee, then: &Guarantee) -> bool {
    let spare = |one: &Guarantee| one.spare_ppm.unwrap_or(u64::MAX);
    then.schedulable == Some(true) && (now.schedulable != Some(true) || spare(then) > spare(now))
}

/// A thread that may be placed, or its priority changed.
struct Item<'a> {
    thread: &'a ThreadModel,
    cpu: u32,
    prio: i32,
    /// Where it stands among priorities that are not changed: even between two of them, odd at one.
    level: i64,
    deadline_ns: Option<u64>,
}

/// What runs on a CPU beside the items.
struct Fixed {
    level: i64,
    task: SystemTask,
}

struct Problem<'a> {
    model: &'a TaskModel,
    assumed: &'a Assumed,
    cpus: Vec<u32>,
    items: Vec<Item<'a>>,
    /// Places of the items that may move.
    movable: Vec<usize>,
    /// By CPU.
    fixed: BTreeMap<u32, Vec<Fixed>>,
    /// Priorities that are not changed, ascending numbers.
    borders: Vec<i32>,
}

/// A task of a CPU in some order: equal keys are equal priorities.
#[derive(Clone)]
struct Placed {
    key: [i64; 2],
    task: SystemTask,
    /// To be done by then, ns.
    limit_ns: Option<u64>,
}

impl<'a> Problem<'a> {
    fn new(model: &'a TaskModel, assumed: &'a Assumed, cpus: &Cpus) -> Result<Self, NoChange> {
        let threads = model.threads.iter().filter(|thread| thread.is_task());
        let is_free = |thread: &&ThreadModel| thread.of_program && thread.prio.is_some_and(|prio| prio >= 0);
        let (free, others): (Vec<_>, Vec<_>) = threads.partition(|thread| is_free(thread));
        if free.len() > MOST_THREADS {
            let what = format!("{} threads, expected at most {MOST_THREADS} to place", free.len());
            return Err(NoChange::new(what));
        }
        let prio = |thread: &ThreadModel| thread.prio.map_or(i32::MAX, i32::from);
        let mut borders: BTreeSet<i32> =
            model.interference.iter().filter_map(|one| one.prio).map(i32::from).collect();
        borders.extend(others.iter().map(|thread| prio(thread)));
        freeze_crowded(&mut borders, &free.iter().map(|thread| prio(thread)).collect::<Vec<_>>());
        let level = |prio: i32| {
            let below = borders.iter().filter(|border| **border < prio).count() as i64;
            2 * below + i64::from(borders.contains(&prio))
        };
        let mut fixed: BTreeMap<u32, Vec<Fixed>> = BTreeMap::new();
        for one in &model.interference {
            let level = one.prio.map_or(-1, |prio| level(i32::from(prio)));
            fixed.entry(one.cpu).or_default().push(Fixed { level, task: of_interference(one, assumed) });
        }
        let deadline = |thread: &ThreadModel| assumed.deadline_ns(thread).map(|(ns, _)| ns);
        let mut items = Vec::new();
        for thread in free.into_iter().chain(others) {
            let Some(cpu) = thread.cpus.iter().next() else { continue };
            let (prio, deadline_ns) = (prio(thread), deadline(thread));
            items.push(Item { thread, cpu, prio, level: level(prio), deadline_ns });
        }
        if items.len() > MOST_THREADS {
            let what = format!("{} threads, expected at most {MOST_THREADS} together", items.len());
            return Err(NoChange::new(what));
        }
        let allowed = |item: &Item| is_free(&item.thread) && cpus.contains(item.cpu);
        let movable = (0..items.len()).filter(|at| allowed(&items[*at])).collect();
        Ok(Self {
            model,
            assumed,
            cpus: cpus.iter().collect(),
            items,
            movable,
            fixed,
            borders: borders.into_iter().collect(),
        })
    }

    fn has_curves(&self) -> bool {
        self.items.iter().any(|item| has_curve(item.thread))
    }

    /// Whether threads share locks, which the search does not look at.
    fn shares(&self) -> bool {
        self.model.locks.all.iter().any(|lock| lock.users.iter().filter(|user| user.taken > 0).count() > 1)
    }

    fn suspends(&self) -> bool {
        self.items.iter().any(|item| item.thread.suspension.total_ns > 0)
    }

    /// All CPUs that matter: those that items may have, and those that others have.
    fn all_cpus(&self) -> BTreeSet<u32> {
        self.cpus.iter().copied().chain(self.items.iter().map(|item| item.cpu)).collect()
    }

    /// The tasks of a CPU. `order`: ranks of items that are not as their priorities say.
    fn placed(&self, cpu: u32, set: u64, rank: impl Fn(usize) -> i64) -> Vec<Placed> {
        let fixed = self.fixed.get(&cpu).into_iter().flatten();
        let mut all: Vec<Placed> =
            fixed.map(|one| Placed { key: [one.level, 0], task: one.task.clone(), limit_ns: None }).collect();
        for at in members(set) {
            let item = &self.items[at];
            let dispatch_ns = dispatch_on(self.model, item.thread, cpu);
            let thread = ThreadModel { dispatch_ns, ..item.thread.clone() };
            let task = of_thread(&thread, self.assumed);
            let own_ns = (task.suspension_ns > 0).then_some(task.task.deadline_ns);
            let limit_ns = item.deadline_ns.or(own_ns);
            let key = [item.level, if item.level % 2 == 0 { rank(at) } else { 0 }];
            all.push(Placed { key, task, limit_ns });
        }
        all.sort_by_key(|one| one.key);
        all
    }

    /// What the proposal rests on.
    fn assumptions(&self) -> Vec<String> {
        let mut all = vec![
            "on another CPU a thread meets the interrupts and urgent threads that were recorded there, and is dispatched no later than the latest of its own and of the threads there".to_owned(),
            "costs, suspensions and release jitter stay as observed, those of threads that another releases included; caches, memory and locks are not modelled".to_owned(),
            "threads stay above or below each thread without a model and each thread of other programs, as they are".to_owned(),
        ];
        if self.shares() {
            all.push("threads share locks, which count in the proposal, but not in the search".to_owned());
        }
        if self.suspends() {
            all.push(
                "threads suspend themselves: with such, other priorities may be better than those found"
                    .to_owned(),
            );
        }
        all
    }
}

/// Numbers between two borders are enough for the threads there, and no thread shares one with a
/// border; others keep their priorities.
fn freeze_crowded(borders: &mut BTreeSet<i32>, prios: &[i32]) {
    loop {
        let free: Vec<i32> = prios.iter().copied().filter(|prio| !borders.contains(prio)).collect();
        let crowded = free.iter().find(|prio| {
            let (first, last) = room(borders.iter().copied(), **prio);
            let beside = free.iter().filter(|other| (first..=last).contains(*other)).count();
            beside as i64 > i64::from(last - first) + 1
        });
        match crowded {
            Some(prio) => borders.insert(*prio),
            None => return,
        };
    }
}

/// The numbers around one that lie between two borders.
fn room(borders: impl Iterator<Item = i32>, prio: i32) -> (i32, i32) {
    let (mut first, mut last) = (0, LAST);
    for border in borders {
        if border < prio {
            first = first.max(border + 1);
        } else {
            last = last.min(border - 1);
        }
    }
    (first, last)
}

fn members(set: u64) -> impl Iterator<Item = usize> {
    (0..u64::BITS as usize).filter(move |at| set >> at & 1 == 1)
}

fn scaled(task: &Task, factor: u64) -> Task {
    let ns = u128::from(task.cost_ns) * u128::from(factor);
    let cost_ns = u64::try_from(ns.div_ceil(u128::from(AS_THEY_ARE))).unwrap_or(MAX_NS);
    Task { cost_ns: cost_ns.clamp(1, MAX_NS), ..*task }
}

/// Whether all are in time by the test of the verdict, all costs times a factor.
fn holds(placed: &[Placed], factor: u64) -> bool {
    let keys: Vec<[i64; 2]> = placed.iter().map(|one| one.key).collect();
    let tasks: Vec<SystemTask> = placed
        .iter()
        .map(|one| SystemTask { task: scaled(&one.task.task, factor), core: 0, ..one.task.clone() })
        .collect();
    let question = Question {
        unit: Unit::Ns,
        places: (0..tasks.len()).collect(),
        placed: true,
        equals: equals(&keys),
        system: System { cores: 1, tasks },
    };
    let Ok(verdict) = Ask::of(TEST).verdict(&question, Limits::default()) else { return false };
    placed.iter().zip(&verdict.response_times).all(|(one, response)| {
        one.limit_ns.is_none_or(|limit_ns| response.is_some_and(|response_ns| response_ns <= limit_ns))
    })
}

/// The largest factor for which something is found, with that; `None` where there is none.
fn largest<T>(find: impl Fn(u64) -> Option<T>) -> Option<(u64, T)> {
    if let Some(found) = find(MOST) {
        return Some((MOST, found));
    }
    let (mut low, mut high, mut best) = (0, MOST, None);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match find(middle) {
            Some(found) => (low, best) = (middle, Some(found)),
            None => high = middle,
        }
    }
    best.map(|found| (low, found))
}

fn factor_of(placed: &[Placed]) -> u64 {
    if placed.iter().all(|one| one.limit_ns.is_none()) {
        return MOST;
    }
    largest(|factor| holds(placed, factor).then_some(())).map_or(0, |(factor, ())| factor)
}

/// The best that was found for a set of items on a CPU.
#[derive(Clone)]
struct Best {
    factor: u64,
    /// The items from the most urgent; `None`: as their priorities are.
    order: Option<Vec<usize>>,
}

/// A placement of all items.
struct Found {
    cpus: Vec<u32>,
    factor: u64,
    placements: u64,
    is_exhaustive: bool,
}

struct Search<'p> {
    problem: &'p Problem<'p>,
    known: BTreeMap<(u32, u64), Best>,
}

impl Search<'_> {
    fn best(&mut self, cpu: u32, set: u64) -> Best {
        if let Some(best) = self.known.get(&(cpu, set)) {
            return best.clone();
        }
        let problem = self.problem;
        let items = &problem.items;
        let by_prio = problem.placed(cpu, set, |at| i64::from(items[at].prio));
        let mut best = Best { factor: factor_of(&by_prio), order: None };
        if best.factor < MOST {
            let found = largest(|factor| audsley(problem, cpu, set, factor)).map(|(_, order)| order);
            let mut shorter: Vec<usize> = members(set).collect();
            shorter.sort_by_key(|at| {
                let item = &items[*at];
                (item.deadline_ns.unwrap_or(MAX_NS).saturating_sub(item.thread.release.jitter_ns), *at)
            });
            for order in found.into_iter().chain([shorter]) {
                let factor = factor_of(&ordered(problem, cpu, set, &order));
                if factor > best.factor {
                    best = Best { factor, order: Some(order) };
                }
            }
        }
        self.known.insert((cpu, set), best.clone());
        best
    }

    fn factor(&mut self, cpus: &[u32]) -> u64 {
        let all = self.problem.all_cpus();
        let set = |cpu: u32| {
            cpus.iter().enumerate().filter(|(_, one)| **one == cpu).fold(0, |set, (at, _)| set | 1u64 << at)
        };
        all.into_iter().map(|cpu| self.best(cpu, set(cpu)).factor).min().unwrap_or(MOST)
    }

    fn placement(&mut self) -> Found {
        let problem = self.problem;
        let (movable, cpus) = (problem.movable.len() as u32, problem.cpus.len() as u64);
        let now: Vec<u32> = problem.items.iter().map(|item| item.cpu).collect();
        let factor = self.factor(&now);
        let start = Found { cpus: now, factor, placements: 1, is_exhaustive: true };
        let placements = cpus.checked_pow(movable).filter(|all| *all <= MOST_PLACEMENTS);
        let sets = 1u64.checked_shl(movable).unwrap_or(u64::MAX).saturating_mul(cpus);
        match placements.filter(|_| movable < 20 && sets <= MOST_SETS) {
            Some(placements) => self.every(start, placements),
            None => self.some(start),
        }
    }

    /// All placements; of equally good ones that which moves fewest, the first of these.
    fn every(&mut self, start: Found, placements: u64) -> Found {
        let problem = self.problem;
        let moved = |cpus: &[u32]| cpus.iter().zip(&start.cpus).filter(|(a, b)| a != b).count();
        let (mut best, mut best_factor) = (start.cpus.clone(), start.factor);
        for number in 0..placements {
            let mut cpus = start.cpus.clone();
            let mut rest = number;
            for at in &problem.movable {
                cpus[*at] = problem.cpus[(rest % problem.cpus.len() as u64) as usize];
                rest /= problem.cpus.len() as u64;
            }
            let factor = self.factor(&cpus);
            if (factor, Reverse(moved(&cpus))) > (best_factor, Reverse(moved(&best))) {
                (best, best_factor) = (cpus, factor);
            }
        }
        Found { cpus: best, factor: best_factor, placements, is_exhaustive: true }
    }

    /// From the placement that is, and from one that is built with the largest demand first, by
    /// moves and exchanges while the factor grows.
    fn some(&mut self, start: Found) -> Found {
        let problem = self.problem;
        let mut tried = 1;
        let mut by_demand = problem.movable.clone();
        let demand = |at: &usize| {
            let thread = problem.items[*at].thread;
            let (cost, period) = (thread.cost.most_ns(), thread.release.period_ns.max(1));
            (u128::from(cost) * 1_000_000_000 / u128::from(period), Reverse(*at))
        };
        by_demand.sort_by_key(|at| Reverse(demand(at)));
        let fixed = |cpu: u32, placed: &[(usize, u32)]| {
            let stay = (0..problem.items.len())
                .filter(|at| !problem.movable.contains(at) && problem.items[*at].cpu == cpu);
            let placed = placed.iter().filter(|(_, at_cpu)| *at_cpu == cpu).map(|(at, _)| *at);
            stay.chain(placed).fold(0u64, |set, at| set | 1 << at)
        };
        let mut placed: Vec<(usize, u32)> = Vec::new();
        for at in by_demand {
            let mut best: Option<(u64, u32)> = None;
            for cpu in &problem.cpus {
                let factor = self.best(*cpu, fixed(*cpu, &placed) | 1 << at).factor;
                if best.is_none_or(|(most, _)| factor > most) {
                    best = Some((factor, *cpu));
                }
            }
            placed.extend(best.map(|(_, cpu)| (at, cpu)));
        }
        let mut built = start.cpus.clone();
        placed.into_iter().for_each(|(at, cpu)| built[at] = cpu);
        let factor = self.factor(&built);
        tried += 1;
        let (mut cpus, mut factor) =
            if factor > start.factor { (built, factor) } else { (start.cpus.clone(), start.factor) };
        while let Some((better, found)) = self.step(&cpus, factor, &mut tried) {
            (cpus, factor) = (better, found);
        }
        Found { cpus, factor, placements: tried, is_exhaustive: false }
    }

    /// The first move or exchange that is better.
    fn step(&mut self, cpus: &[u32], factor: u64, tried: &mut u64) -> Option<(Vec<u32>, u64)> {
        let problem = self.problem;
        let mut next: Vec<Vec<u32>> = Vec::new();
        for (place, at) in problem.movable.iter().enumerate() {
            let moves = problem.cpus.iter().filter(|cpu| **cpu != cpus[*at]).map(|cpu| {
                let mut moved = cpus.to_vec();
                moved[*at] = *cpu;
                moved
            });
            let swaps = problem.movable[..place].iter().filter(|other| cpus[**other] != cpus[*at]);
            let swaps = swaps.map(|other| {
                let mut swapped = cpus.to_vec();
                swapped.swap(*at, *other);
                swapped
            });
            next.extend(moves.chain(swaps));
        }
        for candidate in next {
            if self.known.len() >= MOST_TRIED {
                return None;
            }
            *tried += 1;
            let found = self.factor(&candidate);
            if found > factor {
                return Some((candidate, found));
            }
        }
        None
    }

    /// The changes of a placement: priorities only where the CPU would else be the one that limits
    /// the growth.
    fn settle(&mut self, found: Found) -> (Found, Vec<Change>) {
        let problem = self.problem;
        let sets: Vec<(u32, u64)> = problem
            .all_cpus()
            .into_iter()
            .map(|cpu| {
                let here = found.cpus.iter().enumerate().filter(|(_, one)| **one == cpu);
                (cpu, here.fold(0u64, |set, (at, _)| set | 1 << at))
            })
            .collect();
        let all: Vec<Best> =
            sets.iter().map(|(cpu, set)| improved(problem, *cpu, *set, self.best(*cpu, *set))).collect();
        let factor = all.iter().map(|best| best.factor).min().unwrap_or(MOST);
        let mut changes = Vec::new();
        for (at, item) in problem.items.iter().enumerate().filter(|(at, item)| found.cpus[*at] != item.cpu) {
            changes.push(Change {
                thread: name_for(problem.model, item.thread),
                value: Value::Cpu(found.cpus[at]),
            });
        }
        for ((cpu, set), best) in sets.iter().zip(&all) {
            let as_is = problem.placed(*cpu, *set, |at| i64::from(problem.items[at].prio));
            if let Some(order) = &best.order
                && factor_of(&as_is) < factor
            {
                changes.extend(priorities(problem, order));
            }
        }
        (Found { factor, ..found }, changes)
    }
}

/// The same set in an order of its items.
fn ordered(problem: &Problem, cpu: u32, set: u64, order: &[usize]) -> Vec<Placed> {
    problem.placed(cpu, set, |at| order.iter().position(|one| *one == at).unwrap_or(order.len()) as i64)
}

/// An order in which all are in time, all costs times a factor: from the lowest priority up.
fn audsley(problem: &Problem, cpu: u32, set: u64, factor: u64) -> Option<Vec<usize>> {
    let mut levels: Vec<i64> = members(set).map(|at| problem.items[at].level).collect();
    levels.sort_unstable();
    levels.dedup();
    let mut lowest_first = Vec::new();
    for level in levels.into_iter().rev() {
        let mut open: Vec<usize> = members(set).filter(|at| problem.items[*at].level == level).collect();
        if level % 2 != 0 {
            // Their priorities stay; whether they are in time, the verdict says.
            lowest_first.extend(open.into_iter().rev());
            continue;
        }
        // The one that is the least urgent now first: an order that is near to the present one.
        open.sort_by_key(|at| (Reverse(problem.items[*at].prio), *at));
        while !open.is_empty() {
            let above = members(set)
                .filter(|at| problem.items[*at].level < level)
                .fold(0, |set, at| set | 1u64 << at);
            let fits = |at: &usize| {
                let with = open.iter().fold(above, |set, at| set | 1u64 << at);
                is_in_time_below(problem, cpu, with, *at, level, factor)
            };
            let place = open.iter().position(fits)?;
            lowest_first.push(open.remove(place));
        }
    }
    lowest_first.reverse();
    Some(lowest_first)
}

/// Whether an item is in time below all others of a set and what else is above it, whatever their
/// order: those that suspend themselves interfere as if each were done by its deadline.
fn is_in_time_below(problem: &Problem, cpu: u32, set: u64, at: usize, level: i64, factor: u64) -> bool {
    let above = problem.placed(cpu, set & !(1 << at), |_| 0);
    let own = problem
        .placed(cpu, 1 << at, |_| 0)
        .into_iter()
        .find(|one| one.key[0] == level && one.limit_ns.is_some());
    let Some(own) = own else { return true };
    let mut tasks: Vec<Task> = above
        .iter()
        .filter(|one| one.key[0] <= level)
        .map(|one| {
            let task = scaled(&one.task.task, factor);
            let by_deadline_ns = task.deadline_ns.saturating_sub(task.cost_ns);
            let suspends = one.task.suspension_ns > 0;
            let jitter_ns = if suspends { task.jitter_ns.max(by_deadline_ns) } else { task.jitter_ns };
            Task { jitter_ns, ..task }
        })
        .collect();
    let task = scaled(&own.task.task, factor);
    let blocking_ns = task.blocking_ns.saturating_add(own.task.suspension_ns);
    tasks.push(Task { blocking_ns, ..task });
    let last = tasks.len() - 1;
    let Ok(set) = TaskSet::new(tasks) else { return false };
    let response = response_times(&set, Limits::default()).response_times[last];
    response.zip(own.limit_ns).is_some_and(|(response_ns, limit_ns)| response_ns <= limit_ns)
}

/// Neighbours exchanged while that helps, where the order found need not be the best.
fn improved(problem: &Problem, cpu: u32, set: u64, best: Best) -> Best {
    if !members(set).any(|at| problem.items[at].thread.suspension.total_ns > 0) || best.factor == MOST {
        return best;
    }
    let mut order = best.order.clone().unwrap_or_else(|| {
        let mut order: Vec<usize> = members(set).collect();
        order.sort_by_key(|at| (problem.items[*at].prio, *at));
        order
    });
    let (mut best, mut tried, mut changed) = (best, 0, true);
    while changed && tried < MOST_ORDERS {
        changed = false;
        for at in 1..order.len() {
            if problem.items[order[at - 1]].level != problem.items[order[at]].level {
                continue;
            }
            order.swap(at - 1, at);
            tried += 1;
            let factor = factor_of(&ordered(problem, cpu, set, &order));
            if factor > best.factor {
                (best, changed) = (Best { factor, order: Some(order.clone()) }, true);
            } else {
                order.swap(at - 1, at);
            }
        }
    }
    best
}

/// Priorities in this order, level by level: those that the threads have, as far as they are
/// enough.
fn priorities(problem: &Problem, order: &[usize]) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut levels: Vec<i64> = order.iter().map(|at| problem.items[*at].level).collect();
    levels.dedup();
    for level in levels.into_iter().filter(|level| level % 2 == 0) {
        let here: Vec<usize> = order.iter().copied().filter(|at| problem.items[*at].level == level).collect();
        let mut numbers: Vec<i32> = here.iter().map(|at| problem.items[*at].prio).collect();
        numbers.sort_unstable();
        let (first, last) = room(problem.borders.iter().copied(), numbers[0]);
        for at in 1..numbers.len() {
            numbers[at] = numbers[at].max(numbers[at - 1] + 1);
        }
        let mut limit = last;
        for number in numbers.iter_mut().rev() {
            *number = (*number).min(limit).max(first);
            limit = *number - 1;
        }
        for (at, number) in here.iter().zip(numbers) {
            let item = &problem.items[*at];
            if item.prio != number {
                let priority = Value::Priority((99 - number) as i16);
                changes.push(Change { thread: name_for(problem.model, item.thread), value: priority });
            }
        }
    }
    changes
}

#[cfg(test)]
#[path = "optimise_tests.rs"]
mod tests;
