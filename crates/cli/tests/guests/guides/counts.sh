# Events that commands of guides are said to take away from CPUs 2 and 3: each function provokes
# them and prints how many there were, or `- WHY` where this kernel or machine has none to show.
# Uses the functions of evidence.sh.

here=/sys/kernel/tracing/instances/guides

# Events, then a command during which they are recorded: `there` has those of CPUs 2 and 3,
# `everywhere` all of them. Fails where the kernel has lost any.
record() {
    mkdir $here || return
    echo 0 >$here/tracing_on
    echo 8192 >$here/buffer_size_kb
    for event in $1; do
        echo 1 >$here/events/$event/enable || lacking="the kernel has no event $event"
    done
    during "$@"
}

# A pattern of kernel functions, then a command during which their calls are recorded.
record_calls() {
    mkdir $here || return
    echo 0 >$here/tracing_on
    echo "$1" >$here/set_ftrace_filter
    # Without a filter every function is traced.
    if ! grep -q '^[a-z]' $here/set_ftrace_filter; then
        rmdir $here
        echo "- no function $1 can be traced"
        return 1
    fi
    echo function >$here/current_tracer
    during "$@"
}

during() {
    shift
    # Switching events on sends interrupts itself.
    usleep 200000
    echo 1 >$here/tracing_on
    "$@"
    echo 0 >$here/tracing_on
    grep -hv '^#' $here/per_cpu/cpu2/trace $here/per_cpu/cpu3/trace >there
    grep -v '^#' $here/trace >everywhere
    lost=$(cat $here/per_cpu/cpu*/stats | awk '/^(overrun|commit overrun|dropped events):/ { n += $NF } END { print n + 0 }')
    echo nop >$here/current_tracer
    rmdir $here
    [ -z "$lacking" ] || echo "- $lacking"
    [ $lost -eq 0 ] || echo "- $lost events were lost"
    [ -z "$lacking" ] && [ $lost -eq 0 ]
}

lines() {
    grep -cE "$1" $2
}

crowd() {
    for one in 1 2 3 4 5 6 7 8; do
        sh -c 'while :; do :; done' &
        hogs="$hogs $!"
    done
    sleep 2
}

# Of eight busy tasks without placement, those that ran on the CPUs.
tasks() {
    record sched/sched_switch crowd || { end_hogs; return; }
    n=0
    for pid in $hogs; do grep -q "next_pid=$pid " there && n=$((n + 1)); done
    end_hogs
    echo $n
}

# Ticks of CPU 2 in a second in which one task is busy there.
ticks() {
    hog 2
    sleep 1
    fewest_ticks 2
    end_hogs
}

# Numbered interrupts of the CPUs so far, of the rows that match.
interrupts_of() {
    awk -v row="$1" '$1 ~ /^[0-9]+:$/ && $0 ~ row { n += $4 + $5 } END { print n + 0 }' /proc/interrupts
}

# One frame from card to card, without an answer.
frame() {
    ping -c 1 -W 1 -q 10.9.0.2 >/dev/null 2>&1 &
    usleep 60000
    kill -9 $!
    wait $!
}

# Of so many runs of a command, those during which the CPUs are interrupted by rows that match.
interrupting() {
    seen=0
    for try in $(seq $2); do
        first=$(interrupts_of $1)
        eval "$3"
        usleep 20000
        [ $(interrupts_of $1) -eq $first ] || seen=$((seen + 1))
    done
    echo $seen
}

# Of 10 lines of the console and 20 frames from card to card, those that interrupt the CPUs.
interrupts() {
    cards up
    lines_of_console=$(interrupting ttyS0 10 'echo "guides: interrupts of the console" >/dev/ttyS0; usleep 20000')
    echo $((lines_of_console + $(interrupting eth 20 frame)))
}

# CPUs of these two to which the interrupts of two cards may come that are requested anew, four
# times. Where they do come the kernel chooses, and those of these cards keep what it chose first.
new_interrupts() {
    [ -e /sys/class/net/eth1 ] || { echo "- no network cards"; return; }
    n=0
    for try in 1 2 3 4; do
        cards down
        cards up
        for irq in $(awk '/eth[01]/ { sub(":", "", $1); print $1 }' /proc/interrupts); do
            mask=0x$(cat /proc/irq/$irq/smp_affinity)
            n=$((n + (mask >> 2 & 1) + (mask >> 3 & 1)))
        done
    done
    echo $n
}

