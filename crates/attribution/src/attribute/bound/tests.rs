//! Bounds: never below a latency of the same recording, whatever was recorded.

use super::demand::{Demand, LONGEST_NS};
use super::gather::{Gathered, Gathering};
use super::shape::WakeBound;
use crate::attribute::Causes;
use crate::attribute::blocking::Stretch;
use crate::attribute::delay::Blocking;
use crate::attribute::path::{Part, Path, Piece, Taken, Taker};
use crate::attribute::step::Step;
use crate::labels::Labels;
use proptest::prelude::*;

/// A wake-up: its release, and how long each step took.
fn path(t_ns: i64, steps: &[(Step, Option<Blocking>, u64)]) -> Path {
    let mut path = Path { t_ns, value_ns: 0, parts: Vec::new(), pieces: Vec::new(), replaced: None };
    for (part, (step, blocking, ns)) in steps.iter().enumerate() {
        let taken = blocking.map(|blocking| Taken {
            taker: Taker::Blocking(blocking),
            label: 0,
            task: None,
            causes: Causes::default(),
        });
        path.parts.push(Part { step: *step, cpu: 2, taken, mark: None, ns: *ns });
        let t0_ns = t_ns + path.value_ns;
        path.value_ns += *ns as i64;
        path.pieces.push(Piece { t0_ns, t1_ns: t_ns + path.value_ns, part });
    }
    path
}

fn off(blocking: Blocking, t0_ns: i64, t1_ns: i64) -> Stretch {
    Stretch { blocking, t0_ns, t1_ns, label: 0, causes: Causes::default(), sleeper: None, shut: false }
}

fn bound(gathered: &Gathered) -> WakeBound {
    gathered.bound(&Labels::default())
}

const US: u64 = 1000;

#[test]
fn interference_that_met_no_wake_up_counts_and_pieces_of_several_wake_ups_add_up() {
    let mut gathering = Gathering::default();
    // 40 µs of interrupts while nobody waited, and 5 µs in a wake-up.
    gathering.ran([1_000_000, 1_030_000], 0);
    gathering.ran([1_035_000, 1_045_000], 0);
    gathering.ran([2_002_000, 2_007_000], 0);
    gathering.woke(&path(2_000_000, &[(Step::TimerLate, None, 2 * US), (Step::Switch, None, 8 * US)]));
    gathering.woke(&path(3_000_000, &[(Step::TimerLate, None, 7 * US), (Step::Switch, None, US)]));
    let bound = bound(&gathering.finish());
    let steps: Vec<_> = bound.steps.iter().map(|one| (one.step, one.ns, one.t_ns)).collect();
    assert_eq!(
        steps,
        [(Step::TimerLate, 7 * US, 3_000_000), (Step::Switch, 3 * US, 2_000_000)],
        "the longest of each, without the interrupt in it"
    );
    assert_eq!((bound.seen_ns, bound.seen_t_ns), (10 * US, 2_000_000));
    assert_eq!((bound.interference_ns, bound.ns), (40 * US, Some(50 * US + 1)));
    assert!(bound.within_ns >= 50 * US, "{bound:?}");
    assert_eq!(bound.not_recorded, [Blocking::InterruptsOff, Blocking::PreemptionOff]);
}

#[test]
fn a_stretch_with_interrupts_off_counts_wherever_it_was_and_stands_in_for_those_that_delayed() {
    let mut gathering = Gathering::default();
    gathering.was_off(&off(Blocking::InterruptsOff, 500_000, 530_000), i64::MIN);
    // The scheduler's own, in which it switches.
    gathering.was_off(&off(Blocking::PreemptionOff, 600_000, 900_000), 700_000);
    gathering.woke(&path(
        2_000_000,
        &[
            (Step::TimerLate, Some(Blocking::InterruptsOff), 9 * US),
            (Step::TimerLate, None, 2 * US),
            (Step::Switch, None, US),
        ],
    ));
    let bound = bound(&gathering.finish());
    assert_eq!(bound.ns, Some(33 * US + 1));
    let stretches: Vec<_> = bound.stretches.iter().map(|one| (one.blocking, one.ns, one.t_ns)).collect();
    assert_eq!(stretches, [(Blocking::InterruptsOff, 30 * US, 500_000)]);
    assert_eq!(bound.not_recorded, [Blocking::PreemptionOff]);
}

#[test]
fn steps_that_stand_in_for_one_another_are_not_added_up() {
    let mut gathering = Gathering::default();
    gathering.woke(&path(1_000_000, &[(Step::TimerLate, None, 2 * US), (Step::SwitchUnseen, None, 9 * US)]));
    gathering.woke(&path(
        2_000_000,
        &[(Step::TimerLate, None, 3 * US), (Step::Switch, None, 4 * US), (Step::Return, None, US)],
    ));
    let bound = bound(&gathering.finish());
    assert_eq!(bound.ns, Some(12 * US + 1));
    let steps: Vec<_> = bound.steps.iter().map(|one| one.step).collect();
    assert_eq!(steps, [Step::TimerLate, Step::SwitchUnseen]);
}

