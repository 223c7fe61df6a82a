//! `stillcore graph` on this machine: counts, accounts, files; processes that are killed, stopped
//! or slow; no times.

use crate::support::graph::{assert_balanced, count};
use crate::support::{Place, assert_refused, read_json, stillcore, text};
use model::sample::Policy;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// `graph run` without real-time priority, for a graph that lies in the place.
fn graph_run(place: &Place, arguments: &[&str]) -> Command {
    let mut command = stillcore(&["graph", "run"]);
    command.args(["--policy", "other", "--quiet", "--json", "--state"]).arg(place.state());
    command.arg("--out").arg(place.path("run")).args(arguments).current_dir(place.dir.path());
    command
}

fn answer(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)))
}

#[test]
fn every_message_of_a_json_topology_is_accounted_for() {
    let place = Place::new();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../graph/fixtures");
    for name in ["every-key.json", "listener.json"] {
        fs::copy(fixtures.join(name), place.path(name)).unwrap();
    }
    let output =
        graph_run(&place, &["every-key.json", "listener.json", "--duration", "1s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let answer = answer(&output);
    let run = place.path("run");
    assert_eq!(answer, read_json(&run.join("graph.json")));
    assert_balanced(&run, &answer);
    // 64 requests a second are asked and answered; a late timer may have skipped some.
    let timers = answer["timers"].as_array().unwrap();
    let of =
        |name: &str| timers.iter().find(|timer| timer["name"].as_str().unwrap().ends_with(name)).unwrap();
    let asked = of("/reset");
    assert_eq!(count(asked, "served") + count(asked, "missed"), 64);
    let edges = answer["edges"].as_array().unwrap();
    let account = |kind: &str| &edges.iter().find(|edge| edge["kind"] == kind).unwrap()["account"];
    let (requests, responses) = (account("request"), account("response"));
    assert_eq!(count(requests, "sent"), count(asked, "served"));
    // On a crowded machine a request may be replaced or left, and is not answered then.
    assert_eq!(count(responses, "sent"), count(requests, "received") + count(requests, "unstored"));
    // The result files of ros2-performance, which are read again by `graph judge`.
    let log = run.join("every-key+listener_log");
    let all = fs::read_to_string(log.join("latency_all.txt")).unwrap();
    assert!(all.contains("Subscriptions stats:") && all.contains("Clients stats:"), "{all}");
    // What publishing took: each publisher that is heard, with as many calls as its edges carried.
    let publishers = answer["publishers"].as_array().unwrap();
    let heard: std::collections::BTreeSet<String> = answer["edges"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|edge| edge["kind"] == "topic")
        .map(|edge| format!("{} {}", edge["from"], edge["topic"]))
        .collect();
    assert_eq!(publishers.len(), heard.len(), "{publishers:?}");
    assert!(publishers.iter().all(|one| count(&one["took"], "counted") > 0), "{publishers:?}");
    let rows = all.split_once("Publishers stats:").unwrap().1.lines().filter(|line| !line.is_empty());
    assert_eq!(rows.count(), 1 + heard.len(), "{all}");
    let target = place.path("target.json");
    fs::write(&target, r#"{"latency_total": {"lost[%]": 100, "late[%]": 100}, "resources": {"rss[KB]": 1}}"#)
        .unwrap();
    let judged = stillcore(&["graph", "judge"]).arg(&log).arg("--target").arg(&target).output().unwrap();
    assert_eq!(judged.status.code(), Some(2), "{}", text(&judged.stderr));
    assert!(text(&judged.stdout).contains("FAIL"), "{}", text(&judged.stdout));
    // The run contains its graph, which can be run again.
    let shown = |file: &Path| stillcore(&["graph", "show", "--json"]).arg(file).output().unwrap();
    let counts: Value = serde_json::from_slice(&shown(&run.join("graph.toml")).stdout).unwrap();
    assert_eq!(counts["counts"]["edges"].as_u64(), Some(answer["edges"].as_array().unwrap().len() as u64));
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn headers_of_both_generations_are_written_and_read() {
    for (headers, word) in [("words", "late_msgs"), ("brackets", "late[#]")] {
        let place = Place::new();
        let target = place.path("target.json");
        fs::write(&target, r#"{"latency_total": {"lost[%]": 100}}"#).unwrap();
        let arguments =
            ["small-single", "--duration", "300ms", "--headers", headers, "--target", "target.json"];
        let output = graph_run(&place, &arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let log = place.path("run/small-single_log");
        assert!(fs::read_to_string(log.join("latency_total.txt")).unwrap().contains(word));
        let judged = stillcore(&["graph", "judge"]).arg(&log).arg("--target").arg(&target).output().unwrap();
        assert_eq!(judged.status.code(), Some(0), "{}", text(&judged.stderr));
    }
}

#[test]
fn control_loops_give_the_expected_outputs() {
    let place = Place::new();
    let arguments = ["aocs", "--duration", "1500ms", "--copies", "2", "--files", "own"];
    let output = graph_run(&place, &arguments).output().unwrap();
    let answer = answer(&output);
    assert_balanced(&place.path("run"), &answer);
    // On a machine that is stalled for more than a second inputs are lost, and the outputs behind
    // them are others.
    let lost: u64 = answer["edges"].as_array().unwrap().iter().map(|edge| count(edge, "lost")).sum();
    let wrong = count(&answer, "outputs_wrong");
    assert!(wrong == 0 || lost > 0, "{answer}");
    assert_eq!(output.status.code(), Some(if wrong > 0 { 2 } else { 0 }), "{}", text(&output.stderr));
    let commands = answer["edges"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|edge| edge["topic"].as_str().unwrap().starts_with("commands"));
    let received: u64 = commands.map(|edge| count(&edge["account"], "received")).sum();
    assert_eq!(count(&answer, "outputs_compared"), received);
    assert!(received > 0);
    assert_eq!(answer["chains"].as_array().unwrap().len(), 2);
    assert_eq!(place.leftovers(), Vec::<String>::new());
}

#[test]
fn the_housekeeping_chain_is_whole_over_the_software_bus() {
    let place = Place::new();
    let output = graph_run(&place, &["cfs-hk", "--duration", "1s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let answer = answer(&output);
    assert_balanced(&place.path("run"), &answer);
    let edges = answer["edges"].as_array().unwrap();
    let of = |topic: &str| edges.iter().find(|edge| edge["topic"] == topic).unwrap();
    assert_eq!(of("wake-up")["transport"], "mq-pointer");
    // All received messages are forwarded.
    assert_eq!(count(&of("tick")["account"], "received"), count(&of("wake-up")["account"], "sent"));
    assert_eq!(count(&of("request")["account"], "received"), count(&of("reply")["account"], "sent"));
    assert_eq!(of("wake-up")["period_ns"], 100_000);
    // The tick is a signal: of its releases each was served or passed while a signal waited, by the
    // kernel's own count.
    let timers = answer["timers"].as_array().unwrap();
    let tick = timers.iter().find(|timer| timer["name"] == "timebase/slot").unwrap();
    assert_eq!(count(tick, "served") + count(tick, "missed"), 10_000);
    let has_limit = answer["limits"]
        .as_array()
        .unwrap()
        .iter()
        .any(|limit| limit.as_str().unwrap().contains("no signal"));
    assert!(count(tick, "overruns") == count(tick, "missed") || has_limit, "{answer}");
}

/// A publisher at 1 kHz in one process, a subscriber in another one.
fn two_processes(transport: &str, subscriber: &str) -> String {
    format!(
        r#"schema = "stillcore.graph/1"
process = [{{ name = "talker" }}, {{ name = "listener" }}]
executor = [{{ name = "talker", process = "talker" }}, {{ name = "listener", process = "listener" }}]
topic = [{{ name = "chatter", transport = "{transport}" }}]

[[node]]
name = "talker"
executor = "talker"
publisher = [{{ topic = "chatter", bytes = 100, period = "1ms" }}]

[[node]]
name = "listener"
executor = "listener"
subscriber = [{{ topic = "chatter", {subscriber} }}]
"#
    )
}

const TRANSPORTS: [&str; 7] = ["shm-futex", "shm-eventfd", "pipe", "mq", "mq-pointer", "seqpacket", "udp"];

/// The processes of a running graph: ids by name of the order they were started in.
fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(child) = entry.file_name().to_string_lossy().parse::<u32>() else { continue };
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((_, fields)) = stat.rsplit_once(") ") else { continue };
        let field = |at: usize| fields.split_whitespace().nth(at).and_then(|word| word.parse::<u64>().ok());
        // proc_pid_stat(5): `ppid` and `starttime`. Numbers begin anew where they run out.
        let (parent, started) = (field(1), field(19));
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if parent == Some(u64::from(pid)) && String::from_utf8_lossy(&command).contains("internal\0graph") {
            found.push((started, child));
        }
    }
    found.sort_unstable();
    found.into_iter().map(|one| one.1).collect()
}

/// Sends a signal to the process at this position once messages flow; returns the run's answer.
fn disturbed(place: &Place, signal: &str, position: usize) -> (Option<i32>, Value) {
    let mut command = graph_run(place, &["graph.toml", "--duration", "5s"]);
    let run = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let give_up = Instant::now() + Duration::from_secs(60);
    // The samples file is made when all are there; the run begins then.
    while children(run.id()).len() < 2
        || !place.path("run/samples").join("").read_dir().is_ok_and(|mut dir| dir.next().is_some())
    {
        assert!(Instant::now() < give_up, "the graph never ran");
        sleep(Duration::from_millis(10));
    }
    sleep(Duration::from_millis(1500));
    let pid = children(run.id())[position].to_string();
    assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    let output = run.wait_with_output().unwrap();
    (output.status.code(), answer(&output))
}

#[test]
fn a_killed_subscriber_takes_no_message_along_unseen() {
    for transport in TRANSPORTS {
        let place = Place::new();
        fs::write(place.path("graph.toml"), two_processes(transport, "qos = { depth = 5 }")).unwrap();
        let (code, answer) = disturbed(&place, "-KILL", 1);
        assert_eq!(code, Some(1), "{transport}");
        assert!(answer["died"][0].as_str().unwrap().contains("listener"), "{answer}");
        assert_balanced(&place.path("run"), &answer);
        let account = &answer["edges"][0]["account"];
        assert!(
            count(account, "received") > 0 && count(account, "refused") + count(account, "replaced") > 0,
            "{transport}: {account}"
        );
        assert_eq!(read_json(&place.path("run/run.json"))["complete"], false);
        assert_eq!(place.leftovers(), Vec::<String>::new());
    }
}

#[test]
fn a_killed_publisher_is_counted_up_to_its_last_message() {
    let mut sent = 0;
    // On a machine that is busy elsewhere it may be killed before its first message.
    for _ in 0..3 {
        let place = Place::new();
        fs::write(place.path("graph.toml"), two_processes("shm-futex", "qos = { depth = 5 }")).unwrap();
        let (code, answer) = disturbed(&place, "-KILL", 0);
        assert_eq!(code, Some(1));
        assert!(answer["died"][0].as_str().unwrap().contains("talker"), "{answer}");
        assert_balanced(&place.path("run"), &answer);
        sent = count(&answer["edges"][0]["account"], "sent");
        if sent > 0 {
            break;
        }
    }
    assert!((1..3000).contains(&sent), "{sent}");
}

#[test]
fn a_stopped_subscriber_leaves_what_it_never_took() {
    for transport in ["shm-futex", "mq", "seqpacket"] {
        let place = Place::new();
        fs::write(place.path("graph.toml"), two_processes(transport, "qos = { depth = 5 }")).unwrap();
        let (code, answer) = disturbed(&place, "-STOP", 1);
        assert_eq!(code, Some(1), "{transport}");
        assert_balanced(&place.path("run"), &answer);
        let account = &answer["edges"][0]["account"];
        assert!(count(account, "left") > 0, "{transport}: {account}");
    }
}

#[test]
fn a_slow_subscriber_loses_what_its_queue_cannot_hold() {
    // Both share a CPU, where a talker of the default policy may have to wait for the listener's work
    // to end and then sends no more than that one takes.
    let permitted = std::thread::spawn(|| sys::policy::set_policy(&Policy::fifo(1)).is_ok());
    if !permitted.join().unwrap() {
        return eprintln!("skipped: no real-time policy here");
    }
    for (transport, kept, lost) in [("shm-futex", "keep_last", "replaced"), ("pipe", "keep_all", "refused")] {
        // 5 ms of CPU time for a message each millisecond.
        let subscriber =
            format!(r#"qos = {{ depth = 4, history = "{kept}" }}, then = {{ computes = "busy:5ms" }}"#);
        let run = || {
            let place = Place::new();
            let graph = two_processes(transport, &subscriber)
                .replace(r#"process = "talker""#, r#"process = "talker", policy = "fifo", priority = 1"#);
            fs::write(place.path("graph.toml"), graph).unwrap();
            let output = graph_run(&place, &["graph.toml", "--duration", "2s"]).output().unwrap();
            let answer = answer(&output);
            assert_balanced(&place.path("run"), &answer);
            answer["edges"][0]["account"].clone()
        };
        let loses = |account: &Value| {
            let left = if kept == "keep_all" { count(account, "left") } else { 0 };
            count(account, lost) + left > 0 && count(account, "received") > 0
        };
        // On a machine that is busy elsewhere, the talker may run too seldom, or the listener not at all.
        let mut accounts = vec![run()];
        while !loses(&accounts[accounts.len() - 1]) && accounts.len() < 5 {
            accounts.push(run());
        }
        assert!(accounts.last().is_some_and(loses), "{transport}: {accounts:?}");
    }
}

#[test]
fn threads_of_an_executor_share_its_nodes() {
    let place = Place::new();
    let worker = |number: u32| {
        format!(
            r#"
[[node]]
name = "worker-{number}"
subscriber = [{{ topic = "work", then = {{ computes = "busy:2ms", publishes = ["done-{number}"] }} }}]
publisher = [{{ topic = "done-{number}", bytes = 8 }}]
"#
        )
    };
    let nodes = (0..4).map(worker).collect::<Vec<_>>().concat();
    let graph = format!(
        r#"schema = "stillcore.graph/1"
executor = [{{ name = "pool", threads = 4 }}]

[[node]]
name = "source"
publisher = [{{ topic = "work", bytes = 64, period = "20ms" }}]
subscriber = [{{ topic = "done-0" }}, {{ topic = "done-1" }}, {{ topic = "done-2" }}, {{ topic = "done-3" }}]
{nodes}"#
    );
    fs::write(place.path("graph.toml"), graph).unwrap();
    let output = graph_run(&place, &["graph.toml", "--duration", "1s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let answer = answer(&output);
    assert_balanced(&place.path("run"), &answer);
    let edges = answer["edges"].as_array().unwrap();
    let of = |name: &'static str| {
        edges.iter().filter(move |edge| edge["topic"].as_str().unwrap().starts_with(name))
    };
    let received: u64 = of("work").map(|edge| count(&edge["account"], "received")).sum();
    let done: u64 = of("done").map(|edge| count(&edge["account"], "sent")).sum();
    assert_eq!((received, of("work").count(), of("done").count()), (done, 4, 4));
    assert!(done > 0);
}

#[test]
fn every_built_in_graph_is_listed_shown_and_converted() {
    let output = stillcore(&["graph", "list", "--json"]).output().unwrap();
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(listed["schema"], "stillcore.graph-list/1");
    for graph in listed["graphs"].as_array().unwrap() {
        let name = graph["name"].as_str().unwrap();
        let place = Place::new();
        let file = place.path("copy.toml");
        let converted = stillcore(&["graph", "convert", name, "--out"]).arg(&file).output().unwrap();
        assert_eq!(converted.status.code(), Some(0), "{}", text(&converted.stderr));
        let shown = |what: &Path| {
            let output = stillcore(&["graph", "show", "--json"]).arg(what).output().unwrap();
            serde_json::from_slice::<Value>(&output.stdout).unwrap()
        };
        assert_eq!(shown(&file), shown(Path::new(name)));
        let words = stillcore(&["graph", "show", name]).output().unwrap();
        assert!(text(&words.stdout).lines().all(|line| line.len() <= 110), "{}", text(&words.stdout));
    }
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_is_written() {
    let place = Place::new();
    fs::write(place.path("bad.json"), "{\"nodes\": [\n{\"node_nam\": \"a\"}]}").unwrap();
    fs::write(place.path("poll.toml"), two_processes("shm-poll", "qos = {}")).unwrap();
    fs::write(place.path("odd.toml"), two_processes("telepathy", "qos = {}")).unwrap();
    for (arguments, expected) in [
        (&["bad.json"][..], "bad.json: line 2: a node without node_name"),
        (&["no-such-graph"][..], "stillcore graph list"),
        (&["no-such.toml"][..], "no-such.toml"),
        (&["small-single", "cfs-hk"][..], "one TOML file"),
        (&["odd.toml"][..], "telepathy"),
        (&["poll.toml", "--free"][..], "a CPU of its own"),
        (&["small-single", "--duration", "1ms"][..], "100ms to 168h"),
        (&["small-single", "--transport", "pigeon"][..], "pigeon"),
    ] {
        let mut command = stillcore(&["graph", "run"]);
        command.arg("--state").arg(place.state()).arg("--out").arg(place.path("run"));
        let output = command.args(arguments).current_dir(place.dir.path()).output().unwrap();
        assert_refused(&output, &[expected]);
        assert!(!place.path("run").exists(), "{arguments:?}");
    }
}

#[test]
fn a_graph_under_disturbance_has_the_stressors_record() {
    let place = Place::new();
    let order = ["small-single", "--duration", "1s", "--disturb", "calc_pi"];
    let output = graph_run(&place, &order).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let answer = answer(&output);
    assert_balanced(&place.path("run"), &answer);
    let stressor = &answer["stressors"][0];
    assert_eq!((&stressor["name"], &stressor["state"]), (&"calc_pi".into(), &"ok".into()), "{stressor}");
    let run: model::Run = model::run::stored::read_run(&place.path("run")).unwrap();
    let (window, records) = (&run.windows[0], &run.stressors);
    assert!(run.phases[0].disturbed && records.len() == 1);
    assert!(records[0].t0_ns <= window.t0_ns && records[0].t1_ns >= window.t1_ns, "{records:?}");
    assert_eq!(place.leftovers(), Vec::<String>::new());
}
