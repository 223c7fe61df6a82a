# What the machine does at each boot, as its service manager would: /boot and what must outlast a
# boot are on its disk, and the call goes on until there is a report.
# $@: the call, without its program.
export PATH=/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin
busybox --install -s /bin
# The archive's root directory is everybody's; that of a machine is not.
busybox chmod 755 /
busybox mkdir -p /boot /data
busybox mount -t ext2 /dev/vda1 /boot || exit 1
busybox mount -t ext4 /dev/vda2 /data || exit 1
for place in etc/stillcore var/lib/stillcore; do
    busybox mkdir -p "/$place" "/data/$place"
    busybox mount --bind "/data/$place" "/$place"
done
busybox grep -v ' / ' /proc/mounts | busybox grep vda >/dev/console
busybox cat /proc/cmdline >>/data/boots
busybox sync
go_on() {
    stillcore "$@" --out /data/replicate --reboot-by '/bin/busybox reboot -f' >>/data/log 2>&1
}
# Once so many cells are done the user comes and stops it, in a boot that has more to do.
done=$(busybox find /data/replicate -path '*/cells/*.json' 2>/dev/null | busybox wc -l)
if [ -e /boot/stop-after ] && [ ! -e /data/stopped ] && [ "$done" -ge "$(busybox cat /boot/stop-after)" ]; then
    go_on "$@" &
    busybox sleep 20
    busybox touch /data/stopped
    # By --yes it reboots the machine itself.
    go_on "$@" --stop
elif [ ! -e /data/replicate/replicate.json ]; then
    go_on "$@"
fi
busybox tail -n 3 /data/log >/dev/console
# Without a report the machine waits for whoever watches it.
[ -e /data/replicate/replicate.json ] || busybox sleep 3600
busybox ls /boot/grub /etc/stillcore >/data/left 2>&1
busybox umount /var/lib/stillcore /etc/stillcore /data /boot
busybox poweroff -f
