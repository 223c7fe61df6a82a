//! Synthetic sub-buffers: what a recording of one machine does not contain (time extends, absolute
//! stamps, discarded events, 32-bit and big-endian kernels, stored counts of lost events). Written
//! from ring_buffer.h, read by the walker.

use ftrace::{Endian, Missed, PageFault, PageLayout, Walker};
use proptest::prelude::*;

/// What a page is made of.
#[derive(Clone, Debug)]
enum Entry {
    /// `type_len` 1..=28: the length is in the header word.
    Short { delta: u32, words: u8 },
    /// `type_len` 0: the length is in the second word.
    Long { delta: u32, words: u16 },
    /// A discarded event.
    Discarded { delta: u32, words: u8 },
    /// `delta` of 59 bits.
    Extend { delta: u64 },
    /// The low 59 bits of the time.
    Stamp { low: u64 },
}

const DELTA: u32 = (1 << 27) - 1;
const LOW: u64 = (1 << 59) - 1;

struct Builder {
    endian: Endian,
    layout: PageLayout,
    data: Vec<u8>,
}

impl Builder {
    fn word(&mut self, value: u32) {
        match self.endian {
            Endian::Little => self.data.extend(value.to_le_bytes()),
            Endian::Big => self.data.extend(value.to_be_bytes()),
        }
    }

    fn header(&mut self, type_len: u32, delta: u32) {
        match self.endian {
            Endian::Little => self.word(type_len | delta << 5),
            Endian::Big => self.word(type_len << 27 | delta),
        }
    }

    fn add(&mut self, entry: &Entry, fill: u8) {
        match *entry {
            Entry::Short { delta, words } => {
                self.header(u32::from(words), delta);
                self.data.extend(vec![fill; 4 * usize::from(words)]);
            }
            Entry::Long { delta, words } => {
                self.header(0, delta);
                self.word(4 * u32::from(words) + 4);
                self.data.extend(vec![fill; 4 * usize::from(words)]);
            }
            Entry::Discarded { delta, words } => {
                self.header(29, delta);
                self.word(4 * u32::from(words) + 4);
                self.data.extend(vec![fill; 4 * usize::from(words)]);
            }
            Entry::Extend { delta } => {
                self.header(30, delta as u32 & DELTA);
                self.word((delta >> 27) as u32);
            }
            Entry::Stamp { low } => {
                self.header(31, low as u32 & DELTA);
                self.word((low >> 27) as u32);
            }
        }
    }

    /// The page with its header, `tail` behind the records, padded to the full size.
    fn page(mut self, timestamp: u64, flags: u32, tail: &[u8]) -> Vec<u8> {
        let records = std::mem::take(&mut self.data);
        let commit = records.len() as u32 | flags;
        let (stamp, commit) = match self.endian {
            Endian::Little => (timestamp.to_le_bytes(), u64::from(commit).to_le_bytes()),
            Endian::Big => (timestamp.to_be_bytes(), u64::from(commit).to_be_bytes()),
        };
        let commit = match (self.layout.commit_size, self.endian) {
            (8, _) => &commit[..],
            (_, Endian::Little) => &commit[..4],
            (_, Endian::Big) => &commit[4..],
        };
        let mut page = [&stamp[..], commit, &records, tail].concat();
        page.resize(self.layout.page_size().max(page.len()), 0);
        page
    }
}

fn builder(endian: Endian, long_size: usize) -> Builder {
    let layout = PageLayout { data_size: 60_000, ..PageLayout::classic(long_size) };
    Builder { endian, layout, data: Vec::new() }
}

/// Times and bytes of all records, or the fault that ended the walk.
fn walk(page: &[u8], layout: &PageLayout, endian: Endian) -> (Vec<(u64, Vec<u8>)>, Option<PageFault>) {
    let mut records = Vec::new();
    let header = match layout.header(page, endian) {
        Ok(header) => header,
        Err(fault) => return (records, Some(fault)),
    };
    let mut walker = Walker::new(layout, &header, endian);
    loop {
        match walker.next_record(page) {
            Ok(Some(record)) => records.push((record.timestamp, page[record.data].to_vec())),
            Ok(None) => return (records, None),
            Err(fault) => {
                assert_eq!(walker.next_record(page), Ok(None), "a fault ends the walk");
                return (records, Some(fault));
            }
        }
    }
}

