//! The values of a run as Markdown tables: for an issue, a merge request, a wiki.

use analysis::compare::{Comparison, Verdict};
use analysis::distribution::Distribution;
use std::fmt::Write;

use crate::conditions::conditions;
use crate::distribution::{maximum, quantile};
use crate::matrix::escaped;
use crate::outcome::is_settable;
use crate::pooled::{cost_probe, pooled};
use crate::{Document, class_title, format, heading};

/// Quantiles that have a column.
const LEVELS: [f64; 4] = [0.5, 0.99, 0.999, 0.9999];

/// The whole text.
pub fn markdown(document: &Document) -> String {
    let mut text = format!("## {}\n\n", escaped(&heading::title(&document.run)));
    let status = serde_json::to_value(document.outcome.status).ok();
    let status = status.as_ref().and_then(|status| status.as_str()).unwrap_or_default();
    let _ = writeln!(text, "**{status}**: {}\n", escaped(&document.outcome.reasons.join("; ")));
    samples(document, &mut text);
    events(document, &mut text);
    comparisons(document, &mut text);
    findings(document, &mut text);
    text.push_str("\n### Conditions\n\n");
    for one in conditions(document) {
        let _ = writeln!(text, "- {}: {}", escaped(one.name), escaped(&one.text));
    }
    text
}

/// A table: the first column to the left, all others as `rule` says: `--:` numbers to the right,
/// `---` words to the left.
fn table(text: &mut String, title: &str, rule: &str, head: &[String], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let rule = vec![rule; head.len().saturating_sub(1)].join("|");
    let _ = write!(text, "\n### {title}\n\n{}|---|{rule}|\n", line(head));
    rows.iter().for_each(|row| text.push_str(&line(row)));
}

fn samples(document: &Document, text: &mut String) {
    let fixed = ["window", "CPU", "n", "missed", "lost", "min"].map(str::to_owned);
    let levels = LEVELS.map(format::quantile_name);
    let last = ["observed max", "stolen"].map(str::to_owned);
    let head = [&fixed[..], &levels[..], &last[..]].concat();
    let ns = |value: Option<i64>| value.map_or_else(|| "-".to_owned(), format::ns);
    let row = |one: &Distribution| {
        let mut cells = vec![
            format!("{} {}", one.probe.name(), escaped(&one.phase)),
            one.cpu.to_string(),
            format::count(one.n),
            format::count(one.missed),
            one.ring_lost.map_or_else(|| "not known".to_owned(), format::count),
            ns(one.min_ns),
        ];
        cells.extend(LEVELS.iter().map(|p| ns(quantile(one, *p))));
        cells.push(ns(maximum(one)));
        cells.push(one.stolen.as_ref().map_or_else(|| "-".to_owned(), |stolen| format::share(stolen.share)));
        cells
    };
    let rows: Vec<_> = document.analysis.distributions.iter().map(row).collect();
    table(text, "Samples", "--:", &head, &rows);
}

/// Rates by class and phase, all measured CPUs together.
fn events(document: &Document, text: &mut String) {
    let probe = cost_probe(&document.analysis);
    let phases: Vec<&str> = document.run.phases.iter().map(|phase| phase.name.as_str()).collect();
    let mut rows = Vec::new();
    for &class in model::EventClass::ALL {
        let pools: Vec<_> =
            phases.iter().map(|phase| pooled(&document.analysis, phase, probe, class)).collect();
        if !pools.iter().any(|pool| pool.count > 0) {
            continue;
        }
        let mut cells = vec![format!("{} ({})", escaped(class.name()), class_title(class))];
        cells.extend(pools.iter().map(|pool| {
            match (pool.count, pool.observable) {
                (0, false) => "-".to_owned(),
                (0, true) => pool
                    .zero_bound_per_s()
                    .map_or("0/s".to_owned(), |at| format!("0 (\\< {})", format::rate_up(at))),
                _ => format::rate(pool.per_s()),
            }
        }));
        rows.push(cells);
    }
    let head: Vec<String> = std::iter::once("events per CPU and second".to_owned())
        .chain(phases.iter().map(|phase| escaped(phase)))
        .collect();
    table(text, "Interference", "--:", &head, &rows);
}

fn comparisons(document: &Document, text: &mut String) {
    let differs = |one: &&Comparison| matches!(one.verdict, Verdict::Worse | Verdict::Better);
    let figure = |value: Option<f64>, unit: &str| match (value, unit) {
        (None, _) => "-".to_owned(),
        (Some(value), "ns") => format::ns_f(value),
        (Some(value), "share") => format::share(value),
        (Some(value), _) => format::rate(value),
    };
    let row = |one: &Comparison| {
        let verdict = if one.verdict == Verdict::Worse { "worse" } else { "better" };
        vec![
            escaped(&one.figure),
            one.cpu.to_string(),
            figure(one.idle_before, &one.unit),
            figure(one.disturbed, &one.unit),
            figure(one.idle_after, &one.unit),
            verdict.to_owned(),
        ]
    };
    let rows: Vec<_> = document.analysis.comparisons.iter().filter(differs).map(row).collect();
    let head = ["figure", "CPU", "idle before", "disturbed", "idle after", "verdict"].map(str::to_owned);
    table(text, "Distinguished from idle", "--:", &head, &rows);
}

fn findings(document: &Document, text: &mut String) {
    let settable = document.findings.iter().filter(|finding| is_settable(finding));
    let row = |finding: &model::Finding| {
        let remedy = finding.remedy.as_deref().map_or_else(|| "-".to_owned(), escaped);
        vec![escaped(&finding.title), finding.state.name().to_owned(), remedy]
    };
    let rows: Vec<_> = settable.map(row).collect();
    table(
        text,
        "Not as isolation wants it",
        "---",
        &["mechanism", "state", "remedy"].map(str::to_owned),
        &rows,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    /// Cells of a line, bars that are text left alone.
    fn cells(line: &str) -> usize {
        line.replace("\\|", "").matches('|').count()
    }

    #[test]
    fn every_row_has_the_cells_of_its_head_whatever_names_there_are() {
        let mut document = fixture::document();
        document.analysis.distributions[0].phase = "a|b\n<img src=x>".into();
        document.findings[0].remedy = Some("echo 1 | tee x".into());
        let text = markdown(&document);
        for block in text.split("\n\n").filter(|block| block.starts_with('|')) {
            let widths: Vec<usize> = block.lines().map(cells).collect();
            assert!(widths.windows(2).all(|two| two[0] == two[1]), "{block}");
        }
        assert_eq!(text.matches("\n### ").count(), 5, "{text}");
        assert!(!text.replace("\\<", "").contains("<img"), "{text}");
    }
}
