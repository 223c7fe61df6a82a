//! A whole run directory, made by hand, through `analyse`: counts, overlaps, accounts and verdicts
//! are those that were put in.

use crate::support::*;
use analysis::analyse;
use analysis::compare::Verdict;
use analysis::events::{ClassCount, WindowEvents};
use analysis::shape::Analysis;
use model::run::Run;
use model::sample::ProbeKind;
use model::{EventClass, store};
use std::collections::BTreeMap;
use std::path::Path;

const SECOND: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;

/// One phase of the trace and its samples: wake-ups every millisecond by the probe's own timer, a
/// tick every 10 ms and, where disturbed, a kworker every 10 ms in the noise window.
fn phase(trace: &mut Trace, start: i64, disturbed: bool) -> [Vec<(i64, i64)>; 2] {
    let mut wakeups = Vec::new();
    trace.at(start as u64);
    for release in (0..1000).map(|k| start + k * MS + MS / 2) {
        let late = if disturbed { 20_000 } else { 0 } + 500 * (release / MS % 7);
        trace.at((release + late) as u64).timer(0, 0, WAKEUP, true);
        trace.switch(1_000, 0, TID, "probe").switch(5_000, TID, 0, "swapper/1");
        wakeups.push((release, late + 6_000));
    }
    let mut gaps = Vec::new();
    let start = start + 2 * SECOND;
    for k in 0..100 {
        let t = start + k * 10 * MS + MS;
        trace.at(t as u64).timer(0, TID, TICK, false);
        gaps.push((t - 200, 4_600));
        if disturbed {
            let t = t + 5 * MS;
            trace.at(t as u64).switch(0, TID, KWORKER, "kworker/1:1");
            trace.event(1_000, KWORKER, "workqueue:workqueue_execute_start", &[N(0xbeef), N(VMSTAT)]);
            trace.event(20_000, KWORKER, "workqueue:workqueue_execute_end", &[N(0xbeef), N(VMSTAT)]);
            trace.switch(1_000, KWORKER, TID, "probe");
            gaps.push((t - 100, 22_400));
        }
    }
    // One gap that nothing explains.
    gaps.push((start + 999 * MS, 7_000));
    [wakeups, gaps]
}

/// The run as described above, with everything consistent.
fn make(dir: &Path) -> (Run, Trace) {
    let mut trace = Trace::default();
    let samples: Vec<_> =
        (0..3).flat_map(|at| phase(&mut trace, window_start(at, 0, SECOND), at == 1)).collect();
    let mut run = run(SECOND, Some(trace.len()));
    for (record, samples) in run.probes.iter_mut().zip(&samples) {
        write_samples(dir, record, samples);
    }
    for window in &mut run.windows {
        let ticks = if window.probe == ProbeKind::Noise { 100 } else { 1000 };
        window.interrupts = BTreeMap::from([("LOC".to_owned(), BTreeMap::from([(CPU, ticks + 2)]))]);
    }
    trace.write(dir);
    store::write_json(&dir.join(store::RUN), &run).unwrap();
    (run, trace)
}

fn rewrite(dir: &Path, run: &Run) -> Analysis {
    store::write_json(&dir.join(store::RUN), run).unwrap();
    analyse(dir).unwrap()
}

fn window<'a>(analysis: &'a Analysis, phase: &str, probe: ProbeKind) -> &'a WindowEvents {
    analysis.events.iter().find(|w| w.phase == phase && w.probe == probe).unwrap()
}

fn class(window: &WindowEvents, class: EventClass) -> &ClassCount {
    window.classes.iter().find(|c| c.class == class).unwrap()
}

