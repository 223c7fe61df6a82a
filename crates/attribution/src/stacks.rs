//! What a task does in the kernel, and how it came to request something, by the functions on its
//! stack.
//!
//! A task in user space gives the CPU away as soon as an interrupt asks for it. One in kernel code
//! does so only where that code lets it: on a kernel built without preemption at the return to user
//! space, at `cond_resched`, or where it sleeps; on one with preemption as soon as preemption is on
//! again. Which of these it was stands on its stack when it goes (Linux kernel/sched/core.c,
//! `__schedule` and its callers; kernel/entry/common.c, `exit_to_user_mode_loop`;
//! arch/arm64/kernel/entry-common.c).

/// What a stack shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Reading {
    /// Whether the task was giving the CPU away; else an interrupt found it, or it did something
    /// that has an event.
    pub(crate) at_switch: bool,
    /// The kernel code that the task was in, and that could not be preempted there.
    pub(crate) code: Option<Way>,
    /// Whether an interrupt found it in user space: there is nothing below that interrupt.
    pub(crate) in_user_space: bool,
    /// Whether the interrupt of high-resolution timers is on it (kernel/time/hrtimer.c).
    pub(crate) high_resolution: bool,
    /// How the kernel came to the event before the stack: in the task, or in the innermost
    /// interrupt, and then no further.
    pub(crate) act: Way,
}

/// A way through the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Way {
    /// What it began in: `system call write`, `page fault`, `exception`, `kernel thread`,
    /// `interrupt`; `None` where that is not known, as of a system call that has returned.
    pub(crate) began: Option<String>,
    /// The innermost function that is no helper.
    pub(crate) site: Option<String>,
    /// Its functions, innermost first, joined by [`INSIDE`].
    pub(crate) frames: Option<String>,
}

/// Between a function and the one that called it.
pub(crate) const INSIDE: &str = " < ";

/// Between the functions of the kernel and those of the program that called it.
pub(crate) const OUTSIDE: &str = "\n";

/// What serves high-resolution timers.
const TIMERS: &str = "hrtimer_interrupt";

/// What a way began in that an interrupt took.
pub(crate) const INTERRUPT: &str = "interrupt";

/// Functions that are kept of one stack.
const MOST: usize = 32;

/// How the names begin of what only records the event.
const RECORDS: [&str; 8] = [
    "trace_event_",
    "__traceiter_",
    "trace_call_bpf",
    "kprobe_",
    "aggr_pre_handler",
    "opt_pre_handler",
    "optimized_callback",
    "ftrace_",
];

/// Where the scheduler is entered because an interrupt wants it: the code could be preempted.
const PREEMPTED: &str = "preempt_schedule_irq";

/// Between the scheduler and the code that lets it in.
const WAY_IN: [&str; 15] = [
    "schedule",
    "schedule_preempt_disabled",
    "schedule_rtlock",
    "schedule_timeout",
    "preempt_schedule",
    "preempt_schedule_common",
    "preempt_schedule_notrace",
    "preempt_schedule_thunk",
    "preempt_schedule_notrace_thunk",
    "dynamic_preempt_schedule",
    "__cond_resched",
    "_cond_resched",
    "dynamic_cond_resched",
    "dynamic_might_resched",
    "__cond_resched_lock",
];

/// The way back to user space.
const WAY_OUT: [&str; 10] = [
    "exit_to_user_mode_loop",
    "exit_to_user_mode_prepare",
    "exit_to_user_mode",
    "exit_to_usermode_loop",
    "prepare_exit_to_usermode",
    "prepare_exit_to_user_mode",
    "do_notify_resume",
    "syscall_exit_to_user_mode",
    "syscall_return_slowpath",
    "irqentry_exit_to_user_mode",
];

/// How the names begin of what interrupts enter the kernel by.
const INTERRUPTS: [&str; 9] = [
    "asm_sysvec_",
    "asm_common_interrupt",
    "asm_exc_nmi",
    "el1_irq",
    "el1h_64_irq",
    "el1_interrupt",
    "el0_irq",
    "el0t_64_irq",
    "el0_interrupt",
];

/// The same for system calls.
const SYSTEM_CALLS: [&str; 6] =
    ["do_syscall_", "entry_SYSCALL", "entry_SYSENTER", "x64_sys_call", "el0_svc", "do_el0_svc"];

/// The same for page faults.
const PAGE_FAULTS: [&str; 6] =
    ["asm_exc_page_fault", "page_fault", "el0_da", "el0_ia", "el1_abort", "do_mem_abort"];

/// Functions around these that carry no information.
const AROUND: [&str; 2] = ["el0t_64_sync", "invoke_syscall"];

/// What a new task begins in, and a kernel thread stays in.
const THREADS: [&str; 2] = ["ret_from_fork", "kthread"];

/// How functions of system calls begin (include/linux/syscalls.h,
/// arch/*/include/asm/syscall_wrapper.h).
const CALLED: [&str; 7] =
    ["__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__do_sys_", "__se_sys_", "ksys_", "__arm64_compat_sys_"];

/// A function without a name.
pub(crate) const UNNAMED: &str = "?";

