//! What the verbs print at their end: a table of threads, the conditions, the accounts; or one JSON
//! object.

use super::carry_out::Outcome;
use crate::folded::folded;
use crate::{disturb_verb, terminal};
use analysis::distribution::Distribution;
use comfy_table::{CellAlignment, ContentArrangement, ContentLineStyle, LineStyle, Table, TableStyle};
use model::run::ProbeRecord;
use model::stressor::{StressorRecord, StressorState};
use report::{fit, format};
use serde_json::{Value, json};
use std::fmt::Write;

const STYLE: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('-').junction(' '))
    .content_lines(ContentLineStyle::none().junction(' '));

/// Rows right-aligned under their headings. Where the terminal is too narrow, the columns come in
/// blocks that fit, the first column in each.
pub(crate) fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    match terminal::columns() {
        Some(columns) => blocks(head, &rows, usize::from(columns)),
        None => block(head, rows),
    }
}

fn blocks(head: &[&str], rows: &[Vec<String>], room: usize) -> String {
    let of_rows = rows.iter().map(|row| row.iter().map(String::as_str).collect());
    let widths = fit::widths(std::iter::once(head.to_vec()).chain(of_rows));
    let blocks = fit::blocks(&widths, 1, room).into_iter().map(|columns| {
        let head: Vec<&str> = columns.iter().filter_map(|at| head.get(*at).copied()).collect();
        let cells = |row: &Vec<String>| columns.iter().filter_map(|at| row.get(*at).cloned()).collect();
        block(&head, rows.iter().map(cells).collect())
    });
    blocks.collect::<Vec<_>>().join("\n")
}

fn block(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(head.to_vec());
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string().lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
}

/// A time, or a dash where there is none.
pub(super) fn time(ns: Option<i64>) -> String {
    ns.map_or_else(|| "-".to_owned(), format::ns)
}

/// The quantile of this probability.
pub(super) fn quantile(quantiles: &[stats::sampled::Quantile], p: f64) -> Option<i64> {
    quantiles.iter().find(|quantile| (quantile.p - p).abs() < 1e-9)?.value_ns
}

/// Every probe record with the statistics of its samples: both lists are in the order of the
/// threads.
pub(super) fn threads(outcome: &Outcome) -> impl Iterator<Item = (&ProbeRecord, &Distribution)> {
    outcome.document.run.probes.iter().zip(&outcome.document.analysis.distributions)
}

/// What stressors did less than was asked of them.
pub(super) fn weak(stressors: &[StressorRecord]) -> Vec<String> {
    let line = |record: &StressorRecord| match record.state {
        StressorState::Void | StressorState::Stuck => Some(format!(
            "void: {} did not disturb, so these figures are not those of a CPU under it",
            record.name
        )),
        StressorState::Weak => Some(format!(
            "weak: {} did {} of {} operations asked for: these figures are those of a weaker load",
            record.name,
            format::count(record.ops_ok),
            format::count(record.ops_asked.unwrap_or_default()),
        )),
        _ => None,
    };
    stressors.iter().filter_map(line).collect()
}

/// Losses, limits, what interrupted it, where it is.
pub(super) fn ending(outcome: &Outcome) -> String {
    let run = &outcome.document.run;
    let mut text = String::new();
    if !run.stressors.is_empty() {
        let _ = writeln!(text, "\nmeanwhile\n{}", disturb_verb::text::stressors(&run.stressors));
    }
    for line in weak(&run.stressors) {
        let _ = writeln!(text, "{line}");
    }
    let faults: u64 = run.probes.iter().map(|probe| probe.faults.minor + probe.faults.major).sum();
    let rss = run.probes.iter().map(|probe| probe.rss_kib).max().unwrap_or(0);
    let accounts = format!(
        "samples lost: {}; page faults of the measuring threads: {faults}; their memory: {} at most",
        run.losses.ring_samples,
        format::kib(rss)
    );
    text += &folded(&accounts, "  ");
    // Why it stopped stands at the top.
    let stopped = run.stopped_at.as_ref().map(report::stopped::limit);
    for limit in run.limits.iter().filter(|limit| Some(*limit) != stopped.as_ref()) {
        text += &folded(&format!("note: {limit}"), "  ");
    }
    if run.trace.is_some() && outcome.document.analysis.overheads.is_empty() {
        let cost = run.observer.trace_event_ns.map(|ns| format!(" of {} each", format::ns_f(ns)));
        let cost = cost.unwrap_or_default();
        let _ = writeln!(
            text,
            "events{cost} were recorded; who caused what: stillcore trace explain {}",
            outcome.dir.display()
        );
    }
    if let Some(signal) = outcome.interrupted {
        let _ = writeln!(text, "interrupted by {signal}: the figures are of the part that was measured");
    } else if let Some(reason) = &run.incomplete_reason {
        let _ = writeln!(text, "not complete: {reason}");
    }
    let _ = writeln!(text, "run directory {}", outcome.dir.display());
    text
}

/// What a measurement found, by the report's own tables, and the ending.
pub(crate) fn found(outcome: &Outcome) -> String {
    let options = crate::terminal::plain_options();
    let mut boxes = report::verdict_text(&outcome.document, options);
    if !boxes.is_empty() {
        boxes = format!("\n{boxes}\n");
    }
    if let Some(at) = &outcome.document.run.stopped_at {
        boxes = format!("\n{}{boxes}", folded(&report::stopped::limit(at), "  "));
    }
    let not_reached =
        outcome.stop_over_ns.and_then(|limit_ns| report::stopped::not_reached(&outcome.document, limit_ns));
    if let Some(line) = not_reached {
        boxes = format!("\n{}{boxes}", folded(&line, "  "));
    }
    boxes + &report::measured(&outcome.document, options) + &ending(outcome)
}

/// The JSON object that every verb gives.
pub(super) fn json(outcome: &Outcome, schema: &str) -> Value {
    let threads: Vec<_> =
        threads(outcome).map(|(record, figures)| json!({ "record": record, "figures": figures })).collect();
    let run = &outcome.document.run;
    json!({
        "schema": schema,
        "run": outcome.dir,
        "verdicts": report::verdicts(&outcome.document),
        "complete": run.complete,
        "incomplete_reason": run.incomplete_reason,
        "interrupted": outcome.interrupted,
        "stopped_at": run.stopped_at,
        "threads": threads,
        "losses": run.losses,
        "observer": run.observer,
        "limits": run.limits,
        "stressors": run.stressors,
        "trace": run.trace,
        "snapshots": outcome.document.analysis.snapshots,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_gets_whole_numbers() {
        let head = ["T", "p50", "p99", "observed max"];
        let rows =
            vec![vec!["0".to_owned(), "4.210 us".to_owned(), "62.53 us".to_owned(), "50.14 us".to_owned()]];
        assert_eq!(blocks(&head, &rows, 80), block(&head, rows.clone()));
        let narrow = blocks(&head, &rows, 24);
        assert!(narrow.lines().all(|line| line.len() <= 24), "{narrow}");
        assert!(
            ["4.210 us", "62.53 us", "50.14 us"].iter().all(|number| narrow.contains(number)),
            "{narrow}"
        );
        assert_eq!(narrow.lines().filter(|line| line.starts_with('0')).count(), 2, "{narrow}");
    }
}
