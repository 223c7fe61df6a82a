//! Disturbances end to end, on this machine: real children, real kernel counters, and the faults
//! that must leave nothing behind.
//!
//! This test is its own harness, because a stressor must be the only thing its process does: the
//! binary starts itself again with `internal …`, as the command does. What needs privilege is said
//! to be skipped without it.
//!
//! Long because: every fault needs the same harness, which a second file would have to repeat.

use disturb::confine::{self, Confinement, Room};
use disturb::{Disturbance, Options, Order, StressorSpec, catalogue, child};
use libtest_mimic::{Arguments, Failed, Trial};
use model::Cpus;
use model::stressor::{StressorRecord, StressorState};
use rustix::process::{Pid, Signal, getpid, kill_process};
use rustix::thread::{CpuSet, sched_setaffinity};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};
use sys::clock::now_ns;
use sys::policy::set_policy;
use sys::sched::affinity;

type Outcome = Result<(), Failed>;
type Test = (&'static str, fn() -> Outcome);

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [_, "internal", "stress", name, json] => {
            match child::serve(name, json, &mut std::io::stdout().lock()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        [_, "internal", "stubborn", ..] => stubborn(),
        [_, "internal", "careless"] => careless(),
        _ => libtest_mimic::run(&Arguments::from_args(), trials()).exit_code(),
    }
}

fn trials() -> Vec<Trial> {
    let each = catalogue()
        .iter()
        .filter(|spec| !spec.dangerous)
        .map(|spec| Trial::test(format!("disturbs::{}", spec.name), || beside(|| disturbs(spec))));
    let others: [Test; 14] = [
        ("all_at_once_in_control_groups", all_at_once_in_control_groups),
        ("what_is_asked_is_what_is_done", what_is_asked_is_what_is_done),
        ("a_held_stressor_begins_at_the_word_and_lingers", a_held_stressor_begins_at_the_word_and_lingers),
        ("what_comes_before_the_word_witnesses_nothing", what_comes_before_the_word_witnesses_nothing),
        ("stopping_while_starting_leaves_nothing", stopping_while_starting_leaves_nothing),
        ("stopping_at_any_moment_leaves_nothing", stopping_at_any_moment_leaves_nothing),
        ("dropping_leaves_nothing", dropping_leaves_nothing),
        ("a_child_that_ignores_sigterm_is_stuck_and_gone", a_child_that_ignores_sigterm_is_stuck_and_gone),
        ("a_killed_supervisor_leaves_no_child", a_killed_supervisor_leaves_no_child),
        ("a_child_that_dies_is_void_with_the_reason", a_child_that_dies_is_void_with_the_reason),
        (
            "a_child_is_ordinary_and_bounded_whatever_its_caller_is",
            a_child_is_ordinary_and_bounded_whatever_its_caller_is,
        ),
        ("a_wedged_stressor_is_ended_by_its_alarm", a_wedged_stressor_is_ended_by_its_alarm),
        ("a_child_moved_elsewhere_is_a_leak", a_child_moved_elsewhere_is_a_leak),
        ("a_group_is_removed_with_all_it_holds", a_group_is_removed_with_all_it_holds),
    ];
    // Witnesses are machine-wide lower bounds, so that tests may overlap.
    let others = others.map(|(name, test)| Trial::test(name, move || beside(test)));
    // It watches all stressors of this process, and may not watch those of root.
    let alone = ("an_ordinary_user_may_disturb_too", an_ordinary_user_may_disturb_too);
    let alone = Trial::test(alone.0, move || {
        let _turn = TURNS.write().unwrap_or_else(PoisonError::into_inner);
        alone.1()
    });
    each.chain(others).chain([alone]).collect()
}

/// Held by every test while it runs; by one that wants no stressor beside its own, exclusively.
static TURNS: RwLock<()> = RwLock::new(());

fn beside(test: impl FnOnce() -> Outcome) -> Outcome {
    let _turn = TURNS.read().unwrap_or_else(PoisonError::into_inner);
    test()
}

/// A child of a program that is not ours to trust: ignores SIGTERM, and so does its own child.
fn stubborn() -> ExitCode {
    // SAFETY: SIG_IGN is a valid disposition; the copy only sleeps.
    unsafe {
        libc::signal(libc::SIGTERM, libc::SIG_IGN);
        libc::fork();
    }
    println!(
        "{}",
        serde_json::to_string(&disturb::protocol::Line::Ready { confined_by: vec![] })
            .expect("a line is JSON")
    );
    let _ = std::io::stdout().flush();
    std::thread::sleep(Duration::from_secs(30));
    ExitCode::SUCCESS
}

/// A supervisor that prints its children's ids and then waits to be killed.
fn careless() -> ExitCode {
    let disturbance = start(&all(), &some_cpus(), &Options::default());
    assert!(disturbance.wait_ready(Duration::from_secs(10)));
    let pids: Vec<String> = disturbance.status().iter().map(|child| child.pid.to_string()).collect();
    println!("{}", pids.join(" "));
    std::thread::sleep(Duration::from_secs(30));
    ExitCode::FAILURE
}

/// How often a stressor is tried that does not begin or end in time.
const TRIES: u32 = 4;

/// A stressor restores what it writes; this machine may lack what it needs. One that is crowded may
/// not even let a killed process run to its end (compaction of a memory full of pages ends with
/// none of its calls half done): the record says so, and it is tried again.
fn disturbs(spec: &StressorSpec) -> Outcome {
    for _ in 0..TRIES {
        if tried(spec)? {
            return Ok(());
        }
    }
    ensure(false, &format!("it did not begin or not end in time in {TRIES} tries"))
}

/// Whether it came to its end.
fn tried(spec: &StressorSpec) -> Result<bool, Failed> {
    let (name, cpus) = (spec.name, some_cpus());
    let mine = affinity()?;
    let measured = mine.iter().filter(|cpu| !cpus.contains(*cpu)).take(1).collect();
    let values = || spec.writes.iter().map(std::fs::read_to_string).map(Result::ok).collect::<Vec<_>>();
    let before = values();
    let disturbance = start(&[name], &cpus, &Options { measured, ..Options::default() });
    if !disturbance.wait_ready(Duration::from_secs(10)) {
        let pids = trees(&disturbance);
        println!("{name}: it did not begin in time: {:?}", disturbance.stop(Duration::from_secs(5)));
        return all_gone(&pids).map(|()| false);
    }
    if disturbance.status().iter().all(|child| child.ended) {
        let records = disturbance.stop(Duration::ZERO);
        println!("skipped: {name}: {:?}", records[0].reason);
        return ensure(records[0].state == StressorState::Absent, &format!("{records:?}")).map(|()| true);
    }
    std::thread::sleep(Duration::from_secs(1));
    ensure(disturbance.running() == [name], "it still runs")?;
    let pids = trees(&disturbance);
    let records = disturbance.stop(Duration::from_secs(5));
    let [record] = &records[..] else { return Err(format!("one record, not {records:?}").into()) };
    if record.state == StressorState::Stuck {
        println!("{name}: {:?}", record.reason);
        return all_gone(&pids).map(|()| false);
    }
    // Its process on the measured CPU is an ordinary one, and a crowded machine may hardly let it
    // run: then the witness rightly says no.
    if spec.colocated && record.ops_ok > 0 && record.witness.seen < record.witness.expected {
        println!("skipped: {name}: {:?}", record.reason);
        ensure(record.state == StressorState::Void, &format!("{record:?}"))?;
        return all_gone(&pids).map(|()| true);
    }
    is_sound(record, name, &cpus)?;
    ensure(values() == before, "what it wrote is as before")?;
    all_gone(&pids).map(|()| true)
}

fn all_at_once_in_control_groups() -> Outcome {
    let cpus = some_cpus();
    let plan = confine::plan(Path::new("/"), getpid().as_raw_nonzero().get() as u32, &cpus, room(&all()));
    let made = RemoveOnDrop(confine::create(&plan));
    let disturbance = start(&all(), &cpus, &Options { groups: made.0.groups.clone(), ..Options::default() });
    ensure(disturbance.wait_ready(Duration::from_secs(10)), "all began")?;
    std::thread::sleep(Duration::from_secs(2));
    let pids = trees(&disturbance);
    for group in &made.0.groups {
        let members = std::fs::read_to_string(group.dir.join("cgroup.procs"))?;
        let members: BTreeSet<i32> = members.lines().filter_map(|line| line.parse().ok()).collect();
        let running = disturbance.status().into_iter().filter(|child| !child.ended);
        let children: Vec<i32> = running.map(|child| child.pid).collect();
        ensure(children.iter().all(|pid| members.contains(pid)), &format!("all in {}", group.dir.display()))?;
    }
    let records = disturbance.stop(Duration::from_secs(5));
    ensure(records.iter().map(|record| record.name.as_str()).eq(all()), "records in the order asked for")?;
    for record in &records {
        if is_absent(record) {
            continue;
        }
        is_sound(record, &record.name, &cpus)?;
        for group in &made.0.groups {
            let word = format!("cgroup {}", group.controllers.join(","));
            ensure(record.confined_by.contains(&word.trim().to_owned()), &format!("{word} in {record:?}"))?;
        }
    }
    all_gone(&pids)?;
    let left = made.0.remove();
    ensure(left.is_empty(), &format!("removed, but for {left:?}"))?;
    ensure(made.0.groups.iter().all(|group| !group.dir.exists()), "no directory is left")
}

/// Whoever measures is ready before the first operation, and sees what the last one has set off.
fn a_held_stressor_begins_at_the_word_and_lingers() -> Outcome {
    let (duration, linger) = (Duration::from_secs(1), Duration::from_millis(300));
    let options = Options { duration, linger, held: true, ..Options::default() };
    for (name, word) in [("fault", true), ("u_fork", true), ("timer", true), ("fault", false)] {
        let disturbance = start(&[name], &some_cpus(), &options);
        ensure(disturbance.wait_ready(Duration::from_secs(10)), "it is prepared")?;
        std::thread::sleep(duration + linger);
        ensure(disturbance.running() == [name], "it has neither begun nor ended")?;
        let t0_ns = now_ns();
        if word {
            disturbance.go();
            let deadline = Instant::now() + Duration::from_secs(10);
            while !disturbance.running().is_empty() && Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let record = disturbance.stop(Duration::from_secs(5)).remove(0);
        if word {
            is_sound(&record, name, &some_cpus())?;
            ensure(record.t0_ns >= t0_ns, "no operation before the word")?;
            // From the word: the first operation comes a little later.
            let length_ns = i128::from(record.t1_ns - t0_ns);
            ensure(length_ns >= (duration + linger).as_nanos() as i128, &format!("{record:?}"))?;
        } else {
            ensure(record.ops_ok == 0 && record.state == StressorState::Void, &format!("{record:?}"))?;
        }
    }
    Ok(())
}

/// Counters of the whole machine, and those that waiting itself moves: what was counted while a
/// stressor was held is not its work.
fn what_comes_before_the_word_witnesses_nothing() -> Outcome {
    const THREADS: u64 = 2000;
    let options = Options { held: true, ..Options::default() };
    let names = [
        "u_fork",
        "u_thread",
        "fork_exec",
        "thr_exit",
        "futex",
        "proc_read",
        "rcu_expedited",
        "stat_refresh",
    ];
    let disturbance = start(&names, &some_cpus(), &options);
    ensure(disturbance.wait_ready(Duration::from_secs(30)), "they are prepared")?;
    for _ in 0..THREADS {
        let _ = std::thread::spawn(|| ()).join();
    }
    // A held stressor sleeps again and again: fifty times in a second.
    std::thread::sleep(Duration::from_secs(1));
    for record in disturbance.stop(Duration::from_secs(5)) {
        if record.state == StressorState::Absent {
            continue;
        }
        let most = match record.name.as_str() {
            "u_fork" | "u_thread" | "fork_exec" | "thr_exit" => THREADS - 1,
            // What it reads to be read itself.
            "proc_read" => 1024,
            _ => 10,
        };
        let nothing = record.ops_ok == 0 && record.witness.seen <= most;
        ensure(nothing && record.state == StressorState::Void, &format!("{record:?}"))?;
    }
    Ok(())
}

/// A rate is an upper bound that an idle machine reaches; a duration ends a stressor without a
/// request.
fn what_is_asked_is_what_is_done() -> Outcome {
    let options = Options { duration: Duration::from_secs(2), ..Options::default() };
    let order = |name: &str| Order { rate: Some(50.0), ..Order::plain(name, &some_cpus()) };
    let orders = ["u_fork", "fault", "sock"].map(order);
    let disturbance = Disturbance::start(&this_program(), &orders, &options)?;
    let deadline = Instant::now() + Duration::from_secs(10);
    while !disturbance.status().iter().all(|child| child.ended) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    ensure(disturbance.running().is_empty(), "each has ended by itself")?;
    for record in disturbance.stop(Duration::ZERO) {
        is_sound(&record, &record.name.clone(), &some_cpus())?;
        let most = 50.0 * (record.t1_ns - record.t0_ns) as f64 / 1e9 + 3.0;
        ensure((1.0..=most).contains(&(record.ops_ok as f64)), &format!("{} of {most}", record.ops_ok))?;
    }
    Ok(())
}

fn stopping_while_starting_leaves_nothing() -> Outcome {
    let disturbance = start(&all(), &some_cpus(), &Options::default());
    let pids: Vec<Process> =
        disturbance.status().iter().filter_map(|child| Process::that_is(child.pid)).collect();
    let records = disturbance.stop(Duration::from_secs(5));
    ensure(records.len() == all().len(), "one record each")?;
    ensure(
        records.iter().all(|record| record.state != StressorState::Stuck),
        &format!("none stuck: {records:?}"),
    )?;
    all_gone(&pids)
}

/// Signals to a group that is still growing are easily lost; the moments are spread over the first
/// milliseconds.
fn stopping_at_any_moment_leaves_nothing() -> Outcome {
    for round in 0..40 {
        let disturbance = start(&["u_fork", "sock"], &some_cpus(), &Options::default());
        std::thread::sleep(Duration::from_micros(500 * round));
        let pids = trees(&disturbance);
        let records = disturbance.stop(Duration::from_secs(5));
        ensure(
            records.iter().all(|record| record.state != StressorState::Stuck),
            &format!("none stuck: {records:?}"),
        )?;
        all_gone(&pids)?;
    }
    Ok(())
}

fn dropping_leaves_nothing() -> Outcome {
    let disturbance = start(&all(), &some_cpus(), &Options::default());
    disturbance.wait_ready(Duration::from_secs(10));
    let pids = trees(&disturbance);
    drop(disturbance);
    all_gone(&pids)
}

fn a_child_that_ignores_sigterm_is_stuck_and_gone() -> Outcome {
    let options = Options { verb: verb(&["internal", "stubborn"]), ..Options::default() };
    let disturbance = start(&["u_fork"], &some_cpus(), &options);
    ensure(disturbance.wait_ready(Duration::from_secs(10)), "it began")?;
    let pids = trees(&disturbance);
    ensure(pids.len() == 2, &format!("it and its own child: {pids:?}"))?;
    let records = disturbance.stop(Duration::from_millis(300));
    ensure(records[0].state == StressorState::Stuck, &format!("{records:?}"))?;
    ensure(
        records[0].reason.as_deref() == Some("it did not end on request and was killed"),
        &format!("{records:?}"),
    )?;
    all_gone(&pids)
}

fn a_killed_supervisor_leaves_no_child() -> Outcome {
    let mut supervisor =
        Command::new(this_program()).args(["internal", "careless"]).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(supervisor.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let children: Vec<i32> = line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?;
    ensure(children.len() == all().len(), &format!("told its children: {line:?}"))?;
    let all_pids = children.iter().flat_map(|pid| tree(*pid));
    let pids: BTreeSet<Process> = all_pids.filter_map(Process::that_is).collect();
    ensure(pids.len() > children.len(), "some have workers")?;
    kill_process(Pid::from_child(&supervisor), Signal::KILL)?;
    supervisor.wait()?;
    all_gone(&pids)
}

fn a_child_that_dies_is_void_with_the_reason() -> Outcome {
    let disturbance = start(&["calc_pi"], &some_cpus(), &Options::default());
    ensure(disturbance.wait_ready(Duration::from_secs(10)), "it began")?;
    let pid = disturbance.status()[0].pid;
    kill_process(Pid::from_raw(pid).ok_or("no pid")?, Signal::KILL)?;
    let deadline = Instant::now() + Duration::from_secs(5);
    while !disturbance.status()[0].ended && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let records = disturbance.stop(Duration::ZERO);
    let reason = records[0].reason.clone().unwrap_or_default();
    ensure(records[0].state == StressorState::Void && reason.contains("signal: 9"), &format!("{records:?}"))
}

fn a_child_is_ordinary_and_bounded_whatever_its_caller_is() -> Outcome {
    let started = std::thread::spawn(|| {
        // Allowed for root only; as an ordinary thread the caller is no less a caller.
        let _ = set_policy(&model::sample::Policy::fifo(1));
        start(&["calc_pi"], &some_cpus(), &Options::default())
    });
    let disturbance = started.join().map_err(|_| "starting panicked")?;
    ensure(
        disturbance.wait_ready(Duration::from_secs(10)),
        "it began, though the thread that asked for it is gone",
    )?;
    let pid = disturbance.status()[0].pid;
    let read = |file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}"));
    let (stat, limits, oom) = (read("stat")?, read("limits")?, read("oom_score_adj")?);
    let fields: Vec<&str> = stat.rsplit_once(") ").ok_or("no stat")?.1.split_whitespace().collect();
    // proc(5): field 5 is the process group, 19 the nice value, 40 the real-time priority, 41 the
    // policy.
    let field = |number: usize| fields[number - 3];
    ensure([field(5), field(19), field(40), field(41)] == [&pid.to_string(), "10", "0", "0"], &stat)?;
    let status = read("status")?;
    let allowed =
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).ok_or("no affinity")?;
    ensure(allowed.parse::<Cpus>()? == some_cpus(), allowed)?;
    let data = limits.lines().find(|line| line.starts_with("Max data size")).ok_or("no data limit")?;
    ensure(data.split_whitespace().nth(3) == Some("134217728"), data)?;
    ensure(oom.trim() == "1000", &oom)?;
    let records = disturbance.stop(Duration::from_secs(5));
    is_sound(&records[0], "calc_pi", &some_cpus())
}

/// With a worker that is stopped, `u_fork` waits for ever: nothing but the alarm ends it.
fn a_wedged_stressor_is_ended_by_its_alarm() -> Outcome {
    let options = Options { duration: Duration::from_secs(2), ..Options::default() };
    let disturbance = start(&["u_fork"], &some_cpus(), &options);
    ensure(disturbance.wait_ready(Duration::from_secs(10)), "it began")?;
    let child = disturbance.status()[0].pid;
    // Workers are made right after the stressor has said that it begins.
    let deadline = Instant::now() + Duration::from_secs(2);
    while tree(child).len() < 2 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    let worker = tree(child).get(1).copied().and_then(Pid::from_raw).ok_or("no worker")?;
    kill_process(worker, Signal::STOP)?;
    let pids = trees(&disturbance);
    let deadline = Instant::now() + Duration::from_secs(15);
    while !disturbance.status()[0].ended && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(20));
    }
    let records = disturbance.stop(Duration::ZERO);
    let reason = records[0].reason.clone().unwrap_or_default();
    ensure(
        records[0].state == StressorState::Void && reason.contains("signal: 14"),
        &format!("{records:?}"),
    )?;
    all_gone(&pids)
}

