# An application under SCHED_FIFO that was on its CPU before that was isolated. Runs under busybox sh as
# root in its own directory; leaves its evidence for keep.rs. Facts only. Arguments: the CPUs to
# isolate, that of the application, its mask, and v1 for the cpusets of the first version of groups.

stillcore=/usr/bin/stillcore
cpus=$1
cpu=$2
mask=$3

if [ "$4" = v1 ]; then
    /bin/busybox umount /sys/fs/cgroup 2>/dev/null
    /bin/busybox mount -t tmpfs groups /sys/fs/cgroup
    /bin/busybox mkdir /sys/fs/cgroup/cpuset
    /bin/busybox mount -t cgroup -o cpuset cpuset /sys/fs/cgroup/cpuset
fi

state() {
    $stillcore internal state >$1
}

# Settles what the first isolation changes for good.
$stillcore isolate apply --cpus $cpus >warm-up.log 2>&1
$stillcore isolate undo >>warm-up.log 2>&1

# It checks itself: on which CPU it runs, and on which it may.
cat >app.sh <<'END'
seen=0 strange=0
trap 'echo "$seen $strange" >app.seen; exit 0' TERM
while :; do
    read -r line </proc/self/stat
    set -- ${line##*) }
    last=${37}
    while read -r name list; do
        [ "$name" = Cpus_allowed_list: ] && break
    done </proc/self/status
    [ "$last:$list" = "$cpu:$cpu" ] || strange=$((strange + 1))
    seen=$((seen + 1))
    echo "$seen $strange" >app.now
    /bin/busybox usleep 20000
done
END
export cpu
/bin/busybox taskset $mask $stillcore internal real-time 50 /bin/busybox sh app.sh 2>app.err &
app=$!
/bin/busybox usleep 500000

# Its state: its own account, and how often the kernel has moved it.
look() {
    # Empty while it is written, and until it has begun on a slow host.
    tries=0
    while now=$(cat app.now 2>/dev/null) && [ -z "$now" ] || [ ! -e app.now ]; do
        [ $tries -lt 100 ] || break
        tries=$((tries + 1))
        /bin/busybox usleep 50000
    done
    { echo "$now"; grep nr_migrations /proc/$app/sched; } >$1 2>/dev/null
}

call() {
    name=$1
    shift
    $stillcore isolate "$@" >$name 2>&1
    echo $? >$name.code
    look $name.app
}

# A process of another owner, on the first CPU only.
/bin/busybox taskset 1 /bin/busybox sleep 600 &
bystander=$!

look first.app
state before.json
call plan plan --cpus $cpus
call refused apply --cpus $cpus
state refused.json
call applied apply --cpus $cpus --keep $app --json
cat /proc/$app/cgroup >applied.group
grep Cpus_allowed_list /proc/$bystander/status >bystander.allowed
call verified verify
call status status
# A kept process stays kept.
call again apply --cpus $cpus
call verified-again verify
call undone undo
state after.json

# By policy, without a group of its own.
call applied-policy apply --cpus $cpus --keep policy:fifo --placement affinity
call verified-policy verify
call undone-policy undo
state after-policy.json

# Moved away where its user says so.
call moved apply --cpus $cpus --move-pinned
grep Cpus_allowed_list /proc/$app/status >moved.allowed
call moved-undone undo
grep Cpus_allowed_list /proc/$app/status >moved-undone.allowed

kill $app $bystander
wait $app 2>/dev/null