removals() {
    taskset 4 /bin/busybox sh -c '
        for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
            for f in a b c d e f g h; do echo >/dev/shm/guides-$f; rm /dev/shm/guides-$f; done
            usleep 20000
        done'
    # Callbacks may be lazy, and wait for others for ten seconds (CONFIG_RCU_LAZY).
    for try in 1 2 3 4 5; do
        taskset 4 /bin/busybox sh -c 'echo >/dev/shm/guides; rm /dev/shm/guides'
        [ ! -e /sys/module/rcutree/parameters/do_rcu_barrier ] || echo 1 >/sys/module/rcutree/parameters/do_rcu_barrier
        usleep 300000
    done
}

# Batches of RCU callbacks that the CPUs themselves carry out while a task there removes files.
callbacks() {
    record_calls 'rcu_do_batch*' removals && grep -v nocb there | grep -c rcu_do_batch
}

# How often threads that carry out such callbacks for CPUs run there.
offload_threads() {
    [ -n "$(named 'rcuo*')" ] || { echo "- no CPU's callbacks are offloaded"; return; }
    record sched/sched_switch removals && lines 'next_comm=rcuo' there
}

# Huge pages that a program on CPU 2 gets without a request.
huge_pages() {
    [ -e /sys/kernel/mm/transparent_hugepage ] || { echo "- this kernel has no transparent huge pages"; return; }
    first=$(vmstat_of thp_fault_alloc)
    taskset 4 dd if=/dev/zero of=/dev/null bs=32M count=1
    echo $(($(vmstat_of thp_fault_alloc) - first))
}

# Pages whose charge goes with a task of 8 MiB from one group to another that wants it.
charges() {
    v1=$groups/memory
    [ -e $v1/memory.move_charge_at_immigrate ] || { echo "- this kernel has no memory groups of version 1"; return; }
    mkdir -p $v1/from $v1/to
    echo 1 >$v1/to/memory.move_charge_at_immigrate
    /bin/busybox sh -c "echo \$\$ >$v1/from/cgroup.procs; x=\$(dd if=/dev/zero bs=1M count=8 | tr '\\0' x); read line <>never" &
    task=$!
    sleep 4
    echo $task >$v1/to/cgroup.procs
    echo $(($(awk '$1 == "rss" { print $2 }' $v1/to/memory.stat) / 4096))
    kill -9 $task
    wait $task
    rmdir $v1/from $v1/to
}

# How often the thread that merges equal pages runs, anywhere.
merging() {
    [ -e /sys/kernel/mm/ksm ] || { echo "- this kernel merges no pages"; return; }
    record sched/sched_switch sleep 2 && lines 'next_comm=ksmd' everywhere
}

reading() {
    echo 3 >/proc/sys/vm/drop_caches
    for cpu in 0 1; do hog $cpu; done
    taskset 4 dd if=/dev/$disk of=/dev/null bs=256k count=4400
    end_hogs
}

# How often kswapd runs there while a task there reads more than fits into memory and others keep
# CPUs 0 and 1 busy.
kswapd() {
    [ -n "$disk" ] || { echo "- no disk to read from"; return; }
    record sched/sched_switch reading && lines 'next_comm=kswapd' there
}

helpers() {
    for cpu in 0 1; do hog $cpu; done
    for try in 1 2 3 4 5 6 7 8 9 10 11 12; do
        taskset 4 mount -t guides$try none /mnt
        taskset 8 mount -t guides$try$try none /mnt
    done
    usleep 200000
    end_hogs
}

# Work items of unbound queues that run there while tasks there ask for modules and others keep
# CPUs 0 and 1 busy.
unbound_work() {
    record workqueue/workqueue_execute_start helpers && lines '^ *kworker/u' there
}

