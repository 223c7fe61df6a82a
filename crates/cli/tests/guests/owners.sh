# Isolation beside the kubelet's containers, as their cgroups and its checkpoint have them, and
# beside a tuned that runs. Runs under busybox sh as root in its own directory on a kernel that has
# isolated nothing at boot; leaves its evidence for owners.rs. Facts only.

stillcore=/usr/bin/stillcore
groups=/sys/fs/cgroup
masks='/proc/irq/default_smp_affinity /sys/devices/virtual/workqueue/cpumask'

state() {
    $stillcore internal state >$1.json
}

call() {
    name=$1
    shift
    $stillcore isolate "$@" >$name 2>&1
    echo $? >$name.code
}

sums() {
    /bin/busybox find "$2" -type f | /bin/busybox sort | /bin/busybox xargs /bin/busybox md5sum >$1
}

allowed() {
    /bin/busybox awk '/Cpus_allowed_list/ { print $2 }' /proc/$1/status
}

# Around an isolation of CPU 1: name, the owner's directory, the tasks and files to look at.
look() {
    for task in $tasks; do
        echo "task $task $(allowed $task)"
    done
    for file in $files; do
        echo "$file $(cat $file)"
    done
}
beside() {
    call over-$1 plan --cpus 3
    call both-$1 plan --cpus 1,3
    call plan-$1 plan --cpus 1
    sums sums-before-$1 $2
    look >look-before-$1
    state before-$1
    call apply-$1 apply --cpus 1 --json
    call verify-$1 verify
    look >look-during-$1
    cat $masks >masks-during-$1
    call undo-$1 undo
    state after-$1
    look >look-after-$1
    sums sums-after-$1 $2
}

$stillcore isolate apply --cpus 1 >warm-up.log 2>&1
$stillcore isolate undo >>warm-up.log 2>&1

# The static policy: one container owns CPU 3, another runs on what is shared.
group() {
    above=$1
    /bin/busybox mkdir -p $groups/$above
    echo +cpuset >$groups/$above/cgroup.subtree_control
}
container() {
    /bin/busybox mkdir -p $groups/$1
    echo $2 >$groups/$1/cpuset.cpus
    /bin/busybox sh -c "echo \$\$ >$groups/$1/cgroup.procs; exec /bin/busybox sleep 3600" &
}
echo +cpuset >$groups/cgroup.subtree_control
group kubepods.slice
group kubepods.slice/kubepods-pod5d0c.slice
group kubepods.slice/kubepods-burstable.slice
group kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod77aa.slice
own=kubepods.slice/kubepods-pod5d0c.slice/cri-containerd-1f.scope
shared=kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod77aa.slice/cri-containerd-2e.scope
container $own 3
owner=$!
container $shared 0-2
sharer=$!
/bin/busybox mkdir -p /var/lib/kubelet
cat >/var/lib/kubelet/config.yaml <<'END'
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cpuManagerPolicy: static
reservedSystemCPUs: "0"
END
cat >/var/lib/kubelet/cpu_manager_state <<'END'
{"policyName":"static","defaultCpuSet":"0-2","entries":{"5d0c1a7e-0000-4000-8000-000000000001":{"app":"3"}},"checksum":3921875467}
END
/bin/busybox usleep 500000
tasks="$owner $sharer"
files="$groups/$own/cpuset.cpus $groups/$own/cpuset.cpus.effective $groups/$own/cgroup.procs $groups/$shared/cpuset.cpus"
beside kubelet /var/lib/kubelet
/bin/busybox kill $owner $sharer
wait $owner $sharer 2>/dev/null
/bin/busybox rm -r /var/lib/kubelet
/bin/busybox rmdir $groups/$own $groups/$shared $groups/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod77aa.slice \
    $groups/kubepods.slice/kubepods-burstable.slice $groups/kubepods.slice/kubepods-pod5d0c.slice $groups/kubepods.slice

# tuned itself, with each of its profiles that isolate.
[ -e /usr/sbin/tuned ] || exit 0
/bin/busybox mkdir -p /run/tuned /var/log/tuned
for profile in realtime cpu-partitioning; do
    for file in realtime cpu-partitioning; do
        echo isolated_cores=3 >/etc/tuned/$file-variables.conf
    done
    echo $profile >/etc/tuned/active_profile
    echo manual >/etc/tuned/profile_mode
    /usr/bin/python3 -Es /usr/sbin/tuned --no-dbus >tuned-$profile.log 2>&1 &
    tuned=$!
    tries=0
    while [ $tries -lt 180 ] && ! grep -q "profile '$profile' applied" tuned-$profile.log; do
        /bin/busybox sleep 1
        tries=$((tries + 1))
    done
    cat $masks >masks-before-$profile
    tasks=$tuned
    files=$masks
    beside $profile /etc/tuned
    cat $masks >masks-after-$profile
    /bin/busybox kill -0 $tuned && echo runs >tuned-$profile.end
    /bin/busybox kill $tuned
    wait $tuned
done
exit 0
