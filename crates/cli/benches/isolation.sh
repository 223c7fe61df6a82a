# One cell of the isolation study: isolates CPUs 2 and 3 by one method, then measures CPU 2 under disturbances.
# Runs under busybox sh as root in /root of a lab guest. Arguments: the method, the length of a phase.

method=$1
duration=$2
house=0-1
house_mask=3
still=2-3
stillcore=/usr/bin/stillcore

write() {
    for file in $2; do
        [ -e $file ] && echo "$1 > $file: $(echo $1 2>&1 >$file)" >>method.log
    done
}

# The runtime steps that both lists share.
common() {
    for file in /proc/irq/*/smp_affinity_list; do
        write $house $file
    done
    write never /sys/kernel/mm/transparent_hugepage/enabled
    write 0 /sys/fs/cgroup/memory/memory.move_charge_at_immigrate
    write 0 /sys/kernel/mm/ksm/merge_across_nodes
    write 0 /sys/kernel/mm/ksm/run
    for pid in $(/bin/busybox pgrep kswapd); do
        /bin/busybox taskset -pc $house $pid >>method.log 2>&1
    done
    write 0 /proc/sys/kernel/timer_migration
    write 1 /sys/kernel/rcu_normal
    write -1 /proc/sys/kernel/sched_rt_runtime_us
    write -1 /proc/sys/kernel/sched_rt_period_us
    /bin/busybox swapoff -a
}

case $method in
nothing) ;;
replication)
    # As its report says (§6.3): the list goes into the file that wants a mask, and is refused.
    common
    write $house /sys/devices/virtual/workqueue/cpumask
    ;;
table3)
    # Every row of Table III, its mask spelled as the file wants it.
    common
    write 0 /proc/sys/kernel/numa_balancing
    write $house_mask /sys/devices/virtual/workqueue/cpumask
    for file in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do
        write performance $file
    done
    ;;
tuned-*)
    profile=${method#tuned-}
    mkdir -p /etc/tuned /run/tuned /var/log/tuned
    echo isolated_cores=$still | tee /etc/tuned/cpu-partitioning-variables.conf >/etc/tuned/realtime-variables.conf
    echo $profile >/etc/tuned/active_profile
    echo manual >/etc/tuned/profile_mode
    /usr/bin/python3 -Es /usr/sbin/tuned --no-dbus >tuned.log 2>&1 &
    tries=0
    while [ $tries -lt 60 ] && ! grep -q "static tuning from profile '$profile' applied" tuned.log; do
        sleep 1
        tries=$((tries + 1))
    done
    grep "static tuning from profile '$profile' applied" tuned.log >>method.log || exit 3
    /usr/bin/python3 -Es /usr/sbin/tuned --version >tuned.version
    ;;
stillcore)
    # What a user gets who asks for nothing else.
    $stillcore isolate apply --cpus $still >>method.log 2>&1
    ;;
esac

$stillcore assess --cpus 2 --duration $duration --trace on --priority 80 --out run --json >assess.json 2>assess.log
code=$?
[ $code -eq 0 ] || [ $code -eq 2 ] || exit 4
$stillcore audit --cpus 2 --json >audit.json 2>/dev/null
exit 0
