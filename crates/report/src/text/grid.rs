//! Tables within a width: columns separated by space, one rule under the header; what can be read
//! in a terminal and pasted into a mail.
//!
//! What does not fit is first wrapped inside its columns, between words, a number and its unit
//! being one word. Where even the longest words do not fit, the columns come in blocks, the first
//! column in each. Only a word that is longer than a line is cut.

use super::fit;
use super::wrap::wrap;

/// Columns between two cells.
const GAP: usize = 2;
/// Cells of at most so many letters are never wrapped.
const WHOLE: usize = 14;
/// No column is narrower where words have to be cut.
const LEAST: usize = 8;
/// What follows a number, and stays with it.
const UNITS: [&str; 9] = [" ns", " us", " ms", " s", " %", " ppb", " KiB", " MiB", " B"];

/// One column.
struct Column {
    /// Its place in the table: those below `left` are flush left.
    at: usize,
    /// Its widest cell.
    most: usize,
    /// The longest of its words.
    least: usize,
}

/// The table; the first `left` columns are flush left, the others flush right.
pub(super) fn table(left: usize, header: &[String], rows: &[Vec<String>], room: usize) -> String {
    let glued = |row: &[String]| -> Vec<String> {
        (0..header.len()).map(|at| glue(row.get(at).map_or("", String::as_str))).collect()
    };
    let header = glued(header);
    let rows: Vec<Vec<String>> = rows.iter().map(|row| glued(row)).collect();
    let columns: Vec<Column> = (0..header.len()).map(|at| column(at, &header, &rows)).collect();
    let least: Vec<usize> = columns.iter().map(|column| column.least + GAP).collect();
    let blocks = if taken(least.iter().map(|width| width - GAP)) <= room {
        vec![(0..header.len()).collect()]
    } else {
        fit::blocks(&least, 1, room + GAP - 1)
    };
    let block = |places: &Vec<usize>| {
        let ours: Vec<&Column> = places.iter().filter_map(|at| columns.get(*at)).collect();
        let widths = widths(&ours, room);
        block(left, &header, &rows, &ours, &needed(&header, &rows, &ours, &widths))
    };
    blocks.iter().map(block).collect::<Vec<_>>().join("\n").replace('\u{a0}', " ")
}

/// A number and its unit as one word.
fn glue(cell: &str) -> String {
    let mut text = cell.to_owned();
    for unit in UNITS {
        let mut from = 0;
        while let Some(at) = text[from..].find(unit).map(|at| at + from) {
            let after = text[at + unit.len()..].chars().next();
            let digit = text[..at].ends_with(|letter: char| letter.is_ascii_digit());
            if digit && !after.is_some_and(char::is_alphanumeric) {
                text.replace_range(at..=at, "\u{a0}");
            }
            from = at + unit.len();
        }
    }
    text
}

fn column(at: usize, header: &[String], rows: &[Vec<String>]) -> Column {
    let length = |text: &str| text.chars().count();
    let longest = |text: &str| text.split(' ').map(length).max().unwrap_or(0);
    let least = |text: &str| if length(text) <= WHOLE { length(text) } else { longest(text) };
    let cells = || rows.iter().map(|row| row[at].as_str());
    let name = header[at].as_str();
    Column {
        at,
        most: cells().map(length).max().unwrap_or(0).max(length(name)),
        least: cells().map(least).max().unwrap_or(0).max(longest(name)),
    }
}

/// The room that columns of these widths take; the last has nothing behind it.
fn taken(widths: impl Iterator<Item = usize>) -> usize {
    // The rule reaches one column beyond the cells.
    widths.map(|width| width + GAP).sum::<usize>().saturating_sub(GAP - 1)
}

/// As wide as the cells are, else the widest narrowed until all fit: to their longest words, and
/// below these where a single word is longer than the line.
fn widths(columns: &[&Column], room: usize) -> Vec<usize> {
    let mut widths: Vec<usize> = columns.iter().map(|column| column.most).collect();
    while taken(widths.iter().copied()) > room {
        let floors = [|column: &Column| column.least, |_: &Column| LEAST];
        let widest = floors.iter().find_map(|floor| {
            let narrowable = (0..widths.len()).filter(|at| widths[*at] > floor(columns[*at]));
            narrowable.max_by_key(|at| widths[*at])
        });
        let Some(widest) = widest else { break };
        widths[widest] -= 1;
    }
    widths
}