fn a_child_moved_elsewhere_is_a_leak() -> Outcome {
    let cpus = some_cpus();
    let Some(elsewhere) = affinity()?.minus(&cpus).iter().next() else {
        println!("skipped: there is no other CPU to move to");
        return Ok(());
    };
    let disturbance = start(&["calc_pi"], &cpus, &Options::default());
    ensure(disturbance.wait_ready(Duration::from_secs(10)), "it began")?;
    let mut set = CpuSet::new();
    set.set(elsewhere as usize);
    sched_setaffinity(Pid::from_raw(disturbance.status()[0].pid), &set)?;
    std::thread::sleep(Duration::from_millis(500));
    let records = disturbance.stop(Duration::from_secs(5));
    let reason = records[0].reason.clone().unwrap_or_default();
    let leak = reason.starts_with("leaked: ") && reason.ends_with(&format!("found one on CPU {elsewhere}"));
    ensure(records[0].state == StressorState::Void && leak && records[0].ops_ok > 0, &format!("{records:?}"))
}

fn an_ordinary_user_may_disturb_too() -> Outcome {
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/setpriv").exists() {
        println!("skipped: needs root and setpriv, to become an ordinary user");
        return Ok(());
    }
    let place = tempfile::tempdir()?;
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755))?;
    let program = place.path().join("disturb");
    std::fs::copy(this_program(), &program)?;
    let become_nobody = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let program = program.to_str().ok_or("a path that is not text")?;
    let verb = verb(&[&become_nobody[..], &[program, "internal", "stress"]].concat());
    let cpus = some_cpus();
    let disturbance = Disturbance::start(
        Path::new("/usr/bin/setpriv"),
        &orders(&all(), &cpus),
        &Options { verb, ..Options::default() },
    )?;
    ensure(disturbance.wait_ready(Duration::from_secs(10)), "all began")?;
    std::thread::sleep(Duration::from_secs(1));
    // One that is absent here has ended.
    for child in disturbance.status().iter().filter(|child| !child.ended) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.pid))?;
        ensure(status.contains("Uid:\t65534\t65534"), "it is nobody")?;
    }
    let pids = trees(&disturbance);
    for record in disturbance.stop(Duration::from_secs(5)) {
        if is_absent(&record) {
            continue;
        }
        is_sound(&record, &record.name.clone(), &cpus)?;
        let private = record.confined_by.iter().any(|word| word == "network namespace");
        ensure(!private, "no namespace without privilege")?;
    }
    all_gone(&pids)
}

