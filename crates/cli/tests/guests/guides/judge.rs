//! Counts as rows of a result: a cell per command and kernel, and the sums of each kernel.

use super::{Boot, Count, Guide, Seen, Table, Typed};
use result::effect::Effect;
use result::{Limit, Of, Row};
use std::sync::Once;

/// The contents of a cell.
struct Cell {
    text: String,
    effect: Option<Effect>,
}

/// Two counts and the word for them, or why there is none.
fn cell(before: &Count, after: &Count) -> Cell {
    match (before, after) {
        (Ok(before), Ok(after)) => {
            let effect = Effect::of_counts(*before, *after);
            Cell { text: format!("{}: {before} → {after}", effect.word()), effect: Some(effect) }
        }
        (Err(why), _) | (_, Err(why)) => Cell { text: format!("not countable here: {why}"), effect: None },
    }
}

/// The answer of the shell, if there was one.
fn answer(typed: &Typed) -> Option<String> {
    let why = if typed.first.is_empty() { "no message" } else { &typed.first };
    match (typed.code, typed.complaints) {
        (0, 0) => None,
        (_, 0 | 1) => Some(format!("refused ({why})")),
        (_, lines) => Some(format!("{lines} refused ({why})")),
    }
}

fn of(row: &Guide, number: usize, seen: &Seen) -> Cell {
    let Some(with) = row.boot else {
        let typed = &seen.typed[&number];
        let Cell { text, effect } = cell(&typed.before, &typed.after);
        let text = match answer(typed) {
            Some(answer) => format!("{answer}; {text}"),
            None if effect.is_none() => format!("accepted; {text}"),
            None => text,
        };
        return Cell { text, effect };
    };
    cell(&seen.booted[&(number, Boot::Plain)], &seen.booted[&(number, with)])
}

/// Prints the rows of a kernel; rows common to all kernels once.
pub(super) fn print(kernel: &str, table: &Table, seen: &Seen) {
    static SAME: Once = Once::new();
    SAME.call_once(|| same(table).iter().for_each(show));
    let cells: Vec<(&Guide, Cell)> =
        table.row.iter().enumerate().map(|(number, row)| (row, of(row, number, seen))).collect();
    for (row, Cell { text, .. }) in &cells {
        show(&Row::absent(format!("guide: {}: {kernel}", row.name), text));
    }
    let that = |test: &dyn Fn(&Cell) -> bool| cells.iter().filter(|(_, cell)| test(cell)).count() as f64;
    let sum = |what: &str, value: f64| Row::new(format!("sum: {what}: {kernel}"), value, "");
    show(&sum("commands", cells.len() as f64));
    for effect in [Effect::Worked, Effect::InPart, Effect::None, Effect::Opposite, Effect::TooFew] {
        show(&sum(effect.word(), that(&|cell| cell.effect == Some(effect))));
    }
    show(&sum("not countable here", that(&|cell| cell.effect.is_none())));
    let against: Vec<String> =
        cells.iter().filter_map(|(row, cell)| contradiction(kernel, row, cell)).collect();
    let row = sum("counts that contradict the catalogue", against.len() as f64);
    let row = row.budget(Of::Value, Limit::AtMost(0.0));
    show(&if against.is_empty() { row } else { row.why(against.join("; ")) });
    assert!(against.is_empty(), "{kernel}: counts contradict the catalogue:\n{}", against.join("\n"));
}

/// A count that contradicts the catalogue. Too few events contradict nothing.
fn contradiction(kernel: &str, row: &Guide, cell: &Cell) -> Option<String> {
    let wanted = row.catalogue.as_deref()?;
    let effect = cell.effect.filter(|effect| *effect != Effect::TooFew)?;
    let elsewhere = row.not_on.iter().any(|one| one == kernel);
    // A command with the opposite effect has not worked either.
    let is_so = if wanted == "did not work" {
        matches!(effect, Effect::None | Effect::Opposite)
    } else {
        effect.word() == wanted
    };
    (is_so == elsewhere).then(|| format!("{} ({}): {}", row.name, row.mechanism, cell.text))
}

/// The columns that no kernel changes.
fn same(table: &Table) -> Vec<Row> {
    let mut rows = Vec::new();
    for row in &table.row {
        let mut column =
            |head: &str, text: String| rows.push(Row::absent(format!("guide: {}: {head}", row.name), text));
        let typed = row.typed.replace('\n', "; ").replace("do; ", "do ");
        let how = if row.boot.is_some() { "boot line" } else { "typed" };
        column("from", row.from.clone());
        column("command", format!("{how}: `{typed}`"));
        column("said to do", format!("{} ([{id}](mechanisms.md#{id}))", row.claim, id = row.mechanism));
        column("counted", table.counts[&row.count].clone());
        column("why", row.because.clone());
    }
    rows
}

fn show(row: &Row) {
    println!("{}", result::sink::line(row).unwrap());
}
