//! Boot lines computed, and written where each boot loader keeps them.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "a test that cannot go on fails")]

mod lines;
mod loaders;
