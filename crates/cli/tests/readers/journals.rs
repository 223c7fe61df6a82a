//! Journals, of this schema and of earlier ones: the change in a line must lie within what its kind
//! may touch, whoever wrote it and even with a valid checksum.

use super::common::mutate::Rng;
use super::{Outcome, Reader, fixture, in_scratch, owners, words};
use journal::{Change, Entry, Phase, encode, read as read_journal};
use machine::{Root, mounts};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Component, Path};

const SUM: &str = ",\"crc\":";

pub(crate) fn reader() -> Reader {
    let earlier =
        ["run", "isolated", "deployed"].map(|name| fixture(&format!("fixtures/journals/{name}.jsonl")));
    let mut seeds: Vec<_> = earlier.iter().flat_map(|bytes| lines_of_each_kind(bytes)).collect();
    let known: Vec<_> = seeds.iter().filter_map(|seed| as_now(seed)).collect();
    seeds.extend(known);
    seeds.extend(of_no_fixture());
    Reader { name: "journal", seeds, damage, read, short: 3_000 }
}

/// Of a journal the first short line of each kind, each a journal by itself.
fn lines_of_each_kind(journal: &[u8]) -> Vec<Vec<u8>> {
    let mut seen = std::collections::BTreeSet::new();
    let text = String::from_utf8_lossy(journal).into_owned();
    let lines = text.lines().filter(|line| line.len() < 3_000).filter(|line| {
        let value: Value = serde_json::from_str(line).unwrap();
        seen.insert((value["kind"].to_string(), value["id"].to_string(), value["phase"].to_string()))
    });
    lines.map(|line| format!("{line}\n").into_bytes()).collect()
}

/// The same in the current schema.
fn as_now(line: &[u8]) -> Option<Vec<u8>> {
    let contents = parsed(line);
    let entry = contents.open.first()?;
    Some(encode(entry).unwrap().into_bytes())
}

