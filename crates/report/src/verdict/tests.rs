//! What stands in the box, for samples made by hand.

use super::*;
use crate::fixture;
use attribution::attribute::path_section::TaskText;
use attribution::attribute::step::Step;
use model::EventClass;
use model::run::StoppedAt;

/// The fixture's document, in which the worst wake-up spent its time so.
fn with(parts: Vec<PathBox>) -> Document {
    let mut document = fixture::document();
    let found = verdict(&document, ProbeKind::Wakeup, "").unwrap();
    let analysis = &mut document.analysis;
    let ours = |phase: &str, cpu: u32| (phase, cpu) == (&found.phase, found.cpu);
    let window =
        analysis.distributions.iter().find(|one| one.probe == found.probe && ours(&one.phase, one.cpu));
    let t_ns = window.unwrap().observed_max_at_ns.unwrap();
    let path = analysis.paths.iter_mut().find(|one| ours(&one.phase, one.cpu)).unwrap();
    path.worst =
        vec![SamplePath { t_ns, value_ns: found.value_ns, parts, pieces: Vec::new(), replaced: None }];
    document
}

fn of(document: &Document) -> Verdict {
    verdict(document, ProbeKind::Wakeup, "worst wake-up").unwrap()
}

fn cpu() -> u32 {
    of(&fixture::document()).cpu
}

#[test]
fn it_is_the_largest_of_all_wake_ups_and_its_cause_the_largest_part() {
    let ran = PathBox { label: Some("do_sync_core".into()), ..fixture::part(Step::Switch, cpu(), 90, true) };
    let found = of(&with(vec![fixture::part(Step::TimerLate, cpu(), 10, false), ran]));
    let document = fixture::document();
    let largest = document.analysis.distributions.iter().filter(|one| one.probe == ProbeKind::Wakeup);
    assert_eq!(found.value_ns, largest.filter_map(maximum).max().unwrap());
    assert!(found.cause.starts_with("ipi.call do_sync_core, asked for by "), "{}", found.cause);
    assert_eq!(found.confidence, Known::Exact);
}

/// Looking closer at the one sample shows no more: another one may have a cause.
#[test]
fn a_stop_at_a_sample_without_a_cause_leads_to_the_next_measurement() {
    let mut document = with(vec![fixture::part(Step::TimerLate, cpu(), 12_000_000, false)]);
    let command = "stillcore measure wakeup --cpus 1 --stop-over 200us --trace --out run1";
    document.run.command = command.split(' ').map(str::to_owned).collect();
    assert_eq!(of(&document).look.len(), 1);
    document.run.stopped_at = Some(StoppedAt {
        over_ns: 200_000,
        probe: ProbeKind::Wakeup,
        phase: "measured".into(),
        thread: 0,
        cpu: 1,
        sample: 9,
        t_ns: 5,
        value_ns: 12_000_000,
        after_ns: 1,
        planned_ns: 2,
    });
    let look = of(&document).look;
    let once_more = "stillcore measure wakeup --cpus 1 --stop-over 200us --trace  # the next one may have a cause that is shown";
    assert_eq!(look[0], once_more);
    assert!(look[1].starts_with("stillcore trace explain "), "{look:?}");
    // One that is shown is looked at.
    let ran = PathBox { label: Some("do_sync_core".into()), ..fixture::part(Step::Switch, cpu(), 90, true) };
    let mut shown = with(vec![ran]);
    (shown.run.stopped_at, shown.run.command) = (document.run.stopped_at, document.run.command);
    let found = of(&shown);
    assert_eq!((found.confidence, found.look.len()), (Known::Exact, 1));
}

/// The first line of a report must not name who was merely there.
#[test]
fn time_of_a_step_is_not_known_and_nothing_is_proposed_against_it() {
    let mut document = with(vec![fixture::part(Step::TimerLate, cpu(), 12_000_000, false)]);
    document.machine.machine.hypervisor = Some("kvm".into());
    let found = of(&document);
    assert_eq!(found.confidence, Known::Unknown);
    let guest = "interrupts off, an exit from idle, firmware, the hypervisor or something without an event";
    assert!(found.cause.contains(guest), "{}", found.cause);
    assert_eq!((found.against.len(), found.in_place.len()), (0, 0));
    assert_eq!(found.against_words(), ["nothing is proposed against a cause that is not shown"]);
    document.machine.machine.hypervisor = None;
    let metal =
        "interrupts off, an exit from idle, firmware or something without an event; not recorded which";
    assert!(of(&document).cause.ends_with(metal));
}

