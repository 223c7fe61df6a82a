//! The stressors, one file each: what it does, how often, and how to verify from outside that it
//! did.

mod affinity_flip;
mod aio_setup;
mod bpf_filter;
mod bpf_prog;
mod cache_flush;
mod calc_pi;
mod calc_pi_out;
mod cgroup_mkdir;
mod clock_step;
mod clocksource;
mod compact;
mod cpu_hotplug;
mod cpu_methods;
mod cpuinfo_read;
mod cpuset_partition;
mod direct_io;
mod download;
mod drop_caches;
mod fadvise;
mod fault;
mod first_use;
mod fork_exec;
mod futex;
mod hackbench;
mod hugepages;
mod icache_flush;
mod io_uring_setup;
mod iomix;
mod k_workqueue;
mod khugepaged;
mod kmsg;
mod kprobe_toggle;
mod ksm;
mod kvm_create;
mod llc_thrash;
mod madvise_collapse;
mod mem_bandwidth;
mod mem_offline;
mod membarrier_expedited;
mod membarrier_global;
mod membarrier_private;
mod mlock;
mod mmap_fork;
mod module_load;
mod mount_tmpfs;
mod move_pages;
mod mremap;
mod net_clients;
mod netns;
mod nft_replace;
mod nic_dummy;
mod nic_veth;
mod packet_sock;
mod pci_config;
mod perf_hk;
mod perf_stat;
mod perf_sys;
mod perf_task;
mod proc_read;
mod rcu_expedited;
mod rdmsr;
mod schedstats;
mod slab_shrink;
mod so_timestamp;
mod sock;
mod split_lock;
mod stat_refresh;
pub(super) mod stress_ng;
mod swap;
mod thr_exit;
mod timer;
mod tlb_own;
mod tlb_span;
mod trace_event;
mod u_fork;
mod u_thread;
mod userfaultfd;
mod userns;
mod vm_fill;
mod vm_map;
mod vmap_churn;
mod watchdog_thresh;
mod wq_loop;
mod wq_mount_ext4;
mod wq_mount_xfs;

use super::StressorSpec;

/// All of them, in the order in which reports list them.
pub(super) const ALL: &[StressorSpec] = &[
    u_fork::SPEC,
    u_thread::SPEC,
    timer::SPEC,
    fork_exec::SPEC,
    thr_exit::SPEC,
    futex::SPEC,
    affinity_flip::SPEC,
    hackbench::SPEC,
    fault::SPEC,
    vm_map::SPEC,
    vm_fill::SPEC,
    vmap_churn::SPEC,
    mmap_fork::SPEC,
    mremap::SPEC,
    madvise_collapse::SPEC,
    khugepaged::SPEC,
    userfaultfd::SPEC,
    swap::SPEC,
    tlb_span::SPEC,
    tlb_own::SPEC,
    mlock::SPEC,
    move_pages::SPEC,
    fadvise::SPEC,
    hugepages::SPEC,
    drop_caches::SPEC,
    compact::SPEC,
    ksm::SPEC,
    slab_shrink::SPEC,
    sock::SPEC,
    net_clients::SPEC,
    download::SPEC,
    nic_dummy::SPEC,
    nic_veth::SPEC,
    netns::SPEC,
    userns::SPEC,
    packet_sock::SPEC,
    nft_replace::SPEC,
    k_workqueue::SPEC,
    wq_loop::SPEC,
    wq_mount_ext4::SPEC,
    wq_mount_xfs::SPEC,
    mount_tmpfs::SPEC,
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
    membarrier_global::SPEC,
    membarrier_expedited::SPEC,
    membarrier_private::SPEC,
    stat_refresh::SPEC,
    rdmsr::SPEC,
    cpuinfo_read::SPEC,
    rcu_expedited::SPEC,
    kvm_create::SPEC,
    clock_step::SPEC,
    iomix::SPEC,
    direct_io::SPEC,
    io_uring_setup::SPEC,
    aio_setup::SPEC,
    kmsg::SPEC,
    proc_read::SPEC,
    pci_config::SPEC,
    llc_thrash::SPEC,
    mem_bandwidth::SPEC,
    cache_flush::SPEC,
    icache_flush::SPEC,
    split_lock::SPEC,
    calc_pi::SPEC,
    calc_pi_out::SPEC,
    cpu_methods::SPEC,
    cpuset_partition::SPEC,
    watchdog_thresh::SPEC,
    cpu_hotplug::SPEC,
    mem_offline::SPEC,
    clocksource::SPEC,
];
