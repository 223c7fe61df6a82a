//! The exposure table for a terminal: what was seen, with interval and sources; what was not, with
//! its bound; what says nothing, and why.

use super::{ExposureStudy, at_most, figure, interval, operations, source, weak};
use crate::format;
use crate::text::TextOptions;
use crate::text::layout::{Page, Paint};
use analysis::exposure::{Row, RowState};

/// One row in a line.
pub fn exposure_line(row: &Row) -> String {
    let name = &row.stressor;
    let reason = row.reason.as_deref().unwrap_or("no reason is known");
    match (row.state, &row.all) {
        (RowState::Ok, Some(all)) => {
            let operations = if row.is_weak() {
                format!("{} operations", operations(row))
            } else {
                format::plural(row.operations, "operation")
            };
            let classes: Vec<String> = seen_classes(row).collect();
            if all.seen {
                return format!("{name}: {} events per operation, {operations}", classes.join(", "));
            }
            format!("{name}: not seen, at most {} events per operation, {operations}", at_most(all.high))
        }
        (RowState::Absent, _) => format!("{name}: absent: {reason}"),
        _ => format!("{name}: void: {reason}"),
    }
}

/// Each class that was seen, with its value.
fn seen_classes(row: &Row) -> impl Iterator<Item = String> {
    let seen = row.classes.iter().filter(|one| one.coefficient.seen);
    seen.map(|one| format!("{} {}", one.class, figure(&one.coefficient)))
}

/// The page, newline at the end.
pub fn exposure_text(study: &ExposureStudy, options: TextOptions) -> String {
    let mut page = Page::new(options);
    let exposure = &study.exposure;
    page.painted(Paint::Bold, "", &format!("exposure: interference events per operation ({})", study.title));
    for (name, value) in &study.conditions {
        page.item(&format!("  {name}: "), value);
    }
    page.heading("verdict");
    let paint = if exposure.void { Paint::Red } else { Paint::Green };
    exposure.verdict.iter().for_each(|sentence| page.painted(paint, "  ", sentence));
    let of = |state: RowState| exposure.rows.iter().filter(move |row| row.state == state);
    let is_seen = |row: &&Row| row.all.is_some_and(|all| all.seen);
    let (seen, unseen): (Vec<&Row>, Vec<&Row>) = of(RowState::Ok).partition(is_seen);
    seen_table(&mut page, &seen);
    unseen_table(&mut page, &unseen);
    let weakened: Vec<(&Row, String)> =
        of(RowState::Ok).flat_map(|row| weak(row).into_iter().map(move |why| (row, why))).collect();
    if of(RowState::Ok).next().is_some() {
        page.heading("what weakens a row");
    }
    if weakened.is_empty() && of(RowState::Ok).next().is_some() {
        page.item("  ", "nothing: no cell left the machine changed, and all idle controls agree");
    }
    weakened.iter().for_each(|(row, why)| page.item(&format!("  {}: ", row.stressor), why));
    for (state, title) in [
        (RowState::Void, "void: what was counted says nothing"),
        (RowState::Absent, "absent: this machine lacks it"),
    ] {
        if of(state).next().is_some() {
            page.heading(title);
        }
        for row in of(state) {
            page.item(
                &format!("  {}: ", row.stressor),
                row.reason.as_deref().unwrap_or("no reason is known"),
            );
        }
    }
    page.heading("files");
    page.item("  ", &format!("{}/exposure.html, exposure.json; a file a cell in cells/", study.dir));
    page.finish()
}

fn seen_table(page: &mut Page, rows: &[&Row]) {
    page.heading("seen on the measured CPUs: events per operation on each, background subtracted");
    if rows.is_empty() {
        return page.item("  ", "no stressor was seen");
    }
    let cells = |row: &&Row| {
        let classes: Vec<_> = seen_classes(row).collect();
        let (value, limits) = row.all.map_or_else(Default::default, |all| (figure(&all), interval(&all)));
        vec![row.stressor.clone(), classes.join(", "), operations(row), value, limits]
    };
    page.table(
        2,
        &["stressor", "by class", "operations", "all", "95 %"],
        &rows.iter().map(cells).collect::<Vec<_>>(),
    );
    page.heading("who caused most events (the background's are among them)");
    for row in rows {
        let first = format!("  {}: ", row.stressor);
        page.item(&first, &row.sources.iter().map(source).collect::<Vec<_>>().join("; "));
    }
}

fn unseen_table(page: &mut Page, rows: &[&Row]) {
    if rows.is_empty() {
        return;
    }
    page.heading("not seen: at most so many events per operation");
    let cells = |row: &&Row| {
        let (events, background, high) = row.all.map_or_else(Default::default, |all| {
            (format::count(all.events), format!("{:.1}", all.background), at_most(all.high))
        });
        vec![row.stressor.clone(), operations(row), events, background, high]
    };
    let head = ["stressor", "operations", "events", "background", "95 % bound"];
    page.table(1, &head, &rows.iter().map(cells).collect::<Vec<_>>());
}
