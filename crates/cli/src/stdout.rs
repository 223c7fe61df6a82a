//! Printing that survives its reader: `print!` and `println!` of this crate, instead of those that panic.
//!
//! A pipe whose reader has gone (`| head`) is no error: what was to be done is done all the same. Anything else that keeps the answer from
//! being written, a full disk, ends the program with one sentence.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write, stdout};

/// Writes to standard output.
pub(crate) fn write(text: Arguments<'_>) {
    let mut stdout = stdout().lock();
    match stdout.write_fmt(text).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            eprintln!("stillcore: cannot write to standard output: {error}");
            std::process::exit(1)
        }
        _ => {}
    }
}

macro_rules! print {
    ($($text:tt)*) => { $crate::stdout::write(format_args!($($text)*)) };
}

macro_rules! println {
    () => { $crate::stdout::write(format_args!("\n")) };
    ($($text:tt)*) => { $crate::stdout::write(format_args!("{}\n", format_args!($($text)*))) };
}
