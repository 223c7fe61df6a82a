//! The tests of the crate from outside: one program, so that it is linked once. Those that start
//! themselves again are in `disturb.rs`.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "a test that cannot go on fails")]

#[path = "../support/mod.rs"]
mod support;

mod audit;
mod boot_lines;
mod boot_loaders;
mod catalogue;
mod isolate;
mod isolate_others;
mod journals;
mod keep;
mod narrow;
mod verify;
