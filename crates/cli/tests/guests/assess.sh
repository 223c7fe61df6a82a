# The script of a lab guest, once a boot. Runs under busybox sh as root in its own directory; leaves
# its evidence there for guest.rs. Facts only: nothing is judged here.

stillcore=/usr/bin/stillcore
duration=$1

# Possible leftovers of stillcore on the machine: mounts, tracing instances, control groups, its
# processes.
leftovers() {
    grep stillcore /proc/mounts
    ls -d /sys/fs/cgroup/stillcore-* "$PWD"/*/tracefs-*/instances/stillcore-* /var/lib/stillcore/journal/* 2>/dev/null
    for process in /proc/[0-9]*; do
        # A process may be gone by now.
        cat $process/cmdline 2>/dev/null | tr '\0' ' ' | grep -E '(stillcore|init) (assess|internal)'
    done
    return 0
}

# Waits up to a minute until a command succeeds.
await() {
    tries=0
    while [ $tries -lt 600 ] && ! "$@" >/dev/null 2>&1; do
        sleep 0.1
        tries=$((tries + 1))
    done
}

nothing_left() {
    [ -z "$(leftovers)" ]
}

uname -r >release
leftovers >left-at-start

$stillcore assess --cpus 2 --duration $duration --period 1ms --trace on --out run --json >assess.json 2>assess.log
echo $? >assess.code
leftovers >left-after-run

# The measured CPU goes away in the first window.
$stillcore assess --cpus 3 --duration 6s --period 1ms --out offlined >/dev/null 2>offlined.log &
victim=$!
await ls offlined/samples/wakeup-cpu3-0.parquet
sleep 0.5
echo 0 >/sys/devices/system/cpu/cpu3/online
wait $victim
echo $? >offlined.code
echo 1 >/sys/devices/system/cpu/cpu3/online
leftovers >left-after-offline

# Killed in its disturbed phase: the guardian cleans up.
$stillcore assess --cpus 2,3 --duration 4s --period 1ms --trace on --out killed >/dev/null 2>killed.log &
victim=$!
await grep '"name": "idle-before"' killed/run.json
sleep 1
leftovers >held-when-killed
kill -9 $victim
wait $victim
await nothing_left
leftovers >left-after-kill

# Only what is around the largest samples is kept; another measurement takes the CPU meanwhile. How
# long that one takes to begin depends on the host, so it is tried before.
hog() {
    $stillcore measure spin --cpus 2 --priority 90 --stretch 400ms --pause 100ms --duration 400ms \
        --out "$1" --quiet >/dev/null 2>"$1.log"
}
began=$(date +%s)
hog hog-before
took=$(($(date +%s) - began))
$stillcore measure wakeup --cpus 2 --duration $((7 + 2 * took))s --period 10ms --priority 50 --trace-over 60ms --out kept \
    --json --quiet >kept.json 2>kept.log &
victim=$!
await ls kept/samples/wakeup-cpu2-0.parquet
sleep 1
hog hog
wait $victim
echo $? >kept.code
leftovers >left-after-kept

# Kernels that run nohz_full CPUs refuse a global memory barrier: a loop that only fails.
cat /sys/devices/system/cpu/nohz_full >nohz_full
$stillcore disturb membarrier_global --measured 2 --duration 1s --json >barrier.json 2>barrier.log
echo $? >barrier.code
leftovers >left-after-barrier
