//! The tests of the crate from outside: one program, so that it is linked once.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "a test that cannot go on fails")]

#[path = "../common/mod.rs"]
mod common;

mod fixtures;
mod formats;
mod fuzz_corpus;
mod malformed;
mod pages;
mod streams;
mod trace_cmd;

/// That of the shipped command.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
