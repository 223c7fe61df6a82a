# Debian's own programs that make boot configurations, run in a root of their own, before, with and
# after the lines that persist writes. Runs under busybox sh as root in its own directory; leaves
# its evidence for loaders.rs. Facts only. Argument: the CPUs to isolate; "inside" before it, in
# that root.

if [ "$1" != inside ]; then
    # The programs ask for the device of the root directory: an initial file system has none.
    echo 900M >/sys/block/zram0/disksize
    /sbin/mke2fs -q -t ext4 /dev/zram0
    mkdir -p /target
    /bin/busybox mount -t ext4 /dev/zram0 /target || exit 1
    /bin/busybox cp -a /bin /etc /lib /lib64 /sbin /usr /var /target 2>copy.err
    mkdir -p /target/boot /target/tmp /target/run /target/out
    # A link there.
    /bin/busybox cp -L /usr/bin/stillcore /target/stillcore
    /bin/busybox rm -f /target/usr/bin/stillcore
    /bin/busybox mv /target/stillcore /target/usr/bin/stillcore
    for place in dev proc sys; do
        mkdir -p /target/$place
        /bin/busybox mount -o bind /$place /target/$place
    done
    cp script.sh /target/loaders.sh
    /bin/busybox chroot /target /bin/sh /loaders.sh inside "$1"
    code=$?
    cp /target/out/* .
    exit $code
fi

cpus=$2
release=$(uname -r)
export PATH=/usr/sbin:/usr/bin:/sbin:/bin SYSTEMD_RELAX_ESP_CHECKS=1
cd /out

call() {
    name=$1
    shift
    stillcore isolate persist "$@" >$name 2>&1
    echo $? >$name.code
}

# Every file of the configuration, with its sum.
sums() {
    find /etc /boot -type f | sort | xargs md5sum >$1.sums
}

# A configuration made by a loader's program, named before, with, again and after.
#   $1: name; $2: file; the program as a function `make`
around() {
    make >$1.log 2>&1
    cp $2 $1-before
    sums $1-before
    call $1-persist --cpus $cpus
    cp $2 $1-with
    # As a new kernel would have it made.
    make >>$1.log 2>&1
    cp $2 $1-again
    call $1-remove --remove
    cp $2 $1-after
    sums $1-after
}

# Files that maintainer scripts would have made.
ln -sf mawk /usr/bin/awk
echo 'root:x:0:0::/root:/bin/sh' >/etc/passwd
echo 'root:x:0:' >/etc/group
echo '/dev/zram0 / ext4 defaults 0 1' >/etc/fstab
: >/boot/vmlinuz-$release
: >/boot/initrd.img-$release

make() {
    update-grub
}
cp /usr/share/grub/default/grub /etc/default/grub
mkdir -p /boot/grub /etc/default/grub.d
around grub /boot/grub/grub.cfg
# Files of others: one that sets a variable anew, one as kdump-tools has it.
echo 'GRUB_CMDLINE_LINUX="console=ttyS0 isolcpus=1"' >/etc/default/grub.d/10_theirs.cfg
echo 'GRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT crashkernel=512M-:192M"' \
    >/etc/default/grub.d/kdump-tools.cfg
around grub-others /boot/grub/grub.cfg
rm -r /boot/grub /etc/default/grub /etc/default/grub.d

make() {
    u-boot-update
}
around u-boot /boot/extlinux/extlinux.conf
echo 'U_BOOT_PARAMETERS="ro isolcpus=1 quiet"' >/etc/default/u-boot
around u-boot-others /boot/extlinux/extlinux.conf
rm -r /boot/extlinux /etc/default/u-boot

# systemd-boot: an own file system, and entries that kernel-install makes.
id=0123456789abcdef0123456789abcdef
mount -t tmpfs boot /boot
: >/boot/vmlinuz
echo $id >/etc/machine-id
mkdir -p /boot/$id /boot/loader/entries /etc/kernel
echo layout=bls >/etc/kernel/install.conf
echo 'root=/dev/vda1 ro quiet' >/etc/kernel/cmdline
make() {
    kernel-install -v add $release /boot/vmlinuz
    bootctl --esp-path=/boot list >/out/bootctl-list
}
around entries /boot/loader/entries/$id-$release.conf
bootctl --esp-path=/boot list >bootctl-after 2>&1
exit 0
