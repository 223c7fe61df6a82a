# Contention planted in a guest, watched. Runs under busybox sh as root in /root; leaves its evidence there for locks.rs, which
# judges. Arguments: the scenes.
stillcore=/usr/bin/stillcore
dmesg -n 1
uname -r >release
for libc in glibc musl rust; do
    [ -x ./contention-$libc ] || continue
    $stillcore trace watch --json --cpus 0-3 --out run-$libc -- ./contention-$libc 2 "$@" >$libc.json 2>$libc.log
    echo $? >$libc.code
    # The trace is large, and its answer is there.
    rm -rf run-$libc
done
exit 0
