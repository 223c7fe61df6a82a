//! Perfetto's native trace: a stream of `TracePacket`s with `TrackDescriptor`s and `TrackEvent`s.
//!
//! Numbers of fields: `protos/perfetto/trace/trace_packet.proto`, `clock_snapshot.proto` and
//! `track_event/*.proto` of the Perfetto project; how they make a timeline:
//! <https://perfetto.dev/docs/reference/synthetic-track-event>. The reader sorts packets by time
//! and keeps the order of those at the same time, so begin and end of a span are written together.

use super::protobuf::Message;
use super::tracks::{Place, Track, Tracks};
use super::{Exporter, Origin, Taken, name, sources};
use crate::Error;
use attribution::attribute::events::Attributed;
use model::sample::Sample;
use std::collections::BTreeSet;
use std::io::Write;

/// Fields of `Trace` and `TracePacket`.
const PACKET: u32 = 1;
const CLOCK_SNAPSHOT: u32 = 6;
const TIMESTAMP: u32 = 8;
const SEQUENCE: u32 = 10;
const TRACK_EVENT: u32 = 11;
const SEQUENCE_FLAGS: u32 = 13;
const TIMESTAMP_CLOCK: u32 = 58;
const TRACK_DESCRIPTOR: u32 = 60;
/// `SEQ_INCREMENTAL_STATE_CLEARED`.
const CLEARED: u64 = 1;
/// `BUILTIN_CLOCK_MONOTONIC`.
const MONOTONIC: u64 = 3;

/// Fields of `TrackEvent`, and values of its `type`.
const ANNOTATION: u32 = 4;
const TYPE: u32 = 9;
const TRACK: u32 = 11;
const CATEGORY: u32 = 22;
const NAME: u32 = 23;
const COUNTER_VALUE: u32 = 30;
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// A file in Perfetto's own format.
#[derive(Debug)]
pub struct Perfetto<W> {
    out: W,
    tracks: Tracks,
    counters: BTreeSet<u64>,
    /// Whether times are CLOCK_MONOTONIC; otherwise they are the reader's default clock.
    monotonic: bool,
}

impl<W: Write> Perfetto<W> {
    /// Begins the file.
    pub fn new(out: W, origin: &Origin) -> Result<Self, Error> {
        let monotonic = origin.clock == "mono";
        let mut perfetto = Self { out, tracks: Tracks::default(), counters: BTreeSet::new(), monotonic };
        let mut first = Message::default().number(SEQUENCE_FLAGS, CLEARED);
        if monotonic {
            // Without a snapshot the reader would take it for CLOCK_BOOTTIME, and could not be
            // joined with other traces.
            let clock = Message::default().number(1, MONOTONIC).number(2, 0);
            first =
                first.message(CLOCK_SNAPSHOT, &Message::default().message(1, &clock).number(2, MONOTONIC));
        }
        perfetto.packet(first)?;
        Ok(perfetto)
    }

    fn packet(&mut self, packet: Message) -> Result<(), Error> {
        let packet = packet.number(SEQUENCE, 1);
        Ok(self.out.write_all(Message::default().message(PACKET, &packet).bytes())?)
    }

    fn track_event(&mut self, t_ns: i64, event: &Message) -> Result<(), Error> {
        // A trace clock starts at boot; what is before that cannot be written.
        let mut packet = Message::default().number(TIMESTAMP, u64::try_from(t_ns).unwrap_or(0));
        if self.monotonic {
            packet = packet.number(TIMESTAMP_CLOCK, MONOTONIC);
        }
        self.packet(packet.message(TRACK_EVENT, event))
    }

    fn describe(&mut self, number: u64, name: &str, counter: Option<&Message>) -> Result<(), Error> {
        let mut track = Message::default().number(1, number).text(2, name);
        if let Some(counter) = counter {
            track = track.message(8, counter);
        }
        self.packet(Message::default().message(TRACK_DESCRIPTOR, &track))
    }

