# An ordinary task that is long inside one system call, on the CPU of a waking FIFO task. Runs under
# busybox sh as root in its own directory; leaves its evidence there for held.rs. Facts only: nothing
# is judged here.

stillcore=/usr/bin/stillcore
uname -r >release
# The task's output stays in the kernel's log: a serial line takes seconds for it.
dmesg -n 1

# The state of all tasks, written under one read-side lock of RCU (drivers/tty/sysrq.c,
# sysrq_handle_showstate). It sleeps in between: the emulator runs all CPUs in one thread, and a CPU
# that is never idle leaves the others little of it.
taskset 4 sh -c 'while :; do echo t >/proc/sysrq-trigger; usleep 50000; done' &
talker=$!
$stillcore measure wakeup --cpus 2 --priority 90 --period 100ms --duration 8s --trace --stacks --out run --json >answer.json 2>log
echo $? >code
$stillcore trace explain run --worst 5 >explained 2>&1
# The same for a watched program: this one, whose own answer is not used.
$stillcore trace watch --stacks --cpus 2 --json --out watched -- \
    $stillcore measure wakeup --cpus 2 --priority 90 --period 100ms --duration 4s --out other >watched.json 2>watched.log
echo $? >watched.code
kill $talker
exit 0
