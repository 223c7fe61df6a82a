//! Numbers and rows as people read them: on the terminal and in Markdown tables.

use crate::row::{Budget, Limit, Of, Ratio, Row, Verdict};
use crate::stored::Stored;

/// The columns of a table, by the names that pages use.
pub const COLUMNS: [&str; 9] =
    ["what", "value", "interval", "n", "peer", "ratio", "budget", "verdict", "why"];

/// A number with as many digits as a reader needs: whole ones and those from 1000 on in full with
/// separators, others with three significant digits.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value.fract() == 0.0 && size < 1e15 {
        return fixed(value, 0);
    }
    let decimals = match size {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        _ if size == 0.0 => 0,
        _ => ((2.0 - size.log10().floor()) as usize).min(9),
    };
    fixed(value, decimals)
}

/// A number with this many decimals, thousands separated by commas.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    // A zero that was rounded to has no sign.
    if value < 0.0 && text.contains(|c: char| matches!(c, '1'..='9')) {
        out.push('-');
    }
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

/// A ratio with its interval; without one, no more digits than of any number.
pub fn ratio(ratio: &Ratio) -> String {
    let (Some(low), Some(high)) = (ratio.low, ratio.high) else { return number(ratio.median) };
    let decimals = match ratio.median.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 3,
    };
    let [middle, low, high] = [ratio.median, low, high].map(|value| fixed(value, decimals));
    format!("{middle} ({low} to {high})")
}

/// A requirement.
pub fn budget(budget: &Budget, unit: &str) -> String {
    let (sign, limit) = match budget.limit {
        Limit::AtMost(limit) => ("≤", limit),
        Limit::AtLeast(limit) => ("≥", limit),
    };
    match budget.of {
        Of::Value => format!("{sign} {}", with_unit(limit, unit)),
        Of::Ratio => format!("ratio {sign} {}", number(limit)),
    }
}

/// The verdict in words.
pub fn verdict(row: &Row) -> &'static str {
    match row.verdict {
        Verdict::Met => "met",
        Verdict::Missed => "missed",
        Verdict::None if row.budget.is_some() => "cannot tell",
        Verdict::None => "",
    }
}

fn with_unit(value: f64, unit: &str) -> String {
    format!("{} {unit}", number(value)).trim_end().to_owned()
}

/// The interval of the value.
pub fn interval(row: &Row) -> String {
    match (row.low, row.high) {
        (Some(low), Some(high)) => format!("{} to {}", number(low), number(high)),
        (Some(low), None) => format!("at least {}", number(low)),
        (None, Some(high)) => format!("at most {}", number(high)),
        (None, None) => String::new(),
    }
}

/// What a row shows in a column of [`COLUMNS`]; empty where it has nothing to show, `None` for a
/// column that does not exist.
pub fn cell(row: &Row, column: &str) -> Option<String> {
    Some(match column {
        "what" => row.what.clone(),
        "value" => row.value.map_or_else(|| "–".to_owned(), |value| with_unit(value, &row.unit)),
        "interval" => interval(row),
        "n" => row.n.map(|n| fixed(n as f64, 0)).unwrap_or_default(),
        "peer" => match &row.peer {
            Some(peer) => match peer.value {
                Some(value) => format!("{}: {}", peer.name, with_unit(value, &row.unit)),
                None => peer.name.clone(),
            },
            None => String::new(),
        },
        "ratio" => row.ratio.as_ref().map(ratio).unwrap_or_default(),
        "budget" => row.budget.as_ref().map(|one| budget(one, &row.unit)).unwrap_or_default(),
        "verdict" => verdict(row).to_owned(),
        "why" => row.why.clone().unwrap_or_default(),
        _ => return None,
    })
}

/// Columns in which at least one of the rows shows something.
pub fn used_columns(rows: &[&Row]) -> Vec<&'static str> {
    let used = |column: &&str| rows.iter().any(|row| cell(row, column).is_some_and(|text| !text.is_empty()));
    COLUMNS.into_iter().filter(|column| *column == "value" || used(column)).collect()
}

