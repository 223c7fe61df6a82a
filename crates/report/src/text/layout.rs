//! Headings, wrapped lines and tables on a page of a fixed width.

use std::fmt::Write;

use super::wrap::wrap;
use super::{TextOptions, grid};
use model::foreign::in_a_line;

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

/// Columns that are left to a text behind the words in front of it.
const NARROWEST: usize = 8;

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
            wrap(&in_a_line(text), self.width.saturating_sub(first.chars().count()).max(NARROWEST))
                .iter()
                .enumerate()
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
        let safe = |row: &[String]| row.iter().map(|cell| in_a_line(cell)).collect::<Vec<String>>();
        let header: Vec<String> = header.iter().map(|cell| (*cell).to_owned()).collect();
        let rows: Vec<Vec<String>> = rows.iter().map(|row| safe(row)).collect();
        self.text.push_str(&grid::table(left, &safe(&header), &rows, self.width));
    }
}
