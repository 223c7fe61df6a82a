# Each stressor, killed with SIGKILL while it disturbs. Runs under busybox sh as root in /root; leaves for guest_disturb_kill.rs what each
# left behind. Argument: `dangerous` for those only, `all`.

PATH=/usr/bin:/bin:/sbin:/usr/sbin
stillcore=/usr/bin/stillcore
which=$1

list() {
    $stillcore disturb --list | /bin/busybox sed -n '/^suites/q; s/^ \([ *]\)\([a-z][a-z0-9_]*\) .*/\1\2/p' |
        /bin/busybox tr ' ' '-'
}

written=$($stillcore disturb --list --json | /bin/busybox sed 's/"writes":\[/\n&/g' | /bin/busybox sed -n 's/^"writes":\[\([^]]*\)\].*/\1/p' |
    /bin/busybox tr ',"' '\n\n' | /bin/busybox grep ^/ | /bin/busybox sort -u)

machine() {
    ls /sys/class/net
    ls -d /sys/block/loop*/loop 2>/dev/null
    cat /proc/mounts /sys/devices/system/cpu/online
    for path in $written /sys/devices/system/clocksource/clocksource0/current_clocksource /proc/sys/kernel/watchdog_thresh; do
        [ -r "$path" ] && echo "$path $(cat "$path")"
    done
    for memory in /sys/devices/system/memory/memory*/state; do
        [ -r "$memory" ] && echo "$memory $(cat "$memory")"
    done
    for tracing in /sys/kernel/tracing /sys/kernel/debug/tracing; do
        ls $tracing/instances 2>/dev/null
        cat $tracing/kprobe_events 2>/dev/null
    done
    find /sys/fs/cgroup -type d -name 'stillcore*' 2>/dev/null
    # Zombies have no command line.
    for process in /proc/[0-9]*; do
        case "$(/bin/busybox tr '\0' ' ' <$process/cmdline 2>/dev/null)" in
        *stillcore*) echo "process $(/bin/busybox tr '\0' ' ' <$process/cmdline)" ;;
        esac
    done | /bin/busybox sort
}

$stillcore internal state >before.json
for entry in $(list); do
    name=${entry#?}
    case $which$entry in
    dangerous-*) continue ;;
    esac
    machine >was
    $stillcore disturb $name --dangerous --cpus 0,1 --measured 2,3 --duration 120s --json >/dev/null 2>$name.log &
    victim=$!
    tries=0
    while [ $tries -lt 100 ] && kill -0 $victim 2>/dev/null && ! grep -q ^disturbing $name.log; do
        /bin/busybox sleep 0.1
        tries=$((tries + 1))
    done
    /bin/busybox sleep 0.7
    if kill -0 $victim 2>/dev/null; then echo $name >>ran; else echo $name >>ended; fi
    kill -KILL $victim 2>/dev/null
    wait $victim
    tries=0
    while :; do
        machine >is
        diff was is >$name.left && break
        [ $tries -ge 100 ] && break
        /bin/busybox sleep 0.2
        tries=$((tries + 1))
    done
    echo "$name $tries" >>tries
    [ -s $name.left ] || rm -f $name.left
done
$stillcore internal state >after.json
ls *.left >left 2>/dev/null
exit 0
