//! The matrix for a terminal: a table a way of isolating, stressors by kernels; what changed; in
//! what the kernels differ.

use super::{KINDS, Matrix, change, field, idle, mark, warning};
use crate::text::TextOptions;
use crate::text::layout::{Page, Paint};
use analysis::exposure::Row;

/// Changes of one kind that are printed; the rest is in the files.
const SHOWN: usize = 12;

/// The page, newline at the end.
pub fn matrix_text(matrix: &Matrix, options: TextOptions) -> String {
    let mut page = Page::new(options);
    page.painted(
        Paint::Bold,
        "",
        "exposure of kernels: interference events per operation, the classes that were seen together",
    );
    for (name, value) in &matrix.conditions {
        page.item(&format!("  {name}: "), value);
    }
    for (profile, title) in &matrix.profiles {
        table(&mut page, matrix, profile, title);
    }
    page.item("", "<= was not seen: the upper 95 % bound of all classes; - has no result; absent and void: see matrix.html");
    if matrix.columns.iter().flat_map(|column| &column.rows).any(Row::is_weak) {
        page.item("", "* is weak: less than half of the operations asked for; how many: matrix.md");
    }
    page.heading("while nothing is done: events a second on a measured CPU");
    for column in matrix.columns.iter().filter(|column| column.absent.is_none()) {
        page.item(&format!("  {} {}: ", column.kernel, column.profile), &idle(column));
    }
    changes(&mut page, matrix);
    differences(&mut page, matrix);
    page.heading("files");
    let files = format!(
        "{}/matrix.html, matrix.json, matrix.md; a file a cell in cells/, guests in guests/",
        matrix.dir
    );
    page.item("  ", &files);
    page.finish()
}

fn table(page: &mut Page, matrix: &Matrix, profile: &str, title: &str) {
    let columns: Vec<_> = matrix.of_profile(profile).collect();
    if columns.is_empty() {
        return;
    }
    page.heading(&format!("{profile}: {title}"));
    let head: Vec<&str> =
        ["stressor"].into_iter().chain(columns.iter().map(|column| column.kernel.as_str())).collect();
    let row = |stressor: &&str| {
        let fields = columns.iter().map(|column| field(column, stressor).text() + mark(column, stressor));
        [(*stressor).to_owned()].into_iter().chain(fields).collect::<Vec<_>>()
    };
    page.table(1, &head, &matrix.stressors().iter().map(row).collect::<Vec<_>>());
    for column in columns {
        let first = format!("  {}: ", column.kernel);
        if let Some(reason) = warning(column) {
            page.painted(if column.void { Paint::Red } else { Paint::Yellow }, &first, &reason);
        }
    }
}

fn changes(page: &mut Page, matrix: &Matrix) {
    page.heading("from a kernel to the next of its flavour: intervals without a common point");
    if matrix.changes.is_empty() {
        return page.item("  ", "nothing that is more than chance");
    }
    for (direction, title) in KINDS {
        let ours: Vec<_> = matrix.changes.iter().filter(|one| one.direction == direction).collect();
        if ours.is_empty() {
            continue;
        }
        page.painted(Paint::Bold, "  ", title);
        ours.iter().take(SHOWN).for_each(|one| page.item("    ", &change(one)));
        if ours.len() > SHOWN {
            page.item("    ", &format!("and {} more: matrix.html", ours.len() - SHOWN));
        }
    }
}

fn differences(page: &mut Page, matrix: &Matrix) {
    page.heading("configuration that differs between these kernels");
    if matrix.options.is_empty() {
        return page.item("  ", "none of the options that bear on isolation, or they are not known");
    }
    let names: Vec<&str> = matrix.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    let head: Vec<&str> = ["option"].into_iter().chain(names.iter().copied()).collect();
    let row = |one: &model::kernel_options::OptionDifference| {
        let option = one.option.trim_start_matches("CONFIG_").to_owned();
        let values =
            names.iter().map(|name| one.values.get(*name).map_or_else(|| "?".to_owned(), Clone::clone));
        [option].into_iter().chain(values).collect::<Vec<_>>()
    };
    page.table(1, &head, &matrix.options.iter().map(row).collect::<Vec<_>>());
}
