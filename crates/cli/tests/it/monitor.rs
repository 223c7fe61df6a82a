//! `stillcore monitor` on this machine: a thread that is late by another's doing is a breach, kept
//! with who that was; every breach is accounted for; stopped or killed, nothing is left behind.

use crate::support::{
    Place, answer_of, assert_refused, eventually, is_root, records_events, signal, start, stillcore, text,
};
use model::Cpus;
use model::sample::Policy;
use serde_json::Value;
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, ChildStdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;
use std::time::Duration;
use sys::clock::{now_ns, sleep_until};
use sys::sched;

/// Names that no other program of this machine has, as the kernel knows tasks by.
const HOG: &str = "monitor-hog";
const VICTIM: &str = "monitor-victim";
const GREEDY: &str = "monitor-greedy";
const ORDINARY: &str = "monitor-fair";
/// What is late in these tests, and nothing else on a busy machine, it is hoped: others may be.
const OVER: &str = "40ms";
/// How long the hog takes the CPU, ns.
const HOG_NS: i64 = 60_000_000;

fn last_cpu() -> u32 {
    sched::affinity().unwrap().iter().last().unwrap()
}

struct Monitor {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// Host and port of its metrics.
    address: String,
}

impl Monitor {
    fn start(place: &Place, options: &[&str]) -> Self {
        let mut command = stillcore(&["monitor", "start", "--listen", "127.0.0.1:0", "--over", OVER]);
        command.args(["--cpus", &last_cpu().to_string()]).args(options).arg("--state").arg(place.state());
        let mut child = start(&mut command);
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.next().unwrap().unwrap();
        let address = first.split_once("http://").unwrap().1.trim_end_matches("/metrics").to_owned();
        Self { child, lines, address }
    }

    /// The next breach that is printed.
    fn line(&mut self) -> String {
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        lines.find(|line| !line.starts_with("note: ")).unwrap()
    }

