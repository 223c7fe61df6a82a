//! How lines are made: texts from outside made harmless, columns of a fixed width, times, bars;
//! with Unicode and colours, or without.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::{Line, Span};
use std::fmt::Write;

/// Marks and styles of this terminal.
#[derive(Clone, Copy)]
pub(super) struct Pen {
    pub(super) ascii: bool,
    pub(super) plain: bool,
    /// Whether somebody can press keys.
    pub(super) keys: bool,
    pub(super) width: usize,
}

/// Text from outside, with nothing in it that a terminal acts on, in printable ASCII.
pub(super) fn harmless(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => out.push(c),
            // A string takes everything.
            c if u32::from(c) < 0x100 => _ = write!(out, "\\x{:02x}", u32::from(c)),
            c => _ = write!(out, "\\u{{{:x}}}", u32::from(c)),
        }
    }
    out
}

/// Cut to a width with `~`, or filled up.
pub(super) fn fit(text: &str, width: usize) -> String {
    let length = text.chars().count();
    if length <= width {
        return format!("{text}{}", " ".repeat(width - length));
    }
    text.chars().take(width.saturating_sub(1)).chain(['~']).take(width).collect()
}

impl Pen {
    pub(super) fn line(self, text: &str) -> Line<'static> {
        Line::from(self.cut(text))
    }

    fn cut(self, text: &str) -> String {
        fit(text, self.width).trim_end().to_owned()
    }

    pub(super) fn bold(self, text: &str) -> Line<'static> {
        Line::from(Span::styled(self.cut(text), Style::new().add_modifier(Modifier::BOLD)))
    }

    /// A hint at a key, where somebody can press it.
    pub(super) fn key(self, hint: &'static str) -> &'static str {
        if self.keys { hint } else { "" }
    }

    /// Marked with `!` at its end, which alone is red.
    pub(super) fn marked(self, text: &str, is_marked: bool, style: Style) -> Line<'static> {
        if !is_marked {
            return Line::from(Span::styled(self.cut(text), style));
        }
        let body = fit(text, self.width.saturating_sub(1).min(79));
        let red = if self.plain { style } else { style.fg(Color::Red) };
        Line::from(vec![Span::styled(body, style), Span::styled("!", red.add_modifier(Modifier::BOLD))])
    }

    pub(super) fn rule(self) -> Line<'static> {
        Line::from(if self.ascii { "-" } else { "─" }.repeat(self.width))
    }

    pub(super) fn block(self) -> char {
        if self.ascii { '#' } else { '█' }
    }

    fn micro(self) -> &'static str {
        if self.ascii { "us" } else { "µs" }
    }

    /// A time with three digits, and its unit.
    pub(super) fn time(self, ns: u64) -> String {
        let us = ns as f64 / 1e3;
        let micro = self.micro();
        match us {
            0.0 => format!("0 {micro}"),
            ..10.0 => format!("{us:.1} {micro}"),
            ..1e3 => format!("{us:.0} {micro}"),
            ..1e4 => format!("{:.2} ms", us / 1e3),
            ..1e6 => format!("{:.0} ms", us / 1e3),
            _ => format!("{:.2} s", us / 1e6),
        }
    }

    /// Microseconds without a unit.
    pub(super) fn us(ns: u64) -> String {
        let us = ns as f64 / 1e3;
        if ns < 10_000 { format!("{us:.1}") } else { format!("{us:.0}") }
    }

    /// The last seconds as heights.
    pub(super) fn spark(self, values: &[u64], width: usize) -> String {
        const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const PLAIN: [char; 8] = ['_', '.', '-', ':', '=', '+', '*', '#'];
        let bars = if self.ascii { PLAIN } else { BARS };
        let most = values.iter().copied().max().unwrap_or(0).max(1) as f64;
        let shown = &values[values.len().saturating_sub(width)..];
        shown.iter().map(|value| bars[((*value as f64 / most) * 7.0).round() as usize]).collect()
    }
}
