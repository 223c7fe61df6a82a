//! Who waited for a lock, who held it, and what the holder did meanwhile.
//!
//! Only waits are recorded unless asked otherwise, never the locking of a free lock: a futex call
//! is made only when a thread has to wait or to wake another one. [`every`] counts every locking,
//! where that was recorded, and [`conditions`] the signals of threads that do not hold the mutex.
//! [`futex`] reads a call, [`waits`] follows waits, [`kernel`] those for locks of the kernel,
//! [`holders`] finds who held a lock, [`past`] keeps who ran meanwhile, [`explain`] puts the two
//! together, [`sums`] adds up, [`section`] gives names, [`shape`] is the answer.

mod conditions;
mod every;
mod explain;
mod futex;
mod holders;
mod kernel;
mod log;
mod past;
mod section;
pub mod shape;
mod sums;
#[cfg(test)]
mod tests;
mod wait;
pub(crate) mod waits;

use model::syscalls::Syscall;
pub(crate) use shape::LockKind;

/// What a thread waits for in a call, where its arguments show that it is a lock. `glibc`: whether
/// its process uses that C library.
pub(crate) fn lock_waited_for(call: &Syscall, arguments: [u64; 3], glibc: bool) -> Option<LockKind> {
    futex::FutexCall::of(call, arguments, glibc).map(|call| call.kind).filter(|kind| kind.is_lock())
}
