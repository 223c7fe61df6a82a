# Traces of every kind, and each probe once. Runs under busybox sh as root in its own directory;
# leaves its evidence there for counts.rs. Facts only: nothing is judged here.

stillcore=/usr/bin/stillcore
part=$1
instances=/sys/kernel/tracing/instances

# Possible leftovers of stillcore on the machine.
leftovers() {
    grep stillcore /proc/mounts
    ls -d $instances/* /sys/fs/cgroup/stillcore-* /var/lib/stillcore/journal/* 2>/dev/null
    cat /sys/kernel/tracing/kprobe_events 2>/dev/null
    return 0
}

# NAME, then the command. Stores its answer, its messages, its exit code and its leftovers.
take() {
    name=$1
    shift
    "$@" >$name.json 2>$name.log
    echo $? >$name.code
    leftovers >$name.left
}

uname -r >release
case $part in
    # The command of the lossy run: the buffer of its own CPU becomes as small as can be, then two
    # of its tasks switch to and fro.
    overrun)
        for size in $instances/stillcore-*/per_cpu/cpu2/buffer_size_kb; do
            echo 4 >$size
        done
        taskset 4 sh -c 'yes | head -c 3000000 >/dev/null'
        ;;
    traces)
        mount -t tracefs tracefs /sys/kernel/tracing
        take run $stillcore assess --cpus 2 --duration 2s --period 1ms --trace on --out run --json
        take watched $stillcore trace watch --cpus 2 --out watched --json -- cyclictest -q -m -t1 -a2 -p90 -i2000 -l1000
        take lossy $stillcore trace watch --cpus 2 --out lossy --json -- /bin/busybox sh ./script.sh overrun
        umount /sys/kernel/tracing
        ;;
    probes)
        common="--cpus 2 --duration 2s --json --quiet"
        take wakeup $stillcore measure wakeup $common --out wakeup
        take spin $stillcore measure spin $common --out spin
        take periodic $stillcore measure periodic $common --out periodic
        take taskset $stillcore measure taskset $common --tasks 40:2:60,80:4:50 --out taskset
        take clocks $stillcore measure clocks --cpus 2 --duration 2s --json --quiet --out clocks
        take ipi $stillcore measure ipi --cpus 2,3 --count 50 --json --quiet --out ipi
        take overheads $stillcore measure overheads --cpus 2 --count 20 --cache-count 20 --sizes 4K,64K --json --quiet --out overheads
        ;;
esac
exit 0
