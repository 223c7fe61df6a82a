//! The jobs of a program's threads: when each was released, how long it executed and slept, when
//! it was done. Any trace with the scheduler's events shows them; with system calls
//! (`raw_syscalls`) also in what a thread waited.
//!
//! [`follow`] cuts a thread into activations, from sleep to sleep; [`separate`] makes jobs of them
//! by the [`kind`] of sleep between two jobs, and [`sums`] what they have in common, for each kind
//! that may be it. [`interrupts`] is what is not the thread's own time, [`rivals`] for whom it
//! waited.
//! [`locks`] counts what jobs request of locks, and for how long they hold them ([`lock_shape`]).
//! [`shape`] is the answer, [`read`] the way to it from a file and [`live`] from a recording that
//! goes on: [`pass`] is what both do with an event, [`kinds`] with an activation. [`dispatched`] is
//! how late the kernel lets threads run on each CPU; [`stretch`] is what threads did when, in a
//! part of the trace.
//!
//! After LiME (RTAS 2025), without its kernel probes.

mod dispatched;
mod follow;
mod interrupts;
pub mod kind;
mod kinds;
pub mod live;
mod lock_jobs;
mod lock_known;
pub mod lock_shape;
mod lock_state;
mod lock_turns;
mod locks;
#[cfg(test)]
mod locks_tests;
mod pass;
mod program;
pub mod read;
mod rivals;
mod separate;
pub mod shape;
pub mod stretch;
mod sums;
#[cfg(test)]
mod tests;
