//! A number in a sentence: `<!--r:NAME/ROW/FIELD-->12.3<!--/r-->`.
//!
//! FIELD is `value`, `n`, `low`, `high`, `interval`, `ratio`, `ratio.median`, `ratio.low`,
//! `ratio.high`, `peer.value` or `verdict`; `:2` behind it requests two decimals. `NAME/@date`,
//! `@commit`, `@profile`, `@machine` are those of the result.

use result::{Row, Stored, text};

use super::{Broken, result_of, row_of};
use crate::results::Results;

const OPEN: &str = "<!--r:";
const CLOSE: &str = "<!--/r-->";

/// A marker that is wrong, or whose text is.
pub(super) struct Found {
    pub(super) what: String,
    pub(super) expected: String,
    /// It cannot be filled; else the page has another text.
    pub(super) broken: bool,
}

/// The line with every marker filled.
pub(super) fn fill(line: &str, results: &Results) -> (String, Vec<Found>) {
    let (mut out, mut found, mut rest) = (String::new(), Vec::new(), line);
    let broken =
        |what: &str, expected: &str| Found { what: what.into(), expected: expected.into(), broken: true };
    if line.trim_start().starts_with(OPEN) {
        found.push(broken(
            "a number's marker begins the line",
            "a word before it: Markdown takes a line that begins with a comment for HTML",
        ));
        return (line.to_owned(), found);
    }
    while let Some(at) = rest.find(OPEN) {
        let (before, marker) = rest.split_at(at);
        out.push_str(before);
        // Right behind a backquote it is an example.
        if out.ends_with('`') {
            out.push_str(OPEN);
            rest = &marker[OPEN.len()..];
            continue;
        }
        let parts = marker[OPEN.len()..].split_once("-->").and_then(|(path, after)| {
            let (page, after) = after.split_once(CLOSE)?;
            Some((path, page, after))
        });
        let Some((path, page, after)) = parts else {
            found.push(broken(
                "a number's marker that does not end",
                "`-->`, the number, `<!--/r-->` on one line",
            ));
            out.push_str(marker);
            return (out, found);
        };
        let shown = match value(path, results) {
            Ok(shown) => {
                if shown != page {
                    let expected = format!("`{shown}`, as {path} has it (cargo xtask docs)");
                    found.push(Found { what: format!("`{page}`"), expected, broken: false });
                }
                shown
            }
            Err(why) => {
                found.push(Found { what: why.what, expected: why.expected, broken: true });
                page.to_owned()
            }
        };
        out = out + OPEN + path + "-->" + &shown + CLOSE;
        rest = after;
    }
    out.push_str(rest);
    (out, found)
}

/// What the results have at `NAME/ROW/FIELD`.
fn value(path: &str, results: &Results) -> Result<String, Broken> {
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        [name, at] if at.starts_with('@') => of_result(result_of(results, name)?, at),
        [name, row, field] => {
            let stored = result_of(results, name)?;
            of_row(row_of(stored, row)?, field)
        }
        _ => Err(Broken::new(format!("`{path}`: not NAME/ROW/FIELD"), "`NAME/ROW/FIELD` or `NAME/@date`")),
    }
}

fn of_result(stored: &Stored, at: &str) -> Result<String, Broken> {
    Ok(match at {
        "@date" => stored.date().to_owned(),
        "@commit" => stored.commit.clone(),
        "@profile" => stored.profile.clone(),
        "@machine" => stored.machine.clone(),
        other => {
            return Err(Broken::new(format!("`{other}`"), "`@date`, `@commit`, `@profile` or `@machine`"));
        }
    })
}

fn of_row(row: &Row, field: &str) -> Result<String, Broken> {
    let (field, decimals) = match field.split_once(':') {
        None => (field, None),
        Some((field, digits)) => {
            let wrong = |_| Broken::new(format!("`:{digits}`"), "a number of decimals");
            (field, Some(digits.parse::<usize>().map_err(wrong)?))
        }
    };
    let number =
        |value: f64| decimals.map_or_else(|| text::number(value), |digits| text::fixed(value, digits));
    let ratio = row.ratio.as_ref();
    let shown = match field {
        "value" => row.value.map(number),
        "n" => row.n.map(|n| number(n as f64)),
        "low" => row.low.map(number),
        "high" => row.high.map(number),
        "interval" => row.low.zip(row.high).map(|(low, high)| format!("{} to {}", number(low), number(high))),
        "peer.value" => row.peer.as_ref().and_then(|peer| peer.value).map(number),
        "ratio" => ratio.map(text::ratio),
        "ratio.median" => ratio.map(|ratio| number(ratio.median)),
        "ratio.low" => ratio.and_then(|ratio| ratio.low).map(number),
        "ratio.high" => ratio.and_then(|ratio| ratio.high).map(number),
        "verdict" => Some(text::verdict(row).to_owned()),
        other => {
            return Err(Broken::new(
                format!("the field `{other}`"),
                "value, n, low, high, interval, ratio, ratio.median, ratio.low, ratio.high, peer.value or verdict",
            ));
        }
    };
    shown.ok_or_else(|| Broken::new(format!("`{}` has no {field}", row.what), "a field that the row has"))
}
