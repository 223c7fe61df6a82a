//! Order, joining and the next command.

use super::*;
use crate::fixture;

fn again(document: &crate::Document) -> crate::Document {
    let d = document.clone();
    crate::Document::conclude(&d.dir, d.run, d.machine, d.findings, d.analysis, &fixture::catalogue())
}

#[test]
fn interference_is_ranked_by_stolen_time() {
    let advice = fixture::document().advice;
    let costs: Vec<f64> =
        advice.iter().filter_map(|a| a.cost.as_ref()).map(|cost| cost.net_ns_per_s).collect();
    assert!(costs.len() >= 5, "{costs:?}");
    assert!(costs.is_sorted_by(|a, b| a >= b), "{costs:?}");
    assert_eq!(advice[0].class, Some(EventClass::TimerTick));
}

#[test]
fn what_runs_while_the_task_sleeps_ranks_below_what_steals_from_a_busy_loop() {
    let mut document = fixture::document();
    for window in &mut document.analysis.events {
        for class in window.classes.iter_mut().filter(|row| row.class == EventClass::Switch) {
            (class.count, class.net_ns) = match window.probe {
                ProbeKind::Noise => (0, 0),
                _ => (40_000, 9_000_000_000),
            };
        }
    }
    let advice = again(&document).advice;
    let interference: Vec<&Advice> = advice.iter().filter(|a| a.kind == AdviceKind::Interference).collect();
    assert_eq!(interference[0].class, Some(EventClass::TimerTick));
    let [.., at_rest, asleep] = interference.as_slice() else { panic!("{interference:?}") };
    assert_eq!((asleep.class, at_rest.class), (Some(EventClass::Switch), Some(EventClass::Irq)));
    assert!(asleep.what.contains("only while the task slept"), "{}", asleep.what);
}

/// A core that lost most of its time at rest has that at the top, with the phase.
#[test]
fn all_phases_are_ranked() {
    let mut document = fixture::document();
    let last = document.run.phases.last().unwrap().name.clone();
    let windows = document.analysis.events.iter_mut();
    for window in windows.filter(|window| window.phase == last && window.probe == ProbeKind::Noise) {
        for class in window.classes.iter_mut().filter(|row| row.class == EventClass::Switch) {
            (class.count, class.net_ns, class.max_ns) = (3, window.duration_ns / 2, 705_200_000);
        }
    }
    let first = &again(&document).advice[0];
    assert_eq!(first.class, Some(EventClass::Switch));
    let phrase = format!("; most in phase {last}: 500.0 ms of every second stolen, longest 705.2 ms");
    assert!(first.what.contains(&phrase), "{}", first.what);
}

#[test]
fn the_share_of_the_largest_latencies_is_shown() {
    let document = fixture::document();
    let call = document.advice.iter().find(|a| a.class == Some(EventClass::IpiCall)).unwrap();
    let phrase = "touches 41.0 % of the largest hundredth of wake-up latencies, 2.12 % of all";
    assert!(call.what.contains(phrase), "{}", call.what);
    let mut even = document.clone();
    even.analysis.overlaps.iter_mut().for_each(|overlap| overlap.share_of_largest = Some(overlap.share));
    assert!(again(&even).advice.iter().all(|a| !a.what.contains("touches")));
}

#[test]
fn a_class_is_joined_with_the_settable_mechanisms_in_catalogue_order() {
    let document = fixture::document();
    let of = |class| document.advice.iter().find(|a| a.class == Some(class)).unwrap();
    let ids = |class| of(class).steps.iter().map(|step| step.mechanism.as_str()).collect::<Vec<_>>();
    assert_eq!(ids(EventClass::IpiCall), ["nohz_full", "workqueue-cpumask"]);
    assert_eq!(ids(EventClass::IpiResched), ["isolcpus"]);
    assert!(of(EventClass::Unexplained).no_step.as_ref().unwrap().contains("firmware"));
    assert!(document.advice.iter().all(|a| a.class != Some(EventClass::SelfCaused)));
}

#[test]
fn a_mechanism_whose_every_remedy_is_in_place_says_so() {
    let mut document = fixture::document();
    for finding in &mut document.findings {
        finding.state = FindingState::Ok;
    }
    let document = again(&document);
    let tick = document.advice.iter().find(|a| a.class == Some(EventClass::TimerTick)).unwrap();
    assert_eq!(
        tick.no_step.as_deref(),
        Some("what the catalogue knows against it is in place: nohz_full (ok)")
    );
    assert_eq!(document.next.command, "stillcore trace counts run/trace.dat");
}

