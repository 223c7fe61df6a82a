# Loads one after another on CPUs 0 and 1, and what reaches CPU 2 meanwhile, which wakes four times a second and is idle otherwise. Runs under
# busybox sh as root in /root. Arguments: NAME:SUITE:SECONDS of each.

PATH=/usr/bin:/bin
stillcore=/usr/bin/stillcore

for look in "$@"; do
    IFS=: read -r name suite seconds <<END
$look
END
    # Setting up takes its time under emulation, the load and the measurement each: the load is
    # given some, and lasts until it gets SIGTERM. Each record says from when to when it was there.
    $stillcore disturb --suite "$suite" --dangerous --cpus 0,1 --measured 2,3 --duration 240s --json >$name.load 2>$name.err &
    load=$!
    /bin/busybox sleep 15
    $stillcore measure wakeup --cpus 2 --period 250ms --warm-up 1 --priority 50 --duration "${seconds}s" --trace --out "$name" >/dev/null 2>$name.log
    kill -TERM $load
    wait $load
    # A load may end the measurement, which then says so in run.json.
    [ -e "$name/analysis.json" ] || exit 4
    rm -f "$name/trace.dat"
done
exit 0
