# What the kernel made of its command line. Runs under busybox sh as root in its own directory;
# leaves its evidence for boot_line.rs. Facts only: nothing is judged here.
# $1: the CPU that the line is to isolate.

cpu=/sys/devices/system/cpu
# Files of the kernel's package.
/bin/busybox mkdir -p /boot
/bin/busybox cp config /boot/config-$(/bin/busybox uname -r)
/bin/busybox cat /proc/cmdline >cmdline
/bin/busybox cat $cpu/isolated >isolated
/bin/busybox cat $cpu/nohz_full >nohz_full
/bin/busybox dmesg >log
/usr/bin/stillcore isolate plan --cpus $1 --json >plan.json 2>plan.err
echo $? >plan.code
