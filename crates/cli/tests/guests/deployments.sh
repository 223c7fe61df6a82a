# The six deployments and a state directory that is full or read-only, in a lab guest with SMT. Runs
# under busybox sh as root in its own directory; leaves its evidence for isolate.rs. Facts only:
# nothing is judged here.

stillcore=/usr/bin/stillcore

for name in CHM HM M MI HMI Single; do
    $stillcore internal state >before-$name.json
    $stillcore isolate deployment $name --json >applied-$name.json 2>applied-$name.err
    echo $? >applied-$name.code
    cat /sys/devices/system/cpu/online >online-$name
    $stillcore isolate verify >verified-$name 2>&1
    echo $? >verified-$name.code
    $stillcore isolate undo >undone-$name 2>&1
    echo $? >undone-$name.code
    $stillcore internal state >after-$name.json
done

# The journal finds no room in the middle.
$stillcore internal state >before-run.json
mkdir full
/bin/busybox mount -t tmpfs -o size=16k tmpfs full
$stillcore internal state >before-full.json
/bin/busybox dd if=/dev/zero of=full/fill bs=1k count=8 2>/dev/null
$stillcore isolate apply --cpus 2,3 --state full >full.log 2>&1
echo $? >full.code
$stillcore internal state >after-full.json

# Nor can it be written at all.
rm full/fill
/bin/busybox mount -o remount,ro full
$stillcore isolate apply --cpus 2,3 --state full >read-only.log 2>&1
echo $? >read-only.code
$stillcore internal state >after-read-only.json
/bin/busybox umount full

# Another isolation is in place; afterwards a program runs on the isolated CPUs.
$stillcore isolate apply --cpus 2,3 >first.log 2>&1
$stillcore isolate apply --cpus 6,7 >second.log 2>&1
echo $? >second.code
$stillcore isolate run -- /bin/busybox grep Cpus_allowed_list /proc/self/status >ran 2>ran.err
$stillcore isolate undo >last-undo.log 2>&1
$stillcore internal state >after-run.json
