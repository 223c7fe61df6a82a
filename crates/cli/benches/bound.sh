# Runs under different loads, each with its trace. Runs as root under sh or busybox sh in a folder
# of its own, where it leaves of each run N.json, its analysis, for bound.rs. Arguments: the
# program, the measured CPU, how many runs.
stillcore=$1
cpu=$2
number=0
while [ $number -lt $3 ]; do
    number=$((number + 1))
    case $((number % 6)) in
        0) load="--disturb timer" ;;
        1) load= ;;
        2) load="--disturb u_fork" ;;
        3) load="--disturb sock" ;;
        4) load="--disturb membarrier_expedited" ;;
        5) load="--disturb tlb_span" ;;
    esac
    rm -rf run
    $stillcore measure wakeup --cpus $cpu --period 1ms --duration 1500ms --trace=auto $load --state state --out run --quiet >/dev/null 2>$number.log
    cp run/analysis.json $number.json
done
rm -rf run state
exit 0
