# A machine that was booted for other CPUs than those that are asked about. Runs under busybox sh as
# root in its own directory; leaves its evidence for misbooted.rs. Facts only: nothing is judged here.

stillcore=/usr/bin/stillcore

$stillcore audit --cpus 2,3 --json >audit.json 2>audit.err
echo $? >audit.code
$stillcore audit --cpus 1 --json >own.json 2>own.err
$stillcore snapshot --out captured >snapshot.log 2>&1
$stillcore audit --root captured --cpus 2,3 --json >captured.json 2>captured.err
/bin/busybox dmesg >log
