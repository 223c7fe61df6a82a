# The commands of a part of docs/tutorial.md, one after another. Runs under busybox sh as root in
# its own directory; leaves what each printed and how it ended for tutorial.rs. Facts only.

PATH=/usr/bin:/bin:/sbin:/usr/sbin
number=0
while read -r command; do
    number=$((number + 1))
    /bin/busybox sh -c "$command" >out-$number 2>err-$number </dev/null
    echo $? >status-$number
done <commands
exit 0
