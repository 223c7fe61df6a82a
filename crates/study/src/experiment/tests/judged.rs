//! Judgements: published numbers beside what was measured, and statements.

use super::*;

#[test]
fn published_numbers_are_judged_with_their_reason() {
    let experiment = read(TEXT);
    let judged = |repetitions: u32, emulated: bool, number: fn(u32) -> Option<f64>| {
        let plan = Plan::of(&experiment, &[], repetitions, 1.0).unwrap();
        let results: Vec<_> = plan
            .cells
            .iter()
            .map(|one| (one.cell.clone(), result(number(one.cell.repetition), emulated)))
            .collect();
        conclude(&experiment, &numbers(), &results).published[0].judgement
    };
    assert_eq!(judged(2, false, |at| Some(100.0 + 10.0 * f64::from(at))), Judgement::Agrees);
    assert_eq!(judged(2, false, |_| Some(50.0)), Judgement::Differs);
    assert_eq!(judged(2, true, |_| Some(50.0)), Judgement::NotComparable);
    assert_eq!(judged(2, false, |_| None), Judgement::NotApplicable);
    assert_eq!(conclude(&experiment, &numbers(), &[]).published[0].judgement, Judgement::NotApplicable);
}

#[test]
fn a_number_of_another_kernel_says_which_it_needs() {
    let text = TEXT.replace("at = { period", "at = { kernel = \"5.10\", period");
    let experiment = read(&text);
    let plan = Plan::of(&experiment, &["6.18".to_owned()], 1, 1.0).unwrap();
    let results: Vec<_> = plan.cells.iter().map(|one| (one.cell.clone(), result(Some(1.0), false))).collect();
    let published = conclude(&experiment, &numbers(), &results).published.remove(0);
    assert_eq!(published.judgement, Judgement::NotApplicable);
    assert_eq!(published.why, "needs kernel 5.10: no cell of it was run");
}

#[test]
fn a_claim_is_judged_on_pairs_that_differ_in_nothing_else() {
    let experiment = read(TEXT);
    let judged_in = |repetitions: u32, emulated: bool, number: fn(&str) -> f64| {
        let plan = Plan::of(&experiment, &[], repetitions, 1.0).unwrap();
        let of =
            |one: &Planned| result(Some(number(one.cell.factors["isolation"].as_str().unwrap())), emulated);
        let results: Vec<_> = plan.cells.iter().map(|one| (one.cell.clone(), of(one))).collect();
        conclude(&experiment, &numbers(), &results).claims[0].clone()
    };
    let judged = |repetitions: u32, number: fn(&str) -> f64| judged_in(repetitions, false, number);
    let less = |isolation: &str| if isolation == "boot" { 1.0 } else { 2.0 };
    assert_eq!(judged(1, less).judgement, Judgement::Inconclusive, "four pairs: p = 0.125");
    assert_eq!((judged(2, less).holds, judged(2, less).judgement), (8, Judgement::Agrees));
    assert_eq!(judged(2, |one| -f64::from(u8::from(one == "none"))).judgement, Judgement::Differs);
    assert_eq!(judged(2, |_| 1.0).judgement, Judgement::Inconclusive);
    // Its value is a time.
    assert_eq!(
        (judged_in(2, true, less).holds, judged_in(2, true, less).judgement),
        (8, Judgement::NotComparable)
    );
}
