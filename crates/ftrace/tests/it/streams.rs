//! Streams over synthetic pages of any size: the merge is a sort, holes and damaged pages come in
//! their place.

use std::path::{Path, PathBuf};

use crate::common::v7::Codec;
use crate::common::{Owned, collect};
use ftrace::{
    Counts, Endian, EventStream, Formats, Item, Reader, TraceFile, TraceInput, stream_raw, write_v6,
};
use proptest::prelude::*;

const FORMAT: &str = "name: tick\nID: 9\nformat:\n\
                      \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                      \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                      \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
                      \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
                      \tfield:unsigned int n;\toffset:8;\tsize:4;\tsigned:0;\n";

fn header_page(page_size: usize) -> String {
    format!(
        "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
         \tfield: char data;\toffset:16;\tsize:{};\tsigned:0;\n",
        page_size - 16
    )
}

/// A page with events of these deltas after `now`; gives the times.
fn page(now: u64, deltas: &[u32], page_size: usize, flags: u32, count: u64) -> (Vec<u8>, Vec<u64>) {
    let (mut bytes, mut times, mut now) = (now.to_le_bytes().to_vec(), Vec::new(), now);
    bytes.extend(u64::from((16 * deltas.len() as u32) | flags).to_le_bytes());
    for delta in deltas {
        now += u64::from(*delta);
        times.push(now);
        bytes.extend((3 | delta << 5).to_le_bytes());
        bytes.extend([9, 0, 4, 0]);
        bytes.extend((-5_i32).to_le_bytes());
        bytes.extend((times.len() as u32).to_le_bytes());
    }
    bytes.extend(count.to_le_bytes());
    assert!(bytes.len() <= page_size);
    bytes.resize(page_size, 0);
    (bytes, times)
}

fn input(dir: &Path, page_size: usize, cpus: &[(u32, Vec<u8>)]) -> TraceInput {
    let files = cpus.iter().map(|(cpu, bytes)| {
        let path: PathBuf = dir.join(format!("{cpu}.raw"));
        std::fs::write(&path, bytes).unwrap();
        (*cpu, path)
    });
    TraceInput {
        header_page: header_page(page_size).into_bytes(),
        formats: vec![("t".to_owned(), FORMAT.as_bytes().to_vec())],
        clock: "mono".to_owned(),
        page_size: page_size as u32,
        cpus: files.collect(),
        ..TraceInput::default()
    }
}

fn formats(page_size: usize) -> Formats {
    let mut formats = Formats::new(Endian::Little, &header_page(page_size), 8).unwrap();
    formats.add("t", FORMAT).unwrap();
    formats
}

fn times(stream: &mut EventStream) -> Vec<(u64, u32)> {
    let items = collect(stream);
    let time = |item: &Owned| match item {
        Owned::Event { ts_ns, cpu, id: 9, flags: 4, pid: -5, .. } => (*ts_ns, *cpu),
        other => panic!("{other:?}"),
    };
    items.iter().map(time).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_merge_is_a_sort(
        order in 10_u32..=18,
        lanes in proptest::collection::vec(
            (1_u64..5000, proptest::collection::vec(proptest::collection::vec(0_u32..3000, 0..50), 0..30)),
            0..6,
        ),
    ) {
        let page_size = 1 << order;
        let (mut cpus, mut expected) = (Vec::new(), Vec::new());
        for (lane, (start, pages)) in lanes.iter().enumerate() {
            // Gaps between the numbers, as on a machine where some CPUs are not traced.
            let cpu = 3 * lane as u32 + 1;
            let (mut now, mut bytes) = (*start, Vec::new());
            for deltas in pages {
                let (page, times) = page(now, deltas, page_size, 0, 0);
                now = times.last().copied().unwrap_or(now);
                bytes.extend(page);
                expected.extend(times.into_iter().map(|t| (t, cpu)));
            }
            cpus.push((cpu, bytes));
        }
        expected.sort_unstable();
        let dir = tempfile::tempdir().unwrap();
        let input = input(dir.path(), page_size, &cpus);
        prop_assert_eq!(&times(&mut stream_raw(&formats(page_size), &input.cpus).unwrap()), &expected);
        let v6 = dir.path().join("v6.dat");
        write_v6(&v6, &input).unwrap();
        prop_assert_eq!(&times(&mut TraceFile::open(&v6).unwrap().stream().unwrap()), &expected);
        for codec in [Codec::None, Codec::Zlib] {
            let v7 = TraceFile::from_bytes("v7", crate::common::v7::write(&input, codec, 3)).unwrap();
            prop_assert_eq!(&times(&mut v7.stream().unwrap()), &expected);
        }
    }
}

/// Three pages of two events; the second page can be spoilt.
fn three_pages(spoil: impl Fn(&mut Vec<u8>), flags: u32) -> (Vec<Owned>, Vec<ftrace::Damage>) {
    let mut bytes = page(100, &[0, 10], 256, 0, 0).0;
    let mut second = page(200, &[0, 10], 256, flags, 77).0;
    spoil(&mut second);
    bytes.extend(second);
    bytes.extend(page(300, &[0, 10], 256, 0, 0).0);
    let dir = tempfile::tempdir().unwrap();
    let input = input(dir.path(), 256, &[(2, bytes)]);
    let formats = formats(256);
    let mut stream = stream_raw(&formats, &input.cpus).unwrap();
    let items = collect(&mut stream);
    (items, stream.damage().cloned().collect())
}

/// A time; of a hole: the time before it, then its count and the time behind it.
type Entry = (u64, Option<(Option<u64>, u64)>);

