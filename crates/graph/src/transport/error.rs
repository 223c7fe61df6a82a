//! What can go wrong with a link, and what would help.

use super::spec::{Kind, MOST_DEPTH};
use std::io;

/// How long ends look for each other, s.
pub(super) const PATIENCE_S: i64 = 20;

/// A link that could not be made or used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The transport cannot carry such messages, here and for this user.
    #[error("link {link}: {kind} carries at most {most} bytes a message, not {bytes}; {remedy}")]
    TooLong {
        /// Which link.
        link: String,
        /// Its transport.
        kind: Kind,
        /// What was asked.
        bytes: usize,
        /// What is possible.
        most: usize,
        /// What would make more possible.
        remedy: String,
    },
    /// A depth that no link has.
    #[error("link {link}: a depth of {depth}; expected 1 to {MOST_DEPTH}")]
    Depth {
        /// Which link.
        link: String,
        /// What was asked.
        depth: usize,
    },
    /// The system refused.
    #[error("link {link}: cannot {action}: {source}")]
    Os {
        /// Which link.
        link: String,
        /// What was attempted.
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// Ends in two processes, where the transport has no way between them.
    #[error(
        "link {link}: {kind} joins threads of one process; between processes use shm-futex, or any other"
    )]
    OneProcess {
        /// Which link.
        link: String,
        /// Its transport.
        kind: Kind,
    },
    /// A receiver that its executor cannot wait for.
    #[error(
        "{kind} wakes by a descriptor, which an executor that never sleeps does not see; take shm-poll out of that executor"
    )]
    NotPolled {
        /// The transport.
        kind: Kind,
    },
    /// Ends that did not find each other.
    #[error(
        "link {link}: the other end was not found over {kind} within {PATIENCE_S} s; DDS finds it by multicast: is the loopback device up, and does no firewall stop it?"
    )]
    Alone {
        /// Which link.
        link: String,
        /// Its transport.
        kind: Kind,
    },
    /// An end without its descriptors.
    #[error("link {link}: descriptor {index} was taken before, or never given")]
    Missing {
        /// Which link.
        link: String,
        /// Which of the parcel.
        index: usize,
    },
    /// Bytes that no sender of ours made.
    #[error("link {link}: a message of {bytes} bytes is damaged: {what}")]
    Damaged {
        /// Which link.
        link: String,
        /// Its length.
        bytes: usize,
        /// What does not fit.
        what: &'static str,
    },
}
