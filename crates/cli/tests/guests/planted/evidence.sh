# What the kernel does, seen without stillcore. Each function judges one mechanism or a few for CPUs
# 2 and 3 (or those that it is given) and says so: `say MECHANISM STATE KIND WORDS`. STATE is right,
# wrong, absent (the kernel has no such thing) or none (not to be seen); KIND is `behaviour`
# (something was provoked and counted) or `setting` (read back).

say() {
    echo "$*" >>$world.truth
}

hex() {
    printf %x $1
}

# The processes and kernel threads whose names match a pattern of the shell.
named() {
    for comm in /proc/[0-9]*/comm; do
        read -r name 2>/dev/null <$comm || continue
        case $name in $1)
            pid=${comm#/proc/}
            echo ${pid%/comm}
            ;;
        esac
    done 2>/dev/null
}

now_ticks() {
    awk -v cpu=$1 '$1 == "LOC:" { print $(cpu + 2) }' /proc/interrupts
}

# Time in user mode on a CPU so far, in hundredths of a second.
user_time() {
    awk -v cpu=cpu$1 '$1 == cpu { print $2 + $3 }' /proc/stat
}

# The CPU on which a task last ran, and its time so far in hundredths of a second.
last_cpu() {
    read -r line </proc/$1/stat
    set -- ${line##*) }
    echo ${37}
}

task_time() {
    read -r line </proc/$1/stat
    set -- ${line##*) }
    echo $((${12} + ${13}))
}

# Starts a task that never sleeps, held to a CPU, in the group whose tasks may be there, with a
# command before it if one is given. It is only made ready; `go` lets all run that are.
ready=""
started=0
start_hog() {
    eval "group=\$group_of_$1"
    hog_mask=$(hex $((1 << $1)))
    started=$((started + 1))
    ready="$ready hog.$started"
    rm -f go hog.$started.ready hog.$started.busy
    sh -c "
        [ -z '$group' ] || echo \$\$ >'$group'/cgroup.procs
        echo >hog.$started.ready
        while [ ! -e go ]; do usleep 20000; done
        exec taskset $hog_mask $2 sh -c 'echo >hog.$started.busy; while :; do :; done'" 2>>hog.err &
    hogs="$hogs $!"
}

# First all are to be in their groups: joining one waits for RCU, for ever where a SCHED_FIFO task
# never sleeps. Then all are to be busy: a task that is let go everywhere before its own taskset has
# run is pinned again by that.
go() {
    all=0
    await ready || all=1
    echo >go
    await busy || all=1
    ready=""
    return $all
}

await() {
    for one in $ready; do
        tries=0
        while [ ! -e $one.$1 ]; do
            [ $tries -lt 500 ] || return 1
            usleep 20000
            tries=$((tries + 1))
        done
    done
}

hog() {
    start_hog "$@"
    go
}

end_hogs() {
    kill -9 $hogs 2>/dev/null
    wait $hogs 2>/dev/null
    hogs=""
}

# Whether the scheduler takes a task away from each CPU: two tasks begin there, and may go anywhere.
truth_domains() {
    moved=""
    for cpu in $1; do
        hog $cpu
        hog $cpu
        usleep 400000
        for pid in $hogs; do taskset -p f $pid >/dev/null 2>&1; done
        # A balancer looks now and then; one that has not by then does not.
        for try in 1 2 3 4; do
            sleep 1
            away=""
            for pid in $hogs; do
                at=$(last_cpu $pid)
                [ "$at" = $cpu ] || away="$away $cpu->$at"
            done
            [ -z "$away" ] || break
        done
        moved="$moved$away"
        end_hogs
    done
    verdict=right
    [ -z "$moved" ] || verdict=wrong
    words="of two busy tasks on each CPU these were moved: ${moved:-none}"
    for id in $2; do say $id $verdict behaviour "$words"; done
}

# Whether unplaced tasks get to the CPUs.
truth_user_tasks() {
    before="$(user_time 2) $(user_time 3)"
    for one in 1 2 3 4 5 6 7 8; do
        sh -c 'while :; do :; done' &
        hogs="$hogs $!"
    done
    sleep 2
    set -- $before $(user_time 2) $(user_time 3)
    end_hogs
    verdict=right
    [ $(($3 - $1 + $4 - $2)) -lt 10 ] || verdict=wrong
    say user-tasks $verdict behaviour "eight busy tasks: user time of CPU 2 +$(($3 - $1)) and of CPU 3 +$(($4 - $2)) hundredths of a second"
}

# The fewest ticks of a CPU in a second, of three. A crowded host delays ticks and merges those that
# are late: 50 of 250 were seen.
fewest_ticks() {
    least=100000
    for try in 1 2 3; do
        before=$(now_ticks $1)
        sleep 1
        ticks=$(($(now_ticks $1) - before))
        [ $ticks -ge $least ] || least=$ticks
    done
    echo $least
}
TICKING=15

# Ticks of a CPU that is busy with one task.
truth_nohz_full() {
    verdict=right
    words=""
    for cpu in $1; do
        hog $cpu
        sleep 1
        ticks=$(fewest_ticks $cpu)
        end_hogs
        words="$words CPU $cpu: $ticks"
        [ $ticks -lt $TICKING ] || verdict=wrong
    done
    say nohz_full $verdict behaviour "local timer interrupts in a busy second, the fewest of three:$words"
}

switches() {
    all=0
    for pid in $(named "rcuo[ps]/$1"); do
        while read -r key value; do
            [ "$key" = voluntary_ctxt_switches: ] && all=$((all + value))
        done </proc/$pid/status
    done
    echo $all
}

# Who runs the callbacks that a CPU queues: a thread of its own, or its softirq alone.
truth_rcu_nocbs() {
    verdict=right
    words=""
    mkdir -p /dev/shm
    for cpu in $1; do
        before=$(switches $cpu)
        taskset $(hex $((1 << cpu))) sh -c '
            for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
                for f in a b c d e f g h; do echo >/dev/shm/planted-$f; rm /dev/shm/planted-$f; done
                usleep 20000
            done' 2>/dev/null
        # Callbacks may be lazy, and wait for others for ten seconds (CONFIG_RCU_LAZY).
        for try in 1 2 3 4 5; do
            taskset $(hex $((1 << cpu))) sh -c 'echo >/dev/shm/planted; rm /dev/shm/planted'
            put 1 /sys/module/rcutree/parameters/do_rcu_barrier
            usleep 300000
        done
        by_thread=$(($(switches $cpu) - before))
        words="$words CPU $cpu: $by_thread"
        [ $by_thread -ge 3 ] || verdict=wrong
    done
    say rcu_nocbs $verdict behaviour "wake-ups of the offload thread while files were removed:$words"
}

# Which CPUs work of unbound queues may use: a helper of the kernel inherits its worker's.
truth_workqueue() {
    cat >helper.sh <<'HELPER'
#!/bin/busybox sh
read -r line </proc/self/stat
set -- ${line##*) }
cpu=${37}
while read -r name list; do
    [ "$name" = Cpus_allowed_list: ] && echo "$cpu $list" >>/root/planted/helped
done </proc/self/status
exit 1
HELPER
    chmod +x helper.sh
    was=$(cat /proc/sys/kernel/modprobe)
    rm -f helped
    echo /root/planted/helper.sh >/proc/sys/kernel/modprobe
    for try in 1 2 3 4 5 6; do
        taskset 4 mount -t planted$try none /mnt 2>/dev/null
        taskset 8 mount -t planted$try$try none /mnt 2>/dev/null
        mount -t planted$try$try$try none /mnt 2>/dev/null
    done
    echo "$was" >/proc/sys/kernel/modprobe
    runs=$(grep -c . helped)
    there=$(grep -c '^[23] ' helped)
    lists=$(cut -d' ' -f2 helped | sort -u | tr '\n' ' ')
    verdict=right
    grep -qE '(^[23] )|( .*[23])' helped && verdict=wrong
    [ "$runs" -gt 0 ] || verdict=none
    for id in workqueue-cpumask workqueue-unbound_cpus; do
        say $id $verdict behaviour "$runs helpers started by unbound work, $there of them on CPUs 2 and 3, allowed on $lists"
    done
}

# The detector's timer on the CPUs.
truth_watchdog() {
    timers=$(awk '/^cpu: / { cpu = $2 } /watchdog_timer_fn/ { print cpu }' /proc/timer_list | tr '\n' ' ')
    here=right
    for cpu in $timers; do case " 2 3 " in *" $cpu "*) here=wrong ;; esac; done
    anywhere=right
    [ -z "$timers" ] || anywhere=wrong
    say watchdog_cpumask $here behaviour "the detector has timers on CPUs: ${timers:-none}"
    say soft_watchdog $anywhere behaviour "the detector has timers on CPUs: ${timers:-none}"
    say nosoftlockup $anywhere behaviour "the detector has timers on CPUs: ${timers:-none}"
    # The hard-lockup detector needs counters that this machine has not.
    say nowatchdog $anywhere behaviour "the detector has timers on CPUs: ${timers:-none}"
}

# Packets that CPUs 2 and 3 have processed; a line a CPU, in hex. Real-time kernels do it in
# threads, which /proc/softirqs does not count.
packets_there() {
    set -- $(sed -n '3p;4p' /proc/net/softnet_stat | cut -d' ' -f1)
    echo $((0x$1 + 0x$2))
}

# Where packets of the loop device are processed that arrive on CPU 0.
truth_rps() {
    ip link set lo up 2>/dev/null
    ip addr add 127.0.0.1/8 dev lo 2>/dev/null
    before=$(packets_there)
    taskset 1 ping -c 30 -i 0.02 -q 127.0.0.1 >/dev/null 2>&1
    done_there=$(($(packets_there) - before))
    verdict=right
    [ $done_there -lt 10 ] || verdict=wrong
    say net-rps $verdict behaviour "of 30 echoes that went round on CPU 0, packets that CPUs 2 and 3 processed: $done_there"
}

# What an ordinary task gets beside a SCHED_FIFO one that never sleeps. An emulated 5.10-rt was seen
# to stop there for minutes: it only shows its setting.
truth_throttling() {
    case $(uname -r) in
    5.10.*-rt-*)
        limit=$(cat /proc/sys/kernel/sched_rt_runtime_us)
        verdict=wrong
        [ $limit -ge 0 ] || verdict=right
        say sched_rt_runtime $verdict setting "the limit is $limit us"
        return
        ;;
    esac
    # Neither this script nor another CPU's budget is to be in it.
    own=$(taskset -p $$ | sed 's/.* //')
    taskset -p 3 $$ >/dev/null
    lent=$(cat /sys/kernel/debug/sched/features /sys/kernel/debug/sched_features 2>/dev/null | grep -c ' RT_RUNTIME_SHARE')
    features NO_RT_RUNTIME_SHARE
    for cpu in 2 3; do
        hog $cpu
    done
    usleep 500000
    victims=$hogs
    hogs=""
    for cpu in 2 3; do start_hog $cpu "$stillcore internal real-time 50 /bin/busybox"; done
    came=yes
    go || came=no
    start=""
    for pid in $victims; do start="$start $(task_time $pid)"; done
    sleep 3
    got=0
    for pid in $victims; do
        set -- $start
        got=$((got + $(task_time $pid) - $1))
        shift
        start="$*"
    done
    end_hogs
    hogs=$victims
    end_hogs
    [ $lent -eq 0 ] || features RT_RUNTIME_SHARE
    taskset -p $own $$ >/dev/null
    verdict=right
    [ $got -lt 4 ] || verdict=wrong
    [ $came = yes ] || verdict=none
    say sched_rt_runtime $verdict behaviour "two ordinary tasks beside SCHED_FIFO ones got $got hundredths of three seconds"
    [ ! -e /sys/kernel/debug/sched/fair_server ] || say fair_server $verdict behaviour "two ordinary tasks beside SCHED_FIFO ones got $got hundredths of three seconds"
}

vmstat_of() {
    awk -v name=$1 '$1 == name { print $2 }' /proc/vmstat
}

# Whether a program that requests no huge page gets one.
truth_huge_pages() {
    [ -e /sys/kernel/mm/transparent_hugepage ] || return
    before=$(vmstat_of thp_fault_alloc)
    dd if=/dev/zero of=/dev/null bs=16M count=1 2>/dev/null
    got=$(($(vmstat_of thp_fault_alloc) - before))
    verdict=right
    [ $got -eq 0 ] || verdict=wrong
    say transparent_hugepage $verdict behaviour "a program that touched 16 MiB got $got huge pages"
    mkdir -p huge
    mount -t tmpfs none huge
    before=$(vmstat_of thp_file_alloc)
    dd if=/dev/zero of=huge/file bs=1M count=8 2>/dev/null
    got=$(($(vmstat_of thp_file_alloc) - before))
    umount huge
    verdict=right
    [ $got -eq 0 ] || verdict=wrong
    say thp-shmem $verdict behaviour "a file of 8 MiB in shared memory got $got huge pages"
    stat=/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/anon_fault_alloc
    [ -e $stat ] || return
    before=$(cat $stat)
    # Less than a page of 2 MiB, which would go before.
    dd if=/dev/zero of=/dev/null bs=1000k count=1 2>/dev/null
    got=$(($(cat $stat) - before))
    verdict=right
    [ $got -eq 0 ] || verdict=wrong
    say thp-sizes $verdict behaviour "a program that touched 1 MB got $got pages of 64 KiB"
}

# How often the kernel gathers the statistics of virtual memory.
truth_stat_interval() {
    here=/sys/kernel/tracing/instances/evidence
    mkdir $here
    echo 1 >$here/events/workqueue/workqueue_execute_start/enable
    sleep 4
    echo 0 >$here/events/workqueue/workqueue_execute_start/enable
    runs=$(grep -c 'function vmstat_shepherd' $here/trace)
    rmdir $here
    verdict=right
    [ $runs -lt 3 ] || verdict=wrong
    say stat_interval $verdict behaviour "vmstat_shepherd ran $runs times in four seconds"
}

# What is being recorded, and what the planted probe counts.
truth_tracing() {
    entries() { cat /sys/kernel/tracing/instances/$1/per_cpu/cpu*/stats 2>/dev/null | awk '/^(entries|overrun|dropped)/ { n += $NF } END { print n + 0 }'; }
    before=$(entries planted)
    traced=$(entries planted-tracer)
    hits() { awk '{ n += $2 } END { print n + 0 }' /sys/kernel/tracing/kprobe_profile; }
    hit=$(hits)
    usleep 500000
    ls / >/dev/null
    more=$(($(entries planted) - before))
    traced=$(($(entries planted-tracer) - traced))
    hit=$(($(hits) - hit))
    verdict=right
    [ $more -lt 1 ] || verdict=wrong
    say trace-events $verdict behaviour "$more events more in the buffer of an instance in half a second"
    verdict=right
    [ $traced -lt 1 ] || verdict=wrong
    say ftrace-tracer $verdict behaviour "$traced calls more in the buffer of an instance in half a second"
    verdict=right
    [ $hit -lt 1 ] || verdict=wrong
    say kprobes $verdict behaviour "probes were hit $hit times in half a second"
}

# Whether tasks have statistics of their waiting.
truth_schedstats() {
    sh -c 'usleep 50000; cat /proc/$$/sched' >sched.text
    waited=$(awk '/sum_sleep_runtime|sleep_max/ && $NF + 0 > 0 { n++ } END { print n + 0 }' sched.text)
    verdict=right
    [ $waited -eq 0 ] || verdict=wrong
    say sched_schedstats $verdict behaviour "$waited statistics of a task that slept have counted"
}

# The CPUs that are there.
truth_smt() {
    threads=$(grep -c '^cpu[13] ' /proc/stat)
    verdict=right
    [ $threads -eq 0 ] || verdict=wrong
    for id in $1; do say $id $verdict behaviour "$threads of the second threads of the cores are online"; done
}

# Kernel threads of a pattern that may run on the CPUs: those whose affinity cannot be set are no
# finding, and the kernel refuses even the one they have.
truth_threads() {
    bad=""
    found=0
    for stat in /proc/[0-9]*/stat; do
        read -r line 2>/dev/null <$stat || continue
        pid=${line%% *}
        name=${line#*(}
        name=${name%)*}
        set -- "$1" "$2" ${line##*) }
        [ "$4" = 2 ] || [ $pid = 2 ] || continue
        case $2 in '*') case $name in irq/* | kworker/u*) continue ;; esac ;; esac
        case $name in $2) ;; *) continue ;; esac
        found=$((found + 1))
        now=$(taskset -p $pid 2>/dev/null)
        now=${now##* }
        [ -n "$now" ] && [ $((0x$now & 12)) -ne 0 ] || continue
        taskset -p $now $pid >/dev/null 2>&1 && bad="$bad $name"
    done
    verdict=right
    [ -z "$bad" ] || verdict=wrong
    [ $found -gt 0 ] || verdict=none
    say $1 $verdict setting "of $found threads these may run there and can be moved:${bad:- none}"
}

# Numbered interrupts that come to the CPUs while the console writes, and those that would.
truth_interrupts() {
    sum() { awk '$1 ~ /^[0-9]+:$/ { n += $4 + $5 } END { print n + 0 }' /proc/interrupts; }
    before=$(sum)
    for line in 1 2 3 4 5; do echo "planted: interrupts of the console" >/dev/ttyS0; done
    usleep 300000
    came=$(($(sum) - before))
    may=""
    for irq in /proc/irq/[0-9]*; do
        ls -d $irq/*/ >/dev/null 2>&1 || continue
        at=$(cat $irq/effective_affinity 2>/dev/null)
        to=$(cat $irq/smp_affinity)
        number=${irq##*/}
        [ $((0x${at:-0} & 12)) -eq 0 ] || may="$may $number"
        # It may come to any CPU of its affinity: where the next one comes is open.
        if [ $((0x$to & 12)) -ne 0 ] && echo $to 2>/dev/null >$irq/smp_affinity; then may="$may $number"; fi
    done
    verdict=right
    [ $came -eq 0 ] && [ -z "$may" ] || verdict=wrong
    say irq-affinity $verdict behaviour "$came numbered interrupts came while the console wrote; may come:${may:- none}"
}

# Daemons: those that run, and not those that are stopped or dead.
truth_daemons() {
    while read -r id process; do
        state=""
        for pid in $(named "$process"); do
            read -r line </proc/$pid/stat
            set -- ${line##*) }
            state="$state$1"
        done
        case $state in
        *[RSD]*) say $id wrong setting "$process: state $state" ;;
        *) say $id right setting "$process: state ${state:-none}" ;;
        esac
    done <daemons
}

# The word in force of a choice in brackets, else the text.
in_force() {
    text=$(cat $1 2>/dev/null) || return
    case $text in
    *\[*\]*)
        text=${text#*\[}
        text=${text%%\]*}
        ;;
    *"("*")"*)
        text=${text#*\(}
        text=${text%%\)*}
        ;;
    esac
    echo "$text"
}

# A table of settings, read back.
truth_settings() {
    while read -r id file wrong right; do
        case " # $skip " in *" $id "*) continue ;; esac
        for one in $(files_of $file); do
            [ -e $one ] || continue
            text=$(in_force $one)
            case $text in
            "$right") say $id right setting "$one is $text" ;;
            "$wrong") say $id wrong setting "$one is $text" ;;
            *) say $id none setting "$one is $text, neither $wrong nor $right" ;;
            esac
        done
    done <$1
}

files_of() {
    case $1 in
    *{cpu}*) for cpu in 2 3; do echo ${1%%\{cpu\}*}$cpu${1##*\{cpu\}}; done ;;
    *) echo $1 ;;
    esac
}

