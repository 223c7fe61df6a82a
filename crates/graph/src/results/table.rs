//! Tables of text as ros2-performance writes them: columns by spaces or commas, in two generations
//! of headers, `late[%]` and `late_perc`.

use model::Error;
use std::path::Path;

/// How headers spell units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Generation {
    /// `received[#]`, `mean[us]`, `late[%]`: until 2023.
    Brackets,
    /// `received_msgs`, `mean_us`, `late_perc`: since.
    #[default]
    Words,
}

/// A column: its name in both generations and its width.
pub(super) struct Column {
    /// With brackets.
    pub(super) brackets: &'static str,
    /// In words.
    pub(super) words: &'static str,
    /// Characters.
    pub(super) width: usize,
}

impl Column {
    /// A column.
    pub(super) const fn new(brackets: &'static str, words: &'static str, width: usize) -> Self {
        Self { brackets, words, width }
    }

    fn name(&self, generation: Generation) -> &'static str {
        match generation {
            Generation::Brackets => self.brackets,
            Generation::Words => self.words,
        }
    }
}

/// The header line.
pub(super) fn header(columns: &[Column], generation: Generation) -> String {
    line(columns, columns.iter().map(|column| column.name(generation).to_owned()))
}

/// One line of cells, each at least as wide as its column, and never without a space between.
pub(super) fn line(columns: &[Column], cells: impl Iterator<Item = String>) -> String {
    let padded =
        columns.iter().zip(cells).map(|(column, cell)| format!("{cell:<width$}", width = column.width));
    let mut text = String::new();
    for cell in padded {
        text.push_str(&cell);
        if !text.ends_with(' ') {
            text.push(' ');
        }
    }
    text.push('\n');
    text
}

/// A header that was found: which of the columns stand where.
pub(super) struct Header {
    places: Vec<Option<usize>>,
    commas: bool,
    cells: usize,
}

/// A header, if the line is one: it must have all `needed` columns (positions in `columns`).
pub(super) fn find_header(columns: &[Column], needed: &[usize], text: &str) -> Option<Header> {
    let commas = text.contains(',');
    let names = cells(text, commas);
    let place =
        |column: &Column| names.iter().position(|name| *name == column.brackets || *name == column.words);
    let places: Vec<_> = columns.iter().map(place).collect();
    needed.iter().all(|&at| places[at].is_some()).then_some(Header { places, commas, cells: names.len() })
}

fn cells(text: &str, commas: bool) -> Vec<&str> {
    if commas {
        text.split(',').map(str::trim).filter(|cell| !cell.is_empty()).collect()
    } else {
        text.split_whitespace().collect()
    }
}

/// A row below a header.
pub(super) struct Row<'t> {
    place: String,
    header: &'t Header,
    cells: Vec<&'t str>,
}

impl<'t> Row<'t> {
    /// The cells of a line, of which there must be as many as the header has names.
    pub(super) fn of(path: &Path, number: usize, header: &'t Header, text: &'t str) -> Result<Self, Error> {
        let place = format!("{}: line {number}", path.display());
        let cells = cells(text, header.commas);
        if cells.len() < header.cells {
            let what = format!("{} columns", cells.len());
            return Err(Error::invalid(place, what, format!("{}, as the header has", header.cells)));
        }
        Ok(Self { place, header, cells })
    }

    /// The text of a column, where the file has it.
    pub(super) fn text(&self, column: usize) -> Option<&'t str> {
        self.cells.get(self.header.places[column]?).copied()
    }

    /// The number of a column, 0 where the file has no such column. What C++ prints for a quotient
    /// by 0 counts as none.
    pub(super) fn number(&self, column: usize, columns: &[Column]) -> Result<f64, Error> {
        let Some(text) = self.text(column) else { return Ok(0.0) };
        let number = text.parse::<f64>().map_err(|_| {
            let what = format!("{} is {text:?}", columns[column].words);
            Error::invalid(&self.place, what, "a number")
        })?;
        Ok(if number.is_nan() { 0.0 } else { number })
    }
}

/// A number with so many significant digits, as C++ streams print it: no trailing zeros.
pub(super) fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let before = value.abs().log10().floor() as i32 + 1;
    let decimals = (digits as i32 - before).max(0) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_as_streams_do() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1"),
            (0.018_94, "0.01894"),
            (12.345_6, "12.35"),
            (100.0, "100"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(significant(value, 4), text);
        }
    }

    #[test]
    fn cells_never_touch() {
        let columns = [Column::new("node", "node", 4), Column::new("a", "a", 2)];
        let cells = ["a-long-name".to_owned(), "3".to_owned()];
        assert_eq!(line(&columns, cells.into_iter()), "a-long-name 3 \n");
    }
}
