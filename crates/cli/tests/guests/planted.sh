# Mechanisms set wrong and right on purpose, what the kernel then does, and what the audit says of
# it. Runs under busybox sh as root in its own directory; leaves its evidence for planted.rs. Facts
# only: nothing is compared here. Argument: which machine this is: `run-time` (four CPUs that are
# two cores, isolated in nothing at boot), `right` (booted as isolation wants) or `misbooted`.
#
# A world is a state of the machine: WORLD.truth has the kernel's own say, WORLD.json the audit's.

stillcore=/usr/bin/stillcore
groups=/sys/fs/cgroup
. ./evidence.sh
. ./parameters.sh

mount -t debugfs none /sys/kernel/debug 2>/dev/null
mount -t tracefs none /sys/kernel/tracing 2>/dev/null
mkdir -p /dev/shm /mnt
# Output of other programs must not cause interrupts of the console.
dmesg -n 1
dmesg >log
hogs=""
skip=""
cpus=2,3

audit() {
    $stillcore audit --cpus $cpus --all --json >$world.json 2>$world.err
    echo $? >$world.code
}

# The same audit of a capture of this machine, which must give the same answer.
audit_captured() {
    audit
    $stillcore snapshot --out captured >snapshot.log 2>&1
    $stillcore audit --root captured --cpus $cpus --all --json >captured.json 2>captured.err
    cp $world.truth captured.truth
}

# Writes the table of settings: wrong, or right.
plant_settings() {
    while read -r id file wrong right; do
        [ "$id" != '#' ] || continue
        last=""
        for one in $(files_of $file); do last=$one; done
        for one in $(files_of $file); do
            value=$right
            [ $1 = right ] || [ $one != $last ] || value=$wrong
            [ -e $one ] && echo "$value" 2>>plant.err >$one
        done
    done <settings
}

put() {
    [ -e $2 ] && echo "$1" 2>>plant.err >$2
}

# A process of a name that waits for ever.
pretend() {
    sh -c "printf %s $1 >/proc/\$\$/comm; read line <>never" &
}

# Pretends the daemons of the list.
start_daemons() {
    while read -r id process; do
        pretend $process
        daemons="$daemons $!"
    done <daemons
}

each_thread_to() {
    for pid in $(ls /proc | grep '^[0-9]'); do
        read -r line 2>/dev/null </proc/$pid/stat || continue
        set -- $1 ${line##*) }
        { [ "$3" = 2 ] || [ $pid = 2 ]; } && taskset -p $1 $pid >/dev/null 2>&1
    done
}

each_task_to() {
    for pid in $(ls /proc | grep '^[0-9]'); do
        read -r line 2>/dev/null </proc/$pid/stat || continue
        set -- $1 ${line##*) }
        [ "$3" != 2 ] && [ $pid != 2 ] || continue
        # Older shells of the lab have a taskset without -a, for all threads of a process.
        for task in /proc/$pid/task/*; do taskset -p $1 ${task##*/} >/dev/null 2>&1; done
    done
}

features() {
    for file in /sys/kernel/debug/sched/features /sys/kernel/debug/sched_features; do
        for flag in $*; do put $flag $file; done
    done
}

truth_features() {
    for file in /sys/kernel/debug/sched/features /sys/kernel/debug/sched_features; do
        [ -e $file ] || continue
        for pair in rt_runtime_share:RT_RUNTIME_SHARE sched_hrtick:HRTICK; do
            case " $(cat $file) " in
            *" NO_${pair#*:} "*) say ${pair%:*} right setting "${pair#*:} is off" ;;
            *" ${pair#*:} "*) say ${pair%:*} wrong setting "${pair#*:} is on" ;;
            esac
        done
    done
}

# A thread that watches which pages a process uses.
start_kdamond() {
    admin=/sys/kernel/mm/damon/admin/kdamonds
    [ -e $admin ] || return
    put 1 $admin/nr_kdamonds
    put 1 $admin/0/contexts/nr_contexts
    put vaddr $admin/0/contexts/0/operations
    put 1 $admin/0/contexts/0/targets/nr_targets
    put $$ $admin/0/contexts/0/targets/0/pid_target
    put on $admin/0/state
}

truth_units() {
    enabled=$(find /etc/systemd/system -name '*.timer' 2>/dev/null | tr '\n' ' ')
    verdict=right
    [ -z "$enabled" ] || verdict=wrong
    say periodic-units $verdict setting "timers in the folders of targets: ${enabled:-none}"
}