#[test]
fn counts_times_and_labels_are_those_put_in() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let analysis = analyse(dir.path()).unwrap();

    let wakeup = window(&analysis, "idle-before", ProbeKind::Wakeup);
    // A timer and two switches each; the timer's interrupt takes 4 us.
    assert_eq!(
        (class(wakeup, EventClass::SelfCaused).count, class(wakeup, EventClass::SelfCaused).net_ns),
        (3000, 4_000_000)
    );
    assert!(
        wakeup.classes.iter().all(|c| c.class == EventClass::SelfCaused || c.count == 0),
        "{:#?}",
        wakeup.classes
    );

    let noise = window(&analysis, "disturbed", ProbeKind::Noise);
    let tick = class(noise, EventClass::TimerTick);
    assert_eq!(
        (tick.count, tick.net_ns, tick.max_ns, tick.labels[0].label.as_str()),
        (100, 400_000, 4_000, "tick_sched_timer")
    );
    let work = class(noise, EventClass::Work);
    assert_eq!((work.count, work.net_ns, work.labels[0].label.as_str()), (100, 2_000_000, "vmstat_update"));
    let switch = class(noise, EventClass::Switch);
    assert_eq!((switch.count, switch.net_ns, switch.labels[0].label.as_str()), (100, 200_000, "kworker/1:1"));
    assert_eq!(noise.by_event["sched:sched_switch"], 200);
    assert_eq!(noise.duration_ns, 1_000_000_000);
    assert!((tick.per_s - 100.0).abs() < 1e-9 && tick.upper_per_s > 100.0);
}

#[test]
fn zero_is_a_bound_where_seen_and_nothing_where_not() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let analysis = analyse(dir.path()).unwrap();
    let noise = window(&analysis, "idle-before", ProbeKind::Noise);
    let resched = class(noise, EventClass::IpiResched);
    assert!(resched.observable && resched.count == 0 && (resched.upper_per_s - 3.0).abs() < 1e-9);
    assert!(!class(noise, EventClass::IpiCall).observable);
    assert!(!class(noise, EventClass::Throttle).observable);
    assert_eq!(noise.classes.len(), EventClass::ALL.len() - 1);
}

#[test]
fn gaps_are_explained_by_what_overlaps_them() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let analysis = analyse(dir.path()).unwrap();
    let noise = analysis
        .distributions
        .iter()
        .find(|d| d.phase == "disturbed" && d.probe == ProbeKind::Noise)
        .unwrap();
    let unexplained = noise.stolen.as_ref().unwrap().unexplained.unwrap();
    assert_eq!((unexplained.count, unexplained.ns), (1, 7_000));
    let share = |class| {
        let of = |o: &&analysis::overlap::Overlap| {
            o.phase == "disturbed" && o.probe == ProbeKind::Noise && o.class == class
        };
        analysis.overlaps.iter().find(of).unwrap()
    };
    assert_eq!((share(EventClass::TimerTick).samples, share(EventClass::Work).samples), (100, 100));
    // The largest gaps are the kworker's.
    assert_eq!(share(EventClass::Switch).share_of_largest, Some(1.0));
    assert_eq!(share(EventClass::TimerTick).share_of_largest, Some(0.0));
}

#[test]
fn accounts_balance_and_counters_agree() {
    let dir = tempfile::tempdir().unwrap();
    let (run, trace) = make(dir.path());
    let analysis = analyse(dir.path()).unwrap();
    assert_eq!(analysis.losses.reconciled, Some(true), "{:?}", analysis.losses);
    assert_eq!(analysis.losses.trace[0].decoded, trace.len());
    let check = &window(&analysis, "disturbed", ProbeKind::Noise).cross_checks;
    let loc = check.iter().find(|check| check.row == "LOC").unwrap();
    assert_eq!((loc.kernel, loc.traced, loc.agrees), (102, 100, true));
    // Rows of which an event was not recorded are not compared; here the single call function is
    // not.
    assert!(check.iter().all(|check| check.row != "CAL"));

    let mut wrong = run;
    wrong.windows[3].interrupts.get_mut("LOC").unwrap().insert(CPU, 99);
    let analysis = rewrite(dir.path(), &wrong);
    assert!(!window(&analysis, "disturbed", ProbeKind::Noise).cross_checks.iter().all(|check| check.agrees));
    assert!(
        analysis
            .losses
            .statements
            .iter()
            .any(|s| s.contains("the kernel counted 99 of LOC, the trace holds 100"))
    );
}