#[test]
fn a_missed_deadline_says_where_its_maximum_was_seen_and_promises_no_cause() {
    let mut document = fixture::document();
    let t0_ns = document.run.phases[0].t0_ns;
    let last = document.analysis.distributions.iter_mut().rfind(|d| d.probe == ProbeKind::Wakeup).unwrap();
    (last.corrected_max_ns, last.observed_max_at_ns) = (Some(8_000_000), Some(t0_ns + 51_250_000_000));
    let document = again(&document);
    assert_eq!(document.advice[0].kind, AdviceKind::Guarantee);
    let reason = document.advice[0].no_step.as_deref().unwrap();
    for part in ["phase idle-after on CPU 3", "due 51.250 s into the run", "disturbed phase", "need not be"] {
        assert!(reason.contains(part), "{reason}");
    }
    let mut untraced = document;
    untraced.run.trace = None;
    let reason = again(&untraced).advice[0].no_step.clone().unwrap();
    assert!(reason.contains("not recorded") && !reason.contains("follows"), "{reason}");
}

#[test]
fn without_a_whole_trace_no_gap_is_blamed_on_firmware_or_hypervisor() {
    let mut document = fixture::document();
    let blamed = |document: &crate::Document| {
        document.advice.iter().any(|advice| {
            advice.class == Some(EventClass::Unexplained)
                || advice.no_step.as_ref().is_some_and(|why| why.contains("firmware"))
        })
    };
    assert!(blamed(&document));
    for window in &mut document.analysis.distributions {
        if let Some(stolen) = &mut window.stolen {
            stolen.unexplained = None;
        }
    }
    assert!(!blamed(&again(&document)));
}

#[test]
fn a_class_that_could_not_be_seen_is_not_said_to_be_absent() {
    let mut document = fixture::document();
    let hide = |document: &mut crate::Document, class, disturbed: bool| {
        for window in document.analysis.events.iter_mut().filter(|w| (w.phase == "disturbed") == disturbed) {
            let rows = window.classes.iter_mut().filter(|row| row.class == class);
            rows.for_each(|row| (row.observable, row.count, row.net_ns) = (false, 0, 0));
        }
    };
    hide(&mut document, EventClass::IpiCall, false);
    hide(&mut document, EventClass::Irq, true);
    let document = again(&document);
    let of = |class| &document.advice.iter().find(|a| a.class == Some(class)).unwrap().what;
    assert!(of(EventClass::IpiCall).contains("idle: not observable"), "{}", of(EventClass::IpiCall));
    assert!(of(EventClass::Irq).contains("disturbed it was not observable"), "{}", of(EventClass::Irq));
}

#[test]
fn a_trace_that_saw_nothing_is_no_proof_of_stillness() {
    let mut document = fixture::still();
    for row in document.analysis.events.iter_mut().flat_map(|window| &mut window.classes) {
        (row.observable, row.count) = (false, 0);
    }
    let what = again(&document).advice.remove(0).what;
    assert!(what.contains("could see no class") && !what.contains("fewer than"), "{what}");
}

#[test]
fn settings_without_observed_events_come_last_and_once() {
    let advice = fixture::document().advice;
    let settings: Vec<&Advice> = advice.iter().filter(|a| a.kind == AdviceKind::Setting).collect();
    assert_eq!(settings.len(), 1, "{settings:?}");
    assert_eq!(settings[0].steps[0].mechanism, "ksm-run");
    assert_eq!(advice.last().map(|a| a.kind), Some(AdviceKind::Setting));
}

#[test]
fn losses_come_first_and_each_is_named() {
    let mut document = fixture::document();
    document.run.complete = false;
    document.run.incomplete_reason = Some("interrupted by the user".into());
    document.run.losses.ring_samples = 7;
    document.run.losses.trace_events = 11;
    document.run.stressors[1].state = model::stressor::StressorState::Void;
    let document = again(&document);
    let kinds: Vec<AdviceKind> = document.advice.iter().take(5).map(|a| a.kind).collect();
    assert_eq!(kinds[..4], [AdviceKind::Loss; 4]);
    assert_ne!(kinds[4], AdviceKind::Loss);
    assert!(document.advice[0].what.contains("interrupted by the user"));
    assert!(document.advice[3].what.contains("u_thread (void"));
    assert_eq!(document.next.command, "stillcore assess --cpus 2,3");
}

