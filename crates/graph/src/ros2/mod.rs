//! Messages on the wire as ROS 2 puts them: DDS (RTPS 2.3, OMG formal/2019-04-03) with ROS 2's
//! names and CDR, by our own participant.
//!
//! A topic `/t100` is `rt/t100` on the wire, a message `pkg/msg/Type` the type
//! `pkg::msg::dds_::Type_` (the design article "Topic and Service name mapping to DDS" of ROS 2);
//! topics have no key; payloads are plain CDR, little-endian, encapsulation 0x0001. So a node of
//! ROS 2 over any DDS receives what is published here. RustDDS is known to be slow with long
//! messages (Atostek/RustDDS#319): 64 KB took nine times as long as Cyclone DDS.

mod message;
mod names;
mod participant;
mod publisher;
mod subscriber;
mod threads;

pub use message::{PerformanceHeader, StampedVector, Time};
pub use names::{BadName, topic_on_wire, type_on_wire};
pub use participant::{Error, Qos};
pub use publisher::Publisher;
pub use subscriber::Subscriber;
