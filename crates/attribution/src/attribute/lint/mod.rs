//! What a real-time program does that costs it its deadlines, as the trace shows it: page faults,
//! allocation, relative sleeps, files, threads made on the way, and what is set up wrongly.
//!
//! A rule holds for threads under a real-time policy, and for their loop: from a thread's first
//! wait to its last. What it does before is its start, and what comes behind is its end. [`rules`]
//! lists them with what helps; [`thread`] follows one thread, [`program`] all of them;
//! [`kernel_threads`] knows those of the kernel; [`facts`] judges what was read of `/proc`;
//! [`shape`] is the answer.
//!
//! Sources: Linux Documentation/locking/rt-mutex.rst, sched(7), mlockall(2), clock_nanosleep(2);
//! the checklist of the Real-Time Linux project ("HOWTO: Build a simple RT application").

pub mod facts;
mod kernel_threads;
pub(crate) mod program;
pub mod rules;
pub mod shape;
mod signals;
pub mod suppress;
#[cfg(test)]
mod tests;
mod thread;
