# The commands of README and docs/ that need root, more CPUs or the kernel's tracing, page by page. Runs under busybox sh as root in
# its own directory; leaves what each printed and how it ended for pages.rs. Facts only. The file orders.sh, made of
# data/pages.toml and the pages, calls `page`, `run` and `leave`.

here=$PWD
mkdir -p bin /dev/shm /usr/local/bin
printf '#!/bin/busybox sh\nexec "$@"\n' >bin/sudo
chmod +x bin/sudo
# As a package would install it: root starts no program at boot that others may replace.
busybox chmod 755 /
mkdir -p /usr/local/sbin
cp /usr/bin/stillcore /usr/local/sbin/stillcore
export PATH=$here/bin:/usr/local/sbin:/usr/bin:/bin:/sbin:/usr/sbin

page() {
    mkdir -p "page-$1"
    cd "page-$1"
}

# Its number, and the seconds after which Ctrl-C is sent; 0: never.
run() {
    number=$1 stop=$2
    file=$here/command-$number
    cat >"$file"
    start=$(cut -d. -f1 /proc/uptime)
    if [ "$stop" = 0 ]; then
        busybox timeout -s KILL 240 busybox sh "$file" >"$here/out-$number" 2>"$here/err-$number" </dev/null
    else
        sed -i '1s/^/exec /' "$file"
        busybox timeout -s INT "$stop" busybox sh "$file" >"$here/out-$number" 2>"$here/err-$number" </dev/null
    fi
    echo $? >"$here/status-$number"
    echo $(($(cut -d. -f1 /proc/uptime) - start)) >"$here/took-$number"
}

# Nothing of a page is in the way of the next.
leave() {
    stillcore isolate undo >>"$here/undone" 2>&1
    cd "$here"
    rm -rf "$here"/page-*
}

. ./orders.sh
exit 0
