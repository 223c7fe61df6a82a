//! One end of a link.

/// An end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The publisher's.
    Sender,
    /// The subscriber's.
    Receiver,
}