/// The times by the rules of rb_read_data_buffer() and rb_fix_abs_ts() in
/// kernel/trace/ring_buffer.c.
fn expected(start: u64, entries: &[Entry]) -> Vec<(u64, Vec<u8>)> {
    let mut now = start;
    let mut records = Vec::new();
    for (index, entry) in entries.iter().enumerate() {
        let fill = index as u8;
        match *entry {
            Entry::Short { delta, words } => {
                now += u64::from(delta);
                records.push((now, vec![fill; 4 * usize::from(words)]));
            }
            Entry::Long { delta, words } => {
                now += u64::from(delta);
                records.push((now, vec![fill; 4 * usize::from(words)]));
            }
            Entry::Discarded { delta: 1, .. } => {}
            Entry::Discarded { delta, .. } => now += u64::from(delta),
            Entry::Extend { delta } => now += delta,
            Entry::Stamp { low } => {
                let high = now & !LOW;
                let full = high | low;
                now = if high != 0 && full < now { full + (1 << 59) } else { full };
            }
        }
    }
    records
}

fn entry() -> impl Strategy<Value = Entry> {
    let delta = prop_oneof![0..=DELTA, 0_u32..3];
    prop_oneof![
        4 => (delta.clone(), 1_u8..=28).prop_map(|(delta, words)| Entry::Short { delta, words }),
        2 => (delta.clone(), 0_u16..200).prop_map(|(delta, words)| Entry::Long { delta, words }),
        1 => (1..=DELTA, 0_u8..30).prop_map(|(delta, words)| Entry::Discarded { delta, words }),
        1 => (1_u8..=28).prop_map(|words| Entry::Discarded { delta: 1, words }),
        1 => (0_u64..1 << 50).prop_map(|delta| Entry::Extend { delta }),
        1 => (0..=LOW).prop_map(|low| Entry::Stamp { low }),
    ]
}

proptest! {
    #[test]
    fn pages_are_read_as_they_were_written(
        entries in proptest::collection::vec(entry(), 0..60),
        start in 0_u64..1 << 61,
        big in any::<bool>(),
        long_size in prop_oneof![Just(4_usize), Just(8)],
    ) {
        let endian = if big { Endian::Big } else { Endian::Little };
        let mut builder = builder(endian, long_size);
        for (index, entry) in entries.iter().enumerate() {
            builder.add(entry, index as u8);
        }
        let layout = builder.layout;
        let page = builder.page(start, 0, &[]);
        prop_assert_eq!(walk(&page, &layout, endian), (expected(start, &entries), None));
    }

    #[test]
    fn a_page_cut_inside_its_records_is_a_fault(cut in 0_usize..200) {
        let mut builder = builder(Endian::Little, 8);
        for i in 0..5 {
            builder.add(&Entry::Short { delta: 1, words: 9 }, i);
        }
        let layout = builder.layout;
        let page = builder.page(7, 0, &[]);
        let cut = cut.min(layout.data_offset + 5 * 40 - 1);
        let (records, fault) = walk(&page[..cut], &layout, Endian::Little);
        prop_assert!(records.is_empty());
        let expected = matches!(fault, Some(PageFault::HeaderCut | PageFault::LengthPastEnd { .. }));
        prop_assert!(expected);
    }
}

#[test]
fn padding_with_delta_zero_ends_the_page() {
    let mut builder = builder(Endian::Little, 8);
    builder.add(&Entry::Short { delta: 5, words: 2 }, 1);
    builder.add(&Entry::Discarded { delta: 0, words: 3 }, 2);
    builder.add(&Entry::Short { delta: 5, words: 2 }, 3);
    let layout = builder.layout;
    let (records, fault) = walk(&builder.page(100, 0, &[]), &layout, Endian::Little);
    assert_eq!((records, fault), (vec![(105, vec![1; 8])], None));
}