# The shared pool of the kubelet's CPU manager.
kubelet_shares() {
    echo "{\"policyName\":\"static\",\"defaultCpuSet\":\"$1\",\"entries\":{},\"checksum\":1}" \
        >/var/lib/kubelet/cpu_manager_state
}

truth_kubelet() {
    pool=$(sed 's/.*defaultCpuSet":"\([^"]*\).*/\1/' /var/lib/kubelet/cpu_manager_state)
    case $pool in
    0-1) say kubelet-cpu_manager right setting "the shared pool is $pool" ;;
    *) say kubelet-cpu_manager wrong setting "the shared pool is $pool" ;;
    esac
}

truth_swap() {
    total=$(awk '$1 == "SwapTotal:" { print $2 }' /proc/meminfo)
    verdict=right
    [ $total -eq 0 ] || verdict=wrong
    say swap $verdict setting "SwapTotal is $total kB"
}

truth_latency() {
    limit=$(od -An -t d4 -N 4 /dev/cpu_dma_latency 2>/dev/null | tr -d ' ')
    [ -n "$limit" ] || return
    verdict=right
    [ $limit -eq 0 ] || verdict=wrong
    say cpu_dma_latency $verdict setting "the limit in force is $limit us"
}

truth_first_process() {
    allowed=$(taskset -p $systemd | sed 's/.* //')
    verdict=right
    [ $((0x$allowed & 12)) -eq 0 ] || verdict=wrong
    say systemd-cpu_affinity $verdict setting "the process $(cat /proc/$systemd/comm) may run on $allowed"
}

truth_rps_default() {
    [ -e /proc/sys/net/core/rps_default_mask ] || return
    ip link add planted0 type dummy 2>>plant.err || return
    got=$(cat /sys/class/net/planted0/queues/rx-0/rps_cpus)
    ip link del planted0
    verdict=right
    [ $((0x$got & 12)) -eq 0 ] || verdict=wrong
    say net-rps_default_mask $verdict behaviour "a new interface got the mask $got"
}

truth_all_threads() {
    truth_threads kthread-affinity '*'
    truth_threads kswapd-affinity 'kswapd*'
    truth_threads kcompactd-affinity 'kcompactd*'
    truth_threads irq-threads 'irq/*'
    truth_threads softirq-threads 'ksoftirqd/*'
    truth_threads rcu-threads 'rcuo*'
    truth_threads kdamond-affinity 'kdamond*'
}

run_time_truths() {
    truth_settings settings
    truth_features
    truth_units
    truth_swap
    truth_kubelet
    truth_latency
    truth_first_process
    truth_daemons
    truth_workqueue
    truth_watchdog
    truth_rps
    truth_rps_default
    truth_throttling
    truth_server_timers
    truth_huge_pages
    truth_stat_interval
    truth_tracing
    truth_schedstats
    truth_all_threads
    truth_new_interrupt
    truth_interrupts
    truth_user_tasks
    truth_domains "2 3" "sched-domains isolcpus cpuset-partition"
}

# What boot parameters decide; the CPUs to look at are $1.
boot_truths() {
    truth_settings booted
    truth_symbols
    truth_auditing
    truth_pressure
    truth_mitigations
    truth_skew
    truth_threaded
    truth_ignored
    truth_firmware
    truth_rcu_core
    truth_preemption
    truth_clock_watchdog
    truth_watchdog
    truth_all_threads
    truth_rcu_nocb_poll
    truth_new_interrupt
    truth_interrupts
    truth_workqueue
    truth_huge_pages
    truth_user_tasks
    truth_nohz
    truth_nohz_full "$1"
    truth_rcu_nocbs "$1"
    truth_domains "$1" "sched-domains isolcpus"
}

