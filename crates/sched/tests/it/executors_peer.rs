//! Executors of ROS 2 against the analyses of `response-time-analysis`, by the authors of both
//! papers: the same bounds on drawn systems, callback by callback and chain by chain. The fixpoint
//! between callbacks, which the peer leaves to its users, is written here once more, on the peer's
//! curves.

use crate::common::adversary::executor_sets::{Drawn, draw};
use crate::common::numbers::Numbers;
use response_time_analysis::arrival::{self, ArrivalBound};
use response_time_analysis::demand::{Aggregate, RBF};
use response_time_analysis::fixed_point::SearchResult;
use response_time_analysis::ros2::rr::CallbackType;
use response_time_analysis::ros2::{self, bw, rr};
use response_time_analysis::supply::{Dedicated, Periodic, SupplyBound};
use response_time_analysis::time::{Duration, Service};
use response_time_analysis::wcet::{self, JobCostModel};
use sched::Limits;
use sched::executor::{
    Callback, CallbackKind, ExecutorAnalysis, ExecutorSystem, ReadyOrder, bound_executors,
};
use std::rc::Rc;

/// The peer looks no further, ns.
const LIMIT: u64 = 6_000;
/// An interval for which a curve is asked only when polling points are counted.
const POINTS: u64 = 1 << 40;

/// A curve of the peer as several ways; and the polling points of its callback.
struct Curve {
    ways: Vec<(Rc<dyn ArrivalBound>, u64)>,
    later: Vec<Box<dyn ArrivalBound>>,
    points: usize,
}

impl Curve {
    fn of(ways: &[(Rc<dyn ArrivalBound>, u64)]) -> Self {
        let later = |(source, jitter): &(Rc<dyn ArrivalBound>, u64)| {
            source.clone_with_jitter(Duration::from(*jitter))
        };
        Self { ways: ways.to_vec(), later: ways.iter().map(later).collect(), points: 0 }
    }

    /// The ways after a response.
    fn after(&self, later: u64) -> Vec<(Rc<dyn ArrivalBound>, u64)> {
        self.ways.iter().map(|(source, jitter)| (source.clone(), jitter + later)).collect()
    }
}

impl ArrivalBound for Curve {
    fn number_arrivals(&self, delta: Duration) -> usize {
        if delta == Duration::from(POINTS) { self.points } else { self.later.number_arrivals(delta) }
    }

    fn steps_iter<'a>(&'a self) -> Box<dyn Iterator<Item = Duration> + 'a> {
        self.later.steps_iter()
    }

    fn clone_with_jitter(&self, jitter: Duration) -> Box<dyn ArrivalBound> {
        self.later.clone_with_jitter(jitter)
    }
}

fn source(one: &Callback) -> Option<(Rc<dyn ArrivalBound>, u64)> {
    let external = one.external.as_ref()?;
    let far: Vec<Duration> = external.intervals_ns.iter().map(|&ns| Duration::from(ns)).collect();
    let curve: Rc<dyn ArrivalBound> = if far.is_empty() {
        Rc::new(arrival::Sporadic::new_zero_jitter(Duration::from(external.period_ns)))
    } else {
        Rc::new(arrival::ExtrapolatingCurve::new(arrival::Curve::new(far)))
    };
    Some((curve, external.jitter_ns))
}

fn cost(one: &Callback) -> Rc<dyn JobCostModel> {
    if one.costs_ns.is_empty() {
        return Rc::new(wcet::Scalar::new(Service::from(one.cost_ns)));
    }
    let costs = one.costs_ns.iter().map(|&ns| Service::from(ns)).collect();
    Rc::new(wcet::ExtrapolatingCurve::new(wcet::Curve::new(costs)))
}

/// What the peer is asked with.
struct Peer<'a> {
    system: &'a ExecutorSystem,
    analysis: ExecutorAnalysis,
    costs: Vec<Rc<dyn JobCostModel>>,
    /// In any interval, and in one that begins with a busy window.
    curves: Vec<Curve>,
    in_busy_window: Vec<Curve>,
    responses: Vec<u64>,
}