#[test]
fn a_weak_disturbance_is_a_loss_with_what_was_asked_and_done() {
    let mut document = fixture::document();
    let weak = &mut document.run.stressors[0];
    (weak.state, weak.ops_asked, weak.ops_ok) = (model::stressor::StressorState::Weak, Some(2000), 107);
    let document = again(&document);
    let first = &document.advice[0];
    assert_eq!(first.kind, AdviceKind::Loss);
    assert!(first.what.contains("u_fork (107 of 2,000 operations)"), "{}", first.what);
}

#[test]
fn a_trace_that_does_not_balance_is_a_loss_even_when_nothing_is_counted_lost() {
    let mut document = fixture::document();
    document.analysis.losses.reconciled = Some(false);
    assert!(again(&document).advice[0].what.contains("does not balance"));
}

#[test]
fn the_next_command_prefers_what_can_be_changed_now() {
    let document = fixture::document();
    assert_eq!(document.next.command, "stillcore isolate apply --cpus 2,3");
    assert_eq!(document.next.at_boot.as_deref(), Some("nohz_full=2-3"));
    let mut boot_only = document;
    boot_only.findings.retain(|f| f.state != FindingState::Fixable);
    let boot_only = again(&boot_only);
    assert_eq!(boot_only.next.command, "stillcore isolate plan --cpus 2,3");
    assert!(boot_only.next.why.contains("after the boot"), "{}", boot_only.next.why);
}

#[test]
fn without_root_and_trace_the_next_command_is_to_become_root() {
    let mut document = fixture::document();
    document.run.trace = None;
    document.machine.machine.limits.euid = 1000;
    document.analysis.events.clear();
    document.analysis.comparisons.retain(|c| !c.figure.contains("per second"));
    let document = again(&document);
    assert_eq!(document.next.command, "sudo stillcore assess --cpus 2,3");
    let unattributed: Vec<_> =
        document.advice.iter().filter(|a| a.kind == AdviceKind::Unattributed).collect();
    assert_eq!(unattributed.len(), 0, "unexplained gaps of the loop still stand for the samples");
}

#[test]
fn worse_samples_without_any_event_are_said_to_have_no_known_cause() {
    let mut document = fixture::still();
    document.run.trace = None;
    document.analysis.events.clear();
    document.analysis.comparisons = fixture::document().analysis.comparisons;
    document.analysis.comparisons.retain(|c| c.figure == "wakeup p99");
    let document = again(&document);
    assert_eq!(document.advice[0].kind, AdviceKind::Unattributed);
    assert!(document.advice[0].no_step.as_ref().unwrap().contains("root"));
}

#[test]
fn nothing_wrong_is_said_with_its_conditions() {
    let document = fixture::still();
    assert_eq!(document.advice.len(), 1, "{:?}", document.advice);
    assert_eq!(document.advice[0].kind, AdviceKind::Nothing);
    assert!(document.advice[0].what.contains("95 %: fewer than"), "{}", document.advice[0].what);
    assert!(document.next.command.starts_with("stillcore assess --cpus 2,3 --duration"));
}

#[test]
fn steal_time_stands_beside_unexplained_gaps() {
    let mut document = fixture::document();
    let of = |document: &crate::Document| {
        let found = document.advice.iter().find(|a| a.class == Some(EventClass::Unexplained));
        found.map(|advice| advice.what.clone()).unwrap()
    };
    assert!(!of(&document).contains("steal"));
    for window in &mut document.run.windows {
        window.steal_ns.insert(3, 10_000_000);
    }
    assert!(of(&again(&document)).contains("30.00 ms of steal time"), "{}", of(&again(&document)));
}

#[test]
fn what_came_in_the_idle_controls_alone_comes_last() {
    let advice = fixture::document().advice;
    let interference: Vec<&Advice> = advice.iter().filter(|a| a.kind == AdviceKind::Interference).collect();
    let last = interference.last().unwrap();
    assert_eq!(last.class, Some(EventClass::Irq));
    assert!(last.what.contains("only in the idle controls"), "{}", last.what);
    assert_eq!(
        last.no_step.as_deref(),
        Some("what the catalogue knows against it is in place: irq-affinity (ok)")
    );
}
