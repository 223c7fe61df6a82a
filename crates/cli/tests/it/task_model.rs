//! `stillcore model` of a program whose jobs are known, on this machine; `cargo xtask bench model`
//! plays many.

use crate::support::{Place, assert_refused, records_events, stillcore, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The plant, compiled; `None` where it cannot be, or nothing can be recorded.
fn jobs(place: &Place) -> Option<PathBuf> {
    if !records_events() {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/plants/jobs.c");
    let program = place.path("jobs");
    let compiled =
        Command::new("cc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(source).arg("-lrt").status();
    match compiled {
        Ok(status) if status.success() => Some(program),
        other => {
            println!("skipped: no C compiler ({other:?})");
            None
        }
    }
}

/// A control loop that sends to a second thread, and one that sleeps for a time.
const THREADS: [&str; 3] = [
    "name=control,kind=absolute,prio=60,cpu=0,period=10000,cost=300,out=0",
    "name=filter,kind=stage,prio=50,cpu=0,period=10000,cost=200,in=0",
    "name=poll,kind=relative,prio=40,cpu=0,period=8000,cost=100",
];

fn thread<'a>(model: &'a Value, name: &str) -> &'a Value {
    let threads = model["threads"].as_array().unwrap();
    threads.iter().find(|one| one["comm"] == name).unwrap_or_else(|| panic!("{name} in {model}"))
}

/// What a crowded machine took from a recording: the jobs around events that are lost, or so much
/// of a thread's CPU that it has no bound.
fn lacking(model: &Value) -> Vec<String> {
    let bounds = model["guarantee"]["bounds"].as_array();
    let is_bounded = |name: &&str| {
        let found = bounds.and_then(|all| all.iter().find(|one| one["comm"] == *name));
        found.is_some_and(|one| one["bound_ns"].is_u64())
    };
    let unbounded = ["control", "filter", "poll"].into_iter().filter(|name| !is_bounded(name));
    let mut all: Vec<String> = unbounded.map(|name| format!("{name} has no bound")).collect();
    for one in model["threads"].as_array().into_iter().flatten() {
        let (name, n) = (one["comm"].as_str().unwrap_or_default(), one["release"]["n"].as_u64());
        if ["control", "filter"].contains(&name) && n < Some(80) {
            all.push(format!("{name}: {n:?} jobs"));
        }
    }
    all
}

/// The first of four recordings that lacks nothing.
fn whole(place: &Place, name: &str, record: impl Fn(&Path) -> Value) -> (Value, PathBuf) {
    let mut lacked = Vec::new();
    for run in (0..4).map(|at| place.path(&format!("{name}{at}"))) {
        let model = record(&run);
        match lacking(&model) {
            none if none.is_empty() => return (model, run),
            some => lacked.push(format!("{}: {}", some.join(", "), model["threads"])),
        }
    }
    panic!("none of four recordings is whole: {lacked:#?}")
}

#[test]
fn a_run_that_is_only_recorded_is_modelled_later() {
    let place = Place::alone();
    let Some(program) = jobs(&place) else { return };
    let run = place.path("only-recorded");
    let mut record = stillcore(&["model", "--record-only", "--out"]);
    let output = record.arg(&run).arg("--").arg(&program).arg("60").args(THREADS).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), format!("recorded; next: stillcore model --from {}\n", run.display()));
    assert!(!run.join("model.json").exists() && !run.join("report.html").exists());
    assert_eq!(
        run.read_dir().unwrap().filter(|file| file.as_ref().unwrap().file_name() == "PARTIAL").count(),
        0
    );
    let output = stillcore(&["model", "--json", "--from"]).arg(&run).output().unwrap();
    let model: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(thread(&model, "control")["release"]["period_ns"], 10_000_000);
    let output = stillcore(&["model", "--record-only", "--from"]).arg(&run).output().unwrap();
    assert_refused(&output, &["--record-only"]);
}

