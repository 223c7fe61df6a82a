# One long run that measures, disturbs and records together; what each of its processes takes is
# noted meanwhile. Runs under any POSIX shell as root. Arguments: the program, a directory, the
# measured CPU, seconds, seconds between two notes, the stressors, their operations per second (0:
# as fast as they go, started by the measurement; else by a `disturb` of its own, on the measured
# CPU too), further words of the measuring command.
# A line of `notes`: seconds of the boot, process, resident KiB, private KiB, threads, descriptors,
# its part in the run.

program=$1
cd "$2" || exit 1
cpu=$3
seconds=$4
every=$5
stressors=$6
rate=$7
shift 7

# Processes of this run are known by their executable.
own=$PWD/stillcore
cp "$program" "$own"

# The kind of a process by the words of its command line.
part() {
    case "$1 $2" in
        "internal stress") echo "stressor $3" ;;
        "internal "*) echo "$2" ;;
        "disturb "*) echo disturb ;;
        *) echo run ;;
    esac
}

note() {
    read -r now rest </proc/uptime
    for process in /proc/[0-9]*; do
        [ "$(readlink "$process/exe" 2>/dev/null)" = "$own" ] || continue
        words=$(tr '\0' '\n' <"$process/cmdline" 2>/dev/null | sed -n '2,4p')
        took=$(awk '/^VmRSS/ { r = $2 } /^VmData/ { d = $2 } /^Threads/ { t = $2 } END { print r, d, t }' \
            "$process/status" 2>/dev/null)
        set -- "$process"/fd/*
        # Words of a command line are single arguments, and none of the first holds a blank.
        # shellcheck disable=SC2086
        echo "$now ${process#/proc/} $took $# $(part $words)" >>notes
    done
}

"$own" internal state >before.json
disturb=
if [ "$rate" -gt 0 ]; then
    # Names are single words.
    # shellcheck disable=SC2046
    "$own" disturb $(echo "$stressors" | tr , ' ') --rate "$rate" --colocated --cpus "$cpu" --measured "$cpu" \
        --duration "${seconds}s" --state disturb-state --json >disturb.json 2>disturb.log &
    disturb=$!
else
    set -- --disturb "$stressors" "$@"
fi
"$own" measure wakeup --cpus "$cpu" --duration "${seconds}s" --out run --state state --json --quiet \
    "$@" >out.json 2>log &
run=$!
while kill -0 $run 2>/dev/null; do
    sleep "$every"
    note
done
wait $run
echo $? >code
if [ -n "$disturb" ]; then
    wait "$disturb"
    echo $? >disturb.code
fi
"$own" internal state >after.json
rm "$own"