#[test]
fn steal_is_bounded_by_its_counter_and_a_counter_that_stands_still_bounds_nothing() {
    let mut document = with(vec![fixture::part(Step::TimerLate, cpu(), 12_690_000, false)]);
    document.machine.machine.hypervisor = Some("kvm".into());
    let phase = of(&document).phase;
    let cause = |document: &mut Document, ns: u64| {
        for window in document.run.windows.iter_mut().filter(|one| one.phase == phase) {
            window.steal_ns.insert(cpu(), ns);
        }
        of(document).cause
    };
    let text = cause(&mut document, 50_000_000);
    assert!(
        text.ends_with(
            "counted 50.00 ms of steal time there in this window: at most 12.69 ms of this is steal time"
        ),
        "{text}"
    );
    let text = cause(&mut document, 0);
    assert!(text.ends_with("(not every hypervisor reports it)") && !text.contains("at most"), "{text}");
}

#[test]
fn a_cpu_that_did_not_execute_is_inferred_and_steal_is_bounded() {
    let part = PathBox {
        blocking: Some(Blocking::NotExecuting),
        label: Some("firmware or hypervisor".into()),
        ..fixture::part(Step::TimerLate, cpu(), 12_690_000, false)
    };
    let mut document = with(vec![part]);
    document.machine.machine.hypervisor = Some("kvm".into());
    let phase = of(&document).phase;
    for window in document.run.windows.iter_mut().filter(|one| one.phase == phase) {
        window.steal_ns.insert(cpu(), 0);
    }
    let found = of(&document);
    let text = "CPU or timer not running: firmware or hypervisor; no steal time was counted there";
    assert!(found.cause.starts_with(text), "{}", found.cause);
    assert_eq!((found.confidence, found.against.len()), (Known::Inferred, 0));
}

#[test]
fn an_exit_from_idle_is_inferred_and_what_is_against_it_is_proposed() {
    let part = PathBox {
        blocking: Some(Blocking::IdleExit),
        label: Some("C6, at most 133 us to leave".into()),
        ..fixture::part(Step::TimerLate, cpu(), 133_000, false)
    };
    let mut document = with(vec![part]);
    let open =
        Finding { id: "idle-states".into(), state: FindingState::Fixable, ..document.findings[0].clone() };
    document.findings.push(open);
    let found = of(&document);
    assert_eq!(
        (found.cause.as_str(), found.confidence),
        ("idle exit: C6, at most 133 us to leave", Known::Inferred)
    );
    assert!(
        found.against[0].contains("isolate apply") && found.against[0].contains("idle-states"),
        "{:?}",
        found.against
    );
}

#[test]
fn where_idle_states_are_held_off_none_is_suspected() {
    let mut document = with(vec![fixture::part(Step::TimerLate, cpu(), 12_690, false)]);
    assert!(of(&document).cause.contains("an exit from idle"));
    let state = model::cpu_states::IdleState { name: "C1".into(), exit_latency_us: 2 };
    document.run.idle_states.insert(cpu(), [(0, state)].into());
    document.run.dma_latency_us = Some(0);
    assert!(!of(&document).cause.contains("idle"));
}

#[test]
fn a_step_that_waited_for_another_cpu_is_shown_and_has_its_commands() {
    let elsewhere = cpu() + 1;
    let timer = PathBox {
        confidence: Some(Confidence::Exact),
        ..fixture::part(Step::TimerLate, elsewhere, 90, false)
    };
    let verdict = of(&with(vec![timer]));
    assert_eq!(verdict.confidence, Known::Exact);
    assert!(
        verdict.cause.starts_with(&format!("the timer expired late on CPU {elsewhere}")),
        "{}",
        verdict.cause
    );
    // What is exact is the step; what ran there is not known.
    let words = verdict.sure_words();
    let why = " (exact); the trace does not show what ran there: only measured CPUs are recorded";
    assert!(words.ends_with(why), "{words}");
    let mut document = with(vec![PathBox {
        confidence: Some(Confidence::Exact),
        ..fixture::part(Step::TimerLate, elsewhere, 90, false)
    }]);
    document.run.measured_cpus = document.run.measured_cpus.or(&model::Cpus::one(elsewhere));
    assert!(of(&document).sure_words().ends_with("the trace does not show what ran there"));
}