fn a_group_is_removed_with_all_it_holds() -> Outcome {
    // Another id than our own, so that the name differs from that of the other test.
    let made =
        RemoveOnDrop(confine::create(&confine::plan(Path::new("/"), u32::MAX, &some_cpus(), room(&all()))));
    let Some(group) = made.0.groups.first() else {
        println!("skipped: no control group may be made here: {:?}", made.0.lacking);
        return Ok(());
    };
    let mut sleeper = Command::new("sleep").arg("30").spawn()?;
    std::fs::write(group.dir.join("cgroup.procs"), sleeper.id().to_string())?;
    // The kernel counts an unreaped member as gone, so that the group can be removed before `wait`.
    disturb::cgroup::remove(&group.dir)?;
    ensure(!group.dir.exists(), "the group is gone")?;
    ensure(!sleeper.wait()?.success(), "its member was killed")?;
    disturb::cgroup::remove(&group.dir).map_err(Failed::from)
}

struct RemoveOnDrop(Confinement);

impl Drop for RemoveOnDrop {
    fn drop(&mut self) {
        self.0.remove();
    }
}

/// Whether this machine lacks what the stressor needs; never said of those that need nothing but a
/// kernel.
fn is_absent(record: &StressorRecord) -> bool {
    const EVERYWHERE: [&str; 5] = ["u_fork", "u_thread", "timer", "fault", "calc_pi"];
    let absent = record.state == StressorState::Absent && !EVERYWHERE.contains(&record.name.as_str());
    if absent {
        println!("skipped: {}: {:?}", record.name, record.reason);
    }
    absent
}

