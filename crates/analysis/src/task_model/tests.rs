//! Models made by hand: each has one right answer.

use super::build::build;
use super::change::{Change, changed};
use super::check::Refutation;
use super::choose::{Confidence, choose, choose_as};
use super::lock_shape::Locks;
use super::shape::{Interference, Release, ReleaseKind, SCHEMA, Suspension, TaskModel, ThreadModel};
use super::system::{Assumed, Of, line, tasks};
use super::verdict::guarantee;
use attribution::jobs::kind::Kind;
use attribution::jobs::shape::{KindJobs, ProgramJobs, Releaser, Suspending, ThreadJobs};
use infer::Window;
use infer::bucket::{Bucket, Buckets};
use infer::cost::{CostCurve, Costs};
use infer::delta_min::{DeltaMin, Distances};
use infer::regular::Regular;
use model::syscalls::Wait;
use proptest::prelude::*;
use sched::{Ask, Limits, Test, question};
use std::collections::BTreeMap;

pub(super) const MS: u64 = 1_000_000;

pub(super) fn assumed(margin_ppm: u64) -> Assumed {
    Assumed { margin_ppm, deadlines_ns: BTreeMap::new() }
}

/// A periodic thread of one CPU; times in ns.
pub(crate) fn thread(pid: i32, prio: i16, period_ns: u64, cost_ns: u64) -> ThreadModel {
    ThreadModel {
        pid,
        comm: format!("t{pid}"),
        policy: None,
        prio: Some(prio),
        cpus: [1].into_iter().collect(),
        of_program: true,
        waits_in: None,
        confidence: Some(Confidence::Exact),
        release: Release { kind: ReleaseKind::Periodic, period_ns, n: 100, ..Release::NONE },
        cost: CostCurve { curve_ns: vec![cost_ns], n: 100, total_ns: 100 * cost_ns },
        suspension: Suspension::default(),
        requests: Vec::new(),
        dispatch_ns: 0,
        kept: None,
        response_ns: cost_ns,
        demand: None,
        why: None,
    }
}

pub(crate) fn program(threads: Vec<ThreadModel>, interference: Vec<Interference>) -> TaskModel {
    TaskModel {
        schema: SCHEMA.to_owned(),
        from_ns: 0,
        to_ns: 1,
        threads,
        chains: Vec::new(),
        interference,
        cpus: model::Cpus::default(),
        dispatches: Vec::new(),
        lost: 0,
        locks: Locks::default(),
        statements: Vec::new(),
    }
}

#[test]
fn bounds_and_margins_are_those_of_response_time_analysis() {
    let threads = vec![thread(1, 20, 10 * MS, 3 * MS), thread(2, 30, 20 * MS, 5 * MS)];
    let model = program(threads, Vec::new());
    let found = guarantee(&model, &assumed(0)).unwrap();
    let bounds: Vec<Option<u64>> = found.bounds.iter().map(|one| one.bound_ns).collect();
    assert_eq!(bounds, [Some(3 * MS), Some(8 * MS)]);
    assert_eq!(found.schedulable, Some(true));
    // 3 c + 3 c + 5 c = 20 at the end of the second period: c = 20 / 11 = 1.818…
    assert_eq!(found.spare_ppm, Some(818_000));
    // 5 + 2 c = 20: c = 7.5, and a bit more is too much.
    let first = found.first.unwrap();
    assert_eq!((first.grows.as_str(), first.late.as_str()), ("t1", "t2"));
    assert_eq!(first.by_ppm, 1_501_000);
    assert_eq!(found.worst_jitter_ns, Some(0));
    let mut late = model.clone();
    late.threads[1].release.jitter_ns = 71_000;
    assert_eq!(guarantee(&late, &assumed(200_000)).unwrap().worst_jitter_ns, Some(71_000));
    // With 20 % more of everything: 3.6, and 6 + 3.6 = 9.6.
    let found = guarantee(&model, &assumed(200_000)).unwrap();
    assert_eq!(found.bounds[1].bound_ns, Some(9_600_000));
}

