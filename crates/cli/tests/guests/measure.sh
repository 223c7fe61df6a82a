# Probes under changing conditions. Runs under busybox sh as root in its own directory; leaves its
# evidence there for measure.rs. Facts only: nothing is judged here.

stillcore=/usr/bin/stillcore
part=$1

# Waits up to a minute until a command succeeds.
await() {
    tries=0
    while [ $tries -lt 600 ] && ! "$@" >/dev/null 2>&1; do
        sleep 0.1
        tries=$((tries + 1))
    done
}

# NAME, the first file of its samples, then a measurement, in the background: it has begun when this
# returns.
begin() {
    name=$1
    first=$2
    shift 2
    $stillcore measure "$@" --out $name --json --quiet >$name.json 2>$name.log &
    victim=$!
    await ls $name/samples/$first-0.parquet
    sleep 1
}

end() {
    wait $victim
    echo $? >$name.code
}

# The measured CPU goes away.
offline() {
    begin $1-offline $2-cpu3 $1 --cpus 3 --duration 8s
    echo 0 >/sys/devices/system/cpu/cpu3/online
    end
    echo 1 >/sys/devices/system/cpu/cpu3/online
}

# CLOCK_REALTIME is set to a date.
set_clock() {
    begin clock-$1 wakeup-cpu2 wakeup --cpus 2 --duration 6s --clock realtime
    date -s "$2" >/dev/null
    end
}

# Memory runs out while the machine is measured and recorded: another process takes all of it.
starve() {
    begin starved wakeup-cpu2 wakeup --cpus 2 --duration 30s --period 10ms --trace --state state
    tail /dev/zero >/dev/null 2>&1
    end
    grep oom_kill /proc/vmstat >starved.kills
}

# A loop that never rests.
hog_cpu() {
    $stillcore measure spin --cpus 2 --stretch 6s --pause 0s --duration 6s --out $1 --json --quiet >$1.json 2>$1.log
    echo $? >$1.code
}

uname -r >release
mount -t debugfs debugfs /sys/kernel/debug 2>/dev/null
case $part in
    moves)
        # The kernel reports throttling only once per boot.
        hog_cpu throttled
        offline wakeup wakeup
        offline spin noise
        today=$(date -u "+%Y-%m-%d %H:%M:%S")
        set_clock forth "2031-01-01 00:00:00"
        set_clock back "2030-01-01 00:00:00"
        date -u -s "$today" >/dev/null
        $stillcore internal state >before.json
        starve
        $stillcore internal state >after.json
        ;;
    fair)
        taskset 4 sh -c 'while :; do :; done' &
        hog=$!
        hog_cpu served
        kill $hog
        ;;
esac
exit 0
