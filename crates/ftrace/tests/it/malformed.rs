//! Broken input: never a panic or a hang, and every loss is reported.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use crate::common::v7::Codec;
use crate::common::{Owned, collect, input};
use ftrace::{EventStream, Item, TraceFile, TraceInput, write_v6};
use proptest::prelude::*;

/// A small input: few formats, two CPUs with the first `pages` pages of the recording.
fn small(dir: &Path, pages: usize) -> TraceInput {
    let mut small = input("lost");
    small.formats.truncate(3);
    small.ftrace_formats.clear();
    small.cmdlines.truncate(40);
    small.stats.truncate(1);
    small.cpus = [1, 3].map(|cpu| (cpu, cut_copy(dir, &small.cpus[cpu as usize].1, pages))).to_vec();
    small
}

fn cut_copy(dir: &Path, from: &Path, pages: usize) -> PathBuf {
    let to = dir.join(from.file_name().unwrap());
    let bytes = std::fs::read(from).unwrap();
    std::fs::write(&to, &bytes[..(pages * 4096).min(bytes.len())]).unwrap();
    to
}

fn containers(pages: usize) -> Vec<(&'static str, Vec<u8>)> {
    let dir = tempfile::tempdir().unwrap();
    let input = small(dir.path(), pages);
    let v6 = dir.path().join("v6.dat");
    write_v6(&v6, &input).unwrap();
    vec![
        ("v6", std::fs::read(&v6).unwrap()),
        ("v7", crate::common::v7::write(&input, Codec::None, 2)),
        ("v7 zlib", crate::common::v7::write(&input, Codec::Zlib, 2)),
        ("v7 zstd", crate::common::v7::write(&input, Codec::Zstd, 2)),
    ]
}

static SMALL: LazyLock<Vec<(&'static str, Vec<u8>)>> = LazyLock::new(|| containers(3));

/// Reads to the end, if it can be opened; the items and the number of damaged places.
fn read(bytes: &[u8]) -> Option<(Vec<Owned>, u64)> {
    let file = TraceFile::from_bytes("mutated", bytes.to_vec()).ok()?;
    let mut stream = file.stream().ok()?;
    let items = collect(&mut stream);
    Some((items, stream.damaged()))
}

fn events(items: &[Owned]) -> Vec<&Owned> {
    items.iter().filter(|i| matches!(i, Owned::Event { .. })).collect()
}

#[test]
fn a_file_cut_anywhere_is_an_error_or_says_what_is_missing() {
    for (name, bytes) in &containers(1) {
        let (whole, damaged) = read(bytes).unwrap();
        assert_eq!(damaged, 0);
        assert!(whole.len() > 20);
        let mut partial = 0;
        for length in 0..bytes.len() {
            let Some((items, damaged)) = read(&bytes[..length]) else { continue };
            let (some, all) = (events(&items), events(&whole));
            assert!(
                some.iter().all(|e| all.contains(e)),
                "{name} cut at {length}: an event that was not there"
            );
            if some.len() < all.len() {
                partial += 1;
                assert!(
                    damaged > 0,
                    "{name} cut at {length}: {} events missing unsaid",
                    all.len() - some.len()
                );
                let has_loss = items.iter().any(|i| matches!(i, Owned::Lost { count: None, .. }));
                assert!(has_loss, "{name} cut at {length}");
            }
        }
        // In version 7 the options stand at the end, so a cut file is no file.
        assert_eq!(partial > 0, *name == "v6", "{name}: {partial}");
    }
}

#[test]
fn bytes_that_are_no_trace_get_a_clear_sentence() {
    let cases: [(&[u8], &str); 6] = [
        (b"", "ends inside magic number"),
        (b"PERFILE2 and so on", "byte 0: magic number of trace.dat is `PERFILE2 a`"),
        (
            b"\x17\x08\x44tracing5\0\0\x08\0\0\0\0",
            "version of trace.dat `5` is not supported, expected 6 or 7",
        ),
        (b"\x17\x08\x44tracing6\0\x02\x08", "byte 12: byte order is 2, expected 0 (little) or 1 (big)"),
        (b"\x17\x08\x44tracing6\0\0\x07", "byte 13: size of a long is 7, expected 4 or 8"),
        (b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0lzma\x001\0", "compression `lzma` is not supported"),
    ];
    for (bytes, expected) in cases {
        let error = TraceFile::from_bytes("some.dat", bytes.to_vec()).unwrap_err().to_string();
        assert!(error.starts_with("some.dat: ") && error.contains(expected), "{error}");
    }
    let error = TraceFile::open(Path::new("no/such/file")).unwrap_err().to_string();
    assert!(error.starts_with("no/such/file: cannot open: "), "{error}");
}

/// A damaged file must end after as many items as it can hold at most.
fn bounded(stream: &mut EventStream, limit: u64) -> u64 {
    let mut events = 0;
    let mut items = 0;
    while let Some(item) = stream.next().unwrap() {
        items += 1;
        if let Item::Event(event) = item {
            assert!(event.data.len() >= 8);
            events += 1;
        }
        assert!(items <= limit, "more items than the bytes can hold");
    }
    events
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn flipped_bytes_never_panic_or_hang(
        which in 0_usize..4,
        flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = SMALL[which].1.clone();
        for (place, value) in flips {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        // Compressed data may hold more than its own size: at most what the reader allows a chunk,
        // for each lane.
        let limit = if which < 2 { bytes.len() as u64 } else { 600 << 20 };
        if let Ok(file) = TraceFile::from_bytes("mutated", bytes) {
            for buffer in file.buffers() {
                bounded(&mut file.stream_buffer(buffer).unwrap(), limit);
            }
            let _ = file.symbols();
            let _ = file.printk_formats();
        }
    }

    #[test]
    fn random_pages_never_panic_and_stay_inside(
        pages in proptest::collection::vec(any::<u8>(), 0..9000),
        first in any::<u32>(),
        length in 0_u64..4200,
    ) {
        let mut pages = pages;
        // A plausible header, so that the records are reached.
        if let Some(header) = pages.get_mut(8..20) {
            header[..8].copy_from_slice(&length.to_le_bytes());
            header[8..].copy_from_slice(&first.to_le_bytes());
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("cpu0.raw");
        std::fs::write(&path, &pages).unwrap();
        let formats = crate::common::formats(&input("whole"));
        let mut stream = ftrace::stream_raw(&formats, &[(0, path)]).unwrap();
        bounded(&mut stream, pages.len() as u64);
    }
}
