# arm64: processes made until the address space identifiers (ASID) run out, twice. Runs under
# busybox sh as root in its own directory; leaves its evidence there for asid.rs. Facts only.
#
# `new_context` (Linux arch/arm64/mm/context.c) gives an address space its number: a generation
# above sixteen bits of ASID. Where none is left it begins a new generation, and every CPU flushes
# its whole TLB when it next switches. No event of the kernel reports that; the value that
# `new_context` returns does. Its probe counts every number given out, and records those of a new
# generation only.

stillcore=/usr/bin/stillcore
tracing=/sys/kernel/tracing
event=$tracing/events/stillcore_asid/given

/bin/busybox mount -t tracefs tracefs $tracing
/bin/busybox grep -E ' (flush_context|new_context|check_and_switch_context)$' /proc/kallsyms >symbols
/bin/busybox dmesg | /bin/busybox grep -iE 'asid|page table isolation' >allocator
echo 'r:stillcore_asid/given new_context asid=$retval:u64' >$tracing/kprobe_events 2>probe.err || exit 0

forks() {
    /bin/busybox awk '/^processes/ { print $2 }' /proc/stat
}
given() {
    /bin/busybox awk '/given/ { print $2 }' $tracing/kprobe_profile
}
# Value of the newest record, in generations; of the first, its time.
newest() {
    /bin/busybox sed -n 's/.*asid=//p' $tracing/trace | /bin/busybox tail -n 1
}
first_s() {
    /bin/busybox sed -n 's/.* \([0-9]*\.[0-9]*\): given:.*/\1/p' $tracing/trace | /bin/busybox head -n 1
}

echo 1 >$event/enable
/bin/busybox true
/bin/busybox true
value=$(newest)
[ -n "$value" ] || exit 0
generation=$((value / 65536))

$stillcore disturb u_fork --rate 0 --cpus 0-1 --duration 500s --json >fork.json 2>fork.log &
worker=$!
echo "start $generation $(forks) $(given) $(/bin/busybox cut -d' ' -f1 /proc/uptime)" >rollovers
tries=0
while [ $tries -lt 2400 ]; do
    generation=$((generation + 1))
    echo "asid >= $((generation * 65536))" >$event/filter
    echo >$tracing/trace
    while [ $tries -lt 2400 ] && [ -z "$(newest)" ]; do
        /bin/busybox usleep 200000
        tries=$((tries + 1))
    done
    [ $tries -lt 2400 ] || break
    echo "rollover $generation $(forks) $(given) $(first_s)" >>rollovers
    [ "$(/bin/busybox grep -c rollover rollovers)" -lt 2 ] || break
done
kill -INT $worker
wait $worker
echo 0 >$event/enable
echo '-:stillcore_asid/given' >>$tracing/kprobe_events
