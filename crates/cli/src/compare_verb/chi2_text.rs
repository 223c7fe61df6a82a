//! The result of the published chi-square selection, and how far to trust it.

use super::Selected;
use super::text::{exchanged, folded};
use crate::measure::table::table;
use analysis::groups::chi2::Test;
use report::format;

/// Empty without `--method chi2`.
pub(super) fn page(selected: &[Selected]) -> String {
    let Some(first) = selected.first() else { return String::new() };
    let mut text = folded(
        "Chi-square selection as published (Delgado & Choi, IEEE Access 8, 2020, section IV): bins of 1 us over the reference's range, \
         both ends folded in, as many degrees of freedom as bins, upper tail at 5 % (the text says lower).",
    );
    text.push('\n');
    let row = |one: &Selected| {
        let test = &one.chi2.test;
        vec![
            one.name.clone(),
            test.bins.to_string(),
            format!("{:.3}", test.critical),
            statistic(test.statistic),
            if test.rejected { "yes" } else { "no" }.to_owned(),
            statistic(test.per_100),
            if test.rejected_per_100 { "yes" } else { "no" }.to_owned(),
            test.in_empty.to_string(),
        ]
    };
    let head = ["group", "bins", "critical", "raw", "rejected", "per 100", "rejected", "in empty bins"];
    text.push_str(&table(&head, selected.iter().map(row).collect()));
    text.push('\n');
    let accepted = selected.iter().filter(|one| !one.chi2.test.rejected);
    let by_statistic = |a: &&Selected, b: &&Selected| a.chi2.test.statistic.total_cmp(&b.chi2.test.statistic);
    text.push_str(&folded(&match accepted.min_by(by_statistic) {
        Some(best) => format!("By raw counts it selects {}.", best.name),
        None => "By raw counts it rejects every group, and selects none.".to_owned(),
    }));
    text.push_str("\nWhy that can mislead:\n");
    if let Some(itself) = &first.chi2.itself {
        text.push_str(&folded(&format!(
            "- the reference against its own other half: {}",
            against_itself(itself)
        )));
    }
    for one in selected {
        text.push_str(&folded(&format!("- {}: {}", one.name, said(one))));
    }
    text.push_str(&folded("- it knows no direction: a lower latency is as wrong as a higher one. The verdicts above are by whole runs."));
    text
}

fn against_itself(test: &Test) -> String {
    let verdict = if test.rejected {
        "rejected: one configuration differs from itself, so the test says nothing here"
    } else {
        "not rejected"
    };
    format!("raw statistic {} with {:.3} critical, {verdict}", statistic(test.statistic), test.critical)
}

fn said(one: &Selected) -> String {
    let test = &one.chi2.test;
    let mut said = vec![match test.rejected_from_n {
        Some(n) => format!(
            "the same shares are rejected from {} samples on and accepted below; there are {}",
            format::count(n.ceil().min(1e18) as u64),
            format::count(test.n[1])
        ),
        None => "its shares are exactly those of the reference".to_owned(),
    }];
    if test.empty_bins > 0 {
        said.push(format!(
            "{} bins of the reference are empty and have no term, {} samples in them are nowhere",
            test.empty_bins, test.in_empty
        ));
    }
    if test.folded != [0, 0] {
        said.push(format!(
            "samples folded into the first bin: {}, into the last: {}",
            test.folded[0], test.folded[1]
        ));
    }
    if let Some(qq) = &one.chi2.qq {
        let fit = qq.r_squared.map(|r| format!(", R2 {r:.4}")).unwrap_or_default();
        let intercept = format::ns_f(qq.intercept_ns);
        said.push(format!("Q-Q line: slope {:.4}, intercept {intercept}{fit}", qq.slope));
    }
    said.join("; ") + &exchanged(one.chi2.exchanged)
}

fn statistic(value: f64) -> String {
    if value >= 1e6 { format!("{value:.3e}") } else { format!("{value:.2}") }
}
