//! `stillcore trace export`: the files contain what the attribution found, event by event; refusals
//! leave nothing behind.

use crate::support::{assert_refused, stillcore};
use attribution::attribute::events::Attributed;
use attribution::attribute::windows::{attributed_in, windows_of};
use ftrace::TraceFile;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small")
}

/// Exports the stored run (or its trace) and returns the answer.
fn exported(source: &Path, arguments: &[&Path]) -> Value {
    let output = stillcore(&["trace", "export", "--json"]).arg(source).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Every span of the stored run, as the attribution gives them.
fn spans() -> Vec<Attributed> {
    let run = model::run::stored::read_run(&fixture()).unwrap();
    let file = TraceFile::open(&fixture().join("trace.dat")).unwrap();
    let mut spans = Vec::new();
    attributed_in(&file, &[""], &windows_of(&run), |span| {
        spans.push(span);
        Ok::<_, attribution::Error>(())
    })
    .unwrap();
    spans
}

/// Events of a Chrome file by process: 1 what ran, 2 samples.
fn chrome(file: &Path) -> BTreeMap<(u64, String), u64> {
    let file: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let mut counts = BTreeMap::new();
    for event in file["traceEvents"].as_array().unwrap() {
        let phase = event["ph"].as_str().unwrap();
        if matches!(phase, "X" | "i") {
            let category = event["cat"].as_str().unwrap().to_owned();
            *counts.entry((event["pid"].as_u64().unwrap(), category)).or_default() += 1;
        }
    }
    counts
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let length = bytes.iter().position(|byte| *byte < 0x80).unwrap() + 1;
    let (head, rest) = bytes.split_at(length);
    *bytes = rest;
    head.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
}

/// The fields of a message: number, and value or length-delimited bytes.
fn fields(mut bytes: &[u8]) -> Vec<(u64, u64, &[u8])> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let (key, value) = (varint(&mut bytes), varint(&mut bytes));
        let length = if key & 7 == 2 { value as usize } else { 0 };
        let (inside, rest) = bytes.split_at(length);
        bytes = rest;
        fields.push((key >> 3, value, inside));
    }
    fields
}

/// Track events by type: 1 begin, 2 end, 3 instant, 4 counter (`TracePacket` 1, `track_event` 11,
/// `type` 9).
fn perfetto(file: &Path) -> BTreeMap<u64, u64> {
    let bytes = fs::read(file).unwrap();
    let mut counts = BTreeMap::new();
    for (_, _, packet) in fields(&bytes) {
        for (_, _, event) in fields(packet).into_iter().filter(|field| field.0 == 11) {
            let kind = fields(event).into_iter().find(|field| field.0 == 9).unwrap().1;
            *counts.entry(kind).or_default() += 1;
        }
    }
    counts
}

#[test]
fn every_format_holds_every_event_of_the_attribution() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let [perfetto_file, chrome_file, dat, table] = ["a.pftrace", "a.json", "a.dat", "a.parquet"].map(at);
    let flag = |name: &'static str| Path::new(name);
    let answer = exported(
        &fixture(),
        &[
            flag("--perfetto"),
            &perfetto_file,
            flag("--chrome"),
            &chrome_file,
            flag("--dat"),
            &dat,
            flag("--parquet"),
            &table,
        ],
    );
    let spans = spans();
    let events = spans.iter().filter(|span| span.counts).count();
    assert_eq!(answer["events"], events);
    assert_eq!(answer["continued"], spans.len() - events);
    assert_eq!((&answer["holes"], &answer["cpus"]), (&Value::from(0), &Value::from("2")));
    assert_eq!(answer["files"].as_array().unwrap().len(), 4);

    let run = model::run::stored::read_run(&fixture()).unwrap();
    let samples: u64 = run.probes.iter().map(|probe| probe.samples).sum();
    assert_eq!(answer["samples"], samples);

    let counted = chrome(&chrome_file);
    let mut wanted: BTreeMap<(u64, String), u64> = BTreeMap::new();
    for span in &spans {
        *wanted.entry((1, span.class.name().to_owned())).or_default() += 1;
    }
    wanted.insert((2, "sample".to_owned()), samples);
    assert_eq!(counted, wanted);

    let counted = perfetto(&perfetto_file);
    assert_eq!(counted[&1], counted[&2], "every span that begins ends");
    assert_eq!(counted[&1] + counted[&3], spans.len() as u64 + samples);
    assert_eq!(counted[&4], samples);

    assert_eq!(fs::read(dat).unwrap(), fs::read(fixture().join("trace.dat")).unwrap());
    let table = fs::read(table).unwrap();
    assert!(table.starts_with(b"PAR1") && table.ends_with(b"PAR1"));
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 4, "something was left beside the files");
}

