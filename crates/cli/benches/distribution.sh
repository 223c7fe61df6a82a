# Runs of both tools in turns, each with its results in a file of its own. Runs under busybox sh as
# root in /root of a lab guest. Arguments: pairs of runs, seconds of a run.

pairs=$1
seconds=$2
loops=$((seconds * 1000))
mkdir ours theirs

ours() {
    /usr/bin/stillcore measure wakeup --cpus 2 --priority 80 --period 1ms --duration ${seconds}s --out run --quiet --json \
        >ours/$1.json 2>>ours/log || exit 3
    rm -r run
}

theirs() {
    /usr/bin/cyclictest -m -q --default-system -p80 -t1 -a2 -i1000 -l$loops -h50000 --mainaffinity=0 >theirs/$1.txt || exit 4
}

pair=0
while [ $pair -lt $pairs ]; do
    # The order changes, so that neither always follows the other.
    if [ $((pair % 2)) -eq 0 ]; then
        ours $pair
        theirs $pair
    else
        theirs $pair
        ours $pair
    fi
    pair=$((pair + 1))
done
