//! The fixture recordings as inputs, for the tests of this crate.

#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod corpus;
pub(crate) mod execute;
pub(crate) mod mutate;
pub(crate) mod v7;

use std::path::{Path, PathBuf};

use ftrace::{Endian, EventStream, Formats, Item, TraceInput};

/// fixtures/traces/host-6.18 of the repository.
pub(crate) fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces/host-6.18")
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn sorted_dir(path: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect();
    entries.sort();
    entries
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// A recording (`whole` or `lost`) as input for the writer.
pub(crate) fn input(recording: &str) -> TraceInput {
    let root = fixture();
    let mut formats = Vec::new();
    let mut ftrace_formats = Vec::new();
    for system in sorted_dir(&root.join("events")).into_iter().filter(|p| p.is_dir()) {
        for event in sorted_dir(&system) {
            let text = read(&event.join("format"));
            if name(&system) == "ftrace" {
                ftrace_formats.push(text);
            } else {
                formats.push((name(&system), text));
            }
        }
    }
    let dir = root.join(recording);
    TraceInput {
        endian: Endian::Little,
        header_page: read(&root.join("events/header_page")),
        header_event: read(&root.join("events/header_event")),
        formats,
        ftrace_formats,
        kallsyms: b"ffffffff81000000 T _text\nffffffff81435200 T a_function\n".to_vec(),
        printk: Vec::new(),
        cmdlines: read(&dir.join("saved_cmdlines")),
        clock: "mono".to_owned(),
        uname: "Linux host 6.18.44 x86_64".to_owned(),
        page_size: 4096,
        cpus: (0..4).map(|cpu| (cpu, dir.join(format!("cpu{cpu}.raw")))).collect(),
        stats: (0..4).map(|cpu| (cpu, stats(recording, cpu))).collect(),
        buffers: Vec::new(),
    }
}

/// The kernel's statistics of a CPU's buffer after it was read out.
pub(crate) fn stats(recording: &str, cpu: u32) -> String {
    String::from_utf8(read(&fixture().join(recording).join(format!("cpu{cpu}.stats")))).unwrap()
}

/// One number of the statistics.
pub(crate) fn stat(recording: &str, cpu: u32, key: &str) -> u64 {
    let text = stats(recording, cpu);
    let line = text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
    line.unwrap().trim().parse().unwrap()
}

/// The formats of the fixture, as a reader without a trace.dat would load them.
pub(crate) fn formats(input: &TraceInput) -> Formats {
    let mut formats =
        Formats::new(input.endian, std::str::from_utf8(&input.header_page).unwrap(), 8).unwrap();
    for text in &input.ftrace_formats {
        formats.add("ftrace", std::str::from_utf8(text).unwrap()).unwrap();
    }
    for (system, text) in &input.formats {
        formats.add(system, std::str::from_utf8(text).unwrap()).unwrap();
    }
    formats
}

/// An item with its bytes copied, for comparisons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Owned {
    Event { ts_ns: u64, cpu: u32, id: u16, flags: u8, pid: i32, data: Vec<u8> },
    Lost { cpu: u32, count: Option<u64>, after_ts_ns: u64, before_ts_ns: u64 },
}

/// Everything a stream has.
pub(crate) fn collect(stream: &mut EventStream) -> Vec<Owned> {
    let mut items = Vec::new();
    while let Some(item) = stream.next().unwrap() {
        items.push(match item {
            Item::Event(e) => Owned::Event {
                ts_ns: e.ts_ns,
                cpu: e.cpu,
                id: e.id,
                flags: e.flags,
                pid: e.pid,
                data: e.data.to_vec(),
            },
            Item::Lost { cpu, count, after_ts_ns, before_ts_ns } => {
                Owned::Lost { cpu, count, after_ts_ns, before_ts_ns }
            }
        });
    }
    items
}

/// What a fuzzer has found: bytes that once made a reader panic, hang or take too much, by name of
/// the file.
pub(crate) fn regressions() -> Vec<(String, Vec<u8>)> {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../ftrace/tests/regressions");
    let files =
        sorted_dir(&place).into_iter().filter(|path| path.extension().is_some_and(|end| end == "bin"));
    files.map(|path| (name(&path), read(&path))).collect()
}
