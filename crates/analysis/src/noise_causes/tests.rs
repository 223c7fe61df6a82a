//! Synthetic gaps and counters: each thief alone, and what holds for all.
#![cfg(test)]

use super::*;
use proptest::prelude::*;

const MS: i64 = 1_000_000;
const SECOND: i64 = 1_000 * MS;

fn gap(t_ns: i64, value_ns: i64) -> Sample {
    Sample { t_ns, value_ns, ..Sample::default() }
}

/// A second's stretch, read by the probe.
fn stretch(t0_ns: i64) -> Growth {
    Growth {
        t0_ns,
        t1_ns: t0_ns + SECOND,
        read_by: ReadBy::Stretch,
        run_delay_ns: Some(0),
        arrivals: Some(0),
        voluntary: Some(0),
        involuntary: Some(0),
        minor_faults: Some(0),
        major_faults: Some(0),
        cpu_ns: Some(SECOND as u64),
        ..Growth::default()
    }
}

/// A tenth of a second between two looks.
fn look(t0_ns: i64) -> Growth {
    Growth {
        t0_ns,
        t1_ns: t0_ns + 100 * MS,
        read_by: ReadBy::Drain,
        run_delay_ns: Some(0),
        arrivals: Some(0),
        steal_ns: Some(0),
        idle_ns: Some(0),
        interrupts: Some(0),
        softirqs: Some(0),
        ..Growth::default()
    }
}

fn budget(runtime_ms: u64) -> Budget {
    Budget { runtime_ns: runtime_ms * MS as u64, period_ns: SECOND as u64, assumed: false }
}

fn thieves(evidence: &Evidence<'_>) -> Vec<(Thief, Certainty, u64)> {
    causes(evidence).iter().map(|cause| (cause.thief, cause.certainty, cause.gaps)).collect()
}

/// Three seconds, in each the thread waited once for `length_ns` at 0.9 s, and the CPU idled for
/// `idle_ns` of it.
fn waited(length_ns: i64, idle_ns: i64) -> (Vec<Sample>, Vec<Growth>) {
    let gaps = (0..3).map(|second| gap(second * SECOND + 900 * MS, length_ns)).collect();
    let waited = |growth: Growth| Growth {
        run_delay_ns: Some(length_ns as u64 - 3_000),
        arrivals: Some(1),
        involuntary: growth.involuntary.map(|_| 1),
        ..growth
    };
    let growths = (0..3).flat_map(|second| {
        let idle = Growth { idle_ns: Some(idle_ns as u64), ..look(second * SECOND + 900 * MS) };
        [waited(stretch(second * SECOND)), waited(idle)]
    });
    (gaps, growths.collect())
}

#[test]
fn throttling_has_its_length_and_leaves_the_cpu_idle() {
    let (mut gaps, growths) = waited(50 * MS, 50 * MS);
    gaps.push(gap(2 * SECOND + 970 * MS, 8_000));
    let evidence = Evidence {
        gaps: &gaps,
        growths: &growths,
        real_time: true,
        throttling: Some(budget(950)),
        ..Evidence::default()
    };
    assert_eq!(
        thieves(&evidence),
        [(Thief::Throttling, Certainty::Counted, 3), (Thief::Unknown, Certainty::None, 1)]
    );
    // An ordinary task had the CPU instead: the length alone does not exclude another cause.
    let (gaps, growths) = waited(50 * MS, 0);
    let busy = Evidence { gaps: &gaps, growths: &growths, ..evidence };
    assert_eq!(thieves(&busy), [(Thief::Throttling, Certainty::Fits, 3)]);
    assert_eq!(
        thieves(&Evidence { throttling_logged: true, ..busy }),
        [(Thief::Throttling, Certainty::Counted, 3)]
    );
    // Nothing is throttled under an ordinary policy, or with throttling off.
    for evidence in [Evidence { real_time: false, ..busy }, Evidence { throttling: None, ..busy }] {
        assert_eq!(thieves(&evidence), [(Thief::Preemption, Certainty::Counted, 3)]);
    }
}

