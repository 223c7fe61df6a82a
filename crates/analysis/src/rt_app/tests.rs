//! Files as others write them, and those that nobody should.

use super::{read, write};
use crate::task_model::load_tasks::tasks_of;
use crate::task_model::replay::load_of;
use crate::task_model::shape::{Link, ReleaseKind, Suspension};
use crate::task_model::system::{self, Assumed, tasks};
use crate::task_model::tests::{program, thread};
use model::load::{Load, MOST_STEPS, MOST_THREADS, Step};
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;

fn load(text: &str) -> Load {
    read("f.json", text).unwrap()
}

fn refused(text: &str) -> String {
    read("f.json", text).unwrap_err().to_string()
}

/// A task of these keys.
fn task(keys: &str) -> String {
    format!(r#"{{"tasks": {{"t": {{{keys}}}}}}}"#)
}

#[test]
fn events_keep_their_order_and_comments_are_no_part() {
    let text = r#"{
        /* as in the "examples" */
        "global": {"duration": 2, "calibration": "CPU0", "ftrace": "main,task", "default_policy": "SCHED_FIFO"},
        "tasks": {
            "a/*": {"cpus": [1], "priority": 20, "delay": 5, "run9": 300, "sleep": 40, "run1": 7,
                "resume": "b", "sem_post": "s", "timer": {"ref": "unique", "period": 10000, "mode": "absolute"}},
            "b": {"instance": 2, "policy": "SCHED_RR", "phases": {
                "first": {"loop": 3, "suspend": "b", "runtime": 10, "lock": "m", "unlock": "m"},
                "then": {"yield": "", "barrier": "all"}}},
            "c": {"loop": 4, "policy": "SCHED_DEADLINE", "dl-runtime": 100, "dl-period": 1000, "run": 1,
                "sem_wait": "s", "barrier": "all"}
        }
    }"#;
    let load = load(text);
    assert_eq!(load.duration_ns, Some(2_000 * MS));
    let names: Vec<&str> = load.threads.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a/*", "b-0", "b-1", "c"]);
    let first = &load.threads[0];
    assert_eq!(
        (first.policy.name.as_str(), first.policy.priority, first.delay_ns),
        ("SCHED_FIFO", 20, 5_000)
    );
    let steps = &first.phases[0].steps;
    let each = model::load::Share::EACH;
    assert_eq!(
        steps[..5],
        [
            Step::Execute(300_000),
            Step::Sleep(40_000),
            Step::Execute(7_000),
            Step::Send { channel: 0, share: each },
            Step::Send { channel: 1, share: each },
        ]
    );
    assert_eq!(steps[6], Step::Timer { timer: 0, period_ns: 10 * MS, absolute: true });
    let second = &load.threads[2];
    assert_eq!((second.policy.priority, second.rounds, second.phases[0].rounds), (10, None, 3));
    assert_eq!(second.phases[0].steps[0], Step::Wait { channel: 1 });
    let third = &load.threads[3];
    assert_eq!((third.rounds, third.phases[0].rounds), (Some(1), 4));
    assert_eq!(third.policy.reservation.unwrap().deadline_ns, MS);
    assert_eq!(load.barriers, [("all".to_owned(), 3)]);
}

#[test]
fn what_cannot_be_played_is_refused_by_key_and_place() {
    for (keys, says) in [
        (r#""run": 1, "mem": 10"#, "tasks: t: mem: events of this kind are not played"),
        (r#""run": 1, "fork": "t""#, "fork"),
        (r#""run": 1, "taskgroup": "/x""#, "taskgroup: the key is not played"),
        (r#""exec": 5"#, "exec: the key is not played"),
        (r#""run": 1.5"#, "JSON with whole numbers"),
        (r#""run": -1"#, "run: it is -1; expected a number of 0 to"),
        (r#""run": 99999999999"#, "it is 99999999999"),
        (r#""run": 99999999999999999999"#, "f.json"),
        (r#""run": "5""#, "it is a text; expected a whole number"),
        (r#""run": 1, "run": 2"#, "comes twice"),
        (r#""policy": "SCHED_FIFO""#, "it has no events"),
        (r#""run": 1, "policy": "FIFO""#, "the policy \"FIFO\""),
        (r#""run": 1, "priority": 5"#, "nice value"),
        (r#""run": 1, "policy": "SCHED_FIFO", "priority": 100"#, "priority: a real-time policy"),
        (r#""run": 1, "dl-period": 5"#, "dl-period: the policy is SCHED_OTHER"),
        (r#""run": 1, "policy": "SCHED_DEADLINE""#, "it has no budget"),
        (r#""run": 1, "cpus": []"#, "cpus: it is empty"),
        (r#""run": 1, "cpus": [99999999]"#, "CPU 99999999"),
        (r#""run": 1, "loop": 0"#, "loop: it is 0"),
        (r#""resume": "nobody""#, "no task \"nobody\" suspends"),
        (r#""timer": {"ref": "unique"}"#, "timer: it has no period"),
        (r#""timer": {"ref": "u", "period": 5, "mode": "often"}"#, "the mode \"often\""),
        (
            r#""instance": 2, "timer": {"ref": "tick", "period": 5}"#,
            "several threads share the timer \"tick\"",
        ),
        (r#""phases": {}"#, "it has no phase"),
        (r#""run": 1, "phases": {"a": {"run": 1}}"#, "run: it stands beside \"phases\""),
        (r#""instance": 0, "run": 1"#, "it has no thread"),
        (r#""lock": "\u001b[2J""#, "control characters"),
    ] {
        let error = refused(&task(keys));
        assert!(error.contains(says), "{keys}: {error}");
        assert!(!error.contains('\u{1b}'), "{error:?}");
    }
    assert!(refused(r#"{"tasks": {"": {"run": 1}}}"#).contains("the name \"\""));
    assert!(refused(r#"{"global": {}}"#).contains("it has no tasks"));
    assert!(refused(r#"{"tasks": {"t": {"run": 1}}, "task": {}}"#).contains("none of rt-app's"));
    assert!(refused(r#"{"global": {"pi_enabled": true}, "tasks": {}}"#).contains("inherit"));
    assert!(refused("[1]").contains("it is a list; expected an object"));
}

#[test]
fn sizes_and_depth_are_limited() {
    let error = refused(&task(&format!(r#""instance": {}, "run": 1"#, MOST_THREADS + 1)));
    assert!(error.contains("257 threads"), "{error}");
    assert!(refused(&task(r#""instance": 2000000000, "run": 1"#)).contains("2000000000 threads"));
    let many: Vec<String> = (0..=MOST_STEPS).map(|at| format!(r#""run{at}": 1"#)).collect();
    assert!(refused(&task(&many.join(","))).contains("too many events"));
    assert!(refused(&"[".repeat(100_000)).contains("recursion"));
    assert!(refused(&format!("/* {}", "x".repeat(1000))).contains("f.json"));
}

/// Times in whole microseconds, so that nothing is rounded.
#[test]
fn a_model_as_a_file_gives_the_same_tasks() {
    let mut threads = vec![thread(1, 20, 10 * MS, 2 * MS), thread(2, 30, 20 * MS, MS)];
    threads[1].suspension = Suspension { total_ns: MS, most: 2, jobs: 100, n: 200, sum_ns: 100 * MS };
    threads[0].release.offset_ns = Some(7_000_000);
    threads[1].release.offset_ns = Some(9_000_000);
    let model = program(threads, Vec::new());
    let exactly = Assumed { margin_ppm: 0, deadlines_ns: BTreeMap::new() };
    let expected = tasks(&model, &exactly).unwrap();
    let (load, notes) = load_of(&model, "m").unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let (text, notes) = write(&load, 1_500 * MS);
    assert!(notes.is_empty(), "{notes:?}");
    let again = read("f.json", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(again.duration_ns, Some(2_000 * MS));
    let cycles = |load: &Load| -> Vec<_> {
        load.threads.iter().map(|one| model::load::Cycle { suspensions: 0, ..one.cycle().unwrap() }).collect()
    };
    assert_eq!(cycles(&again), cycles(&load));
    for load in [&load, &again] {
        assert_eq!(system::line(&tasks_of(load).unwrap()), system::line(&expected));
    }
    // Written once more it is the same.
    assert_eq!(write(&again, 2_000 * MS).0, text);
}

#[test]
fn chains_stay_and_what_is_lost_is_said() {
    let mut threads = vec![thread(1, 20, 10 * MS, 2 * MS), thread(2, 30, 10 * MS, MS), thread(3, 40, MS, 1)];
    threads[0].release.jitter_ns = 300;
    threads[0].cost.total_ns = 100 * MS;
    threads[2].release.kind = ReleaseKind::Curve;
    (threads[2].release.to_ns, threads[2].release.curve) = (MS as i64, vec![(2, 2)]);
    let mut model = program(threads, Vec::new());
    let (from_comm, to_comm) = ("t1".to_owned(), "t2".to_owned());
    model.chains.push(Link { from: 1, from_comm, to: 2, to_comm, n: 99, of: 100 });
    let (load, _) = load_of(&model, "m").unwrap();
    assert_eq!(load.threads[1].phases[0].steps[0], Step::Wait { channel: 0 });
    let (text, notes) = write(&load, MS);
    for says in [
        "t1: its release jitter",
        "t1: each job executes as long",
        "t3: left out: its releases come in bursts",
    ] {
        assert!(notes.iter().any(|note| note.starts_with(says)), "{says}: {notes:?}");
    }
    let again = read("f.json", &text).unwrap();
    assert_eq!(again.threads.len(), 2);
    assert_eq!(again.threads[1].cycle().unwrap().waits_for, Some(0));
    let error = tasks_of(&again).unwrap_err().to_string();
    assert!(error.contains("t2: another thread releases it"), "{error}");
    // A circle would never begin: the second thread then has releases of its own.
    let (from_comm, to_comm) = ("t2".to_owned(), "t1".to_owned());
    model.chains.push(Link { from: 2, from_comm, to: 1, to_comm, n: 100, of: 100 });
    assert!(load_of(&model, "m").unwrap().0.channels.is_empty());
}