/// What every record of a run that went well says.
/// A crowded machine may make it weak, and only by as much as it stayed behind.
fn is_sound(record: &StressorRecord, name: &str, cpus: &Cpus) -> Outcome {
    let is_weak = StressorRecord::is_below_half(record.ops_asked, record.ops_ok);
    let state = if is_weak { StressorState::Weak } else { StressorState::Ok };
    let sound = record.name == name
        && record.cpus == *cpus
        && record.state == state
        && record.reason.is_some() == is_weak
        && record.ops_ok > 0
        && record.ops_failed.is_empty()
        && record.t1_ns > record.t0_ns
        && record.witness.seen >= record.witness.expected
        && (record.witness.expected > 0 || name == "timer")
        && record.confined_by.iter().any(|word| word == "affinity");
    ensure(sound, &format!("{record:?}"))
}

fn orders(names: &[&str], cpus: &Cpus) -> Vec<Order> {
    names.iter().map(|name| Order::plain(name, cpus)).collect()
}

fn room(names: &[&str]) -> Room {
    Room::of(&orders(names, &some_cpus())).expect("all names are known")
}

fn start(names: &[&str], cpus: &Cpus, options: &Options) -> Disturbance {
    Disturbance::start(&this_program(), &orders(names, cpus), options).expect("a disturbance starts")
}

