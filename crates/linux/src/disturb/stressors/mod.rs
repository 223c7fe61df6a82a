//! The stressors, one file each: what it does, how often, and how one can tell from outside that it did.

mod bpf_filter;
mod bpf_prog;
mod calc_pi;
mod cgroup_mkdir;
mod clocksource;
mod cpu_hotplug;
mod cpuset_partition;
mod fault;
mod first_use;
mod kprobe_toggle;
mod llc_thrash;
mod mem_offline;
mod module_load;
mod perf_hk;
mod perf_stat;
mod perf_sys;
mod perf_task;
mod schedstats;
mod so_timestamp;
mod sock;
pub(super) mod stress_ng;
mod timer;
mod tlb_span;
mod trace_event;
mod u_fork;
mod u_thread;
mod watchdog_thresh;

use super::StressorSpec;

/// All of them, in the order in which reports list them.
pub(super) const ALL: &[StressorSpec] = &[
    u_fork::SPEC,
    u_thread::SPEC,
    timer::SPEC,
    fault::SPEC,
    tlb_span::SPEC,
    sock::SPEC,
    so_timestamp::SPEC,
    bpf_filter::SPEC,
    bpf_prog::SPEC,
    perf_task::SPEC,
    perf_hk::SPEC,
    perf_stat::SPEC,
    trace_event::SPEC,
    kprobe_toggle::SPEC,
    module_load::SPEC,
    first_use::SPEC,
    cgroup_mkdir::SPEC,
    schedstats::SPEC,
    perf_sys::SPEC,
    llc_thrash::SPEC,
    calc_pi::SPEC,
    cpuset_partition::SPEC,
    watchdog_thresh::SPEC,
    cpu_hotplug::SPEC,
    mem_offline::SPEC,
    clocksource::SPEC,
];
