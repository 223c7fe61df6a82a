# Before the program goes, it undoes its changes: nothing else can.
if [ -d /run/systemd/system ]; then
    systemctl disable --now stillcore-hold.service stillcore-isolate.service 2>/dev/null || true
fi
stillcore_failed() {
    echo "stillcore: $1 did not undo everything; install stillcore again and repeat it" >&2
}
if [ -e /etc/systemd/system/stillcore-hold.service ]; then
    /usr/bin/stillcore isolate hold --remove || stillcore_failed "isolate hold --remove"
fi
if [ -e /etc/stillcore/boot.json ] || [ -e /etc/systemd/system/stillcore-isolate.service ] ||
    [ -e /etc/sysctl.d/90-stillcore.conf ]; then
    /usr/bin/stillcore isolate persist --remove || stillcore_failed "isolate persist --remove"
fi
# Exit 2: somebody else has changed a value meanwhile, which stays.
if [ -e /var/lib/stillcore ] || [ -e /etc/stillcore/config.toml ]; then
    /usr/bin/stillcore isolate undo || [ $? = 2 ] || stillcore_failed "isolate undo"
fi
