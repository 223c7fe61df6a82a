//! What a report says first: one sentence, at most three numbers, the next command. Made once,
//! here; terminal and page show the same.
//!
//! A kind of measurement is one file and one row of [`KINDS`]. A number that the run cannot give
//! says what it would need; a card never shows a dash.

mod breach;
mod clocks;
pub(crate) mod exposure;
mod graph;
pub(crate) mod groups;
mod ipi;
mod latency;
mod overheads;
mod periodic;
pub(crate) mod study;
mod taskset;
mod watch;

use crate::{Document, Known, format};

/// The opening of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Opening {
    /// What came out, in one sentence that ends with a full stop.
    pub sentence: String,
    /// Its cause where the run has a worst event: in words, and how that is known.
    pub cause: Option<Cause>,
    /// At most three.
    pub cards: Vec<Card>,
}

/// What delayed the worst event.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// A sentence without its end.
    pub words: String,
    /// How it is known.
    pub known: Known,
    /// Best command against it; none against what is not shown.
    pub against: Option<String>,
}

/// One number.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// What it is: `Observed maximum`.
    pub what: String,
    /// With its unit; or what it would need.
    pub value: Value,
    /// n, interval, where: what the number needs beside it.
    pub note: String,
    /// The same by phase, in their order; empty where there is one phase.
    pub phases: Vec<PhaseValue>,
}

/// The number of a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// With its unit.
    Known(String),
    /// Why there is none: `needs 10,000 samples`.
    Needs(String),
}

/// A number of one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseValue {
    /// The phase.
    pub phase: String,
    /// With its unit; `None` where it is not known.
    pub value: Option<String>,
}

impl Card {
    pub(crate) fn of_one(what: impl Into<String>, value: impl Into<String>, note: impl Into<String>) -> Self {
        Self { what: what.into(), value: Value::Known(value.into()), note: note.into(), phases: Vec::new() }
    }

    /// A count of what was missed or lost: not known of a run that was cut off before it had
    /// counted.
    fn of_losses(document: &Document, what: &str, count: u64, note: String) -> Self {
        if document.run.has_ended() {
            return Self::of_one(what, format::count(count), note);
        }
        Self::needing(what, "not known: the run was cut off")
    }

    fn needing(what: impl Into<String>, needs: impl Into<String>) -> Self {
        Self { what: what.into(), value: Value::Needs(needs.into()), note: String::new(), phases: Vec::new() }
    }
}

/// A kind of measurement; `None` where the run is none of it.
type Kind = fn(&Document) -> Option<Opening>;

/// The first that applies is the run's. Wake-ups and noise are in many runs, so they come last.
const KINDS: [Kind; 9] = [
    breach::opening,
    taskset::opening,
    periodic::opening,
    graph::opening,
    ipi::opening,
    overheads::opening,
    clocks::opening,
    watch::opening,
    latency::opening,
];

/// What the report of a run says first.
pub fn opening(document: &Document) -> Opening {
    let found = KINDS.iter().find_map(|kind| kind(document));
    found.unwrap_or_else(|| Opening {
        sentence: "No sample was measured.".to_owned(),
        cause: None,
        cards: Vec::new(),
    })
}

#[cfg(test)]
mod tests;