#[test]
fn releases_that_are_not_charged_are_said() {
    let dir = tempfile::tempdir().unwrap();
    let (mut run, _) = make(dir.path());
    let says = |analysis: &analysis::Analysis| {
        analysis
            .losses
            .statements
            .iter()
            .any(|said| said.contains("of 500000000 missed releases only the first"))
    };
    assert!(!says(&analyse(dir.path()).unwrap()));
    let mut probes = run.probes.iter_mut();
    probes.find_map(|probe| probe.detail.releases_mut()).unwrap().served.missed = 500_000_000;
    assert!(says(&rewrite(dir.path(), &run)));
}

/// A long wake-up of the warm-up may swallow most releases of a short run, which says nothing of
/// the period.
#[test]
fn the_period_is_not_judged_by_the_warm_up() {
    let dir = tempfile::tempdir().unwrap();
    let (mut run, _) = make(dir.path());
    let too_short = |run: &Run| {
        let said = rewrite(dir.path(), run).losses.statements;
        said.iter().filter(|one| one.contains("the period is too short")).count()
    };
    assert_eq!(too_short(&run), 0);
    let probe = run.probes.iter_mut().find(|probe| probe.probe() == ProbeKind::Wakeup).unwrap();
    let releases = probe.detail.releases_mut().unwrap();
    releases.served.missed = releases.served.released;
    releases.served.released *= 2;
    let missed = releases.served.missed;
    releases.served.missed += 1;
    assert_eq!(too_short(&run), 1);
    let probe = run.probes.iter_mut().find(|probe| probe.probe() == ProbeKind::Wakeup).unwrap();
    probe.detail.releases_mut().unwrap().warm_up = Some(missed);
    assert_eq!(too_short(&run), 0);
}

#[test]
fn what_was_done_is_detected_and_what_was_not_is_not() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let analysis = analyse(dir.path()).unwrap();
    let verdict = |figure: &str| {
        let found = analysis.comparisons.iter().find(|c| c.figure == figure);
        found.unwrap_or_else(|| panic!("no {figure} in {:#?}", analysis.comparisons)).verdict
    };
    assert_eq!(verdict("wakeup p50"), Verdict::Worse);
    assert_eq!(verdict("noise share"), Verdict::Worse);
    assert_eq!(verdict("noise work per second"), Verdict::Worse);
    assert_eq!(verdict("noise timer.tick per second"), Verdict::CannotTell);
    assert_eq!(verdict("wakeup observed max"), Verdict::Withheld);
}

#[test]
fn lost_events_withhold_what_rests_on_them() {
    let dir = tempfile::tempdir().unwrap();
    let (mut run, _) = make(dir.path());
    run.trace.as_mut().unwrap().cpus[0].overrun = 5;
    let analysis = rewrite(dir.path(), &run);
    let of = |name: &str| analysis.comparisons.iter().find(|c| c.figure == name).unwrap().verdict;
    assert_eq!((of("noise work per second"), of("noise share")), (Verdict::Withheld, Verdict::Worse));
    assert!(analysis.events.iter().flat_map(|w| &w.cross_checks).all(|check| !check.agrees));
    assert!(analysis.losses.statements.iter().any(|s| s.contains("5 trace events are lost (5 overwritten")));

    run.trace.as_mut().unwrap().cpus[0].overrun = 0;
    run.trace.as_mut().unwrap().cpus[0].read += 1;
    let analysis = rewrite(dir.path(), &run);
    assert_eq!(analysis.losses.reconciled, Some(false));
    assert!(analysis.losses.statements.iter().any(|s| s.contains("do not balance")));
}

