//! Overheads by hand, at their edges, and beside the formula of Brandenburg's thesis (2011, section
//! 3.4).

use super::*;
use proptest::prelude::*;

const NONE: Overheads = Overheads {
    release_latency_ns: 0,
    ipi_ns: 0,
    release_ns: 0,
    schedule_ns: 0,
    context_switch_ns: 0,
    tick_ns: 0,
    tick_period_ns: 0,
    cache_related_ns: 0,
};

fn system(rows: &[(u64, u64)]) -> System {
    System { cores: 1, tasks: rows.iter().map(|&(t, c)| Task::implicit(t, c).into()).collect() }
}

fn ask(system: &System, test: Test, overheads: Overheads) -> Verdict {
    analyze_with_overheads(system, test, &overheads, Limits::default()).unwrap()
}

#[test]
fn fixed_priorities_by_hand() {
    let system = system(&[(100, 10), (200, 30)]);
    let switches = Overheads { schedule_ns: 1, context_switch_ns: 2, cache_related_ns: 4, ..NONE };
    // 10 + 2 * 3 + 4 = 20, and 30 + 10 more.
    assert_eq!(ask(&system, Test::FpRta, switches).response_times, [Some(20), Some(60)]);
    // Jitter of 5, then a release interrupt a task of 3, and a tick: (20 + 3 + 3) + 3 * 1 with
    // ticks at 0, 10 and 20; 29 + 2 reaches none more by 31, where jitter of ticks is the latency
    // of 2.
    let all = Overheads {
        release_latency_ns: 2,
        ipi_ns: 3,
        release_ns: 3,
        tick_ns: 1,
        tick_period_ns: 10,
        ..switches
    };
    // w = 20 + 6 + ceil((w + 2) / 10): 30, for 26 + 4 = 30 and ceil(32 / 10) = 4. R = w + 5.
    assert_eq!(ask(&system, Test::FpRta, all).response_times[0], Some(35));
    // w = 40 + 20 + 6 + ceil((w + 2) / 10): 74, for 66 + 8 = 74 and ceil(76 / 10) = 8. Within 100
    // no job comes a second time.
    assert_eq!(ask(&system, Test::FpRta, all).response_times[1], Some(79));
}

#[test]
fn earliest_deadline_by_hand() {
    let set = system(&[(100, 30), (200, 40)]).set_of(&[0, 1]).unwrap();
    let overheads = Overheads { release_latency_ns: 5, tick_ns: 10, tick_period_ns: 40, ..NONE };
    // The tick leaves 3/4 of the core and costs 10 + 10 * 5 / 40 at once, 11.25, rounded up.
    let charged = charge_edf(&set, &overheads).unwrap();
    let expected = |period, cost| Task { jitter_ns: 5, blocking_ns: 16, ..Task::implicit(period, cost) };
    assert_eq!(charged.tasks(), [expected(100, 40), expected(200, 54)]);
}

#[test]
fn without_overheads_nothing_changes() {
    let system = system(&[(10, 3), (20, 5), (40, 10)]);
    for test in [Test::FpRta, Test::EdfQpa] {
        let plain = crate::analyze(&system, test, Limits::default()).unwrap();
        assert_eq!(ask(&system, test, NONE), plain);
    }
}

#[test]
fn interrupts_that_take_the_whole_core_leave_nothing() {
    let storm = Overheads { tick_ns: 10, tick_period_ns: 10, ..NONE };
    for test in [Test::FpRta, Test::EdfQpa] {
        let verdict = ask(&system(&[(1000, 1)]), test, storm);
        assert!(!verdict.schedulable);
        assert_eq!(verdict.response_times, [None]);
        assert!(ask(&System { cores: 1, tasks: vec![] }, test, storm).schedulable);
    }
}

#[test]
fn every_core_has_its_own_interrupts() {
    let mut two = system(&[(100, 10), (100, 10)]);
    let releases = Overheads { release_ns: 7, ..NONE };
    assert_eq!(ask(&two, Test::FpRta, releases).response_times, [Some(24), Some(34)]);
    two.cores = 2;
    two.tasks[1].core = 1;
    assert_eq!(ask(&two, Test::FpRta, releases).response_times, [Some(17), Some(17)]);
}

#[test]
fn what_is_not_known_is_refused() {
    let ask = |system: &System, test, overheads: Overheads| {
        analyze_with_overheads(system, test, &overheads, Limits::default()).unwrap_err().to_string()
    };
    let plain = system(&[(10, 1)]);
    let no_period = Overheads { tick_ns: 1, ..NONE };
    assert_eq!(ask(&plain, Test::FpRta, no_period), "tick_period_ns is 0, expected 1 to 9007199254740991 ns");
    let huge = Overheads { ipi_ns: MAX_NS + 1, ..NONE };
    assert!(ask(&plain, Test::EdfQpa, huge).starts_with("ipi_ns is 9007199254740992, expected 0"));
    assert!(ask(&plain, Test::FpLimited, NONE).contains("overheads"));
    let mut suspends = plain;
    suspends.tasks[0].suspension_ns = 1;
    assert!(ask(&suspends, Test::FpRta, NONE).contains("self-suspension"));
}

