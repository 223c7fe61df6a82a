# Clients and server at two network cards that are joined to each other. Runs under busybox sh as
# root in its own directory; leaves its evidence for cards.rs. Facts only.

PATH=/usr/bin:/bin:/sbin:/usr/sbin
stillcore=/usr/bin/stillcore
where="--cpus 0,1 --measured 2,3"

# The cards, whether they are up, and their addresses.
cards() {
    for card in /sys/class/net/*; do
        echo "$card $(cat $card/flags)"
    done
    cat /proc/net/fib_trie
}

cards >cards-before
cat /proc/interrupts >interrupts-before
$stillcore disturb --suite access20 $where --duration 4s --json >access20.json 2>access20.log &
clients=$!
# Newer kernels drop the counts of an interrupt without a handler.
while kill -0 $clients 2>/dev/null; do
    cat /proc/interrupts >>interrupts-while
    /bin/busybox sleep 0.3
done
wait $clients
cat /proc/interrupts >interrupts-after
cards >cards-after

# Two at once: there is one pair.
$stillcore disturb net_clients download $where --duration 2s >both.txt 2>both.log
$stillcore disturb net_clients download $where --duration 2s --json >both.json 2>>both.log

# Killed while the cards are away.
$stillcore disturb net_clients $where --duration 120s >/dev/null 2>killed.log &
victim=$!
tries=0
while [ $tries -lt 100 ] && ! grep -q ^disturbing killed.log; do
    /bin/busybox sleep 0.1
    tries=$((tries + 1))
done
/bin/busybox sleep 1
cards >cards-away
kill -KILL $victim
# The kernel returns them when it has removed their namespace: on a crowded host that took more than
# 20 s.
tries=0
while [ $tries -lt 600 ]; do
    cards >cards-killed
    cmp -s cards-before cards-killed && break
    /bin/busybox sleep 0.2
    tries=$((tries + 1))
done
exit 0
