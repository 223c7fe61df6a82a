//! Stacks as the kernels of the lab recorded them, under a reader of `/dev/zero` and a waking FIFO
//! task.

use super::*;

fn of(stack: &str) -> Reading {
    let catalogue = model::events::EventCatalogue::embedded().unwrap();
    read(&stack.split(INSIDE).collect::<Vec<_>>(), |name| catalogue.helpers.has(name))
}

/// What began it, and its functions; at a switch.
fn left(stack: &str) -> Option<(Option<String>, Option<String>)> {
    let reading = of(stack);
    assert!(reading.at_switch, "{stack}");
    reading.code.map(|code| (code.began, code.frames))
}

/// The same where an interrupt or a wake-up found it.
fn found(stack: &str) -> Option<(Option<String>, Option<String>)> {
    let reading = of(stack);
    assert!(!reading.at_switch, "{stack}");
    reading.code.map(|code| (code.began, code.frames))
}

fn way_of(what: &str, frames: &str) -> (Option<String>, Option<String>) {
    (Some(what.to_owned()), Some(frames.to_owned()))
}

#[test]
fn who_was_in_user_space_or_could_be_preempted_held_nothing() {
    for stack in [
        // 5.10, 6.1-rt, 6.12-rt, arm64
        "__schedule < schedule < exit_to_user_mode_prepare < irqentry_exit_to_user_mode < asm_sysvec_reschedule_ipi",
        "__schedule < schedule < exit_to_user_mode_prepare < irqentry_exit_to_user_mode < asm_sysvec_apic_timer_interrupt",
        "__schedule < schedule < irqentry_exit_to_user_mode < asm_sysvec_apic_timer_interrupt",
        "__schedule < schedule < do_notify_resume < el0_interrupt < __el0_irq_handler_common < el0t_64_irq_handler < el0t_64_irq",
        "__schedule < preempt_schedule_irq < asm_sysvec_apic_timer_interrupt < clear_user_erms < read_zero < vfs_read < ksys_read < do_syscall_64 < entry_SYSCALL_64_after_hwframe",
        "__schedule < preempt_schedule_irq < asm_sysvec_apic_timer_interrupt < exit_to_user_mode_prepare < irqentry_exit_to_user_mode < asm_sysvec_reschedule_ipi",
        // Unknown functions give no reading.
        "__schedule",
        "__schedule < schedule < ?",
    ] {
        assert_eq!(left(stack), None, "{stack}");
    }
    for stack in [
        "sysvec_reschedule_ipi < asm_sysvec_reschedule_ipi",
        "ttwu_do_wakeup < ttwu_do_activate < try_to_wake_up < wake_up_process < hrtimer_wakeup < __hrtimer_run_queues < hrtimer_interrupt < arch_timer_handler_virt < handle_percpu_devid_irq < handle_irq_desc < generic_handle_domain_irq < gic_handle_irq < call_on_irq_stack < do_interrupt_handler < el0_interrupt < __el0_irq_handler_common < el0t_64_irq_handler < el0t_64_irq",
        "",
    ] {
        assert_eq!(found(stack), None, "{stack}");
        assert_eq!(of(stack).in_user_space, !stack.is_empty(), "{stack}");
    }
    let by_timer = |stack: &str| of(stack).high_resolution;
    assert!(by_timer(
        "hrtimer_wakeup < __hrtimer_run_queues < hrtimer_interrupt < asm_sysvec_apic_timer_interrupt"
    ));
    // Without high resolution they expire with the tick.
    assert!(!by_timer(
        "hrtimer_wakeup < hrtimer_run_queues < update_process_times < asm_sysvec_apic_timer_interrupt"
    ));
    for stack in [
        "sysvec_reschedule_ipi < asm_sysvec_reschedule_ipi < ?",
        "sysvec_reschedule_ipi < asm_sysvec_reschedule_ipi < clear_user_erms < read_zero",
        "ttwu_do_wakeup < try_to_wake_up < wake_up_q < futex_wake",
    ] {
        assert!(!of(stack).in_user_space, "{stack}");
    }
}

