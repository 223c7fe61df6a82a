# What may befall a monitor, and after each of it holdups that it has to find. Runs under busybox sh
# as root in its own directory; leaves a directory for each fault. Facts only.
# Arguments: the watched CPU, and the CPU of what holds a lock against it.

stillcore=/usr/bin/stillcore
tracefs=/sys/kernel/tracing
/usr/bin/busybox ifconfig lo up
state="$PWD/state"
mkdir state
mount -t tmpfs -o size=64m,mode=0700 none state

start() {
    $stillcore monitor start --cpus $cpu --over 12ms --before 50ms --per-hour 3600 --quota 40M \
        --listen none --state "$state" >>said 2>>errors &
    monitor=$!
    until grep -q '^watching' said; do
        kill -0 $monitor 2>/dev/null || { cat errors && exit 1; }
        sleep 1
    done
    : >said
}

# The watched CPU, planted once; what the monitor says when it has kept all.
plant() {
    mkdir -p $1
    $stillcore internal plant "$PWD/$1" $cpu $other 2 4
    sleep 3
    while [ -n "$(ls -d state/monitor/breaches/*/trace-pages.json 2>/dev/null)" ]; do sleep 1; done
    kill -0 $monitor && echo yes >$1/alive
    $stillcore monitor list --json --last 100000 --state "$state" >$1/breaches
    $stillcore monitor status --json --state "$state" >$1/status
    cp errors $1/errors
    : >errors
}

cpu=$1 other=$2
mkdir -p $tracefs
mount -t tracefs none $tracefs 2>/dev/null
ls $tracefs/instances >instances-before
start
plant nothing

kill -9 $monitor
wait $monitor
ls $tracefs/instances >killed-instances
start
plant killed

dd if=/dev/zero of=state/ballast bs=1M 2>/dev/null
plant full
rm state/ballast
plant freed

umount -l $tracefs
wait $monitor
echo $? >code-unmounted
mv errors errors-unmounted
mount -t tracefs none $tracefs
ls $tracefs/instances >unmounted-instances
start
plant remounted

echo 0 >/sys/devices/system/cpu/cpu$cpu/online
sleep 3
echo 1 >/sys/devices/system/cpu/cpu$cpu/online
plant cpu-off

mkdir $tracefs/instances/other
echo 1 >$tracefs/instances/other/events/sched/enable
echo function >$tracefs/current_tracer
plant tracer
echo 0 >$tracefs/events/enable
echo nop >$tracefs/current_tracer
rmdir $tracefs/instances/other
plant tracer-gone

date -s @$(($(date +%s) + 86400)) >/dev/null
plant day-later
date -s @$(($(date +%s) - 172800)) >/dev/null
plant day-earlier

kill $monitor
wait $monitor
echo $? >code
start
plant restarted
kill $monitor
wait $monitor
ls $tracefs/instances >instances-after
ls state state/journal >left
umount state
rm -rf state
