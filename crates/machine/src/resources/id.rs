//! The mechanisms of the catalogue that rows point to; a test walks them all.

macro_rules! ids {
    ($($name:ident = $id:literal),* $(,)?) => {
        $(pub(super) const $name: &str = $id;)*

        #[cfg(test)]
        pub(super) const ALL: &[&str] = &[$($name),*];
    };
}

ids! {
    BLK_MQ = "blk-mq-cpus",
    BLK_RQ_AFFINITY = "blk-rq_affinity",
    BROADCAST = "clockevents-broadcast",
    CLOCKSOURCE = "clocksource",
    CPUFREQ = "cpufreq-governor",
    CPUSET_MEMS = "cpuset-mems",
    CPUSET_PARTITION = "cpuset-partition",
    CPUSET_V1 = "cpuset-v1",
    EXT_SERVER = "ext_server",
    FAIR_SERVER = "fair_server",
    IDLE_STATES = "idle-states",
    IRQ = "irq-affinity",
    IRQ_MANAGED = "irq-managed",
    IRQ_THREADS = "irq-threads",
    KCOMPACTD = "kcompactd-affinity",
    KSWAPD = "kswapd-affinity",
    KTHREAD = "kthread-affinity",
    MCE_CHECK = "machinecheck-check_interval",
    MCE_CMCI = "machinecheck-cmci",
    NET_BACKLOG = "net-backlog",
    NET_QUEUES = "net-queues",
    NET_RPS = "net-rps",
    NET_XPS = "net-xps",
    NMI_WATCHDOG = "nmi_watchdog",
    NOHZ_FULL = "nohz_full",
    NUMA_DEVICES = "numa-devices",
    PERF = "perf_cpu_time",
    PM_QOS = "pm_qos_resume_latency",
    RCU_NOCBS = "rcu_nocbs",
    RCU_THREADS = "rcu-threads",
    RESCTRL = "resctrl",
    RT_RUNTIME = "sched_rt_runtime",
    SCHED_DOMAINS = "sched-domains",
    SMI = "smi",
    SMT_SIBLINGS = "smt-siblings",
    SOFTIRQ_THREADS = "softirq-threads",
    STOP_MACHINE = "stop_machine",
    THERMALD = "thermald",
    TIMER_MIGRATION = "timer_migration",
    TRACING = "tracing_cpumask",
    TSC = "tsc",
    USER_TASKS = "user-tasks",
    WATCHDOG = "watchdog_cpumask",
    WQ_EACH = "workqueue-each",
    WQ_MASK = "workqueue-cpumask",
    WQ_PERCPU = "workqueue-percpu",
    WQ_RESCUERS = "workqueue-rescuers",
}
