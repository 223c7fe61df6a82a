//! The rules, each with what it finds and what to do.

use serde::{Deserialize, Serialize};

/// A rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A page was not there.
    PageFault,
    /// The address space changed.
    Memory,
    /// A sleep relative to now.
    RelativeSleep,
    /// A wait for a lock that does not inherit, held by a less urgent thread.
    NoInheritance,
    /// A condition was signalled without the mutex of those who waited for it.
    Condition,
    /// A kernel thread that is less urgent woke it.
    KernelThread,
    /// A signal came.
    Signal,
    /// A file was opened, read or written.
    File,
    /// Something was written to a terminal.
    Terminal,
    /// A thread or process was made.
    Thread,
    /// It ran under another policy before.
    BornOther,
    /// The highest priority, of the kernel's own threads.
    Priority,
    /// No limit on the time that it may run without sleeping.
    NoBudget,
    /// Isolated CPUs and others in one affinity.
    Affinity,
}

/// All rules, with the name used in suppressions, what is found, and what to do.
pub const RULES: [(Rule, &str, &str, &str); 14] = [
    (
        Rule::PageFault,
        "page-fault",
        "a page fault",
        "mlockall(MCL_CURRENT | MCL_FUTURE) at the start, and touch stack and heap before the loop",
    ),
    (
        Rule::Memory,
        "memory",
        "memory was mapped or given back",
        "allocate before the loop; mallopt(M_TRIM_THRESHOLD, -1) and mallopt(M_MMAP_MAX, 0) keep what is freed",
    ),
    (
        Rule::RelativeSleep,
        "relative-sleep",
        "a sleep relative to now, so that each period is longer by the work and the delays in it",
        "clock_nanosleep with TIMER_ABSTIME until the next release",
    ),
    (
        Rule::NoInheritance,
        "no-inheritance",
        "a wait for a lock without priority inheritance that a less urgent thread held",
        "pthread_mutexattr_setprotocol(PTHREAD_PRIO_INHERIT)",
    ),
    (
        Rule::Condition,
        "condition",
        "a condition was signalled without the mutex of those who waited for it, so that another thread may take that before them",
        "pthread_cond_signal and pthread_cond_broadcast between pthread_mutex_lock and pthread_mutex_unlock",
    ),
    (
        Rule::KernelThread,
        "kernel-thread",
        "it waited for a thread of the kernel that is less urgent, and so for all that runs before that one",
        "give the kernel's thread a higher priority than this one (chrt --pid), or wait for something that needs none",
    ),
    (
        Rule::Signal,
        "signal",
        "a signal",
        "block signals in this thread (pthread_sigmask) and take them in another one (sigwaitinfo, signalfd)",
    ),
    (
        Rule::File,
        "file",
        "a file was opened, read or written",
        "leave files to another thread, over a queue that does not block",
    ),
    (
        Rule::Terminal,
        "terminal",
        "something was written to a terminal",
        "leave output to another thread, over a queue that does not block",
    ),
    (Rule::Thread, "thread", "a thread or process was made", "make threads before the loop"),
    (
        Rule::BornOther,
        "born-other",
        "it ran under another policy before it became real-time",
        "give the policy to pthread_create (pthread_attr_setinheritsched with PTHREAD_EXPLICIT_SCHED)",
    ),
    (
        Rule::Priority,
        "priority",
        "priority 99, which the kernel's own threads have (migration, watchdog)",
        "98 or less; below the threads of the interrupts that it depends on",
    ),
    (
        Rule::NoBudget,
        "no-budget",
        "nothing bounds how long it may run without sleeping, so that a mistake takes the CPU for good",
        "setrlimit(RLIMIT_RTTIME), or SCHED_DEADLINE",
    ),
    (
        Rule::Affinity,
        "affinity",
        "its affinity has isolated CPUs and others, between which nothing balances",
        "pin it to isolated CPUs or to housekeeping ones (pthread_setaffinity_np)",
    ),
];

impl Rule {
    fn row(self) -> (&'static str, &'static str, &'static str) {
        let found = RULES.iter().find(|(rule, ..)| *rule == self);
        found.map_or(("", "", ""), |(_, name, what, remedy)| (name, what, remedy))
    }

    /// Its name in suppressions.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// What is found.
    pub fn what(self) -> &'static str {
        self.row().1
    }

    /// What to do.
    pub fn remedy(self) -> &'static str {
        self.row().2
    }
}
