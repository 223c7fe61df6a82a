//! `stillcore graph latency` on this machine: structure and accounts, never times.

use serde_json::Value;
use std::process::Command;
use sys::sched;

fn latency(words: &[&str]) -> Command {
    let cpus: Vec<u32> = sched::affinity().unwrap().iter().collect();
    let pair = format!("{},{}", cpus[cpus.len().saturating_sub(2)], cpus[cpus.len() - 1]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_stillcore"));
    command.args(["graph", "latency", "--duration", "60ms", "--policy", "other"]).args(words);
    if !words.contains(&"--cpus") {
        command.args(["--cpus", &pair]);
    }
    command
}

fn answer(words: &[&str]) -> Value {
    crate::support::answer(latency(words).arg("--json"), 0)
}

#[test]
fn every_transport_accounts_for_every_message() {
    for words in [&["--size", "0,100"][..], &["--size", "100", "--threads"]] {
        let answer = answer(words);
        assert_eq!(answer["schema"], "stillcore.graph-latency/1");
        let links = answer["links"].as_array().unwrap();
        assert_eq!(links.len(), 9 * words[1].split(',').count());
        for link in links {
            let balance = |name: &str| link["balance"][name].as_u64().unwrap();
            assert_eq!(balance("sent"), 70, "{link}");
            let lost: u64 = ["refused", "replaced", "left", "vanished"].map(balance).iter().sum();
            assert_eq!(balance("received") + lost, 70, "{link}");
            assert_eq!((balance("vanished"), balance("left")), (0, 0), "{link}");
            // A neighbour may have delayed the subscriber until all but the first were refused.
            let n = link["from_send"]["n"].as_u64().unwrap();
            assert!(n <= balance("received") && link["from_release"]["n"] == n, "{link}");
            let figures = |from: &str| {
                let value = |name: &str| link[from][name].as_i64();
                let ranks = ["min_ns", "p50_ns", "p99_ns", "max_ns"].map(value);
                assert!(ranks.is_sorted() && ranks[0].is_none_or(|min| min > 0), "{link}");
                assert_eq!(ranks[0].is_some(), n > 0, "{link}");
                ranks[1]
            };
            assert!(figures("from_release") >= figures("from_send"), "{link}");
        }
    }
}

#[test]
fn samples_are_those_of_the_statistics() {
    let answer = answer(&["--transport", "mq", "--samples"]);
    let link = &answer["links"][0];
    let samples = link["samples"].as_array().unwrap();
    assert_eq!(samples.len() as u64, link["balance"]["received"].as_u64().unwrap());
    let ns = |sample: &Value, name: &str| sample[name].as_i64().unwrap();
    let counted = samples.iter().filter(|sample| ns(sample, "sequence") >= 10);
    let largest = counted.map(|sample| ns(sample, "taken_ns") - ns(sample, "sent_ns")).max();
    assert_eq!(largest, link["from_send"]["max_ns"].as_i64(), "both are none where all of them were refused");
}

#[test]
fn what_cannot_be_is_refused_in_one_sentence() {
    for (words, said) in [
        (&["--transport", "udp", "--size", "64K"][..], "udp carries at most 65467 bytes a message"),
        (&["--transport", "zenoh"], "no transport `zenoh`; expected one of queue, mq-pointer"),
        (&["--size", "17M"], "invalid size \"17M\": expected 0 to 16M"),
        (&["--transport", "pipe", "--depth", "0"], "a depth of 0; expected 1 to 4096"),
        (&["--period", "1us"], "expected 10us to 10s"),
        (&["--cpus", "1"], "invalid pair \"1\": expected two CPUs"),
        (&["--cpus", "0,1023"], "this machine has no CPU 1023; expected CPUs among 0"),
    ] {
        let output = latency(words).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        assert!(text.contains(said) && text.trim_end().lines().count() == 1, "{words:?}: {text}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn limits_are_raised_for_the_measurement_and_restored() {
    const LIMIT: &str = "/proc/sys/fs/mqueue/msgsize_max";
    let Ok(before) = std::fs::read_to_string(LIMIT) else {
        println!("skipped: this kernel has no POSIX message queues");
        return;
    };
    if !sys::process::is_root() {
        println!("skipped: only root may raise {LIMIT}");
        return;
    }
    let state = tempfile::tempdir().unwrap();
    let bytes = before.trim().parse::<u64>().unwrap() + 1000;
    let (size, state) = (bytes.to_string(), state.path().to_str().unwrap());
    let answer = answer(&["--transport", "mq", "--size", &size, "--raise-limits", "--state", state]);
    assert_eq!(answer["links"][0]["size_bytes"], bytes);
    assert_eq!(answer["links"][0]["balance"]["sent"], 70, "{answer}");
    assert_eq!(std::fs::read_to_string(LIMIT).unwrap(), before);
}

/// Not only the link that is being measured: those that were to follow are not begun.
#[test]
fn a_signal_ends_all_links() {
    let words =
        ["graph", "latency", "--duration", "20s", "--policy", "other", "--transport", "mq,pipe", "--json"];
    let child = crate::support::start(&mut crate::support::stillcore(&words));
    crate::support::eventually("a process that measures", || {
        // Of any of its threads.
        let mut threads = std::fs::read_dir(format!("/proc/{}/task", child.id())).ok()?.flatten();
        threads.find(|thread| {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            !children.trim().is_empty()
        })
    });
    std::thread::sleep(std::time::Duration::from_millis(300));
    crate::support::signal(child.id(), "INT");
    let answer = crate::support::answer_of(&child.wait_with_output().unwrap(), 1);
    assert_eq!(answer["interrupted"], "SIGINT");
    assert_eq!(answer["links"].as_array().unwrap().len(), 1);
}