# Workers that ran there last, as `ps -eLo pid,psr,comm` shows them.
workers() {
    n=0
    for pid in $(named 'kworker/*'); do
        case $(last_cpu $pid 2>/dev/null) in 2 | 3) n=$((n + 1)) ;; esac
    done
    echo $n
}

writing() {
    # The last to close it would write everything back itself.
    exec 8<>/dev/$disk
    for cpu in 0 1; do hog $cpu; done
    for try in 1 2 3 4 5 6 7 8; do
        for mask in 4 8; do
            taskset $mask dd if=/dev/zero of=/dev/$disk bs=64k count=4
            taskset $mask sync
        done
    done
    end_hogs
    exec 8>&-
}

# Work items of writeback that run there while tasks there write to a disk
# and others keep CPUs 0 and 1 busy.
writeback() {
    [ -n "$disk" ] || { echo "- no disk to write to"; return; }
    record workqueue/workqueue_execute_start writing && lines 'wb_workfn' there
}

# Kernel threads that may run there, without those whose CPUs cannot be set.
threads() {
    n=0
    for stat in /proc/[0-9]*/stat; do
        read -r line 2>/dev/null <$stat || continue
        pid=${line%% *}
        set -- ${line##*) }
        # PF_NO_SETAFFINITY
        [ "$2" = 2 ] && [ $(($7 & 0x04000000)) -eq 0 ] || continue
        now=$(taskset -p $pid 2>/dev/null)
        [ $((0x${now##* } & 12)) -eq 0 ] || n=$((n + 1))
    done
    echo $n
}

neighbours() {
    hog 2
    hog 3
    sleep 1
    for one in 3 4 5 6 7 8 9; do
        for two in 0 1 2 3 4 5; do
            taskset 3 /bin/busybox ping -c 1 -W 1 -q 10.9.0.$one$two >/dev/null 2>&1 &
            usleep 50000
        done
    done
    sleep 1
    end_hogs
}

# Timers that CPUs 0 and 1 arm there as answers of neighbours come: eth1 answers for everybody. A
# kernel does so where the CPU is idle as the answer comes.
foreign_timers() {
    set -- /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/conf/eth1/proxy_arp /proc/sys/net/ipv4/conf/eth1/accept_local
    answering=$(settings "$*")
    for file in $*; do echo 1 >$file; done
    echo 0 >/proc/sys/net/ipv4/neigh/eth1/proxy_delay
    for one in 3 4 5 6 7 8 9; do
        for two in 0 1 2 3 4 5; do arp -d -i eth0 10.9.0.$one$two; done
    done >/dev/null
    record timer/timer_start neighbours && lines '\[00[01]\].*timer_start.*cpu=[23]' everywhere
    echo "$answering" | while read -r file value; do echo $value >$file; done >/dev/null
}

sleeping() {
    taskset 4 /bin/busybox sh -c 'n=0; while [ $n -lt 100 ]; do usleep 5000; n=$((n + 1)); done'
}

# Timers of a task on CPU 2 that go off there.
own_timers() {
    record timer/hrtimer_expire_entry sleeping && lines '\[002\].*function=hrtimer_wakeup' there
}

remounting() {
    for try in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        taskset 1 mount --bind /proc /mnt && taskset 1 umount /mnt
    done
}

# Interrupts by which others' expedited grace periods look at the busy CPUs. What runs in them is
# counted: on real-time kernels 100 calls came for other reasons, with and without any of these.
expedited() {
    hog 2
    hog 3
    sleep 1
    record_calls rcu_exp_handler remounting && lines rcu_exp_handler there
    end_hogs
}

first_in() {
    # Nearly all of the time, and never all of it.
    timeout 10 taskset 4 chrt -f 50 /bin/busybox sh -c '
        while usleep 1000; do n=0; while [ $n -lt 2000 ]; do n=$((n + 1)); done; done'
}

# How often the timer of the limit on real-time tasks goes off while one runs most of the time.
throttling_timers() {
    record timer/hrtimer_expire_entry first_in && lines 'function=sched_rt_period_timer' everywhere
}

# Pages of a task on CPU 2 that are swapped out when its group is over its limit.
swapped() {
    [ -e /sys/block/zram0 ] || { echo "- no device to swap to"; return; }
    mkdir $groups/guides
    echo 16M >$groups/guides/memory.max
    first=$(vmstat_of pswpout)
    /bin/busybox sh -c "echo \$\$ >$groups/guides/cgroup.procs; exec /bin/busybox timeout 20 /bin/busybox taskset 4 /bin/busybox dd if=/dev/zero of=/dev/null bs=32M count=1"
    echo $(($(vmstat_of pswpout) - first))
    usleep 200000
    rmdir $groups/guides
}

# How often the timer of the detector of lock-ups goes off there in 20 seconds.
detector() {
    record timer/hrtimer_expire_entry sleep 20 && lines 'function=watchdog_timer_fn' there
}

files_for() {
    for n in 1 2 3 4 5 6 7 8 9 10 11 12; do
        taskset 4 dd if=/dev/zero of=/dev/shm/guides bs=64k count=64
        rm /dev/shm/guides
        usleep 400000
    done
}

# How often statistics of memory are folded there while a task there writes and removes files.
statistics() {
    record workqueue/workqueue_execute_start files_for && lines 'function (vmstat_update|quiet_vmstat)' there
}

# Pages of a busy task on CPU 2 that NUMA balancing takes away so that they fault.
numa_faults() {
    [ -e /proc/sys/kernel/numa_balancing ] || { echo "- this kernel has no NUMA balancing"; return; }
    first=$(vmstat_of numa_pte_updates)
    taskset 4 timeout 8 perl -e '
        my $at = syscall(9, 0, 4 << 20, 3, 0x21, -1, 0);
        while (1) { for (my $p = 0; $p < 4 << 20; $p += 4096) { my $b = unpack("P1", pack("Q", $at + $p)); } }'
    first=$(($(vmstat_of numa_pte_updates) - first))
    if [ $first -eq 0 ] && [ ! -e /sys/devices/system/node/node1 ]; then
        echo "- the guest has one NUMA node, and nothing is taken away from a task that is on the node of its pages"
    else
        echo $first
    fi
}

# Interrupts that have come to the CPUs, in a way, twelve seconds after all were kept away.
balanced() {
    [ -x /usr/sbin/irqbalance ] || { echo "- irqbalance is not installed"; return; }
    for irq in /proc/irq/[0-9]*; do echo 3 >$irq/smp_affinity; done
    for try in 1 2 3 4 5 6; do ping -c 50 -i 0.02 -W 1 -q 10.9.0.2 >/dev/null 2>&1; sleep 1; done
    n=0
    for irq in /proc/irq/[0-9]*; do
        mask=$(cat $irq/smp_affinity)
        [ $((0x${mask##*,} & 12)) -eq 0 ] || ! echo $mask >$irq/smp_affinity || n=$((n + 1))
    done
    echo $n
}

# Links that the kernel can put to sleep.
sleeping_links() {
    n=$(ls -d /sys/bus/pci/devices/*/link/*aspm 2>/dev/null | grep -c .)
    [ $n -gt 0 ] || n="- no PCIe link of this machine has ASPM"
    echo "$n"
}

scaling() {
    [ -e /sys/devices/system/cpu/cpu2/cpufreq ] || { echo "- the machine scales no frequency"; return; }
    [ $(cat /sys/devices/system/cpu/cpu2/cpufreq/scaling_governor) = performance ]
    echo $?
}

encryption() {
    echo "- nothing in the guest encrypts through pcrypt"
}

# How often the thread that moves pages together runs.
compaction() {
    record sched/sched_switch sleep 6 && lines 'next_comm=kcompactd' everywhere
}

# How often the timers go off there that look for unreported machine checks.
machine_checks() {
    [ -e /sys/devices/system/machinecheck/machinecheck2 ] || { echo "- no machine checks on this machine"; return; }
    record timer/timer_expire_entry sleep 8 && lines 'function=mce_timer_fn' there
}

# Packets of the loop-back device that the CPUs process.
packets() {
    ip addr add 127.0.0.1/8 dev lo
    first=$(packets_there)
    taskset 1 /bin/busybox ping -c 30 -i 0.02 -q 127.0.0.1 >/dev/null
    echo $(($(packets_there) - first))
}
