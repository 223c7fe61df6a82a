//! A measurement that dies keeps what it measured: killed at any moment, or on a disk that is full.
//! `cargo xtask bench kills` and `full-disk` are the long versions.

#[path = "../support/full_disk.rs"]
mod full_disk;
#[path = "../support/kills.rs"]
mod kills;
#[path = "../support/write_faults.rs"]
mod write_faults;

use crate::support::{Place, is_root, measure_in_words, start, stillcore, text};
use full_disk::{Size, run_on};
use kills::{Random, kill_one};
use model::store;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use write_faults::Fault;

fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_stillcore"))
}

/// Samples that are readable in a run as it is now.
fn readable(run: &Path) -> u64 {
    model::run::stored::read_run(run).map_or(0, |run| run.probes.iter().map(|probe| probe.samples).sum())
}

#[test]
fn every_sample_that_was_readable_before_the_kill_is_in_the_report() {
    for (verb, arguments) in [
        ("wakeup", &["--period", "1ms", "--duration", "60s"][..]),
        ("spin", &["--duration", "60s"]),
        ("periodic", &["--period", "2ms", "--duration", "60s"]),
    ] {
        let place = Place::new();
        let run = place.path("run");
        let mut child = start(&mut measure_in_words(&place, verb, arguments));
        let give_up = Instant::now() + Duration::from_secs(50);
        while readable(&run) < 3 {
            assert!(Instant::now() < give_up, "{verb}: nothing is readable while it measures");
            std::thread::sleep(Duration::from_millis(50));
        }
        let before = readable(&run);
        child.kill().unwrap();
        child.wait().unwrap();
        let record = model::run::stored::read_run(&run).unwrap();
        assert!(readable(&run) >= before && !record.complete && !record.has_ended(), "{verb}");
        assert!(record.probes.iter().all(|probe| probe.cut_off && probe.samples > 0), "{verb}");
        let output = stillcore(&["report", run.to_str().unwrap()]).output().unwrap();
        let said = text(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{verb}: {}", text(&output.stderr));
        assert!(said.contains("was cut off: the"), "{verb}: {said}");
        assert!(said.contains("not known: the run was cut off before it counted"), "{verb}: {said}");
        assert!(!said.contains("lost 0") && !said.contains("0 lost"), "{verb}: {said}");
        let page = fs::read_to_string(run.join(store::REPORT)).unwrap();
        assert!(!page.contains("Samples lost to a full ring</dt>"), "{verb}");
        let figures =
            stillcore(&["report", run.to_str().unwrap(), "--format", "openmetrics"]).output().unwrap();
        assert!(!text(&figures.stdout).contains("stillcore_lost"), "{verb}");
    }
}

#[test]
fn any_process_killed_at_any_moment_leaves_nothing_and_keeps_samples() {
    if !is_root() {
        println!("skipped: instances, groups and guardians of root are looked for");
        return;
    }
    let _place = Place::alone();
    let mut random = Random(24);
    for round in 0..6 {
        let dir = tempfile::tempdir().unwrap();
        let outcome = kill_one(program(), dir.path(), &mut random);
        assert!(outcome.left.is_empty() && outcome.wrong.is_empty(), "{round}: {outcome:?}");
    }
}

#[test]
fn a_full_disk_is_one_sentence_and_what_was_stored_is_readable() {
    if !is_root() {
        println!("skipped: mounting takes root");
        return;
    }
    let _place = Place::new();
    // The description of the machine takes a varying number of pages. Doubling reaches each phase.
    let (mut failed, mut kept) = (0, 0);
    for pages in [1, 8, 24, 48, 56, 64, 72, 96, 192] {
        let scratch = tempfile::tempdir().unwrap();
        let size = Size { pages, names: 4096 };
        let Some(outcome) = run_on(program(), scratch.path(), size, "700ms") else {
            println!("skipped: no tmpfs can be mounted");
            return;
        };
        assert!(outcome.wrong.is_empty(), "{pages} pages: {outcome:?}");
        failed += u32::from(!outcome.whole);
        kept += u32::from(!outcome.whole && outcome.samples > 0);
    }
    assert!(failed > 3 && kept > 0, "{failed} failed, of which {kept} kept samples");
}

/// Calls of the short version: all of the first, where files and journals are made, then at growing
/// intervals. `cargo xtask bench write-faults` takes them all.
#[test]
fn a_call_that_finds_no_room_is_one_sentence_and_leaves_nothing() {
    if !is_root() {
        println!("skipped: mounting takes root");
        return;
    }
    let _place = Place::new();
    let run = |call, stay| {
        let scratch = tempfile::tempdir().unwrap();
        write_faults::run_with(program(), scratch.path(), Fault { call, stay, trace: true }, "300ms")
    };
    let Some(whole) = run(0, false) else {
        println!("skipped: no tmpfs can be mounted, or no call made to fail");
        return;
    };
    assert!(whole.outcome.whole && whole.outcome.wrong.is_empty() && whole.left.is_empty(), "{whole:?}");
    assert!(whole.calls > 30, "{whole:?}");
    let (mut failed, mut call) = (0, 1);
    while call <= whole.calls {
        let stay = call % 2 == 0;
        let faulty = run(call, stay).unwrap();
        assert!(faulty.outcome.wrong.is_empty() && faulty.left.is_empty(), "call {call}: {faulty:?}");
        failed += u32::from(!faulty.outcome.whole);
        call += 1 + call / 4;
    }
    assert!(failed > 10, "{failed} of {} calls", whole.calls);
}

#[test]
fn a_trace_that_was_cut_off_is_read_up_to_there() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/small");
    let whole = fs::read(fixture.join(store::TRACE)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    assert!(
        Command::new("cp").arg("-r").arg(&fixture).arg(dir.path().join("run")).status().unwrap().success()
    );
    let run = dir.path().join("run");
    let trace = run.join(store::TRACE);
    // Inside a page, at the end of one, inside the first, and where its description is not whole.
    let mut events = u64::MAX;
    for length in [whole.len() - 100, whole.len() - 4096, whole.len() - 5000, whole.len() / 2] {
        fs::write(&trace, &whole[..length]).unwrap();
        let output = stillcore(&["trace", "explain", trace.to_str().unwrap()]).output().unwrap();
        let said = text(&output.stdout);
        assert!(matches!(output.status.code(), Some(0 | 2)), "{length}: {}", text(&output.stderr));
        assert!(said.contains("INCOMPLETE: the trace is damaged"), "{length}: {said}");
        assert!(said.contains("bytes too early"), "{length}: {said}");
        let line = said.lines().find(|line| line.contains(" events of CPUs ")).unwrap();
        let now: u64 = line.split(' ').next().unwrap().replace(',', "").parse().unwrap();
        assert!(now > 0 && now <= events, "{length}: {line}");
        events = now;
        let output = stillcore(&["report", run.to_str().unwrap()]).output().unwrap();
        assert!(matches!(output.status.code(), Some(0 | 2)), "{length}: {}", text(&output.stderr));
        assert!(text(&output.stdout).contains("bytes too early"), "{length}");
    }
    fs::write(&trace, &whole[..1000]).unwrap();
    let output = stillcore(&["trace", "explain", trace.to_str().unwrap()]).output().unwrap();
    crate::support::assert_refused(&output, &["trace.dat", "ends inside"]);
}
