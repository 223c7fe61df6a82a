//! A small study, looked at in every form.

use super::*;
use crate::fixture;
use crate::text::TextOptions;
use analysis::exposure::{CellFacts, Expectation, RowState, conclude};
use model::stressor::StressorState;
use std::collections::BTreeSet;

#[test]
fn figures_have_the_digits_that_mean_something() {
    let texts = [0.0, 3.0, 2.9996, 0.012_345, 12.345, 1234.6, 0.000_045, -0.25].map(per_operation);
    assert_eq!(texts, ["0", "3", "3", "0.0123", "12.3", "1235", "4.5e-5", "-0.25"]);
    assert_eq!([0.001_01, 3.0, 2.01, 0.03].map(at_most), ["0.0011", "3", "2.1", "0.03"]);
    assert_eq!(at_most(f64::INFINITY), "unknown");
}

/// The fixture's, with texts that would be marks in a page.
fn cell(name: &str, operations: u64, state: StressorState, events: &[(EventClass, u64)]) -> CellFacts {
    let mut cell = fixture::pages::cell(name, operations, state, events);
    cell.void = cell.void.map(|_| format!("why {name} & co. say nothing"));
    cell.observable = BTreeSet::from([EventClass::IpiCall, EventClass::Tlb]);
    cell.sources[0].who = Some("<script>".to_owned());
    cell.changed = vec!["mechanism schedstats: \"0\" before, \"1\" after".to_owned()];
    cell
}

fn study() -> ExposureStudy {
    let cells = [
        cell("tlb_span", 2000, StressorState::Ok, &[(EventClass::Tlb, 4000)]),
        cell("calc_pi", 500, StressorState::Ok, &[]),
        cell("schedstats", 40, StressorState::Ok, &[(EventClass::IpiCall, 120)]),
        cell("sock", 0, StressorState::Void, &[]),
        cell("wireguard", 0, StressorState::Absent, &[]),
    ];
    let expected = [("tlb_span", true), ("calc_pi", false)]
        .map(|(name, seen)| Expectation { stressor: name.to_owned(), seen });
    ExposureStudy {
        title: "exposure".to_owned(),
        dir: "out".to_owned(),
        conditions: vec![("kernel".to_owned(), "6.1.0 ".repeat(40))],
        machine: Some(fixture::document().machine.machine),
        exposure: conclude(&cells, &expected),
    }
}

#[test]
fn the_terminal_has_every_row_within_its_width() {
    let study = study();
    let text = exposure_text(&study, TextOptions::default());
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    for phrase in [
        "the controls are as expected",
        "ipi.call 3 ",
        "do_sync_core: <script> in on_each_cpu_cond_mask, 120 events",
        "sock: why sock & co. say nothing",
        "wireguard: why wireguard & co. say nothing",
        "contaminated",
        "EINVAL 7",
    ] {
        assert!(
            text.split_whitespace().collect::<Vec<_>>().join(" ").contains(phrase.trim()),
            "{phrase}: {text}"
        );
    }
    let unseen = text.lines().find(|line| line.starts_with("calc_pi ")).unwrap();
    assert!(unseen.ends_with("0.006"), "3 in 500: {unseen}");
}

#[test]
fn less_than_half_of_what_was_asked_for_is_said_in_every_form() {
    let mut study = study();
    study.exposure.rows[0].asked = Some(40_000);
    study.exposure.rows[1].asked = Some(1000);
    let text = exposure_text(&study, TextOptions::default());
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("2,000 of 40,000 (weak)"), "{text}");
    assert_eq!(words.matches("(weak)").count(), 2, "in its row, and among what weakens it: {text}");
    assert!(crate::exposure_page(&study).unwrap().contains("2,000 of 40,000 (weak)"));
    assert_eq!(study.json()["rows"][0]["asked"], 40_000);
    let line = exposure_line(&study.exposure.rows[0]);
    assert_eq!(line, "tlb_span: tlb 2.000 events per operation, 2,000 of 40,000 (weak) operations");
}

