//! What stands in the box, for samples made by hand.

use super::*;
use crate::fixture;
use analysis::shape::TaskText;
use model::EventClass;

/// The fixture's document, in which the worst wake-up spent its time so.
fn with(parts: Vec<PathBox>) -> Document {
    let mut document = fixture::document();
    let told = verdict(&document, ProbeKind::Wakeup, "").unwrap();
    let analysis = &mut document.analysis;
    let ours = |phase: &str, cpu: u32| (phase, cpu) == (&told.phase, told.cpu);
    let window =
        analysis.distributions.iter().find(|one| one.probe == told.probe && ours(&one.phase, one.cpu));
    let t_ns = window.unwrap().observed_max_at_ns.unwrap();
    let path = analysis.paths.iter_mut().find(|one| ours(&one.phase, one.cpu)).unwrap();
    path.worst = vec![SamplePath { t_ns, value_ns: told.value_ns, parts, pieces: Vec::new() }];
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
    let told = of(&with(vec![fixture::part(Step::TimerLate, cpu(), 10, false), ran]));
    let document = fixture::document();
    let largest = document.analysis.distributions.iter().filter(|one| one.probe == ProbeKind::Wakeup);
    assert_eq!(told.value_ns, largest.filter_map(maximum).max().unwrap());
    assert!(told.cause.starts_with("ipi.call do_sync_core, asked for by "), "{}", told.cause);
    assert_eq!(told.confidence, Known::Exact);
}

/// The first line of a report must not name who was merely there.
#[test]
fn time_of_a_step_is_not_known_and_nothing_is_proposed_against_it() {
    let mut document = with(vec![fixture::part(Step::TimerLate, cpu(), 12_000_000, false)]);
    document.machine.machine.hypervisor = Some("kvm".into());
    let told = of(&document);
    assert_eq!(told.confidence, Known::Unknown);
    assert!(
        told.cause.contains("interrupts off, firmware or the hypervisor; not recorded which"),
        "{}",
        told.cause
    );
    assert_eq!((told.against.len(), told.in_place.len()), (0, 0));
    assert_eq!(told.against_words(), ["nothing is proposed against a cause that is not shown"]);
    document.machine.machine.hypervisor = None;
    assert!(of(&document).cause.contains("interrupts off or firmware; not recorded which"));
}

#[test]
fn steal_of_the_window_bounds_what_the_hypervisor_took() {
    let mut document = with(vec![fixture::part(Step::TimerLate, cpu(), 12_690_000, false)]);
    document.machine.machine.hypervisor = Some("kvm".into());
    let phase = of(&document).phase;
    let counted = |document: &mut Document, ns: u64| {
        for window in document.run.windows.iter_mut().filter(|one| one.phase == phase) {
            window.steal_ns.insert(cpu(), ns);
        }
        of(document).cause
    };
    let cause = counted(&mut document, 50_000_000);
    assert!(cause.ends_with("counted 50.00 ms of steal time there in this window: at most 12.69 ms of this is the hypervisor's"), "{cause}");
    let cause = counted(&mut document, 0);
    assert!(
        cause.ends_with(
            "counted 0 ns of steal time there in this window: at most 10.00 ms of this is the hypervisor's"
        ),
        "{cause}"
    );
}

#[test]
fn a_task_is_named_with_its_number_and_priority() {
    let task = TaskText { pid: 4711, comm: "hog".into(), prio: Some(9) };
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
    let told = of(&document);
    assert_eq!((told.cause.as_str(), told.share), ("softirq", Some(60.0 / told.value_ns as f64)));
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
    let told = of(&document);
    assert!(told.cause.starts_with("not known: no trace was recorded"), "{}", told.cause);
    assert_eq!(told.look, [format!("stillcore measure wakeup --cpus {} --trace", told.cpu)]);
}