#[test]
fn a_system_call_is_named_with_its_functions() {
    for (stack, what, site) in [
        (
            "__schedule < _cond_resched < mutex_lock < pipe_write < new_sync_write < vfs_write < ksys_write < do_syscall_64 < entry_SYSCALL_64_after_hwframe",
            "system call write",
            "mutex_lock < pipe_write < new_sync_write < vfs_write",
        ),
        (
            "__schedule < preempt_schedule_common < __cond_resched < stop_one_cpu < sched_exec < bprm_execve < do_execveat_common < __x64_sys_execve < do_syscall_64 < entry_SYSCALL_64_after_hwframe",
            "system call execve",
            "stop_one_cpu < sched_exec < bprm_execve < do_execveat_common",
        ),
        (
            "__schedule < __cond_resched < read_zero < vfs_read < ksys_read < __arm64_sys_read < invoke_syscall < el0_svc_common < do_el0_svc < el0_svc < el0t_64_sync_handler < el0t_64_sync",
            "system call read",
            "read_zero < vfs_read",
        ),
        (
            "__schedule < schedule < do_wait < kernel_wait4 < __do_sys_wait4 < do_syscall_64 < entry_SYSCALL_64_after_hwframe",
            "system call wait4",
            "do_wait < kernel_wait4",
        ),
    ] {
        assert_eq!(left(stack), Some(way_of(what, site)), "{stack}");
    }
}

#[test]
fn a_system_call_that_ends_has_no_name_but_was_one() {
    for stack in [
        "__schedule < schedule < exit_to_user_mode_prepare < syscall_exit_to_user_mode < entry_SYSCALL_64_after_hwframe",
        "__schedule < schedule < exit_to_user_mode_prepare < syscall_exit_to_user_mode < do_syscall_64 < entry_SYSCALL_64_after_hwframe",
        "__schedule < schedule < do_notify_resume < el0_svc < el0t_64_sync_handler < el0t_64_sync",
        // A new task on its way to user space.
        "__schedule < schedule < syscall_exit_to_user_mode < ret_from_fork < ret_from_fork_asm",
    ] {
        assert_eq!(left(stack), Some((None, None)), "{stack}");
    }
    let fault = "__schedule < schedule < do_notify_resume < el0_da < el0t_64_sync_handler < el0t_64_sync";
    assert_eq!(left(fault), Some((Some("page fault".to_owned()), None)));
}

#[test]
fn an_interrupt_names_what_it_found() {
    for (stack, what, site) in [
        (
            "sysvec_reschedule_ipi < asm_sysvec_reschedule_ipi < clear_user_erms < read_zero < vfs_read < ksys_read < do_syscall_64 < entry_SYSCALL_64_after_hwframe",
            "system call read",
            "clear_user_erms < read_zero < vfs_read",
        ),
        (
            "ttwu_do_wakeup < ttwu_do_activate < try_to_wake_up < wake_up_process < hrtimer_wakeup < __hrtimer_run_queues < hrtimer_interrupt < arch_timer_handler_virt < handle_percpu_devid_irq < gic_handle_irq < call_on_irq_stack < do_interrupt_handler < el1_interrupt < el1h_64_irq_handler < el1h_64_irq < __arch_clear_user < vfs_read < ksys_read < __arm64_sys_read < invoke_syscall < el0_svc_common < do_el0_svc < el0_svc < el0t_64_sync_handler < el0t_64_sync",
            "system call read",
            "__arch_clear_user < vfs_read",
        ),
        // The fault is the system call's.
        (
            "sysvec_reschedule_ipi < asm_sysvec_reschedule_ipi < do_fault < handle_mm_fault < exc_page_fault < asm_exc_page_fault < rep_stos_alternative < elf_load < load_elf_binary < bprm_execve < __x64_sys_execve < x64_sys_call < do_syscall_64 < entry_SYSCALL_64_after_hwframe",
            "system call execve",
            "do_fault < handle_mm_fault < exc_page_fault < rep_stos_alternative < elf_load < load_elf_binary < bprm_execve",
        ),
        (
            "sysvec_reschedule_ipi < asm_sysvec_reschedule_ipi < get_page_from_freelist < __alloc_pages < wp_page_copy < handle_mm_fault < exc_page_fault < asm_exc_page_fault",
            "page fault",
            "get_page_from_freelist < __alloc_pages < wp_page_copy < handle_mm_fault < exc_page_fault",
        ),
        // Its own wake-up.
        (
            "ttwu_do_wakeup < try_to_wake_up < wake_up_q < cpu_stop_queue_work < stop_one_cpu < sched_exec < bprm_execve < __x64_sys_execve < do_syscall_64 < entry_SYSCALL_64_after_hwframe",
            "system call execve",
            "cpu_stop_queue_work < stop_one_cpu < sched_exec < bprm_execve",
        ),
        // An interrupt in which another one came: the task is outside of both.
        (
            "sysvec_reschedule_ipi < asm_sysvec_reschedule_ipi < handle_softirqs < __irq_exit_rcu < asm_sysvec_apic_timer_interrupt < read_zero < vfs_read < ksys_read < do_syscall_64",
            "system call read",
            "read_zero < vfs_read",
        ),
        (
            "ttwu_do_wakeup < try_to_wake_up < swake_up_one < rcu_core < handle_softirqs < run_ksoftirqd < smpboot_thread_fn < kthread < ret_from_fork",
            "kernel thread",
            "rcu_core < handle_softirqs < run_ksoftirqd < smpboot_thread_fn",
        ),
    ] {
        assert_eq!(found(stack), Some(way_of(what, site)), "{stack}");
    }
}