/// The analysis counts only events within the measured time of a probe. For that time the export
/// has the same events.
#[test]
fn classes_count_what_the_analysis_counts() {
    let run = model::run::stored::read_run(&fixture()).unwrap();
    let analysis = analysis::analyse(&fixture()).unwrap();
    let spans = spans();
    for window in &analysis.events {
        let same = |probe: &&model::run::ProbeRecord| {
            (probe.probe(), probe.cpu, &probe.phase) == (window.probe, window.cpu, &window.phase)
        };
        let probe = run.probes.iter().find(same).unwrap();
        let stretches = match probe.noise() {
            Some(_) => probe.slices(),
            None => vec![[probe.t0_ns, probe.t1_ns]],
        };
        let inside = |span: &&Attributed| {
            let touches = |[t0, t1]: &[i64; 2]| span.t0_ns < *t1 && (*t0 <= span.t0_ns || *t0 < span.t1_ns);
            span.counts && span.cpu == probe.cpu && stretches.iter().any(touches)
        };
        for class in &window.classes {
            let seen = spans.iter().filter(inside).filter(|span| span.class == class.class).count() as u64;
            assert_eq!(seen, class.count, "{} in {} {:?}", class.class.name(), window.phase, window.probe);
        }
    }
}

#[test]
fn a_trace_by_itself_is_exported_from_its_first_event_to_its_last() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    let answer = exported(&fixture().join("trace.dat"), &[Path::new("--chrome"), &file]);
    assert_eq!((&answer["windows"], &answer["samples"]), (&Value::from(1), &Value::from(0)));
    let all: u64 = chrome(&file).values().sum();
    assert_eq!(answer["events"].as_u64().unwrap() + answer["continued"].as_u64().unwrap(), all);
    assert!(all > 0);
}

#[test]
fn refusals_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new.json");
    let refused = |source: &Path, arguments: &[&str], expected: &[&str]| {
        let output = stillcore(&["trace", "export"]).arg(source).args(arguments).output().unwrap();
        assert_refused(&output, expected);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    };
    let name = new.to_str().unwrap();
    refused(&fixture(), &[], &["--perfetto"]);
    refused(&fixture(), &["--chrome", name, "--parquet", name], &["--chrome and as --parquet"]);
    refused(&fixture(), &["--chrome", name, "--cpus", "0"], &["CPU 0", "2, the CPUs that were measured"]);
    refused(&fixture(), &["--chrome", "/dev/null"], &["/dev/null", "no regular file"]);
    refused(&fixture(), &["--chrome", "/"], &["/", "the name of a file"]);
    refused(Path::new("/nowhere"), &["--chrome", name], &["/nowhere", "No such file"]);
    let own = fixture().join("run.json");
    refused(&fixture(), &["--chrome", own.to_str().unwrap()], &["run.json", "that is what is exported"]);
    let missing = folder.path().join("no/such/folder.json");
    refused(&fixture(), &["--chrome", missing.to_str().unwrap()], &["folder.json", "No such file"]);
}

#[test]
fn a_file_that_is_no_trace_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let output = stillcore(&["trace", "export"])
        .arg(fixture().join("run.json"))
        .arg("--chrome")
        .arg(folder.path().join("a.json"))
        .output()
        .unwrap();
    assert_refused(&output, &["run.json"]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_trace_in_the_newer_version_holds_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let counts = |file: &Path| {
        let output = stillcore(&["trace", "counts", "--json", "--buffer", "all"]).arg(file).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    let wanted = counts(&fixture().join("trace.dat"));
    assert!(wanted["total"].as_u64().unwrap() > 0);
    for compression in ["none", "zstd"] {
        let file = folder.path().join(compression);
        let order = ["--version", "7", "--compression", compression, "--dat"].map(Path::new);
        exported(&fixture(), &[&order[..], &[&file]].concat());
        assert_eq!(TraceFile::open(&file).unwrap().version(), 7);
        assert_eq!(counts(&file), wanted, "{compression}");
    }
    let back = folder.path().join("back");
    let mut command = stillcore(&["trace", "export", "--version", "6", "--dat"]);
    let output = command.arg(&back).arg(folder.path().join("none")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("from a trace.dat of version 6") && !back.exists()
    );
}
