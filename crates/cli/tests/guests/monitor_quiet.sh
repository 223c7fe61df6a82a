# What isolated CPUs are interrupted by, in turns without a monitor and with one that watches them:
# a program on the one never enters the kernel, one on the other sleeps 10 ms again and again. Runs
# under busybox sh as root in its own directory; leaves the kernel's counters before and after each
# window for monitor_quiet.rs. Facts only. Arguments: turns, seconds of a window, the two CPUs.

stillcore=/usr/bin/stillcore
turns=$1
window=$2
busy=$3
sleeper=$4

/usr/bin/busybox ifconfig lo up
/usr/bin/busybox taskset -c $busy /usr/bin/busybox sh -c 'while :; do :; done' &
spinning=$!
cyclictest -q -m -t1 -a$sleeper -p80 -i10000 >/dev/null 2>&1 &
sleeping=$!

counters() {
    cat /proc/interrupts >$1.interrupts
    cat /proc/softirqs >$1.softirqs
}

# It spins only here: an emulator that takes turns between CPUs would take minutes to begin to
# record.
watched() {
    kill -CONT $spinning
    sleep 6
    counters $1.before
    sleep $window
    counters $1.after
    kill -STOP $spinning
}

turn=0
while [ $turn -lt $turns ]; do
    watched without-$turn
    : >said
    $stillcore monitor start --cpus $busy,$sleeper --over 1s --listen none --state "$PWD/state" >said 2>errors &
    monitor=$!
    until grep -q '^watching' said; do
        kill -0 $monitor 2>/dev/null || { cat errors && exit 1; }
        sleep 1
    done
    watched with-$turn
    kill $monitor
    wait $monitor
    echo $? >code-$turn
    turn=$((turn + 1))
done
$stillcore monitor status --json --state "$PWD/state" >status
kill $spinning $sleeping
rm -rf state
