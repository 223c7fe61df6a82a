//! `stillcore model --locks=every` on programs whose locks are known: requests and hold times, and
//! which of them have a bound.

use crate::support::{Place, records_events, stillcore, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const JOBS: u64 = 80;
/// An urgent thread that locks twice a job, one that does not, and a slow one with a long section.
const THREADS: [&str; 3] = [
    "name=control,kind=absolute,prio=60,cpu=0,period=10000,cost=200,lock=0,hold=100,times=2",
    "name=middle,kind=absolute,prio=50,cpu=0,period=8000,cost=300",
    "name=logger,kind=absolute,prio=40,cpu=0,period=11000,cost=300,lock=0,hold=1500",
];

fn jobs(place: &Place) -> Option<PathBuf> {
    if !records_events() {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plants/jobs.c");
    let program = place.path("jobs");
    let compiled = Command::new("cc").args(["-O2", "-pthread", "-o"]).arg(&program).arg(source).status();
    match compiled {
        Ok(status) if status.success() => Some(program),
        other => {
            println!("skipped: no C compiler ({other:?})");
            None
        }
    }
}

/// The model of such threads, and the exit status; `None` where programs cannot be probed.
fn modelled(place: &Place, run: &Path, program: &Path, threads: &[String]) -> Option<(Value, Option<i32>)> {
    let output = stillcore(&["model", "--json", "--locks=every", "--out"])
        .arg(run)
        .arg("--state")
        .arg(place.state())
        .arg("--")
        .arg(program)
        .arg(JOBS.to_string())
        .args(threads)
        .output()
        .unwrap();
    let log = text(&output.stderr);
    if log.contains("CONFIG_UPROBE_EVENTS") {
        println!("skipped: this kernel has no probes of programs");
        return None;
    }
    assert!(log.contains("locking and unlocking a mutex takes about"), "{log}");
    let model = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{log}"));
    assert_eq!(place.leftovers(), Vec::<String>::new());
    Some((model, output.status.code()))
}

fn of_thread<'a>(list: &'a Value, name: &str) -> &'a Value {
    let all = list.as_array().unwrap();
    all.iter().find(|one| one["comm"] == name).unwrap_or_else(|| panic!("{name} in {list}"))
}

/// The lock that the planted threads share.
fn shared(model: &Value) -> &Value {
    let all = model["locks"]["all"].as_array().unwrap();
    let mut shared = all.iter().filter(|lock| lock["users"].as_array().unwrap().len() > 1);
    shared.next().unwrap_or_else(|| panic!("{}", model["locks"]))
}

#[test]
fn requests_and_hold_times_are_found_and_every_wait_is_within_its_bound() {
    let place = Place::alone();
    let Some(program) = jobs(&place) else { return };
    let run = place.path("run");
    let Some((model, _)) = modelled(&place, &run, &program, &THREADS.map(str::to_owned)) else { return };
    let lock = shared(&model);
    assert_eq!((&lock["protocol"], lock["users"].as_array().unwrap().len()), (&"inherits".into(), 2));
    for (name, requests, hold_us) in [("control", 2, 100), ("logger", 1, 1_500)] {
        let user = of_thread(&lock["users"], name);
        assert_eq!(
            (&user["requests"], &user["taken"]),
            (&requests.into(), &(requests * JOBS).into()),
            "{lock}"
        );
        assert!(user["held_ns"].as_u64() >= Some(hold_us * 1_000), "{lock}");
        assert_eq!((&user["slept_ns"], user["within"].as_array().unwrap().len()), (&0.into(), 0), "{lock}");
        let thread = of_thread(&model["threads"], name);
        assert!(user["held_ns"].as_u64() < thread["cost"]["curve_ns"][0].as_u64(), "{lock} {thread}");
        assert_eq!(thread["requests"][0]["count"], requests);
    }
    let bounds = &model["guarantee"]["bounds"];
    let held_ns = of_thread(&lock["users"], "logger")["held_ns"].as_u64();
    for name in ["control", "middle"] {
        assert!(of_thread(bounds, name)["blocking_ns"].as_u64() > held_ns, "{bounds}");
    }
    assert!(of_thread(bounds, "logger")["blocking_ns"].as_u64() < held_ns, "{bounds}");
    let waits = of_thread(&model["lock_waits"], "control");
    assert!(waits["waiting"].as_u64() > Some(0) && waits["blocked_ns"].as_u64() > Some(0), "{waits}");
    // Bounds contain the longest of everything that was seen, and 20 % more.
    assert_eq!((&model["checked"]["refuted"], &waits["refuted"]), (&0.into(), &0.into()), "{model}");
    let statements = model["statements"].as_array().unwrap();
    let probes = |one: &Value| {
        one.as_str()
            .unwrap()
            .starts_with("every locking was recorded: for that, one with its release took about")
    };
    assert!(statements.iter().any(probes), "{statements:?}");
    the_tasks_have_the_same_bounds(&run, bounds);
    let printed = stillcore(&["model", "--from"]).arg(&run).output().unwrap();
    let printed = text(&printed.stdout);
    for part in ["inherits", "held at most", "blocked at most"] {
        assert!(printed.contains(part), "{part}: {printed}");
    }
}

