//! What the kernel counts for a thread, and stretches of time. Runs of schema 1 hold each of these
//! as an array in the order of its fields, which serde reads as well.

use serde::{Deserialize, Serialize};
use std::ops::{Add, Sub};

/// Page faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Faults {
    /// Those without I/O.
    pub minor: u64,
    /// Those that waited for I/O.
    pub major: u64,
}

/// Context switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Switches {
    /// Those of a thread that slept or yielded.
    pub voluntary: u64,
    /// Those of a thread that was preempted.
    pub involuntary: u64,
}

/// Both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Page faults.
    pub faults: Faults,
    /// Context switches.
    pub switches: Switches,
}

impl Usage {
    fn each(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        let (minor, major) =
            (of(self.faults.minor, other.faults.minor), of(self.faults.major, other.faults.major));
        let (ours, theirs) = (self.switches, other.switches);
        let (voluntary, involuntary) =
            (of(ours.voluntary, theirs.voluntary), of(ours.involuntary, theirs.involuntary));
        Self { faults: Faults { minor, major }, switches: Switches { voluntary, involuntary } }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.each(other, u64::saturating_add)
    }
}

impl Sub for Usage {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        self.each(earlier, u64::saturating_sub)
    }
}

/// A stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stretch {
    /// CLOCK_MONOTONIC, ns: its start.
    pub t0_ns: i64,
    /// CLOCK_MONOTONIC, ns: its end.
    pub t1_ns: i64,
}

impl From<Stretch> for [i64; 2] {
    fn from(stretch: Stretch) -> Self {
        [stretch.t0_ns, stretch.t1_ns]
    }
}