#[test]
fn the_jobs_of_a_program_are_found_and_held_against_their_bounds() {
    let place = Place::alone();
    let Some(program) = jobs(&place) else { return };
    let (model, run) = whole(&place, "run", |run| {
        let mut call = stillcore(&["model", "--json", "--deadline", "poll=8ms", "--out"]);
        let output = call.arg(run).arg("--").arg(&program).arg("100").args(THREADS).output().unwrap();
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}{}", text(&output.stdout), text(&output.stderr)))
    });
    assert_eq!(model["schema"], "stillcore.model/1");
    for name in ["control", "filter"] {
        let release = &thread(&model, name)["release"];
        assert_eq!(
            (&release["kind"], &release["period_ns"]),
            (&"periodic".into(), &10_000_000.into()),
            "{name}: {release}"
        );
    }
    assert_eq!(thread(&model, "poll")["release"]["kind"], "sporadic", "{}", model["threads"]);
    assert!(thread(&model, "control")["cost"]["curve_ns"][0].as_u64() >= Some(300_000));
    let chains = model["chains"].as_array().unwrap();
    let links: Vec<_> = chains.iter().map(|one| (&one["from_comm"], &one["to_comm"])).collect();
    assert_eq!(links, [(&Value::from("control"), &Value::from("filter"))]);
    let bounds = model["guarantee"]["bounds"].as_array().unwrap();
    let poll = bounds.iter().find(|one| one["comm"] == "poll").unwrap();
    assert_eq!((&poll["deadline_ns"], &poll["is_assumed"]), (&8_000_000.into(), &false.into()));
    // The bounds contain the longest that was seen of everything, and 20 % more.
    assert_eq!(model["checked"]["refuted"], 0, "{}", model["checked"]);

    let chain = &model["chain_times"][0];
    assert!(chain["longest_ns"].as_u64() <= chain["bound_ns"].as_u64() && chain["refuted"] == 0, "{chain}");
    assert!(chain["n"].as_u64() >= Some(60), "{chain}");
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("The job of ") && page.contains("control, CPU 0, priority 60"));

    the_same_run_again(&place, &run, &model);
    the_best_placement(&place, &run);
}

/// What is proposed is what the command of the proposal answers, and the page shows both.
fn the_best_placement(place: &Place, run: &Path) {
    let page = place.path("model.html");
    let asked = ["model", "--json", "--deadline", "poll=8ms", "--optimise", "--html"];
    let output = stillcore(&asked).arg(&page).arg("--from").arg(run).output().unwrap();
    let model: Value = serde_json::from_slice(&output.stdout).unwrap();
    let best = &model["optimised"];
    // On one CPU, rate-monotonic priorities may be as good as any others; on more, any thread
    // moves.
    let proposal = &best["proposal"];
    assert!(std::fs::read_to_string(&page).unwrap().contains("Responses and bounds"));
    if proposal.is_null() {
        return;
    }
    assert!(proposal["then"]["spare_ppm"].as_u64() > best["now"]["spare_ppm"].as_u64(), "{best}");
    let text = stillcore(&["model", "--deadline", "poll=8ms", "--optimise", "--from"]).arg(run).output();
    let text = text.unwrap();
    let printed = String::from_utf8_lossy(&text.stdout).into_owned();
    let again = printed.lines().find_map(|line| line.strip_prefix("same answer: stillcore ")).unwrap();
    let output = stillcore(&again.split(' ').collect::<Vec<_>>()).arg("--json").output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["what_if"]["guarantee"], proposal["then"], "{again}");
    // `report` finds the page again.
    let report = stillcore(&["report"]).arg(run).arg("--html").arg(&page).output().unwrap();
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    assert!(std::fs::read_to_string(&page).unwrap().contains("The job of "));
}