    /// One span, or an instant where it has no length; `about` holds its name, category and
    /// annotations.
    fn span(&mut self, track: Track, [t0_ns, t1_ns]: [i64; 2], about: Message) -> Result<(), Error> {
        let Place { number, first, end_ns } = self.tracks.place(track, t0_ns, t1_ns);
        if first {
            self.describe(number, &track.name(), None)?;
        }
        let begins = if end_ns.is_some() { BEGIN } else { INSTANT };
        self.track_event(t0_ns, &about.number(TYPE, begins).number(TRACK, number))?;
        match end_ns {
            Some(end_ns) => {
                self.track_event(end_ns, &Message::default().number(TYPE, END).number(TRACK, number))
            }
            None => Ok(()),
        }
    }
}

fn text(message: Message, key: &str, value: &str) -> Message {
    message.message(ANNOTATION, &Message::default().text(10, key).text(6, value))
}

fn whole(message: Message, key: &str, value: i64) -> Message {
    message.message(ANNOTATION, &Message::default().text(10, key).signed(4, value))
}

impl<W: Write> Exporter for Perfetto<W> {
    fn event(&mut self, event: &Attributed) -> Result<(), Error> {
        let class = event.class.name();
        let mut about = Message::default().text(CATEGORY, class).text(NAME, name(event));
        about = text(about, "class", class);
        about = whole(about, "net_ns", event.net_ns as i64);
        about = whole(about, "counts", i64::from(event.counts));
        if let Some((source, confidence)) = event.sources.first() {
            about = text(about, "source", &sources(event));
            about = text(about, "confidence", confidence.word());
            if let Some(site) = &source.site {
                about = text(about, "site", site);
            }
            if let Some(began) = &source.began {
                about = text(about, "began", began);
            }
            if !source.frames.is_empty() {
                about = text(about, "stack", &source.functions().join("\n"));
            }
        }
        self.span(Track { cpu: event.cpu, probe: None }, [event.t0_ns, event.t1_ns], about)
    }

