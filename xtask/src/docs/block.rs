//! A generated table: which rows, which columns, and the line that says how old its numbers are.

use std::collections::BTreeMap;

use result::apart::Group;
use result::{Row, Stored, text};

use super::{Broken, RESULT, no_row, result_of};
use crate::results::Results;

/// What an author may ask for; all optional.
const ATTRIBUTES: [&str; 9] =
    ["rows", "columns", "heads", "strip", "pivot", "cell", "decimals", "apart", "notes"];

/// The lines between the markers. `folder`: of results, as seen from the page.
pub(super) fn render(marker: &str, folder: &str, results: &Results) -> Result<Vec<String>, Broken> {
    let (name, attributes) = parse(marker)?;
    let stored = result_of(results, name)?;
    let rows = select(stored, attributes.get("rows").map_or("*", String::as_str))?;
    let mut lines = match attributes.get("pivot") {
        Some(corner) => pivot(corner, &rows, &attributes)?,
        None => plain(&rows, &attributes)?,
    };
    if attributes.contains_key("notes") {
        lines.push(String::new());
        lines.extend(stored.notes.iter().map(|note| format!("- {}", escape(note))));
    }
    lines.push(String::new());
    lines.push(age(stored, folder));
    Ok(lines)
}

/// When, of which commit and profile, and on what machine the numbers were measured.
fn age(stored: &Stored, folder: &str) -> String {
    format!(
        "Measured {} at {} (profile {}; {}): [{name}.json]({folder}/{name}.json), `{}`.",
        stored.date(),
        stored.commit,
        stored.profile,
        stored.machine,
        stored.command,
        name = stored.name,
    )
}

type Attributes = BTreeMap<String, String>;

/// `<!-- result:NAME key="value" key="value" -->`
fn parse(marker: &str) -> Result<(&str, Attributes), Broken> {
    let wrong =
        || Broken::new("attributes that cannot be read", "`key=\"value\"`, separated by spaces, then `-->`");
    let inside =
        marker.strip_prefix(RESULT).and_then(|rest| rest.trim_end().strip_suffix("-->")).ok_or_else(wrong)?;
    let (name, mut rest) = inside.trim().split_once(' ').unwrap_or((inside.trim(), ""));
    let mut attributes = Attributes::new();
    while !rest.trim().is_empty() {
        let (key, after) = rest.trim_start().split_once("=\"").ok_or_else(wrong)?;
        let (value, after) = after.split_once('"').ok_or_else(wrong)?;
        if !ATTRIBUTES.contains(&key) {
            return Err(Broken::new(
                format!("the attribute `{key}`"),
                format!("one of {}", ATTRIBUTES.join(", ")),
            ));
        }
        attributes.insert(key.to_owned(), value.to_owned());
        rest = after;
    }
    Ok((name, attributes))
}

/// Rows in the order of the patterns; each pattern must match one at least.
fn select<'a>(stored: &'a Stored, patterns: &str) -> Result<Vec<&'a Row>, Broken> {
    let mut chosen: Vec<&Row> = Vec::new();
    for pattern in patterns.split(';').map(str::trim) {
        let before = chosen.len();
        for row in stored.rows.iter().filter(|row| matches(pattern, &row.what)) {
            if !chosen.iter().any(|one| one.what == row.what) {
                chosen.push(row);
            }
        }
        if chosen.len() == before && !stored.rows.iter().any(|row| matches(pattern, &row.what)) {
            return Err(no_row(stored, pattern));
        }
    }
    Ok(chosen)
}

/// Whether a name is that of a pattern, in which `*` stands for any characters.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((head, rest)) => name.strip_prefix(head).is_some_and(|tail| {
            tail.char_indices().map(|(at, _)| at).chain([tail.len()]).any(|at| matches(rest, &tail[at..]))
        }),
    }
}