fn short(items: &[Owned]) -> Vec<Entry> {
    let entry = |item: &Owned| match *item {
        Owned::Event { ts_ns, .. } => (ts_ns, None),
        Owned::Lost { count, after_ts_ns, before_ts_ns, cpu: 2 } => {
            (after_ts_ns, Some((count, before_ts_ns)))
        }
        Owned::Lost { .. } => panic!("{item:?}"),
    };
    items.iter().map(entry).collect()
}

#[test]
fn a_hole_stands_between_the_event_before_and_the_page_behind() {
    let (items, damage) = three_pages(|_| {}, 1 << 31 | 1 << 30);
    let event = |t: u64| (t, None);
    let hole = (110, Some((Some(77), 200)));
    assert_eq!(short(&items), [event(100), event(110), hole, event(200), event(210), event(300), event(310)]);
    assert!(damage.is_empty());
    let (items, _) = three_pages(|_| {}, 1 << 31);
    assert_eq!(short(&items)[2], (110, Some((None, 200))));
}

#[test]
fn a_cpu_of_two_buffers_is_counted_once_with_the_losses_of_both() {
    let dir = tempfile::tempdir().unwrap();
    let whole = page(100, &[0, 10], 256, 0, 0).0;
    let hole = [page(105, &[0], 256, 0, 0).0, page(200, &[0], 256, 1 << 31 | 1 << 30, 77).0].concat();
    let file = |name: &str, bytes: &[u8]| {
        let path = dir.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    };
    let (whole, hole) = (file("whole", &whole), file("hole", &hole));
    let formats = formats(256);
    for order in [[&whole, &hole], [&hole, &whole]] {
        let lanes = order.map(|path| (2, path.clone()));
        let counts = Counts::of(&formats, &mut stream_raw(&formats, &lanes).unwrap()).unwrap();
        let lost: Vec<_> = counts.lost.iter().map(|(cpu, lost)| (*cpu, lost.events)).collect();
        assert_eq!((counts.total, lost, counts.is_complete()), (4, vec![(2, 77)], false));
        assert_eq!(counts.per_cpu[&2]["tick"], 4);
    }
}

#[test]
fn a_damaged_page_costs_what_is_in_it_and_no_more() {
    let event = |t: u64| (t, None);
    let lost_after = |t: u64| (t, Some((None, u64::MAX)));
    // The commit word claims more than a page.
    let (items, damage) = three_pages(|page| page[8..10].copy_from_slice(&9999_u16.to_le_bytes()), 0);
    assert_eq!(short(&items), [event(100), event(110), lost_after(110), event(300), event(310)]);
    assert_eq!((damage.len(), damage[0].cpu, damage[0].offset), (1, 2, 256));
    // The second record of the page reaches over the end.
    let (items, damage) = three_pages(|page| page[32] = 28, 0);
    assert_eq!(short(&items), [event(100), event(110), event(200), lost_after(200), event(300), event(310)]);
    assert_eq!(damage[0].what, "record at page byte 32 reaches over the end of the page");
    // A record of four bytes has no room for a pid.
    let (items, damage) = three_pages(|page| page[16] = 1, 0);
    assert_eq!(short(&items), [event(100), event(110), lost_after(110), event(300), event(310)]);
    assert_eq!(damage[0].what, "record at page byte 20 is too short for its common fields");
}

#[test]
fn a_compressed_chunk_that_is_broken_ends_its_cpu_only() {
    let dir = tempfile::tempdir().unwrap();
    let lane =
        |start: u64| (0..4).flat_map(|i| page(start + 100 * i, &[0, 10], 1024, 0, 0).0).collect::<Vec<u8>>();
    let input = input(dir.path(), 1024, &[(0, lane(100)), (1, lane(150))]);
    let mut bytes = crate::common::v7::write(&input, Codec::Zlib, 2);
    let whole = TraceFile::from_bytes("v7", bytes.clone()).unwrap();
    let first = whole.buffers()[0].cpus[0];
    // Into the first chunk's data: behind the number of chunks and two sizes.
    bytes[first.offset as usize + 12 + 4] ^= 0xff;
    let file = TraceFile::from_bytes("v7", bytes).unwrap();
    let mut stream = file.stream().unwrap();
    let items = collect(&mut stream);
    let of = |wanted: u32| {
        items.iter().filter(|i| matches!(i, Owned::Event { cpu, .. } if *cpu == wanted)).count()
    };
    assert_eq!((of(0), of(1)), (0, 8));
    assert!(items.iter().any(|i| matches!(i, Owned::Lost { cpu: 0, count: None, .. })));
    let damage: Vec<_> = stream.damage().collect();
    assert_eq!((damage.len(), damage[0].offset), (1, first.offset));
    assert!(damage[0].what.contains("chunk is not a zlib stream"), "{}", damage[0].what);
}

#[test]
fn a_stream_from_a_time_on_has_every_event_since() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small/trace.dat");
    let file = TraceFile::open(&path).unwrap();
    let [first, last] = file.extent(&[""]).unwrap().unwrap();
    let events = |mut stream: EventStream| {
        let mut events = Vec::new();
        while let Some(item) = stream.next().unwrap() {
            if let Item::Event(event) = item {
                events.push((event.ts_ns, event.cpu, event.id));
            }
        }
        events
    };
    let all = events(file.stream().unwrap());
    assert!(first <= all[0].0 && last <= all[all.len() - 1].0);
    for from in [0, first, first + (last - first) / 3, last, u64::MAX] {
        let some = events(file.stream_buffers_from(Reader::Beginning, &[""], from).unwrap().unwrap());
        let since = |events: &[(u64, u32, u16)]| -> Vec<_> {
            events.iter().copied().filter(|event| event.0 >= from).collect()
        };
        assert_eq!(since(&some), since(&all));
        assert!(from != last || some.len() < all.len());
    }
}
