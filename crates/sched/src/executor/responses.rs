//! Responses that rest on each other: on how often callbacks are activated, which rests on when the
//! callbacks end that activate them, and on how many polling points come in a response.
//!
//! They grow from nothing to their least fixpoint, at which all of them hold: the first instance
//! to take longer than its bound would contradict the analysis of the time before it. A response
//! without a bound counts as any length, also where it activates others.

use super::arrivals::{Arrivals, Sources};
use super::core::{Core, Load};
use super::{ExecutorAnalysis, ExecutorSystem, all_arrivals, busy_window, round_robin};
use crate::bounds::{Costs, Releases};
use crate::flow::{MARGIN, Rounds, Unanswered};
use crate::supply::Supply;
use crate::task::MAX_NS;
use crate::window::{Limits, Work};

/// Passes over all responses until they are given up.
const MOST_PASSES: usize = 10_000;

/// An executor between two passes.
struct Executor {
    supply: Option<Supply>,
    loads: Vec<Load>,
    overloaded: bool,
}

/// What is known so far.
pub(super) struct Responses<'a> {
    pub(super) system: &'a ExecutorSystem,
    analysis: ExecutorAnalysis,
    limits: Limits,
    /// What all callbacks together may cost.
    work: Work,
    sources: Sources,
    executors: Vec<Executor>,
    /// For each callback its executor and its place there.
    places: Vec<(usize, usize)>,
    /// In an order in which callbacks come after those that activate them.
    order: Vec<usize>,
    /// Evaluations spent on each callback.
    spent: Vec<u64>,
    given_up: Vec<bool>,
}

impl<'a> Responses<'a> {
    pub(super) fn of(system: &'a ExecutorSystem, analysis: ExecutorAnalysis, limits: Limits) -> Self {
        let sources = system.callbacks.iter().map(|one| {
            let external = one.external.as_ref()?;
            Some(Releases::of(external.period_ns, &external.intervals_ns))
        });
        let mut executors: Vec<Executor> = system
            .executors
            .iter()
            .map(|&supply| Executor { supply, loads: Vec::new(), overloaded: false })
            .collect();
        let mut places = Vec::new();
        for one in &system.callbacks {
            let loads = &mut executors[one.executor].loads;
            places.push((one.executor, loads.len()));
            loads.push(Load {
                kind: one.kind,
                costs: Costs::of(one.cost_ns, &one.costs_ns),
                arrivals: None,
                in_busy_window: None,
                response_ns: Some(0),
            });
        }
        let count = system.callbacks.len();
        let mut known = Self {
            system,
            analysis,
            limits,
            work: Work::of(limits),
            sources: Sources(sources.collect()),
            executors,
            places,
            order: in_order(system),
            spent: vec![0; count],
            given_up: vec![false; count],
        };
        known.propagate();
        known.find_overloads();
        known
    }

    fn load(&self, callback: usize) -> &Load {
        let (executor, at) = self.places[callback];
        &self.executors[executor].loads[at]
    }

    fn find_overloads(&mut self) {
        for executor in &mut self.executors {
            let rate = |load: &Load| {
                let arrivals = load.arrivals.as_ref().map_or(f64::INFINITY, |one| one.rate(&self.sources));
                arrivals * load.costs.mean()
            };
            let asked: f64 = executor.loads.iter().map(rate).sum();
            executor.overloaded = asked > executor.supply.map_or(1.0, Supply::share) * (1.0 + MARGIN);
        }
    }

    /// Activations of every callback, from those of its sources and the responses so far.
    ///
    /// Within a busy window of its executor a callback is activated by instances that were
    /// activated there, if what activates it is executed there, too, and waits for nothing else on
    /// the way (RTSS 2021, definition 4).
    fn propagate(&mut self) {
        for &callback in &self.order {
            let one = &self.system.callbacks[callback];
            let external = one.external.as_ref();
            let external = external.map(|external| Arrivals::from_source(callback, external.jitter_ns));
            let mut arrivals = Some(external.unwrap_or_default());
            let mut in_busy_window = arrivals.clone();
            for &before in &one.after {
                let load = self.load(before);
                let later = load.response_ns.map(|response| response.saturating_add(one.delay_ns));
                let from = load.arrivals.as_ref().zip(later);
                let here = self.system.callbacks[before].executor == one.executor && one.delay_ns == 0;
                let from_here = if here { load.in_busy_window.as_ref().zip(Some(0)) } else { from };
                for (sum, from) in [(&mut arrivals, from), (&mut in_busy_window, from_here)] {
                    *sum = sum.take().zip(from).map(|(mut sum, (from, later_ns))| {
                        sum.add(from, later_ns);
                        sum
                    });
                }
            }
            let (executor, at) = self.places[callback];
            let load = &mut self.executors[executor].loads[at];
            (load.arrivals, load.in_busy_window) = (arrivals, in_busy_window);
        }
    }

