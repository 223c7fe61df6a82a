# The program installed, every verb that changes something used, everything uninstalled as README.md
# says. Runs under busybox sh as root in its own directory; leaves its evidence for install.rs. Facts
# only: nothing is judged here. Argument: the CPUs to isolate.

cpus=$1
busybox=/bin/busybox
own=$PWD

# What a distribution has: a boot loader's configuration, systemd's directory.
# The initial root directory of a guest is writable by everyone, and persist starts no program
# there.
$busybox chmod 755 /
mkdir -p /etc/default /boot/grub /etc/systemd/system
echo 'GRUB_CMDLINE_LINUX="quiet"' >/etc/default/grub
echo '# made by grub-mkconfig' >/boot/grub/grub.cfg
mkdir -p /usr/local/bin /var/lib

# Every file with mode, owner and sum; directories and links too. Results of the verbs are in the
# directory of this script, which is left out.
tree() {
    $busybox find / -xdev \( -path $own -o -path /proc -o -path /sys \) -prune -o -print |
        while read -r path; do
            sum=-
            [ -f "$path" ] && [ ! -L "$path" ] && sum=$($busybox sha256sum <"$path")
            echo "$path $($busybox stat -c '%f %u %g' "$path") $sum"
        done | $busybox sort
}

# Every setting of the kernel that root may write, and its value.
settings() {
    {
        $busybox find /proc/sys -type f
        $busybox find /proc/irq -name 'smp_affinity*'
        $busybox find /sys/fs/cgroup /sys/kernel/mm /sys/kernel/tracing /sys/kernel/debug/sched \
            /sys/devices/system /sys/devices/virtual/workqueue /sys/module/*/parameters \
            /sys/kernel/rcu_expedited /sys/kernel/rcu_normal -type f -perm -200 2>/dev/null
    } | $busybox grep -v -e /trace_pipe -e /snapshot -e /trace_marker -e '/trace$' -e /free_buffer | $busybox sort |
        while read -r file; do
            [ -r "$file" ] || continue
            echo "$file $($busybox timeout 2 $busybox head -c 4096 "$file" 2>&1 | $busybox tr '\n\0' '  ')"
        done
}

# What is mounted, loaded, and running; kernel threads come and go by themselves.
rest() {
    $busybox sort /proc/mounts
    $busybox cut -d' ' -f1 /proc/modules | $busybox sort
    for process in /proc/[0-9]*; do
        words=$($busybox tr '\0' ' ' <$process/cmdline 2>/dev/null)
        case "$words" in
            *stillcore*) echo "$words" ;;
        esac
    done
}

picture() {
    tree >$1.tree
    settings >$1.settings
    rest >$1.rest
    /usr/bin/stillcore internal state >$1.state.json
}

use() {
    name=$1
    shift
    $busybox timeout 240 "$@" >$name.log 2>&1
    echo "$name $?" >>codes
}

# Those that set values, make groups, instances, probes, links, mounts, load modules, take CPUs away.
stressors="cpu_hotplug cpuset_partition kprobe_toggle trace_event module_load hugepages schedstats stat_refresh
    watchdog_thresh cgroup_mkdir mount_tmpfs wq_loop drop_caches compact ksm slab_shrink nic_dummy netns perf_sys
    vm_fill timer"

everything() {
    stillcore=/usr/local/bin/stillcore
    cp /usr/bin/stillcore $stillcore
    use apply $stillcore isolate apply --cpus $cpus
    use verify $stillcore isolate verify
    use run $stillcore isolate run -- $busybox true
    use undo $stillcore isolate undo
    use deployment $stillcore isolate deployment MI
    use deployment-undo $stillcore isolate undo
    use persist $stillcore isolate persist --cpus $cpus
    $busybox ls -R /etc/systemd/system /etc/default /boot/grub >persisted
    use persist-remove $stillcore isolate persist --remove
    use snapshot $stillcore snapshot --out snapshot.tar
    use measure $stillcore measure wakeup --cpus 3 --duration 1s --period 10ms --priority 50 --trace-over 60ms --out measure --quiet
    use spin $stillcore measure spin --cpus 3 --duration 1s --out spin --quiet
    use periodic $stillcore measure periodic --cpus 3 --duration 1s --period 20ms --out periodic --quiet
    use assess $stillcore assess --cpus 3 --duration 1s --period 10ms --trace on --out assess
    use disturb $stillcore disturb $stressors --measured 3 --duration 4s --dangerous
    use watch $stillcore trace watch --duration 1s --out watch -- $busybox sleep 3
    use graph $stillcore graph run small-single --cpus 3 --duration 1s --out graph
    use study $stillcore study run exposure --stressors timer --cpus 3 --duration 1s --out study
    $busybox rm -rf /usr/local/bin/stillcore /var/lib/stillcore
}

# The file system of the kernel's own trace is where distributions have it.
$busybox mount -t debugfs none /sys/kernel/debug 2>/dev/null
uname -r >release
picture before
# Only time passes: settings that differ change by themselves.
sleep 5
picture again
everything
picture after
