//! Questions of `sched`, one JSON object a line, and certificates of their answers.

use super::{Outcome, Reader, fixture, text, whole};
use sched::certificate::{Certificate, certify, check, digest};
use sched::executor::{ExecutorAnalysis, bound_executors, read_executors};
use sched::{Limits, MAX_TASKS, Test, analyze, question};

/// So few rounds that a set near full utilization does not hold up the others.
const LIMITS: Limits = Limits { rounds_per_task: 200 };
/// Larger sets are read and not analysed: demand tests take at least quadratic time.
const MOST_ANALYSED: usize = 60;

const FILES: [&str; 7] = [
    "admission.jsonl",
    "equals.jsonl",
    "local.jsonl",
    "locks.jsonl",
    "plain.jsonl",
    "reversed.jsonl",
    "sets.jsonl",
];

fn lines(file: &str) -> Vec<Vec<u8>> {
    let text = fixture(&format!("crates/cli/tests/data/{file}"));
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect()
}

pub(crate) fn reader() -> Reader {
    let mut seeds: Vec<_> = FILES.iter().flat_map(|file| lines(file)).collect();
    seeds.retain(|seed| question::read(seed).is_ok() && seed.len() < 4_000);
    Reader { name: "task-set", seeds, damage: text, read, short: 4_000 }
}

fn read(bytes: &[u8]) -> Outcome {
    let Ok(question) = question::read(bytes) else { return Outcome::Refused };
    let system = &question.system;
    assert!(system.tasks.len() <= MAX_TASKS);
    assert!(system.tasks.iter().all(|task| task.core < system.cores));
    if system.tasks.len() > MOST_ANALYSED {
        return Outcome::Partial;
    }
    for test in Test::ALL {
        let Ok(verdict) = analyze(system, test, LIMITS) else { continue };
        assert_eq!(question.in_order(&verdict.response_times).len(), verdict.response_times.len());
    }
    for test in [Test::FpRta, Test::EdfQpa] {
        if let Ok(Some(certificate)) = certify(system, test, None, LIMITS) {
            assert_eq!(check(&certificate), Ok(()), "its own certificate");
        }
    }
    Outcome::Whole
}

pub(crate) fn executors() -> Reader {
    let seeds = lines("executors.jsonl");
    Reader { name: "executors", seeds, damage: text, read: read_bounded, short: 2_000 }
}

fn read_bounded(bytes: &[u8]) -> Outcome {
    let Ok(question) = read_executors(bytes) else { return Outcome::Refused };
    let system = &question.system;
    assert!(system.callbacks.iter().all(|one| one.executor < system.executors.len()));
    if system.callbacks.len() > MOST_ANALYSED {
        return Outcome::Partial;
    }
    let best = bound_executors(system, ExecutorAnalysis::Best, LIMITS);
    assert_eq!(best.responses_ns.len(), system.callbacks.len());
    assert_eq!(best.chains_ns.len(), system.chains.len());
    Outcome::Whole
}

pub(crate) fn certificates() -> Reader {
    let seeds: Vec<_> = lines("certified.jsonl").into_iter().filter(|seed| seed.len() < 6_000).collect();
    Reader { name: "certificate", seeds, damage: text, read: read_certificate, short: 3_000 }
}

/// With the digest that a forger would compute: the claim itself has to fail.
fn read_certificate(bytes: &[u8]) -> Outcome {
    let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) else { return Outcome::Refused };
    let inner = value.get("certificate").unwrap_or(&value).clone();
    let Ok(mut certificate) = serde_json::from_value::<Certificate>(inner) else { return Outcome::Refused };
    let as_is = check(&certificate).is_ok();
    certificate.digest = digest(&certificate);
    if check(&certificate).is_err() {
        return whole(as_is);
    }
    for core in &certificate.cores {
        verify(core, certificate.schedulable);
    }
    Outcome::Whole
}

/// A valid certificate has the same answer as the test, where the test finishes.
fn verify(core: &sched::certificate::CoreProof, schedulable: bool) {
    let tasks = core.tasks.tasks();
    if tasks.len() > MOST_ANALYSED || matches!(core.proof, sched::certificate::Proof::Open) {
        return;
    }
    if let sched::certificate::Proof::FpInTime { .. } = core.proof {
        let responses = sched::response_times(&core.tasks, LIMITS).response_times;
        let late = responses
            .iter()
            .zip(tasks)
            .any(|(response, task)| response.is_some_and(|response| response > task.deadline_ns));
        assert!(!late, "a certificate proves what the test refutes: {core:?} {schedulable}");
    }
}
