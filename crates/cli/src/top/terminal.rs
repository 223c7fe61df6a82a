//! The terminal: taken over, drawn on, and given back on every way out.

use super::state::Key;
use ratatui_core::terminal::Terminal;
use ratatui_core::text::Line;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui_crossterm::crossterm::{cursor, execute};
use std::collections::VecDeque;
use std::io::{self, BufRead, Stdout, stdout};
use std::time::Duration;
use sys::signals::{EndSignals, Waited};

/// A terminal in raw mode, on its second screen.
pub(crate) struct Screen {
    terminal: Terminal<CrosstermBackend<Stdout>>,
}

impl Screen {
    /// Takes the terminal over.
    pub(crate) fn enter() -> io::Result<Self> {
        // A panic ends the shipped program without dropping anything.
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            before(panic);
        }));
        enable_raw_mode()?;
        let entered = execute!(io::stdout(), EnterAlternateScreen, cursor::Hide)
            .and_then(|()| Terminal::new(CrosstermBackend::new(stdout())));
        match entered {
            Ok(terminal) => Ok(Self { terminal }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }

    /// Draws what `lines` makes for the size that the terminal has now.
    pub(crate) fn draw(&mut self, lines: impl FnOnce(u16, u16) -> Vec<Line<'static>>) -> io::Result<()> {
        self.terminal.draw(|frame| {
            let area = frame.area();
            let lines = lines(area.width, area.height);
            let buffer = frame.buffer_mut();
            for (y, line) in (0..area.height).zip(&lines) {
                buffer.set_line(0, y, line, area.width);
            }
        })?;
        Ok(())
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// A terminal that has gone cannot be given back.
fn give_back() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = disable_raw_mode();
}

/// What the user did within this time.
pub(crate) enum Input {
    /// A key.
    Key(Key),
    /// The size changed, or something else is to be drawn anew.
    Redraw,
    /// The terminal has gone.
    Gone,
    /// Nothing.
    Nothing,
}

/// Keys that were typed and not taken yet. Crossterm 0.29 has a reader of its own, which reads a
/// terminal that has gone for ever, and can miss a key that comes with a change of size.
#[derive(Debug, Default)]
pub(crate) struct Keyboard {
    typed: VecDeque<Key>,
    size: Option<(u16, u16)>,
}

impl Keyboard {
    /// Waits for the user, at most so long.
    pub(crate) fn input(&mut self, signals: &EndSignals, most: Duration) -> io::Result<Input> {
        if self.typed.is_empty() {
            match signals.wait_with_input(most)? {
                Waited::HungUp => return Ok(Input::Gone),
                Waited::Nothing => {
                    let size = size().ok();
                    let before = std::mem::replace(&mut self.size, size);
                    return Ok(if before == size { Input::Nothing } else { Input::Redraw });
                }
                Waited::Input => {}
            }
            let mut stdin = io::stdin().lock();
            let bytes = stdin.fill_buf()?;
            let length = bytes.len();
            self.typed.extend(keys(bytes));
            stdin.consume(length);
            if length == 0 {
                return Ok(Input::Gone);
            }
        }
        Ok(self.typed.pop_front().map_or(Input::Nothing, Input::Key))
    }
}

/// The keys that bytes of a terminal stand for (ECMA-48, xterm's arrow keys); others are left out.
fn keys(bytes: &[u8]) -> Vec<Key> {
    let text = String::from_utf8_lossy(bytes);
    let mut chars = text.chars().peekable();
    let mut keys = Vec::new();
    while let Some(c) = chars.next() {
        keys.push(match c {
            '\u{1b}' if matches!(chars.peek(), Some('[' | 'O')) => {
                chars.next();
                match chars.find(|c| matches!(c, '@'..='~')) {
                    Some('A') => Key::Up,
                    Some('B') => Key::Down,
                    Some('C') => Key::Right,
                    Some('D') => Key::Left,
                    _ => continue,
                }
            }
            '\u{1b}' => Key::Esc,
            '\u{3}' => Key::CtrlC,
            '\r' | '\n' => Key::Enter,
            '\u{7f}' | '\u{8}' => Key::Backspace,
            c if c.is_control() => continue,
            c => Key::Char(c),
        });
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_keys() {
        let expected =
            [Key::Char('f'), Key::Up, Key::Left, Key::Char('\u{b5}'), Key::Enter, Key::Backspace, Key::CtrlC];
        assert_eq!(keys("f\u{1b}[A\u{1b}OD\u{1b}[15~\u{b5}\r\u{7f}\u{3}\u{2}".as_bytes()), expected);
        assert_eq!(
            (keys(b"\x1b"), keys(b"\x1bq"), keys(b"\x1b[")),
            (vec![Key::Esc], vec![Key::Esc, Key::Char('q')], vec![])
        );
    }
}
