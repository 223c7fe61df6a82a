//! A task set, and what is asked of it.

use crate::analyze::{Refusal, Test};
use crate::equals::uncounted_equals;
use crate::partition::{Heuristic, place};
use crate::system::System;
use std::ops::Range;

/// The unit of the times of a question and of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// 1 ns.
    #[default]
    Ns,
    /// 1,000 ns.
    Us,
    /// 1,000,000 ns.
    Ms,
}

impl Unit {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Ns, Self::Us, Self::Ms];

    /// The unit of one name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// Its length, ns.
    pub const fn ns(self) -> u64 {
        match self {
            Self::Ns => 1,
            Self::Us => 1_000,
            Self::Ms => 1_000_000,
        }
    }

    /// A time in this unit, rounded up.
    pub const fn of(self, ns: u64) -> u64 {
        // One arm a unit: division by a constant is a multiplication.
        match self {
            Self::Ns => ns,
            Self::Us => ns.div_ceil(Self::Us.ns()),
            Self::Ms => ns.div_ceil(Self::Ms.ns()),
        }
    }

    /// As written in questions and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ns => "ns",
            Self::Us => "us",
            Self::Ms => "ms",
        }
    }
}

/// A question, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The unit of its times.
    pub unit: Unit,
    /// The system, in ns, in priority order.
    pub system: System,
    /// For each task of the system its place in the question.
    pub places: Vec<usize>,
    /// Whether any task names its core.
    pub placed: bool,
    /// The tasks of the system that have equal priorities, run by run; empty where all differ.
    pub equals: Vec<Range<usize>>,
}

impl Question {
    /// Refuses tasks of equal priority where they are not counted and `test` uses priorities.
    pub fn refuse_equals(&self, test: Test) -> Result<(), Refusal> {
        if self.equals.is_empty() || !test.is_by_priority() { Ok(()) } else { Err(uncounted_equals(test)) }
    }

    /// Assigns cores, and returns whether every task found one; a set that does not fit keeps those
    /// it has.
    ///
    /// # Errors
    ///
    /// Some task names its core: that is not overruled.
    pub fn place(&mut self, heuristic: Heuristic) -> Result<bool, Refusal> {
        if self.placed { Err(Refusal::Placed) } else { Ok(place(&mut self.system, heuristic)) }
    }

    /// Values by priority, in the order of the question.
    pub fn in_order<T: Clone>(&self, values: &[T]) -> Vec<T> {
        self.priorities().iter().filter_map(|&priority| values.get(priority).cloned()).collect()
    }

    /// For each task of the question its place in the system, which is its priority.
    pub fn priorities(&self) -> Vec<usize> {
        let mut priorities = vec![0; self.places.len()];
        for (priority, &place) in self.places.iter().enumerate() {
            priorities[place] = priority;
        }
        priorities
    }

    /// A time in the unit of the question. Times of a question are whole units, and so are sums of
    /// them.
    pub fn in_unit(&self, ns: u64) -> u64 {
        self.unit.of(ns)
    }
}
