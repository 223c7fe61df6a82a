# The study `exposure` twice with the same stressors, and once more where the first one is. Runs under busybox sh as root in /root; leaves
# its evidence there for guest_exposure.rs.

stillcore=/usr/bin/stillcore

# The collapser of huge pages drains every CPU's lists now and then.
echo never >/sys/kernel/mm/transparent_hugepage/enabled

study() {
    name=$1
    shift
    $stillcore study run exposure "$@" >$name.json 2>$name.log
    echo $? >$name.code
}

$stillcore internal state >before.json
# The controls are in every study.
exact=perf_sys,trace_event,membarrier_expedited,so_timestamp
study first --stressors $exact --duration 4s --out one --json
study second --stressors $exact --duration 4s --out two --json
study resumed --stressors $exact --duration 4s --out one --json
study other --stressors $exact --duration 3s --out one --json
$stillcore internal state >after.json
ls one >files
