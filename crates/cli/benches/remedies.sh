# One story of docs/remedies.md, run in one boot of a lab guest: measure, apply what stillcore
# proposes against what was seen, measure again. Runs under busybox sh as root in /root. Arguments:
# what the proposal must be against, then the arguments of `assess`.

against=$1
shift
PATH=/usr/bin:/bin
stillcore=/usr/bin/stillcore
assess="$stillcore assess --cpus 2 --trace on --priority 80"

# 2 is a finding about the machine.
may_find() {
    "$@"
    code=$?
    [ $code -eq 0 ] || [ $code -eq 2 ]
}

# The findings of the audit are applied first, so that the two measurements differ only in the
# proposal.
may_find $stillcore isolate apply --cpus 2 >isolated.txt 2>&1 || exit 3

may_find $assess "$@" --out before --json >/dev/null 2>before.log || exit 4
$stillcore trace explain before --worst 1 >before.txt || exit 4
$stillcore trace explain before --json >before.json || exit 4

# The text on the first mechanism against it, and the command in that, as a user at the machine
# would type it.
/bin/busybox awk -v against="$against" '
    /^  [a-z]/ || /^$/ { if (matched) exit; block = "" }
    { block = block $0 "\n" }
    /^      against: / && index($0, against) { matched = 1 }
    END { if (matched) printf "%s", block }
' before.txt >proposed.txt
command=$(/bin/busybox sed -n 's/^ *or: //p' proposed.txt)
[ -n "$command" ] || exit 5
may_find eval "$command" >applied.txt 2>&1 || exit 6

may_find $assess "$@" --out after --json >/dev/null 2>after.log || exit 4
$stillcore trace explain after --worst 1 >after.txt || exit 4
$stillcore trace explain after --json >after.json || exit 4
$stillcore isolate undo >undone.txt 2>&1 || exit 7
exit 0
