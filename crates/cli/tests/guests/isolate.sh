# Tests of isolation in a lab guest. Runs under busybox sh as root in its own directory; leaves its
# evidence for isolate.rs. Facts only: nothing is judged here. Arguments: the CPUs to isolate, the
# mask of one of them, how many crash points to try at most, v1 for the cpusets of the first version
# of control groups, and the interval of crash points: from 1 on, begun at any.

stillcore=/usr/bin/stillcore
cpus=$1
mask=$2
most=$3

if [ "$4" = v1 ]; then
    /bin/busybox umount /sys/fs/cgroup
    /bin/busybox mount -t tmpfs groups /sys/fs/cgroup
    /bin/busybox mkdir /sys/fs/cgroup/cpuset
    /bin/busybox mount -t cgroup -o cpuset cpuset /sys/fs/cgroup/cpuset
fi

state() {
    $stillcore internal state >$1
}

# Settles what the first isolation changes for good, such as kernel threads that come into being.
uname -r >release
cat /proc/cmdline >cmdline
$stillcore isolate apply --cpus $cpus >warm-up.log 2>&1
$stillcore isolate undo >>warm-up.log 2>&1

# A task that forks all the time, on the CPUs to be isolated.
/bin/busybox taskset -p $mask $$ >/dev/null 2>&1
/bin/busybox sh -c 'while :; do /bin/busybox true & wait; done' &
victim=$!
/bin/busybox taskset -p ff $$ >/dev/null 2>&1

state before.json
$stillcore isolate plan --cpus $cpus --move-pinned >plan.txt 2>&1
$stillcore isolate apply --cpus $cpus --move-pinned --json >applied.json 2>applied.err
echo $? >applied.code
$stillcore isolate status --json >status.json
state during.json
$stillcore isolate verify --json >verified.json 2>verified.err
echo $? >verified.code
for task in $(ls /proc/$victim/task) $(cat /proc/$victim/task/$victim/children 2>/dev/null); do
    grep Cpus_allowed_list /proc/$task/status
done >victim 2>/dev/null
$stillcore isolate undo --json >undone.json 2>undone.err
echo $? >undone.code
state after.json
kill $victim
wait $victim 2>/dev/null

# Killed at one write after another, then undone.
state crash-before.json
step=$5
at=$(($(date +%s) % step))
echo $at >crash-first
tried=0
while [ $tried -lt $most ]; do
    $stillcore isolate apply --cpus $cpus --crash-at $at >/dev/null 2>&1
    code=$?
    # The undo is killed as well, once in four.
    if [ $((at % 4)) -eq 1 ]; then
        $stillcore isolate undo --crash-at $((at / 2)) >/dev/null 2>&1
    fi
    $stillcore isolate undo >crash-undo.log 2>&1 || cat crash-undo.log >>crash-failures
    state crash-after.json
    cmp -s crash-before.json crash-after.json || { echo "at $at" >>crash-failures; cp crash-after.json crash-after-$at.json; }
    at=$((at + step))
    tried=$((tried + 1))
    [ $code -eq 134 ] || break
done
echo $tried >crash-points
ls /var/lib/stillcore >left
