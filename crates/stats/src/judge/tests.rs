//! Planted groups and counts, and how often a verdict is wrong where there is no effect.

use super::*;
use crate::random::normal;
use crate::resample::generator;

/// Judged as one pair of groups.
fn order(quantity: Quantity, first: &[f64], second: &[f64], or_as_much: bool) -> Decision {
    super::order(quantity, &[Pair { first, second }], or_as_much)
}

fn ratio_between(quantity: Quantity, first: &[f64], second: &[f64], bounds: [f64; 2]) -> Decision {
    super::ratio_between(quantity, &[Pair { first, second }], bounds)
}

fn ratio_at_least(quantity: Quantity, first: &[f64], second: &[f64], times: f64) -> Decision {
    super::ratio_at_least(quantity, &[Pair { first, second }], times)
}

fn rising(quantity: Quantity, groups: &[&[f64]], or_as_much: bool) -> Decision {
    super::rising(quantity, &[groups.to_vec()], or_as_much)
}

fn finding(decision: Decision) -> Finding {
    decision.finding
}

#[test]
fn counts_are_judged_as_counts() {
    // RTSS 2024, table I of its replication: 198 interrupts against 14, 14 against 6.
    assert_eq!(finding(order(Quantity::Count, &[14.0], &[198.0], false)), Finding::Holds);
    assert_eq!(finding(order(Quantity::Count, &[198.0], &[14.0], false)), Finding::Fails);
    let open = order(Quantity::Count, &[6.0], &[14.0], false);
    assert_eq!(open.finding, Finding::Undecided);
    // P(X ≤ 6), 20 fair coins.
    assert!((open.p_false.unwrap() - 60_460.0 / 1_048_576.0).abs() < 1e-9);
    assert_eq!(finding(order(Quantity::Count, &[0.0], &[25.0], false)), Finding::Holds);
    assert_eq!(finding(order(Quantity::Count, &[0.0], &[0.0], false)), Finding::Undecided);
}

#[test]
fn counts_that_come_in_bursts_are_exchanged_as_repetitions() {
    // One repetition with a burst of a hundred: as events, decided; by repetitions, not.
    let burst = order(Quantity::Count, &[0.0, 0.0, 0.0], &[0.0, 100.0, 0.0], false);
    assert_eq!(burst.finding, Finding::Undecided);
    assert_eq!(finding(order(Quantity::Count, &[0.0, 0.0, 0.0], &[31.0, 35.0, 34.0], false)), Finding::Holds);
}

#[test]
fn numbers_without_chance_need_no_repetition() {
    assert_eq!(finding(order(Quantity::Constant, &[9.0], &[10.0], false)), Finding::Holds);
    assert_eq!(finding(order(Quantity::Constant, &[10.0], &[10.0], false)), Finding::Fails);
    assert_eq!(finding(order(Quantity::Constant, &[10.0], &[10.0], true)), Finding::Holds);
    assert_eq!(finding(ratio_between(Quantity::Constant, &[10.0], &[10.0], [1.0, 1.0])), Finding::Holds);
    assert_eq!(finding(at_most(Quantity::Constant, &[12.0], 10.0)), Finding::Fails);
}

#[test]
fn three_repetitions_cannot_tell_two_groups_of_times_and_four_can() {
    let (low, high) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
    assert_eq!(finding(order(Quantity::Measured, &low[..3], &high[..3], false)), Finding::Undecided);
    assert_eq!(finding(order(Quantity::Measured, &low, &high, false)), Finding::Holds);
    assert_eq!(finding(order(Quantity::Measured, &high, &low, false)), Finding::Fails);
    assert_eq!(finding(order(Quantity::Measured, &[], &low, false)), Finding::Undecided);
}

#[test]
fn pairs_of_groups_add_up_and_a_missing_side_counts_nothing() {
    let [low, high] = [[1.0, 2.0], [5.0, 6.0]];
    let pair = Pair { first: &low, second: &high };
    assert_eq!(finding(super::order(Quantity::Measured, &[pair], false)), Finding::Undecided);
    // One labelling of 6 * 6.
    let both = super::order(Quantity::Measured, &[pair, pair], false);
    assert_eq!(both.finding, Finding::Undecided);
    assert!((both.p_false.unwrap() - 1.0 / 36.0).abs() < 1e-12);
    let missing = Pair { first: &[], second: &high };
    assert_eq!(
        finding(super::order(Quantity::Measured, &[pair, pair, pair, missing], false)),
        Finding::Holds
    );
}