/// What no window of a CPU without a whole trace may say.
fn assert_nothing_claimed(analysis: &Analysis) {
    let classes = || analysis.events.iter().flat_map(|window| &window.classes);
    assert!(classes().all(|class| class.count > 0 || !class.observable), "{:#?}", analysis.events);
    assert!(classes().any(|class| class.count > 0 && class.observable), "what was seen stays");
    assert!(analysis.distributions.iter().all(|d| d.stolen.as_ref().is_none_or(|s| s.unexplained.is_none())));
    assert!(analysis.overlaps.iter().all(|overlap| overlap.samples > 0));
    let zero = |c: &&analysis::compare::Comparison| {
        c.verdict == Verdict::Withheld && [c.idle_before, c.disturbed, c.idle_after].contains(&Some(0.0))
    };
    assert_eq!(analysis.comparisons.iter().find(zero), None);
    let said =
        |s: &&String| s.starts_with("CPU 1: the trace is not whole, so a class of which it holds no event");
    assert_eq!(
        analysis.losses.statements.iter().filter(said).count(),
        1,
        "{:#?}",
        analysis.losses.statements
    );
}

#[test]
fn half_a_trace_has_no_zeros() {
    let dir = tempfile::tempdir().unwrap();
    let (mut run, trace) = make(dir.path());
    let path = dir.path().join(store::TRACE);
    let length = std::fs::metadata(&path).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(length / 2).unwrap();
    let analysis = analyse(dir.path()).unwrap();
    assert!(analysis.losses.trace[0].decoded < trace.len());
    assert_eq!(class(window(&analysis, "idle-after", ProbeKind::Noise), EventClass::TimerTick).count, 0);
    assert_nothing_claimed(&analysis);

    // Nor has one of which the kernel kept no account, or overwrote a part.
    trace.write(dir.path());
    run.trace.as_mut().unwrap().cpus[0].overrun = 5;
    assert_nothing_claimed(&rewrite(dir.path(), &run));
    run.trace.as_mut().unwrap().cpus.clear();
    let analysis = rewrite(dir.path(), &run);
    assert_nothing_claimed(&analysis);
    assert_eq!(analysis.losses.reconciled, Some(false));
}

/// The run is refused with an error that has all `words` while it counts as complete, and analysed
/// without the file, with one statement that has them, while it counts as partial.
fn assert_refused(dir: &Path, run: &mut Run, words: &[&str]) {
    store::write_json(&dir.join(store::RUN), run).unwrap();
    let error = analyse(dir).unwrap_err().to_string();
    assert!(words.iter().all(|word| error.contains(word)) && !error.contains('\n'), "{error}");
    (run.complete, run.incomplete_reason) = (false, Some("interrupted".into()));
    let analysis = rewrite(dir, run);
    let mentions_all = |s: &&String| words.iter().all(|word| s.contains(word));
    assert_eq!(
        analysis.losses.statements.iter().filter(mentions_all).count(),
        1,
        "{:#?}",
        analysis.losses.statements
    );
    assert_eq!(analysis.distributions.len(), 5);
}

#[test]
fn samples_of_another_place_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (run, _) = make(dir.path());
    let name = |probe, k| dir.path().join(store::samples_name(probe, CPU, k));
    let (wakeup, own) = (name("wakeup", 0), std::fs::read(name("wakeup", 0)).unwrap());

    std::fs::copy(name("noise", 0), &wakeup).unwrap();
    let words = [
        "wakeup-cpu1-0.parquet",
        "samples of the noise probe",
        "expected samples of the wakeup probe on CPU 1",
    ];
    assert_refused(dir.path(), &mut run.clone(), &words);

    std::fs::copy(name("wakeup", 1), &wakeup).unwrap();
    assert_refused(
        dir.path(),
        &mut run.clone(),
        &["wakeup-cpu1-0.parquet", "phase disturbed; expected", "idle-before"],
    );

    std::fs::write(&wakeup, own).unwrap();
    let mut other = run.clone();
    other.probes[0].cpu = 0;
    assert_refused(dir.path(), &mut other, &["wakeup-cpu1-0.parquet", "on CPU 1 in", "on CPU 0 in"]);

    let mut short = run.clone();
    short.probes[0].samples += 7;
    assert_refused(
        dir.path(),
        &mut short,
        &["wakeup-cpu1-0.parquet: 1000 samples; expected the 1007 that the probe wrote"],
    );
    assert!(rewrite(dir.path(), &run).losses.statements.iter().all(|s| !s.contains("expected")));
}

