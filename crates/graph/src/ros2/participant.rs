//! The participant that all publishers and subscribers of a process share, and what they ask of
//! each other.

use super::names::topic_on_wire;
use super::threads::Threads;
use super::{BadName, StampedVector};
use rustdds::policy::{Durability, History, Reliability};
use rustdds::{DomainParticipant, QosPolicies, QosPolicyBuilder, Topic, TopicKind};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The quality of service of a topic; settings not named are ROS 2's defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Qos {
    /// Whether what is lost on the way is sent again.
    pub reliable: bool,
    /// Messages that are kept, for late subscribers and until they are taken; all of them where
    /// this is none.
    pub keep_last: Option<u32>,
}

impl Default for Qos {
    /// ROS 2's default: reliable, the last ten.
    fn default() -> Self {
        Self { reliable: true, keep_last: Some(10) }
    }
}

impl Qos {
    pub(super) fn policies(self) -> QosPolicies {
        let max_blocking_time = rustdds::Duration::from_millis(100);
        let reliability =
            if self.reliable { Reliability::Reliable { max_blocking_time } } else { Reliability::BestEffort };
        let history = self.keep_last.map_or(History::KeepAll, |depth| History::KeepLast {
            depth: i32::try_from(depth).unwrap_or(i32::MAX),
        });
        let builder = QosPolicyBuilder::new().reliability(reliability).history(history);
        builder.durability(Durability::Volatile).build()
    }
}

/// What could not be done, in words of the middleware.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// A name that ROS 2 does not have.
    #[error(transparent)]
    Name(#[from] BadName),
    /// The middleware refused.
    #[error("cannot {action}: {reason}")]
    Middleware {
        /// What was attempted.
        action: &'static str,
        /// What it said.
        reason: String,
    },
    /// The middleware has given up.
    #[error(
        "RustDDS has ended its threads in this process, and sends and receives nothing any more; it may when a process was stopped and goes on (SIGSTOP, a debugger, a suspended machine): start the process again"
    )]
    Ended,
}

pub(super) fn failed<E: std::fmt::Debug>(action: &'static str) -> impl Fn(E) -> Error {
    move |error| Error::Middleware { action, reason: format!("{error:?}") }
}

/// Participants of this process by domain. Each has threads and sockets of its own, and finds every
/// other: one is enough.
static PARTICIPANTS: Mutex<BTreeMap<u16, Weak<Participant>>> = Mutex::new(BTreeMap::new());

/// What a process is in a domain.
pub(super) struct Participant {
    pub(super) dds: DomainParticipant,
    threads: Threads,
}

impl Participant {
    /// An error where the middleware is known to have ended.
    pub(super) fn check(&self) -> Result<(), Error> {
        if self.threads.ended() { Err(Error::Ended) } else { Ok(()) }
    }
}

/// This process's participant in a domain (ROS_DOMAIN_ID, 0 to 232). It leaves the domain when its
/// last user drops it.
pub(super) fn participant(domain: u16) -> Result<Arc<Participant>, Error> {
    let mut participants = PARTICIPANTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(there) = participants.get(&domain).and_then(Weak::upgrade) {
        return Ok(there);
    }
    let before = Threads::of_all();
    let dds = DomainParticipant::new(domain).map_err(failed("join a DDS domain"))?;
    let made = Arc::new(Participant { dds, threads: Threads::since(&before) });
    participants.insert(domain, Arc::downgrade(&made));
    Ok(made)
}

/// The DDS topic of a ROS 2 topic that carries [`StampedVector`].
pub(super) fn stamped(
    participant: &DomainParticipant,
    topic: &str,
    qos: &QosPolicies,
) -> Result<Topic, Error> {
    let (name, message) = (topic_on_wire(topic)?, StampedVector::type_on_wire()?);
    participant.create_topic(name, message, qos, TopicKind::NoKey).map_err(failed("make a DDS topic"))
}