/// Who had the CPU is said, and that it shows nothing more.
#[test]
fn who_had_the_cpu_is_no_culprit() {
    let with_task = |pid: i32, comm: &str| {
        let mut document = with(vec![fixture::part(Step::Switch, cpu(), 90, false)]);
        let task = TaskText { pid, comm: comm.to_owned(), prio: None, group: None };
        let samples = document.analysis.paths.iter_mut().flat_map(|path| &mut path.worst);
        samples.for_each(|sample| sample.replaced = Some(task.clone()));
        of(&document)
    };
    let found = with_task(7, "web");
    let said = format!("; web[7] had CPU {} until the switch, which does not show that it held it up", cpu());
    assert!(found.cause.ends_with(&said), "{}", found.cause);
    assert_eq!((found.confidence, found.against.len()), (Known::Unknown, 0));
    assert!(with_task(0, "swapper/2").cause.ends_with(&format!("; CPU {} was idle until the switch", cpu())));
}

/// An IPI that came late is not explained; that it was needed at all is.
#[test]
fn an_ipi_that_a_timer_elsewhere_needed_has_what_is_against_that() {
    let late = |timer| {
        let parts = [
            fixture::part(Step::TimerLate, timer, 10, false),
            fixture::part(Step::IpiInFlight, cpu(), 90, false),
        ];
        let mut document = with(parts.to_vec());
        let open = Finding {
            id: "timer_migration".into(),
            state: FindingState::Ok,
            otherwise: Some("echo 0 > /proc/sys/kernel/timer_migration".into()),
            ..document.findings[0].clone()
        };
        document.findings.push(open);
        of(&document)
    };
    let found = late(cpu() + 1);
    let said = format!("it was needed because the timer expired on CPU {}", cpu() + 1);
    assert!(
        found.cause.starts_with("the IPI came late, and no recorded event") && found.cause.ends_with(&said)
    );
    assert!(found.against_words()[0].contains("--with timer_migration"), "{:?}", found.against_words());
    assert_eq!(late(cpu()).against.len(), 0);
}

/// Where one sample is looked at, the same is said of it as where it is the worst of a run.
#[test]
fn any_sample_has_the_cause_that_it_would_have_as_the_worst() {
    let document = with(vec![
        fixture::part(Step::TimerLate, cpu(), 12_000_000, false),
        fixture::part(Step::Return, cpu(), 1_000, false),
    ]);
    let worst = of(&document);
    let path = document.analysis.paths.iter().find(|one| one.cpu == worst.cpu && one.phase == worst.phase);
    let place = Place { probe: worst.probe, phase: &worst.phase, cpu: worst.cpu };
    let found = of_sample(&Facts::of(&document), place, &path.unwrap().worst[0]);
    assert_eq!(found.cause_words(), worst.cause_words());
    assert_eq!(found.against_words(), worst.against_words());
}

/// Several mechanisms that one command sets are one line.
#[test]
fn a_command_stands_once_with_what_it_sets() {
    let finding = fixture::document().findings.into_iter().find(is_settable).unwrap();
    let named = |id: &str| Finding { id: id.to_owned(), ..finding.clone() };
    let findings = [named("one"), named("two")];
    let ids = ["two".to_owned(), "absent".to_owned(), "one".to_owned()];
    let (against, in_place) = commands(&findings, &ids, |_| false);
    assert_eq!((against.len(), in_place.len()), (1, 0));
    assert!(
        against[0].starts_with("stillcore isolate ") && against[0].ends_with("  # two, one"),
        "{against:?}"
    );
}

#[test]
fn a_budget_is_inferred() {
    let class = Some(EventClass::Throttle);
    let part = PathBox {
        class,
        label: Some("out of budget".into()),
        ..fixture::part(Step::Switch, cpu(), 90, false)
    };
    let verdict = of(&with(vec![part]));
    assert_eq!((verdict.cause.as_str(), verdict.confidence), ("throttle out of budget", Known::Inferred));
}

#[test]
fn a_task_is_named_with_its_number_and_priority() {
    let task = TaskText { pid: 4711, comm: "hog".into(), prio: Some(9), group: None };
    let hog = PathBox {
        class: Some(EventClass::Switch),
        label: Some("hog".into()),
        task: Some(task),
        source: None,
        confidence: None,
        ..fixture::part(Step::Switch, cpu(), 90, false)
    };
    assert_eq!(of(&with(vec![hog])).cause, "switch hog[4711] (priority 90)");
}