/// Kinds that no journal of the earlier schema has, or none of the stored ones.
fn of_no_fixture() -> Vec<Vec<u8>> {
    let lines = [
        ("kprobe", r#"{"file":"/sys/kernel/tracing/kprobe_events","event":"stillcore/x"}"#),
        ("module", r#"{"name":"zram","file":"/lib/modules/6.1.0/kernel/zram.ko","was_loaded":false}"#),
        ("child", r#"{"pid":2147483647,"start":7}"#),
        ("swap", r#"{"mechanism":"swap","target":"/swap\\040file","old":{"on":-2},"new":"off"}"#),
        (
            "held",
            r#"{"mechanism":"x","target":{"file":"/dev/cpu_dma_latency","value":"0"},"old":"not held","new":"held"}"#,
        ),
        (
            "member",
            r#"{"mechanism":"x","target":{"id":4194303,"start":9,"name":"x"},"old":"/sys/fs/cgroup/a","new":"/sys/fs/cgroup/b"}"#,
        ),
        (
            "controller",
            r#"{"mechanism":"x","target":{"group":"/sys/fs/cgroup/a","controller":"cpuset"},"old":"off","new":"on"}"#,
        ),
        ("group", r#"{"mechanism":"x","target":"/sys/fs/cgroup/stillcore","old":"absent","new":"present"}"#),
        ("service", r#"{"mechanism":"x","target":"irqbalance.service","old":"active","new":"inactive"}"#),
        (
            "flag",
            r#"{"mechanism":"x","target":{"file":"/sys/kernel/debug/sched/features","flag":"HRTICK"},"old":"on","new":"off"}"#,
        ),
    ];
    let line = |(kind, change): (&str, &str)| {
        let body = format!(
            r#"{{"schema":"stillcore.journal/2","seq":1,"boot_id":"b","phase":"intent","kind":"{kind}","version":1,"change":{change}"#
        );
        signed(&format!("{body}{SUM}0}}")).into_bytes()
    };
    lines.into_iter().map(line).collect()
}

/// Words are damaged, and most lines get the checksum that a forger would compute.
fn damage(seeds: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..=rng.below(3) {
        bytes.extend(words::mutate(seeds, rng));
    }
    if rng.below(6) == 0 {
        return super::bytes(&[bytes], rng);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let planted = if rng.below(3) == 0 { elsewhere(&text, rng) } else { text };
    planted.lines().map(signed).collect::<String>().into_bytes()
}

/// Every path, or one after another, leads elsewhere.
fn elsewhere(text: &str, rng: &mut Rng) -> String {
    const TO: [&str; 10] = [
        "/etc/shadow",
        "/srv/x",
        "/sys/../etc/shadow",
        "/proc/1/mem",
        "/srv/x/kprobe_events",
        "/srv/tracefs-1",
        "/srv/instances/stillcore-1",
        "/srv/stillcore-1",
        "/srv\\\\057..\\\\057x",
        "/",
    ];
    let mut pieces = text.split("\"/").peekable();
    let mut made = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        if rng.below(2) == 0 {
            let end = piece.find('"').unwrap_or(piece.len());
            let _ = write!(made, "\"{}{}", TO[rng.below(TO.len())], &piece[end..]);
        } else {
            let _ = write!(made, "\"/{piece}");
        }
    }
    made
}

/// A line with the right checksum for its contents.
fn signed(line: &str) -> String {
    let line = line.trim_end();
    if !line.contains("\"schema\"") {
        return earlier(line).unwrap_or_else(|| format!("{line}\n"));
    }
    let body = line.rsplit_once(SUM).map_or(line, |(body, _)| body);
    format!("{body}{SUM}{}}}\n", crc32fast::hash(body.as_bytes()))
}

/// The checksum of a line of the earlier schema (`journal::earlier`).
fn earlier(line: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(line).ok()?;
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let capital = |text: &str| -> String {
        let mut letters = text.chars();
        letters
            .next()
            .map_or_else(String::new, |first| first.to_ascii_uppercase().to_string() + letters.as_str())
    };
    let phase = capital(&text("phase")?);
    let mut all = format!(
        "{}\0{}\0{}\0{}\0{:?}\0{:?}\0{phase}",
        value.get("seq")?.as_u64()?,
        text("boot_id")?,
        text("id")?,
        text("target")?,
        text("old"),
        text("new"),
    );
    let kind = text("kind").map(|kind| capital(&kind));
    if kind.is_some() || text("read_back").is_some() {
        // As `Debug` prints a name without fields.
        let kind = kind.map_or_else(|| "None".to_owned(), |kind| format!("Some({kind})"));
        let _ = write!(all, "\0{kind}\0{:?}", text("read_back"));
    }
    value["crc"] = crc32fast::hash(all.as_bytes()).into();
    Some(format!("{value}\n"))
}

fn parsed(bytes: &[u8]) -> journal::Contents {
    in_scratch(|scratch| {
        let path = scratch.at("journal.jsonl");
        fs::write(&path, bytes).unwrap();
        read_journal(&path, owners::all()).unwrap()
    })
}

fn read(bytes: &[u8]) -> Outcome {
    let contents = parsed(bytes);
    for refused in &contents.refused {
        let _ = refused.to_string();
        assert!(refused.line as u64 <= contents.lines);
    }
    for entry in &contents.open {
        let change = &*entry.change;
        let _ = (change.describe(), change.in_full(), change.outlives_boot());
        if change.bounds().is_ok() {
            within(change);
        }
        again(entry);
    }
    match (contents.open.is_empty(), contents.refused.is_empty()) {
        (_, true) => Outcome::Whole,
        (false, false) => Outcome::Partial,
        (true, false) => Outcome::Refused,
    }
}

/// Written again it is the same change.
fn again(entry: &Entry) {
    let line = encode(&Entry { phase: Phase::Done, ..entry.clone() }).unwrap();
    let contents = parsed(line.as_bytes());
    let same = contents.open.first().map(|again| format!("{:?}", again.change));
    assert_eq!(same, Some(format!("{:?}", entry.change)), "{line}");
}

/// Every path that undoing the change may write to.
fn within(change: &dyn Change) {
    let fields = change.fields().unwrap();
    let kind = change.form().kind;
    let path = |pointer: &str| fields.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let all = |pointers: &[&str], may: fn(&Path) -> bool| {
        for pointer in pointers {
            if let Some(text) = path(pointer) {
                assert!(
                    plain(Path::new(&text)) && may(Path::new(&text)),
                    "{kind} may touch {text}: {fields}"
                );
            }
        }
    };
    let setting: fn(&Path) -> bool = |path| {
        ["/proc/sys", "/proc/irq", "/sys"].iter().any(|place| path.starts_with(place))
            || in_mount(path, &["cgroup", "cgroup2", "cpuset"])
    };
    let group: fn(&Path) -> bool = |path| in_mount(path, &["cgroup", "cgroup2", "cpuset"]);
    match kind {
        "value" => all(&["/path"], setting),
        "file" | "kept" => all(&["/target"], setting),
        "flag" => all(&["/target/file"], setting),
        "group" | "cgroup" => all(&["/target", "/path"], group),
        "controller" => all(&["/target/group"], group),
        // Where a process is moved to is a value; undoing moves it to the old one.
        "member" => all(&["/old"], group),
        "held" => all(&["/target/file"], |path| path == Path::new("/dev/cpu_dma_latency")),
        "kprobe" => all(&["/file"], |path| named(path, "kprobe_events") && on_tracefs(path)),
        "trace-instance" => all(&["/path"], |path| named(path, "stillcore-") && on_tracefs(path)),
        "directory" | "tracefs-mount" => all(&["/path"], |path| named(path, "tracefs-")),
        "module" => all(&["/file"], |path| {
            ["/lib/modules/", "/usr/lib/modules/", "/lab/"].iter().any(|place| path.starts_with(place))
        }),
        // No paths: of a process its number and start, of a unit its name, of swap an area that the
        // kernel lists.
        "child" | "task" | "stopped-process" | "service" | "swap" | "affinities" | "shaken-affinities"
        | "isolation" | "keep" | "immovable" | "watch" => {}
        other => panic!("what may {other} touch?"),
    }
}

fn plain(path: &Path) -> bool {
    path.is_absolute()
        && path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)))
}

fn named(path: &Path, beginning: &str) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning))
}

/// Whether the nearest mount above is of one of these file systems.
fn in_mount(path: &Path, kinds: &[&str]) -> bool {
    let all = mounts(&Root::live());
    let nearest = all.iter().filter(|mount| path.starts_with(&mount.target));
    let nearest = nearest.max_by_key(|mount| mount.target.len());
    nearest.is_some_and(|mount| kinds.contains(&mount.kind.as_str()))
}

/// On tracefs, or on no file at all.
fn on_tracefs(path: &Path) -> bool {
    in_mount(path, &["tracefs"]) || fs::symlink_metadata(path).is_err()
}