wrong_at_run_time() {
    plant_settings wrong
    features RT_RUNTIME_SHARE HRTICK
    mkdir -p /etc/systemd/system/timers.target.wants
    ln -s /usr/lib/systemd/system/logrotate.timer /etc/systemd/system/timers.target.wants/logrotate.timer
    [ ! -e /sys/block/zram0 ] || {
        echo 16M >/sys/block/zram0/disksize
        mkswap /dev/zram0 >/dev/null
        swapon /dev/zram0
    }
    put f /sys/devices/virtual/workqueue/cpumask
    put f /proc/irq/default_smp_affinity
    put 1 /proc/sys/kernel/watchdog
    put 1 /proc/sys/kernel/soft_watchdog
    put 0-3 /proc/sys/kernel/watchdog_cpumask
    put 4 /sys/class/net/lo/queues/rx-0/rps_cpus
    put 8 /proc/sys/net/core/rps_default_mask
    put 1000000 /proc/sys/kernel/sched_rt_period_us
    put 950000 /proc/sys/kernel/sched_rt_runtime_us
    put always /sys/kernel/mm/transparent_hugepage/enabled
    put force /sys/kernel/mm/transparent_hugepage/shmem_enabled
    put always /sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled
    put 1 /proc/sys/vm/stat_interval
    put 1 /proc/sys/kernel/sched_schedstats
    mkdir /sys/kernel/tracing/instances/planted
    put 1 /sys/kernel/tracing/instances/planted/events/sched/sched_switch/enable
    put 'p:planted schedule' /sys/kernel/tracing/kprobe_events
    put 1 /sys/kernel/tracing/events/kprobes/planted/enable
    mkdir /sys/kernel/tracing/instances/planted-tracer
    put schedule /sys/kernel/tracing/instances/planted-tracer/set_ftrace_filter
    put function /sys/kernel/tracing/instances/planted-tracer/current_tracer
    mkdir -p /var/lib/kubelet
    kubelet_shares 0-3
    put 8 /proc/irq/4/smp_affinity
    start_daemons
    start_kdamond
    each_thread_to f
    each_task_to f
}