/// Without root: the same model, the tasks for `sched analyze`, other jobs against old bounds.
fn the_same_run_again(place: &Place, run: &Path, model: &Value) {
    let again = |more: &[&str]| {
        let output = stillcore(&["model", "--json", "--from"]).arg(run).args(more).output().unwrap();
        let model: Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code().unwrap(), model)
    };
    let (_, same) = again(&["--deadline", "poll=8ms"]);
    assert_eq!((&same["threads"], &same["guarantee"]), (&model["threads"], &model["guarantee"]));
    let tasks = run.join("tasks.jsonl");
    let output = stillcore(&["sched", "analyze", "--json"]).arg(&tasks).output().unwrap();
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    let of_sched: Vec<u64> =
        verdict["response_times"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    for bound in model["guarantee"]["bounds"].as_array().unwrap() {
        let bound_ns = bound["bound_ns"].as_u64().unwrap();
        assert!(of_sched.contains(&bound_ns), "{bound} in {verdict}");
    }
    let (_, other) = again(&["--what-if", "control.priority=80", "--what-if", "filter.cost=3ms"]);
    // What is changed may have no bound.
    let reach = |guarantee: &Value, name: &str| {
        let bounds = guarantee["bounds"].as_array().unwrap();
        let found = bounds.iter().find(|one| one["comm"] == name).unwrap();
        found["bound_ns"].as_u64().unwrap_or(u64::MAX)
    };
    assert!(reach(&other["what_if"]["guarantee"], "filter") > reach(&other["guarantee"], "filter"));
    let what_if = |changes: &[&str]| {
        let words: Vec<&str> = changes.iter().flat_map(|change| ["--what-if", *change]).collect();
        again(&words).1["what_if"].clone()
    };
    let added = what_if(&["add=logger,period=5ms,cost=1ms,priority=90,cpu=0", "poll.remove"]);
    assert!(reach(&added["guarantee"], "logger") >= 1_000_000, "{added}");
    assert!(reach(&added["guarantee"], "control") >= reach(&model["guarantee"], "control"), "{added}");
    assert!(!added["guarantee"]["bounds"].to_string().contains("poll"), "{added}");
    // The same machine in its own place: its dispatches and interrupts as they were.
    let machine = format!("machine={},cpus=0:0", run.display());
    let same = what_if(&[&machine]);
    // The changed model, by itself: its bounds can be checked, and it can be played.
    let changed = place.path("changed.json");
    let changed = changed.to_str().unwrap();
    let added = "add=logger,period=5ms,cost=1ms,priority=90,cpu=0";
    let (_, of_changed) = again(&["--what-if", added, "--what-if", &machine, "--changed", changed]);
    let stored: Value = serde_json::from_slice(&std::fs::read(changed).unwrap()).unwrap();
    assert_eq!(stored["guarantee"], of_changed["what_if"]["guarantee"]);
    let (_, checked) = again(&["--check", changed]);
    let unmatched = checked["checked"]["unmatched"].as_array().unwrap();
    let is_logger = |one: &Value| one.as_str().is_some_and(|text| text.starts_with("logger: "));
    assert!(unmatched.iter().any(is_logger), "{}", checked["checked"]);
    let load = place.path("load.json");
    let replay = ["model", "replay", changed, "--what-if", "poll.remove", "--rt-app", load.to_str().unwrap()];
    let output = stillcore(&replay).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let load = std::fs::read_to_string(&load).unwrap();
    assert!(load.contains("logger") && !load.contains("poll"), "{load}");
    let [now, then] = ["now", "then"].map(|when| same["machine"][when]["kernel"].clone());
    assert!(now == then && now.as_str().is_some_and(|kernel| !kernel.is_empty()), "{same}");
    assert_eq!(same["machine"]["cpus"][0]["now"], same["machine"]["cpus"][0]["then"]);
    assert!(reach(&same["guarantee"], "control") >= reach(&model["guarantee"], "control"), "{same}");
    let output = stillcore(&["model", "--from"]).arg(run).args(["--what-if", &machine]).output().unwrap();
    let printed = text(&output.stdout);
    for part in ["then, its CPU 0", "assumed: costs", "now (", "boot line: "] {
        assert!(printed.contains(part), "{part} in {printed}");
    }
    let other = format!("machine={},cpus=0:77", run.display());
    let output = stillcore(&["model", "--from"]).arg(run).args(["--what-if", &other]).output().unwrap();
    assert_refused(&output, &["--what-if", "CPU 77, for our CPU 0", "not recorded"]);
    // Bounds that are too short by hand refute themselves.
    let mut forged = model.clone();
    for bound in forged["guarantee"]["bounds"].as_array_mut().unwrap() {
        bound["bound_ns"] = 1_000.into();
    }
    let file = place.path("forged.json");
    std::fs::write(&file, forged.to_string()).unwrap();
    let (code, refuted) = again(&["--check", file.to_str().unwrap()]);
    assert_eq!(code, 2);
    assert!(refuted["checked"]["refuted"].as_u64() > Some(100), "{}", refuted["checked"]);
    let worst = &refuted["checked"]["refuting"][0];
    assert!(worst["response_ns"].as_u64() > worst["bound_ns"].as_u64());
    let output = stillcore(&["model", "--from"]).arg(run).args(["--check"]).arg(&file).output().unwrap();
    assert!(text(&output.stdout).starts_with("The bounds of "), "{}", text(&output.stdout));
    assert!(text(&output.stdout).contains(" do not hold: "), "{}", text(&output.stdout));
    let mut none = model.clone();
    none["guarantee"] = Value::Null;
    std::fs::write(&file, none.to_string()).unwrap();
    let output = stillcore(&["model", "--from"]).arg(run).args(["--check"]).arg(&file).output().unwrap();
    assert_refused(&output, &["it has no bounds", "expected a model"]);
}

