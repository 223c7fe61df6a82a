//! Isolation applied, verified and undone over file trees, whatever happens meanwhile.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "a test that cannot go on fails")]

mod engine;
mod heal;
mod journals;
mod others;
mod support;
mod undone;
mod verify;