#[test]
fn parts_of_one_thing_are_added_and_own_time_of_two_steps_is_not() {
    let part = |step, class, ns| PathBox { class, ..fixture::part(step, cpu(), ns, false) };
    let ran = Some(EventClass::Softirq);
    let document = with(vec![
        part(Step::TimerLate, ran, 30),
        part(Step::Switch, None, 50),
        part(Step::Return, None, 40),
        part(Step::Switch, ran, 30),
    ]);
    let found = of(&document);
    assert_eq!((found.cause.as_str(), found.share), ("softirq", Some(60.0 / found.value_ns as f64)));
}

#[test]
fn without_samples_there_is_none() {
    let mut document = fixture::document();
    document.analysis.distributions.clear();
    assert_eq!(verdicts(&document), []);
}

#[test]
fn without_a_trace_it_says_how_to_get_one() {
    let mut document = fixture::document();
    document.run.trace = None;
    document.analysis.paths.clear();
    let found = of(&document);
    assert!(found.cause.starts_with("not known: no trace was recorded"), "{}", found.cause);
    assert_eq!(found.look, [format!("stillcore measure wakeup --cpus {} --trace", found.cpu)]);
    // A measurement is repeated as it was.
    for (typed, again) in [
        ("measure wakeup -i 10ms --out a --trace off --disturb timer", "-i 10ms --disturb timer --trace"),
        ("measure wakeup --trace=off --out=b --cpus 3", "--cpus 3 --trace"),
    ] {
        document.run.command = format!("stillcore {typed}").split(' ').map(str::to_owned).collect();
        assert_eq!(of(&document).look, [format!("stillcore measure wakeup {again}")]);
    }
}

/// A setting on which the field does not agree is proposed against what came from another CPU, and
/// is in no case a remedy in place.
#[test]
fn a_contested_setting_is_not_in_place() {
    let finding = fixture::document().findings.into_iter().next().unwrap();
    let state = FindingState::Ok;
    let contested = Finding { otherwise: Some("echo 0 > x".to_owned()), state, ..finding.clone() };
    let plain = Finding { otherwise: None, state, ..finding };
    let ids = [plain.id.clone()];
    let of = |finding: &Finding, foreign| {
        commands(std::slice::from_ref(finding), &ids, |one| outcome::speaks(one, None, foreign))
    };
    let (against, in_place) = of(&contested, true);
    assert!(against[0].contains(&format!("--with {}", contested.id)) && in_place.is_empty(), "{against:?}");
    assert_eq!(of(&contested, false), (Vec::new(), Vec::new()));
    assert_eq!(of(&plain, true), (Vec::new(), ids.to_vec()));
}

/// Tasks that are pinned to an isolated CPU are in order, and still what ran there: the command
/// that moves them is proposed, with their names, against a task that ran and against nothing else.
#[test]
fn pinned_tasks_are_proposed_to_move_against_a_task_that_ran() {
    let finding = fixture::document().findings.into_iter().next().unwrap();
    let pinned = Finding {
        id: "user-tasks".to_owned(),
        state: FindingState::Ok,
        have: Some("telemetryd (111)".to_owned()),
        otherwise: Some("taskset -apc 0,1 111".to_owned()),
        ..finding
    };
    let ids = [pinned.id.clone()];
    let of =
        |class| commands(std::slice::from_ref(&pinned), &ids, |one| outcome::speaks(one, Some(class), true));
    let (against, in_place) = of(EventClass::Switch);
    assert!(
        against[0].ends_with(" --move-pinned  # user-tasks: pinned there: telemetryd (111)"),
        "{against:?}"
    );
    assert_eq!(in_place, Vec::<String>::new());
    assert_eq!(of(EventClass::Irq), (Vec::new(), Vec::new()));
}

/// A release behind the warm-up may be later than every wake-up that was served: the worst wake-up
/// is the one that is taken apart, with the share of its own parts.
#[test]
fn the_worst_is_a_wake_up_that_was_served() {
    let mut document = fixture::document();
    let before = verdicts(&document).remove(0);
    for window in &mut document.analysis.distributions {
        window.corrected_max_ns = window.observed_max_ns.map(|ns| ns * 10);
    }
    let after = verdicts(&document).remove(0);
    assert_eq!((after.value_ns, after.share), (before.value_ns, before.share));
    let charged = after.cause.strip_prefix(&before.cause).unwrap();
    assert!(charged.starts_with("; a release that passed unserved is charged with "), "{charged}");
}
