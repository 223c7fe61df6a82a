# Types the commands of guides: each by the shell and the programs of the distribution. The events
# that it is said to remove are counted before and after; then it is undone. Runs under busybox sh
# as root in its own directory; leaves its evidence for guides.rs. Facts only: nothing is judged
# here. The file rows.sh, made of guides/rows.toml, calls `row` once a command.

. ./evidence.sh
. ./counts.sh

mount -t debugfs none /sys/kernel/debug 2>/dev/null
mount -t tracefs none /sys/kernel/tracing 2>/dev/null
mkdir -p /dev/shm /mnt bin saved
# Output of other programs must not cause interrupts of the console.
dmesg >log
dmesg -n 1
uname -r >release
cat /proc/cmdline >cmdline
stillcore=/usr/bin/stillcore
groups=/sys/fs/cgroup
export LC_ALL=C
hogs=""
mkfifo never

# The shell that types: as on a machine on which packages have been installed and not only unpacked.
printf '#!/bin/sh\nexec "$@"\n' >bin/sudo
chmod +x bin/sudo
ln -s /usr/bin/mawk bin/awk
typing="$PWD/bin:/usr/sbin:/usr/bin:/sbin:/bin"

cards() {
    for card in eth0 eth1; do ip link set $card $1; done
    [ $1 = up ] || return
    ip addr add 10.9.0.1/24 dev eth0 2>/dev/null
    arp -s -i eth0 10.9.0.2 $(cat /sys/class/net/eth1/address)
}
cards up 2>>count.err
ip link set lo up

# A device to swap to, and one to read from and write to.
disk=""
if [ -e /sys/block/zram0 ]; then
    echo 64M >/sys/block/zram0/disksize
    mkswap /dev/zram0 >/dev/null
    disk=zram$(cat /sys/class/zram-control/hot_add)
    echo 1500M >/sys/block/$disk/disksize
fi

# A task whose equal pages may be merged, and the thread that does it.
mergeable() {
    [ -e /sys/kernel/mm/ksm ] || return
    perl -e 'my $x = "x" x (4 << 20); my $at = unpack("Q", pack("P", $x)) & ~4095; syscall(28, $at, 3 << 20, 12); sleep 600' &
    merged=$!
    echo 1 >/sys/kernel/mm/ksm/run
    sleep 1
}
unmerge() {
    kill -9 $merged
    wait $merged
}

# Settings before a command, and whether they are as before when it has been undone.
settings() {
    for file in $1; do [ -r $file ] && echo "$file $(cat $file 2>/dev/null)"; done
}

# A count, or a reason why there is none, in one word or line without tabs.
count() {
    result=$($1 2>>count.err | tail -n 1 | tr '\t' ' ')
    [ ! -e there ] || mv there there.$number
    echo "${result:-- nothing was counted}"
}

# Number, function that counts, files that the command changes, seconds until it is in force.
# typed.N, before.N and undo.N are beside this file.
row() {
    echo "== $1" >>count.err
    number=$1
    settings "$3" >saved/$1
    . ./before.$1 2>>count.err
    settings "$3" >saved/$1.before
    before=$(count $2)
    PATH=$typing /bin/bash ./typed.$1 >out.$1 2>err.$1
    code=$?
    sleep $4
    after=$(count $2)
    . ./undo.$1 2>>count.err
    while read -r file value; do
        [ "$(cat $file 2>/dev/null)" = "$value" ] || echo "$value" >$file
    done <saved/$1 2>>count.err
    undone=yes
    [ "$(settings "$3")" = "$(cat saved/$1)" ] || undone=no
    # The most frequent answer.
    answer=$(cat err.$1 out.$1 | grep -iE 'error|invalid|fail|refused|denied|no such|busy|ambiguous' | sed 's/.*: //' |
        sort | uniq -c | sort -rn | awk 'NR == 1 { sub(/^ *[0-9]+ /, ""); print }' | tr '\t' ' ')
    printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\n' $1 "$before" "$after" $code $(grep -c . err.$1) $undone "$answer" >>counted
}

# Effects that were decided at boot are counted once.
boot_row() {
    echo "== $1" >>count.err
    number=$1
    printf '%s\t%s\n' $1 "$(count $2)" >>booted
}

. ./rows.sh
exit 0
