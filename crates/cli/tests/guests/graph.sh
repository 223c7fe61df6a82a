# Graphs on the isolated CPUs of a guest. Runs under busybox sh as root in its own directory; leaves
# its evidence for graph.rs. Facts only.

PATH=/usr/bin:/bin:/sbin:/usr/sbin

# A run of a graph: name, then the words behind `graph run`.
graph() {
    name=$1
    shift
    stillcore graph run "$@" --cpus 2,3 --out "$name" --quiet --json >"$name.json" 2>"$name.log"
    echo $? >"$name.code"
}

stillcore internal state >before.json
graph cfs cfs-hk --duration 2s
graph multi small-multi --policy fifo --priority 99 --duration 2s
graph disturbed small-multi --policy fifo --priority 99 --duration 2s --disturb suite:rtss24
graph traced small-single --policy fifo --priority 99 --duration 1s --trace
stillcore internal state >after.json

# One of two processes stopped for good: its untaken messages are left, and it is killed after its
# time.
cat >two.toml <<'TOML'
schema = "stillcore.graph/1"
name = "two"
[[process]]
name = "front"
[[process]]
name = "back"
[[executor]]
name = "front"
process = "front"
[[executor]]
name = "back"
process = "back"
[[node]]
name = "sends"
executor = "front"
publisher = [{ topic = "t", bytes = 64, period = "5ms" }]
[[node]]
name = "takes"
executor = "back"
subscriber = [{ topic = "t" }]
TOML
stillcore graph run two.toml --cpus 2,3 --duration 4s --out stopped --json >stopped.json 2>stopped.log &
victim=$!
tries=0
stopped=
while [ $tries -lt 200 ] && [ -z "$stopped" ]; do
    /bin/busybox sleep 0.1
    tries=$((tries + 1))
    # The second executor: a thread under SCHED_FIFO 80 on CPU 3.
    for task in /proc/[0-9]*/task/[0-9]*; do
        { read -r line <"$task/stat"; } 2>/dev/null || continue
        # Behind the name; fields 39 to 41 of proc(5) are processor, priority and policy.
        set -- ${line##*) }
        if [ "${39}" = 1 ] && [ "${38}" = 80 ] && [ "${37}" = 3 ]; then
            stopped=${task#/proc/}
            stopped=${stopped%%/*}
            break
        fi
    done
done
# By then it has taken some.
/bin/busybox sleep 1
kill -STOP "$stopped"
echo "$stopped" >stopped.pid
wait $victim
echo $? >stopped.code
exit 0