impl<'a> Peer<'a> {
    fn of(system: &'a ExecutorSystem, analysis: ExecutorAnalysis) -> Self {
        let costs = system.callbacks.iter().map(cost).collect();
        let responses = vec![0; system.callbacks.len()];
        Self { system, analysis, costs, curves: Vec::new(), in_busy_window: Vec::new(), responses }
    }

    fn propagate(&mut self) {
        (self.curves, self.in_busy_window) = (Vec::new(), Vec::new());
        for one in &self.system.callbacks {
            let mut ways: Vec<_> = source(one).into_iter().collect();
            let mut in_busy_window = ways.clone();
            for &before in &one.after {
                let later = self.curves[before].after(self.responses[before] + one.delay_ns);
                let here = self.system.callbacks[before].executor == one.executor && one.delay_ns == 0;
                in_busy_window.extend(if here {
                    self.in_busy_window[before].after(0)
                } else {
                    later.clone()
                });
                ways.extend(later);
            }
            self.curves.push(Curve::of(&ways));
            self.in_busy_window.push(Curve::of(&in_busy_window));
        }
        for (at, response) in self.responses.iter().enumerate() {
            let points = self.curves[at].number_arrivals(Duration::from(*response));
            self.in_busy_window[at].points = points;
        }
    }

    /// As the peer knows kinds; everything but timers is sampled at polling points, and these are
    /// up to Dashing.
    fn kind(&self, at: usize) -> CallbackType {
        let one = &self.system.callbacks[at];
        match self.system.order {
            ReadyOrder::TimersFirst if one.kind == CallbackKind::Timer => CallbackType::Timer,
            ReadyOrder::Any => CallbackType::PolledUnknownPrio,
            _ => CallbackType::Polled(one.kind as i32 * 1_000 + at as i32),
        }
    }

    fn least(&self, chain: &[usize]) -> Option<u64> {
        let end = *chain.last()?;
        let supply: Box<dyn SupplyBound> = match self.system.executors[self.system.callbacks[end].executor] {
            None => Box::new(Dedicated::new()),
            Some(supply) => Box::new(Periodic::new(supply.budget_ns.into(), supply.period_ns.into())),
        };
        let here = |at: &usize| self.system.callbacks[*at].executor == self.system.callbacks[end].executor;
        let workload: Vec<usize> = (0..self.costs.len()).filter(here).collect();
        let places: Vec<usize> = chain.iter().filter_map(|at| workload.binary_search(at).ok()).collect();
        let limit = Duration::from(LIMIT);
        let mut all: Vec<SearchResult> = Vec::new();
        let wants = |one| self.analysis == ExecutorAnalysis::Best || self.analysis == one;
        if wants(ExecutorAnalysis::RoundRobin) {
            let loads: Vec<_> = workload
                .iter()
                .map(|&at| {
                    let response = Duration::from(self.responses[at]);
                    rr::Callback::new(response, &self.curves[at], &self.costs[at], self.kind(at))
                })
                .collect();
            let chain: Vec<_> = places.iter().map(|&place| &loads[place]).collect();
            all.push(rr::rta_subchain(&supply, &loads, &chain, limit));
        }
        if wants(ExecutorAnalysis::BusyWindow) {
            let loads: Vec<_> = workload
                .iter()
                .map(|&at| {
                    let response = Duration::from(POINTS);
                    bw::Callback::new(response, &self.in_busy_window[at], &self.costs[at], self.kind(at))
                })
                .collect();
            let chain: Vec<_> = places.iter().map(|&place| &loads[place]).collect();
            all.push(bw::rta_subchain(&supply, &loads, &chain, limit));
        }
        let one = |at: &usize| &self.system.callbacks[*at];
        let alone = chain[1..].iter().map(one).all(|one| one.after.len() == 1 && one.external.is_none());
        if wants(ExecutorAnalysis::AllArrivals) && alone {
            all.push(self.all_arrivals(&*supply, &workload, chain));
        }
        all.into_iter().filter_map(Result::ok).min().map(u64::from)
    }

