//! Admission of a thread by LITMUS^RT: the sequence that a modified cyclictest takes (Cerqueira and
//! Brandenburg, OSPERT 2013, section 2.3 and Fig. 2). The thread opens the control device and maps
//! its control page; under a partitioned plug-in it migrates to its CPU; `set_rt_task_param` has
//! the kernel validate its parameters; `task_mode(LITMUS_RT_TASK)`, which requests SCHED_LITMUS as
//! a policy, admits it, and `task_mode(BACKGROUND_TASK)` takes it out again.
//!
//! The kernel's side is that of LITMUS^RT from 2016 on, whose calls are ioctls of
//! `/dev/litmus/ctrl` (`include/litmus/ctrlpage.h`, `rt_param.h`). No such kernel is in the lab.
//! `tests/it/foreign` answers these calls in a kernel's place, records them, and compares each,
//! argument by argument, with what liblitmus asked for in the same sequence.

use crate::sched::{self, SCHED_LITMUS};
use model::sample::Policy;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// The ioctl that stands for `set_rt_task_param` (`litmus_syscall_id_t` counts from 2006).
const SET_RT_TASK_PARAM: u64 = 2007;
/// The device that takes it.
const CONTROL: &str = "/dev/litmus/ctrl";
/// Length of the control page.
const PAGE: usize = 4096;
/// Priorities of P-FP: 1 is the highest of 512 (`LITMUS_MAX_PRIORITY`).
const PRIORITIES: u32 = 512;
/// Of which this is what a priority of 99 is.
const HIGHEST: u32 = 1;

/// `struct rt_task`: a thread's parameters for the kernel. Times in ns.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct RtTask {
    exec_cost: u64,
    period: u64,
    relative_deadline: u64,
    phase: u64,
    cpu: u32,
    priority: u32,
    /// RT_CLASS_HARD 0, SOFT 1, BEST_EFFORT 2.
    class: u32,
    /// NO_ENFORCEMENT is 0: a job may overrun, as in the paper.
    budget: u32,
    /// TASK_SPORADIC is 0.
    release: u32,
    /// The kernel copies these bytes too, and the library clears them.
    padding: u32,
}

/// RT_CLASS_SOFT, the library's default.
const SOFT: u32 = 1;

/// Whether tasks of a plug-in stay on one CPU each.
pub fn is_partitioned(plugin: &str) -> bool {
    matches!(plugin, "P-FP" | "PSN-EDF" | "P-RES")
}

/// A thread's parameters for a policy; `cpu` is its CPU under a partitioned plug-in. The kernel
/// demands one that is online of every plug-in, so a global one, which ignores it, gets the
/// library's default, 0. EINVAL without a reservation.
fn parameters(plugin: &str, policy: &Policy, cpu: u32) -> io::Result<RtTask> {
    let reservation = policy.reservation.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
    Ok(RtTask {
        exec_cost: reservation.runtime_ns,
        period: reservation.period_ns,
        relative_deadline: reservation.deadline_ns,
        cpu: if is_partitioned(plugin) { cpu } else { 0 },
        // POSIX counts upwards, P-FP downwards; plug-ins of EDF ignore it.
        priority: (HIGHEST + 99u32.saturating_sub(policy.priority)).min(PRIORITIES - 1),
        class: SOFT,
        ..RtTask::default()
    })
}

/// Admits the calling thread. ENOENT without the control device, ENOTTY where it takes no calls,
/// EINVAL for what the kernel or the active plug-in does not admit.
pub(super) fn admit(plugin: &str, policy: &Policy) -> io::Result<()> {
    let cpu = sched::affinity()?.iter().next().unwrap_or(0);
    let parameters = parameters(plugin, policy, cpu)?;
    let control = File::options().read(true).write(true).open(CONTROL)?;
    map_page(&control)?;
    if is_partitioned(plugin) {
        sched::pin(&model::Cpus::one(cpu))?;
    }
    set_parameters(&control, &parameters)?;
    sched::set_scheduler(SCHED_LITMUS, 0)
}

/// Takes the calling thread out again: it is an ordinary one.
pub(super) fn leave() -> io::Result<()> {
    sched::set_scheduler(libc::SCHED_OTHER as u32, 0)
}

/// Maps the calling thread's control page, until the process ends. Nothing here reads it. The
/// kernel makes the page when it is mapped, and leaves out bookkeeping for a thread without one,
/// which is then not in the state of a thread that the library has made.
fn map_page(control: &File) -> io::Result<()> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice; it replaces none, and nothing
    // refers to it.
    let page =
        unsafe { libc::mmap(std::ptr::null_mut(), PAGE, access, libc::MAP_PRIVATE, control.as_raw_fd(), 0) };
    if page == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `union litmus_syscall_args`, its member of two arguments; the largest, of `od_open`, is as long
/// as three.
#[repr(C)]
struct Arguments {
    pid: i32,
    parameters: *const RtTask,
    rest: u64,
}

fn set_parameters(control: &File, parameters: &RtTask) -> io::Result<()> {
    let arguments = Arguments { pid: sched::tid(), parameters, rest: 0 };
    // SAFETY: the device's ioctl reads an `Arguments` and the `RtTask` that it points to; both
    // outlive the call.
    let result = unsafe { libc::ioctl(control.as_raw_fd(), SET_RT_TASK_PARAM as _, &raw const arguments) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::sample::Reservation;

    fn policy(priority: u32) -> Policy {
        let reservation = Reservation { runtime_ns: 100_000, deadline_ns: 1_000_000, period_ns: 1_000_000 };
        Policy::litmus("P-FP", priority, reservation)
    }

    #[test]
    fn every_priority_of_posix_is_one_of_the_plug_in_and_order_is_kept() {
        let of = |priority| parameters("P-FP", &policy(priority), 0).unwrap().priority;
        assert!((1..=99).map(of).is_sorted_by(|low, high| low > high));
        assert_eq!((of(99), of(1)), (HIGHEST, 99));
    }

    #[test]
    fn a_partitioned_task_has_its_cpu_and_a_global_one_the_first() {
        let cpu = |plugin| parameters(plugin, &policy(99), 3).unwrap().cpu;
        assert_eq!(["P-FP", "PSN-EDF", "GSN-EDF"].map(cpu), [3, 3, 0]);
        assert!(parameters("P-FP", &Policy::fifo(3), 0).is_err());
    }

    #[test]
    fn the_structures_are_as_long_as_the_kernels() {
        assert_eq!((size_of::<RtTask>(), std::mem::offset_of!(RtTask, release)), (56, 48));
        assert_eq!((size_of::<Arguments>(), std::mem::offset_of!(Arguments, parameters)), (24, 8));
    }
}
