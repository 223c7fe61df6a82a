//! Two recordings made by hand, whose dispatch times, timers and interrupts are known.

use super::super::shape::Link;
use super::super::tests::{MS, assumed, program, thread};
use super::*;
use infer::bucket::{Bucket, Buckets};

const US: u64 = 1_000;

/// Interrupts of CPU 3 there: 1,000 per second, so long each.
fn interrupts(cost_ns: u64) -> Buckets {
    let mut buckets = Buckets::default();
    (0..4_000).for_each(|at| buckets.add(at * 1_000_000, cost_ns));
    buckets
}

/// 4 s on CPU 3, with a thread of the load, an urgent one of the machine, and a fair one.
fn there(dispatch_ns: u64, late_ns: u64) -> ProgramJobs {
    let one = |tid: i32, prio: i16, is_of_program: bool| {
        let mut demand = Buckets::default();
        (0..400).for_each(|at| demand.add(at * 10_000_000, 100 * US));
        ThreadJobs {
            tid,
            comm: format!("k{tid}"),
            prio: Some(prio),
            policy: None,
            reservation: None,
            is_of_program,
            cpus: [3].into_iter().collect(),
            executed_ns: 1,
            dispatch_ns,
            kept: None,
            demand,
            in_order: true,
            kinds: Vec::new(),
            unkept: 0,
        }
    };
    ProgramJobs {
        extent_ns: [0, 4_000_000_000],
        threads: vec![one(1, 20, true), one(8, 10, false), one(9, 120, false)],
        interrupts: vec![(3, interrupts(10 * US)), (0, interrupts(900 * US))],
        dispatches: vec![Dispatches {
            cpu: 3,
            n: 400,
            longest_ns: dispatch_ns,
            kept: None,
            timers: 400,
            late_ns,
        }],
        holes: 0,
        missing_switches: 0,
        has_calls: true,
    }
}

/// One thread on CPU 1, every 10 ms for 3 ms, released by a timer that is late by 20 us of 50 us,
/// dispatched after 100 us; the present machine's own interrupts take nearly nothing.
fn ours() -> TaskModel {
    let mut control = thread(1, 20, 10 * MS, 3 * MS);
    control.release.jitter_ns = 50 * US;
    (control.release.own_jitter_ns, control.release.late_ns) = (Some(30 * US), 20 * US);
    control.dispatch_ns = 100 * US;
    let demand = Bucket { rate: 0.0001, burst_ns: 1_000, longest_ns: 1_000, n: 400 };
    let interrupts = Interference { cpu: 1, what: "interrupts".to_owned(), prio: None, demand };
    let kernel = Interference { cpu: 1, what: "irq/9 (77)".to_owned(), prio: Some(49), demand };
    TaskModel { to_ns: 4_000_000_000, ..program(vec![control], vec![interrupts, kernel]) }
}

fn on(
    jobs: &ProgramJobs,
    recorded: &str,
    cpus: &str,
    model: &TaskModel,
    further: &[u32],
) -> Result<OnMachine, NoChange> {
    let recorded = recorded.parse().unwrap();
    let cpus = CpuMap::parse(cpus).unwrap();
    let elsewhere = Elsewhere { name: "there", jobs, recorded: &recorded, cpus: &cpus };
    on_machine(model, &elsewhere, &further.iter().copied().collect(), &assumed(0))
}