right_at_run_time() {
    plant_settings right
    features NO_RT_RUNTIME_SHARE NO_HRTICK
    rm /etc/systemd/system/timers.target.wants/logrotate.timer
    [ ! -e /sys/block/zram0 ] || swapoff /dev/zram0
    put 3 /sys/devices/virtual/workqueue/cpumask
    put 3 /proc/irq/default_smp_affinity
    put 0-1 /proc/sys/kernel/watchdog_cpumask
    put 0 /proc/sys/kernel/soft_watchdog
    put 0 /sys/class/net/lo/queues/rx-0/rps_cpus
    put 0 /proc/sys/net/core/rps_default_mask
    put -1 /proc/sys/kernel/sched_rt_runtime_us
    for cpu in 2 3; do put 0 /sys/kernel/debug/sched/fair_server/cpu$cpu/runtime; done
    put never /sys/kernel/mm/transparent_hugepage/enabled
    put never /sys/kernel/mm/transparent_hugepage/shmem_enabled
    put never /sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled
    put 3600 /proc/sys/vm/stat_interval
    # The interval in force ends first.
    sleep 2
    put 0 /proc/sys/kernel/sched_schedstats
    put 0 /sys/kernel/tracing/events/kprobes/planted/enable
    put '-:planted' /sys/kernel/tracing/kprobe_events
    put 0 /sys/kernel/tracing/instances/planted/events/enable
    put nop /sys/kernel/tracing/instances/planted-tracer/current_tracer
    rmdir /sys/kernel/tracing/instances/planted /sys/kernel/tracing/instances/planted-tracer
    kubelet_shares 0-1
    kill -9 $daemons
    wait $daemons 2>/dev/null
    daemons=""
    for irq in /proc/irq/[0-9]*; do
        ls -d $irq/*/ >/dev/null 2>&1 && put 3 $irq/smp_affinity
    done
    start_kdamond
    exec 9>/dev/cpu_dma_latency && printf '\0\0\0\0' >&9
    each_thread_to 3
    each_task_to 3
    mkdir $groups/planted
    echo +cpuset >$groups/cgroup.subtree_control
    echo 2-3 >$groups/planted/cpuset.cpus
    echo isolated 2>>plant.err >$groups/planted/cpuset.cpus.partition
    cat $groups/planted/cpuset.cpus.partition >right.partition
    group_of_2=$groups/planted group_of_3=$groups/planted
    # What has come meanwhile, and what the partition gave CPUs.
    each_thread_to 3
    each_task_to 3
}

# What looks right, or wrong, and is not: one CPU of the two, a file that something else makes moot,
# a value past the one that everybody writes.
half_at_run_time() {
    # The partition of another CPU beside one of these. Made anew: 6.1 leaves a CPU that a partition
    # gives away without a domain.
    echo member >$groups/planted/cpuset.cpus.partition
    rmdir $groups/planted
    mkdir $groups/planted
    echo 1,3 >$groups/planted/cpuset.cpus
    echo isolated 2>>plant.err >$groups/planted/cpuset.cpus.partition
    cat $groups/planted/cpuset.cpus.partition >half.partition
    group_of_2="" group_of_3=$groups/planted
    truth_domains 2 "sched-domains isolcpus cpuset-partition"
    # One task, pinned to one of the CPUs.
    hog 3
    resident=$hogs
    hogs=""
    before=$(user_time 3)
    sleep 1
    got=$(($(user_time 3) - before))
    verdict=right
    [ $got -lt 10 ] || verdict=wrong
    say user-tasks $verdict behaviour "a task that is pinned there: user time of CPU 3 +$got hundredths of a second"
    put b /sys/devices/virtual/workqueue/cpumask
    truth_workqueue
    put 7 /proc/irq/default_smp_affinity
    truth_new_interrupt
    # A mask that is taken for a list: CPU 3, and not CPUs 0 and 1.
    put 1 /proc/sys/kernel/soft_watchdog
    put 0x3 /proc/sys/kernel/watchdog_cpumask
    truth_watchdog
    audit
    world=moot
    # No timer runs, whatever the mask says.
    put 0-3 /proc/sys/kernel/watchdog_cpumask
    put 0 /proc/sys/kernel/watchdog
    truth_watchdog
    # A limit that is none where fair servers alone take time.
    put 950000 /proc/sys/kernel/sched_rt_runtime_us
    truth_throttling
    put 0 /proc/sys/vm/dirty_writeback_centisecs
    say dirty_writeback right setting "centisecs $(cat /proc/sys/vm/dirty_writeback_centisecs): the flusher is not woken by time at all"
    put 2 /sys/kernel/mm/ksm/run
    put 1 /sys/kernel/mm/ksm/merge_across_nodes
    scans=$(cat /sys/kernel/mm/ksm/full_scans)
    sleep 1
    say ksm-run right behaviour "run is $(cat /sys/kernel/mm/ksm/run), and ksmd made $(($(cat /sys/kernel/mm/ksm/full_scans) - scans)) scans in a second"
    say ksm-merge_across_nodes right setting "ksm/run is $(cat /sys/kernel/mm/ksm/run): nothing is merged"
    # Prepared and not at work.
    put 'p:planted schedule' /sys/kernel/tracing/kprobe_events
    truth_tracing
    if put always /sys/kernel/mm/transparent_hugepage/defrag; then
        say thp-defrag right setting "transparent_hugepage/enabled is $(in_force /sys/kernel/mm/transparent_hugepage/enabled): there is nothing to compact for"
        put 1 /sys/kernel/mm/transparent_hugepage/khugepaged/defrag
        say thp-khugepaged_defrag right setting "threads khugepaged: $(named khugepaged | grep -c .)"
    fi
    # Stopped, and dead without having been waited for.
    start_daemons
    usleep 300000
    kill -STOP $daemons
    truth_daemons
    audit
}

# One CPU of a core, whose other is open to all; then switched off.
smt_at_run_time() {
    world=sibling
    cpus=3
    say smt-siblings wrong setting "its core has CPUs $(cat /sys/devices/system/cpu/cpu3/topology/thread_siblings_list)"
    truth_smt "smt-control nosmt"
    audit
    world=siblings-off
    cpus=2
    put off /sys/devices/system/cpu/smt/control
    say smt-siblings right setting "its core has CPUs $(cat /sys/devices/system/cpu/cpu2/topology/thread_siblings_list)"
    truth_smt "smt-control nosmt"
    audit
    put on /sys/devices/system/cpu/smt/control
    cpus=2,3
}

run_time() {
    # The memory controller of version 1, where the kernel still has it.
    mkdir $groups/memory && mount -t cgroup -o memory memory $groups/memory 2>>plant.err
    mkfifo never
    pretend systemd
    systemd=$!
    world=booted
    boot_truths "2 3"
    audit_captured
    world=wrong
    wrong_at_run_time
    run_time_truths
    audit
    world=right
    right_at_run_time
    run_time_truths
    audit
    exec 9>&-
    world=half
    half_at_run_time
    put member $groups/planted/cpuset.cpus.partition
    group_of_2="" group_of_3=""
    kill -9 $resident $daemons
    rmdir $groups/planted
    smt_at_run_time
}

case $1 in
run-time) run_time ;;
right)
    world=booted
    boot_truths "2 3"
    audit_captured
    ;;
misbooted)
    world=booted
    boot_truths "2 3"
    audit_captured
    world=other-half
    cpus=1
    truth_nohz_full 1
    truth_rcu_nocbs 1
    truth_domains 1 "sched-domains isolcpus"
    audit
    ;;
esac
exit 0
