# A planted double periodicity, and unplanted periods. Runs under busybox sh as root in its own
# directory; leaves its evidence there for time.rs. Facts only: nothing is judged here. Arguments:
# period of the small interference in ms, of the large one, and for how long to measure.

small=$1
large=$2
duration=$3

# A trace names a task after its file.
cp /usr/bin/stillcore pump
uname -r >release

# Two tasks above the measured one, released together. A crowded host takes the emulated CPU away
# for a tenth of a second now and then: what is planted takes longer than most of that.
./pump measure taskset --tasks $small:$((small / 20)):90,$large:$((large / 50)):95 --cpus 2 --duration 900s --out pump-run --quiet >/dev/null 2>pump.log &
pump=$!
tries=0
while [ $tries -lt 600 ] && ! ls pump-run/samples/*.parquet >/dev/null 2>&1; do
    sleep 0.1
    tries=$((tries + 1))
done
sleep 1
/usr/bin/stillcore measure wakeup --cpus 2 --priority 50 --period 10ms --duration $duration --trace --out run --json --quiet \
    >run.json 2>run.log
echo $? >run.code
kill -INT $pump
wait $pump
rm -r pump pump-run

# A busy loop on a CPU of its own, not disturbed on purpose.
/usr/bin/stillcore measure spin --cpus 3 --duration 20s --trace --out still --json --quiet >still.json 2>still.log
echo $? >still.code
exit 0