/// What a cell shows, with the requested decimals where it is a value.
fn cell(row: &Row, column: &str, attributes: &Attributes) -> Result<String, Broken> {
    let known =
        || Broken::new(format!("the column `{column}`"), format!("one of {}", text::COLUMNS.join(", ")));
    let shown = text::cell(row, column).ok_or_else(known)?;
    let Some(decimals) = attributes.get("decimals") else { return Ok(escape(&shown)) };
    let decimals: usize = decimals
        .parse()
        .map_err(|_| Broken::new(format!("decimals=\"{decimals}\""), "a number of digits"))?;
    let fixed = |value: f64| text::fixed(value, decimals);
    Ok(match (column, row.value, row.low, row.high) {
        ("value", Some(value), ..) => format!("{} {}", fixed(value), row.unit).trim_end().to_owned(),
        ("interval", _, Some(low), Some(high)) => format!("{} to {}", fixed(low), fixed(high)),
        _ => escape(&shown),
    })
}

fn plain(rows: &[&Row], attributes: &Attributes) -> Result<Vec<String>, Broken> {
    let columns: Vec<&str> = match attributes.get("columns") {
        Some(asked) => asked.split(',').map(str::trim).collect(),
        None => text::used_columns(rows).into_iter().filter(|column| *column != "why").collect(),
    };
    let heads: Vec<&str> = match attributes.get("heads") {
        Some(asked) => asked.split(';').map(str::trim).collect(),
        None => columns.iter().map(|column| head(column)).collect(),
    };
    if heads.len() != columns.len() {
        return Err(Broken::new(
            format!("{} heads", heads.len()),
            format!("{}, one a column", columns.len()),
        ));
    }
    let strip = attributes.get("strip").map_or("", String::as_str);
    let mut lines =
        vec![line(heads.iter().map(|head| (*head).to_owned())), "|---".repeat(columns.len()) + "|"];
    for row in rows {
        let cells: Result<Vec<String>, Broken> = columns
            .iter()
            .map(|column| match *column {
                "what" => Ok(escape(row.what.strip_prefix(strip).unwrap_or(&row.what))),
                other => cell(row, other, attributes),
            })
            .collect();
        lines.push(line(cells?.into_iter()));
    }
    Ok(lines)
}

/// Rows named `LEFT: TOP` as a table of two dimensions.
fn pivot(corner: &str, rows: &[&Row], attributes: &Attributes) -> Result<Vec<String>, Broken> {
    let column = attributes.get("cell").map_or("value", String::as_str);
    let strip = attributes.get("strip").map_or("", String::as_str);
    // One unit for all stands in the corner, not in every cell.
    let unit = rows.first().map_or("", |row| row.unit.as_str());
    let shared = column == "value" && !unit.is_empty() && rows.iter().all(|row| row.unit == unit);
    let corner = if shared { format!("{corner} ({unit})") } else { corner.to_owned() };
    let (mut lefts, mut tops): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut cells = BTreeMap::new();
    for row in rows {
        let name = row.what.strip_prefix(strip).unwrap_or(&row.what);
        let Some((left, top)) = name.rsplit_once(": ") else {
            return Err(Broken::new(format!("the row `{}` in a pivot", row.what), "a name `LEFT: TOP`"));
        };
        for (list, one) in [(&mut lefts, left), (&mut tops, top)] {
            if !list.contains(&one) {
                list.push(one);
            }
        }
        let mut bare = (*row).clone();
        if shared {
            bare.unit.clear();
        }
        cells.insert((left, top), cell(&bare, column, attributes)?);
    }
    let heads = match attributes.get("heads") {
        Some(asked) => asked.split(';').map(|head| head.trim().to_owned()).collect(),
        None => tops.iter().map(|top| escape(top)).collect::<Vec<_>>(),
    };
    if heads.len() != tops.len() {
        return Err(Broken::new(format!("{} heads", heads.len()), format!("{}, one a column", tops.len())));
    }
    let shown: Vec<String> = heads.clone();
    let mut lines = vec![line(std::iter::once(corner).chain(heads)), "|---".repeat(tops.len() + 1) + "|"];
    for left in &lefts {
        let of = |top: &&str| cells.get(&(*left, *top)).cloned().unwrap_or_default();
        lines.push(line(std::iter::once(escape(left)).chain(tops.iter().map(of))));
    }
    if attributes.contains_key("apart") {
        lines.push(String::new());
        for (top, head) in tops.iter().zip(&shown) {
            lines.push(format!("- {head}: {}", escape(&apart(rows, strip, top))));
        }
    }
    Ok(lines)
}

