//! A small matrix, looked at in every form.

use super::*;
use crate::text::TextOptions;
use analysis::exposure::{ClassCoefficient, SourceCount, changes};
use model::EventClass;
use std::collections::BTreeMap;

fn coefficient(events: u64, operations: u64, seen: bool) -> Coefficient {
    let value = events as f64 / operations as f64;
    let (low, high) = if seen { (value * 0.8, value * 1.2) } else { (0.0, 3.0 / operations as f64) };
    Coefficient {
        events,
        background: 0.0,
        per_operation: value,
        low,
        high,
        p: if seen { 0.0 } else { 1.0 },
        seen,
    }
}

fn row(stressor: &str, events: u64, operations: u64) -> Row {
    let (ours, none) = (coefficient(events, operations, events > 0), coefficient(0, operations, false));
    Row {
        stressor: stressor.to_owned(),
        state: RowState::Ok,
        reason: None,
        cells: 1,
        asked: None,
        operations,
        failed: BTreeMap::new(),
        disturbed_s: 2.0,
        idle_s: 4.0,
        all: Some(ours),
        classes: vec![
            ClassCoefficient { class: EventClass::IpiCall, coefficient: ours },
            ClassCoefficient { class: EventClass::Tlb, coefficient: none },
        ],
        each: Vec::new(),
        sources: Vec::<SourceCount>::new(),
        idle_apart: Vec::new(),
        contaminated: Vec::new(),
        left_out: Vec::new(),
        limits: Vec::new(),
    }
}

fn column(kernel: &str, profile: &str, rows: Vec<Row>) -> Column {
    Column {
        kernel: kernel.to_owned(),
        profile: profile.to_owned(),
        realtime: false,
        absent: None,
        void: false,
        unsteady: Vec::new(),
        verdict: Vec::new(),
        idle_per_s: BTreeMap::new(),
        rows,
    }
}

fn matrix() -> Matrix {
    let absent = Row {
        state: RowState::Absent,
        reason: Some("no module <wireguard> | here".to_owned()),
        all: None,
        classes: Vec::new(),
        ..row("k_workqueue", 0, 1)
    };
    let failed = Column {
        absent: Some("3 guests failed: no time".to_owned()),
        ..column("6.1", "partition", Vec::new())
    };
    let ticking = BTreeMap::from([(EventClass::TimerTick, 249.96), (EventClass::Softirq, 0.012)]);
    let columns = vec![
        failed,
        Column {
            idle_per_s: ticking,
            ..column("5.10", "boot", vec![row("bpf_filter", 300, 100), row("perf_sys", 20, 10)])
        },
        column("6.1", "boot", vec![row("bpf_filter", 0, 100), row("perf_sys", 20, 10), absent]),
    ];
    let kernel = |name: &str| MatrixKernel {
        name: name.to_owned(),
        release: format!("{name}.0-amd64"),
        package: Some("linux-image 1_2".to_owned()),
        arch: "x86_64".to_owned(),
    };
    Matrix {
        dir: "out".to_owned(),
        conditions: vec![("guest".to_owned(), "3 CPUs".to_owned())],
        profiles: vec![("partition".to_owned(), "p".to_owned()), ("boot".to_owned(), "b".to_owned())],
        kernels: vec![kernel("5.10"), kernel("6.1")],
        options: vec![OptionDifference {
            option: "CONFIG_NO_HZ_FULL".to_owned(),
            why: "whether the tick can stop".to_owned(),
            values: BTreeMap::from([("5.10".to_owned(), "n".to_owned()), ("6.1".to_owned(), "y".to_owned())]),
        }],
        changes: changes(&columns),
        columns,
    }
}