fn the_tasks_have_the_same_bounds(run: &Path, bounds: &Value) {
    let tasks = run.join("tasks.jsonl");
    let asked = ["sched", "analyze", "--test", "fp-rta", "--locks", "pip", "--json"];
    let output = stillcore(&asked).arg(&tasks).output().unwrap();
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of_sched: Vec<u64> =
        verdict["response_times"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    // A neighbour of this machine may have kept a thread from its CPU for too long.
    for bound_ns in bounds.as_array().unwrap().iter().filter_map(|bound| bound["bound_ns"].as_u64()) {
        assert!(of_sched.contains(&bound_ns), "{bound_ns} in {verdict}");
    }
}

#[test]
fn a_plain_mutex_with_a_thread_in_between_has_no_bound_and_with_inheritance_it_has() {
    let place = Place::alone();
    let Some(program) = jobs(&place) else { return };
    let run = place.path("run");
    let mut threads = THREADS.map(str::to_owned);
    threads[0].push_str(",plain=1");
    let Some((model, code)) = modelled(&place, &run, &program, &threads) else { return };
    assert_eq!((&shared(&model)["protocol"], code), (&"plain".into(), Some(2)));
    let bounds = &model["guarantee"]["bounds"];
    for name in ["control", "middle", "logger"] {
        let bound = of_thread(bounds, name);
        let why = bound["why"].as_str().unwrap_or_default();
        assert!(
            bound["bound_ns"].is_null() && why.contains("it does not inherit priorities, and "),
            "{bound}"
        );
        // Another thread of this machine may be in between as well.
        let between = " may run while control[";
        assert!(why.contains(between) && why.contains("waits for logger["), "{bound}");
    }
    assert!(!run.join("tasks.jsonl").exists());
    let output = stillcore(&["model", "--what-if", "locks=pip", "--from"]).arg(&run).output().unwrap();
    let printed = text(&output.stdout);
    let first = printed.lines().next().unwrap_or_default();
    assert!(first.starts_with("No bound for control, ") && first.contains(": lock 0x"), "{printed}");
    let then = printed.lines().find(|line| line.starts_with("then: ")).unwrap_or_else(|| panic!("{printed}"));
    assert!(then.contains("chedulable") && !then.contains("No bound"), "{printed}");
}

#[test]
fn locks_within_locks_and_sleeping_with_one_are_refused_by_name() {
    let place = Place::alone();
    let Some(program) = jobs(&place) else { return };
    for (more, expected) in [(",inner=1", "while it held"), (",nap=300", "slept in")] {
        let mut threads = THREADS.map(str::to_owned);
        threads[2].push_str(more);
        let run = place.path(&more[1..6]);
        let Some((model, _)) = modelled(&place, &run, &program, &threads) else { return };
        let bound = of_thread(&model["guarantee"]["bounds"], "control");
        let why = bound["why"].as_str().unwrap_or_default();
        assert!(why.contains("logger[") && why.contains(expected), "{more}: {bound}");
        assert!(bound["bound_ns"].is_null(), "{bound}");
    }
}
