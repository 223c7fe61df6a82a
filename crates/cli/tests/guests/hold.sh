# A held isolation, and other programs that change it. Runs under busybox sh as root in its own
# directory; leaves its evidence for hold.rs. Facts only. Arguments: the CPUs to isolate,
# how many changes to make, how tasks are kept off, and for how long nobody changes anything, s.

stillcore=/usr/bin/stillcore
cpus=$1
plants=$2
placement=$3
quiet=$4

call() {
    name=$1
    shift
    "$@" >$name 2>&1
    echo $? >$name.code
}

state() {
    $stillcore internal state >$1
}

# Programs by their own names: the kernel calls a process as its file is called.
for applet in sh tee dd taskset; do
    /bin/busybox ln -s /bin/busybox $applet
done

# Settles what the first isolation changes for good.
$stillcore isolate apply --cpus $cpus --placement $placement >warm-up.log 2>&1
$stillcore isolate undo >>warm-up.log 2>&1
state before.json

begin() {
    $stillcore isolate hold --cpus $cpus --placement $placement --heals 1000 --full-interval 30s --json >$1 2>$1.err &
    hold=$!
    tries=0
    until grep -q '"event":"holding"' $1 || [ $tries -gt 600 ]; do
        tries=$((tries + 1))
        /bin/busybox usleep 200000
    done
    # Its first full check.
    sleep 10
}

# How often something was set again.
healed() {
    grep -c '"event":"healed"' held.jsonl
}

begin held.jsonl
call second $stillcore isolate hold --cpus $cpus
call status $stillcore isolate status

journal=/var/lib/stillcore/isolation.jsonl
cat >targets <<END
/proc/sys/vm/stat_interval 7
/sys/devices/virtual/workqueue/cpumask f
/proc/irq/default_smp_affinity f
/proc/sys/vm/compaction_proactiveness 20
/sys/kernel/mm/transparent_hugepage/khugepaged/defrag 1
END
# What the kernel lets move of its interrupts, by the other of their two files, and of its threads.
for list in $(grep '"kind":"file"' $journal | grep -v '"phase":"undone"' | grep -o '/proc/irq/[0-9]*/smp_affinity_list' | sort -u); do
    echo "${list%_list} f" >>targets
done
grep '"kind":"task"' $journal | grep kthread-affinity | grep -o '"id":[0-9]*,"name":"k[a-z]*[0-9]*"' | sort -u |
    sed 's/"id":\([0-9]*\),.*/task \1/' >>targets
# Of a kernel that lacks one of the files, or had the value already, nothing is planted.
while read -r target value; do
    [ $target = task ] || grep -q "${target%_list}" $journal || continue
    echo "$target $value"
done <targets >chosen
count=$(grep -c . chosen)

before=$(healed)
made=0
while [ $made -lt $plants ]; do
    line=$(sed -n "$((made % count + 1))p" chosen)
    target=${line% *}
    value=${line#* }
    if [ $target = task ]; then
        by=taskset
        ./taskset -p f $value >/dev/null 2>&1
        target="task $value"
    else
        case $((made % 3)) in
            0) by=sh; ./sh -c "echo $value >$target" ;;
            1) by=tee; echo $value | ./tee $target >/dev/null ;;
            2) by=dd; echo $value | ./dd of=$target 2>/dev/null ;;
        esac
    fi
    made=$((made + 1))
    tries=0
    while [ $(healed) -lt $((before + made)) ] && [ $tries -lt 100 ]; do
        tries=$((tries + 1))
        /bin/busybox usleep 100000
    done
    echo "$made $by $target" >>planted
done

# Nobody changes anything.
cp held.jsonl before-quiet.jsonl
cp /proc/$hold/io before-quiet.io
sleep $quiet
cp /proc/$hold/io after-quiet.io
cp held.jsonl after-quiet.jsonl

# A partition that somebody ends.
: >partition.before
: >partition.after
cp held.jsonl before-partition.jsonl
group=/sys/fs/cgroup/stillcore-isolated/cpuset.cpus.partition
if [ -e $group ]; then
    cat $group >partition.before
    echo member >$group
    tries=0
    until [ "$(cat $group)" = "$(cat partition.before)" ] || [ $tries -gt 100 ]; do
        tries=$((tries + 1))
        /bin/busybox usleep 100000
    done
    cat $group >partition.after
    sleep 5
fi

# Undone while it is held.
call undone $stillcore isolate undo
tries=0
while kill -0 $hold 2>/dev/null && [ $tries -lt 100 ]; do
    tries=$((tries + 1))
    /bin/busybox usleep 200000
done
wait $hold
echo $? >held.code
state after-undo.json

# Killed, with something to heal.
begin killed.jsonl
kill -9 $hold
wait $hold 2>/dev/null
./sh -c 'echo 7 >/proc/sys/vm/stat_interval'
sleep 2
ls /sys/kernel/tracing/instances /sys/kernel/debug/tracing/instances 2>/dev/null | grep stillcore >instances
grep stillcore /proc/mounts >mounts
./sh -c 'echo 3600 >/proc/sys/vm/stat_interval'
call killed-undone $stillcore isolate undo
state after-kill.json
ls /var/lib/stillcore /var/lib/stillcore/journal >left 2>&1