/// Which rows of a column of a pivot can be distinguished.
fn apart(rows: &[&Row], strip: &str, top: &str) -> String {
    let group = |row: &&'_ Row| -> Option<(String, Row)> {
        let (left, of) = row.what.strip_prefix(strip).unwrap_or(&row.what).rsplit_once(": ")?;
        (of == top).then(|| (left.to_owned(), (*row).clone()))
    };
    let column: Vec<(String, Row)> = rows.iter().filter_map(group).collect();
    let groups: Vec<Group<'_>> = column.iter().map(|(name, row)| Group { name, row }).collect();
    result::apart::sentence(&groups)
}

fn head(column: &str) -> &str {
    match column {
        "what" => "",
        "interval" => "95 % interval",
        "ratio" => "ratio to it (95 %)",
        "why" => "remark",
        other => other,
    }
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.fold("|".to_owned(), |line, cell| line + " " + &cell + " |")
}

fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::stored;

    fn lines(marker: &str) -> Result<Vec<String>, Broken> {
        let rows = vec![
            Row::new("6.1: work", 100.0, "%").between(97.0, 100.0),
            Row::new("6.1: tlb", 99.5, "%"),
            Row::new("6.12: work", 98.0, "%"),
            Row::new("whole|half", 2.0, "ms").why("a remark"),
        ];
        render(marker, "results", &Results::from([("lab-x".into(), Ok(stored("lab-x", rows)))]))
    }

    #[test]
    fn rows_are_chosen_by_pattern_in_the_order_of_the_patterns() {
        let of = lines("<!-- result:lab-x rows=\"*: work; 6.1: *\" strip=\"6.1: \" -->").unwrap();
        assert_eq!(
            &of[..5],
            [
                "|  | value | 95 % interval |",
                "|---|---|---|",
                "| work | 100 % | 97 to 100 |",
                "| 6.12: work | 98 % |  |",
                "| tlb | 99.5 % |  |"
            ]
        );
        for (pattern, name, yes) in [
            ("a*c", "abc", true),
            ("a*c", "ac", true),
            ("*", "", true),
            ("a", "ab", false),
            ("*b", "ab", true),
            ("a*b*", "ab", true),
        ] {
            assert_eq!(matches(pattern, name), yes, "{pattern} {name}");
        }
    }

    #[test]
    fn a_pivot_has_two_dimensions() {
        let of = lines("<!-- result:lab-x rows=\"6*\" pivot=\"kernel\" decimals=\"1\" -->").unwrap();
        assert_eq!(
            &of[..4],
            ["| kernel (%) | work | tlb |", "|---|---|---|", "| 6.1 | 100.0 | 99.5 |", "| 6.12 | 98.0 |  |"]
        );
        assert!(
            lines("<!-- result:lab-x rows=\"whole*\" pivot=\"kernel\" -->")
                .unwrap_err()
                .expected
                .contains("LEFT: TOP")
        );
    }

    #[test]
    fn a_pivot_says_which_rows_cannot_be_distinguished() {
        let rows = vec![
            Row::new("old: work", 5.0, "").between(4.0, 6.0).n(4),
            Row::new("new: work", 1.0, "").between(0.0, 2.0).n(4),
            Row::new("old: tlb", 5.0, "").between(4.0, 6.0).n(4),
            Row::new("new: tlb", 4.0, "").between(2.0, 5.0).n(4),
        ];
        let results = Results::from([("lab-x".into(), Ok(stored("lab-x", rows)))]);
        let marker =
            "<!-- result:lab-x pivot=\"way\" cell=\"interval\" heads=\"works;flushes\" apart=\"ranges\" -->";
        let of = render(marker, "results", &results).unwrap();
        assert_eq!(of[5..7], ["- works: new is below old", "- flushes: no two can be distinguished"]);
    }

    #[test]
    fn columns_and_heads_are_the_requested_ones() {
        let of = lines("<!-- result:lab-x rows=\"whole*\" columns=\"what,why\" heads=\"figure;said\" -->")
            .unwrap();
        assert_eq!(&of[..3], ["| figure | said |", "|---|---|", "| whole\\|half | a remark |"]);
        assert!(of[4].starts_with("Measured 2026-11-22 at cac34fc (profile dist; Linux 6.1 x86_64): [lab-x.json](results/lab-x.json)"));
        assert!(lines("<!-- result:lab-x columns=\"what\" heads=\"a;b\" -->").is_err());
    }
}