#[test]
fn a_line_says_what_a_row_is() {
    let lines: Vec<String> = study().exposure.rows.iter().map(exposure_line).collect();
    assert_eq!(lines[0], "tlb_span: tlb 2.000 events per operation, 2,000 operations");
    assert_eq!(lines[1], "calc_pi: not seen, at most 0.006 events per operation, 500 operations");
    assert_eq!(lines[3], "sock: void: why sock & co. say nothing");
    assert_eq!(lines[4], "wireguard: absent: why wireguard & co. say nothing");
}

#[test]
fn the_page_has_a_colour_a_figure_and_the_void_in_words() {
    let page = crate::exposure_page(&study()).unwrap();
    assert!(page.contains("Controls hold") && !page.contains("<script"), "{page}");
    // 3 an operation is the fifth step of six, 2 the fourth; 3/40 is no colour but a bound.
    for mark in ["class=\"h5\"", "class=\"h4\"", "class=\"u\"", "\u{2264}\u{a0}0.075", "why sock &amp; co."] {
        assert!(page.contains(mark), "{mark}: {page}");
    }
    let mut left_out = study();
    left_out.exposure.unsteady = vec![EventClass::Softirq];
    assert!(crate::exposure_page(&left_out).unwrap().contains("<p class=\"word\">Some classes left out</p>"));
    let mut void = study();
    void.exposure.void = true;
    assert!(crate::exposure_page(&void).unwrap().contains("<p class=\"word\">Void</p>"));
}

fn opening_of(study: &ExposureStudy) -> String {
    let page = crate::exposure_page(study).unwrap();
    crate::html::assert_balanced(&page);
    let opening = page.split("class=\"opening\"").nth(1).unwrap().split("</section>").next().unwrap();
    opening.replace('\u{a0}', " ")
}

#[test]
fn the_page_opens_with_the_dearest_operation_and_what_removes_its_class() {
    let mut study = fixture::pages::exposure();
    let opening = opening_of(&study);
    for part in [
        "4 of 6 operations cause interference; the dearest is mmap_fork: 3.18 events per operation, most of them tlb.",
        "Without a value: 1 void (sock); 1 absent here (wireguard).",
        "Not seen: 2 operations, at most 0.006 each.",
        "mmap_fork: tlb",
        "<span>explain</span> <span>tlb</span>",
    ] {
        assert!(opening.contains(part), "{part}: {opening}");
    }
    // Six classes of four operations, on a desk and in a hand.
    assert_eq!((opening.matches("<circle").count(), opening.matches("<svg").count()), (12, 2));
    study.exposure.void = true;
    let opening = opening_of(&study);
    assert!(opening.contains("these counts say nothing") && !opening.contains("<svg"), "{opening}");
    study.exposure.rows.clear();
    study.exposure.void = false;
    assert!(opening_of(&study).contains("No operation was measured."));
}

#[test]
fn a_page_without_weak_rows_says_so() {
    let nothing = "Nothing: every row has figures";
    assert!(!crate::exposure_page(&study()).unwrap().contains(nothing));
    let mut strong = study();
    strong.exposure.rows.retain(|row| row.state == RowState::Ok);
    for row in &mut strong.exposure.rows {
        row.contaminated.clear();
        row.failed.clear();
        row.limits.clear();
        row.idle_apart.clear();
        row.left_out.clear();
    }
    assert!(crate::exposure_page(&strong).unwrap().contains(nothing));
}

#[test]
fn the_object_can_be_read_back() {
    let object = study().json();
    assert_eq!(object["schema"], SCHEMA);
    let rows: Vec<Row> = serde_json::from_value(object["rows"].clone()).unwrap();
    assert_eq!(rows, study().exposure.rows);
}

#[test]
fn a_machine_that_is_not_known_is_not_described() {
    let study = ExposureStudy { machine: None, ..study() };
    assert_eq!(study.json()["machine"], serde_json::Value::Null);
    let page = crate::exposure_page(&study).unwrap();
    assert!(page.contains("<p class=\"sub\">study exposure</p>"), "{page}");
}
