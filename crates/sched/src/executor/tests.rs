//! Bounds that follow by hand, and what has none.

use super::*;
use crate::task::MAX_NS;

fn answer(line: &str, analysis: ExecutorAnalysis) -> ExecutorVerdict {
    bound_executors(&read_executors(line).unwrap().system, analysis, Limits::default())
}

fn responses(line: &str, analysis: ExecutorAnalysis) -> Vec<Option<u64>> {
    answer(line, analysis).responses_ns
}

/// A long subscription beside a timer and a short subscription, far apart.
fn three(order: &str) -> String {
    format!(
        r#"{{"order":"{order}","callbacks":[{{"kind":"subscription","period":1000,"cost":50}},{{"kind":"timer","period":1000,"cost":3}},{{"kind":"subscription","period":1000,"cost":10}}]}}"#
    )
}

#[test]
fn the_order_of_a_ready_set_counts() {
    use ExecutorAnalysis::{AllArrivals, Best, BusyWindow};
    // All three come in one busy window.
    assert_eq!(responses(&three("any"), BusyWindow), [Some(63); 3]);
    // A timer waits for what is being executed, and no longer; with the other semantics it may wait
    // for a ready set.
    assert_eq!(responses(&three("timers-first"), AllArrivals), [Some(63), Some(53), Some(63)]);
    assert_eq!(responses(&three("timers-first"), Best)[1], Some(53));
    assert_eq!(responses(&three("registered"), Best)[1], Some(63));
    // A set in which a timer is first, and nothing else before it.
    let line = r#"{"order":"registered","callbacks":[{"kind":"timer","period":1000,"cost":3},{"kind":"timer","period":1000,"cost":50}]}"#;
    assert_eq!(responses(line, Best), [Some(53), Some(53)]);
}

#[test]
fn a_chain_in_one_executor_waits_once_for_others() {
    let line = r#"{"callbacks":[{"kind":"timer","period":1000,"cost":3},{"kind":"subscription","after":[0],"cost":4},{"kind":"timer","period":1000,"cost":50}],
        "chains":[{"callbacks":[0,1]},{"callbacks":[1]}]}"#
        .replace('\n', "");
    let verdict = answer(&line, ExecutorAnalysis::Best);
    // 50 in the ready set before, 3 and 4; the sum of responses has the 50 twice.
    assert_eq!(verdict.responses_ns, [Some(57), Some(57), Some(57)]);
    assert_eq!(verdict.chains_ns, [Some(57), Some(57)]);
}

#[test]
fn executors_apart_pass_on_delays_and_late_ends() {
    let line = r#"{"executors":[{"budget":3,"period":5},null],"callbacks":[{"kind":"timer","executor":0,"period":100,"cost":3},
        {"kind":"subscription","executor":1,"after":[0],"delay":7,"cost":10,"deadline":10}],"chains":[{"callbacks":[0,1],"limit":24}]}"#
        .replace('\n', "");
    let verdict = answer(&line, ExecutorAnalysis::Best);
    // 2 (5 - 3) without supply, then 3.
    assert_eq!((verdict.responses_ns, verdict.chains_ns), (vec![Some(7), Some(10)], vec![Some(24)]));
    assert!(verdict.holds);
    assert!(!answer(&line.replace("\"limit\":24", "\"limit\":23"), ExecutorAnalysis::Best).holds);
    assert!(!answer(&line.replace("\"deadline\":10", "\"deadline\":9"), ExecutorAnalysis::Best).holds);
}

#[test]
fn an_overload_leaves_what_ready_sets_protect() {
    // The first does not keep up; the second waits for two of its instances at most.
    let line = r#"{"callbacks":[{"kind":"subscription","period":10,"cost":11,"deadline":90},{"kind":"subscription","period":1000,"cost":5}]}"#;
    let verdict = answer(line, ExecutorAnalysis::Best);
    assert_eq!(verdict.responses_ns, [None, Some(27)]);
    assert!(!verdict.holds && verdict.undecided.is_empty());
    assert_eq!(responses(line, ExecutorAnalysis::BusyWindow), [None, None]);
    // What the first activates may come at any time.
    let line = line.replace("}]}", r#"},{"kind":"client","after":[0],"cost":1}]}"#);
    assert_eq!(responses(&line, ExecutorAnalysis::Best), [None, Some(29), None]);
}

#[test]
fn extreme_values_do_not_overflow_and_the_cap_is_reported() {
    let most = MAX_NS;
    let line = format!(
        r#"{{"executors":[{{"budget":1,"period":{most}}}],"callbacks":[{{"kind":"timer","period":1,"jitter":{most},"cost":{most}}},{{"kind":"client","after":[0],"delay":{most},"costs":[{most},{most}]}}],"chains":[{{"callbacks":[0,1]}}]}}"#
    );
    let verdict = answer(&line, ExecutorAnalysis::Best);
    assert_eq!((verdict.responses_ns, verdict.chains_ns), (vec![None, None], vec![None]));
    let full = r#"{"callbacks":[{"kind":"timer","period":1000003,"cost":1000002},{"kind":"timer","period":1000003,"cost":1,"jitter":1}]}"#;
    let system = read_executors(full).unwrap().system;
    let verdict = bound_executors(&system, ExecutorAnalysis::BusyWindow, Limits { rounds_per_task: 3 });
    assert_eq!((verdict.undecided, verdict.holds), (vec![0, 1], true));
    assert_eq!(verdict.responses_ns, [None, None]);
}
