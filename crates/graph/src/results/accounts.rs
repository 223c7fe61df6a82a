//! The account of an edge: every message that was sent, and what became of it. Sent = received +
//! lost, always; losses are counted by place.

use crate::transport::Balance;
use serde::{Deserialize, Serialize};

/// What became of the messages of an edge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Account {
    /// Messages that the sender tried to send.
    pub sent: u64,
    /// Messages whose receipt is stored as a sample.
    pub received: u64,
    /// Messages that found the link full.
    pub refused: u64,
    /// Messages that newer ones replaced before anybody took them.
    pub replaced: u64,
    /// Messages that were still in the link when both ends had ended.
    pub left: u64,
    /// Messages in the hands of an end when it was killed, or dropped by the kernel on the way.
    pub vanished: u64,
    /// Messages that were received, and whose sample was lost: the ring was full, or the receiver
    /// was killed before it stored it.
    pub unstored: u64,
}

impl Account {
    /// The account of a link of which so many samples are stored.
    pub fn of(balance: &Balance, stored: u64) -> Self {
        Self {
            sent: balance.sent,
            received: stored,
            refused: balance.refused,
            replaced: balance.replaced,
            left: balance.left,
            vanished: balance.vanished,
            unstored: balance.received.saturating_sub(stored),
        }
    }

    /// Messages that were sent but are not stored as samples.
    pub fn lost(&self) -> u64 {
        self.refused + self.replaced + self.left + self.vanished + self.unstored
    }

    /// Whether every message is accounted for.
    pub fn balances(&self) -> bool {
        self.sent == self.received + self.lost()
    }
}

impl std::ops::AddAssign for Account {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.received += other.received;
        self.refused += other.refused;
        self.replaced += other.replaced;
        self.left += other.left;
        self.vanished += other.vanished;
        self.unstored += other.unstored;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_not_received_are_counted_by_where_they_were_lost() {
        let balance =
            Balance { sent: 100, received: 91, refused: 2, replaced: 1, left: 5, vanished: 1, missed: 3 };
        let mut account = Account::of(&balance, 90);
        assert_eq!((account.lost(), account.unstored, account.balances()), (10, 1, true));
        // A sample of a message that was not sent.
        assert!(!Account::of(&balance, 92).balances());
        account += account;
        assert_eq!((account.sent, account.lost()), (200, 20));
    }
}
