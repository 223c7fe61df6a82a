//! A publisher that a ROS 2 subscription matches.

use super::StampedVector;
use super::participant::{Error, Participant, Qos, failed, participant, stamped};
use rustdds::no_key::DataWriter;
use rustdds::{DataWriterStatus, StatusEvented};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Interval of checks for a subscriber.
const LOOK: Duration = Duration::from_millis(5);
/// Interval of checks of the middleware's threads.
const CHECK: Duration = Duration::from_millis(100);

/// A publisher of [`StampedVector`] on one topic.
pub struct Publisher {
    writer: DataWriter<StampedVector>,
    matched: i32,
    checked: Instant,
    // Last, so that the writer says goodbye while its participant is still there.
    participant: Arc<Participant>,
}

impl Publisher {
    /// A publisher in this domain (ROS_DOMAIN_ID, 0 to 232) on this ROS 2 topic.
    pub fn new(domain: u16, topic: &str, qos: Qos) -> Result<Self, Error> {
        let participant = participant(domain)?;
        let qos = qos.policies();
        let topic = stamped(&participant.dds, topic, &qos)?;
        let publisher = participant.dds.create_publisher(&qos).map_err(failed("make a DDS publisher"))?;
        let writer =
            publisher.create_datawriter_no_key_cdr(&topic, None).map_err(failed("make a DDS writer"))?;
        Ok(Self { writer, matched: 0, checked: Instant::now(), participant })
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

    /// For a caller whose messages do not get through: an error where the middleware is known to
    /// have ended. Checks ten times per second at most.
    pub fn check(&mut self) -> Result<(), Error> {
        if self.checked.elapsed() < CHECK {
            return Ok(());
        }
        self.checked = Instant::now();
        self.participant.check()
    }

    /// Publishes.
    pub fn publish(&self, message: StampedVector) -> Result<(), Error> {
        self.writer.write(message, None).map_err(failed("publish"))
    }
}
