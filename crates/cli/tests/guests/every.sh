# Every mechanism that a running machine can change, in a lab guest. Runs under busybox sh as root
# in its own directory; leaves its evidence for every.rs. Facts only: nothing is judged here.
# Arguments: the CPUs to isolate, the choices and risks to take in, and the CPUs that are left of
# the first when the choices have taken siblings offline. The file `spoil` has a line for each file
# that is first set to what isolation does not want: mechanism, files, value.

stillcore=/usr/bin/stillcore
cpus=$1
choices=$2
left=$3

uname -r >release
/bin/busybox mount -t debugfs none /sys/kernel/debug 2>/dev/null

# Daemons that would undo isolation, or disturb: their names are what is looked for.
daemons=""
/bin/busybox mkfifo never
for name in $(cat daemons); do
    echo "#!/bin/busybox sh
read line <>$PWD/never" >$name
    /bin/busybox chmod +x $name
    ./$name &
    daemons="$daemons $!"
done

# Swap on compressed memory.
if [ -e /sys/block/zram0 ]; then
    echo 16M >/sys/block/zram0/disksize
    /bin/busybox mkswap /dev/zram0 >/dev/null && /bin/busybox swapon /dev/zram0
fi

while read -r mechanism files value; do
    for file in $files; do
        [ -f $file ] && echo "$value" 2>/dev/null >$file && echo $mechanism
    done
done <spoil 2>/dev/null | sort -u >spoiled

round() {
    $stillcore internal state >$1-before.json
    $stillcore isolate apply --cpus $cpus --with $choices $2 --json >$1-applied.json 2>$1-applied.err
    echo $? >$1-applied.code
    $stillcore audit --cpus $left --all --json >$1-audit-during.json 2>/dev/null
    $stillcore isolate status --json >$1-status.json
    $stillcore isolate verify --json >$1-verified.json 2>$1-verified.err
    echo $? >$1-verified.code
    $stillcore isolate undo --json >$1-undone.json 2>$1-undone.err
    echo $? >$1-undone.code
    $stillcore internal state >$1-after.json
}

# The first settles what isolation changes for good, such as kernel threads that come into being.
round warm-up ""
round best ""
round affinity "--placement affinity"

for pid in $daemons; do
    kill -9 $pid
done
