# A partition over CPUs of isolcpus=, which Linux 6.12 holds invalid. Runs under busybox sh as root
# in its own directory; leaves its evidence for isolate.rs. Facts only: nothing is judged here.

stillcore=/usr/bin/stillcore

$stillcore isolate apply --cpus 2,3 --placement partition >warm-up.log 2>&1
$stillcore isolate undo >>warm-up.log 2>&1
$stillcore internal state >before.json
$stillcore isolate apply --cpus 2,3 --placement partition --json >applied.json 2>applied.err
echo $? >applied.code
ls -d /sys/fs/cgroup/stillcore-* >groups 2>&1
$stillcore isolate verify >verified 2>&1
echo $? >verified.code
$stillcore isolate undo >undone 2>&1
echo $? >undone.code
$stillcore internal state >after.json
# What is merely the best choice may be refused.
$stillcore isolate apply --cpus 2,3 >chosen.log 2>&1
echo $? >chosen.code
$stillcore isolate undo >>chosen.log 2>&1