#[test]
fn equals_suspensions_and_dispatches_are_counted() {
    let mut threads = vec![thread(1, 20, 10 * MS, 2 * MS), thread(2, 20, 20 * MS, MS)];
    threads[0].suspension = Suspension { total_ns: MS, most: 2, ..Suspension::default() };
    threads[0].dispatch_ns = 100_000;
    let found = guarantee(&program(threads, Vec::new()), &assumed(0)).unwrap();
    // 2 + 1 asleep + 1 of its equal + 3 dispatches.
    assert_eq!(found.bounds[0].bound_ns, Some(4_300_000));
    assert_eq!(found.bounds[1].bound_ns, Some(3 * MS));
}

#[test]
fn a_deadline_may_be_given_and_a_thread_without_one_is_only_bounded() {
    let mut threads = vec![thread(1, 20, 10 * MS, 3 * MS), thread(2, 30, 20 * MS, 5 * MS)];
    threads[1].release.kind = ReleaseKind::Sporadic;
    let model = program(threads, Vec::new());
    let found = guarantee(&model, &assumed(0)).unwrap();
    assert_eq!((found.bounds[1].deadline_ns, found.bounds[1].in_time()), (None, None));
    let deadlines_ns = BTreeMap::from([("t2".to_owned(), 7 * MS)]);
    let found = guarantee(&model, &Assumed { margin_ppm: 0, deadlines_ns }).unwrap();
    assert_eq!((found.bounds[1].in_time(), found.schedulable), (Some(false), Some(false)));
    assert_eq!((found.spare_ppm, &found.first), (None, &None));
}

#[test]
fn what_is_exported_gives_the_same_bounds() {
    let mut threads = vec![thread(1, 20, 10 * MS, 2 * MS), thread(2, 20, 20 * MS, MS)];
    threads[1].suspension = Suspension { total_ns: MS, most: 1, ..Suspension::default() };
    let demand = Bucket { rate: 0.02, burst_ns: 300_000, longest_ns: 50_000, n: 9 };
    let interrupts = Interference { cpu: 1, what: "interrupts".to_owned(), prio: None, demand };
    let model = program(threads, vec![interrupts]);
    let assumed = assumed(100_000);
    let tasks = tasks(&model, &assumed).unwrap();
    assert_eq!(tasks.of, [Of::Interference(0), Of::Thread(0), Of::Thread(1)]);
    let mut question = question::read(line(&tasks).to_string()).unwrap();
    let verdict = Ask::of(Test::FpRta).answer(&mut question, Limits::default()).unwrap();
    let bounds = guarantee(&model, &assumed).unwrap().bounds;
    let bounds: Vec<Option<u64>> = bounds.iter().map(|one| one.bound_ns).collect();
    assert!(bounds.iter().all(Option::is_some));
    assert_eq!(verdict.response_times[1..], bounds);
}

#[test]
fn a_change_is_made_of_one_thread_and_answered() {
    let model = program(vec![thread(1, 20, 10 * MS, 3 * MS), thread(2, 30, 20 * MS, 5 * MS)], Vec::new());
    let what_if = |text: &str| {
        let changed = changed(&model, &[Change::parse(text).unwrap()])?;
        let found = guarantee(&changed, &assumed(0)).unwrap();
        Ok::<_, super::change::NoChange>(
            found.bounds.iter().map(|one| (one.pid, one.bound_ns)).collect::<Vec<_>>(),
        )
    };
    // Priority 80 is before 79, which is task_struct.prio 20.
    assert_eq!(what_if("t2.priority=80").unwrap(), [(2, Some(5 * MS)), (1, Some(8 * MS))]);
    assert_eq!(what_if("t1.cost=1ms").unwrap(), [(1, Some(MS)), (2, Some(6 * MS))]);
    assert_eq!(what_if("t1.period=5ms").unwrap(), [(1, Some(3 * MS)), (2, Some(14 * MS))]);
    assert_eq!(what_if("t1.jitter=3ms").unwrap(), [(1, Some(6 * MS)), (2, Some(11 * MS))]);
    assert!(what_if("t1.cpu=7").unwrap_err().to_string().contains("CPU 7 was not recorded"));
    assert!(what_if("t9.cost=1ms").unwrap_err().to_string().contains("t1, t2"));
    // What is printed is what is read.
    for text in ["t1.period=2s", "t1.cost=3ms", "t1.jitter=1500us", "t1.asleep=7ns", "t1.cost=0ns"] {
        assert_eq!(Change::parse(text).unwrap().to_string(), text);
    }
    for wrong in ["t1", "t1.cost", "t1.weight=3", "t1.priority=100", "t1.cost=5"] {
        assert!(Change::parse(wrong).is_err(), "{wrong}");
    }
}

