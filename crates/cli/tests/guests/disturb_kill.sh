# Each stressor, killed with SIGKILL while it disturbs: dangerous ones by themselves, others six at
# a time; a partition last, because on
# 5.10 it lets the kernel's bound workers run anywhere for good, and nothing that requires work on
# every CPU ends after that. Runs under busybox sh as root in its own directory; leaves for
# disturb_kill.rs what they left behind. Argument: `dangerous` for those only, `all`.

PATH=/usr/bin:/bin:/sbin:/usr/sbin
stillcore=/usr/bin/stillcore
which=$1
last=cpuset_partition

list() {
    $stillcore disturb --list | /bin/busybox sed -n '/^suites/q; s/^ \([ *]\)\([a-z][a-z0-9_]*\) .*/\1\2/p' |
        /bin/busybox tr ' ' '-'
}

written=$($stillcore disturb --list --json | /bin/busybox sed 's/"writes":\[/\n&/g' | /bin/busybox sed -n 's/^"writes":\[\([^]]*\)\].*/\1/p' |
    /bin/busybox tr ',"' '\n\n' | /bin/busybox grep ^/ | /bin/busybox sort -u)

# As few programs as can be: an emulated machine starts some tens a second.
machine() {
    ls /sys/class/net
    ls -d /sys/block/loop*/loop 2>/dev/null
    cat /proc/mounts /proc/swaps /sys/devices/system/cpu/online
    ls /var/tmp/stillcore-swap-* /tmp/stillcore-swap-* 2>/dev/null
    /bin/busybox grep -s '' $written /sys/devices/system/clocksource/clocksource0/current_clocksource /proc/sys/kernel/watchdog_thresh \
        /sys/devices/system/memory/memory*/state
    ls /sys/kernel/tracing/instances /sys/kernel/debug/tracing/instances 2>/dev/null
    cat /sys/kernel/tracing/kprobe_events /sys/kernel/debug/tracing/kprobe_events 2>/dev/null
    find /sys/fs/cgroup -type d -name 'stillcore*' 2>/dev/null
    # Zombies have no command line.
    cat /proc/[0-9]*/cmdline 2>/dev/null | /bin/busybox tr '\0' '\n' | grep stillcore | /bin/busybox sort
}

$stillcore internal state >before.json

# Kills these once they disturb; `ran` has those that were there then, by their command lines.
kill_all() {
    machine >was
    $stillcore disturb $* --dangerous --cpus 0,1 --measured 2,3 --duration 300s --json >/dev/null 2>log &
    victim=$!
    tries=0
    while [ $tries -lt 300 ] && kill -0 $victim 2>/dev/null && ! grep -q ^disturbing log; do
        /bin/busybox sleep 0.1
        tries=$((tries + 1))
    done
    /bin/busybox sleep 0.7
    cat /proc/[0-9]*/cmdline 2>/dev/null | /bin/busybox tr '\0' '\n' | /bin/busybox grep -x -A 1 stress >there
    for name in $*; do
        if grep -qx $name there; then echo $name >>ran; else echo $name >>ended; fi
    done
    kill -KILL $victim 2>/dev/null
    wait $victim
    tries=0
    while :; do
        machine >is
        diff was is >difference && break
        [ $tries -ge 600 ] && break
        /bin/busybox sleep 0.2
        tries=$((tries + 1))
    done
    [ -s difference ] && mv difference "$(echo $* | /bin/busybox tr ' ' '+').left"
}

some=
count=0
for entry in $(list); do
    name=${entry#?}
    [ $name = $last ] && continue
    case $which$entry in
    dangerous-*) ;;
    *-$name)
        some="$some $name"
        count=$((count + 1))
        [ $count -lt 6 ] && continue
        kill_all $some
        some=
        count=0
        ;;
    *) kill_all $name ;;
    esac
done
[ -n "$some" ] && kill_all $some
kill_all $last
$stillcore internal state >after.json
ls *.left >left 2>/dev/null
exit 0