    fn sample(&mut self, taken: Taken<'_>, sample: &Sample) -> Result<(), Error> {
        let Sample { t_ns, value_ns, missed, flags, .. } = *sample;
        let track = Track { cpu: taken.cpu, probe: Some(taken.probe) };
        let mut about = Message::default().text(CATEGORY, "sample").text(NAME, taken.probe.name());
        about = whole(about, "latency_ns", value_ns);
        about = text(about, "phase", taken.phase);
        about = whole(about, "missed", i64::from(missed));
        about = whole(about, "flags", i64::from(flags));
        let end_ns = t_ns.saturating_add(value_ns);
        self.span(track, [t_ns, end_ns], about)?;
        let counter = track.counter();
        if self.counters.insert(counter) {
            // UNIT_TIME_NS.
            self.describe(counter, &track.name(), Some(&Message::default().number(3, 1)))?;
        }
        let value =
            Message::default().number(TYPE, COUNTER).number(TRACK, counter).signed(COUNTER_VALUE, value_ns);
        self.track_event(end_ns.max(t_ns), &value)
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        Ok(self.out.flush()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::testing::{event, origin, served};
    use model::sample::ProbeKind;

    /// A field as it stands on the wire.
    #[derive(Debug, Clone, PartialEq)]
    enum Field<'a> {
        Number(u64),
        Bytes(&'a [u8]),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let length = bytes.iter().position(|byte| *byte < 0x80).expect("a varint ends") + 1;
        let (head, rest) = bytes.split_at(length);
        *bytes = rest;
        head.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
    }

    fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let value = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Number(value),
                2 => {
                    let (inside, rest) = bytes.split_at(value as usize);
                    bytes = rest;
                    Field::Bytes(inside)
                }
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, field));
        }
        fields
    }

    fn inside<'a>(message: &[(u64, Field<'a>)], field: u32) -> Vec<Vec<(u64, Field<'a>)>> {
        let own = message.iter().filter(|(number, _)| *number == u64::from(field));
        let inner = own.map(|(_, value)| match value {
            Field::Bytes(bytes) => self::fields(bytes),
            Field::Number(_) => panic!("field {field} is a number"),
        });
        inner.collect()
    }

    fn number(message: &[(u64, Field<'_>)], field: u32) -> Option<u64> {
        message.iter().find_map(|(number, value)| match value {
            Field::Number(value) if *number == u64::from(field) => Some(*value),
            _ => None,
        })
    }

    fn string<'a>(message: &[(u64, Field<'a>)], field: u32) -> &'a str {
        let found = message.iter().find_map(|(number, value)| match value {
            Field::Bytes(bytes) if *number == u64::from(field) => Some(*bytes),
            _ => None,
        });
        std::str::from_utf8(found.expect("the text is there")).unwrap()
    }

    fn written(origin: &Origin, fill: impl FnOnce(&mut Perfetto<&mut Vec<u8>>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut perfetto = Perfetto::new(&mut bytes, origin).unwrap();
        fill(&mut perfetto);
        Box::new(perfetto).finish().unwrap();
        bytes
    }

    #[test]
    fn packets_name_their_tracks_and_every_span_begins_and_ends() {
        let bytes = written(&origin(), |perfetto| {
            perfetto.event(&served(2, 1_000, 3_000)).unwrap();
            perfetto.event(&event(2, 2_000, 2_500)).unwrap();
            perfetto.event(&event(3, 4_000, 4_000)).unwrap();
        });
        let packets = inside(&fields(&bytes), PACKET);
        assert!(packets.iter().all(|packet| number(packet, SEQUENCE) == Some(1)));
        assert_eq!(number(&packets[0], SEQUENCE_FLAGS), Some(CLEARED));
        assert_eq!(number(&inside(&packets[0], CLOCK_SNAPSHOT)[0], 2), Some(MONOTONIC));
        let tracks: Vec<_> = packets.iter().flat_map(|packet| inside(packet, TRACK_DESCRIPTOR)).collect();
        assert_eq!(tracks.iter().map(|track| string(track, 2)).collect::<Vec<_>>(), ["CPU 2", "CPU 3"]);
        let events = packets.iter().filter_map(|packet| {
            let event = inside(packet, TRACK_EVENT).pop()?;
            assert_eq!(number(packet, TIMESTAMP_CLOCK), Some(MONOTONIC));
            Some((number(packet, TIMESTAMP).unwrap(), number(&event, TYPE).unwrap(), event))
        });
        let events: Vec<_> = events.collect();
        let marks: Vec<_> = events.iter().map(|(at, kind, _)| (*at, *kind)).collect();
        assert_eq!(marks, [(1_000, BEGIN), (3_000, END), (2_000, BEGIN), (2_500, END), (4_000, INSTANT)]);
        assert!(
            events
                .iter()
                .all(|(_, _, event)| { tracks.iter().any(|track| number(track, 1) == number(event, TRACK)) })
        );
        let said: Vec<_> = inside(&events[0].2, ANNOTATION).iter().map(|note| string(note, 10)).collect();
        assert_eq!(said, ["class", "net_ns", "counts", "source", "confidence", "site"]);
        assert_eq!(
            (string(&events[0].2, NAME), string(&events[0].2, CATEGORY)),
            ("do_sync_core", "ipi.call")
        );
    }

    #[test]
    fn samples_are_spans_and_a_counter() {
        let taken = Taken { probe: ProbeKind::Wakeup, cpu: 2, phase: "idle" };
        let bytes = written(&origin(), |perfetto| {
            perfetto.sample(taken, &Sample { t_ns: 1_000, value_ns: 500, ..Sample::default() }).unwrap();
            perfetto.sample(taken, &Sample { t_ns: 2_000, value_ns: -5, ..Sample::default() }).unwrap();
        });
        let packets = inside(&fields(&bytes), PACKET);
        let events: Vec<_> = packets.iter().flat_map(|packet| inside(packet, TRACK_EVENT)).collect();
        let kinds: Vec<_> = events.iter().filter_map(|event| number(event, TYPE)).collect();
        assert_eq!(kinds, [BEGIN, END, COUNTER, INSTANT, COUNTER]);
        let values: Vec<_> = events.iter().filter_map(|event| number(event, COUNTER_VALUE)).collect();
        assert_eq!(values.iter().map(|value| *value as i64).collect::<Vec<_>>(), [500, -5]);
    }

    #[test]
    fn another_clock_is_not_called_monotonic() {
        let other = Origin { clock: "local".into(), ..origin() };
        let bytes = written(&other, |perfetto| perfetto.event(&event(2, 1, 2)).unwrap());
        let packets = inside(&fields(&bytes), PACKET);
        assert!(packets.iter().all(|packet| number(packet, TIMESTAMP_CLOCK).is_none()));
        assert!(inside(&packets[0], CLOCK_SNAPSHOT).is_empty());
    }
}
