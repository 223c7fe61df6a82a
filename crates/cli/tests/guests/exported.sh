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
/usr/bin/python3 -Es /usr/sbin/tuned --no-dbus >tuned.log 2>&1 &
tuned=$!
tries=0
while [ $tries -lt 180 ] && ! grep -q "profile '.*' applied" tuned.log; do
    /bin/busybox sleep 1
    tries=$((tries + 1))
done
audit theirs
/bin/busybox kill $tuned
wait $tuned
audit after
exit 0
