# Actions of others on an isolated machine, in a lab guest, and the report of verify on each. Runs
# under busybox sh as root in its own directory; leaves its evidence for isolate.rs. Facts only:
# nothing is judged here. Argument: the CPUs to isolate.

stillcore=/usr/bin/stillcore
box=/bin/busybox
cpus=$1

# Verifies under a name, while something is so.
look() {
    $stillcore isolate verify --json >verified-$1.json 2>verified-$1.err
    echo $? >verified-$1.code
}

# Affinities alone: nothing on the machine says who is there on purpose.
state() {
    $stillcore internal state >$1
}
$stillcore isolate apply --cpus $cpus --placement affinity >warm-up.log 2>&1
$stillcore isolate undo >>warm-up.log 2>&1
$box mkdir -p bin
# A script has its own name, and not its interpreter's.
for name in irqbalance stranger; do
    echo "#!$box sh" >bin/$name
    echo "while :; do $box sleep 1; done" >>bin/$name
    $box chmod 755 bin/$name
done

# One is stopped already, another is started by hand.
bin/irqbalance &
stopped=$!
kill -STOP $stopped
bin/irqbalance &
awake=$!
sleep 1
state before.json
$stillcore isolate apply --cpus $cpus --placement affinity --json >applied.json 2>applied.err
echo $? >applied.code
$box awk '{print $3}' /proc/$stopped/stat /proc/$awake/stat >daemons-during
look quiet

# A program that is put there stays there, with what it starts and leaves behind.
$stillcore isolate run -- $box setsid $box sh -c "$box sleep 601 & $box sleep 602 & wait" 2>run.err &
sleep 2
$stillcore isolate apply --cpus $cpus --placement affinity --json >again.json 2>again.err
echo $? >again.code
for task in $($box pidof busybox sleep); do
    $box tr '\0' ' ' </proc/$task/cmdline | $box grep -q 'sleep 60[12]' &&
        echo "$($box tr '\0' ' ' </proc/$task/cmdline):$($box grep Cpus_allowed_list /proc/$task/status)"
done >placed
look placed

# Actions of others.
echo 1 >/sys/kernel/mm/ksm/run
look merging
echo 0 >/sys/kernel/mm/ksm/run
echo 1 >/proc/sys/vm/compact_unevictable_allowed
look value
echo 0 >/proc/sys/vm/compact_unevictable_allowed
bin/irqbalance &
later=$!
sleep 1
look daemon
kill $later
bin/stranger &
stranger=$!
$box taskset -p f $stranger >/dev/null
look stranger
kill $stranger
sleep 2
look healed

for task in $($box pidof busybox sleep); do
    $box tr '\0' ' ' </proc/$task/cmdline | $box grep -q 'sleep 60[12]' && kill $task
done
sleep 1
$stillcore isolate undo --json >undone.json 2>undone.err
echo $? >undone.code
$box awk '{print $3}' /proc/$stopped/stat /proc/$awake/stat >daemons-after
sleep 1
state after.json
ls /var/lib/stillcore >left