#[test]
fn the_terminal_has_a_table_a_profile_within_its_width() {
    let text = matrix_text(&matrix(), TextOptions::default());
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let row = |stressor: &str| {
        let line = text.lines().find(|line| line.starts_with(stressor) && line.contains("<=0.03"));
        line.map(|line| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(row("bpf_filter"), Some(vec!["bpf_filter".to_owned(), "3".to_owned(), "<=0.03".to_owned()]));
    for phrase in [
        "6.1: absent: 3 guests failed: no time",
        "bpf_filter ipi.call: 5.10 3.00 (2.40 to 3.60), 6.1 <=0.03 (boot)",
        "seen before, not seen now",
        "5.10 boot: timer.tick 250, softirq 0.012",
    ] {
        assert!(text.contains(phrase), "{phrase}: {text}");
    }
    let option = text.lines().find(|line| line.starts_with("NO_HZ_FULL")).unwrap();
    assert_eq!(option.split_whitespace().collect::<Vec<_>>(), ["NO_HZ_FULL", "n", "y"]);
}

#[test]
fn markdown_has_a_heading_a_stressor_and_no_markup_of_a_machine() {
    let page = matrix_markdown(&matrix(), "made by hand");
    for phrase in [
        "made by hand",
        "### bpf_filter",
        "| 5.10 | - | | ipi.call 3.00 | 100 |",
        "| 6.1 | - | | <=0.03 | 100 |",
        r"- absent: no module \<wireguard\> \| here (6.1 boot)",
        "| NO_HZ_FULL | n | y | whether the tick can stop |",
        "| 5.10 | - | timer.tick 250, softirq 0.012 |",
        "| 6.1 | - | nothing |",
        r"- 6.1 partition: absent: 3 guests failed: no time",
    ] {
        assert!(page.contains(phrase), "{phrase}: {page}");
    }
}

#[test]
fn the_page_has_a_colour_a_bound_and_the_absent_in_words() {
    let page = crate::matrix_page(&matrix()).unwrap();
    assert!(!page.contains("<script"), "{page}");
    crate::html::assert_balanced(&page);
    let opening = page.split("class=\"opening\"").nth(1).unwrap().split("</section>").next().unwrap();
    for phrase in [
        "from a kernel to the next 0 coefficients rose and 1 fell.",
        "bpf_filter ipi.call, 5.10 to 6.1",
        "6.1 partition: absent: 3 guests failed: no time",
        "not seen, \u{2264} 0.03",
        "<span>explain</span> <span>ipi.call</span>",
    ] {
        assert!(opening.contains(phrase), "{phrase}: {opening}");
    }
    for phrase in [
        "class=\"h5\" title=\"ipi.call 3.00\">3<",
        "class=\"u\" title=\"not seen\">\u{2264}\u{a0}0.03<",
        "<td class=\"u\">absent</td>",
        "No module &lt;wireguard&gt; | here (6.1 boot)",
        "Absent: 3 guests failed: no time.",
    ] {
        assert!(page.replace("Absent: no module", "No module").contains(phrase), "{phrase}: {page}");
    }
}

#[test]
fn the_dearest_operations_stand_kernel_by_kernel_and_what_rose_is_counted() {
    let page = crate::matrix_page(&crate::fixture::pages::matrix()).unwrap();
    crate::html::assert_balanced(&page);
    let opening = page.split("class=\"opening\"").nth(1).unwrap().split("</section>").next().unwrap();
    for phrase in [
        "Of 8 operations on 3 kernels, 4 cause interference on at least one; from a kernel to the next 2 coefficients rose and 0 fell.",
        "mmap_fork: 6.12-rt boot",
        "6 more below",
        "5.10-rt partition: absent: this kernel has no isolated partitions",
    ] {
        assert!(opening.contains(phrase), "{phrase}: {opening}");
    }
    assert_eq!(opening.matches("<circle").count(), 28);
}

#[test]
fn less_than_half_of_what_was_asked_for_is_said_in_every_form() {
    let mut matrix = matrix();
    assert!(!matrix_text(&matrix, TextOptions::default()).contains("weak"));
    let row = matrix.columns.iter_mut().find_map(|column| column.rows.first_mut()).unwrap();
    row.asked = Some(10 * row.operations);
    let (stressor, operations) = (row.stressor.clone(), crate::exposure::operations(row));
    let text = matrix_text(&matrix, TextOptions::default());
    let marked = text.lines().any(|line| line.trim_start().starts_with(&stressor) && line.contains('*'));
    assert!(marked && text.contains("* is weak"), "{text}");
    assert!(matrix_markdown(&matrix, "").contains(&format!("| {operations} |")));
    assert!(crate::matrix_page(&matrix).unwrap().contains("Weak, less than half of what was asked for"));
}

#[test]
fn the_object_names_its_schema_and_leaves_silence_out() {
    let object = matrix().json();
    assert_eq!(object["schema"], MATRIX_SCHEMA);
    let classes = |column: usize| object["columns"][column]["rows"][0]["classes"].as_array().unwrap().len();
    assert_eq!((classes(1), classes(2)), (1, 0), "5.10 had ipi.call, 6.1 nothing");
    assert_eq!(object["changes"][0]["direction"], "gone");
}
