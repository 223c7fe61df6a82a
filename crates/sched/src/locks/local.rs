//! How a resource is held that one core alone uses.
//!
//! A spin lock is held without preemption, whoever else uses it: on its own core its holder delays
//! every task of higher priority once. A ceiling delays only those at or below it, and is another
//! protocol (Baker, "Stack-based scheduling of realtime processes", Real-Time Systems 3, 1991;
//! `PTHREAD_PRIO_PROTECT`). It applies where requested, and under the MSRP, which contains it.

use super::Protocol;

/// How a resource that one core alone uses is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LocalLocks {
    /// As any other: a spin lock without preemption, one whose waiters suspend as its protocol has
    /// it.
    NonPreemptable,
    /// At the highest priority among its users.
    Ceiling,
}

/// A protocol, and how resources are held that stay on one core.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Locks {
    protocol: Protocol,
    local: LocalLocks,
}

impl Locks {
    /// The protocol as it is: local resources like all others, except under the MSRP, MPCP and DPCP,
    /// which have ceilings.
    pub const fn of(protocol: Protocol) -> Self {
        let local = if protocol.has_ceilings() { LocalLocks::Ceiling } else { LocalLocks::NonPreemptable };
        Self { protocol, local }
    }

    /// The protocol between cores, ceilings on each core; none where its bound knows no ceilings.
    pub const fn with_ceilings(protocol: Protocol) -> Option<Self> {
        if protocol.takes_ceilings() { Some(Self { protocol, local: LocalLocks::Ceiling }) } else { None }
    }

    /// Where ceilings can be assumed.
    pub const TAKE_CEILINGS: &'static str =
        "fifo-np, fifo-p, priority, priority-fifo, unordered (each also -p), baseline, an MSRP, mpcp or dpcp";

    /// How requests of several cores are served.
    pub const fn protocol(self) -> Protocol {
        self.protocol
    }

    /// How a resource of one core is held.
    pub const fn local(self) -> LocalLocks {
        self.local
    }

    /// Whether ceilings are assumed beside the protocol.
    pub const fn adds_ceilings(self) -> bool {
        matches!(self.local, LocalLocks::Ceiling) && !self.protocol.has_ceilings()
    }
}

impl From<Protocol> for Locks {
    fn from(protocol: Protocol) -> Self {
        Self::of(protocol)
    }
}

impl Protocol {
    /// Whether ceilings on each core belong to it.
    const fn has_ceilings(self) -> bool {
        matches!(self, Self::MsrpHolistic | Self::MsrpClassic | Self::MsrpLp | Self::Mpcp | Self::Dpcp)
    }

    /// Whether its bound can treat resources with a ceiling separately: the inflation of
    /// reader-writer locks charges the longest section below, of either kind. Priority inheritance,
    /// the FMLP+ and the OMLP serve all resources alike.
    const fn takes_ceilings(self) -> bool {
        !matches!(
            self,
            Self::PhaseFair
                | Self::PhaseFairOblivious
                | Self::TaskFair
                | Self::TaskFairMutex
                | Self::Pip
                | Self::FmlpPlus
                | Self::Omlp
                | Self::OmlpRw
        )
    }
}
