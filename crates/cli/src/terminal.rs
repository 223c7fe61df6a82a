//! How wide the terminal is, and the layout that follows from it.

use crate::color;
use report::TextOptions;
use std::io::{stderr, stdout};
use terminal_size::{Width, terminal_size_of};

/// Columns where no terminal says otherwise: a pipe, a file.
const ELSEWHERE: u16 = 100;

/// Columns of the terminal that reads standard output, if one does.
pub(crate) fn columns() -> Option<u16> {
    terminal_size_of(stdout()).map(|(Width(columns), _)| columns).filter(|columns| *columns > 0)
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
