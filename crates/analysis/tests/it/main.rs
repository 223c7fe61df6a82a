//! The tests of the crate from outside: one program, so that it is linked once.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "a test that cannot go on fails")]

#[path = "../../../ftrace/tests/common/mod.rs"]
mod common;
#[path = "../damaged/mod.rs"]
mod damaged;
#[path = "../damaged/samples.rs"]
mod samples;
#[path = "../support/mod.rs"]
mod support;

mod damaged_run;
mod fuzz_corpus;
mod oracle;
mod run_directory;

/// That of the shipped command.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
