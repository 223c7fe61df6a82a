//! The policy of the calling thread.

use crate::sched::{self, POLICIES, ask};
use crate::{cobalt, litmus};
use model::sample::Policy;
use std::io;

/// Sets the calling thread's policy. EPERM without privilege or an RLIMIT_RTPRIO that allows it,
/// and for SCHED_DEADLINE also where the thread's affinity is narrower than its root domain; EBUSY
/// where SCHED_DEADLINE has no bandwidth left; EINVAL for a name or parameters that the kernel does
/// not have.
pub fn set_policy(policy: &Policy) -> io::Result<()> {
    if let Some(plugin) = policy.litmus_plugin() {
        return litmus::admit(plugin, policy);
    }
    if policy.is_cobalt() {
        return cobalt::attach(policy);
    }
    let known = POLICIES.iter().find(|(name, _)| *name == policy.name);
    let (_, number) = known.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    ask(*number as u32, policy.priority, policy.reservation)
}

/// The policy the kernel reports for the calling thread.
pub fn effective() -> io::Result<Policy> {
    if cobalt::is_attached() { cobalt::effective() } else { sched::effective() }
}

/// Ends what [`set_policy`] began where a scheduling class wants a call before its thread ends;
/// of the POSIX policies none does, and they stay.
pub fn leave_class(policy: &Policy) -> io::Result<()> {
    match policy.litmus_plugin() {
        Some(_) => litmus::leave(),
        None if policy.is_cobalt() => cobalt::leave(),
        None => Ok(()),
    }
}

/// Whether this process may use SCHED_FIFO: requests the lowest priority in a thread of its own and
/// lets it end.
pub fn fifo_allowed() -> bool {
    std::thread::spawn(|| set_policy(&Policy::fifo(1)).is_ok()).join().unwrap_or(false)
}
