//! The message of iRobot's ros2-performance: a header that its tracker reads, and bytes.
//!
//! Fields in the order of `irobot_interfaces_plugin/msg/StampedVector` and `PerformanceHeader`; CDR
//! aligns each to its size from the beginning of the payload (OMG CORBA 3.4, 9.3), a sequence is
//! its length and then its elements.

use super::BadName;
use super::names::type_on_wire;
use serde::{Deserialize, Serialize};

/// `builtin_interfaces/msg/Time`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Time {
    /// Seconds.
    pub sec: i32,
    /// Nanoseconds of the second.
    pub nanosec: u32,
}

impl Time {
    /// A point of a clock, ns; seconds beyond 32 bits are cut off, as in ROS 2.
    pub fn of_ns(ns: i64) -> Self {
        const SECOND_NS: i64 = 1_000_000_000;
        Self { sec: ns.div_euclid(SECOND_NS) as i32, nanosec: ns.rem_euclid(SECOND_NS) as u32 }
    }
}

/// `irobot_interfaces_plugin/msg/PerformanceHeader`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct PerformanceHeader {
    /// Taken just before publishing; ros2-performance takes CLOCK_REALTIME.
    pub stamp: Time,
    /// Number of the message on its topic.
    pub tracking_number: u32,
    /// Frequency of the publisher, Hz.
    pub frequency: f32,
    /// Size of the message, bytes.
    pub size: u32,
}

/// `irobot_interfaces_plugin/msg/StampedVector`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct StampedVector {
    /// What the tracker reads.
    pub header: PerformanceHeader,
    /// The payload; bytes at once, not one by one.
    #[serde(with = "serde_bytes")]
    pub data: Vec<u8>,
}

impl StampedVector {
    /// Its type on the wire.
    pub fn type_on_wire() -> Result<String, BadName> {
        type_on_wire("irobot_interfaces_plugin/msg/StampedVector")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustdds::serialization::{RepresentationIdentifier, to_writer_with_rep_id};

    #[test]
    fn the_bytes_on_the_wire_are_those_of_cdr() {
        let header = PerformanceHeader {
            stamp: Time::of_ns(3_000_000_007),
            tracking_number: 0x0102_0304,
            frequency: 1.5,
            size: 5,
        };
        let message = StampedVector { header, data: vec![9, 8, 7, 6, 5] };
        let mut bytes = Vec::new();
        to_writer_with_rep_id(&mut bytes, &message, RepresentationIdentifier::CDR_LE).unwrap();
        let expected: Vec<u8> = [
            &3i32.to_le_bytes()[..],
            &7u32.to_le_bytes(),
            &[4, 3, 2, 1],
            &1.5f32.to_le_bytes(),
            &5u32.to_le_bytes(),
            &5u32.to_le_bytes(),
            &[9, 8, 7, 6, 5],
        ]
        .concat();
        assert_eq!(bytes, expected);
    }

    #[test]
    fn times_before_the_epoch_have_positive_nanoseconds() {
        assert_eq!(Time::of_ns(-1), Time { sec: -1, nanosec: 999_999_999 });
    }
}