/// Those that anybody may run anywhere, and that stay on their own CPUs. What a disk or a setting
/// may lack (`io`) is tested alone.
fn all() -> Vec<&'static str> {
    let small = |spec: &&StressorSpec| {
        let anywhere = spec.class != "io" && !spec.privilege.starts_with("none where");
        let ordinary = spec.privilege.starts_with("none") && anywhere;
        ordinary && !spec.colocated && !spec.dangerous && spec.processes <= 40
    };
    catalogue().iter().filter(small).map(|spec| spec.name).collect()
}

/// Half of the CPUs that we may use, at least one: never all, where there is more than one.
fn some_cpus() -> Cpus {
    let mine = affinity().expect("the affinity can be read");
    mine.iter().take((mine.len() / 2).max(1)).collect()
}

fn this_program() -> PathBuf {
    std::env::current_exe().expect("this program has a path")
}

fn verb(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// All processes of a disturbance: the children and what they have forked.
fn trees(disturbance: &Disturbance) -> BTreeSet<Process> {
    let pids = disturbance.status().into_iter().flat_map(|child| tree(child.pid));
    pids.filter_map(Process::that_is).collect()
}

fn tree(pid: i32) -> Vec<i32> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let children = text.split_whitespace().filter_map(|word| word.parse().ok());
    std::iter::once(pid).chain(children.flat_map(tree)).collect()
}