/// Rows as an aligned table for the terminal, conditions above.
pub fn table(notes: &[String], rows: &[Row]) -> String {
    let rows: Vec<&Row> = rows.iter().collect();
    let columns = used_columns(&rows);
    let mut lines = vec![columns.iter().map(|column| (*column).to_owned()).collect::<Vec<_>>()];
    lines.extend(rows.iter().map(|row| columns.iter().map(|c| cell(row, c).unwrap_or_default()).collect()));
    let width = |at: usize| lines.iter().map(|line| line[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = notes.join("\n");
    if !notes.is_empty() {
        text.push('\n');
    }
    for line in &lines {
        let padded: Vec<String> = line
            .iter()
            .zip(&columns)
            .zip(&widths)
            .map(|((cell, column), width)| {
                if matches!(*column, "value" | "n") {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            })
            .collect();
        text.push_str(padded.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// A whole result for the terminal, and how many budgets it meets.
pub fn result(stored: &Stored) -> String {
    let of = |verdict: Verdict| stored.rows.iter().filter(|row| row.verdict == verdict).count();
    let open = stored.rows.iter().filter(|row| row.verdict == Verdict::None && row.budget.is_some()).count();
    let program = stored
        .binary_sha256
        .as_deref()
        .map_or(String::new(), |sum| format!(", sha256 {}", &sum[..sum.len().min(12)]));
    format!(
        "{}, {}, commit {}, profile {}{program}\n{}\n{}{} rows; budgets: {} met, {} missed, {open} undecided\n",
        stored.name,
        stored.started,
        stored.commit,
        stored.profile,
        stored.machine,
        table(&stored.notes, &stored.rows),
        stored.rows.len(),
        of(Verdict::Met),
        of(Verdict::Missed),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::ratio_of_rounds;

    #[test]
    fn numbers_have_the_digits_that_they_mean() {
        for (value, text) in [
            (0.0, "0"),
            (3540.0, "3,540"),
            (98_745_852.4, "98,745,852"),
            (13.39, "13.4"),
            (2.1984, "2.20"),
            (0.9394, "0.939"),
            (0.000_170_4, "0.000170"),
            (-1234.5, "-1,234"),
            (763.4, "763"),
        ] {
            assert_eq!(number(value), text);
        }
        assert_eq!(ratio(&Ratio { median: 3.98, low: None, high: None }), "3.98");
        assert_eq!(
            ratio(&Ratio { median: 15.31, low: Some(15.0), high: Some(16.26) }),
            "15.3 (15.0 to 16.3)"
        );
        assert_eq!(fixed(-0.04, 1), "0.0");
        assert_eq!(fixed(1_234_567.891, 2), "1,234,567.89");
    }

    #[test]
    fn a_table_shows_only_columns_that_are_used() {
        let rows = [
            Row::new("noise loop", 98.7, "M per s")
                .beside("oslat", 45.0)
                .ratio(ratio_of_rounds(&[2.2; 8], &[1.0; 8]))
                .budget(Of::Ratio, Limit::AtLeast(2.0)),
            Row::new("gaps", 12.0, ""),
        ];
        let text = table(&["CPU 2".into()], &rows);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "CPU 2");
        assert_eq!(
            lines[1].split_whitespace().collect::<Vec<_>>(),
            ["what", "value", "peer", "ratio", "budget", "verdict"]
        );
        let wanted = "noise loop  98.7 M per s  oslat: 45 M per s  2.200 (2.200 to 2.200)  ratio ≥ 2  met";
        assert_eq!(lines[2], wanted);
        assert_eq!(lines[3], "gaps                  12");
        assert_eq!(cell(&rows[0], "nothing"), None);
    }

    #[test]
    fn an_interval_that_contains_the_limit_is_shown_as_undecided() {
        let row = Row::new("latency", 1.0, "").between(0.9, 1.1).budget(Of::Value, Limit::AtMost(1.0));
        assert_eq!(verdict(&row), "cannot tell");
        assert_eq!(verdict(&Row::new("latency", 1.0, "")), "");
    }
}
