# One long run that measures, disturbs and records together; what each of its processes takes is
# noted meanwhile. Runs under any POSIX shell as root. Arguments: the program, a directory, the
# measured CPU, seconds, seconds between two notes, the stressors, their operations per second (0:
# as fast as they go, started by the measurement; else by a `disturb` of its own, on the measured
# CPU too), further words of the measuring command.

here=$(cd "$(dirname "$0")" && pwd)
program=$1
cd "$2" || exit 1
cpu=$3
seconds=$4
every=$5
stressors=$6
rate=$7
shift 7

# shellcheck source-path=SCRIPTDIR source=notes.sh
. "$here/notes.sh"
cp "$program" "$own"

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
