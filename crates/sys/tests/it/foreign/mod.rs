//! Scheduling classes of kernels that cannot be booted here: what this crate asks of them, against
//! what their own libraries ask.
//!
//! A program is traced (`tracer`), and its calls of such a kernel are answered in the kernel's
//! place and written down (`litmus`, `cobalt`; the words are `call`). `fixtures/foreign` holds what
//! was written down while the kernel's own library took a thread through its life; here the program
//! is this test program, which calls itself to be traced (`drivers`).
//!
//! Any program can be recorded, one that is linked with a library, or the whole command:
//! `STILLCORE_RECORD="KERNEL PROGRAM ARGUMENTS"`, KERNEL being `cobalt` or a plug-in of LITMUS^RT,
//! and `cargo test -p stillcore-sys --test it -- --nocapture record`.

mod call;
mod cobalt;
mod drivers;
mod kernel;
mod litmus;
mod recording;
mod tasks;
mod tracer;
