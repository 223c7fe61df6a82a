//! The seeds of the fuzzers: small traces in every container, raw pages, and the texts of formats;
//! all made here, from the fixture.

use super::v7::{self, Codec};
use super::{fixture, input};
use ftrace::{TraceInput, write_v6};
use std::path::{Path, PathBuf};

/// What is damaged, and what is put over places at random.
pub(crate) struct Corpus {
    pub(crate) seeds: Vec<Vec<u8>>,
    /// Numbers of events.
    pub(crate) words: Vec<u16>,
}

/// Containers with few formats, for speed.
pub(crate) fn containers() -> Corpus {
    let dir = tempfile::tempdir().unwrap();
    let small = |recording, pages| {
        let mut small = cut(input(recording), dir.path(), pages);
        small.formats.truncate(3);
        small.ftrace_formats.clear();
        small
    };
    let (one, three) = (small("lost", 1), small("lost", 2));
    let mut seeds = vec![v6(&one, dir.path()), v6(&three, dir.path())];
    seeds.extend([Codec::None, Codec::Zlib, Codec::Zstd].map(|codec| v7::write(&three, codec, 1)));
    Corpus { seeds, words: words(&one) }
}

/// Traces of which every event of `formats` can be decoded: texts by name of the system. Those of
/// the fixture are added.
pub(crate) fn decodable(formats: Vec<(String, Vec<u8>)>) -> Corpus {
    let dir = tempfile::tempdir().unwrap();
    let mut whole = cut(input("whole"), dir.path(), 1);
    whole.ftrace_formats.clear();
    whole.formats.extend(formats);
    for (_, text) in &mut whole.formats {
        // Nobody reads the print format, so damage there would be wasted.
        let end = text.windows(10).position(|piece| piece == b"print fmt:").unwrap_or(text.len());
        text.truncate(end);
    }
    let seeds =
        vec![v6(&whole, dir.path()), v7::write(&whole, Codec::None, 1), v7::write(&whole, Codec::Zstd, 2)];
    Corpus { seeds, words: words(&whole) }
}

/// Raw pages as they come from `trace_pipe_raw`.
pub(crate) fn pages() -> Corpus {
    let page = |recording: &str, cpu: u32| {
        let path = fixture().join(recording).join(format!("cpu{cpu}.raw"));
        std::fs::read(path).unwrap()[..4096].to_vec()
    };
    let seeds = vec![page("whole", 0), page("lost", 1), page("lost", 3)];
    Corpus { seeds, words: words(&input("lost")) }
}

/// Texts: formats of events, of pages, symbols, constants, statistics.
pub(crate) fn texts() -> Corpus {
    let all = input("lost");
    let mut seeds: Vec<Vec<u8>> = all.formats.iter().take(12).map(|(_, text)| text.clone()).collect();
    seeds.extend([
        all.header_page,
        all.kallsyms,
        b"0xffff800009c50b70 : \"Rescheduling interrupts\"\n".to_vec(),
    ]);
    seeds.extend(all.stats.into_iter().map(|(_, text)| text.into_bytes()));
    Corpus { seeds, words: Vec::new() }
}

fn v6(input: &TraceInput, dir: &Path) -> Vec<u8> {
    let path = dir.join("v6.dat");
    write_v6(&path, input).unwrap();
    std::fs::read(path).unwrap()
}

fn cut(mut input: TraceInput, dir: &Path, pages: usize) -> TraceInput {
    input.cmdlines.truncate(40);
    input.stats.truncate(1);
    input.cpus.remove(2);
    input.cpus.remove(0);
    for (_, path) in &mut input.cpus {
        *path = cut_copy(dir, path, pages);
    }
    input
}

fn cut_copy(dir: &Path, from: &Path, pages: usize) -> PathBuf {
    let name = format!(
        "{pages}-{}-{}",
        from.parent().unwrap().file_name().unwrap().display(),
        from.file_name().unwrap().display()
    );
    let to = dir.join(name);
    let bytes = std::fs::read(from).unwrap();
    std::fs::write(&to, &bytes[..(pages * 4096).min(bytes.len())]).unwrap();
    to
}

fn words(input: &TraceInput) -> Vec<u16> {
    let id = |text: &[u8]| -> Option<u16> {
        let text = std::str::from_utf8(text).ok()?;
        text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()
    };
    input.formats.iter().filter_map(|(_, text)| id(text)).collect()
}
