//! What a task does in the kernel, by the functions on its stack.
//!
//! A task in user space gives the CPU away as soon as an interrupt asks for it. One in kernel code
//! does so only where that code lets it: on a kernel built without preemption at the return to user
//! space, at `cond_resched`, or where it sleeps; on one with preemption as soon as preemption is on
//! again. Which of these it was stands on its stack when it goes (Linux kernel/sched/core.c,
//! `__schedule` and its callers; kernel/entry/common.c, `exit_to_user_mode_loop`;
//! arch/arm64/kernel/entry-common.c).

/// What a stack tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Reading {
    /// Whether the task was giving the CPU away; else an interrupt found it, or it woke another one.
    pub(crate) at_switch: bool,
    /// The kernel code that it was in, and that could not be preempted there.
    pub(crate) code: Option<Code>,
}

/// Kernel code that a task runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Code {
    /// `system call write`, `page fault`, `kernel thread`; `None` for a system call that has
    /// returned.
    pub(crate) what: Option<String>,
    /// Its functions, innermost first, joined by [`INSIDE`].
    pub(crate) site: Option<String>,
}

/// Between a function and the one that called it.
pub(crate) const INSIDE: &str = " < ";

/// Functions that are named of one stack.
const MOST: usize = 6;

/// Where the scheduler was entered because an interrupt wanted it: the code could be preempted.
const PREEMPTED: [&str; 3] =
    ["preempt_schedule_irq", "arm64_preempt_schedule_irq", "raw_irqentry_exit_cond_resched"];

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

/// What is around these and tells nothing.
const AROUND: [&str; 2] = ["el0t_64_sync", "invoke_syscall"];

/// What a new task begins in, and a kernel thread stays in.
const THREADS: [&str; 2] = ["ret_from_fork", "kthread"];

/// How functions of system calls begin (include/linux/syscalls.h, arch/*/include/asm/syscall_wrapper.h).
const CALLED: [&str; 7] =
    ["__x64_sys_", "__ia32_sys_", "__arm64_sys_", "__do_sys_", "__se_sys_", "ksys_", "__arm64_compat_sys_"];

/// Where a wake-up begins: what is further in is the wake-up itself.
const WAKES: [&str; 4] = ["try_to_wake_up", "ttwu_do_activate", "wake_up_process", "wake_up_q"];

fn begins(name: &str, all: &[&str]) -> bool {
    all.iter().any(|start| name.starts_with(start))
}

/// Reads a stack: the names of its functions, innermost first, empty where one is not known.
pub(crate) fn read(frames: &[&str]) -> Reading {
    let entered = frames.iter().rposition(|name| begins(name, &INTERRUPTS));
    let scheduler = frames.iter().position(|name| *name == "__schedule");
    // What an interrupt does is not what the task does.
    if let Some(at) = scheduler.filter(|at| entered.is_none_or(|entered| *at < entered)) {
        return Reading { at_switch: true, code: given_away(&frames[at + 1..]) };
    }
    // Outside of interrupts it is the task itself that wakes another one.
    let before = entered.or_else(|| frames.iter().rposition(|name| WAKES.contains(name)));
    Reading { at_switch: false, code: code(&frames[before.map_or(0, |at| at + 1)..]) }
}

/// What was going on when the scheduler was entered from these functions.
fn given_away(frames: &[&str]) -> Option<Code> {
    if frames.first().is_some_and(|name| PREEMPTED.contains(name)) {
        return None;
    }
    let inside = &frames[frames.iter().take_while(|name| WAY_IN.contains(name)).count()..];
    if !inside.first().is_some_and(|name| WAY_OUT.contains(name)) {
        return code(inside);
    }
    // On the way back to user space: from an interrupt it goes at once, from a system call (a new
    // task: from that of its parent) as soon as that has ended.
    match kind(inside)? {
        Kind::Interrupt => None,
        Kind::Thread | Kind::Call => Some(Code { what: None, site: None }),
        Kind::Fault | Kind::Trap => code(inside).map(|code| Code { site: None, ..code }),
    }
}

/// What a task does whose own functions these are.
fn code(frames: &[&str]) -> Option<Code> {
    let what = match kind(frames)? {
        Kind::Interrupt => return None,
        Kind::Call => called(frames).map(|name| format!("system call {name}")),
        Kind::Fault => Some("page fault".to_owned()),
        Kind::Trap => Some("exception".to_owned()),
        Kind::Thread => Some("kernel thread".to_owned()),
    };
    let entry = |name: &str| {
        [&SYSTEM_CALLS[..], &CALLED, &PAGE_FAULTS, &AROUND, &THREADS].iter().any(|all| begins(name, all))
    };
    let own = |name: &&&str| !name.is_empty() && !entry(name) && !WAY_OUT.contains(*name);
    let site: Vec<&str> = frames.iter().filter(own).take(MOST).copied().collect();
    Some(Code { what, site: (!site.is_empty()).then(|| site.join(INSIDE)) })
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

/// That of the outermost function that tells it: a page fault inside a system call belongs to it.
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
