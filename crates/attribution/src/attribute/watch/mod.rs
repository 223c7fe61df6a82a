//! An unmodified program as the scheduler sees it: what released each of its threads, how long they
//! waited for a CPU, what preempted them, and how wake-ups run from thread to thread.
//!
//! [`event`] is a kernel event, [`decode`] reads it from a trace ([`kernel_lock`] the owner of a
//! lock of the kernel), [`waker`] finds the waker, [`thread`] follows one thread, [`program`] all
//! of them, [`chain`] the wake-ups between them, [`read`] builds a run's section; [`shape`] is the
//! answer.
//!
//! Sources: Linux kernel/sched/core.c (`try_to_wake_up`, `__schedule`), kernel/time/hrtimer.c,
//! Documentation/trace/events.rst.

pub(crate) mod chain;
pub(crate) mod decode;
pub mod event;
mod kernel_lock;
mod pass;
pub mod program;
pub mod read;
pub mod shape;
#[cfg(test)]
mod tests;
pub(crate) mod thread;
pub(crate) mod waker;

pub use read::read;
pub use shape::WatchSection;
