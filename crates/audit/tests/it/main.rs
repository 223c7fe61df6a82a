//! The audit and the plan on captured machines, and the catalogue against its schema.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "a test that cannot go on fails")]

mod audit;
mod catalogue;
mod keep;
mod narrow;
