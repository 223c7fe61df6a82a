//! Printing that survives its reader, and whose reader survives it: `print!`, `println!`, `eprint!`
//! and `eprintln!` of this crate, instead of those that panic.
//!
//! A pipe whose reader has gone (`| head`) is no error: what was to be done is done all the same.
//! Anything else that keeps the answer from being written, a full disk, ends the program with one
//! sentence. A full or closed standard error cannot be reported anywhere.
//!
//! All that is printed may hold text from outside, and all goes through here (a rule of `cargo
//! xtask tidy`): nothing but the program itself drives the terminal.

use crate::color;
use model::foreign::escaped;
use std::fmt::Arguments;
use std::io::{BufWriter, ErrorKind, StdoutLock, Write, stderr, stdout};
use sys::journald::Journald;

/// Writes to standard output.
pub(crate) fn write(text: Arguments<'_>) {
    put(&escaped(&text.to_string()));
}

/// Writes what drives the terminal, in which text from outside has been made harmless already.
pub(crate) fn put(text: &str) {
    let mut stdout = stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            write_labelled(Label::Error, &format!("cannot write to standard output: {error}"));
            std::process::exit(1)
        }
        _ => {}
    }
}

/// Writes progress to standard output: its reader may be gone, and the work goes on all the same.
pub(crate) fn progress(text: Arguments<'_>) {
    let _ = stdout().lock().write_all(escaped(&text.to_string()).as_bytes());
}

/// The journal of systemd, where standard output goes there, as that of a service does.
pub(crate) fn journal() -> Option<Journald> {
    Journald::behind(stdout(), std::env::var("JOURNAL_STREAM").ok().as_deref())
}

/// Room for a long answer on its way, bytes.
pub(crate) const ROOM: usize = 1 << 13;

/// Standard output for long answers, with room for this many bytes; the caller reports
/// errors.
pub(crate) fn long(room: usize) -> BufWriter<Escaping<StdoutLock<'static>>> {
    BufWriter::with_capacity(room, Escaping { inner: stdout().lock(), begun: Vec::new() })
}

/// Makes text harmless on its way.
pub(crate) struct Escaping<W> {
    inner: W,
    /// What only the next write completes: a character, the end of a line.
    begun: Vec<u8>,
}

/// Bytes that are looked at before any of them decides: a loop without a way out is vector
/// instructions.
const AT_ONCE: usize = 256;

/// Whether all bytes are printable ASCII, tabs and ends of lines.
fn are_harmless(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |all, byte| all & matches!(byte, b'\n' | b'\t' | b' '..=b'~'))
}

impl<W: Write> Write for Escaping<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.begun.is_empty() && bytes.chunks(AT_ONCE).all(are_harmless) {
            self.inner.write_all(bytes)?;
            return Ok(bytes.len());
        }
        self.begun.extend(bytes);
        let all = std::mem::take(&mut self.begun);
        let whole = match std::str::from_utf8(&all) {
            // A character has four bytes at most; what is longer and no text never becomes one.
            Err(error) if error.error_len().is_none() && all.len() - error.valid_up_to() < 4 => {
                error.valid_up_to()
            }
            // What follows a return says whether it ends a line.
            _ if all.ends_with(b"\r") => all.len() - 1,
            _ => all.len(),
        };
        self.begun.extend(&all[whole..]);
        self.inner.write_all(escaped(&String::from_utf8_lossy(&all[..whole])).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// Writes to standard error.
pub(crate) fn write_error(text: Arguments<'_>) {
    let _ = stderr().lock().write_all(escaped(&text.to_string()).as_bytes());
}

/// What a line on standard error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Label {
    /// Why the call failed.
    Error,
    /// What to try instead.
    Hint,
    /// What else to know; the call goes on.
    Note,
}

impl Label {
    /// The word, and its colour (ECMA-48, SGR).
    fn word(self) -> (&'static str, &'static str) {
        match self {
            Self::Error => ("error:", "1;31"),
            Self::Hint => ("hint:", "1;36"),
            Self::Note => ("note:", "1;33"),
        }
    }
}

/// Writes a line to standard error; on a terminal its label has a colour.
pub(crate) fn write_labelled(label: Label, text: &str) {
    let (word, code) = label.word();
    let text = escaped(text);
    let line = if color::on_stderr() {
        format!("\u{1b}[{code}m{word}\u{1b}[0m {text}\n")
    } else {
        format!("{word} {text}\n")
    };
    let _ = stderr().lock().write_all(line.as_bytes());
}

macro_rules! print {
    ($($text:tt)*) => { $crate::stdout::write(format_args!($($text)*)) };
}

macro_rules! println {
    () => { $crate::stdout::write(format_args!("\n")) };
    ($($text:tt)*) => { $crate::stdout::write(format_args!("{}\n", format_args!($($text)*))) };
}

macro_rules! eprintln {
    () => { $crate::stdout::write_error(format_args!("\n")) };
    ($($text:tt)*) => { $crate::stdout::write_error(format_args!("{}\n", format_args!($($text)*))) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_answer_is_harmless_wherever_it_is_cut() {
        let text = "name \u{1b}]0;P\u{7} µ \u{202e}txt\r\n".repeat(3);
        for length in 1..text.len() {
            let mut to = Escaping { inner: Vec::new(), begun: Vec::new() };
            text.as_bytes().chunks(length).for_each(|chunk| to.write_all(chunk).unwrap());
            assert_eq!(String::from_utf8(to.inner).unwrap(), escaped(&text), "{length}");
        }
    }
}
