#!/bin/sh
# Interprets the tests of memory that two sides share under Miri, each by itself, and writes how
# many ended well, and how many could not be interpreted: Miri has no pipes with these flags, no
# processes and none of the kernel's rarer calls. Fails where one breaks a rule of Rust's memory.
# Usage: miri.sh ROWS_FILE
set -eu

rows=$1
toolchain=nightly
here=$(cd "$(dirname "$0")/.." && pwd)
cd "$here"
if ! cargo "+$toolchain" miri --version >/dev/null 2>&1; then
    echo "please install Miri: rustup toolchain install $toolchain --component miri,rust-src" >&2
    exit 1
fi
log=$(mktemp)
trap 'rm -f "$log" "$log.tests"' EXIT
row() {
    printf '{"row":{"what":"%s","value":%s,"unit":"tests","n":%s,"low":null,"high":null,"peer":null,"ratio":null,"budget":null,"verdict":"none"}}\n' \
        "$1" "$2" "$3" >>"$rows"
}
# Clocks and files of this machine, not Miri's own.
export MIRIFLAGS="-Zmiri-disable-isolation"
failed=
for package in stillcore-sys stillcore-measure; do
    cargo "+$toolchain" miri test --locked --package "$package" --lib -- --list 2>/dev/null |
        sed -n 's/: test$//p' >"$log.tests"
    all=0 good=0 unknown=0 slow=0
    while read -r name; do
        case $name in
        # The model checker of lock-free code switches stacks, which Miri cannot follow.
        *found_out | *every_order*) continue ;;
        esac
        all=$((all + 1)) status=0
        timeout 60 cargo "+$toolchain" miri test --locked --package "$package" --lib -- --exact "$name" \
            >"$log" 2>&1 </dev/null || status=$?
        if [ "$status" = 0 ]; then
            good=$((good + 1))
        elif [ "$status" = 124 ]; then
            slow=$((slow + 1))
        elif grep -q 'unsupported operation' "$log"; then
            unknown=$((unknown + 1))
        else
            failed="$failed $name"
            tail -n 40 "$log"
        fi
    done <"$log.tests"
    row "$package: no undefined behaviour" "$good" "$all"
    row "$package: a call that Miri does not know" "$unknown" "$all"
    row "$package: more than 1 min" "$slow" "$all"
done
[ -z "$failed" ] || { echo "failed:$failed" >&2 && exit 1; }
