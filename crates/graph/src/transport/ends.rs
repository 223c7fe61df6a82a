//! The two ends of a link, as executors use them. Neither waits, and neither allocates once it
//! exists.

use super::account::Account;
use super::carrier::{Carrier, Handed};
use super::error::PATIENCE_S;
use super::spec::{Facts, LinkSpec};
use super::{Error, HEADER_BYTES, Header};
use std::io;
use std::os::fd::BorrowedFd;
use sys::clock;
use sys::doorbell::Bell;

/// How long sent messages may take to arrive when the sender ends.
const ARRIVAL_NS: i64 = clock::SECOND_NS;
/// Polling interval.
const LOOK_NS: i64 = 2_000_000;

/// What came of sending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The link has it.
    Taken,
    /// The link has it; the oldest message that was not taken is gone, and counted.
    Replaced,
    /// The link was full: the message is gone, and counted.
    Full,
}

/// What there was to take.
#[derive(Debug)]
pub enum Take<'a> {
    /// A message.
    Message(Message<'a>),
    /// Nothing, for now.
    Empty,
    /// Nothing, and the sender is gone.
    Closed,
}

/// A message in the receiver's hands until the next is taken.
#[derive(Debug)]
pub struct Message<'a> {
    /// Its header.
    pub header: Header,
    /// Messages between the last one and this one that did not come.
    pub missed: u64,
    /// Its payload.
    pub payload: &'a [u8],
}

/// The publisher's end. The link is closed when it is dropped.
#[derive(Debug)]
pub struct Sender {
    pub(super) spec: LinkSpec,
    pub(super) facts: Facts,
    pub(super) account: Account,
    pub(super) carrier: Carrier,
    pub(super) bell: Bell,
    /// When its last message was stamped, CLOCK_MONOTONIC ns.
    pub(super) stamped_ns: i64,
}

impl Sender {
    /// When its last message was stamped as sent, CLOCK_MONOTONIC ns; 0 before the first.
    pub fn stamped_ns(&self) -> i64 {
        self.stamped_ns
    }

    /// Sends a message with the intended release `release_ns` (CLOCK_MONOTONIC). Errors are those
    /// of the machine or of the caller; a full link is not an error.
    #[inline]
    pub fn send(&mut self, release_ns: i64, payload: &[u8]) -> Result<Sent, Error> {
        if payload.len() > self.spec.message_bytes {
            return Err(self.too_long(payload.len()));
        }
        let (sequence, carried) = self.account.sending();
        let sent_ns = clock::now_ns();
        self.stamped_ns = sent_ns;
        let header = Header { sequence, carried, release_ns, sent_ns, bytes: payload.len() as u64 };
        let handed = if Carrier::uncounted(self.spec.kind)
            && carried.saturating_sub(self.account.reached()) >= self.facts.depth as u64
        {
            Handed::Full
        } else {
            let header = header.to_bytes();
            match self.carrier.put([&header, payload], self.facts.when_full) {
                Ok(handed) => handed,
                Err(source) => return Err(self.broken(source)),
            }
        };
        Ok(match handed {
            Handed::Taken => {
                self.wake();
                Sent::Taken
            }
            Handed::Replaced => {
                self.account.replaced();
                self.wake();
                Sent::Replaced
            }
            Handed::Full => {
                if let Some(source) = self.carrier.stuck() {
                    return Err(self.broken(source));
                }
                self.account.refused();
                Sent::Full
            }
        })
    }

    /// What it is an end of.
    pub fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// Waits until the receiver's end is found, where ends have to find each other.
    pub fn wait_until_joined(&mut self) -> Result<(), Error> {
        until_joined(&mut self.carrier, &self.spec)
    }