#[test]
fn the_fair_server_takes_no_more_than_its_runtime_a_period() {
    let (gaps, growths) = waited(49 * MS, 0);
    let evidence = Evidence {
        gaps: &gaps,
        growths: &growths,
        real_time: true,
        fair_server: Some(budget(50)),
        ..Evidence::default()
    };
    assert_eq!(thieves(&evidence), [(Thief::FairServer, Certainty::Fits, 3)]);
    let (gaps, growths) = waited(80 * MS, 0);
    let evidence = Evidence { gaps: &gaps, growths: &growths, ..evidence };
    assert_eq!(thieves(&evidence), [(Thief::Preemption, Certainty::Counted, 3)]);
    // Three of 40 ms within a period are more than the ends of two periods have.
    let gaps = [gap(100 * MS, 40 * MS), gap(300 * MS, 40 * MS), gap(600 * MS, 40 * MS)];
    let growths = [Growth { run_delay_ns: Some(120 * MS as u64), involuntary: Some(3), ..stretch(0) }];
    let evidence = Evidence { gaps: &gaps, growths: &growths, ..evidence };
    assert_eq!(
        thieves(&evidence),
        [(Thief::FairServer, Certainty::Fits, 2), (Thief::Preemption, Certainty::Counted, 1)]
    );
}

#[test]
fn readings_show_which_of_two_gaps_was_spent_waiting() {
    // 5 ms waited in the fourth tenth of a second, where the longer gap is not.
    let gaps = [gap(120 * MS, 5 * MS), gap(350 * MS, 5 * MS)];
    let wait = |growth| Growth { run_delay_ns: Some(5 * MS as u64), arrivals: Some(1), ..growth };
    let growths = [Growth { involuntary: Some(1), ..wait(stretch(0)) }, look(100 * MS), wait(look(300 * MS))];
    let mut ledger = Ledger::new(&gaps);
    ledger.off_the_cpu(&Evidence { gaps: &gaps, growths: &growths, ..Evidence::default() });
    assert_eq!(
        ledger.causes().iter().map(|cause| (cause.thief, cause.gaps)).collect::<Vec<_>>(),
        [(Thief::Preemption, 1), (Thief::Unknown, 1)]
    );
    let mut ledger = Ledger::new(&gaps[1..]);
    ledger.off_the_cpu(&Evidence { gaps: &gaps[1..], growths: &growths, ..Evidence::default() });
    assert_eq!(ledger.causes()[0].thief, Thief::Preemption);
}

/// As in a guest whose hypervisor was busy when throttling ended.
#[test]
fn a_gap_may_be_longer_than_the_waiting_in_it_but_not_shorter() {
    let gaps = [gap(100 * MS, 700_000), gap(200 * MS, 300 * MS), gap(700 * MS, 80 * MS)];
    let wait = |ms: i64| Growth {
        run_delay_ns: Some((ms * MS) as u64),
        involuntary: Some(1),
        arrivals: Some(1),
        ..stretch(0)
    };
    let longest = |evidence: &Evidence<'_>, thief| {
        let causes = causes(evidence);
        let cause = causes.iter().find(|cause| cause.thief == thief);
        cause.map(|cause| (cause.gaps, cause.max_ns / MS as u64, cause.certainty))
    };
    let evidence =
        Evidence { gaps: &gaps, real_time: true, throttling: Some(budget(950)), ..Evidence::default() };
    let growths = [wait(60)];
    let found = longest(&Evidence { growths: &growths, ..evidence }, Thief::Preemption);
    assert_eq!(found, Some((1, 80, Certainty::Counted)));
    // Less than half of the gap was counted.
    let growths = [wait(100)];
    let found = longest(&Evidence { growths: &growths, ..evidence }, Thief::Preemption);
    assert_eq!(found, Some((1, 300, Certainty::Fits)));
    // Whatever the length: an idle CPU beside a ready real-time thread is a throttled one.
    let idle = (1..6).map(|tenth| Growth { idle_ns: Some(90 * MS as u64), ..look(tenth * 100 * MS) });
    let growths: Vec<_> = idle.chain([wait(290)]).collect();
    let found = longest(&Evidence { growths: &growths, ..evidence }, Thief::Throttling);
    assert_eq!(found, Some((1, 300, Certainty::Counted)));
}

#[test]
fn without_a_counter_throttling_must_come_back() {
    let evidence = Evidence { real_time: true, throttling: Some(budget(950)), ..Evidence::default() };
    let gaps = [gap(950 * MS, 50 * MS), gap(1_951 * MS, 49 * MS), gap(2_300 * MS, 45 * MS)];
    assert_eq!(
        thieves(&Evidence { gaps: &gaps, ..evidence }),
        [(Thief::Throttling, Certainty::Fits, 2), (Thief::Unknown, Certainty::None, 1)]
    );
    assert_eq!(thieves(&Evidence { gaps: &gaps[2..], ..evidence }), [(Thief::Unknown, Certainty::None, 1)]);
}