#[test]
fn an_absolute_stamp_keeps_the_high_bits_and_carries() {
    // The clock passes a multiple of 2^59 between the page's stamp and the event's.
    let start = (3 << 59) | (LOW - 10);
    let mut builder = builder(Endian::Little, 8);
    builder.add(&Entry::Stamp { low: 20 }, 0);
    builder.add(&Entry::Short { delta: 1, words: 1 }, 1);
    let layout = builder.layout;
    let (records, _) = walk(&builder.page(start, 0, &[]), &layout, Endian::Little);
    assert_eq!(records, vec![((4 << 59) + 21, vec![1; 4])]);
}

#[test]
fn lost_events_are_counted_where_the_kernel_had_room() {
    const MISSED: u32 = 1 << 31;
    const STORED: u32 = 1 << 30;
    for endian in [Endian::Little, Endian::Big] {
        for long_size in [4, 8] {
            let count: Vec<u8> = match (endian, long_size) {
                (Endian::Little, 4) => 1234_u32.to_le_bytes().to_vec(),
                (Endian::Little, _) => 1234_u64.to_le_bytes().to_vec(),
                (Endian::Big, 4) => 1234_u32.to_be_bytes().to_vec(),
                (Endian::Big, _) => 1234_u64.to_be_bytes().to_vec(),
            };
            let header = |flags: u32, full: bool| {
                let mut builder = builder(endian, long_size);
                builder.add(&Entry::Short { delta: 1, words: 3 }, 0);
                if full {
                    builder.layout.data_size = builder.data.len();
                }
                let layout = builder.layout;
                let tail = if full { &[][..] } else { &count[..] };
                layout.header(&builder.page(9, flags, tail), endian).unwrap()
            };
            assert_eq!(header(0, false).missed, Missed::None);
            assert_eq!(header(MISSED, false).missed, Missed::Unknown);
            assert_eq!(header(MISSED | STORED, false).missed, Missed::Count(1234));
            assert_eq!(header(MISSED | STORED, false).length, 16);
            // The flag without the room for the number: believed, but not made up.
            assert_eq!(header(MISSED | STORED, true).missed, Missed::Unknown);
        }
    }
}

#[test]
fn records_that_reach_over_the_end_are_faults() {
    let last_words: [&[u32]; 4] = [
        &[10],                 // Ten words of data announced, none there.
        &[0, 4096],            // A long record longer than the page.
        &[0, 3],               // A length that does not even count itself.
        &[29 + (2 << 5), 999], // A discarded event longer than the page.
    ];
    for words in last_words {
        let mut builder = builder(Endian::Little, 8);
        builder.add(&Entry::Short { delta: 1, words: 2 }, 0);
        for word in words {
            builder.word(*word);
        }
        let layout = builder.layout;
        let (records, fault) = walk(&builder.page(0, 0, &[]), &layout, Endian::Little);
        assert_eq!(records.len(), 1);
        assert_eq!(fault, Some(PageFault::RecordPastEnd { at: layout.data_offset + 12 }), "{words:?}");
    }
}

#[test]
fn header_page_of_a_32_bit_kernel() {
    let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
                \tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n\
                \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
                \tfield: char data;\toffset:12;\tsize:4084;\tsigned:0;\n";
    let layout = PageLayout::parse(text, 8).unwrap();
    assert_eq!(layout, PageLayout::classic(4));
    assert_eq!(layout.page_size(), 4096);
    assert_eq!(PageLayout::parse("", 4).unwrap(), layout);
}

#[test]
fn header_page_that_makes_no_sense_is_refused() {
    let good = "field: u64 timestamp; offset:0; size:8; signed:0;\nfield: local_t commit; offset:8; size:8; signed:1;\n\
                field: char data; offset:16; size:4080; signed:0;\n";
    assert!(PageLayout::parse(good, 8).is_ok());
    for (from, to) in [
        ("size:8; signed:0", "size:4; signed:0"),
        ("size:8; signed:1", "size:3; signed:1"),
        ("offset:16", "offset:12"),
        ("size:4080", "size:99999999"),
        ("size:4080", "size:x"),
        ("char data", "char atad"),
    ] {
        let error = PageLayout::parse(&good.replacen(from, to, 1), 8).unwrap_err().to_string();
        assert!(error.starts_with("format of header_page: line "), "{error}");
    }
}