/// What requested an event: what began it, the function that matters, and how many there are.
fn asked(stack: &str) -> (Option<String>, Option<String>, usize) {
    let Way { began, site, frames } = of(stack).act;
    (began, site, frames.map_or(0, |frames| frames.split(INSIDE).count()))
}

#[test]
fn who_asks_is_the_first_function_that_is_no_helper() {
    for (stack, began, site, frames) in [
        (
            "trace_event_raw_event_csd_queue_cpu < __traceiter_csd_queue_cpu < smp_call_function_many_cond < on_each_cpu_cond_mask < native_flush_tlb_multi < flush_tlb_mm_range < tlb_finish_mmu < unmap_region < do_vmi_munmap < __vm_munmap < __x64_sys_munmap < x64_sys_call < do_syscall_64 < entry_SYSCALL_64_after_hwframe",
            "system call munmap",
            "flush_tlb_mm_range",
            8,
        ),
        (
            "trace_event_raw_event_sched_wakeup_template < __traceiter_sched_waking < try_to_wake_up < wake_up_q < futex_wake < do_futex < __x64_sys_futex < do_syscall_64",
            "system call futex",
            "futex_wake",
            4,
        ),
        // The interrupted task did not request it.
        (
            "trace_event_raw_event_ipi_send_cpu < __traceiter_ipi_send_cpu < native_smp_send_reschedule < kick_ilb < trigger_load_balance < update_process_times < tick_sched_timer < hrtimer_interrupt < sysvec_apic_timer_interrupt < asm_sysvec_apic_timer_interrupt < read_zero < vfs_read < ksys_read < do_syscall_64",
            "interrupt",
            "kick_ilb",
            7,
        ),
        (
            "try_to_wake_up < swake_up_one < rcu_core < handle_softirqs < run_ksoftirqd < smpboot_thread_fn < kthread < ret_from_fork",
            "kernel thread",
            "rcu_core",
            6,
        ),
    ] {
        assert_eq!(asked(stack), (Some(began.to_owned()), Some(site.to_owned()), frames), "{stack}");
    }
    assert_eq!(asked("try_to_wake_up < complete"), (None, None, 2), "helpers alone");
    // The scheduler also requests it, on its way: that is no switch.
    let balance = "__traceiter_csd_queue_cpu < __smp_call_single_queue < stop_one_cpu_nowait < __schedule < schedule < do_nanosleep < __x64_sys_nanosleep < do_syscall_64";
    let stop = Some("stop_one_cpu_nowait".to_owned());
    assert_eq!(asked(balance), (Some("system call nanosleep".to_owned()), stop, 5));
    // What has no name is not passed over.
    let unnamed = "generic_exec_single < ? < ext4_sync_file < __x64_sys_fsync < do_syscall_64";
    assert_eq!(asked(unnamed), (Some("system call fsync".to_owned()), None, 3));
    assert_eq!(asked("? < ?"), (None, None, 0));
}
