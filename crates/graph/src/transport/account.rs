//! The account of a link: what each end counts, in shared memory, so that it outlives either.
//!
//! Each side writes its own cache line and only reads the other's. A call of `send` is counted
//! before anything else happens, a message as received when it is whole in the receiver's hands. A
//! process that is killed in between leaves one `vanished` message (a sender that replaces: perhaps
//! also the one it took out), never one that is not counted.

use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use sys::memory::Mapping;

/// Bytes at the beginning of a link's shared memory that the account takes.
pub(super) const BYTES: usize = 256;

/// Where each counter stands, in words: the sender's line, then the receiver's.
const SENT: usize = 0;
const REFUSED: usize = 1;
const REPLACED: usize = 2;
const CLOSED: usize = 3;
const RECEIVED: usize = 16;
const MISSED: usize = 17;
const LEFT: usize = 18;
const REACHED: usize = 19;
const EXPECTED: usize = 20;
const ARRIVED: usize = 21;

/// Where everything that was sent over a link went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Balance {
    /// Calls of `send`.
    pub sent: u64,
    /// Messages that reached the receiver's hands.
    pub received: u64,
    /// Messages that a full link did not take.
    pub refused: u64,
    /// Messages that newer ones replaced before anybody took them.
    pub replaced: u64,
    /// Messages that were still in the link when both ends were gone.
    pub left: u64,
    /// Messages in none of these places: in the hands of an end when it was killed, or dropped by
    /// the kernel (UDP).
    pub vanished: u64,
    /// Messages that the receiver itself found missing, by the numbers of those it got; it cannot
    /// know of trailing ones.
    pub missed: u64,
}

impl Balance {
    /// Messages that were sent and not received.
    pub fn lost(&self) -> u64 {
        self.refused + self.replaced + self.left + self.vanished
    }
}

/// One side's view of the account.
#[derive(Debug, Clone)]
pub(super) struct Account(Arc<Mapping>);

impl Account {
    pub(super) fn new(memory: Arc<Mapping>) -> Self {
        Self(memory)
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.0.words(0, BYTES / 8)[at]
    }

    #[inline]
    fn read(&self, at: usize) -> u64 {
        self.word(at).load(Ordering::Acquire)
    }

    /// A counter that this side alone writes.
    #[inline]
    fn add(&self, at: usize, count: u64) {
        let word = self.word(at);
        word.store(word.load(Ordering::Relaxed) + count, Ordering::Release);
    }

    /// Sender: counts a call; returns its number, and how many messages the link had taken before.
    #[inline]
    pub(super) fn sending(&self) -> (u64, u64) {
        let sent = self.read(SENT);
        self.add(SENT, 1);
        (sent, sent - self.read(REFUSED))
    }

    #[inline]
    pub(super) fn refused(&self) {
        self.add(REFUSED, 1);
    }

    #[inline]
    pub(super) fn replaced(&self) {
        self.add(REPLACED, 1);
    }

    /// Sender: of the messages that the link took, those the receiver has passed. Messages that the
    /// kernel dropped count as passed as soon as a later one arrives.
    #[inline]
    pub(super) fn reached(&self) -> u64 {
        self.read(REACHED)
    }

    /// Receiver: this message is in its hands; returns how many were lost just before it.
    #[inline]
    pub(super) fn received(&self, sequence: u64, carried: u64) -> u64 {
        let missed = self.pass(sequence, carried);
        self.add(RECEIVED, 1);
        self.add(MISSED, missed);
        missed
    }

    /// This message was found when it was no longer wanted.
    pub(super) fn left(&self, sequence: u64, carried: u64) {
        let missed = self.pass(sequence, carried);
        self.add(LEFT, 1);
        self.add(MISSED, missed);
    }

    #[inline]
    fn pass(&self, sequence: u64, carried: u64) -> u64 {
        let missed = sequence.saturating_sub(self.read(EXPECTED));
        self.word(EXPECTED).store(sequence + 1, Ordering::Relaxed);
        self.word(REACHED).store(carried + 1, Ordering::Release);
        missed
    }

    /// Receiver: these messages have arrived in its process, where it will find them.
    #[cfg(feature = "ros2")]
    pub(super) fn arrived(&self, messages: u64) {
        self.add(ARRIVED, messages);
    }

    /// Sender: whether all that the link took has come to the receiver's process, where that is
    /// known.
    pub(super) fn all_arrived(&self) -> bool {
        self.read(ARRIVED) >= self.read(SENT) - self.read(REFUSED)
    }

    /// No more will be sent.
    pub(super) fn close(&self) {
        self.word(CLOSED).store(1, Ordering::Release);
    }

    #[inline]
    pub(super) fn closed(&self) -> bool {
        self.read(CLOSED) != 0
    }

    /// Where every message went; final when both ends are gone and the rest was read.
    pub(super) fn balance(&self) -> Balance {
        let [sent, received, refused, replaced, left, missed] =
            [SENT, RECEIVED, REFUSED, REPLACED, LEFT, MISSED].map(|at| self.read(at));
        let vanished = sent.saturating_sub(received + refused + replaced + left);
        Balance { sent, received, refused, replaced, left, vanished, missed }
    }
}
