//! A thread of Cobalt, the real-time core that Xenomai 3 runs beside Linux, made by the core's own
//! system calls: what `pthread_create` and `clock_nanosleep` of libcobalt ask for
//! (lib/cobalt/init.c, thread.c and clock.c of Xenomai 3.3).
//!
//! The process binds to the core, which checks that both speak the same interface, and locks its
//! memory. The thread gets its priority from Linux first, then a twin in the core, in which it is
//! scheduled from then on, in "primary mode". Any call of Linux takes it out of that mode, and the
//! next sleep takes it back. So what it does between two sleeps must not call Linux: reading a
//! clock by the vDSO does not.
//!
//! Not taken over from the library, because nothing here needs it: the heaps for mutexes, the twin
//! of the main thread, the handlers of the signals by which the core asks for a stack trace or an
//! early return to primary mode. Without a handler the latter (SIGWINCH) is ignored.
//!
//! No kernel with Cobalt is in the lab. `tests/it/foreign` answers these calls in its place and
//! compares each with those of libcobalt.

use crate::sched;
use model::sample::Policy;
use std::cell::Cell;
use std::io;
use std::sync::OnceLock;

/// What sets a call of Cobalt apart from Linux's: `__COBALT_SYSCALL_BIT`.
const CALL: libc::c_long = 0x1000_0000;
// Their numbers (include/cobalt/uapi/syscall.h).
const BIND: libc::c_long = 0;
const THREAD_CREATE: libc::c_long = 1;
const THREAD_SETMODE: libc::c_long = 3;
const THREAD_GETSCHEDPARAM: libc::c_long = 8;
const CLOCK_NANOSLEEP: libc::c_long = 25;
const GET_CURRENT: libc::c_long = 92;

/// `XENOMAI_ABI_REV` of Xenomai 3.3. Of 3.2 it is 18, whose core may count CLOCK_MONOTONIC
/// otherwise than Linux does.
const REVISION: u32 = 19;
/// `XENOMAI_FEAT_DEP`: several CPUs, mutexes without calls, priority ceilings.
const FEATURES: u32 = 0x8000_0000 | 0x2000_0000 | 0x0400_0000;
/// `PTHREAD_WARNSW`: a signal at each change of mode.
const WARN: u32 = 0x4000;

/// `struct cobalt_bindreq`.
#[repr(C)]
struct BindRequest {
    features: u32,
    revision: u32,
    /// `struct cobalt_featinfo`, which the core fills in.
    reply: [u64; 36],
}

/// `struct sched_param_ex`; what follows the priority belongs to policies that are not used here.
#[repr(C)]
#[derive(Default)]
struct Parameters {
    priority: i32,
    padding: u32,
    of_others: [u64; 6],
}

thread_local! {
    /// Whether the calling thread has a twin in the core.
    static ATTACHED: Cell<bool> = const { Cell::new(false) };
}

/// Makes the calling thread one of Cobalt, under SCHED_FIFO. ENOSYS on a kernel without the core,
/// EAGAIN where it is stopped, ENOEXEC where its interface is not that of Xenomai 3.3, EINVAL where
/// it lacks a feature or the priority is none.
pub(super) fn attach(policy: &Policy) -> io::Result<()> {
    static BOUND: OnceLock<Result<(), i32>> = OnceLock::new();
    let bound = BOUND.get_or_init(|| bind().map_err(|error| error.raw_os_error().unwrap_or(libc::EIO)));
    bound.map_err(io::Error::from_raw_os_error)?;
    sched::set_scheduler(libc::SCHED_FIFO as u32, policy.priority)?;
    create(policy.priority)?;
    handle()?;
    ATTACHED.set(true);
    Ok(())
}

/// Whether the calling thread is one of Cobalt.
#[inline]
pub(super) fn is_attached() -> bool {
    ATTACHED.get()
}

/// What the library does when a thread's function has returned. The twin ends with the thread.
pub(super) fn leave() -> io::Result<()> {
    let nowhere = std::ptr::null_mut::<u32>();
    // SAFETY: two masks, and no place for the mode of before.
    answer(unsafe { libc::syscall(CALL | THREAD_SETMODE, WARN, 0, nowhere) })
}

/// The policy that the core has the calling thread under.
pub(super) fn effective() -> io::Result<Policy> {
    let (mut policy, mut parameters) = (0i32, Parameters::default());
    // SAFETY: the core writes the two that it is given, and finds the thread by its key.
    answer(unsafe {
        libc::syscall(CALL | THREAD_GETSCHEDPARAM, key(), &raw mut policy, &raw mut parameters)
    })?;
    Ok(Policy::cobalt(&sched::name(policy), u32::try_from(parameters.priority).unwrap_or(0)))
}

/// Sleeps until a clock of the core, CLOCK_MONOTONIC or CLOCK_REALTIME, reaches a time. Returns
/// early, without error, when a signal arrives.
#[inline]
pub(super) fn sleep(clock: libc::clockid_t, time: &libc::timespec) {
    let nowhere = std::ptr::null_mut::<libc::timespec>();
    let time = std::ptr::from_ref(time);
    // SAFETY: `time` is a valid timespec, and an absolute sleep requests no remainder.
    unsafe { libc::syscall(CALL | CLOCK_NANOSLEEP, clock, libc::TIMER_ABSTIME, time, nowhere) };
}

fn bind() -> io::Result<()> {
    let mut request = BindRequest { features: FEATURES, revision: REVISION, reply: [0; 36] };
    // SAFETY: the core reads and writes one such request.
    answer(unsafe { libc::syscall(CALL | BIND, &raw mut request) })?;
    // The core demands locked memory: a page that is not there is a call of Linux.
    // SAFETY: takes flags alone.
    answer(libc::c_long::from(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) }))
}

fn create(priority: u32) -> io::Result<()> {
    let parameters = Parameters { priority: priority as i32, ..Parameters::default() };
    let mut window = 0u32;
    // SAFETY: the core reads the parameters and writes the place of the thread's window in a heap.
    answer(unsafe {
        libc::syscall(
            CALL | THREAD_CREATE,
            key(),
            libc::SCHED_FIFO,
            &raw const parameters,
            0,
            &raw mut window,
        )
    })
}

/// Asks for the number of the thread's twin, which is an error where it has none.
fn handle() -> io::Result<u32> {
    let mut handle = 0u32;
    // SAFETY: the core writes one number.
    answer(unsafe { libc::syscall(CALL | GET_CURRENT, &raw mut handle) })?;
    Ok(handle)
}

/// What a thread is called in calls of the core: any number that no other thread of the process
/// has.
fn key() -> libc::c_ulong {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::pthread_self() as libc::c_ulong }
}

fn answer(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn the_structures_are_as_long_as_the_cores() {
        assert_eq!((size_of::<BindRequest>(), offset_of!(BindRequest, reply)), (296, 8));
        assert_eq!((size_of::<Parameters>(), offset_of!(Parameters, of_others)), (56, 8));
    }

    #[test]
    fn a_kernel_without_the_core_is_told_by_its_error() {
        let refused = std::thread::spawn(|| {
            (attach(&Policy::cobalt("SCHED_FIFO", 1)).unwrap_err().raw_os_error(), is_attached())
        });
        assert_eq!(refused.join().unwrap(), (Some(libc::ENOSYS), false));
    }
}