    fn all_arrivals(&self, supply: &dyn SupplyBound, workload: &[usize], chain: &[usize]) -> SearchResult {
        let (first, end) = (chain[0], chain[chain.len() - 1]);
        let limit = Duration::from(LIMIT);
        let load = |arrivals: usize, at: usize| RBF::new(&self.in_busy_window[arrivals], &self.costs[at]);
        let own = load(first, end);
        let others = workload.iter().filter(|at| !chain.contains(at));
        let timer = self.kind(end) == CallbackType::Timer;
        if timer && chain.len() == 1 {
            let (before, rest): (Vec<usize>, Vec<usize>) =
                others.partition(|at| self.kind(**at) == CallbackType::Timer && **at < end);
            let before = Aggregate::new(before.into_iter().map(|at| load(at, at)).collect());
            let blocking = rest.into_iter().map(|at| self.costs[at].cost_of_jobs(1)).max();
            return ros2::rta_timer(supply, &own, &before, blocking.unwrap_or(Service::none()), limit);
        }
        let others = Aggregate::new(others.map(|&at| load(at, at)).collect());
        if chain.len() == 1 {
            return ros2::rta_polling_point_callback(supply, &own, &others, limit);
        }
        let prefix = Aggregate::new(chain[..chain.len() - 1].iter().map(|&at| load(first, at)).collect());
        let full = Aggregate::new(chain.iter().map(|&at| load(first, at)).collect());
        ros2::rta_processing_chain(supply, &own, &prefix, &full, &others, limit)
    }

    /// The least fixpoint of all responses; none where the peer stops.
    fn settle(&mut self) -> Option<()> {
        loop {
            self.propagate();
            let next: Vec<u64> = (0..self.costs.len()).map(|at| self.least(&[at])).collect::<Option<_>>()?;
            if next == self.responses {
                return Some(());
            }
            self.responses = next;
            if self.responses.iter().any(|response| *response > LIMIT / 4) {
                return None;
            }
        }
    }

    fn chain(&self, chain: &[usize]) -> u64 {
        let mut total = 0;
        let mut from = 0;
        for at in 0..chain.len() {
            let one = |at: usize| &self.system.callbacks[chain[at]];
            let next = (at + 1 < chain.len()).then(|| one(at + 1));
            if next.is_some_and(|next| next.executor == one(at).executor && next.delay_ns == 0) {
                continue;
            }
            let piece = &chain[from..=at];
            let sum: u64 = piece.iter().map(|&at| self.responses[at]).sum();
            let whole = if piece.len() > 1 { self.least(piece) } else { None };
            total += whole.map_or(sum, |whole| whole.min(sum)) + next.map_or(0, |next| next.delay_ns);
            from = at + 1;
        }
        total
    }
}

const SETS: usize = 13_000;

#[test]
fn bounds_have_the_values_of_the_peer() {
    let mut numbers = Numbers(20_211_207);
    let (mut systems, mut callbacks, mut chains, mut beyond) = (0, 0, 0, 0);
    for set in 0..SETS {
        let (order, analysis) = (ReadyOrder::ALL[set % 3], ExecutorAnalysis::ALL[set / 3 % 4]);
        let system = draw(Drawn { order, load: (10, 80), delay: 20, unit: 1 }, &mut numbers);
        // Both take long where a busy window is long; their limit is for that, ours for the work.
        let found = bound_executors(&system, analysis, Limits { rounds_per_task: 4_000 });
        let mut peer = Peer::of(&system, analysis);
        if !found.undecided.is_empty() || peer.settle().is_none() {
            beyond += 1;
            continue;
        }
        let theirs: Vec<Option<u64>> = peer.responses.iter().copied().map(Some).collect();
        assert_eq!(found.responses_ns, theirs, "set {set}, {analysis:?}: {system:?}");
        let theirs: Vec<Option<u64>> =
            system.chains.iter().map(|chain| Some(peer.chain(&chain.callbacks))).collect();
        assert_eq!(found.chains_ns, theirs, "set {set}, {analysis:?}: {system:?}");
        systems += 1;
        callbacks += found.responses_ns.len();
        chains += system.chains.iter().filter(|chain| chain.callbacks.len() > 1).count();
    }
    println!("{systems} systems, {callbacks} callbacks, {chains} chains equal; {beyond} beyond the limit");
    assert!(systems > 10_000 && chains > 5_000 && beyond > 0, "{systems} {chains} {beyond}");
}