fn begins(name: &str, all: &[&str]) -> bool {
    all.iter().any(|start| name.starts_with(start))
}

/// Reads a stack: the names of its functions, innermost first, [`UNNAMED`] where one has none.
/// `helper`: whether a function only passes on what another one asks for.
pub(crate) fn read(frames: &[&str], helper: impl Fn(&str) -> bool) -> Reading {
    let own = &frames[frames.iter().take_while(|name| begins(name, &RECORDS)).count()..];
    // Further out it is the scheduler that does something else: balance, or wake a worker.
    if own.first() == Some(&"__schedule") {
        return Reading { at_switch: true, code: given_away(&own[1..], &helper), ..Reading::default() };
    }
    // What an interrupt does is not what the task does; outside of one, the task wakes by itself.
    let outermost = own.iter().rposition(|name| begins(name, &INTERRUPTS));
    let task = match outermost {
        Some(outermost) => &own[outermost + 1..],
        None => &own[own.iter().take_while(|name| helper(name)).count()..],
    };
    let in_user_space = outermost.is_some() && task.is_empty();
    let high_resolution = own.contains(&TIMERS);
    Reading {
        at_switch: false,
        code: way(task, &helper),
        in_user_space,
        high_resolution,
        act: act(own, &helper),
    }
}

/// How an event came about, by its own functions.
fn act(own: &[&str], helper: &impl Fn(&str) -> bool) -> Way {
    match own.iter().position(|name| begins(name, &INTERRUPTS)) {
        Some(at) => Way { began: Some(INTERRUPT.to_owned()), ..functions(&own[..at], helper) },
        None => way(own, helper).unwrap_or_else(|| functions(own, helper)),
    }
}

/// What was going on when the scheduler was entered from these functions.
fn given_away(frames: &[&str], helper: &impl Fn(&str) -> bool) -> Option<Way> {
    if frames.first() == Some(&PREEMPTED) {
        return None;
    }
    let inside = &frames[frames.iter().take_while(|name| WAY_IN.contains(name)).count()..];
    if !inside.first().is_some_and(|name| WAY_OUT.contains(name)) {
        return way(inside, helper);
    }
    // On the way back to user space: from an interrupt it goes at once, from a system call (a new
    // task: from that of its parent) as soon as that has ended.
    match kind(inside)? {
        Kind::Interrupt => None,
        Kind::Thread | Kind::Call => Some(Way::default()),
        Kind::Fault | Kind::Trap => way(inside, helper).map(|way| Way { began: way.began, ..Way::default() }),
    }
}

/// What a task does, by its own functions; `None` if they do not show what they began in, or if
/// that is an interrupt.
fn way(frames: &[&str], helper: &impl Fn(&str) -> bool) -> Option<Way> {
    let began = match kind(frames)? {
        Kind::Interrupt => return None,
        Kind::Call => called(frames).map(|name| format!("system call {name}")),
        Kind::Fault => Some("page fault".to_owned()),
        Kind::Trap => Some("exception".to_owned()),
        Kind::Thread => Some("kernel thread".to_owned()),
    };
    Some(Way { began, ..functions(frames, helper) })
}

/// The functions without those by which the kernel is entered.
fn functions(frames: &[&str], helper: &impl Fn(&str) -> bool) -> Way {
    let entry = |name: &str| {
        [&SYSTEM_CALLS[..], &CALLED, &PAGE_FAULTS, &AROUND, &THREADS].iter().any(|all| begins(name, all))
    };
    let own = |name: &&&str| !entry(name) && !WAY_OUT.contains(*name);
    let own: Vec<&str> = frames.iter().filter(own).take(MOST).copied().collect();
    // One without a name may be the one that matters.
    let site = own.iter().find(|name| !helper(name)).filter(|name| **name != UNNAMED);
    let named = own.iter().any(|name| *name != UNNAMED);
    Way { began: None, site: site.map(|name| (*name).to_owned()), frames: named.then(|| own.join(INSIDE)) }
}

/// What brought a task into the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Interrupt,
    Call,
    Fault,
    /// Another exception.
    Trap,
    /// It never was anywhere else, or is new.
    Thread,
}

/// The kind by the outermost function that shows it: a page fault inside a system call belongs to
/// it.
fn kind(frames: &[&str]) -> Option<Kind> {
    frames.iter().rev().find_map(|name| {
        Some(match name {
            name if begins(name, &INTERRUPTS) => Kind::Interrupt,
            name if begins(name, &SYSTEM_CALLS) || *name == "syscall_exit_to_user_mode" => Kind::Call,
            name if begins(name, &PAGE_FAULTS) => Kind::Fault,
            name if name.starts_with("asm_exc_") => Kind::Trap,
            name if begins(name, &THREADS) => Kind::Thread,
            _ => return None,
        })
    })
}

/// The name of the system call, from the outermost function that has it.
fn called(frames: &[&str]) -> Option<String> {
    frames.iter().rev().find_map(|name| {
        let start = CALLED.iter().find(|start| name.starts_with(**start))?;
        Some(name[start.len()..].to_owned())
    })
}

#[cfg(test)]
mod tests;
