//! Studies made by hand: what counts as seen, when a study is void, what is said of background,
//! contamination and repetitions.

use super::*;
use model::Cpus;
use model::stressor::{StressorRecord, Witness};

const SECOND_NS: u64 = 1_000_000_000;

/// A cell of 2 s between idle controls of 2 s each, on CPU 2, on a kernel that records three
/// classes.
fn cell(name: &str, operations: u64, events: &[(EventClass, u64)], idle: &[(EventClass, u64)]) -> CellFacts {
    let record = StressorRecord {
        name: name.to_owned(),
        cpus: Cpus::one(0),
        ops_asked: None,
        ops_ok: operations,
        ops_failed: BTreeMap::new(),
        parts: BTreeMap::new(),
        t0_ns: 0,
        t1_ns: 2 * SECOND_NS as i64,
        witness: Witness { name: "counter".to_owned(), expected: 0, seen: 0 },
        state: StressorState::Ok,
        reason: None,
        confined_by: Vec::new(),
        rates: Vec::new(),
        stalls: 0,
    };
    CellFacts {
        void: None,
        observable: BTreeSet::from([EventClass::IpiCall, EventClass::Tlb, EventClass::TimerTick]),
        disturbed: stretch(events),
        idle_before: stretch(idle),
        idle_after: stretch(idle),
        ..CellFacts::without_measurement(record, &Cpus::one(2), String::new())
    }
}

fn count(count: u64) -> Count {
    Count { count, dispersion: 1.0, by_cpu: BTreeMap::from([(2, count)]) }
}

fn stretch(events: &[(EventClass, u64)]) -> Stretch {
    Stretch {
        length_ns: 2 * SECOND_NS,
        classes: events.iter().map(|(class, events)| (*class, count(*events))).collect(),
        all: count(events.iter().map(|(_, events)| events).sum()),
    }
}

fn controls() -> (Vec<CellFacts>, Vec<Expectation>) {
    let cells = vec![
        cell("tlb_span", 2000, &[(EventClass::Tlb, 2000)], &[]),
        cell("calc_pi", 500, &[(EventClass::TimerTick, 9)], &[(EventClass::TimerTick, 8)]),
    ];
    let expected = [("tlb_span", true), ("calc_pi", false)];
    let expected = expected.map(|(name, seen)| Expectation { stressor: name.to_owned(), seen });
    (cells, expected.into())
}

fn of<'a>(exposure: &'a Exposure, name: &str) -> &'a Row {
    exposure.rows.iter().find(|row| row.stressor == name).unwrap()
}

fn class(row: &Row, class: EventClass) -> Coefficient {
    row.classes.iter().find(|one| one.class == class).unwrap().coefficient
}

#[test]
fn a_study_whose_controls_behave_is_believed() {
    let (mut cells, expected) = controls();
    cells.push(cell("schedstats", 40, &[(EventClass::IpiCall, 120)], &[]));
    let exposure = conclude(&cells, &expected);
    assert!(!exposure.void, "{:?}", exposure.verdict);
    assert!(
        exposure.verdict[0].contains("tlb_span was seen: tlb 1.000 events per operation, of 2000 operations")
    );
    assert!(
        exposure.verdict[0].contains(
            "calc_pi was not seen: 9 events in 500 operations, where the idle background gives 8.0"
        )
    );
    let seen = class(of(&exposure, "schedstats"), EventClass::IpiCall);
    assert!(seen.seen && (seen.per_operation - 3.0).abs() < 1e-12);
    assert!(!class(of(&exposure, "schedstats"), EventClass::Tlb).seen);
    assert_eq!(
        of(&exposure, "schedstats").classes.len(),
        3,
        "a class that the kernel records and was not seen has its bound"
    );
}

#[test]
fn a_blind_observer_voids_the_study() {
    let (mut cells, expected) = controls();
    cells[0] = cell("tlb_span", 2000, &[], &[]);
    let exposure = conclude(&cells, &expected);
    assert!(exposure.void && exposure.verdict.len() == 1, "{:?}", exposure.verdict);
    assert!(
        exposure.verdict[0].contains("positive control failed (tlb_span was not seen: 0 events"),
        "{:?}",
        exposure.verdict
    );
}