/// A process. Its number alone may be that of another one soon after it has ended: storms of forks
/// go through all numbers within seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    pid: i32,
    /// When it began, ticks of the boot.
    began: u64,
}

impl Process {
    /// The one that has this number now. A zombie whose new parent has not looked yet is none.
    fn that_is(pid: i32) -> Option<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (_, fields) = stat.rsplit_once(") ")?;
        // proc(5): the state is field 3, the time at which it began field 22.
        let began = fields.split(' ').nth(19)?.parse().ok()?;
        (!fields.starts_with('Z')).then_some(Self { pid, began })
    }

    fn is_alive(&self) -> bool {
        Self::that_is(self.pid).as_ref() == Some(self)
    }
}

/// Waits up to 10 s: SIGKILL is obeyed in its own time, and orphans are reaped by whoever is their
/// new parent.
fn all_gone<'a>(pids: impl IntoIterator<Item = &'a Process>) -> Outcome {
    let mut left: Vec<Process> = pids.into_iter().copied().collect();
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        left.retain(Process::is_alive);
        if left.is_empty() || Instant::now() >= deadline {
            return ensure(left.is_empty(), &format!("no process is left, but for {left:?}"));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn ensure(holds: bool, what: &str) -> Outcome {
    if holds { Ok(()) } else { Err(format!("expected: {what}").into()) }
}