#[test]
fn where_a_part_is_missing_or_nothing_is_left_for_a_wake_up_there_is_no_bound() {
    let woken = || {
        let mut gathering = Gathering::default();
        gathering.woke(&path(2_000_000, &[(Step::Switch, None, US)]));
        gathering
    };
    let mut holed = woken();
    holed.missed();
    assert!(bound(&holed.finish()).withheld.is_some_and(|why| why.contains("missing")));
    let mut parts = woken().finish();
    assert!(bound(&parts).ns.is_some());
    parts.append(woken().finish());
    assert!(bound(&parts).withheld.is_some_and(|why| why.contains("only stretches")));
    let mut busy = woken();
    busy.ran([0, 2 * LONGEST_NS as i64], 0);
    assert!(bound(&busy.finish()).withheld.is_some_and(|why| why.contains("no room")));
}

/// Stretches as spans come: by their ends, those inside before those around.
fn spans() -> impl Strategy<Value = Vec<[i64; 2]>> {
    let one = (0_i64..40_000, 1_i64..6000, 0_i64..4).prop_map(|(gap, ns, inside)| (gap, ns, inside));
    proptest::collection::vec(one, 0..40).prop_map(|all| {
        let (mut now, mut spans) = (100_000, Vec::new());
        for (gap, ns, inside) in all {
            let (t0, t1) = (now + gap, now + gap + ns);
            if inside == 0 && ns > 2 {
                spans.push([t0 + ns / 4, t0 + ns / 2]);
            }
            spans.push([t0, t1]);
            now = t1;
        }
        spans
    })
}

fn inside(spans: &[[i64; 2]], [t0, t1]: [i64; 2]) -> u64 {
    let mut outer: Vec<[i64; 2]> = spans.to_vec();
    outer.sort_unstable();
    let mut until = i64::MIN;
    let part = |[a, b]: [i64; 2], until: &mut i64| {
        let from = a.max(*until).max(t0);
        *until = (*until).max(b);
        (b.min(t1) - from).max(0).unsigned_abs()
    };
    outer.into_iter().map(|one| part(one, &mut until)).sum()
}

proptest! {
    #[test]
    fn the_most_in_any_stretch_is_what_trying_all_of_them_finds(spans in spans(), ns in 1_u64..100_000) {
        let mut demand = Demand::default();
        spans.iter().for_each(|one| demand.add(*one, 0));
        let (most, within) = demand.most().within(ns).unwrap();
        prop_assert!(within >= ns && (within <= 4096 || within < 2 * ns), "{within} for {ns}");
        let ends = spans.iter().flatten();
        let tried = ends.flat_map(|end| [[*end, end + within as i64], [end - within as i64, *end]]);
        let found = tried.map(|time| inside(&spans, time)).max().unwrap_or(0);
        prop_assert_eq!(most, found.min(ns));
        for [t0, t1] in spans.iter().map(|[a, b]| [a - 1000, b + 500]) {
            prop_assert_eq!(demand.inside([t0, t1]), inside(&spans, [t0, t1]));
        }
    }

    #[test]
    fn work_ends_where_it_and_the_interference_meanwhile_fill_the_time(spans in spans(), work_ns in 1_u64..50_000) {
        let mut demand = Demand::default();
        spans.iter().for_each(|one| demand.add(*one, 0));
        // The iteration by which response times are found, from below.
        let (mut ns, mut steps) = (work_ns, 0);
        let found = loop {
            let Some((most, within)) = demand.most().within(ns) else { break None };
            let next = work_ns + most;
            if next <= ns {
                break Some((next, most, within));
            }
            (ns, steps) = (next, steps + 1);
            prop_assume!(steps < 100_000);
        };
        prop_assert_eq!(demand.most().ends(work_ns), found);
    }

    #[test]
    fn a_bound_is_never_below_a_latency(
        spans in spans(),
        wakes in proptest::collection::vec((0_i64..900_000, 0_u64..9000, 0_u64..9000, 0_u64..30_000), 1..12),
        unseen in any::<u16>(),
        off_ns in 0_i64..5000,
    ) {
        let mut gathering = Gathering::default();
        let mut longest = 0;
        spans.iter().for_each(|one| gathering.ran(*one, 0));
        gathering.was_off(&off(Blocking::InterruptsOff, 100_000, 100_000 + off_ns), i64::MIN);
        for (at, (t_ns, late, shut, switch)) in wakes.into_iter().enumerate() {
            let last = if unseen >> at & 1 == 1 { Step::SwitchUnseen } else { Step::Switch };
            let steps = [
                (Step::TimerLate, Some(Blocking::InterruptsOff), shut),
                (Step::TimerLate, None, late),
                (last, None, switch),
            ];
            let path = path(t_ns, &steps);
            longest = longest.max(path.value_ns.unsigned_abs());
            gathering.woke(&path);
        }
        let bound = bound(&gathering.finish());
        prop_assert_eq!(bound.seen_ns, longest);
        prop_assert!(bound.ns.is_none_or(|ns| ns >= longest), "{bound:?}");
        prop_assert!(bound.ns.is_some() || bound.withheld.is_some());
    }
}
