//! This crate's system calls, seen from outside: what a kernel is asked for.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on fails")]

// Its recordings are of this architecture.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod foreign;
