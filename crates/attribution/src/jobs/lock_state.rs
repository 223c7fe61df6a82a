//! What a thread does with locks at a moment: it asks, holds, releases, sleeps.

/// A call that has not returned.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub(super) lock: usize,
    pub(super) for_condition: bool,
    /// What it had executed when it ran again with the lock.
    pub(super) resumed_ns: Option<u64>,
}

/// A lock that a thread holds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hold {
    pub(super) lock: usize,
    pub(super) depth: u32,
    /// What the thread had executed; `None` where that is not known.
    pub(super) from_ns: Option<u64>,
    /// The same when it released it, and what of the release is still to come.
    pub(super) to_ns: Option<u64>,
    pub(super) releasing: Releasing,
    /// Switches missing before it.
    pub(super) missing: u64,
    pub(super) slept_since: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Releasing {
    No,
    /// The function has been called.
    Called,
    /// It has called the kernel.
    InKernel,
    /// Which has woken a thread.
    Woke,
}

/// A sleep until a lock is free.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sleep {
    pub(super) since_ns: i64,
    pub(super) cpu: u32,
    pub(super) lock: usize,
    pub(super) blocked_ns: u64,
}