#[test]
fn a_loop_that_was_stopped_did_not_wait() {
    let gaps = [gap(100 * MS, 300 * MS), gap(700 * MS, 9_000)];
    let growths = [Growth { voluntary: Some(1), arrivals: Some(1), run_delay_ns: Some(900), ..stretch(0) }];
    let evidence = Evidence { gaps: &gaps, growths: &growths, real_time: true, ..Evidence::default() };
    // The 900 ns are those after SIGCONT: no preemption.
    assert_eq!(
        thieves(&evidence),
        [(Thief::Stopped, Certainty::Counted, 1), (Thief::Unknown, Certainty::None, 1)]
    );
    // Preemptions in the same stretch do not turn the stop into waiting either.
    let busy = [Growth { involuntary: Some(3), run_delay_ns: Some(30 * MS as u64), ..growths[0] }];
    let evidence = Evidence { growths: &busy, ..evidence };
    assert_eq!(
        thieves(&evidence),
        [(Thief::Preemption, Certainty::Counted, 1), (Thief::Stopped, Certainty::Counted, 1)]
    );
    assert_eq!(causes(&evidence)[1].max_ns, 300 * MS as u64);
    let growths = [Growth { major_faults: Some(1), ..growths[0] }];
    let causes = causes(&Evidence { growths: &growths, ..evidence });
    assert!(causes.iter().any(|cause| cause.thief == Thief::Fault && cause.certainty == Certainty::Fits));
}

#[test]
fn steal_time_takes_the_longest_gaps_it_pays_for() {
    let gaps = [gap(10 * MS, 3 * MS), gap(40 * MS, 15_000), gap(130 * MS, 90 * MS), gap(250 * MS, 2 * MS)];
    let growths = [Growth { steal_ns: Some(10 * MS as u64), ..look(200 * MS) }, look(0), look(100 * MS)];
    let evidence = Evidence { gaps: &gaps, growths: &growths, ..Evidence::default() };
    assert_eq!(
        thieves(&evidence),
        [(Thief::Hypervisor, Certainty::Fits, 2), (Thief::Unknown, Certainty::None, 2)]
    );
    let causes = causes(&evidence);
    assert_eq!(causes[0].range_ns, [0, 20 * MS as u64], "what was counted, and one step");
    assert_eq!(causes[1].range_ns, [75 * MS as u64 + 15_000, 95 * MS as u64 + 15_000]);
    assert_eq!(totals(&growths).steal_ns, Some(10 * MS as u64));
}

#[test]
fn as_many_smis_as_were_counted() {
    let gaps = [gap(10 * MS, 150_000), gap(20 * MS, 7_000), gap(30 * MS, 140_000), gap(40 * MS, 6_000)];
    let growths = [Growth { smi: Some(2), ..stretch(0) }];
    let causes = causes(&Evidence { gaps: &gaps, growths: &growths, ..Evidence::default() });
    assert_eq!((causes[0].thief, causes[0].gaps, causes[0].total_ns), (Thief::Smi, 2, 290_000));
}

#[test]
fn interrupts_explain_no_more_gaps_than_there_were_of_them_and_no_long_ones() {
    let gaps = [gap(MS, 9_000), gap(2 * MS, 4_000), gap(30 * MS, 20 * MS), gap(60 * MS, 5_000)];
    let growths = [Growth { interrupts: Some(2), ..look(0) }];
    let causes = causes(&Evidence { gaps: &gaps, growths: &growths, ..Evidence::default() });
    assert_eq!((causes[0].thief, causes[0].gaps, causes[0].max_ns), (Thief::Interrupts, 2, 5_000));
    assert_eq!((causes[1].thief, causes[1].gaps), (Thief::Unknown, 2));
}

#[test]
fn time_that_the_scheduler_did_not_charge_is_reported() {
    let growths = [Growth { cpu_ns: Some(990 * MS as u64), run_delay_ns: Some(4 * MS as u64), ..stretch(0) }];
    assert_eq!(totals(&growths).not_charged_ns, Some(6 * MS as u64));
    assert_eq!(totals(&[]), Totals::default());
}