#[test]
fn the_same_is_shown_and_does_not_follow_from_too_few() {
    let near: Vec<f64> = (0..10).map(|at| 100.0 + f64::from(at)).collect();
    let [few, far] = [near[..2].to_vec(), near.iter().map(|value| value * 2.0).collect()];
    let bounds = [0.8, 1.25];
    assert_eq!(finding(ratio_between(Quantity::Measured, &near, &near, bounds)), Finding::Holds);
    assert_eq!(finding(ratio_between(Quantity::Measured, &few, &few, bounds)), Finding::Undecided);
    assert_eq!(finding(ratio_between(Quantity::Measured, &near, &far, bounds)), Finding::Fails);
    let [fall, steep] = [&near, &far].map(|values| values.iter().map(|value| -value).collect::<Vec<f64>>());
    assert_eq!(finding(ratio_between(Quantity::Measured, &fall, &fall, bounds)), Finding::Holds);
    assert_eq!(finding(ratio_at_least(Quantity::Measured, &steep, &fall, 1.8)), Finding::Holds);
    assert_eq!(finding(ratio_between(Quantity::Measured, &near, &fall, bounds)), Finding::Undecided);
    assert_eq!(finding(ratio_at_least(Quantity::Measured, &far, &near, 1.8)), Finding::Holds);
    assert_eq!(finding(ratio_at_least(Quantity::Measured, &far, &near, 2.5)), Finding::Fails);
}

#[test]
fn an_order_of_three_holds_by_its_trend_and_fails_by_one_pair() {
    let group = |from: f64| (0..5).map(|at| from + f64::from(at)).collect::<Vec<f64>>();
    let [low, middle, high] = [group(0.0), group(10.0), group(20.0)];
    assert_eq!(finding(rising(Quantity::Measured, &[&low, &middle, &high], false)), Finding::Holds);
    assert_eq!(finding(rising(Quantity::Measured, &[&low, &high, &middle], false)), Finding::Fails);
    assert_eq!(finding(rising(Quantity::Measured, &[&low, &low, &low], false)), Finding::Undecided);
    assert_eq!(finding(rising(Quantity::Constant, &[&[12.0], &[48.0], &[104.0]], false)), Finding::Holds);
}

#[test]
fn one_group_stands_against_a_number() {
    let slow: Vec<f64> = (0..8).map(|at| 11.0 + f64::from(at)).collect();
    assert_eq!(finding(at_most(Quantity::Measured, &slow, 10.0)), Finding::Fails);
    assert_eq!(finding(at_least(Quantity::Measured, &slow, 10.0)), Finding::Holds);
    assert_eq!(finding(at_least(Quantity::Measured, &slow[..3], 10.0)), Finding::Undecided);
    // 20 events where 5 are expected: P(X ≥ 20) = 3.5e-7 (R: ppois(19, 5, lower = FALSE)).
    let many = at_least(Quantity::Count, &[20.0], 5.0);
    assert!((many.p_false.unwrap() / 3.452_135e-7 - 1.0).abs() < 1e-3, "{many:?}");
    assert_eq!(many.finding, Finding::Holds);
    assert_eq!(finding(absent(&[0.0, 0.0])), Finding::Holds);
    assert_eq!(finding(absent(&[0.0, 1.0])), Finding::Fails);
    assert_eq!(finding(present(Quantity::Count, &[0.0, 0.0])), Finding::Undecided);
    assert_eq!(finding(present(Quantity::Count, &[0.0, 1.0])), Finding::Holds);
    assert_eq!(finding(present(Quantity::Constant, &[0.0])), Finding::Fails);
}

/// Of studies without an effect at most one in twenty may have a verdict; of those with an effect
/// that was planned for at least nine in ten must.
#[test]
fn a_thousand_studies_without_an_effect_have_few_verdicts_and_planned_effects_are_found() {
    let mut random = generator(77, 0);
    for (spread, repetitions) in [(0.05, 4), (0.2, 8), (0.6, 20)] {
        let mut group = |times: f64| {
            (0..repetitions).map(|_| times * (spread * normal(&mut random)).exp()).collect::<Vec<_>>()
        };
        let mut verdicts = |times: f64, sought: &[Finding]| {
            (0..1000)
                .filter(|_| {
                    let found = order(Quantity::Measured, &group(1.0), &group(times), false).finding;
                    sought.contains(&found)
                })
                .count()
        };
        let wrong = verdicts(1.0, &[Finding::Holds, Finding::Fails]);
        assert!(wrong <= 50, "{spread}: {wrong}");
        if power(Assumed::Spread(spread), repetitions) >= POWER {
            let found = verdicts(EFFECT, &[Finding::Holds]);
            assert!(found >= 900, "{spread}: {found}");
        }
    }
}

#[test]
fn more_repetitions_and_more_events_decide_more() {
    assert!(power(Assumed::Spread(0.2), 3) < 0.01);
    assert!(power(Assumed::Spread(0.1), 5) >= POWER);
    assert!(power(Assumed::Events(5.0), 1) < 0.5);
    assert!(power(Assumed::Events(200.0), 1) >= POWER);
    assert!(power(Assumed::Nothing, 1) >= 1.0);
}

#[test]
fn what_can_be_found_grows_with_the_repetitions() {
    assert_eq!(largest_spread(3), None, "three against three cannot be sure of anything");
    let [four, twelve] = [4, 12].map(|repetitions| largest_spread(repetitions).unwrap());
    assert!(0.05 < four && four < twelve && twelve < 0.5, "{four} {twelve}");
    let [one, four] = [1, 4].map(least_events);
    assert!((60.0..150.0).contains(&one) && (four * 4.0 - one).abs() < 0.3 * one, "{one} {four}");
}
