//! The terminal: taken over, drawn on, and given back on every way out.

use super::state::Key;
use ratatui_core::terminal::Terminal;
use ratatui_core::text::Line;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui_crossterm::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui_crossterm::crossterm::{cursor, execute};
use std::io::{self, Stdout, stdout};
use std::time::Duration;

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
    /// Nothing.
    Nothing,
}

/// Waits for the user, at most so long.
pub(crate) fn input(most: Duration) -> io::Result<Input> {
    match event::poll(most) {
        Ok(false) => return Ok(Input::Nothing),
        Ok(true) => {}
        Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(Input::Nothing),
        Err(error) => return Err(error),
    }
    let Event::Key(key) = event::read()? else { return Ok(Input::Redraw) };
    if key.kind == KeyEventKind::Release {
        return Ok(Input::Nothing);
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    let key = match key.code {
        KeyCode::Char('c') if control => Key::CtrlC,
        KeyCode::Char(c) if !control => Key::Char(c),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Esc,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::Left => Key::Left,
        KeyCode::Right => Key::Right,
        _ => return Ok(Input::Nothing),
    };
    Ok(Input::Key(key))
}