proptest! {
    /// The task that stands for a leaky bucket demands at least as much in every interval.
    #[test]
    fn a_bucket_is_never_less_than_its_demand(
        rate in 0.0005f64..0.5,
        burst_ns in 1_000u64..5_000_000,
        longest_ns in 100u64..500_000,
        length_ns in 1u64..100_000_000,
    ) {
        let demand = Bucket { rate, burst_ns: burst_ns.max(longest_ns), longest_ns, n: 5 };
        let one = Interference { cpu: 1, what: String::new(), prio: None, demand };
        let model = program(vec![thread(1, 20, 10 * MS, 1)], vec![one]);
        let task = tasks(&model, &assumed(0)).unwrap().question.system.tasks[0].task;
        let jobs = (length_ns + task.jitter_ns).div_ceil(task.period_ns);
        let demanded = (jobs * task.cost_ns) as f64;
        prop_assert!(demanded >= demand.burst_ns as f64 + rate * length_ns as f64 - 1.0);
    }
}

pub(super) fn kind(name: &'static str, wait: Wait, which: u64) -> Kind {
    Kind::Call { name, wait, which }
}

/// Jobs of 1 ms, released at these times.
pub(super) fn kind_jobs(kind: Kind, releases: impl IntoIterator<Item = i64>, by: Releaser) -> KindJobs {
    let (mut regular, mut costs) = (Regular::default(), Costs::new(4));
    let mut shortest = DeltaMin::new(Distances::Shortest, 8);
    let mut extent_ns = [i64::MAX, 0];
    for at in releases {
        regular.add(Window::at(at)).unwrap();
        shortest.add(Window::at(at)).unwrap();
        costs.add(MS);
        extent_ns = [extent_ns[0].min(at), at];
    }
    let costs = costs.curve();
    KindJobs {
        kind,
        n: costs.n,
        uncertain: 0,
        intended: regular.clone(),
        regular,
        lime: None,
        shortest_ns: shortest.curve().to_vec(),
        releasers: vec![(by, costs.n)],
        costs,
        demand: Buckets::default(),
        suspended_ns: 0,
        suspensions: 0,
        suspending: Suspending::default(),
        response_ns: MS,
        late_ns: None,
        extent_ns,
    }
}

fn thread_jobs(tid: i32, kinds: Vec<KindJobs>) -> ThreadJobs {
    ThreadJobs {
        tid,
        comm: format!("t{tid}"),
        prio: Some(40),
        policy: None,
        reservation: None,
        is_of_program: true,
        cpus: [1].into_iter().collect(),
        executed_ns: 1,
        dispatch_ns: 0,
        kept: None,
        demand: Buckets::default(),
        in_order: true,
        kinds,
        unkept: 0,
    }
}

fn every(period_ns: i64, n: i64) -> impl Iterator<Item = i64> {
    (0..n).map(move |index| index * period_ns)
}

pub(super) fn timer() -> Releaser {
    Releaser::Timer("hrtimer_wakeup".to_owned())
}

