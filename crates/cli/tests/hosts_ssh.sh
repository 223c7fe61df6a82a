#!/bin/sh
# Two machines that are reached by ssh, each in a network namespace with a server of its own; the second loses its power in the middle of a
# cell. Run in namespaces of its own (unshare --net --mount --pid), so that all of it ends with this script.
# Usage: hosts_ssh.sh WORK STILLCORE PYTHON; leaves what the test looks at in WORK.
set -eu
work=$1 stillcore=$2 python=$3
sshd=$(command -v sshd || echo /usr/sbin/sshd)

mount -t tmpfs tmpfs /run
# bash reads this for every command by ssh, and what root of this machine has there may take its
# time.
rc=$(getent passwd root | cut -d : -f 6)/.bashrc
[ ! -e "$rc" ] || mount --bind /dev/null "$rc"
mkdir -p /run/sshd /run/netns "$work/home"
export HOME="$work/home" ANSIBLE_LOCAL_TEMP="$work/home/tmp"
ip link set lo up

ssh-keygen -q -t ed25519 -N '' -f "$work/key"
cp "$work/key.pub" "$work/authorized"
: >"$work/known_hosts"
: >"$work/inventory.ini"

# Network addresses are those of documentation (RFC 5737).
for n in 1 2; do
    ip netns add "host$n"
    ip link add "to$n" type veth peer name eth0 netns "host$n"
    ip address add "192.0.2.$((n * 4 + 1))/30" dev "to$n"
    ip link set "to$n" up
    ip -n "host$n" link set lo up
    ip -n "host$n" address add "192.0.2.$((n * 4 + 2))/30" dev eth0
    ip -n "host$n" link set eth0 up
    ssh-keygen -q -t ed25519 -N '' -f "$work/host$n.key"
    echo "192.0.2.$((n * 4 + 2)) $(cut -d ' ' -f 1,2 "$work/host$n.key.pub")" >>"$work/known_hosts"
    cat >"$work/host$n.sshd" <<CONFIG
ListenAddress 192.0.2.$((n * 4 + 2))
HostKey $work/host$n.key
AuthorizedKeysFile $work/authorized
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
Subsystem sftp internal-sftp
PidFile $work/host$n.pid
CONFIG
    cat >>"$work/inventory.ini" <<HOST
host$n ansible_host=192.0.2.$((n * 4 + 2)) stillcore_dir=$work/host$n ansible_remote_tmp=$work/ansible$n ansible_async_dir=$work/async$n
HOST
done
cat >>"$work/inventory.ini" <<ALL
[all:vars]
ansible_user=root
ansible_python_interpreter=$python
ansible_ssh_private_key_file=$work/key
ansible_ssh_common_args=-F /dev/null -o UserKnownHostsFile=$work/known_hosts -o StrictHostKeyChecking=yes
stillcore_poll_s=1
ALL

start() {
    ip netns exec "host$1" "$sshd" -f "$work/host$1.sshd" -D -E "$work/host$1.log" &
    tries=0
    until (: | ip netns exec "host$1" "$python" -c "import socket; socket.create_connection(('192.0.2.$(($1 * 4 + 2))', 22), 1)") 2>/dev/null; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || { echo "the server of host$1 does not answer" >&2; exit 1; }
        sleep 0.1
    done
}
start 1
start 2

study() {
    "$stillcore" study run "$work/shares.toml" --hosts "$work/inventory.ini" --state "$work/state" "$@"
}

# The second machine is in the middle of a cell, and has one behind it.
study --out "$work/fleet" >"$work/first.out" 2>"$work/first.err" &
first=$!
stored() { find "$work/host2/out/cells" -name '*.json' 2>/dev/null | wc -l; }
running() { find "$work/host2/out/runs" -name undo-due 2>/dev/null | wc -l; }
tries=0
until [ "$(stored)" -ge 1 ] && [ "$(running)" -ge 1 ]; do
    tries=$((tries + 1))
    if [ "$tries" -ge 6000 ] || ! kill -0 "$first" 2>/dev/null; then
        cat "$work/first.err" "$work/fleet/hosts/ansible.log" >&2
        exit 1
    fi
    sleep 0.05
done
ip link set to2 down
# Some end together with others.
for pid in $(ip netns pids host2); do kill -9 "$pid" 2>/dev/null || true; done
stored >"$work/stored-by-2"
tries=0
while kill -0 "$first" 2>/dev/null; do
    tries=$((tries + 1))
    [ "$tries" -lt 3000 ] || { cat "$work/first.err" "$work/fleet/hosts/ansible.log" >&2; exit 1; }
    sleep 0.1
done
wait "$first"
cp "$work/fleet/study.json" "$work/first.json"
ls "$work/fleet/cells" >"$work/first.cells"

# It stays down: the other machine runs its cells.
cp -a "$work/fleet" "$work/without"
study --out "$work/without" --resume >"$work/without.out" 2>"$work/without.err"

# It comes back: its results are collected, its changes undone, and the rest is run.
ip link set to2 up
start 2
study --out "$work/fleet" --resume >"$work/second.out" 2>"$work/second.err"