#[test]
fn extremes_do_not_overflow() {
    let most = Overheads {
        release_latency_ns: MAX_NS,
        ipi_ns: MAX_NS,
        release_ns: MAX_NS,
        schedule_ns: MAX_NS,
        context_switch_ns: MAX_NS,
        tick_ns: MAX_NS,
        tick_period_ns: 1,
        cache_related_ns: MAX_NS,
    };
    let system = system(&[(1, 1), (MAX_NS, MAX_NS)]);
    assert!(!ask(&system, Test::EdfQpa, most).schedulable);
    let error = analyze_with_overheads(&system, Test::FpRta, &most, Limits::default()).unwrap_err();
    assert!(error.to_string().contains("expected"), "{error}");
    let small = Overheads { tick_ns: 999_999_999, tick_period_ns: 1_000_000_000, ..NONE };
    assert!(!ask(&system, Test::EdfQpa, small).schedulable);
}

/// Costs, periods and deadlines after preemption-centric accounting on one core, in floating point.
fn preemption_centric(tasks: &[Task], overheads: &Overheads) -> Option<TaskSet> {
    let latency = overheads.release_latency_ns as f64;
    let sources: Vec<(f64, f64)> =
        std::iter::once((overheads.tick_ns as f64, overheads.tick_period_ns as f64))
            .chain(tasks.iter().map(|task| (overheads.release_ns as f64, task.period_ns as f64)))
            .collect();
    let left = 1.0 - sources.iter().map(|(c, t)| c / t).sum::<f64>();
    let c_pre = sources.iter().map(|(c, t)| c + latency * c / t).sum::<f64>() / left;
    let switches = (overheads.schedule_ns + overheads.context_switch_ns) as f64;
    let charge = |task: &Task| {
        let cost =
            (task.cost_ns as f64 + 2.0 * switches + overheads.cache_related_ns as f64) / left + 2.0 * c_pre;
        Some(Task {
            cost_ns: cost.ceil() as u64,
            period_ns: task.period_ns.checked_sub(overheads.release_latency_ns)?,
            deadline_ns: task.deadline_ns.checked_sub(overheads.release_latency_ns)?,
            ..*task
        })
    };
    (left > 0.0).then_some(())?;
    TaskSet::new(tasks.iter().map(charge).collect::<Option<_>>()?).ok()
}

fn overheads() -> impl Strategy<Value = Overheads> {
    (0u64..40, 0u64..40, 0u64..30, 0u64..30, 0u64..30, 0u64..30, 500u64..2000, 0u64..60).prop_map(
        |(
            release_latency_ns,
            ipi_ns,
            release_ns,
            schedule_ns,
            context_switch_ns,
            tick_ns,
            tick_period_ns,
            cache,
        )| {
            Overheads {
                release_latency_ns,
                ipi_ns,
                release_ns,
                schedule_ns,
                context_switch_ns,
                tick_ns,
                tick_period_ns,
                cache_related_ns: cache,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn accepts_what_preemption_centric_accounting_accepts(
        rows in prop::collection::vec((1_000u64..10_000, 10u64..1_500, 80u64..=100), 1..6), with in overheads(),
    ) {
        let tasks: Vec<Task> = rows.iter().map(|&(period_ns, cost_ns, percent)| Task {
            deadline_ns: period_ns * percent / 100, ..Task::implicit(period_ns, cost_ns)
        }).collect();
        let with = Overheads { ipi_ns: 0, ..with };
        let published = preemption_centric(&tasks, &with);
        if published.is_some_and(|set| edf_qpa(&set, Limits::default()).schedulable) {
            let system = System { cores: 1, tasks: tasks.into_iter().map(Into::into).collect() };
            prop_assert!(ask(&system, Test::EdfQpa, with).schedulable);
        }
    }

    #[test]
    fn more_overhead_never_helps(
        rows in prop::collection::vec((1_000u64..10_000, 10u64..1_500), 1..6), with in overheads(), field in 0usize..8, by in 1u64..60,
    ) {
        let system = system(&rows);
        let mut more = with;
        match field {
            0 => more.release_latency_ns += by,
            1 => more.ipi_ns += by,
            2 => more.release_ns += by,
            3 => more.schedule_ns += by,
            4 => more.context_switch_ns += by,
            5 => more.tick_ns += by,
            6 => more.tick_period_ns -= by,
            _ => more.cache_related_ns += by,
        }
        let (before, after) = (ask(&system, Test::FpRta, with), ask(&system, Test::FpRta, more));
        for (less, more) in before.response_times.iter().zip(&after.response_times) {
            prop_assert!(more.is_none() || less.is_some_and(|less| less <= more.unwrap_or(0)));
        }
        prop_assert!(ask(&system, Test::EdfQpa, with).schedulable || !ask(&system, Test::EdfQpa, more).schedulable);
    }
}
