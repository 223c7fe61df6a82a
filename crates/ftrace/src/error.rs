//! What can be wrong with a trace: one enum, each variant with the place, the value found and what
//! was expected.

use std::io;
use std::path::PathBuf;

/// Why a trace, or a part of one, cannot be read or written.
///
/// `Display` is a lower-case fragment that names the file and, where there is one, the byte or
/// line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried, as a verb: "open", "read", "write".
        action: &'static str,
        /// The system's reason.
        source: io::Error,
    },
    /// The bytes at `offset` cannot be what they should be.
    #[error("{}: byte {offset}: {what} is {value}, expected {expected}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where in the file (in the decompressed section, where `what` says so).
        offset: u64,
        /// Which part of the format.
        what: &'static str,
        /// What was found.
        value: String,
        /// What would have been right.
        expected: String,
    },
    /// The file ends too early.
    #[error("{}: ends inside {what}: {need} more bytes expected at byte {offset}", path.display())]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where the missing bytes should have been.
        offset: u64,
        /// Which part of the format.
        what: &'static str,
        /// How many bytes should have been there.
        need: u64,
    },
    /// A valid file of a kind this reader does not know.
    #[error("{}: {what} {value} is not supported, expected {expected}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// Which part of the format.
        what: &'static str,
        /// What was found.
        value: String,
        /// What can be read.
        expected: String,
    },
    /// The text of an event format or of `header_page` cannot be parsed.
    #[error("format of {event}: line {line}: `{text}`, expected {expected}")]
    Format {
        /// `system:name` as far as known, or `header_page`.
        event: String,
        /// Line number, from 1.
        line: usize,
        /// The line (cut to 120 characters).
        text: String,
        /// What would have been right.
        expected: &'static str,
    },
    /// A trace to be written contradicts itself.
    #[error("cannot write a trace: {what} is {value}, expected {expected}")]
    Input {
        /// Which part of the input.
        what: &'static str,
        /// What was given.
        value: String,
        /// What would have been right.
        expected: &'static str,
    },
}