    fn get(&self, head: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn metrics(&self) -> String {
        self.get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
    }

    fn stop(mut self) {
        signal(self.child.id(), "TERM");
        // It may print more than a pipe holds.
        self.lines.by_ref().for_each(drop);
        let (mut said, status) = (String::new(), self.child.wait().unwrap());
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(status.success(), "{status}: {said}");
    }
}

impl Drop for Monitor {
    /// Of a test that has failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn answer(place: &Place, words: &[&str]) -> String {
    let mut command = stillcore(&[&["monitor"], words].concat());
    let output = command.arg("--state").arg(place.state()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

fn json(place: &Place, words: &[&str]) -> Value {
    let mut command = stillcore(&[&["monitor"], words, &["--json"]].concat());
    answer_of(&command.arg("--state").arg(place.state()).output().unwrap(), 0)
}

/// A thread that sleeps a millisecond again and again on the last CPU, until the flag; then hogs of
/// that CPU until `enough` says so. False without the right to real-time policies.
fn late_by_a_hog(mut enough: impl FnMut() -> bool) -> bool {
    let over = AtomicBool::new(false);
    let become_urgent = |priority| {
        sched::pin(&Cpus::one(last_cpu())).unwrap();
        sys::policy::set_policy(&Policy::fifo(priority)).is_ok()
    };
    std::thread::scope(|scope| {
        let named = |name: &str| Builder::new().name(name.to_owned());
        let victim = || {
            let urgent = become_urgent(40);
            while urgent && !over.load(Ordering::Acquire) {
                sleep_until(now_ns() + 1_000_000);
            }
            urgent
        };
        let victim = named(VICTIM).spawn_scoped(scope, victim).unwrap();
        let hog = || {
            if !become_urgent(90) {
                return;
            }
            sleep_until(now_ns() + 300_000_000);
            let end = now_ns() + HOG_NS;
            while now_ns() < end {}
        };
        while !victim.is_finished() && !enough() {
            named(HOG).spawn_scoped(scope, hog).unwrap().join().unwrap();
        }
        over.store(true, Ordering::Release);
        victim.join().unwrap()
    })
}

/// Reports that a loop was late until such a breach is kept: on a busy host events of that moment
/// may be lost, which its line then says. Its line in the list.
fn a_kept_report(place: &Place) -> String {
    let reports = || answer(place, &["list"]).lines().filter(|it| it.contains("control-loop[")).count();
    for nth in 1..=10 {
        answer(place, &["report", "control-loop", "--took", "5ms"]);
        eventually("a report is a breach", || (reports() >= nth).then_some(()));
        let kept = answer(place, &["list", "--json"]);
        let mut kept = kept.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        if kept.any(|it| it["worst"]["kind"] == "reported" && it["fate"] == "kept") {
            let all = answer(place, &["list"]);
            return all.lines().find(|line| line.contains("control-loop[")).unwrap().to_owned();
        }
    }
    panic!("no report is kept: {}", answer(place, &["list"]));
}

/// A setting that nobody here depends on, made another one until this is dropped.
struct Setting(String);

impl Setting {
    const FILE: &str = "/proc/sys/vm/stat_interval";

    fn change() -> Self {
        let was = std::fs::read_to_string(Self::FILE).unwrap();
        std::fs::write(Self::FILE, if was.trim() == "7" { "8" } else { "7" }).unwrap();
        Self(was)
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        std::fs::write(Self::FILE, &self.0).unwrap();
    }
}

/// The value of a series.
fn value(metrics: &str, series: &str) -> u64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {metrics}")).parse::<f64>().unwrap() as u64
}

#[test]
fn a_late_thread_is_kept_with_who_was_in_the_way() {
    if !is_root() || !records_events() {
        return println!("skipped: no events are recorded here");
    }
    let place = Place::alone();
    let mut monitor = Monitor::start(&place, &["--before", "50ms", "--per-hour", "100"]);
    let _changed = Setting::change();
    // A hypervisor may hold the victim up as long, without a hog.
    let ours = |breach: &Value| {
        let cause = breach["explained"]["cause"].as_str();
        breach["worst"]["comm"] == VICTIM
            && breach["fate"] == "kept"
            && cause.is_some_and(|it| it.contains(HOG))
    };
    let kept = || {
        let lines = answer(&place, &["list", "--json"]);
        let mut all = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        all.find(|breach| ours(breach))
    };
    let mut hogs = 0;
    // A kernel may not write the switch to the victim: then nothing is concluded.
    let urgent = late_by_a_hog(|| {
        hogs += 1;
        hogs > 12 || kept().is_some()
    });
    if !urgent {
        println!("skipped: a hog takes the right to real-time policies");
        return monitor.stop();
    }
    let breach = eventually("the breach is kept", kept);
    assert_eq!(breach["explained"]["confidence"], "exact", "{breach}");
    assert!(breach["worst"]["value_ns"].as_u64().unwrap() >= 40_000_000, "{breach}");
    assert!(monitor.line().starts_with(|c: char| c.is_ascii_digit()));
    assert!(breach["changed"].to_string().contains("mechanism stat_interval"), "{breach}");
    let id = breach["id"].as_str().unwrap();
    let shown = answer(&place, &["show", id]);
    assert!(shown.contains(HOG) && shown.contains("stillcore trace explain"), "{shown}");
    let run = place.state().join("monitor/breaches").join(id);
    assert!(!run.join("PARTIAL").exists());
    assert!(!run.join("trace-pages").exists() && !run.join("trace-pages.json").exists());
    // Its trace says the same to whoever asks it.
    let tid = breach["worst"]["tid"].to_string();
    let trace = run.join("trace.dat").display().to_string();
    let said = text(&stillcore(&["trace", "explain", &trace, "--pid", &tid]).output().unwrap().stdout);
    assert!(said.contains(HOG), "{said}");
    // As any report, with the breach on top.
    let again = stillcore(&["report", &run.display().to_string(), "--json"]).output().unwrap();
    assert!(matches!(again.status.code(), Some(0 | 2)), "{}: {}", again.status, text(&again.stderr));

    let reported = a_kept_report(&place);
    assert!(reported.contains("reported 5.000 ms"), "{reported}");

    let counts = || {
        let metrics = monitor.metrics();
        let kinds = ["wakeup", "preempted"];
        let of = |kind| {
            value(&metrics, &format!("stillcore_breaches_total{{kind=\"{kind}\",fate=\"kept\",why=\"\"}}"))
        };
        (kinds.into_iter().map(of).sum::<u64>() >= 1 && of("reported") >= 1).then_some(metrics)
    };
    let metrics = eventually("the metrics count it", counts);
    assert!(metrics.starts_with("HTTP/1.1 200 OK\r\n") && metrics.contains("version=0.0.4"), "{metrics}");
    let open = monitor.get("GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n");
    assert!(open.contains("application/openmetrics-text") && open.ends_with("# EOF\n"), "{open}");
    assert!(monitor.get("GET /etc/passwd HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(monitor.get("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    let second = stillcore(&["monitor", "start", "--listen", "none", "--state"]).arg(place.state()).output();
    assert_refused(&second.unwrap(), &["keeps a monitor's breaches in", "already"]);

    let status = eventually("the status is written", || {
        let status = json(&place, &["status"]);
        status["cost"]["events"].as_u64().filter(|events| *events > 0).map(|_| status)
    });
    assert_eq!((&status["runs"], &status["pid"]), (&true.into(), &monitor.child.id().into()));
    monitor.stop();
    assert_eq!(place.leftovers(), Vec::<String>::new());
    let status = json(&place, &["status"]);
    let all = answer(&place, &["list", "--last", "1000"]);
    let counted = status["breaches"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap());
    assert_eq!(counted.sum::<u64>(), all.lines().count() as u64, "each breach has one fate: {all}");
    assert_eq!(status["runs"], false);
    // What it has seen until it stopped is in its history.
    let history = answer(&place, &["history", "--json"]);
    let interval: Value = serde_json::from_str(history.lines().next().unwrap()).unwrap();
    assert!(interval["threads"][0]["sum_ns"].as_u64().unwrap() >= 40_000_000, "{interval}");
    assert_eq!(interval["breaches"], status["breaches"]);
    assert_eq!(answer(&place, &["history"]).lines().count(), 1 + history.lines().count());
    let compared = json(&place, &["compare", "--days", "1"]);
    assert_eq!((&compared["days"], &compared["watched_ns"][0]), (&1.into(), &0.into()), "{compared}");
    assert!(answer(&place, &["compare"]).contains("(0 ns watched) and 7 days after"));
    assert!(answer(&place, &["status"]).starts_with("monitor does not run"));
}

/// Real-time tasks that want more than they may have wait for ordinary ones: 50 ms of each second.
/// Who runs then is not to blame.
#[test]
fn a_thread_without_budget_is_not_the_fault_of_who_ran() {
    if !is_root() || !records_events() {
        return println!("skipped: no events are recorded here");
    }
    let budget = std::fs::read_to_string("/proc/sys/kernel/sched_rt_runtime_us").unwrap_or_default();
    if budget.trim() == "-1" {
        return println!("skipped: real-time tasks may have all of a CPU here");
    }
    let place = Place::alone();
    let monitor = Monitor::start(&place, &["--before", "50ms"]);
    let kept = || {
        let lines = answer(&place, &["list", "--json"]);
        let mut all = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        all.find(|breach| breach["worst"]["comm"] == GREEDY && breach["explained"]["confidence"] == "exact")
    };
    let over = AtomicBool::new(false);
    let pinned = || sched::pin(&Cpus::one(last_cpu())).unwrap();
    let urgent = std::thread::scope(|scope| {
        let named = |name: &str| Builder::new().name(name.to_owned());
        let ordinary = || {
            pinned();
            while !over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        named(ORDINARY).spawn_scoped(scope, ordinary).unwrap();
        let greedy = || {
            pinned();
            let urgent = sys::policy::set_policy(&Policy::fifo(10)).is_ok();
            let end = now_ns() + 2_500_000_000;
            while urgent && now_ns() < end {}
            urgent
        };
        let mut urgent = true;
        for _ in 0..4 {
            urgent = named(GREEDY).spawn_scoped(scope, greedy).unwrap().join().unwrap();
            if !urgent || kept().is_some() {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
        urgent
    });
    if !urgent {
        println!("skipped: the right to real-time policies is missing");
        return monitor.stop();
    }
    let breach = eventually("the breach is kept", kept);
    assert_eq!(breach["worst"]["kind"], "preempted", "{breach}");
    let cause = breach["explained"]["cause"].as_str().unwrap();
    assert!(cause.contains("throttling") && !cause.contains(ORDINARY), "{cause}");
    monitor.stop();
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

/// A program with a thread on the watched CPU takes rights from its own memory on another one: each
/// time an interrupt comes by. Nothing is late.
#[test]
fn who_reaches_a_cpu_from_another_is_listed_though_nothing_was_late() {
    if !is_root() || !records_events() || last_cpu() == 0 {
        return println!("skipped: no events are recorded here, or there is one CPU");
    }
    if !std::fs::read_to_string("/proc/kallsyms").unwrap().contains(" __tracepoint_csd_queue_cpu\n") {
        return println!("skipped: this kernel does not say who calls other CPUs");
    }
    let place = Place::new();
    let monitor = Monitor::start(&place, &[]);
    let cpu = last_cpu().to_string();
    let stressor =
        ["disturb", "tlb_span", "--cpus", "0", "--measured", &cpu, "--duration", "2s", "--rate", "200"];
    let disturbed = stillcore(&stressor).arg("--state").arg(place.path("d")).output().unwrap();
    assert!(disturbed.status.success(), "{}", text(&disturbed.stderr));
    // Until that second has ended.
    std::thread::sleep(Duration::from_secs(2));
    let counted = value(&monitor.metrics(), "stillcore_offences_total{class=\"ipi.call\"}");
    monitor.stop();
    let all = answer(&place, &["offences", "--json", "--top", "1000"]);
    let all: Vec<Value> = all.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let is_it = |one: &&Value| one["call"] == "system call mprotect" && one["class"] == "ipi.call";
    let found: Vec<&Value> = all.iter().filter(is_it).collect();
    let count: u64 = found.iter().map(|one| one["count"].as_u64().unwrap()).sum();
    assert!(count >= 300 && found.iter().any(|one| one["who"] == "stillcore"), "{all:?}");
    assert!(found.iter().all(|one| one["cpus"] == cpu.as_str()), "{found:?}");
    assert!(counted > 0, "of those that the last five seconds' metrics have");
    let page = answer(&place, &["offences"]);
    assert!(page.contains("system call mprotect: ipi.call flush_tlb_func"), "{page}");
    let status = answer(&place, &["status"]);
    assert!(status.contains("; stillcore monitor offences lists who\n"), "{status}");
}

#[test]
fn a_breach_starts_a_program() {
    if !is_root() || !records_events() {
        return println!("skipped: no events are recorded here");
    }
    for (program, outcome) in [("/usr/bin/true", "done"), ("/usr/bin/false", "failed")] {
        let place = Place::new();
        let monitor = Monitor::start(&place, &["--on-breach", program]);
        answer(&place, &["report", "control-loop", "--took", "5ms"]);
        let series = format!("stillcore_actions_total{{result=\"{outcome}\"}}");
        let counted = || (value(&monitor.metrics(), &series) > 0).then_some(());
        eventually("the program has run", counted);
        monitor.stop();
        assert!(json(&place, &["status"])["actions"][outcome].as_u64().unwrap() > 0);
        assert!(answer(&place, &["status"]).contains("\nactions: "));
        assert_eq!(place.leftovers(), Vec::<String>::new());
    }
}

#[test]
fn a_monitor_that_is_killed_leaves_nothing_on_the_machine() {
    if !is_root() || !records_events() {
        return println!("skipped: no events are recorded here");
    }
    let place = Place::new();
    let mut monitor = Monitor::start(&place, &[]);
    std::thread::sleep(Duration::from_millis(1500));
    monitor.child.kill().unwrap();
    monitor.child.wait().unwrap();
    eventually("its guardian has taken everything away", || place.leftovers().is_empty().then_some(()));
    // One that was being written then is entered as such by the next one.
    let breaches = place.state().join("monitor/breaches");
    let unfinished = breaches.join("20260102-030405-678");
    std::fs::create_dir(&unfinished).unwrap();
    let breach = r#"{"schema":"stillcore.breach/1","id":"20260102-030405-678","at":"2026-01-02T03:04:05.678Z",
        "limit_ns":1,"times":1,"worst":{"kind":"wakeup","cpu":1,"tid":7,"comm":"x","t_ns":5,"value_ns":9},
        "lasted_ns":9,"fate":"kept"}"#;
    std::fs::write(unfinished.join("breach.json"), breach).unwrap();
    Monitor::start(&place, &[]).stop();
    assert!(!unfinished.exists());
    let left = std::fs::read_dir(place.state().join("monitor")).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    left.sort();
    assert_eq!(left, ["breaches", "history", "index.jsonl", "status.json"]);
    let all = answer(&place, &["list"]);
    assert!(all.contains("20260102-030405-678") && all.contains("not-recorded (ended)"), "{all}");
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

/// Any user may choose the name of a thread, and root reads it.
#[test]
fn names_of_threads_drive_no_terminal() {
    let place = Place::new();
    let breaches = place.state().join("monitor/breaches");
    std::fs::create_dir_all(&breaches).unwrap();
    let id = "20261130-010203-004";
    let breach = serde_json::json!({
        "schema": "stillcore.breach/1", "id": id, "at": "2026-11-30T01:02:03Z",
        "limit_ns": 5_000_000, "times": 1, "lasted_ns": 9, "fate": "dropped", "why": "rate",
        "group": "\u{202e}ecivres",
        "worst": {
            "kind": "wakeup", "cpu": 1, "tid": 7, "comm": "\u{1b}]0;mine\u{7}", "t_ns": 1, "value_ns": 6_000_000,
        },
    });
    std::fs::write(place.state().join("monitor/index.jsonl"), format!("{breach}\n")).unwrap();
    std::fs::write(place.state().join("monitor/status.json"), "{}").unwrap();
    for words in [&["list"][..], &["show", id]] {
        let printed = answer(&place, words);
        assert!(printed.contains(r"\u001b]0;mine\u0007[7] (\u202eecivres)"), "{printed:?}");
        assert!(!printed.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{printed:?}");
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let place = Place::new();
    let state = place.state().display().to_string();
    let refused = |words: &[&str], expected: &[&str]| {
        let output = stillcore(&[&["monitor"], words, &["--state", &state]].concat()).output().unwrap();
        assert_refused(&output, expected);
    };
    if is_root() {
        refused(&["start", "--over", "0ms"], &["--over", "above 0"]);
        refused(&["start", "--on-breach", "true"], &["--on-breach true", "absolute"]);
        let as_root = ["start", "--on-breach", "/usr/bin/true", "--on-breach-user", "0"];
        refused(&as_root, &["--on-breach-user 0", "do not run as root"]);
        refused(
            &["start", "--textfile", "/nowhere", "--listen", "none"],
            &["/nowhere", "expected a directory"],
        );
    } else {
        refused(&["start"], &["must be root"]);
    }
    refused(&["start", "--listen", "nowhere"], &["invalid address", "127.0.0.1:9469"]);
    refused(&["start", "--quota", "5K"], &["expected"]);
    refused(&["status"], &["no monitor has run here"]);
    refused(&["history"], &["no monitor has run here"]);
    refused(&["compare", "--at", "yesterday"], &["invalid time", "2026-01-02T03:04:05Z"]);
    refused(&["compare", "--days", "0"], &["0", "1..=366"]);
    refused(&["show", "last"], &["no monitor has run here"]);
    refused(&["report", "x"], &["no monitor runs here"]);
    // One that was killed has left its socket.
    std::fs::create_dir_all(place.state()).unwrap();
    drop(UnixDatagram::bind(place.state().join("monitor.sock")).unwrap());
    refused(&["report", "x"], &["no monitor runs here"]);
    refused(&["offences", "--top", "x"], &["--top x: expected a whole number"]);
    refused(&["list", "--last", "99999999999999999999"], &["expected a smaller number"]);
    refused(&["report", "a b"], &["invalid name"]);
}
