# What the processes of the program take, noted during a long run: sourced by the scripts of such
# runs, whose copy of the program is `own`, by which its processes are known. A line of `notes`:
# seconds of the boot, process, resident KiB, private KiB, threads, descriptors, its part in the
# run.

own=$PWD/stillcore

# The kind of a process by the words of its command line.
part() {
    case "$1 $2" in
        "internal stress") echo "stressor $3" ;;
        "internal "*) echo "$2" ;;
        "disturb "*) echo disturb ;;
        "monitor start") echo monitor ;;
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
