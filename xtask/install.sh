#!/bin/sh
# Installs, upgrades and removes the packages of two directories, and compares what is there before
# and after: the Debian package in a bootstrapped Debian 12, the RPM in a tree of its own. Run by
# `cargo xtask test-all --part packages`.
# Usage: install.sh DIR DIR_OF_A_LATER_VERSION SCRATCH_DIR
set -eu

one=$1 later=$2 scratch=$3
here=$(cd "$(dirname "$0")" && pwd)
step() { echo "--- $1"; }
fail() { echo "install.sh: $1" >&2 && exit 1; }
[ "$(id -u)" = 0 ] || fail 'root is needed, to change the root directory'

# The first file of a directory with this ending.
file() { find "$1" -maxdepth 1 -name "*$2" | sort | head -n 1; }
[ "$(uname -m)" = x86_64 ] && deb=_amd64.deb rpm=.x86_64.rpm || deb=_arm64.deb rpm=.aarch64.rpm

step 'scripts'
for script in undo reload forget; do
    shellcheck --shell=sh "$here/../deploy/packages/$script.sh"
done

step 'lintian'
timeout 300 lintian --allow-root --fail-on error --suppress-tags bad-distribution-in-changes-file "$(file "$one" "$deb")"

step 'Debian 12'
base=$scratch/debian12
if [ ! -e "$base/etc/debian_version" ]; then
    mirror=$(apt-get indextargets --format '$(SITE)' 'Codename: bookworm' 'Created-By: Packages' | sort -u | head -n 1)
    rm -rf "$base" "$base.new"
    timeout 900 debootstrap --variant=minbase bookworm "$base.new" ${mirror:+"$mirror"} >"$scratch/debootstrap.log" ||
        fail "debootstrap failed: $scratch/debootstrap.log"
    mv "$base.new" "$base"
fi
root=$scratch/debian-root
rm -rf "$root"
cp -a "$base" "$root"
cp "$(file "$one" "$deb")" "$root/one.deb"
cp "$(file "$later" "$deb")" "$root/later.deb"
# A namespace of its own: mounts in it end with it.
timeout 300 unshare --mount --pid --fork --kill-child sh -eu -c '
root=$1
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/tmp"
chroot "$root" sh -eu -c "
# What dpkg itself writes down about every package that comes and goes is not of this one.
list() {
    find / -xdev ! -path \"/proc/*\" ! -path \"/tmp/*\" \\( -type d -printf \"%p %m %U\\n\" -o -printf \"%p %m %U %s\\n\" \\) |
        grep -Ev \"^/(var/lib/dpkg/(status|status-old|available|lock|triggers|info|diversions)|var/log|var/cache)\" | sort
}
export DEBIAN_FRONTEND=noninteractive
list >/tmp/before
dpkg --unpack /one.deb && dpkg --configure stillcore
test \"\$(find /etc/systemd -name \"*stillcore*\")\" = \"\"
stillcore --version
stillcore man measure >/tmp/page && test -s /tmp/page
dpkg --verify stillcore
echo \"cpus = \\\"0\\\"\" >>/etc/stillcore/config.toml
stillcore isolate status
mkdir -p /var/lib/stillcore/journal
dpkg --force-confold -i /later.deb
test \"\$(dpkg-query -W -f \"\\\${Version}\" stillcore)\" = 9.9.9
grep -q \"^cpus = \" /etc/stillcore/config.toml
test -e /var/lib/stillcore/journal
echo \"speed = 1\" >>/etc/stillcore/config.toml
! stillcore isolate status 2>/tmp/error
grep -q \"/etc/stillcore/config.toml: line\" /tmp/error
sed -i \"/^speed/d\" /etc/stillcore/config.toml
dpkg --remove stillcore
test ! -e /usr/bin/stillcore
test -e /etc/stillcore/config.toml
dpkg --purge stillcore
list >/tmp/after
diff /tmp/before /tmp/after
"' sh "$root" || fail 'the Debian package left something, or failed'
rm -rf "$root"

step 'RPM'
rpm -qlp "$(file "$one" "$rpm")"
tree=$scratch/rpm-root
rm -rf "$tree"
mkdir -p "$tree/bin" "$tree/etc"
rpm --root "$tree" --initdb
list() {
    (cd "$tree" && find . ! -path './proc/*' ! -path './usr/lib/sysimage/*' ! -path './var/lib/rpm*' | sort)
}
# Its scripts take a shell and rm, which the tree has from this machine.
for program in sh rm; do
    cp -L "$(command -v "$program")" "$tree/bin/$program"
    for library in $(ldd "$tree/bin/$program" | grep -o '/[^ ]*'); do
        mkdir -p "$tree$(dirname "$library")"
        cp -L "$library" "$tree$library"
    done
done
# Directories that every distribution has.
mkdir -p "$tree/usr/bin" "$tree/usr/lib/systemd/system" "$tree/usr/share/doc" "$tree/usr/share/licenses" "$tree/usr/share/man/man1" \
    "$tree/usr/share/bash-completion/completions" "$tree/usr/share/zsh/site-functions" "$tree/usr/share/fish/vendor_completions.d" \
    "$tree/var/lib" "$tree/var/tmp" "$tree/proc"
list >"$scratch/before"
# Where no distribution is, /bin/sh belongs to no package: --nodeps.
timeout 300 unshare --mount --pid --fork --kill-child sh -eu -c '
tree=$1
mount -t proc proc "$tree/proc"
rpm --root "$tree" --nodeps -i "$2"
test -x "$tree/usr/bin/stillcore"
rpm --root "$tree" -V --nodeps stillcore
mkdir -p "$tree/var/lib/stillcore/journal"
rpm --root "$tree" --nodeps -U "$3"
test "$(rpm --root "$tree" -q --qf "%{VERSION}" stillcore)" = 9.9.9
test -e "$tree/var/lib/stillcore/journal"
rpm --root "$tree" --nodeps -e stillcore
' sh "$tree" "$(file "$one" "$rpm")" "$(file "$later" "$rpm")" || fail 'the RPM failed'
list >"$scratch/after"
diff "$scratch/before" "$scratch/after" || fail 'the RPM left something'
rm -rf "$tree"
step 'nothing left'
