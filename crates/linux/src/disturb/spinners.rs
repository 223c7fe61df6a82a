//! Threads that only spin, one a CPU, so that the process is what these CPUs run while its first thread works elsewhere.
//!
//! The kernel interrupts a CPU for a process only while it runs that process: sleeping threads would be left alone.

use super::Error;
use crate::sys::sched;
use model::Cpus;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::yield_now;

/// Calls `body` while a thread spins on each CPU; its end ends them. An error where a CPU took no thread.
pub(super) fn with_spinners<T>(cpus: &Cpus, body: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let (stop, tried, there) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for cpu in cpus.iter() {
            let (stop, tried, there) = (&stop, &tried, &there);
            scope.spawn(move || {
                let pinned = sched::pin(&Cpus::one(cpu)).is_ok();
                there.fetch_add(usize::from(pinned), Ordering::Relaxed);
                tried.fetch_add(1, Ordering::Release);
                while pinned && !stop.load(Ordering::Relaxed) {
                    spin_loop();
                }
            });
        }
        while tried.load(Ordering::Acquire) < cpus.len() {
            yield_now();
        }
        let there = there.load(Ordering::Relaxed);
        let outcome = if there == cpus.len() {
            body()
        } else {
            Err(Error::absent(format!("only {there} of the CPUs {cpus} took a thread")))
        };
        stop.store(true, Ordering::Relaxed);
        outcome
    })
}

/// The first of these CPUs, for the thread that works, and the others, for those that spin; `None` where there is only one.
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

    #[test]
    fn the_body_runs_while_every_cpu_has_its_thread_and_all_end() {
        let cpus: Cpus = sched::affinity().unwrap().iter().take(2).collect();
        assert_eq!(with_spinners(&cpus, || Ok(7)).unwrap(), 7);
        let none = Cpus::one(model::cpus::MAX_CPU);
        assert!(with_spinners(&none, || Ok(())).unwrap_err().to_string().contains("only 0 of the CPUs"));
    }

    #[test]
    fn one_cpu_has_nobody_to_interrupt() {
        assert!(worker_and_others(&Cpus::one(3)).is_none());
        let (first, others) = worker_and_others(&[3, 5, 6].into_iter().collect()).unwrap();
        assert_eq!((first, others), (Cpus::one(3), [5, 6].into_iter().collect()));
    }
}
