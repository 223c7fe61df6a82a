//! Headings, wrapped lines and tables on a page of a fixed width.

use comfy_table::{CellAlignment, ContentArrangement, ContentLineStyle, LineStyle, Table, TableStyle};
use std::fmt::Write;

use super::TextOptions;
use model::foreign::in_a_line;

/// Columns separated by space, one rule under the header: what can be read in a terminal and pasted
/// into a mail.
const STYLE: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::none().junction(' '))
    .header_separator(LineStyle::none().fill('-').junction(' '))
    .content_lines(ContentLineStyle::none().junction(' '));

/// ANSI colours in use: the eight that every terminal has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Paint {
    Bold,
    Red,
    Green,
    Yellow,
    Dim,
}

impl Paint {
    fn code(self) -> &'static str {
        match self {
            Self::Bold => "1",
            Self::Red => "1;31",
            Self::Green => "1;32",
            Self::Yellow => "33",
            Self::Dim => "2",
        }
    }
}

/// Text for a terminal, under construction: wrapped at the requested width, 60 to 120 columns.
pub struct Page {
    text: String,
    color: bool,
    width: usize,
}

impl Page {
    /// An empty page.
    pub fn new(options: TextOptions) -> Self {
        Self { text: String::new(), color: options.color, width: usize::from(options.width.clamp(60, 120)) }
    }

    /// The text, newline at the end.
    pub fn finish(self) -> String {
        self.text
    }

    /// A blank line and a heading.
    pub fn heading(&mut self, text: &str) {
        self.text.push('\n');
        self.paragraph(Some(Paint::Bold), "", "", text);
    }

    /// A blank line.
    pub(crate) fn blank(&mut self) {
        self.text.push('\n');
    }

    /// Wrapped text: the first line starts with `first`, the others with as many spaces.
    pub fn item(&mut self, first: &str, text: &str) {
        self.paragraph(None, first, &" ".repeat(first.chars().count()), text);
    }

    /// The same in a colour.
    pub(crate) fn painted(&mut self, paint: Paint, first: &str, text: &str) {
        self.paragraph(Some(paint), first, &" ".repeat(first.chars().count()), text);
    }

    fn paragraph(&mut self, paint: Option<Paint>, first: &str, rest: &str, text: &str) {
        for (index, line) in
            wrap(&in_a_line(text), self.width.saturating_sub(first.chars().count())).iter().enumerate()
        {
            let line = format!("{}{}", if index == 0 { first } else { rest }, line.trim_end());
            match paint {
                Some(paint) if self.color => {
                    let _ = write!(self.text, "\u{1b}[{}m{line}\u{1b}[0m", paint.code());
                }
                _ => self.text.push_str(&line),
            }
            self.text.push('\n');
        }
    }

    /// A table; the first `left` columns are flush left, numbers flush right.
    pub(crate) fn table(&mut self, left: usize, header: &[&str], rows: &[Vec<String>]) {
        let mut table = Table::new();
        table.load_style(STYLE).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(u16::try_from(self.width).unwrap_or(u16::MAX));
        table.set_header(header.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>());
        for row in rows {
            table.add_row(row.iter().map(|cell| in_a_line(cell)).collect::<Vec<_>>());
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 1));
            if index >= left {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for line in table.to_string().lines() {
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }
}

/// Breaks at spaces; a word longer than a line is cut.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(8);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        let used = lines.last().map_or(0, |line| line.chars().count());
        if used > 0 && used + 1 + word.len() > width {
            lines.push(String::new());
        } else if used > 0 {
            append(&mut lines, &[' ']);
        }
        while word.len() > width {
            let rest = word.split_off(width);
            append(&mut lines, &word);
            lines.push(String::new());
            word = rest;
        }
        append(&mut lines, &word);
    }
    lines
}

fn append(lines: &mut [String], letters: &[char]) {
    if let Some(line) = lines.last_mut() {
        line.extend(letters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn wrapping_keeps_every_letter_and_the_width(text in "[a-z ]{0,200}", width in 8usize..60) {
            let lines = wrap(&text, width);
            prop_assert!(lines.iter().all(|line| line.chars().count() <= width), "{lines:?}");
            let letters = |text: &str| text.replace(' ', "");
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
