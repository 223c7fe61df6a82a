//! Transports: how one message gets from a publisher to one subscriber.
//!
//! A [`Link`] joins one [`Sender`] to one [`Receiver`]; a topic with three subscribers is three
//! links. Neither end ever waits. A sender without room refuses the message, or replaces the
//! oldest, and counts it. A receiver without a message says so, and its executor waits on a
//! [`Doorbell`] for any of its receivers or for a point of CLOCK_MONOTONIC.
//!
//! The parent makes everything, and hands ends to processes as descriptors:
//!
//! ```text
//! let bell = Doorbell::new(&kinds)?;                    // one for each executor, of the kinds of all links that end there
//! let link = Link::new(&spec, &bell)?;                  // link.facts(): the depth it got, and why less than was asked
//! let mut parcel = Parcel::default();
//! let order = link.sender_order(&mut parcel)?;          // serialisable; receiver_order, pair_order, bell.order likewise
//! sys::spawn::share_all(&mut command, parcel.descriptors());
//! // in the child
//! let mut parcel = Parcel::inherited(count)?;
//! let mut sender = Sender::adopt(&order, &mut parcel)?;
//! sender.send(release_ns, payload)?;                    // Sent::Taken, Sent::Replaced, Sent::Full
//! let mut waiter = bell.waiter(&receivers)?;
//! loop {
//!     let seen = waiter.look();                         // before looking for messages
//!     while let Take::Message(message) = receiver.take()? { … }
//!     waiter.wait(seen, Some(deadline_ns))?;            // returns at once if the bell rang since
//! }
//! // in the parent, when both ends are gone: what is left is read, and everything sent is accounted for
//! let balance = link.settle()?;                         // sent = received + refused + replaced + left + vanished
//! ```
//!
//! For threads of one process [`Link::pair`] gives both ends at once; [`Kind::Queue`] has no other
//! way.

mod account;
mod carrier;
mod doorbell;
mod end;
mod ends;
mod error;
mod header;
#[cfg(feature = "iceoryx2")]
mod iceoryx;
#[cfg(test)]
mod interleave;
mod limits;
mod link;
mod making;
mod parcel;
mod ring;
#[cfg(feature = "ros2")]
mod ros2;
mod spec;
#[cfg(test)]
mod tests;

pub use account::Balance;
pub use doorbell::{BellOrder, Doorbell};
pub use ends::{Message, Receiver, Sender, Sent, Take};
pub use error::Error;
pub use header::{HEADER_BYTES, Header};
pub use limits::{Setting, too_small};
pub use link::{EndOrder, Link};
pub use parcel::Parcel;
pub use spec::{Facts, Kind, LinkSpec, MOST_BYTES, MOST_DEPTH, WhenFull};
pub use sys::doorbell::{Manner, Waiter, Woken};
