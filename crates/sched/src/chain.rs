//! A chain of tasks: data flows through them, one after another.

/// How data gets from one task of a chain to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edge {
    /// The next job reads the last value that is there; it is released by time alone.
    Time,
    /// The end of each job releases one of the next task.
    Event,
}

/// Tasks in the order in which data passes them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Chain {
    /// Their places in the question, each once, at least one.
    pub tasks: Vec<usize>,
    /// From each to the next.
    pub edges: Vec<Edge>,
    /// The longest acceptable reaction, ns.
    pub reaction_ns: Option<u64>,
    /// The largest acceptable age of data, ns.
    pub age_ns: Option<u64>,
}
