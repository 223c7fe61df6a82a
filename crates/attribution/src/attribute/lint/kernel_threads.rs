//! Kernel threads that wake a real-time thread and are less urgent than it: it waits for whatever
//! runs before them.
//!
//! On PREEMPT_RT these are also the threads of interrupts and of soft timers (Linux
//! Documentation/core-api/real-time/differences.rst). Softirqs of other kernels have no thread of
//! their own as long as `ksoftirqd` is not needed.

use crate::prio::Prio;
use model::watch::LintFacts;
use rustc_hash::FxHashMap;

#[derive(Debug)]
struct KernelThread {
    comm: String,
    prio: Prio,
}

/// The kernel's threads, with their priorities as the scheduler saw them last.
#[derive(Debug, Default)]
pub(super) struct KernelThreads(FxHashMap<i32, KernelThread>);

impl KernelThreads {
    pub(super) fn new(facts: Option<&LintFacts>) -> Self {
        let threads = facts.into_iter().flat_map(|facts| &facts.kernel_threads);
        let one = |thread: &model::watch::KernelThreadName| {
            (thread.tid, KernelThread { comm: thread.comm.clone(), prio: Prio::UNKNOWN })
        };
        Self(threads.map(one).collect())
    }

    /// The scheduler shows a thread's priority.
    pub(super) fn runs(&mut self, tid: i32, prio: Prio) {
        if let Some(thread) = self.0.get_mut(&tid) {
            thread.prio = prio;
        }
    }

    /// Which thread it is, if it is one of the kernel's and less urgent than `prio`.
    pub(super) fn below(&self, tid: i32, prio: Prio) -> Option<String> {
        let thread = self.0.get(&tid)?;
        let is_below = thread.prio.is_known() && prio.is_known() && thread.prio > prio;
        let words = thread.prio.words().filter(|_| is_below)?;
        Some(format!("{}[{tid}], {words}", thread.comm))
    }
}