#[test]
fn a_point_in_time_separates_jobs_before_a_message_and_that_before_a_lock() {
    let sleep = || kind("clock_nanosleep", Wait::Sleep, 1);
    let read = || kind("read", Wait::Descriptor, 3);
    let futex = || kind("futex", Wait::Futex, 9);
    let jobs = |kind, n| kind_jobs(kind, every(1_000_000, n), Releaser::Unknown);
    let chosen = |kinds| choose(&thread_jobs(1, kinds));
    assert_eq!(chosen(vec![jobs(read(), 500), jobs(sleep(), 100)]), Ok((1, Confidence::Inferred)));
    assert_eq!(chosen(vec![jobs(futex(), 120), jobs(read(), 100)]), Ok((1, Confidence::Inferred)));
    // One that is far rarer is something that happens now and then.
    assert_eq!(chosen(vec![jobs(futex(), 300), jobs(read(), 100)]), Ok((0, Confidence::Inferred)));
    assert_eq!(chosen(vec![jobs(read(), 300), jobs(futex(), 10)]), Ok((0, Confidence::Exact)));
    assert!(chosen(vec![jobs(read(), 39)]).unwrap_err().contains("39 jobs"));
}

#[test]
fn jobs_are_compared_only_with_those_that_begin_with_the_same_wait() {
    let sleep = kind("clock_nanosleep", Wait::Sleep, 1);
    let read = |descriptor| kind("read", Wait::Descriptor, descriptor);
    let jobs = |kind, n| kind_jobs(kind, every(1_000_000, n), Releaser::Unknown);
    // By the rule alone, the sleep separates them.
    let both = thread_jobs(1, vec![jobs(read(3), 500), jobs(read(4), 60), jobs(sleep, 100)]);
    assert_eq!(choose_as(&both, None), Ok(2));
    assert_eq!(choose_as(&both, Some(&sleep.words())), Ok(2));
    assert_eq!(choose_as(&both, Some(&read(4).words())), Ok(1));
    // In another run the descriptor is another one.
    assert_eq!(choose_as(&both, Some(&read(7).words())), Ok(0));
    let why = choose_as(&both, Some("futex at 0x1028")).unwrap_err();
    assert_eq!(why, "it waits in clock_nanosleep until a time here, and in futex at 0x1028 in the model");
}

fn found(threads: Vec<ThreadJobs>, holes: u64) -> TaskModel {
    build(&ProgramJobs {
        extent_ns: [0, 1],
        threads,
        dispatches: Vec::new(),
        interrupts: Vec::new(),
        holes,
        missing_switches: 0,
        has_calls: true,
    })
}

#[test]
fn a_thread_has_the_period_of_the_one_that_releases_it() {
    let first = kind_jobs(kind("clock_nanosleep", Wait::Sleep, 1), every(10_000_000, 100), timer());
    // Its releases vary so that they alone suggest another period.
    let second = (0..100).map(|index| index * 10_000_300 + index % 7 * 40_000 + 2_000_000);
    let second = kind_jobs(kind("read", Wait::Descriptor, 3), second, Releaser::Thread(1));
    let model = found(vec![thread_jobs(1, vec![first]), thread_jobs(2, vec![second])], 0);
    let releases: Vec<_> =
        model.threads.iter().map(|one| (one.release.kind, one.release.period_ns)).collect();
    assert_eq!(releases, [(ReleaseKind::Periodic, 10 * MS); 2]);
    assert_eq!((model.chains.len(), model.chains[0].from, model.chains[0].to), (1, 1, 2));
}

#[test]
fn a_timer_that_was_later_than_the_period_is_jitter() {
    let jobs = kind_jobs(kind("clock_nanosleep", Wait::Sleep, 1), every(1_000_000, 100), timer());
    let jobs = KindJobs { late_ns: Some(3_000_000), ..jobs };
    let model = found(vec![thread_jobs(1, vec![jobs])], 0);
    let release = &model.threads[0].release;
    assert_eq!((release.kind, release.period_ns), (ReleaseKind::Periodic, MS));
    assert!(release.jitter_ns >= 3_000_000, "{release:?}");
    assert_eq!(guarantee(&model, &assumed(0)).unwrap().schedulable, Some(false));
}

