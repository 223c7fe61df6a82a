//! Attribution against known causes: what a thread elsewhere did to a measured CPU, one by one, and whom the trace names for it.
#![cfg(feature = "guest-tests")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod support;

use analysis::attribute::Confidence;
use analysis::attribute::events::Attributed;
use analysis::attribute::windows::{MeasuredWindow, attributed_in};
use analysis::spans::MeasuredCpu;
use ftrace::TraceFile;
use linux::record::provoke::{KINDS, Kind, Provoked, Truth};
use model::EventClass;
use model::run::TraceRecord;
use std::fs;
use std::path::Path;
use support::{stillcore, text};

/// How often each cause is provoked.
const TIMES: &str = "100";

/// What the events of one kind were said to be.
#[derive(Debug, Default, Clone, Copy)]
struct Score {
    events: u32,
    exact: u32,
    by_order: u32,
    unknown: u32,
    wrong_exact: u32,
    wrong_order: u32,
}

impl Score {
    fn right(&self) -> u32 {
        self.exact + self.by_order
    }

    fn recall(&self) -> f64 {
        f64::from(self.right()) / f64::from(self.events.max(1))
    }

    fn add(&mut self, other: &Self) {
        self.events += other.events;
        self.exact += other.exact;
        self.by_order += other.by_order;
        self.unknown += other.unknown;
        self.wrong_exact += other.wrong_exact;
        self.wrong_order += other.wrong_order;
    }
}

/// Whether an event is the effect of a kind. Kernels before 6.5 do not name the function that an IPI brings.
fn is_effect(kind: Kind, event: &Attributed) -> bool {
    let label = event.label.as_str();
    let unnamed = label.starts_with("call_function");
    match kind {
        Kind::Membarrier => event.class == EventClass::IpiCall && (label.starts_with("ipi_") || unnamed),
        Kind::Mprotect => {
            event.class == EventClass::Tlb
                || event.class == EventClass::IpiCall && (label.starts_with("flush_tlb") || unnamed)
        }
        Kind::StatRefresh => event.class == EventClass::Work && label == "refresh_vm_stats",
        Kind::StaticKey => event.class == EventClass::IpiCall && (label == "do_sync_core" || unnamed),
        Kind::Wake => event.class == EventClass::Switch && label == "wakee",
    }
}

fn score(truth: &Truth, events: &[Attributed], kind: Kind) -> Score {
    let during = |one: &Provoked, event: &Attributed| one.t0_ns <= event.t0_ns && event.t0_ns <= one.t1_ns;
    let mut score = Score::default();
    for one in truth.provoked.iter().filter(|one| one.kind == kind) {
        let effects =
            events.iter().filter(|event| event.counts && during(one, event) && is_effect(kind, event));
        for event in effects {
            score.events += 1;
            let right = event
                .sources
                .iter()
                .find(|(source, _)| source.pid == Some(truth.tid) && source.cpu == truth.from);
            match (right, event.sources.first()) {
                (Some((_, Confidence::Exact)), _) => score.exact += 1,
                (Some((_, Confidence::Order)), _) => score.by_order += 1,
                (None, Some((_, Confidence::Exact))) => score.wrong_exact += 1,
                (None, Some((_, Confidence::Order))) => score.wrong_order += 1,
                (None, None) => score.unknown += 1,
            }
        }
    }
    score
}

/// Boots, provokes, and compares; prints a row a kind.
fn compare(kernel: &str, kprobes: bool) -> Score {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("lab");
    let boot = || {
        let mut command = stillcore(&["lab", "run", "--kernel", kernel, "--smp", "4", "--timeout", "300s"]);
        command.arg("--out").arg(&out).args(["--", "internal", "provoke", "/root/truth", "2", "1", TIMES]);
        command.arg(u8::from(kprobes).to_string());
        let output = command.output().unwrap();
        (output.status.code(), text(&output.stderr))
    };
    let mut ended = boot();
    if ended.0 != Some(0) {
        // Emulated CPUs of a crowded host hang now and then.
        println!("{kernel}: once more after {}", ended.1);
        fs::remove_dir_all(&out).unwrap();
        ended = boot();
    }
    assert_eq!(ended.0, Some(0), "{kernel}: {}", ended.1);
    let dir = out.join("root/truth");
    let read = |name: &str| fs::read(dir.join(name)).unwrap();
    let truth: Truth = serde_json::from_slice(&read("truth.json")).unwrap();
    let record: TraceRecord = serde_json::from_slice(&read("trace.json")).unwrap();
    let events = events(&dir.join("trace.dat"), &truth, &record);
    let mut all = Score::default();
    for kind in KINDS {
        let score = score(&truth, &events, kind);
        let provoked = truth.provoked.iter().filter(|one| one.kind == kind).count();
        println!("{kernel:>7} {kind:?}: {provoked} provoked, {score:?}");
        assert!(provoked == 0 || score.events as usize * 2 >= provoked, "{kernel} {kind:?}: {score:?}");
        all.add(&score);
    }
    println!("{kernel:>7} in all: {:.1} % right, {all:?}", all.recall() * 100.0);
    all
}

fn events(trace: &Path, truth: &Truth, record: &TraceRecord) -> Vec<Attributed> {
    let file = TraceFile::open(trace).unwrap();
    let lost = record.cpus.iter().chain(record.sender.iter().flat_map(|sender| &sender.cpus));
    assert!(lost.clone().all(|cpu| cpu.left + cpu.overrun + cpu.dropped == 0), "{record:?}");
    let window = MeasuredWindow {
        t0_ns: truth.provoked[0].t0_ns - 1_000_000,
        t1_ns: truth.provoked.last().unwrap().t1_ns,
        measured: vec![MeasuredCpu { cpu: truth.cpu, tid: truth.spinner }],
        snapshot: false,
    };
    let mut events = Vec::new();
    attributed_in(&file, &["", "sender"], &[window], |event| {
        events.push(event);
        Ok::<_, analysis::Error>(())
    })
    .unwrap();
    events
}

#[test]
fn known_causes_are_named_on_6_12() {
    let score = compare("6.12", false);
    assert!(score.recall() >= 0.99 && score.wrong_exact == 0, "{score:?}");
}

#[test]
fn known_causes_are_named_on_6_1() {
    let score = compare("6.1", true);
    assert!(score.recall() >= 0.9 && score.wrong_exact == 0, "{score:?}");
}

/// By `make test-lab`: the other kernels, and what an old one does not tell without probes.
#[cfg(feature = "guest-matrix")]
mod matrix {
    use super::compare;

    #[test]
    fn matrix_known_causes() {
        for (kernel, kprobes, least) in [
            ("5.10", true, 0.9),
            ("5.10-rt", true, 0.8),
            ("6.1", true, 0.9),
            ("6.1", false, 0.5),
            ("6.1-rt", true, 0.8),
            ("6.12", false, 0.99),
            ("6.12-rt", false, 0.99),
        ] {
            let score = compare(kernel, kprobes);
            assert!(score.recall() >= least && score.wrong_exact == 0, "{kernel}: {score:?}");
        }
    }
}
