//! Judgements: published numbers beside what was measured, and statements.

use super::*;

#[test]
fn published_numbers_are_judged_with_their_reason() {
    let experiment = read(&TEXT.replace("system = \"Linux 5.10\"", "system = \"Linux 5.10\"\nwithin = 0.1"));
    let judged = |repetitions: u32, emulated: bool, number: fn(u32) -> Option<f64>| {
        let plan = Plan::of(&experiment, &[], repetitions, 1.0).unwrap();
        let results: Vec<_> = plan
            .cells
            .iter()
            .map(|one| (one.cell.clone(), result(number(one.cell.repetition), emulated)))
            .collect();
        conclude(&experiment, &numbers(), &results).published[0].judgement
    };
    // Two levels of isolation are left open: two numbers a repetition. Published are 104.
    assert_eq!(judged(4, false, |at| Some(101.0 + f64::from(at))), Judgement::Agrees);
    assert_eq!(judged(4, false, |_| Some(50.0)), Judgement::Differs);
    assert_eq!(
        judged(4, false, |at| Some(50.0 + 30.0 * f64::from(at))),
        Judgement::Inconclusive,
        "no agreement"
    );
    assert_eq!(judged(1, false, |_| Some(50.0)), Judgement::Inconclusive, "too few");
    assert_eq!(judged(4, true, |_| Some(50.0)), Judgement::NotComparable);
    assert_eq!(judged(4, false, |_| None), Judgement::NotApplicable);
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

/// The verdicts on the one claim of a file, of results that are a number of a cell's levels.
fn verdicts(
    text: &str,
    kernels: &[&str],
    repetitions: u32,
    emulated: bool,
    number: impl Fn(&Cell) -> Option<f64>,
) -> Vec<Claimed> {
    let experiment = read(text);
    let kernels: Vec<String> = kernels.iter().map(|one| (*one).to_owned()).collect();
    let plan = Plan::of(&experiment, &kernels, repetitions, 1.0).unwrap();
    let results: Vec<_> =
        plan.cells.iter().map(|one| (one.cell.clone(), result(number(&one.cell), emulated))).collect();
    conclude(&experiment, &numbers(), &results).claims
}

fn is(cell: &Cell, factor: &str, level: &str) -> bool {
    cell.factors[factor].as_str() == Some(level)
}

const ONE: &str = "value = \"max\"\nless = { isolation = \"boot\" }\nthan = { isolation = \"none\" }\n";

/// The file with another claim, and its value as another kind.
fn with_claim(claim: &str, kind: &str) -> String {
    TEXT.replace(ONE, claim).replace("time = true", kind)
}

#[test]
fn a_claim_compares_cells_that_differ_in_nothing_else() {
    let judged = |repetitions, emulated, less: f64, than: f64| {
        let number = move |cell: &Cell| Some(if is(cell, "isolation", "boot") { less } else { than });
        verdicts(TEXT, &[], repetitions, emulated, number).remove(0)
    };
    // One repetition at each of four levels of load and period: one labelling of 2^4.
    assert_eq!(judged(1, false, 1.0, 2.0).judgement, Judgement::Inconclusive);
    let found = judged(2, false, 1.0, 2.0);
    assert_eq!(found.judgement, Judgement::Agrees);
    assert!(found.why.contains("4 levels of load, period apart"), "{}", found.why);
    assert_eq!(
        found.figures.iter().map(|one| (one.n, one.median)).collect::<Vec<_>>(),
        [(8, Some(1.0)), (8, Some(2.0))]
    );
    assert_eq!(judged(2, false, 2.0, 1.0).judgement, Judgement::Differs);
    assert_eq!(judged(2, false, 1.0, 1.0).judgement, Judgement::Inconclusive);
    // Times of emulated guests stand against one another.
    let found = judged(2, true, 1.0, 2.0);
    assert!(found.judgement == Judgement::Agrees && found.why.contains("emulated"), "{}", found.why);
}

#[test]
fn counts_are_decided_by_their_number() {
    let number = |cell: &Cell| Some(if is(cell, "isolation", "boot") { 0.0 } else { 7.0 });
    let text = with_claim(ONE, "kind = \"count\"");
    assert_eq!(verdicts(&text, &[], 1, false, number)[0].judgement, Judgement::Agrees);
}

#[test]
fn numbers_and_ratios_are_judged_and_those_of_emulated_times_are_not() {
    let number = |cell: &Cell| Some(if is(cell, "load", "busy") { 30.0 } else { 10.0 });
    for (claim, wanted) in [
        ("ratio = [{ load = \"busy\" }, { load = \"idle\" }]\nat_least = 2.5", Judgement::Agrees),
        ("ratio = [{ load = \"busy\" }, { load = \"idle\" }]\nat_least = 3.5", Judgement::Differs),
        ("same = [{ load = \"busy\" }, { load = \"idle\" }]\nwithin = 0.2", Judgement::Differs),
        ("of = { load = \"busy\" }\nat_most = 20", Judgement::Differs),
        ("of = { load = \"idle\" }\nat_most = 20", Judgement::Agrees),
        ("of = { load = \"idle\" }\nhappens = false", Judgement::Differs),
    ] {
        let claim = format!("value = \"max\"\n{claim}\n");
        let judged =
            |emulated| verdicts(&with_claim(&claim, "time = true"), &[], 4, emulated, number)[0].judgement;
        assert_eq!(judged(false), wanted, "{claim}");
        assert_eq!(judged(true), Judgement::NotComparable, "{claim}");
    }
}

#[test]
fn a_statement_on_kinds_of_kernels_has_a_verdict_for_each_version() {
    let claim = "value = \"max\"\nless = { flavour = \"rt\" }\nthan = { flavour = \"stock\" }\n";
    let number = |cell: &Cell| {
        let rt = cell.factors["kernel"].as_str().unwrap().ends_with("-rt");
        let old = cell.factors["kernel"].as_str().unwrap().starts_with("5.10");
        Some(if rt == old { 1.0 } else { 2.0 })
    };
    let kernels = ["5.10", "5.10-rt", "6.1", "6.1-rt"];
    let found = verdicts(&with_claim(claim, "time = true"), &kernels, 2, false, number);
    let words: Vec<_> = found.iter().map(|one| (one.condition.as_str(), one.judgement)).collect();
    assert_eq!(words, [("5.10", Judgement::Agrees), ("6.1", Judgement::Differs)]);
    let none = verdicts(&with_claim(claim, "time = true"), &["6.1"], 2, false, number).remove(0);
    assert_eq!(none.judgement, Judgement::NotApplicable);
    assert!(none.why.contains("not measured"), "{}", none.why);
}

#[test]
fn the_order_of_three_groups_is_one_statement() {
    let levels = "levels = [\"50us\", \"70us\", \"90us\"]";
    let claim =
        "value = \"max\"\nrising = [{ period = \"90us\" }, { period = \"70us\" }, { period = \"50us\" }]\n";
    let text = with_claim(claim, "time = true").replace("levels = [\"50us\", \"70us\"]", levels);
    let number = |cell: &Cell| {
        let period: f64 = cell.factors["period"].as_str()?.trim_end_matches("us").parse().ok()?;
        Some(1.0 / period)
    };
    assert_eq!(verdicts(&text, &[], 2, false, number)[0].judgement, Judgement::Agrees);
    assert_eq!(
        verdicts(&text, &[], 2, false, |cell| number(cell).map(|one| -one))[0].judgement,
        Judgement::Differs
    );
}

#[test]
fn a_plan_says_what_its_repetitions_can_decide() {
    let of = |kind: &str, repetitions: u32| {
        let experiment = read(&with_claim(ONE, kind));
        let plan = Plan::of(&experiment, &["6.1".to_owned()], repetitions, 1.0).unwrap();
        decidable(&experiment, &plan.cells).remove(0)
    };
    // Four levels of load and period.
    let found = of("time = true", 1);
    assert_eq!((found.condition.as_str(), found.repetitions), ("6.1", 4));
    assert!(matches!(found.limit, Limit::Spread(most) if most > 0.05), "{:?}", found.limit);
    assert!(matches!(of("kind = \"count\"", 1).limit, Limit::Events(least) if (10.0..40.0).contains(&least)));
    assert_eq!(of("kind = \"constant\"", 1).limit, Limit::Certain);
    let claim =
        "value = \"max\"\nof = { load = \"busy\", period = \"50us\", isolation = \"boot\" }\nat_most = 1\n";
    let experiment = read(&with_claim(claim, "time = true"));
    let limit = |kernels: &[String], repetitions| {
        let plan = Plan::of(&experiment, kernels, repetitions, 1.0).unwrap();
        decidable(&experiment, &plan.cells).remove(0).limit
    };
    assert_eq!(limit(&["6.1".to_owned()], 6), Limit::EmulatedTime);
    assert_eq!(limit(&[], 5), Limit::TooFew(6));
    assert_eq!(limit(&[], 6), Limit::Certain);
}
