//! The command tested as its users run it: one program, so that it is linked once and its support
//! is compiled once. What boots guests is in `../guests`.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::format_push_string, reason = "a test that cannot go on fails")]

#[path = "../../../ftrace/tests/common/mod.rs"]
mod common;
#[path = "../../../report/src/fixture/mod.rs"]
#[allow(dead_code, unused_imports, reason = "only its pages are looked at here")]
mod fixture;
#[path = "../readers/mod.rs"]
mod readers;
#[path = "../support/mod.rs"]
mod support;

mod attacks;
mod audit;
mod bad_input;
mod bad_sets;
mod boot_line;
mod bulk_sets;
mod compare;
mod compare_turns;
mod cpuset;
mod cyclictest;
mod disturb_kill;
mod experiment;
mod export;
mod graph;
mod graph_latency;
mod guest_scripts;
mod hold;
mod hosts;
mod hosts_ssh;
mod keeps;
mod lab_matrix;
mod lifecycle;
mod lint;
mod locks;
mod measure;
mod measure_clocks;
mod measure_ipi;
mod measure_periodic;
mod measure_runs;
mod measure_taskset;
mod measure_trace;
mod model_locks;
mod monitor;
mod pages;
mod pods;
mod readers_in_short;
mod report_browser;
mod report_formats;
mod resources;
mod sched_study;
mod shells;
mod stop_over;
mod study;
mod study_merge;
mod study_papers;
mod task_model;
mod top;
mod trace_answer;
mod trace_export;
mod transcripts;
mod watch;
mod words;
