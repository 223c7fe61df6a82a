//! Recording: the kernel's own events on the measured CPUs, in a tracing instance that is stillcore's alone.
//!
//! Never the top-level buffer, never a function-filter file: a machine may be locked down, and somebody else may be tracing. Everything
//! is enabled and settled before the first window, because enabling a tracepoint sends IPIs itself; windows only toggle `tracing_on`.
//! See `Documentation/trace/ftrace.rst`, "Instances".

pub mod cost;
pub mod instance;
pub mod reader;
pub mod recorder;
pub mod symbols;
pub mod tracefs;
