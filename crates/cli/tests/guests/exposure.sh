# The study `exposure` twice with the same stressors, and again where the first one is. Runs under
# busybox sh as root in its own directory; leaves its evidence there for exposure.rs.
# A study whose controls do not hold says so and ends with 2: on a crowded host an emulated CPU may
# stand still for longer than a control runs. Such a study is done again, twice at most: where the
# observer is blind, it is so each time.

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

# A study NAME of its own in DIRECTORY.
fresh() {
    name=$1
    directory=$2
    shift 2
    for time in 1 2 3; do
        rm -rf $directory
        study $name "$@" --out $directory --json
        [ "$(cat $name.code)" = 2 ] || break
        cat $name.json >>$name.void
    done
}

$stillcore internal state >before.json
# The controls are in every study.
exact=perf_sys,trace_event,membarrier_expedited,so_timestamp
fresh first one --stressors $exact --duration 4s
fresh second two --stressors $exact --duration 4s
study resumed --stressors $exact --duration 4s --out one --json
study other --stressors $exact --duration 3s --out one --json
$stillcore internal state >after.json
echo $were >$hugepages
ls one >files