#[test]
fn bursts_are_described_by_their_curve_and_its_line_is_above_it() {
    let releases: Vec<i64> =
        (0..40).flat_map(|burst| [0, 1, 2].map(|at| burst * 9_000_000 + at * 100_000)).collect();
    let jobs = kind_jobs(kind("read", Wait::Descriptor, 3), releases, Releaser::Unknown);
    let curve = jobs.shortest_ns.clone();
    let model = found(vec![thread_jobs(1, vec![jobs])], 0);
    let release = &model.threads[0].release;
    assert_eq!(release.kind, ReleaseKind::Curve);
    for (count, length_ns) in (0_u64..).zip(curve).skip(2) {
        let most = ((length_ns as u64) + release.jitter_ns).div_ceil(release.period_ns);
        assert!(most >= count, "{count} in {length_ns}");
    }
    // Three jobs of 1 ms, 100 µs apart: the third is done 2.8 ms after its release.
    let bound = |model: &TaskModel| guarantee(model, &assumed(0)).unwrap().bounds[0].bound_ns;
    assert_eq!(bound(&model), Some(2_800_000));
    // As does the line for `sched analyze`.
    let line = line(&tasks(&model, &assumed(0)).unwrap()).to_string();
    let mut question = question::read(line).unwrap();
    let verdict = Ask::of(Test::FpRta).answer(&mut question, Limits::default()).unwrap();
    assert_eq!(verdict.response_times, [Some(2_800_000)]);
    // A timer that was late delays what it releases.
    let mut late = model.clone();
    late.threads[0].release.late_ns = 100_000;
    assert_eq!(bound(&late), Some(2_900_000));
    // By period and jitter, its lateness counts as well: not less.
    let changed = changed(&model, &[Change::parse("t1.jitter=2.7ms").unwrap()]).unwrap();
    assert!(bound(&changed) > Some(2_800_000));
}

#[test]
fn what_follows_a_sleep_for_a_time_has_no_period() {
    let jobs = kind_jobs(kind("nanosleep", Wait::Sleep, 0), every(1_000_000, 100), timer());
    assert_eq!(found(vec![thread_jobs(1, vec![jobs])], 0).threads[0].release.kind, ReleaseKind::Sporadic);
}

#[test]
fn lost_events_migrations_and_fair_threads_have_no_model() {
    let jobs =
        || vec![kind_jobs(kind("read", Wait::Descriptor, 3), every(1_000_000, 100), Releaser::Unknown)];
    let why = |thread: ThreadJobs, holes| found(vec![thread], holes).threads[0].why.clone();
    assert_eq!(why(thread_jobs(1, jobs()), 0), None);
    assert!(why(thread_jobs(1, jobs()), 2).unwrap().contains("missing in 2 places"));
    let moves = ThreadJobs { cpus: [0, 1].into_iter().collect(), ..thread_jobs(1, jobs()) };
    assert!(why(moves, 0).unwrap().contains("CPUs 0,1"));
    assert!(why(ThreadJobs { prio: Some(120), ..thread_jobs(1, jobs()) }, 0).unwrap().contains("real-time"));
    let none = found(vec![thread_jobs(1, jobs())], 2);
    assert_eq!(guarantee(&none, &assumed(0)), None);
}

#[test]
fn a_job_that_executed_too_long_contradicts_the_model_by_itself() {
    let job = Refutation {
        pid: 1,
        comm: String::new(),
        release_ns: 0,
        response_ns: 9,
        bound_ns: 8,
        executed_ns: 5,
        cost_ns: 4,
        suspended_ns: 0,
        suspension_ns: 0,
        dispatch_ns: 0,
        kept: None,
        after_ns: None,
    };
    assert!(job.contradicts().unwrap().contains("executed"));
    assert_eq!(Refutation { executed_ns: 4, ..job }.contradicts(), None);
}
