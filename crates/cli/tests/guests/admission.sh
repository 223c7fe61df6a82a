# How many equal reservations of SCHED_DEADLINE this kernel lets in beside each other, and what is said of them
# before. Runs under busybox sh as root in its own directory; leaves its evidence for admission.rs. Facts only: nothing is judged here.
# CPUs 0, 2 and 3 are one root domain here; CPU 1 is isolated.

stillcore=/usr/bin/stillcore
/bin/busybox mount -t debugfs none /sys/kernel/debug 2>/dev/null

for runtime in 94900 90500 89900; do
    task="{\"period\":100000,\"cost\":$runtime}"
    for set in "$task" "$task,$task" "$task,$task,$task"; do
        echo "{\"unit\":\"us\",\"cores\":3,\"tasks\":[$set]}"
    done >"$runtime.jsonl"
    $stillcore sched analyze "$runtime.jsonl" --test sched-deadline --fair-server here --json >"$runtime.told" 2>"$runtime.err"
    waits=
    for one in 0 1 2; do
        $stillcore measure wakeup --policy deadline --period 100ms --runtime "${runtime}us" --affinity none \
            --cpus 0 --duration 14s --out "$runtime.$one" >"$runtime.$one.log" 2>&1 &
        waits="$waits $!"
    done
    # shellcheck disable=SC2086 # a list of numbers
    wait $waits
done
