//! Against the results of the traced programs: the samples of our own probe, and what cyclictest
//! printed of each of its wake-ups on five kernels.

use super::*;
use crate::attribute::path_section::SamplePath;
use crate::attribute::step::Step;
use crate::attribute::thread_paths::ThreadPaths;
use ftrace::TraceFile;
use model::sample::ProbeKind;
use model::samples_file;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn wanted(threads: Threads) -> Wanted {
    Wanted { threads, cpus: None, window: [i64::MIN, i64::MAX], keep: Keep { worst: 10_000, sample: None } }
}

fn read_trace(path: &Path, wanted: &Wanted) -> AnyTrace {
    any_trace(&TraceFile::open(path).unwrap(), &[""], wanted).unwrap()
}

/// All wake-ups of a section, by release.
fn by_release(one: &ThreadPaths) -> BTreeMap<i64, &SamplePath> {
    one.path.worst.iter().map(|sample| (sample.t_ns, sample)).collect()
}

#[test]
fn a_probe_s_wake_ups_are_its_samples_without_knowing_the_probe() {
    let dir = fixture("runs/small");
    let run = model::run::stored::read_run(&dir).unwrap();
    let (mut compared, mut interrupted) = (0, 0);
    for probe in run.probes.iter().filter(|probe| probe.probe() == ProbeKind::Wakeup) {
        let found = read_trace(&dir.join("trace.dat"), &wanted(Threads::Numbers(vec![probe.tid])));
        assert_eq!(found.threads.paths.len(), 1);
        let [ours] = &found.threads.paths[..] else { panic!() };
        assert_eq!((ours.tid, ours.path.cpu), (probe.tid, probe.cpu));
        let ours = by_release(ours);
        let (_, samples) = samples_file::read(&dir.join(&probe.file)).unwrap();
        let served = samples.iter().filter(|sample| sample.counts());
        for sample in served {
            // A thread that was late already did not sleep: it has no wake-up.
            let Some(found) = ours.get(&sample.t_ns) else { continue };
            compared += 1;
            let parts: u64 = found.parts.iter().map(|part| part.ns).sum();
            assert_eq!(parts, found.value_ns.unsigned_abs(), "every nanosecond in one box");
            // From the switch until it reads the clock, if nothing interrupts it there.
            let way_back_ns = sample.value_ns - found.value_ns;
            assert!(way_back_ns > 0, "{} ns: {way_back_ns}", sample.t_ns);
            interrupted += usize::from(way_back_ns > 200_000);
            assert_eq!(found.parts[0].step, Step::TimerLate, "{found:?}");
        }
    }
    assert!(compared > 300 && interrupted * 50 < compared, "{interrupted} of {compared} samples");
}

/// What cyclictest printed of each sample, us.
fn printed(kernel: &str) -> Vec<i64> {
    let text = std::fs::read_to_string(fixture(&format!("traces/cyclictest/{kernel}.txt"))).unwrap();
    text.lines().map(|line| line.rsplit(':').next().unwrap().trim().parse().unwrap()).collect()
}

#[test]
fn cyclictest_s_own_values_are_found_in_a_trace_of_trace_cmd_on_five_kernels() {
    for kernel in ["5.10", "6.1", "6.1-rt", "6.12", "6.12-rt"] {
        let trace = fixture(&format!("traces/cyclictest/{kernel}.dat"));
        let found = read_trace(&trace, &wanted(Threads::Named("cyclictest".to_owned())));
        let printed = printed(kernel);
        // Its main thread has wake-ups, too, but fewer.
        let ours = found.threads.paths.iter().max_by_key(|one| one.path.samples).unwrap();
        let ours = by_release(ours);
        assert_eq!(ours.len(), printed.len(), "{kernel}");
        let releases: Vec<i64> = ours.keys().copied().collect();
        let period_ns = releases[1] - releases[0];
        let mut more = Vec::new();
        for (at, (sample, theirs_us)) in ours.values().zip(&printed).enumerate() {
            // A sample that is more than a period late skips the next.
            assert_eq!((sample.t_ns - releases[0]) % period_ns, 0, "{kernel}: release {at}");
            // It includes the return to user space, and truncates its values to microseconds.
            let more_us = theirs_us - sample.value_ns / 1_000;
            assert!(more_us >= 0, "{kernel}: sample {at} is {theirs_us} us, ours {}", sample.value_ns);
            more.push(more_us);
            let parts: u64 = sample.parts.iter().map(|part| part.ns).sum();
            assert_eq!(parts, sample.value_ns.unsigned_abs());
        }
        more.sort_unstable();
        assert!(more[more.len() / 2] < 200, "{kernel}: {more:?}");
        assert_eq!((found.holes, found.record.have.is_empty()), (0, false));
    }
}

