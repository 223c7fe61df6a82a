# CPUs that have an owner: a cpuset partition, as deep as this kernel takes one; tuned's isolated
# cores; containers of the kubelet. Runs under busybox sh as root in its own directory on a kernel
# that has isolated nothing at boot; leaves its evidence for theirs.rs. Facts only.

stillcore=/usr/bin/stillcore
groups=/sys/fs/cgroup

state() {
    $stillcore internal state >$1
}

call() {
    name=$1
    shift
    $stillcore isolate "$@" >$name 2>&1
    echo $? >$name.code
}

# Plans over CPU 3 and beside it.
plans() {
    call over-$1 plan --cpus 3
    call both-$1 plan --cpus 1,3
    call beside-$1 plan --cpus 1
}

$stillcore isolate apply --cpus 1 >warm-up.log 2>&1
$stillcore isolate undo >>warm-up.log 2>&1

mkdir -p /etc/tuned /var/lib/kubelet
echo realtime >/etc/tuned/active_profile
echo isolated_cores=3 >/etc/tuned/realtime-variables.conf
plans tuned
rm -r /etc/tuned

echo '{"policyName":"static","defaultCpuSet":"0-2","entries":{"pod":{"c":"3"}},"checksum":1}' \
    >/var/lib/kubelet/cpu_manager_state
plans kubelet
rm -r /var/lib/kubelet

# Three groups deep without any above it (6.7), one below the root (6.1), or balanced (5.10).
echo +cpuset >$groups/cgroup.subtree_control
mkdir -p $groups/x
echo +cpuset >$groups/x/cgroup.subtree_control
mkdir -p $groups/x/y
echo +cpuset >$groups/x/y/cgroup.subtree_control
mkdir -p $groups/x/y/z
for group in x x/y x/y/z; do
    [ -e $groups/$group/cpuset.cpus.exclusive ] && echo 2-3 >$groups/$group/cpuset.cpus.exclusive
done
theirs=$groups/x/y/z
echo 2-3 >$theirs/cpuset.cpus
become() {
    case $(cat $theirs/cpuset.cpus.partition) in
    isolated | root) ;;
    *) echo $1 >$theirs/cpuset.cpus.partition ;;
    esac 2>>theirs.err
}
become isolated
case $(cat $theirs/cpuset.cpus.partition) in
isolated) ;;
*)
    rmdir $groups/x/y/z $groups/x/y $groups/x
    # Another one: 5.10 holds one that has had groups below busy for a while.
    theirs=$groups/w
    mkdir $theirs
    echo 2-3 >$theirs/cpuset.cpus
    become isolated
    become root
    ;;
esac
echo $theirs >theirs.group
cat $theirs/cpuset.cpus.partition >theirs.state
cat $theirs/cpuset.cpus.effective >theirs.cpus
plans partition
call ran run --cpus 2,3 -- /bin/busybox grep Cpus_allowed_list /proc/self/status
state before.json
# khugepaged is started anew when huge pages are switched on again, on CPUs of the partition too.
call applied apply --cpus 1 --without transparent_hugepage --json
if [ "$(cat applied.code)" = 1 ]; then
    # Which workers of the kernel the partition has moved.
    for task in /proc/[0-9]*; do
        case $(cat $task/comm) in
        kworker/[0-9]*) echo $(cat $task/comm) $(grep Cpus_allowed_list $task/status) ;;
        esac
    done >workers 2>/dev/null
    state refused.json
    exit 0
fi
call verified verify
cat $theirs/cpuset.cpus.partition >theirs.state-during
cat $theirs/cpuset.cpus.effective >theirs.cpus-during
call undone undo
state after.json
call forced apply --cpus 2,3 --force --json
call forced-undone undo
cat $theirs/cpuset.cpus.partition >theirs.state-after
cat $theirs/cpuset.cpus.effective >theirs.cpus-after
# The next script isolates these CPUs itself.
rmdir $theirs 2>theirs.left || :