#[test]
fn without_symbols_the_tick_is_not_claimed_to_be_absent() {
    let dir = tempfile::tempdir().unwrap();
    let (_, trace) = make(dir.path());
    trace.write_with(dir.path(), "0000000000000000 t tick_sched_timer\n");
    let analysis = analyse(dir.path()).unwrap();
    let noise = window(&analysis, "idle-before", ProbeKind::Noise);
    assert!(!class(noise, EventClass::TimerTick).observable);
    assert_eq!(class(noise, EventClass::TimerHrtimer).count, 100);
    assert_eq!(class(noise, EventClass::TimerHrtimer).labels[0].label, format!("{TICK:#x}"));
    assert!(analysis.losses.statements.iter().any(|s| s.contains("no kernel symbols")));
}

#[test]
fn a_run_without_a_trace_still_says_what_the_samples_say() {
    let dir = tempfile::tempdir().unwrap();
    let (mut run, _) = make(dir.path());
    run.trace = None;
    std::fs::remove_file(dir.path().join(store::TRACE)).unwrap();
    let analysis = rewrite(dir.path(), &run);
    assert!(analysis.events.is_empty() && analysis.overlaps.is_empty());
    assert_eq!(analysis.losses.reconciled, None);
    assert!(analysis.distributions.iter().all(|d| d.stolen.as_ref().is_none_or(|s| s.unexplained.is_none())));
    assert!(analysis.comparisons.iter().any(|c| c.verdict == Verdict::Worse));
    assert!(analysis.losses.statements.iter().any(|s| s.contains("no trace was recorded")));
}

#[test]
fn a_missing_file_is_an_error_of_a_complete_run_and_a_remark_of_a_partial_one() {
    let dir = tempfile::tempdir().unwrap();
    let (mut run, _) = make(dir.path());
    std::fs::remove_file(dir.path().join(store::TRACE)).unwrap();
    std::fs::remove_file(dir.path().join(&run.probes[5].file)).unwrap();
    assert!(analyse(dir.path()).unwrap_err().to_string().contains("noise-cpu1-2.parquet"));
    (run.complete, run.incomplete_reason) = (false, Some("interrupted".into()));
    let analysis = rewrite(dir.path(), &run);
    assert_eq!(analysis.distributions.len(), 5);
    assert_eq!(analysis.losses.reconciled, Some(false));
    let said = |what: &str| analysis.losses.statements.iter().any(|s| s.contains(what));
    assert!(said("the run is partial (interrupted)") && said("trace.dat") && said("samples are missing"));
    let share = analysis.comparisons.iter().find(|c| c.figure == "noise share").unwrap();
    assert_eq!(share.verdict, Verdict::Withheld);
}

#[test]
fn damaged_bytes_are_errors_or_remarks_and_never_a_panic() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let names = [store::RUN.to_owned(), store::TRACE.to_owned(), store::samples_name("noise", CPU, 1)];
    // Positions and values from a fixed linear congruence: the same damage every time.
    let mut state = 1u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut survived = 0;
    for round in 0..60 {
        let path = dir.path().join(&names[round % names.len()]);
        let whole = std::fs::read(&path).unwrap();
        let mut bytes = whole.clone();
        for _ in 0..=next(4) {
            // The head of a trace holds its formats, where damage has the most effect.
            let reach = if round % 2 == 0 { bytes.len().min(20_000) } else { bytes.len() };
            let at = next(reach);
            bytes[at] = next(256) as u8;
        }
        std::fs::write(&path, bytes).unwrap();
        survived += u32::from(analyse(dir.path()).is_ok());
        std::fs::write(&path, whole).unwrap();
    }
    assert!(survived < 60, "no damage was seen");
    assert!(analyse(dir.path()).is_ok());
}

#[test]
fn an_analysis_survives_its_file() {
    let dir = tempfile::tempdir().unwrap();
    make(dir.path());
    let analysis = analyse(dir.path()).unwrap();
    let path = dir.path().join(store::ANALYSIS);
    store::write_json(&path, &analysis).unwrap();
    assert_eq!(store::read_json::<Analysis>(&path).unwrap(), analysis);
    assert_eq!(analyse(dir.path()).unwrap(), analysis);
}
