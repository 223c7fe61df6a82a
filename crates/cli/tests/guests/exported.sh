# A profile that was exported, as tuned itself applies it: what the audit says of it and of the
# isolation that it was made from. Runs under busybox sh as root in its own directory on a kernel
# that has isolated nothing at boot; leaves its evidence for exported.rs. Facts only.

stillcore=/usr/bin/stillcore
export="$stillcore isolate export tuned --cpus 2,3"

audit() {
    $stillcore audit --cpus 2,3 --json >$1.json 2>$1.err
}

$export --json >export.json 2>export.err
$export --out written >written.log 2>&1
audit before
$stillcore isolate apply --cpus 2,3 --placement affinity >apply.log 2>&1
audit ours
$stillcore isolate undo >undo.log 2>&1
audit undone

/bin/busybox mkdir -p /etc/tuned/profiles /etc/tuned/stillcore /run/tuned /var/log/tuned
/bin/busybox cp written/stillcore/tuned.conf /etc/tuned/stillcore/
# From 2.23 on they are below it.
/bin/busybox cp -r /etc/tuned/stillcore /etc/tuned/profiles/
echo stillcore >/etc/tuned/active_profile
echo manual >/etc/tuned/profile_mode

# Until it has applied the profile that is active.
start() {
    /usr/bin/python3 -Es /usr/sbin/tuned --no-dbus >$1.log 2>&1 &
    tuned=$!
    tries=0
    while [ $tries -lt 180 ] && ! grep -q "profile '.*' applied" $1.log; do
        /bin/busybox sleep 1
        tries=$((tries + 1))
    done
}

stop() {
    /bin/busybox kill $tuned
    wait $tuned
}

start tuned
audit theirs
stop
audit after

# What is said beforehand of profiles that are tuned's own, and what their files then hold.
values() {
    /usr/bin/python3 -c '
import json, sys
files = json.load(open(sys.argv[1]))["files"]
json.dump({path: open(path).read().strip() for path in files}, open(sys.argv[2], "w"))
' $1 $2 2>>values.err
}

for profile in realtime cpu-partitioning network-latency; do
    for file in /etc/tuned/$profile-variables.conf /etc/tuned/profiles/$profile-variables.conf; do
        [ $profile = network-latency ] || echo isolated_cores=2,3 >$file
    done
    $stillcore isolate plan --from tuned:$profile --cpus 2,3 --json >$profile.json 2>$profile.err
    values $profile.json $profile.before.json
    echo $profile >/etc/tuned/active_profile
    start $profile
    values $profile.json $profile.is.json
    /bin/busybox cp /etc/tuned/bootcmdline $profile.line
    stop
done
exit 0
