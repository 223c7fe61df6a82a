# What shows which fixes the running kernel has. Runs under busybox sh as root in its own directory;
# leaves its evidence for fixes.rs. Facts only: nothing is judged here.

stillcore=/usr/bin/stillcore

cat /sys/devices/system/cpu/isolated >isolated
$stillcore audit --cpus 2,3 --json >audit.json 2>audit.err
echo $? >audit.code
$stillcore snapshot --out captured >snapshot.log 2>&1
$stillcore audit --root captured --cpus 2,3 --json >captured.json 2>captured.err
echo $? >captured.code