#[test]
fn a_class_that_the_negative_control_changed_is_left_out_and_no_other() {
    let (mut cells, expected) = controls();
    // More IPIs than idle, fewer ticks.
    let own = [(EventClass::IpiCall, 40), (EventClass::TimerTick, 250)];
    cells[1] = cell("calc_pi", 500, &own, &[(EventClass::TimerTick, 550)]);
    let events = [(EventClass::IpiCall, 120), (EventClass::Tlb, 80), (EventClass::TimerTick, 250)];
    cells.push(cell("munmap", 40, &events, &[(EventClass::TimerTick, 550)]));
    let exposure = conclude(&cells, &expected);
    assert!(!exposure.void, "{:?}", exposure.verdict);
    assert_eq!(exposure.unsteady, [EventClass::IpiCall, EventClass::TimerTick]);
    assert!(
        exposure.verdict[0]
            .starts_with("left out of every row: ipi.call, timer.tick, which the negative control")
            && exposure.verdict[0].contains("(calc_pi: ipi.call 0.080, timer.tick -0.600 events"),
        "{:?}",
        exposure.verdict
    );
    assert!(
        exposure.verdict[1]
            .starts_with("the controls are as expected in the other classes: tlb_span was seen")
    );
    let row = of(&exposure, "munmap");
    assert_eq!(row.classes.iter().map(|one| one.class).collect::<Vec<_>>(), [EventClass::Tlb]);
    let all = row.all.unwrap();
    assert!(all.seen && all.events == 80 && (all.per_operation - 2.0).abs() < 1e-12, "{all:?}");
    assert!((row.each[0] - 2.0).abs() < 1e-12, "{:?}", row.each);
    assert!(!of(&exposure, "calc_pi").all.unwrap().seen);
    // Three cells with idle controls of 4 s each: 0, 1100 and 1100 ticks.
    assert_eq!(exposure.idle_per_s, BTreeMap::from([(EventClass::TimerTick, 2200.0 / 12.0)]));
}

#[test]
fn a_positive_control_that_is_seen_in_nothing_but_what_is_left_out_is_not_seen() {
    let (mut cells, expected) = controls();
    cells[1] = cell("calc_pi", 500, &[(EventClass::Tlb, 400)], &[]);
    let exposure = conclude(&cells, &expected);
    assert!(
        exposure.void && exposure.verdict[0].contains("positive control failed"),
        "{:?}",
        exposure.verdict
    );
    assert!(exposure.verdict[1].starts_with("left out of every row: tlb"), "{:?}", exposure.verdict);
}

#[test]
fn a_study_without_a_control_that_could_be_run_is_void() {
    let (mut cells, expected) = controls();
    cells[0].record.state = StressorState::Absent;
    cells[0].void = Some("flushes of this architecture interrupt nobody".to_owned());
    let exposure = conclude(&cells, &expected);
    assert!(
        exposure.void
            && exposure.verdict[0].contains("no usable positive control (tlb_span cannot be run here"),
        "{:?}",
        exposure.verdict
    );
    assert_eq!(of(&exposure, "tlb_span").state, RowState::Absent);
    let other = Expectation { stressor: "schedstats".to_owned(), seen: true };
    cells.push(cell("schedstats", 40, &[(EventClass::IpiCall, 120)], &[]));
    assert!(!conclude(&cells, &[expected, vec![other]].concat()).void, "another one serves");
}

#[test]
fn a_void_cell_has_no_coefficient_and_says_why() {
    let (mut cells, expected) = controls();
    let mut void = cell("sock", 40, &[(EventClass::IpiCall, 120)], &[]);
    void.void = Some("PassiveOpens grew by 0; expected at least 40".to_owned());
    cells.push(void.clone());
    let row = conclude(&cells, &expected).rows.pop().unwrap();
    assert_eq!((row.state, row.all, row.classes.len(), row.operations), (RowState::Void, None, 0, 0));
    assert_eq!(row.reason, void.void);
    cells.push(cell("sock", 40, &[(EventClass::IpiCall, 80)], &[]));
    let row = conclude(&cells, &expected).rows.pop().unwrap();
    assert_eq!((row.state, row.cells, row.operations), (RowState::Ok, 1, 40), "the other repetition counts");
    assert_eq!(row.left_out, [void.void.unwrap()]);
}