/// Gaps one behind the other, with any counters.
fn any_evidence() -> impl Strategy<Value = (Vec<Sample>, Vec<Growth>)> {
    let gaps = proptest::collection::vec((1i64..80 * MS, 1i64..60 * MS), 0..40);
    let counts = (0u64..100 * MS as u64, 0u64..4, 0u64..3, 0u64..3, 0u64..40 * MS as u64, 0u64..20);
    let growths = proptest::collection::vec((0i64..30, counts, any::<bool>()), 0..30);
    (gaps, growths).prop_map(|(gaps, growths)| {
        let mut at = 0;
        let gaps = gaps.into_iter().map(|(pause, length)| {
            at += pause;
            let gap = gap(at, length);
            at += length;
            gap
        });
        let growth =
            |(tenth, (delay, arrivals, voluntary, smi, steal, interrupts), drain): (i64, _, bool)| {
                let read = if drain { look(tenth * 100 * MS) } else { stretch(tenth * 100 * MS) };
                let (own, cpu) = (!drain, drain);
                Growth {
                    run_delay_ns: Some(delay),
                    arrivals: Some(arrivals),
                    voluntary: own.then_some(voluntary),
                    involuntary: own.then_some(arrivals),
                    smi: own.then_some(smi),
                    steal_ns: cpu.then_some(steal),
                    idle_ns: cpu.then_some(steal),
                    interrupts: cpu.then_some(interrupts),
                    ..read
                }
            };
        (gaps.collect(), growths.into_iter().map(growth).collect())
    })
}

proptest! {
    #[test]
    fn every_gap_has_one_cause((gaps, growths) in any_evidence(), real_time: bool) {
        let evidence = Evidence {
            gaps: &gaps,
            growths: &growths,
            real_time,
            throttling: Some(budget(950)),
            fair_server: None,
            throttling_logged: false,
        };
        let causes = causes(&evidence);
        prop_assert_eq!(causes.iter().map(|cause| cause.gaps).sum::<u64>(), gaps.len() as u64);
        let total: i64 = gaps.iter().map(|gap| gap.value_ns).sum();
        prop_assert_eq!(causes.iter().map(|cause| cause.total_ns).sum::<u64>(), total as u64);
        prop_assert!(causes.iter().all(|cause| (cause.thief == Thief::Unknown) == (cause.certainty == Certainty::None)));
        prop_assert!(causes.iter().all(|cause| cause.max_ns <= cause.total_ns));
        prop_assert!(causes.iter().all(|cause| cause.range_ns[0] <= cause.total_ns && cause.total_ns <= cause.range_ns[1]));
    }

    /// Gaps with certainty `Counted` are covered by counters: no more waiting, and no more steal
    /// time, than the counters have.
    #[test]
    fn nothing_is_charged_that_was_not_counted((gaps, growths) in any_evidence()) {
        let evidence = Evidence { gaps: &gaps, growths: &growths, real_time: true, ..Evidence::default() };
        let causes = causes(&evidence);
        let of = |thief| causes.iter().find(|cause| cause.thief == thief).map_or((0, 0), |cause| (cause.gaps, cause.total_ns));
        let own = || growths.iter().filter(|growth| growth.read_by == ReadBy::Stretch);
        let waited = |certainty| {
            let cause = causes.iter().find(|cause| cause.thief == Thief::Preemption && cause.certainty == certainty);
            cause.map_or((0, 0), |cause| (cause.gaps, cause.total_ns))
        };
        let (sure_gaps, sure_ns) = waited(Certainty::Counted);
        let gaps_waited = sure_gaps + waited(Certainty::Fits).0;
        prop_assert!(gaps_waited <= own().filter_map(|growth| growth.involuntary).sum());
        let counted_ns: u64 = own().filter_map(|growth| growth.run_delay_ns).sum();
        prop_assert!(sure_ns <= 2 * counted_ns + sure_gaps);
        let looks: Vec<_> = growths.iter().filter(|growth| growth.read_by == ReadBy::Drain).collect();
        let steal_ns: u64 = looks.iter().filter_map(|look| look.steal_ns).sum();
        prop_assert!(of(Thief::Hypervisor).1 <= steal_ns + 10_000_000);
        prop_assert!(of(Thief::Smi).0 <= own().filter_map(|growth| growth.smi).sum());
        prop_assert!(of(Thief::Interrupts).0 <= looks.iter().filter_map(|look| look.interrupts).sum());
    }

    /// Without any counter nothing is known, whatever the gaps look like, but for what comes back
    /// as throttling does.
    #[test]
    fn nothing_is_guessed_silently((gaps, _) in any_evidence()) {
        let causes = causes(&Evidence { gaps: &gaps, real_time: true, ..Evidence::default() });
        prop_assert!(causes.iter().all(|cause| cause.thief == Thief::Unknown));
    }
}
