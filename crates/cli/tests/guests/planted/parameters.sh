# What the kernel made of its parameters and its build options, seen without stillcore. As
# evidence.sh, whose functions it uses.

# Whether the audit subsystem has its thread.
truth_auditing() {
    threads=$(named kauditd | grep -c .)
    verdict=right
    [ $threads -eq 0 ] || verdict=wrong
    say audit $verdict behaviour "$threads threads kauditd"
}

# Whether pressure is averaged.
truth_pressure() {
    verdict=wrong
    [ -e /proc/pressure/cpu ] || verdict=right
    say psi $verdict behaviour "/proc/pressure/cpu: $(cat /proc/pressure/cpu 2>&1 | head -n 1)"
}

truth_mitigations() {
    # Page table entries are inverted whatever is requested.
    kept=$(grep '^Mitigation' /sys/devices/system/cpu/vulnerabilities/* /dev/null | grep -v 'PTE Inversion$' | sed 's/.*\///' | tr '\n' ' ')
    verdict=right
    [ -z "$kept" ] || verdict=wrong
    say mitigations $verdict setting "mitigated: ${kept:-nothing}"
}

# Whether the ticks of two CPUs fall together. Where a tick is stopped, its timer stands at the next
# event, whatever the skew: two busy tasks keep a CPU ticking, a nohz_full one too.
truth_skew() {
    for cpu in 0 1; do
        hog $cpu
        hog $cpu
    done
    usleep 100000
    phases=$(awk '$1 == "cpu:" { cpu = $2 }
        cpu < 2 && /(tick_sched_timer|tick_nohz_handler)/ { tick = 1; next }
        tick && /expires at/ { sub("-.*", "", $4); print int(($4 % 4000000) / 1000); tick = 0 }' /proc/timer_list | tr '\n' ' ')
    end_hogs
    set -- $phases
    verdict=wrong
    [ "$1" = "$2" ] || verdict=right
    [ $# -eq 2 ] || verdict=none
    say skew_tick $verdict behaviour "CPUs 0 and 1 tick at these microseconds of 4000: $phases"
}

# Whether the timer of the clocks' watchdog goes from CPU to CPU.
truth_clock_watchdog() {
    here=/sys/kernel/tracing/instances/evidence
    mkdir $here
    echo 1 >$here/events/timer/timer_expire_entry/enable
    sleep 3
    echo 0 >$here/events/timer/timer_expire_entry/enable
    runs=$(grep -c 'clocksource_watchdog' $here/trace)
    rmdir $here
    verdict=right
    [ $runs -eq 0 ] || verdict=wrong
    say tsc $verdict behaviour "the timer of the clocks' watchdog ran $runs times in three seconds"
}

truth_threaded() {
    # Some drivers have a thread of their own; that of the console has none unless it is made to.
    threads=$(named 'irq/*ttyS0' | grep -c .)
    verdict=wrong
    [ $threads -eq 0 ] || verdict=right
    say threadirqs $verdict behaviour "$threads threads of the console's interrupt"
}

# The model of preemption, where it was chosen as the kernel was built.
truth_preemption() {
    built=$(uname -v)
    case $built in
    *PREEMPT_RT*) say preempt-mode right setting "built as $built" ;;
    *PREEMPT_DYNAMIC*) ;;
    *PREEMPT*) say preempt-mode right setting "built as $built" ;;
    *) say preempt-mode wrong setting "built as $built, which names no preemption" ;;
    esac
}

# Parameters for what this kernel has not: it ignores them.
truth_ignored() {
    verdict=right
    grep -q ' csdlock_debug' /proc/kallsyms && grep -q 'csdlock_debug' /proc/cmdline && verdict=wrong
    say csdlock_debug $verdict setting "$(grep -c ' csdlock_debug' /proc/kallsyms) symbols of the diagnosis of cross-calls in the kernel"
    verdict=right
    grep -q kthread_cpus= /proc/cmdline && verdict=wrong
    say kthread_cpus $verdict setting "on the command line $(grep -c kthread_cpus= /proc/cmdline) times, in the kernel $(grep -c kthread_cpus /proc/kallsyms)"
    grep -q xenomai.supported_cpus= /proc/cmdline || return
    verdict=absent
    [ -e /proc/xenomai ] && verdict=right
    say xenomai-supported_cpus $verdict behaviour "/proc/xenomai: $(ls -d /proc/xenomai 2>&1)"
}

# Ticks of a CPU that is idle.
truth_nohz() {
    least=$(fewest_ticks 3)
    verdict=right
    [ $least -lt $TICKING ] || verdict=wrong
    say nohz $verdict behaviour "local timer interrupts of an idle CPU in a second, the fewest of three: $least"
}

# Threads that wait for callbacks by looking, and not by being woken.
truth_rcu_nocb_poll() {
    verdict=wrong
    dmesg | grep -q 'Poll for callbacks from no-CBs CPUs' && verdict=right
    say rcu_nocb_poll $verdict setting "boot log: $(dmesg | grep -c 'Poll for callbacks') line says that callbacks are polled for"
}

# Build options by what is in the kernel.
truth_symbols() {
    while read -r id symbol wanted; do
        [ "$id" != '#' ] || continue
        other=right
        [ $wanted = wrong ] || other=wrong
        if grep -qE " $symbol( |\$|\.)" /proc/kallsyms; then
            say $id $wanted setting "the kernel has $symbol"
        else
            say $id $other setting "the kernel has no $symbol"
        fi
    done <symbols
}

# The CPUs that a new interrupt gets: that of the network card is requested as it is switched on.
truth_new_interrupt() {
    [ -e /sys/class/net/eth0 ] || return
    ip link set eth0 down
    ip link set eth0 up
    usleep 200000
    irq=$(awk '/eth0/ { sub(":", "", $1); print $1; exit }' /proc/interrupts)
    [ -n "$irq" ] || return
    got=$(cat /proc/irq/$irq/smp_affinity)
    ip link set eth0 down
    verdict=right
    [ $((0x$got & 12)) -eq 0 ] || verdict=wrong
    say irqaffinity $verdict behaviour "interrupt $irq, new, may be handled on $got"
}

# Timers of the fair server that are armed on the CPUs while ordinary tasks there sleep and wake.
truth_server_timers() {
    [ -e /sys/kernel/debug/sched/fair_server ] || return
    here=/sys/kernel/tracing/instances/evidence
    mkdir $here
    echo 1 >$here/events/timer/hrtimer_start/enable
    for cpu in 2 3; do
        eval "group=\$group_of_$cpu"
        sh -c "[ -z '$group' ] || echo \$\$ >'$group'/cgroup.procs; exec taskset $(hex $((1 << cpu))) /bin/busybox sh -c '
            n=0; while [ \$n -lt 50 ]; do usleep 10000; n=\$((n + 1)); done'"
    done
    echo 0 >$here/events/timer/hrtimer_start/enable
    armed=$(cat $here/per_cpu/cpu2/trace $here/per_cpu/cpu3/trace | grep -cE 'function=(dl_task_timer|inactive_task_timer)')
    rmdir $here
    verdict=right
    [ $armed -lt 5 ] || verdict=wrong
    say fair_server-timers $verdict behaviour "timers of the server armed there $armed times while ordinary tasks slept and woke"
}

# Who does RCU's own work for the CPUs: a softirq, or threads.
truth_rcu_core() {
    raised() { awk '$1 == "RCU:" { for (n = 2; n <= NF; n++) all += $n } END { print all + 0 }' /proc/softirqs; }
    before=$(raised)
    for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        for f in a b c d e f g h; do echo >/dev/shm/planted-$f; rm /dev/shm/planted-$f; done
        usleep 20000
    done
    softirqs=$(($(raised) - before))
    verdict=right
    [ $softirqs -lt 5 ] || verdict=wrong
    say rcutree-use_softirq $verdict behaviour "$softirqs softirqs of RCU while files were removed, and $(named 'rcuc/*' | grep -c .) threads for its work"
}

# What a machine without the firmware or the processor for it makes of such parameters: nothing.
truth_firmware() {
    if [ -e /sys/firmware/efi ]; then
        verdict=wrong
        dmesg | grep -q 'efi: runtime service support disabled\|EFI runtime services will be disabled' && verdict=right
        say efi-noruntime $verdict setting "booted by EFI"
    else
        say efi-noruntime absent setting "not booted by EFI: there are no services to call"
    fi
    case " $(cat /proc/cmdline) " in
    *" split_lock_detect=off "*) say split_lock_detect wrong setting "asked to be off" ;;
    *" split_lock_detect="*) say split_lock_detect right setting "asked for" ;;
    esac
}
