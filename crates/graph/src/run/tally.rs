//! The statistics of an edge while its messages arrive.

use super::plan::Plan;
use crate::results::events::{self, Event};
use crate::results::honest::{Arrival, Arrivals};
use crate::results::tracker::{Bounds, Limits, Tracker};
use crate::topology::edges::EdgeKind;

/// One edge.
pub(super) struct EdgeTally {
    caller: String,
    limits: Limits,
    round_trip: bool,
    /// By the formulas of ros2-performance.
    pub(super) tracker: Tracker,
    /// Honest ones.
    pub(super) arrivals: Arrivals,
}

impl EdgeTally {
    /// The edge at a position. One without a period has absolute bounds only.
    pub(super) fn new(plan: &Plan, at: usize, bounds: Bounds) -> Self {
        let edge = &plan.edges[at];
        Self {
            caller: format!("{}->{}", edge.topic, plan.graph.nodes[edge.to.node].full_name()),
            limits: bounds.of(plan.periods_ns[at].unwrap_or(u64::from(u32::MAX) * 1_000)),
            round_trip: edge.kind == EdgeKind::Response,
            tracker: Tracker::default(),
            arrivals: Arrivals::default(),
        }
    }

    /// Counts a message and reports its events; returns how many messages of the edge are missing
    /// just before it.
    pub(super) fn add(&mut self, arrival: &Arrival, start_ns: i64, mut report: impl FnMut(Event)) -> u64 {
        // A client's latency is that of the round trip; what a response inherits is the release of
        // its request.
        let since_ns = if self.round_trip { arrival.release_ns } else { arrival.sent_ns };
        let found = self.tracker.scan(self.limits, arrival.number, since_ns, arrival.received_ns);
        let latency_us = ((arrival.received_ns - since_ns) / 1_000) as u64;
        let at_ns = arrival.received_ns - start_ns;
        if self.limits.tracking {
            events::of_message(at_ns, &self.caller, arrival.number, latency_us, self.limits, found)
                .into_iter()
                .for_each(&mut report);
        }
        self.arrivals.add(*arrival);
        found.1.max(0) as u64
    }
}
