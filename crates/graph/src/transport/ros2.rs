//! DDS as ROS 2 uses it: a topic of its own for each link, reliable, keeping as many messages as
//! the link is deep.
//!
//! Ends find each other by multicast, in the domain of ROS_DOMAIN_ID; a sender refuses until they
//! have. Arrived messages lie with their receiver, and end with it. The kernel knows only of
//! sockets, so a thread of the receiver's process listens and rings its bell. Both ends allocate:
//! the middleware does.

use super::account::Account;
use super::{HEADER_BYTES, Header};
use crate::ros2::{Error, PerformanceHeader, Publisher, Qos, StampedVector, Subscriber, Time};
use crate::transport::end::End;
use std::{env, fmt, io};
use sys::doorbell::Bell;

/// One end of a topic.
pub(super) enum Port {
    /// The publisher's, and whether anybody has ever listened.
    Publisher(Box<Publisher>, bool),
    /// The subscriber's.
    Subscriber(Box<Subscriber>),
}

impl Port {
    /// One end of a link on this topic.
    pub(super) fn open(topic: &str, end: End, depth: usize) -> io::Result<Self> {
        let domain = domain()?;
        let qos = Qos { reliable: true, keep_last: u32::try_from(depth).ok() };
        Ok(match end {
            End::Sender => {
                Self::Publisher(Box::new(Publisher::new(domain, topic, qos).map_err(said)?), false)
            }
            End::Receiver => Self::Subscriber(Box::new(Subscriber::new(domain, topic, qos).map_err(said)?)),
        })
    }

    /// Counts what arrives, and rings this bell.
    pub(super) fn listen(&mut self, account: Account, bell: Bell) -> io::Result<()> {
        let Self::Subscriber(port) = self else { return Err(other_end()) };
        port.listen(move |messages| {
            account.arrived(messages);
            bell.ring();
        })
    }

    /// Whether the other end has been found.
    pub(super) fn joined(&mut self) -> bool {
        match self {
            Self::Publisher(port, joined) => {
                *joined = *joined || port.matched() > 0;
                *joined
            }
            Self::Subscriber(port) => port.matched() > 0,
        }
    }

    /// Whether the other end is there now, as far as this one knows: a killed one goes unnoticed
    /// for a minute.
    pub(super) fn heard(&mut self) -> bool {
        match self {
            Self::Publisher(port, _) => port.matched() > 0,
            Self::Subscriber(port) => port.matched() > 0,
        }
    }

    /// Why nothing will be sent or received any more, where that is known.
    pub(super) fn stuck(&mut self) -> Option<io::Error> {
        let checked = match self {
            Self::Publisher(port, _) => port.check(),
            Self::Subscriber(port) => port.check(),
        };
        checked.err().map(said)
    }

    /// Publishes a message; false while there is no subscriber.
    pub(super) fn put(&mut self, parts: [&[u8]; 2]) -> io::Result<bool> {
        if !self.joined() {
            return Ok(false);
        }
        let Self::Publisher(port, _) = self else { return Err(other_end()) };
        let head = Header::from_bytes(parts[0]).unwrap_or_default();
        let header = PerformanceHeader {
            stamp: Time::of_ns(head.sent_ns),
            tracking_number: head.sequence as u32,
            frequency: 0.0,
            size: head.bytes as u32,
        };
        port.publish(StampedVector { header, data: parts.concat() }).map_err(said)?;
        Ok(true)
    }

    /// Takes the oldest message into the frame and returns its length; `None` where there is none.
    pub(super) fn take(&mut self, frame: &mut [u8]) -> io::Result<Option<usize>> {
        let Self::Subscriber(port) = self else { return Err(other_end()) };
        let Some(message) = port.take().map_err(said)? else { return Ok(None) };
        let bytes = message.data.len();
        let Some(place) = frame.get_mut(..bytes).filter(|_| bytes >= HEADER_BYTES) else {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a message that no link of ours carries"));
        };
        place.copy_from_slice(&message.data);
        Ok(Some(bytes))
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Publisher(..) => "Publisher",
            Self::Subscriber(_) => "Subscriber",
        })
    }
}

/// The domain of ROS 2's own variable, 0 where it is not set.
fn domain() -> io::Result<u16> {
    const VARIABLE: &str = "ROS_DOMAIN_ID";
    let Some(text) = env::var(VARIABLE).ok().filter(|text| !text.is_empty()) else { return Ok(0) };
    let number = text.parse().ok().filter(|number| *number <= 232);
    let unknown =
        || io::Error::new(io::ErrorKind::InvalidInput, format!("{VARIABLE}={text}; expected 0 to 232"));
    number.ok_or_else(unknown)
}

/// What the middleware said.
fn said(error: Error) -> io::Error {
    io::Error::other(error)
}

fn other_end() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, "the other end of the link does that")
}