/// What wrapped cells need of these widths.
fn needed(header: &[String], rows: &[Vec<String>], columns: &[&Column], widths: &[usize]) -> Vec<usize> {
    let length = |line: &String| line.chars().count();
    let needs = |(column, width): (&&Column, &usize)| {
        let cells = rows.iter().map(|row| &row[column.at]).chain([&header[column.at]]);
        cells.flat_map(|cell| wrap(cell, *width)).map(|line| length(&line)).max().unwrap_or(0)
    };
    columns.iter().zip(widths).map(needs).collect()
}

fn block(
    left: usize,
    header: &[String],
    rows: &[Vec<String>],
    columns: &[&Column],
    widths: &[usize],
) -> String {
    let line = |row: &[String]| -> String {
        let cells: Vec<Vec<String>> =
            columns.iter().zip(widths).map(|(column, width)| wrap(&row[column.at], *width)).collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let part = |line: usize| {
            let cell = |((column, width), cell): ((&&Column, &usize), &Vec<String>)| {
                let text = cell.get(line).map_or("", |text| text.trim_end());
                let fill = " ".repeat(width.saturating_sub(text.chars().count()));
                if column.at < left { format!("{text}{fill}") } else { format!("{fill}{text}") }
            };
            let cells = columns.iter().zip(widths).zip(&cells).map(cell).collect::<Vec<_>>();
            format!("{}\n", cells.join("  ").trim_end())
        };
        (0..height).map(part).collect()
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(width + 1)).collect();
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("{}{}\n{rows}", line(header), rule.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(header: &[&str], rows: &[&[&str]], room: usize) -> String {
        let owned = |row: &[&str]| row.iter().map(|cell| (*cell).to_owned()).collect::<Vec<String>>();
        table(1, &owned(header), &rows.iter().map(|row| owned(row)).collect::<Vec<_>>(), room)
    }

    #[test]
    fn what_fits_stands_as_it_is() {
        let text = of(&["phase", "p50"], &[&["idle", "4.210 us"], &["disturbed", "9 ns"]], 60);
        assert_eq!(
            text,
            "phase           p50\n---------- ---------\nidle       4.210 us\ndisturbed      9 ns\n"
        );
    }

    #[test]
    fn long_text_is_wrapped_inside_its_column_and_numbers_stay_whole() {
        let what = "an interrupt of a network card that nobody moved to another CPU";
        let text = of(&["what", "median", "observed max"], &[&[what, "4.210 us", "12.35 ms"]], 40);
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        for word in what.split(' ').chain(["4.210 us", "12.35 ms", "median"]) {
            assert!(text.contains(word), "{word}: {text}");
        }
        assert!(text.lines().count() < 9, "one block: {text}");
    }

    #[test]
    fn where_words_do_not_fit_the_columns_come_in_blocks() {
        let cells = ["wake-up", "123.4 us", "123.5 us", "123.6 us", "123.7 us"];
        let text = of(&["what", "a", "b", "c", "d"], &[&cells], 30);
        assert!(text.lines().all(|line| line.chars().count() <= 30), "{text}");
        assert!(
            cells.iter().all(|cell| text.contains(cell)) && text.matches("wake-up").count() > 1,
            "{text}"
        );
    }

    #[test]
    fn a_number_keeps_its_unit_and_other_words_are_left_alone() {
        assert_eq!(glue("12 us of 3 s, 5 use, x us"), "12\u{a0}us of 3\u{a0}s, 5 use, x us");
    }

    proptest! {
        #[test]
        fn no_line_is_too_long_and_no_word_is_broken_that_fits(
            rows in prop::collection::vec(prop::collection::vec("[a-z]{1,12}( [a-z0-9]{1,9}){0,6}", 1..7), 1..6),
            room in 40usize..121
        ) {
            let names: Vec<String> = (0..6).map(|at| format!("name {at}")).collect();
            let text = table(1, &names, &rows, room);
            prop_assert!(text.lines().all(|line| line.chars().count() <= room), "{text}");
            let words: Vec<&str> = text.split_whitespace().collect();
            for word in rows.iter().flatten().flat_map(|cell| cell.split(' ')) {
                prop_assert!(words.contains(&word), "{word}: {text}");
            }
        }
    }
}
