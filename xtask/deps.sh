#!/bin/sh
# Installs what the build, the tests and the release checks lack, by package where this is Debian and we are root,
# else says in one line what to install. Quick and silent when all is there. Usage: deps.sh build|test|release|middleware|examples|hosts|loader|packages
set -eu

want=${1:-test}
toolchain=$(sed -n 's/^channel *= *"\(.*\)"/\1/p' rust-toolchain.toml)
oldest=$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml)

# A program, and the package that holds it.
programs='cc:gcc git:git'
case $want in
test | release)
    programs="$programs qemu-system-x86_64:qemu-system-x86 qemu-system-aarch64:qemu-system-arm trace-cmd:trace-cmd
        cyclictest:rt-tests chromium:chromium chromedriver:chromium-driver strace:strace shellcheck:shellcheck
        zsh:zsh fish:fish"
    ;;
hosts)
    programs="$programs sshd:openssh-server ssh:openssh-client ip:iproute2 unshare:util-linux python3:python3
        podman:podman crun:crun busybox:busybox-static shellcheck:shellcheck
        cyclictest:rt-tests prometheus:prometheus"
    ;;
loader)
    programs="$programs qemu-system-x86_64:qemu-system-x86 grub-mkimage:grub-common mke2fs:e2fsprogs debugfs:e2fsprogs"
    ;;
packages)
    programs="$programs debootstrap:debootstrap lintian:lintian rpm:rpm unshare:util-linux shellcheck:shellcheck"
    ;;
middleware)
    programs="$programs cyclictest:rt-tests ddsperf:cyclonedds-tools idlc:cyclonedds-tools"
    ;;
examples)
    programs="$programs cyclictest:rt-tests jackd:jackd2"
    ;;
esac

# Python's virtual environments are a module, in a package of their own.
needs_venv=
case $want in
test | release)
    programs="$programs python3:python3"
    needs_venv=yes
    ;;
hosts) needs_venv=yes ;;
esac

missing=
for pair in $programs; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || missing="$missing ${pair##*:}"
done
[ -z "$needs_venv" ] || python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$missing python3-venv"
# The compiler's own headers and start files come in a package of their own.
[ -e /usr/include/stdio.h ] || missing="$missing libc6-dev"
# The allocator of static binaries is C; that of the other architecture needs a compiler and headers for it.
case $want:$(uname -m) in
test:x86_64 | release:x86_64)
    command -v aarch64-linux-gnu-gcc >/dev/null 2>&1 || missing="$missing gcc-aarch64-linux-gnu libc6-dev-arm64-cross"
    ;;
release:aarch64)
    command -v x86_64-linux-gnu-gcc >/dev/null 2>&1 || missing="$missing gcc-x86-64-linux-gnu libc6-dev-amd64-cross"
    ;;
esac
# What GRUB starts from; a machine that boots otherwise does not have it.
[ "$want" != loader ] || [ -e /usr/lib/grub/i386-pc/boot.img ] || missing="$missing grub-pc-bin"
[ "$want" != middleware ] || [ -e /usr/include/dds/dds.h ] || missing="$missing cyclonedds-dev"

if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        echo "installing packages:$missing"
        log=$(mktemp)
        # A server is needed as a program: nothing starts it for us. Debian asks this file (invoke-rc.d(8)).
        policy=/usr/sbin/policy-rc.d
        if [ "$want" = hosts ] && [ ! -e "$policy" ]; then
            printf '#!/bin/sh\nexit 101\n' >"$policy"
            chmod 755 "$policy"
            trap 'rm -f "$policy"' EXIT
        fi
        # shellcheck disable=SC2086 # a list of packages
        if ! { apt-get -q update && DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends $missing; } \
            >"$log" 2>&1 </dev/null; then
            tail -n 20 "$log" >&2
            rm -f "$log"
            echo "could not install packages:$missing" >&2
            exit 1
        fi
        rm -f "$log"
    else
        echo "please install:$missing (packages of Debian and Ubuntu)" >&2
        exit 1
    fi
fi

if ! command -v cargo >/dev/null 2>&1; then
    echo "please install Rust $toolchain with rustup" >&2
    exit 1
fi

machine=$(uname -m)
targets="$machine-unknown-linux-musl"
case $want in
test) targets='x86_64-unknown-linux-musl aarch64-unknown-linux-musl' ;;
# The wheels are linked against glibc.
release)
    targets='x86_64-unknown-linux-musl aarch64-unknown-linux-musl'
    targets="$targets x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu"
    ;;
esac

if command -v rustup >/dev/null 2>&1; then
    if ! rustup toolchain list | grep -q "^$toolchain"; then
        rustup toolchain install "$toolchain" --profile minimal --component rustfmt,clippy
    fi
    for target in $targets; do
        rustup target list --installed --toolchain "$toolchain" | grep -qx "$target" ||
            rustup target add "$target" --toolchain "$toolchain"
    done
    for part in rustfmt clippy; do
        rustup component list --installed --toolchain "$toolchain" | grep -q "^$part" ||
            rustup component add "$part" --toolchain "$toolchain"
    done
    if [ "$want" = release ] && ! rustup toolchain list | grep -q "^$oldest"; then
        rustup toolchain install "$oldest" --profile minimal ||
            echo "Rust $oldest could not be installed: the oldest supported compiler stays untested" >&2
    fi
else
    # A distribution's Rust: no toolchain file, so what is there must do.
    for target in $targets; do
        if [ ! -d "$(rustc --print sysroot)/lib/rustlib/$target" ]; then
            echo "please install the Rust target $target (rustup target add $target)" >&2
            exit 1
        fi
    done
fi

case $want in
release)
    cargo deny --version >/dev/null 2>&1 || cargo install cargo-deny --locked
    ;;
esac
