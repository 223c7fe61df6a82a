# The study `exposure` once; with `twice`, again with the same stressors, and where the first one
# is. Runs under busybox sh as root in its own directory; leaves its evidence there for exposure.rs.

stillcore=/usr/bin/stillcore

# The collapser of huge pages drains every CPU's lists now and then.
hugepages=/sys/kernel/mm/transparent_hugepage/enabled
were=$(/bin/busybox sed 's/.*\[\(.*\)\].*/\1/' $hugepages)
echo never >$hugepages

study() {
    name=$1
    shift
    $stillcore study run exposure "$@" >$name.json 2>$name.log
    echo $? >$name.code
}

$stillcore internal state >before.json
# The controls are in every study.
exact=perf_sys,trace_event,membarrier_expedited,so_timestamp
case $1 in
    once)
        study first --stressors membarrier_expedited --duration 1s --out one --json
        ;;
    twice)
        study first --stressors $exact --duration 4s --out one --json
        study second --stressors $exact --duration 4s --out two --json
        study resumed --stressors $exact --duration 4s --out one --json
        study other --stressors $exact --duration 3s --out one --json
        ;;
esac
$stillcore internal state >after.json
echo $were >$hugepages
ls one >files
