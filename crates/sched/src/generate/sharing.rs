//! Requests for shared resources, drawn task by task: the model of Brandenburg's thesis (2011, ch.
//! 5.4): a task accesses a resource with a probability; then a number of requests a job, with
//! critical sections of bounded length.

use super::stream::Stream;
use crate::system::{Access, Request};

/// Most resources of a system; they are numbered from 0.
pub const MAX_RESOURCES: u32 = 10_000;

/// How requests are drawn.
#[derive(Debug, Clone, PartialEq)]
pub struct Sharing {
    /// Number of resources.
    pub resources: u32,
    /// Probability that a task requests a resource, for each by itself.
    pub probability: f64,
    /// Most requests of one job for one resource; 1 to this are equally likely.
    pub requests: u64,
    /// Shortest and longest critical section, ns; equally likely in between. Cut at the cost of the
    /// task.
    pub length_ns: [u64; 2],
    /// Share of tasks that only read.
    pub readers: f64,
}

impl Sharing {
    /// What is wrong, if anything: the field, found, expected.
    pub(super) fn wrong(&self) -> Option<(&'static str, String, &'static str)> {
        let [low, high] = self.length_ns;
        let share = |value: f64| (0.0..=1.0).contains(&value);
        if !share(self.probability) {
            Some(("access", self.probability.to_string(), "0 to 1"))
        } else if !share(self.readers) {
            Some(("readers", self.readers.to_string(), "0 to 1"))
        } else if self.requests == 0 || self.requests > 1_000_000 {
            Some(("requests", self.requests.to_string(), "1 to 1000000"))
        } else if low == 0 || high < low || high > super::MAX_PERIOD_NS {
            Some(("section", format!("{low} to {high} ns"), "1 ns to 2^50 ns, the shortest first"))
        } else if self.resources > MAX_RESOURCES {
            Some(("resources", self.resources.to_string(), "at most 10000"))
        } else {
            None
        }
    }

    /// The requests of a task of this cost.
    pub(super) fn draw(&self, cost_ns: u64, stream: &mut Stream) -> Vec<Request> {
        let access = if stream.happens(self.readers) { Access::Read } else { Access::Write };
        let mut drawn = Vec::new();
        for resource in 0..self.resources {
            // Drawn in any case, so that the probability of one resource does not change the
            // others.
            let accessed = stream.happens(self.probability);
            let count = stream.between(1, self.requests);
            let length = stream.between(self.length_ns[0], self.length_ns[1]);
            if accessed {
                drawn.push(Request { resource, count, length_ns: length.min(cost_ns), access });
            }
        }
        drawn
    }
}
