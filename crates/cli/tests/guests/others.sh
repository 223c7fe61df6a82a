# Isolation on a machine where others are at work, in a lab guest with SMT. Runs under busybox sh as
# root in its own directory; leaves its evidence for isolate.rs. Facts only: nothing is judged here.

stillcore=/usr/bin/stillcore
groups=/sys/fs/cgroup
cpu=/sys/devices/system/cpu

state() {
    $stillcore internal state >$1.json
}

# An isolation and its end, with the state of the machine around it: name, then the words of apply.
around() {
    name=$1
    shift
    state before-$name
    $stillcore isolate "$@" --json >applied-$name.json 2>applied-$name.err
    echo $? >applied-$name.code
    cat $cpu/online >online-$name
    $stillcore isolate verify >verified-$name 2>&1
    echo $? >verified-$name.code
    $stillcore isolate undo >undone-$name 2>&1
    echo $? >undone-$name.code
    cat $cpu/online >online-after-$name
    state after-$name
}

# Waits up to a minute until a command succeeds.
await() {
    tries=0
    while [ $tries -lt 600 ] && ! "$@" >/dev/null 2>&1; do
        sleep 0.1
        tries=$((tries + 1))
    done
}

# Settles what the first isolation changes for good.
$stillcore isolate apply --cpus 4-7 >warm-up.log 2>&1
$stillcore isolate undo >>warm-up.log 2>&1

around smt apply --cpus 4-7 --with smt-control

# A thread of one core and all that is left of another are offline when it begins.
echo 0 >$cpu/cpu3/online
echo 0 >$cpu/cpu4/online
around M deployment M
around MI deployment MI
echo 1 >$cpu/cpu3/online
echo 1 >$cpu/cpu4/online

# Swap areas with the kernel's priorities; then one whose device goes for good.
for n in 0 1 2; do
    [ -e /dev/zram$n ] || cat /sys/class/zram-control/hot_add >/dev/null
    echo 4M >/sys/block/zram$n/disksize
    /bin/busybox mkswap /dev/zram$n >/dev/null
done
/bin/busybox swapon /dev/zram0
/bin/busybox swapon /dev/zram1
/bin/busybox swapon /dev/zram2
/bin/busybox awk '{ print $1, $5 }' /proc/swaps >swaps-before
around swap apply --cpus 2,3
/bin/busybox awk '{ print $1, $5 }' /proc/swaps >swaps-after
$stillcore isolate apply --cpus 2,3 >gone.log 2>&1
echo 1 >/sys/class/zram-control/hot_remove 2>>gone.log
$stillcore isolate undo >gone-undo 2>&1
echo $? >gone-undo.code
$stillcore isolate undo >gone-again 2>&1
echo $? >gone-again.code
$stillcore isolate undo --forget >gone-forget 2>&1
echo $? >gone-forget.code
ls /var/lib/stillcore >gone-left
for n in 0 1 2; do
    /bin/busybox swapoff /dev/zram$n 2>/dev/null
done

# Another owner's group begins to use the controller that isolation has switched on.
echo -cpuset >$groups/cgroup.subtree_control
$stillcore isolate apply --cpus 2,3 >others.log 2>&1
/bin/busybox mkdir $groups/others.slice
echo 0-1 >$groups/others.slice/cpuset.cpus
$stillcore isolate undo >others-undo 2>&1
echo $? >others-undo.code
cat $groups/cgroup.subtree_control >others-controllers
cat $groups/others.slice/cpuset.cpus >others-cpus
$stillcore isolate status >others-status
/bin/busybox rmdir $groups/others.slice

# A balanced partition of another owner.
/bin/busybox mkdir $groups/balanced
echo 2-3 >$groups/balanced/cpuset.cpus
echo root >$groups/balanced/cpuset.cpus.partition
cat $groups/balanced/cpuset.cpus.partition >balanced
$stillcore isolate run --cpus 2,3 -- /bin/busybox grep Cpus_allowed_list /proc/self/status >ran 2>ran.err
echo member >$groups/balanced/cpuset.cpus.partition
/bin/busybox rmdir $groups/balanced

# A second state directory; then what drifts while it is watched, and that it was undone.
$stillcore isolate apply --cpus 2,3 >first.log 2>&1
$stillcore isolate apply --cpus 2,3 --state elsewhere >second.log 2>&1
echo $? >second.code
ls elsewhere >second-left
$stillcore isolate verify --watch --interval 200ms --duration 100s >watched 2>&1 &
watcher=$!
await grep hold watched
echo 9 >/proc/sys/vm/stat_interval
await grep stat_interval watched
sleep 2
echo 3600 >/proc/sys/vm/stat_interval
await grep 'no longer' watched
$stillcore isolate undo >watched-undo 2>&1
wait $watcher
echo $? >watched.code
$stillcore isolate apply --cpus 2,3 --state elsewhere >third.log 2>&1
echo $? >third.code
$stillcore isolate undo --state elsewhere >>third.log 2>&1
