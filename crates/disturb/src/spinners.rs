//! Processes that share the stressor's memory and only spin, one a CPU, so that its memory is what
//! these CPUs run while it works elsewhere.
//!
//! The kernel interrupts a CPU for an address space only while it runs that (arch/x86/mm/tlb.c,
//! kernel/sched/membarrier.c): sleepers would be left alone. Threads would do as well, but for a
//! cpuset partition: who is to run on its CPUs has to be in its group, and all threads of a process
//! are in one group (`admin-guide/cgroup-v2.rst`, "Threads"). Processes that share their memory
//! (`CLONE_VM`) are not.

use super::Error;
use journal::enter;
use model::Cpus;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_parent_process_death_signal, waitpid};
use std::hint::spin_loop;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of a spinner's stack: it calls nothing.
const STACK: usize = 64 << 10;

/// Calls `body` while a process spins on each CPU; its end ends them. Absent where a CPU takes
/// none.
pub(super) fn with_spinners<T>(cpus: &Cpus, body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let stop = AtomicBool::new(false);
    let mut spinners = Vec::new();
    for cpu in cpus.iter() {
        let spinner =
            Spinner::start(&stop).map_err(Error::refused("start a process that shares its memory"))?;
        let placed = enter::place(spinner.pid.as_raw_nonzero().get(), &Cpus::one(cpu));
        spinners.push(spinner);
        placed.map_err(|error| {
            Error::absent(format!("CPU {cpu} takes no process of the stressor's: {error}"))
        })?;
    }
    body()
}

/// A process that shares our memory and spins. Its end comes before that of its stack.
struct Spinner<'a> {
    pid: Pid,
    stop: &'a AtomicBool,
    _stack: Box<[u8]>,
}

impl<'a> Spinner<'a> {
    fn start(stop: &'a AtomicBool) -> io::Result<Self> {
        let mut stack = vec![0_u8; STACK].into_boxed_slice();
        // SAFETY: one past the end of an allocation may be computed.
        let top = unsafe { stack.as_mut_ptr().add(STACK) };
        // Stacks grow downwards here, and begin at a multiple of 16.
        let top = top.map_addr(|address| address & !15).cast();
        let word: *const AtomicBool = stop;
        // SAFETY: `spin` touches nothing but the word, which outlives it, as its stack does: `drop`
        // waits for its end.
        let pid = unsafe { libc::clone(spin, top, libc::CLONE_VM | libc::SIGCHLD, word.cast_mut().cast()) };
        let pid = Pid::from_raw(pid).filter(|_| pid > 0).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { pid, stop, _stack: stack })
    }
}

impl Drop for Spinner<'_> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // One that is held off its CPU would see the word late.
        let _ = kill_process(self.pid, Signal::KILL);
        while matches!(waitpid(Some(self.pid), WaitOptions::empty()), Err(Errno::INTR)) {}
    }
}

/// All that a spinner does. Its thread-local memory is its maker's: no call here may touch that,
/// and rustix's own system calls do not.
extern "C" fn spin(stop: *mut libc::c_void) -> libc::c_int {
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    // SAFETY: the maker keeps the word until this process has ended.
    let stop = unsafe { &*stop.cast::<AtomicBool>() };
    while !stop.load(Ordering::Relaxed) {
        spin_loop();
    }
    0
}

/// The first of these CPUs, for the thread that works, and the others, for those that spin; `None`
/// where there is only one.
pub(super) fn worker_and_others(cpus: &Cpus) -> Option<(Cpus, Cpus)> {
    const MOST: usize = 8;
    let mut all = cpus.iter();
    let first = Cpus::one(all.next()?);
    let others: Cpus = all.take(MOST).collect();
    (!others.is_empty()).then_some((first, others))
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::sched;

    #[test]
    fn the_body_runs_while_every_cpu_has_its_thread_and_all_end() {
        let cpus: Cpus = sched::affinity().unwrap().iter().take(2).collect();
        let spinning = || {
            let children = std::fs::read_to_string("/proc/thread-self/children").unwrap_or_default();
            children
                .split_whitespace()
                .filter_map(|pid| sched::affinity_of(pid.parse().ok()?).ok())
                .collect::<Vec<_>>()
        };
        let seen = with_spinners(&cpus, || Ok(spinning())).unwrap();
        if std::path::Path::new("/proc/thread-self/children").exists() {
            assert!(cpus.iter().all(|cpu| seen.contains(&Cpus::one(cpu))), "{seen:?}");
        }
        assert!(spinning().is_empty());
        let none = Cpus::one(model::cpus::MAX_CPU);
        assert!(with_spinners(&none, || Ok(())).unwrap_err().to_string().contains("takes no process"));
    }

    #[test]
    fn one_cpu_has_nobody_to_interrupt() {
        assert!(worker_and_others(&Cpus::one(3)).is_none());
        let (first, others) = worker_and_others(&[3, 5, 6].into_iter().collect()).unwrap();
        assert_eq!((first, others), (Cpus::one(3), [5, 6].into_iter().collect()));
    }
}