fn refused(result: Result<OnMachine, NoChange>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn what_the_machine_does_is_that_of_the_other_recording() {
    let found = on(&there(400 * US, 70 * US), "3", "1:3", &ours(), &[]).unwrap();
    let control = &found.model.threads[0];
    assert_eq!((control.dispatch_ns, control.release.jitter_ns), (400 * US, 100 * US));
    assert_eq!((control.release.late_ns, control.cost.most_ns()), (70 * US, 3 * MS));
    let competes: Vec<(&str, Option<i16>, u64)> =
        found.model.interference.iter().map(|one| (one.what.as_str(), one.prio, one.demand.n)).collect();
    // Neither the load itself nor what is fair, and nothing of the present machine.
    assert_eq!(competes, [("interrupts", None, 4_000), ("k8 (8)", Some(10), 400)]);
    assert!(found.model.interference.iter().all(|one| one.cpu == 1));
    let of_cpu = &found.replaced[0];
    assert_eq!((of_cpu.cpu, of_cpu.theirs, of_cpu.then.n), (1, 3, 400));
    assert_eq!(of_cpu.competes_now.len(), 2);
    // 3 ms, 400 us of dispatch, 100 us of jitter, four interrupts of 10 us, one of k8: within what
    // the buckets add.
    let bound = |model: &TaskModel| guarantee(model, &assumed(0)).unwrap().bounds[0].bound_ns.unwrap();
    let least_ns = 3 * MS + (400 + 100 + 40 + 100) * US;
    assert!((least_ns..least_ns + 150 * US).contains(&bound(&found.model)), "{}", bound(&found.model));
    assert!(bound(&ours()) < 3 * MS + 200 * US);
    assert!(found.assumed.iter().any(|one| one.contains("k8 (8)")));
    assert!(found.assumed.iter().any(|one| one.contains("on CPU 1 at most 75 of 10,000, after none of 400")));
}

#[test]
fn the_verdict_changes_with_what_was_measured_there() {
    let deadline = Assumed { deadlines_ns: [("t1".to_owned(), 4 * MS)].into(), ..assumed(0) };
    let schedulable = |model: &TaskModel| guarantee(model, &deadline).unwrap().schedulable.unwrap();
    assert!(schedulable(&ours()));
    let there_in = |dispatch_ns| on(&there(dispatch_ns, 70 * US), "3", "1:3", &ours(), &[]).unwrap().model;
    assert!(schedulable(&there_in(100 * US)));
    assert!(!schedulable(&there_in(900 * US)));
}

#[test]
fn what_the_other_recording_lacks_is_refused_by_name() {
    let good = || there(400 * US, 70 * US);
    let reason = refused(on(&good(), "2-3", "1:4", &ours(), &[]));
    assert!(
        reason.contains("CPU 4") && reason.contains("not recorded") && reason.contains("2,3"),
        "{reason}"
    );
    // Without a map, CPU 1 stands for itself.
    let reason = refused(on(&good(), "3", "9:3", &ours(), &[]));
    assert!(reason.contains("there: CPU 1, for our CPU 1") && reason.contains("cpus=1:N"), "{reason}");
    let none = ProgramJobs { dispatches: Vec::new(), ..good() };
    let reason = refused(on(&none, "3", "1:3", &ours(), &[]));
    assert!(reason.contains("woken 0 times, expected at least 40"), "{reason}");
    let short = ProgramJobs { extent_ns: [0, 300_000_000], ..good() };
    let reason = refused(on(&short, "3", "1:3", &ours(), &[]));
    assert!(reason.contains("only 300 ms") && reason.contains("40 periods of t1"), "{reason}");
    let mut untimed = good();
    untimed.dispatches[0].timers = 0;
    let reason = refused(on(&untimed, "3", "1:3", &ours(), &[]));
    assert!(reason.contains("timers woke real-time threads 0 times"), "{reason}");
    let quiet = ProgramJobs { interrupts: Vec::new(), ..good() };
    let reason = refused(on(&quiet, "3", "1:3", &ours(), &[]));
    assert!(reason.contains("0 interrupts per second, less than half of the 25"), "{reason}");
    let reason = refused(on(&ProgramJobs { holes: 2, ..good() }, "3", "1:3", &ours(), &[]));
    assert!(reason.contains("events are missing in 2 places"), "{reason}");
    // A CPU that a thread is to be moved to.
    let reason = refused(on(&good(), "3", "1:3", &ours(), &[5]));
    assert!(reason.contains("for our CPU 5"), "{reason}");
}

#[test]
fn a_thread_that_another_releases_is_released_later_there() {
    let mut model = ours();
    model.threads.push(thread(2, 30, 10 * MS, MS));
    let link = Link { from: 1, from_comm: "t1".into(), to: 2, to_comm: "t2".into(), n: 99, of: 100 };
    model.chains = vec![link];
    let jitter = |dispatch_ns: u64| {
        let found = on(&there(dispatch_ns, 20 * US), "3", "1:3", &model, &[]).unwrap();
        (found.model.threads[1].release.jitter_ns, found.assumed.last().unwrap().contains("t2"))
    };
    let (grown_ns, is_said) = jitter(1_100 * US);
    assert!((MS..2 * MS).contains(&grown_ns) && is_said, "{grown_ns}");
    let mut alone = model.clone();
    alone.chains.clear();
    let found = on(&there(1_100 * US, 20 * US), "3", "1:3", &alone, &[]).unwrap();
    assert_eq!(found.model.threads[1].release.jitter_ns, 0);
}

#[test]
fn a_later_timer_brings_releases_nearer() {
    let mut model = ours();
    let release = &mut model.threads[0].release;
    (release.kind, release.own_jitter_ns) = (ReleaseKind::Curve, None);
    release.curve = vec![(100_001, 2), (9_000_001, 3)];
    let found = on(&there(0, 70 * US), "3", "1:3", &model, &[]).unwrap();
    assert_eq!(found.model.threads[0].release.curve, [(50_001, 2), (8_950_001, 3)]);
}

#[test]
fn jitter_that_lateness_does_not_explain_stays() {
    let mut model = ours();
    model.threads[0].release.jitter_ns = 500 * US;
    let found = on(&there(0, 20 * US), "3", "1:3", &model, &[]).unwrap();
    assert_eq!(found.model.threads[0].release.jitter_ns, 500 * US);
}
