//! Kernel code that could not be preempted while the task waited: its task, start, and functions.
//!
//! The stack at the switch shows whether the task that left was in such code ([`crate::stacks`]).
//! If so, it held the CPU since the waiting task was queued. A task of lower priority that comes
//! later does not count: it is the sign of a used-up budget (`super::queue`). A system call that
//! ends there is no longer named on that stack, but it is on the stack where an interrupt brought
//! the wake-up. If that interrupt found the task in user space, no kernel code delayed the switch
//! from there on: a task of lower priority would have been preempted at once.

use crate::attribute::blocking::Stretch;
use crate::attribute::cause::{Cause, Causes, Source, Who};
use crate::attribute::delay::Blocking;
use crate::labels::LabelId;
use crate::view::{Task, Way};

/// Where a wake-up found the task that ran.
#[derive(Debug, Clone, Copy, Default)]
enum Found {
    #[default]
    Unknown,
    UserSpace,
    Kernel(Way),
}

/// The task that leaves for the one that waited, before its stack is read.
#[derive(Debug, Clone, Copy)]
struct Left {
    task: Task,
    from_ns: i64,
    until_ns: i64,
    found: Found,
}

/// What is known of the task on one CPU while another task waits for the CPU.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    found: Found,
    left: Option<Left>,
}

impl Kernel {
    /// The CPU switches from `prev` to another task; `since_ns`: since when the followed task
    /// waited for `prev`, if it did.
    #[inline(always)]
    pub(super) fn switched(&mut self, at_ns: i64, prev: Task, since_ns: Option<i64>) {
        let found = std::mem::take(&mut self.found);
        self.left = since_ns.map(|from_ns| Left { task: prev, from_ns, until_ns: at_ns, found });
    }

    /// The same where the followed task did not wait.
    #[inline(always)]
    pub(super) fn nobody_waited(&mut self) {
        *self = Self::default();
    }

    /// Where an interrupt, or its own wake-up, found the current task while the other waits.
    pub(super) fn found(&mut self, code: Option<Way>, in_user_space: bool) {
        self.found = match (code, self.found) {
            _ if in_user_space => Found::UserSpace,
            (Some(code), Found::Unknown | Found::Kernel(_)) => Found::Kernel(code),
            (_, found) => found,
        };
    }

    /// The stack of the task `pid` where it leaves. Returns the stretch that delayed the other one.
    pub(super) fn leaves(
        &mut self,
        cpu: u32,
        pid: i32,
        code: Option<Way>,
        some_call: LabelId,
    ) -> Option<Stretch> {
        let left = self.left.take().filter(|left| left.task.pid == pid)?;
        let code = code?;
        // Two system calls: between them it was in user space.
        let differ = |way: Way| matches!((way.began, code.began), (Some(first), Some(last)) if first != last);
        let found = match left.found {
            Found::UserSpace => return None,
            Found::Kernel(way) if differ(way) => return None,
            Found::Kernel(way) => way,
            Found::Unknown => Way::default(),
        };
        // The stack at the wake-up says more than the one at the switch; which of its functions it
        // shows is chance.
        let frames = found.frames.or(code.frames);
        let by = Source { frames, ..Source::new(cpu, Who::Task(pid)) };
        // Both ends in the same system call; else it may have been in user space between them.
        let same = code.began.is_some() && code.began == found.began;
        Some(Stretch {
            blocking: Blocking::KernelCode,
            t0_ns: left.from_ns,
            t1_ns: left.until_ns,
            label: code.began.or(found.began).unwrap_or(some_call),
            causes: Causes::one(if same { Cause::exact(by) } else { Cause::order(by) }),
            sleeper: None,
            shut: false,
        })
    }

    /// Events are missing.
    pub(super) fn lost(&mut self) {
        *self = Self::default();
    }
}