#[test]
fn a_window_and_cpus_leave_out_the_rest() {
    let trace = fixture("runs/small/trace.dat");
    let all = read_trace(&trace, &wanted(Threads::RealTime));
    assert!(all.threads.threads.iter().all(|thread| !thread.comm.starts_with("migration")));
    let middle = i64::midpoint(all.t0_ns, all.t1_ns);
    let halves = [[i64::MIN, middle], [middle + 1, i64::MAX]].map(|window| {
        let half = read_trace(&trace, &Wanted { window, ..wanted(Threads::RealTime) });
        assert!(half.t0_ns >= window[0] && half.t1_ns <= window[1]);
        let samples = half.threads.paths.iter().flat_map(|one| &one.path.worst);
        assert!(samples.clone().count() > 50);
        assert!(samples.clone().all(|one| one.t_ns + one.value_ns <= window[1]));
        half.events
    });
    assert_eq!(halves.iter().sum::<u64>(), all.events);
    let nobody = Wanted { cpus: Some("1".parse().unwrap()), ..wanted(Threads::RealTime) };
    let nobody = read_trace(&trace, &nobody);
    assert!(nobody.threads.paths.is_empty());
    assert!(nobody.threads.threads.is_empty());
}

#[test]
fn threads_are_those_of_the_cpus_and_what_counts_elsewhere_says_so() {
    let trace = fixture("traces/cyclictest/6.1-rt.dat");
    let on = |cpus: Option<&str>| {
        let cpus = cpus.map(|cpus| cpus.parse().unwrap());
        let found = read_trace(&trace, &Wanted { cpus, ..wanted(Threads::RealTime) });
        let elsewhere = found.statements.iter().any(|said| said.contains("ran on other CPUs"));
        let names = found.threads.threads.into_iter().map(|thread| (thread.comm, thread.cpus.to_string()));
        (names.collect::<Vec<_>>(), elsewhere)
    };
    let moved = ("rcu_preempt".to_owned(), "0,1".to_owned());
    let (all, elsewhere) = on(None);
    assert!(all.contains(&moved) && all.iter().any(|(name, _)| name == "cyclictest") && !elsewhere);
    let (first, elsewhere) = on(Some("0"));
    assert!(first.contains(&moved) && elsewhere, "{first:?}");
    assert!(first.iter().all(|(_, cpus)| cpus.contains('0')), "{first:?}");
    assert!(first.len() < all.len());
}

#[test]
fn a_name_that_nobody_has_is_nobody() {
    let found =
        read_trace(&fixture("runs/small/trace.dat"), &wanted(Threads::Named("cyclictest".to_owned())));
    assert!(found.threads.threads.is_empty() && found.threads.paths.is_empty());
    assert!(
        found.statements.iter().any(|one| one.contains("threads named cyclictest")),
        "{:?}",
        found.statements
    );
}

#[test]
fn where_events_are_missing_no_wake_up_is_taken_apart_across_them() {
    let found = read_trace(&fixture("traces/host-6.18/lost-v7-zstd.dat"), &wanted(Threads::RealTime));
    assert!(found.holes > 0);
    assert!(found.statements.iter().any(|one| one.contains("events are missing")), "{:?}", found.statements);
}