    /// Whether the maker of the link has closed it: there is no receiver any more.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.account.closed()
    }

    /// The kernel wakes whoever waits for a descriptor.
    #[inline]
    fn wake(&self) {
        if !self.spec.kind.by_descriptor() {
            self.bell.ring();
        }
    }

    #[cold]
    fn too_long(&self, bytes: usize) -> Error {
        Error::TooLong {
            link: self.spec.name.clone(),
            kind: self.spec.kind,
            bytes,
            most: self.spec.message_bytes,
            remedy: "declare the link for longer messages".to_owned(),
        }
    }

    /// A message that the machine did not take counts as refused.
    #[cold]
    fn broken(&self, source: io::Error) -> Error {
        self.account.refused();
        Error::Os { link: self.spec.name.clone(), action: "send", source }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        // An end that finds the link closed and empty concludes that nothing will come.
        if self.spec.kind.arrives_later() {
            let give_up = clock::now_ns() + ARRIVAL_NS;
            while !self.account.all_arrived() && self.carrier.heard() && clock::now_ns() < give_up {
                clock::sleep_until(clock::now_ns() + LOOK_NS);
            }
        }
        self.account.close();
        self.bell.ring();
    }
}

fn until_joined(carrier: &mut Carrier, spec: &LinkSpec) -> Result<(), Error> {
    let give_up = clock::now_ns() + PATIENCE_S * clock::SECOND_NS;
    while !carrier.joined() {
        let now_ns = clock::now_ns();
        if now_ns > give_up {
            if let Some(source) = carrier.stuck() {
                return Err(Error::Os { link: spec.name.clone(), action: "find the other end", source });
            }
            return Err(Error::Alone { link: spec.name.clone(), kind: spec.kind });
        }
        clock::sleep_until(now_ns + LOOK_NS);
    }
    Ok(())
}

/// The subscriber's end.
#[derive(Debug)]
pub struct Receiver {
    pub(super) spec: LinkSpec,
    pub(super) account: Account,
    pub(super) carrier: Carrier,
    /// Where a message lies, header first.
    pub(super) frame: Vec<u8>,
}

impl Receiver {
    /// Takes the oldest message.
    #[inline]
    pub fn take(&mut self) -> Result<Take<'_>, Error> {
        // Before the take: it finds what was sent before the link was closed.
        let closed = self.account.closed();
        Ok(match self.next()? {
            None if closed => Take::Closed,
            None => Take::Empty,
            Some(header) => {
                let missed = self.account.received(header.sequence, header.carried);
                let payload = &self.frame[HEADER_BYTES..HEADER_BYTES + header.bytes as usize];
                Take::Message(Message { header, missed, payload })
            }
        })
    }

    /// Reads the messages that no receiver will take any more, and counts them as left; returns how
    /// many.
    pub fn leave(&mut self) -> Result<u64, Error> {
        let mut left = 0;
        while let Some(header) = self.next()? {
            self.account.left(header.sequence, header.carried);
            left += 1;
        }
        Ok(left)
    }

    /// What it is an end of.
    pub fn spec(&self) -> &LinkSpec {
        &self.spec
    }

    /// Waits until the sender's end is found, where ends have to find each other.
    pub fn wait_until_joined(&mut self) -> Result<(), Error> {
        until_joined(&mut self.carrier, &self.spec)
    }

    /// The descriptor that becomes readable when a message is there, where the transport has one.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.carrier.file()
    }

    #[inline]
    fn next(&mut self) -> Result<Option<Header>, Error> {
        let taken = self.carrier.take(&mut self.frame).map_err(|source| Error::Os {
            link: self.spec.name.clone(),
            action: "receive",
            source,
        })?;
        let Some(bytes) = taken else { return Ok(None) };
        let damaged = |what| Error::Damaged { link: self.spec.name.clone(), bytes, what };
        let header = Header::from_bytes(&self.frame[..bytes]);
        let header = header.ok_or_else(|| damaged("it is shorter than a header"))?;
        if header.bytes != (bytes - HEADER_BYTES) as u64 {
            return Err(damaged("its header says another length"));
        }
        Ok(Some(header))
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if self.spec.kind.ends_with_receiver() {
            let _ = self.leave();
        }
    }
}
