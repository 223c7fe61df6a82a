# Holdups planted while a monitor watches their CPU. Runs under busybox sh as root in its own
# directory; leaves what was planted and what the monitor found for monitor.rs. Facts only.
# Arguments: how often each, the watched CPU, and the CPU of what holds a lock against it.

stillcore=/usr/bin/stillcore
/usr/bin/busybox ifconfig lo up
$stillcore monitor start --cpus $2 --over 12ms --stacks --before 50ms --per-hour 3600 --quota 2G \
    --listen none --state "$PWD/state" >said 2>errors &
monitor=$!
until grep -q '^watching' said; do sleep 1; done
# What is planted is in a control group of its own.
groups=/sys/fs/cgroup
mkdir -p $groups
grep -q " $groups cgroup2 " /proc/mounts || mount -t cgroup2 none $groups
mkdir $groups/planted
/usr/bin/busybox sh -c "echo \$\$ >$groups/planted/cgroup.procs; exec $stillcore internal plant $PWD $2 $3 $1 3"
# The last one is over, and all pages have become runs.
sleep 3
while [ -n "$(ls -d state/monitor/breaches/*/trace-pages.json 2>/dev/null)" ]; do sleep 1; done
kill $monitor
wait $monitor
echo $? >code
$stillcore monitor list --json --last 100000 --state "$PWD/state" >breaches
$stillcore monitor status --json --state "$PWD/state" >status
ls state state/journal >left
rm -rf state