#[test]
fn repetitions_are_pooled_and_each_is_reported() {
    let cells = [
        cell("perf_sys", 10, &[(EventClass::IpiCall, 20)], &[]),
        cell("perf_sys", 30, &[(EventClass::IpiCall, 60)], &[]),
    ];
    let row = conclude(&cells, &[]).rows.remove(0);
    assert_eq!((row.operations, row.cells), (40, 2));
    assert!((row.all.unwrap().per_operation - 2.0).abs() < 1e-12);
    assert_eq!(row.each, [2.0, 2.0]);
}

#[test]
fn idle_controls_that_disagree_are_reported() {
    let mut one = cell("u_fork", 100, &[], &[(EventClass::TimerTick, 500)]);
    one.idle_after = stretch(&[(EventClass::TimerTick, 8)]);
    one.changed = vec!["affinity of kernel thread rcu_preempt/0: 0-1 before, 0-3 after".to_owned()];
    let row = conclude(&[one.clone()], &[]).rows.remove(0);
    assert_eq!(row.idle_apart, ["timer.tick: 250.0 a second before, 4.0 after"]);
    assert_eq!(row.contaminated, one.changed);
    let steady = cell("u_fork", 100, &[], &[(EventClass::TimerTick, 500)]);
    assert_eq!(conclude(&[steady], &[]).rows.remove(0).idle_apart, Vec::<String>::new());
}

#[test]
fn the_sources_of_most_events_come_first() {
    let mut one = cell("u_fork", 100, &[], &[]);
    let source = |label: &str, count| SourceCount {
        class: EventClass::IpiCall,
        label: label.to_owned(),
        who: Some("stillcore".to_owned()),
        site: None,
        count,
    };
    one.sources = vec![source("a", 5), source("b", 4), source("c", 3), source("d", 1)];
    let mut two = one.clone();
    two.sources = vec![source("d", 9)];
    let sources = conclude(&[one, two], &[]).rows.remove(0).sources;
    assert_eq!(
        sources.iter().map(|one| (one.label.as_str(), one.count)).collect::<Vec<_>>(),
        [("d", 10), ("a", 5), ("b", 4)]
    );
}

#[test]
fn too_few_operations_prove_no_blindness() {
    let (mut cells, mut expected) = controls();
    expected.push(Expectation { stressor: "schedstats".to_owned(), seen: true });
    cells.push(cell("schedstats", 1, &[(EventClass::IpiCall, 3)], &[]));
    let exposure = conclude(&cells, &expected);
    assert!(!of(&exposure, "schedstats").all.unwrap().seen, "3 events may be chance");
    let held = |exposure: &Exposure| {
        exposure.controls.iter().find(|control| control.expected.stressor == "schedstats").unwrap().held
    };
    assert!(!exposure.void && held(&exposure).is_none(), "{:?}", exposure.verdict);
    cells[2] = cell("schedstats", 1000, &[(EventClass::IpiCall, 3)], &[]);
    let exposure = conclude(&cells, &expected);
    assert!(exposure.void && held(&exposure) == Some(false), "{:?}", exposure.verdict);
}

#[test]
fn an_uneven_background_leaves_no_class_out_and_a_disturbed_one_does() {
    let (mut cells, expected) = controls();
    let ticks = |count| vec![(EventClass::TimerTick, count)];
    for (events, left_out) in [(14, 0), (60, 1)] {
        cells[1] = cell("calc_pi", 500, &ticks(events), &ticks(8));
        assert_eq!(conclude(&cells, &expected).unsteady.len(), left_out, "{events}");
    }
}

/// Its measured CPUs are not known, and it comes first.
#[test]
fn a_cell_without_an_account_changes_no_rate_of_the_others() {
    let (mut cells, expected) = controls();
    let before = conclude(&cells, &expected);
    let failed = CellFacts::failed("timer", &Cpus::default(), &Cpus::default(), "the guest hung".to_owned());
    cells.insert(0, failed);
    let after = conclude(&cells, &expected);
    assert!(!before.idle_per_s.is_empty());
    assert_eq!(after.idle_per_s, before.idle_per_s);
    assert_eq!(of(&after, "timer").reason.as_deref(), Some("the guest hung"));
}
