# A monitor for a day beside a load: what its processes take is noted meanwhile, and again and again
# a task of a higher priority takes the CPU for some 1.5 s. Runs under busybox sh as root.
# Arguments: the program, a directory, seconds, seconds between two notes, seconds between two such
# tasks. The facts are left in files: `said` of the monitor, `planted` tasks, `stat` of the kernel
# and `status` of the monitor at the same time, `breaches`, `history`, `kib` of its state, `left`.

here=$(cd "$(dirname "$0")" && pwd)
program=$1
cd "$2" || exit 1
seconds=$3
every=$4
between=$5

# shellcheck source-path=SCRIPTDIR source=notes.sh
. "$here/notes.sh"
cp "$program" "$own"
for name in hog load; do cp /usr/bin/busybox busybox-$name; done

# Hundredths of a second of the boot.
now() {
    read -r now rest </proc/uptime
    echo "${now%.*}${now#*.}"
}

cat >hog.sh <<'HOG'
read -r now rest </proc/uptime
end=$((${now%.*}${now#*.} + 150))
while [ "${now%.*}${now#*.}" -lt $end ]; do read -r now rest </proc/uptime; done
HOG

# With so slow a CPU the kernel's longest stretches without preemption are tenths of a second.
"$own" monitor start --cpus 0 --over 400ms --quota 16M --listen none --state "$PWD/state" >said 2>errors &
monitor=$!
until grep -q '^watching' said; do
    kill -0 $monitor 2>/dev/null || { cat errors && exit 1; }
    sleep 1
done
# Sleeps a second again and again, and nothing else: cyclictest's other thread would wake a hundred
# times a second.
/usr/bin/chrt -f 80 ./busybox-load tail -f -s 1 hog.sh >/dev/null &
load=$!
begin=$(now)
next=$((begin + between * 50))
planted=0
while [ "$(now)" -lt $((begin + seconds * 100)) ]; do
    sleep "$every"
    note
    if [ "$(now)" -ge $next ]; then
        /usr/bin/chrt -f 95 ./busybox-hog sh hog.sh
        planted=$((planted + 1))
        next=$((next + between * 100))
    fi
done
# The last one is over.
sleep 5
echo $planted >planted
cat /proc/$monitor/stat >stat
"$own" monitor status --json --state "$PWD/state" >status
"$own" monitor list --json --last 100000 --state "$PWD/state" >breaches
kill $monitor
wait $monitor
echo $? >code
kill $load
cat state/monitor/history/* >history
du -sk state | sed 's/[^0-9].*//' >kib
ls state state/journal >left
rm -rf state "$own" busybox-hog busybox-load
