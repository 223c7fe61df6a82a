//! A received message as records of the shared ring, and back as a sample.

use crate::results::honest::Arrival;
use measure::ring::{Packed, Record, Ring};
use model::sample::{Sample, flag};

/// First record of a message: stamp = intended release, CLOCK_MONOTONIC ns; value = edge.
const RELEASE: u8 = 0;
/// Second: stamp = sent; value = number on its edge.
const SENT: u8 = 1;
/// Third: stamp = received; value = bytes.
const RECEIVED: u8 = 2;

/// The columns of a graph's samples besides those that every sample has: the edge's number, bytes
/// of payload, the message's number on the edge, when it was sent (CLOCK_MONOTONIC ns). It was
/// received at `t_ns + value_ns`.
pub const COLUMNS: [&str; 4] = ["edge", "size", "number", "sent_ns"];

/// Stores a message that was received.
#[inline]
pub(super) fn store(ring: &mut Ring, edge: u32, bytes: u64, arrival: Arrival) -> bool {
    ring.push_all(&[
        (arrival.release_ns as u64, u64::from(edge), RELEASE),
        (arrival.sent_ns as u64, arrival.number, SENT),
        (arrival.received_ns as u64, bytes, RECEIVED),
    ])
}

/// A message that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Received {
    /// The edge.
    pub(super) edge: u32,
    /// Payload, bytes.
    pub(super) bytes: u64,
    /// Its times and number.
    pub(super) arrival: Arrival,
    /// Messages of this executor whose records were lost just before.
    pub(super) ring_lost: u16,
}

/// Puts records together again.
#[derive(Debug, Default)]
pub(super) struct Drain {
    release: Option<(i64, Packed)>,
    sent: Option<(i64, u64)>,
    seq: u64,
}

impl Drain {
    /// The message whose last record this is.
    pub(super) fn convert(&mut self, record: Record) -> Option<Received> {
        let packed = Packed::from_word(record.packed);
        match packed.kind {
            RELEASE => self.release = Some((record.stamp as i64, packed)),
            SENT => self.sent = Some((record.stamp as i64, packed.value)),
            RECEIVED => {
                let ((release_ns, first), (sent_ns, number)) = (self.release.take()?, self.sent.take()?);
                let received_ns = record.stamp as i64;
                let arrival = Arrival { number, release_ns, sent_ns, received_ns };
                return Some(Received {
                    edge: first.value as u32,
                    bytes: packed.value,
                    arrival,
                    ring_lost: first.lost,
                });
            }
            _ => {}
        }
        None
    }

    /// Its row. `missed` counts the messages of its edge that are missing just before it.
    pub(super) fn sample(&mut self, received: &Received, missed: u64) -> (Sample, [i64; COLUMNS.len()]) {
        let Received { edge, bytes, arrival, ring_lost } = *received;
        self.seq += u64::from(ring_lost);
        let first = if arrival.number == 0 { flag::FIRST } else { 0 };
        let gap = if ring_lost > 0 { flag::RING_GAP } else { 0 };
        let sample = Sample {
            t_ns: arrival.release_ns,
            value_ns: arrival.received_ns - arrival.release_ns,
            seq: self.seq,
            missed: missed.min(u64::from(u32::MAX)) as u32,
            flags: first | gap,
        };
        self.seq += 1;
        (sample, [i64::from(edge), bytes as i64, arrival.number as i64, arrival.sent_ns])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use measure::ring::{BYTES, CAPACITY};
    use sys::memory::shared_file;

    fn arrival(number: u64) -> Arrival {
        let release_ns = 5 + number as i64 * 1_000;
        Arrival { number, release_ns, sent_ns: release_ns + 7, received_ns: release_ns + 40 }
    }

    #[test]
    fn a_message_comes_back_as_a_row() {
        let file = shared_file("records-test", BYTES).unwrap();
        let (mut ring, mut other) = (Ring::map(&file).unwrap(), Ring::map(&file).unwrap());
        let mut drain = Drain::default();
        assert!(store(&mut ring, 3, 100, arrival(0)));
        assert!(store(&mut ring, 4, 200, arrival(9)));
        let mut rows = Vec::new();
        while let Some(record) = other.pop() {
            rows.extend(drain.convert(record));
        }
        assert_eq!((rows[0].edge, rows[0].bytes, rows[0].arrival), (3, 100, arrival(0)));
        let (first, _) = drain.sample(&rows[0], 0);
        let (second, own) = drain.sample(&rows[1], 8);
        assert_eq!((first.seq, first.flags, first.value_ns), (0, flag::FIRST, 40));
        assert_eq!((second.seq, second.flags, second.missed), (1, 0, 8));
        assert_eq!(own, [4, 200, 9, 5 + 9_000 + 7]);
    }

    #[test]
    fn a_full_ring_is_a_gap_in_the_rows() {
        let file = shared_file("records-test", BYTES).unwrap();
        let (mut ring, mut other) = (Ring::map(&file).unwrap(), Ring::map(&file).unwrap());
        let stored = (0..CAPACITY as u64).filter(|number| store(&mut ring, 0, 8, arrival(*number))).count();
        let lost = (CAPACITY - stored) as u64;
        let mut drain = Drain::default();
        let read = |other: &mut Ring, drain: &mut Drain| {
            let mut rows = 0;
            while let Some(record) = other.pop() {
                rows += drain.convert(record).map_or(0, |one| drain.sample(&one, 0).0.seq + 1).min(1);
            }
            rows
        };
        assert_eq!(read(&mut other, &mut drain), stored as u64);
        assert!(store(&mut ring, 0, 8, arrival(7)));
        let received = std::iter::from_fn(|| other.pop()).find_map(|record| drain.convert(record)).unwrap();
        assert_eq!(u64::from(received.ring_lost), lost);
        assert_eq!(drain.sample(&received, 0).0.seq, stored as u64 + lost);
    }
}
