//! A publisher that a ROS 2 subscription matches.

use super::names::topic_on_wire;
use super::{BadName, StampedVector};
use rustdds::no_key::DataWriter;
use rustdds::policy::{Durability, History, Reliability};
use rustdds::{DataWriterStatus, DomainParticipant, QosPolicies, QosPolicyBuilder, StatusEvented, TopicKind};
use std::time::{Duration, Instant};

/// Distance of looks for somebody who listens.
const LOOK: Duration = Duration::from_millis(5);

/// The qualities that a subscription must be able to live with; those not named are ROS 2's defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Qos {
    /// Whether what is lost on the way is sent again.
    pub reliable: bool,
    /// Messages that are kept for that; all of them where this is none.
    pub keep_last: Option<u32>,
}

impl Default for Qos {
    /// What ROS 2 takes where nothing is said: reliable, the last ten.
    fn default() -> Self {
        Self { reliable: true, keep_last: Some(10) }
    }
}

/// What could not be done, in words of the middleware.
#[derive(Debug, thiserror::Error)]
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
}

/// A publisher of [`StampedVector`] on one topic.
pub struct Publisher {
    writer: DataWriter<StampedVector>,
    matched: i32,
    // Last, so that the writer says goodbye while its participant is still there.
    _participant: DomainParticipant,
}

impl Publisher {
    /// A participant in this domain (ROS_DOMAIN_ID, 0 to 232) with one publisher on this ROS 2 topic.
    pub fn new(domain: u16, topic: &str, qos: Qos) -> Result<Self, Error> {
        let participant = DomainParticipant::new(domain).map_err(failed("join a DDS domain"))?;
        let qos = policies(qos);
        let (name, message) = (topic_on_wire(topic)?, StampedVector::type_on_wire()?);
        let topic = participant
            .create_topic(name, message, &qos, TopicKind::NoKey)
            .map_err(failed("make a DDS topic"))?;
        let publisher = participant.create_publisher(&qos).map_err(failed("make a DDS publisher"))?;
        let writer =
            publisher.create_datawriter_no_key_cdr(&topic, None).map_err(failed("make a DDS writer"))?;
        Ok(Self { writer, matched: 0, _participant: participant })
    }

    /// Subscriptions that match now.
    pub fn matched(&mut self) -> i32 {
        while let Some(status) = self.writer.try_recv_status() {
            if let DataWriterStatus::PublicationMatched { current, .. } = status {
                self.matched = current.count();
            }
        }
        self.matched
    }

    /// Waits until somebody listens; whether somebody does.
    pub fn wait_for_match(&mut self, at_most: Duration) -> bool {
        let give_up = Instant::now() + at_most;
        while self.matched() == 0 {
            if Instant::now() > give_up {
                return false;
            }
            std::thread::sleep(LOOK);
        }
        true
    }

    /// Publishes.
    pub fn publish(&self, message: StampedVector) -> Result<(), Error> {
        self.writer.write(message, None).map_err(failed("publish"))
    }
}

fn policies(qos: Qos) -> QosPolicies {
    let max_blocking_time = rustdds::Duration::from_millis(100);
    let reliability =
        if qos.reliable { Reliability::Reliable { max_blocking_time } } else { Reliability::BestEffort };
    let history = qos.keep_last.map_or(History::KeepAll, |depth| History::KeepLast {
        depth: i32::try_from(depth).unwrap_or(i32::MAX),
    });
    QosPolicyBuilder::new().reliability(reliability).history(history).durability(Durability::Volatile).build()
}

fn failed<E: std::fmt::Debug>(action: &'static str) -> impl Fn(E) -> Error {
    move |error| Error::Middleware { action, reason: format!("{error:?}") }
}