    /// Grows all responses to their fixpoint.
    pub(super) fn settle(&mut self) {
        for _ in 0..MOST_PASSES {
            self.propagate();
            let found: Vec<Option<u64>> =
                (0..self.places.len()).map(|callback| self.next_response(callback)).collect();
            let mut changed = false;
            for (&(executor, at), found) in self.places.iter().zip(found) {
                let known = &mut self.executors[executor].loads[at].response_ns;
                changed |= *known != found;
                *known = found;
            }
            if !changed {
                return;
            }
        }
        for (&(executor, at), given_up) in self.places.iter().zip(&mut self.given_up) {
            self.executors[executor].loads[at].response_ns = None;
            *given_up = true;
        }
        self.propagate();
    }

    /// The response of a callback, if those of all are as long as known so far.
    fn next_response(&mut self, callback: usize) -> Option<u64> {
        self.load(callback).response_ns?;
        let (executor, at) = self.places[callback];
        let mut rounds = self.rounds(executor, self.spent[callback]);
        let found = self.least(executor, &[at], true, &mut rounds);
        self.spent[callback] = rounds.used;
        self.given_up[callback] |= found == Err(Unanswered::Undecided);
        found.ok()
    }

    /// The bound of a whole chain of callbacks, all in one executor; `alone` says whether each but
    /// the first is activated by the one before it only.
    pub(super) fn whole(&mut self, chain: &[usize], alone: bool) -> Option<u64> {
        let executor = self.places[*chain.first()?].0;
        let chain: Vec<usize> = chain.iter().map(|&callback| self.places[callback].1).collect();
        let mut rounds = self.rounds(executor, 0);
        self.least(executor, &chain, alone, &mut rounds).ok()
    }

    /// What is left after so many evaluations.
    fn rounds(&self, executor: usize, used: u64) -> Rounds {
        let left = self.work.rounds_left(self.executors[executor].loads.len());
        Rounds { used, cap: self.limits.rounds_per_task.min(used.saturating_add(left)) }
    }

    /// The least bound of a chain within one executor, by the places there of its callbacks.
    fn least(
        &mut self,
        executor: usize,
        chain: &[usize],
        alone: bool,
        rounds: &mut Rounds,
    ) -> Result<u64, Unanswered> {
        type Analysis = fn(&mut Core<'_>, &[usize]) -> Result<u64, Unanswered>;
        let all: [(ExecutorAnalysis, Analysis, bool); 3] = [
            (ExecutorAnalysis::RoundRobin, round_robin::response, true),
            (ExecutorAnalysis::BusyWindow, busy_window::response, true),
            (ExecutorAnalysis::AllArrivals, all_arrivals::response, alone),
        ];
        let before = rounds.used;
        let executor = &mut self.executors[executor];
        let looks = executor.loads.len();
        let mut core = Core {
            supply: executor.supply,
            order: self.system.order,
            loads: &mut executor.loads,
            sources: &mut self.sources,
            overloaded: executor.overloaded,
            rounds,
        };
        let mut least = Err(Unanswered::Late);
        for (name, analysis, fits) in all {
            if !fits || !self.analysis.has(name) {
                continue;
            }
            let found = analysis(&mut core, chain)
                .and_then(|found| if found > MAX_NS { Err(Unanswered::Late) } else { Ok(found) });
            least = match (least, found) {
                (Ok(one), Ok(other)) => Ok(one.min(other)),
                (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
                (Err(one), Err(other)) => Err(if matches!(one, Unanswered::Late) { other } else { one }),
            };
        }
        self.work.spend(rounds.used - before, looks);
        least
    }

    pub(super) fn response_ns(&self, callback: usize) -> Option<u64> {
        self.load(callback).response_ns
    }

    pub(super) fn responses_ns(&self) -> Vec<Option<u64>> {
        (0..self.places.len()).map(|callback| self.response_ns(callback)).collect()
    }

    pub(super) fn undecided(&self) -> Vec<usize> {
        (0..self.given_up.len()).filter(|&callback| self.given_up[callback]).collect()
    }
}

/// All callbacks, each after those that activate it.
fn in_order(system: &ExecutorSystem) -> Vec<usize> {
    let mut waits: Vec<usize> = system.callbacks.iter().map(|one| one.after.len()).collect();
    let mut followers = vec![Vec::new(); waits.len()];
    for (callback, one) in system.callbacks.iter().enumerate() {
        for &before in &one.after {
            followers[before].push(callback);
        }
    }
    let mut order: Vec<usize> = (0..waits.len()).filter(|&callback| waits[callback] == 0).collect();
    let mut next = 0;
    while let Some(&callback) = order.get(next) {
        for &follower in &followers[callback] {
            waits[follower] -= 1;
            if waits[follower] == 0 {
                order.push(follower);
            }
        }
        next += 1;
    }
    order
}
