//! How wide the terminal is, and the layout that follows from it.

use crate::color;
use report::TextOptions;
use std::io::{stderr, stdout};
use terminal_size::{Width, terminal_size_of};

/// Columns where no terminal says otherwise: a pipe, a file.
const ELSEWHERE: u16 = 100;

/// Columns of the terminal that reads standard output; else of a pipe or file the number in
/// `COLUMNS` (POSIX.1-2024, XBD 8.3), if there is one.
pub(crate) fn columns() -> Option<u16> {
    let terminal = terminal_size_of(stdout()).map(|(Width(columns), _)| columns);
    terminal.filter(|columns| *columns > 0).or_else(|| said(&std::env::var("COLUMNS").ok()?))
}

/// A number of columns as a variable has it; none that no text fits into.
fn said(text: &str) -> Option<u16> {
    const LEAST: u16 = 20;
    text.parse().ok().filter(|columns| *columns >= LEAST)
}

/// The same of standard error.
pub(crate) fn columns_of_stderr() -> Option<u16> {
    terminal_size_of(stderr()).map(|(Width(columns), _)| columns).filter(|columns| *columns > 0)
}

/// Columns to fold sentences at: those of the terminal, not more than are easily read.
pub(crate) fn to_read() -> u16 {
    columns().map_or(ELSEWHERE, |columns| columns.clamp(40, ELSEWHERE))
}

/// The layout of reports.
pub(crate) fn text_options() -> TextOptions {
    TextOptions { color: color::on_stdout(), width: columns().unwrap_or(ELSEWHERE) }
}

/// The same without colours, for text that is printed through what makes it harmless.
pub(crate) fn plain_options() -> TextOptions {
    TextOptions { color: false, ..text_options() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_columns_is_one_that_text_fits_into() {
        assert_eq!(
            ["80", "20", "0", "-1", "wide", ""].map(said),
            [Some(80), Some(20), None, None, None, None]
        );
    }
}