/// A program that ends with the test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The jobs of a program that runs are those of its trace, and the first that is late ends the
/// check where that is asked for.
#[test]
fn jobs_are_held_against_their_bounds_while_the_program_runs() {
    let place = Place::alone();
    let Some(program) = jobs(&place) else { return };
    let live = place.path("live");
    let (mut model, run) = whole(&place, "run", |run| {
        let mut call = stillcore(&["model", "--json", "--out"]);
        let output = call.arg(run).arg("--").arg(&program).arg("100").args(THREADS).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    });
    // It outlives all that is done with it, however slow the machine is.
    let running = Running(Command::new(&program).arg("1000000").args(THREADS).spawn().unwrap());
    let pid = running.0.id().to_string();
    let check = |of: &Path, more: &[&str]| {
        let mut call = stillcore(&["model", "--check"]);
        call.arg(of).args(["--pid", &pid, "--duration", "3s"]).args(more).output().unwrap()
    };
    let output = check(&run, &["--json"]);
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}{}", text(&output.stdout), text(&output.stderr)));
    assert_eq!(answer["schema"], "stillcore.model-check/1");
    let held: u64 = answer["checked"]["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["jobs"].as_u64().unwrap())
        .sum();
    assert!(held >= 40, "{answer}");
    // The same events, once while they came and once from the run.
    let output = check(&run, &["--json", "--out", live.to_str().unwrap()]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(!document["checked_live"]["threads"].as_array().unwrap().is_empty(), "{document}");
    assert_eq!(document["checked_live"], document["checked"]);
    // Bounds that are too short by hand: the first job ends it.
    for bound in model["guarantee"]["bounds"].as_array_mut().unwrap() {
        bound["bound_ns"] = 1_000.into();
    }
    let file = place.path("forged.json");
    std::fs::write(&file, model.to_string()).unwrap();
    let output = check(&file, &["--stop-at-first"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(2), "{printed}{}", text(&output.stderr));
    assert!(printed.starts_with("holding jobs against the bounds of "), "{printed}");
    assert!(printed.contains("\nfirst job that took longer than its bound:\n  "), "{printed}");
    assert!(printed.contains(" do not hold: "), "{printed}");
    assert!(!place.path("run.json").exists());
    let output = check(&run, &["--optimise"]);
    assert_refused(&output, &["--optimise", "--out"]);
}

/// What a replay of a run does is modelled, and compared with the model of that run.
#[test]
fn a_replay_of_a_model_has_its_model() {
    let place = Place::alone();
    let Some(program) = jobs(&place) else { return };
    let model = |out: &Path, more: &[&str], command: &[&str]| {
        let mut call = stillcore(&["model", "--json", "--out"]);
        let output = call.arg(out).args(more).arg("--").args(command).output().unwrap();
        serde_json::from_slice::<Value>(&output.stdout)
            .unwrap_or_else(|_| panic!("{}{}", text(&output.stdout), text(&output.stderr)))
    };
    let mut threads = THREADS.map(str::to_owned);
    threads[0].push_str(",jitter=1000,suspend=500");
    let mut command = vec![program.to_str().unwrap(), "100"];
    command.extend(threads.iter().map(String::as_str));
    let (before, run) = whole(&place, "run", |run| model(run, &[], &command));
    let stillcore = env!("CARGO_BIN_EXE_stillcore");
    let replay = ["model", "replay", "--duration", "1200ms", run.to_str().unwrap()];
    let replay: Vec<&str> = std::iter::once(stillcore).chain(replay).collect();
    let of_run = run.join("model.json");
    let (after, _) =
        whole(&place, "again", |out| model(out, &["--compare", of_run.to_str().unwrap()], &replay));
    for name in ["control", "filter"] {
        let (one, other) = (thread(&before, name), thread(&after, name));
        assert_eq!(one["release"]["period_ns"], other["release"]["period_ns"], "{name}: {after}");
        assert_eq!((&one["prio"], &one["cpus"]), (&other["prio"], &other["cpus"]));
    }
    assert_eq!(thread(&after, "poll")["release"]["kind"], "sporadic");
    // Its jobs execute no less than those it is after; a neighbour's time may be counted, too.
    let mean = |model: &Value, name: &str| {
        let cost = &thread(model, name)["cost"];
        cost["total_ns"].as_f64().unwrap() / cost["n"].as_f64().unwrap()
    };
    assert!(mean(&after, "control") > 0.7 * mean(&before, "control"));
    let suspension = &thread(&after, "control")["suspension"];
    assert!(suspension["jobs"].as_u64() > Some(60), "{suspension}");
    let links = |model: &Value| -> Vec<String> {
        let chains = model["chains"].as_array().unwrap();
        chains.iter().map(|one| format!("{} {}", one["from_comm"], one["to_comm"])).collect()
    };
    assert_eq!(links(&after), links(&before));
    assert_eq!(after["compared"]["threads"], 3, "{}", after["compared"]);
    let quantities = after["compared"]["quantities"].as_array().unwrap();
    assert!(quantities.iter().any(|one| one["what"] == "period" && one["largest"] == 0.0));
}

/// The fixture played, written, and asked about; nothing of it needs root.
#[test]
fn files_of_rt_app_are_read_and_written() {
    let place = Place::new();
    let model = |words: &[&str]| stillcore(&["model", "replay"]).args(words).output().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/rt-app/control.json");
    let fixture = fixture.to_str().unwrap();
    let (written, again, tasks) = (place.path("a.json"), place.path("b.json"), place.path("tasks.jsonl"));
    let output = model(&[fixture, "--rt-app", written.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("meets-0: left out"), "{}", text(&output.stderr));
    let output = model(&[written.to_str().unwrap(), "--rt-app", again.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(std::fs::read(&written).unwrap(), std::fs::read(&again).unwrap());
    let output = model(&[fixture, "--tasks", tasks.to_str().unwrap()]);
    assert_refused(&output, &["filter: another thread releases it"]);
    let one = r#"{"tasks": {"t": {"policy": "SCHED_FIFO", "cpus": [1], "run": 300,
        "timer": {"ref": "unique", "period": 1000}}}}"#;
    std::fs::write(&written, one).unwrap();
    let output = model(&[written.to_str().unwrap(), "--tasks", tasks.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output = stillcore(&["sched", "analyze", "--test", "fp-rta", "--json"]).arg(&tasks).output().unwrap();
    let verdict: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(verdict["response_times"], serde_json::json!([300_000]));
    let fair = r#"{"tasks": {"t": {"run": 100, "timer": {"ref": "unique", "period": 1000}}}}"#;
    std::fs::write(&written, fair).unwrap();
    let output = model(&[written.to_str().unwrap(), "--duration", "50ms", "--json"]);
    let played: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(played["threads"][0]["jobs"].as_u64() >= Some(1), "{played}");
    std::fs::write(&written, one.replace("300", "999")).unwrap();
    assert_refused(&model(&[written.to_str().unwrap()]), &["99.9 % of CPU 1", "at most"]);
    assert_refused(&model(&[written.to_str().unwrap(), "--cpus", "0-1"]), &["--cpus", "as many CPUs"]);
    std::fs::write(&written, fair.replace("run", "mem")).unwrap();
    assert_refused(&model(&[written.to_str().unwrap()]), &["tasks: t: mem", "not played"]);
}

#[test]
fn any_trace_has_models_of_its_real_time_threads() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces/cyclictest/6.1.dat");
    let output = stillcore(&["model", "--from"]).arg(&trace).output().unwrap();
    let printed = text(&output.stdout);
    assert!(printed.contains("note: system calls were not recorded"), "{printed}");
    assert!(printed.contains("note: the model is of the"), "{printed}");
}

#[test]
fn bad_requests_are_refused_in_one_sentence() {
    let place = Place::new();
    let empty = place.path("empty");
    std::fs::create_dir(&empty).unwrap();
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/traces/cyclictest/6.1.dat");
    let from =
        |path: &Path, more: &[&str]| stillcore(&["model", "--from"]).arg(path).args(more).output().unwrap();
    assert_refused(&from(&empty, &[]), &["run.json"]);
    assert_refused(
        &from(&trace, &["--deadline", "nobody=5ms"]),
        &["--deadline", "nobody", "one of its threads"],
    );
    assert_refused(&from(&trace, &["--deadline", "nobody"]), &["NAME=TIME"]);
    assert_refused(&from(&trace, &["--cpus", "0"]), &["--cpus", "--optimise"]);
    assert_refused(&from(&trace, &["--check", trace.to_str().unwrap()]), &["6.1.dat"]);
    assert_refused(&from(&trace, &["--what-if", "machine=nowhere"]), &["run directory"]);
    assert_refused(&from(&trace, &["--what-if", "add=new,period=5ms"]), &["new without priority"]);
    assert_refused(&from(&trace, &["--stop-at-first"]), &["--stop-at-first"]);
}
