//! The tests of the crate from outside: one program, so that it is linked once.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "a test that cannot go on fails")]

#[path = "../common/mod.rs"]
mod common;

mod adversary;
mod bounds_peer;
mod core_simulation;
mod executors_peer;
mod fp_fixture;
mod fp_lanes;
mod fp_simulation;
mod generate;
mod global_formulas;
mod global_patterns;
mod global_simulation;
mod locks;
mod locks_fixture;
mod locks_programs;
mod locks_suspending;
mod omlp_fixture;
mod overheads_simulation;
mod probabilistic_simulation;
