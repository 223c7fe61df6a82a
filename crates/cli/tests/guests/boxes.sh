# Delays of a thread that sleeps and wakes, planted one by one with their times, and recorded. Runs
# under busybox sh as root in its own directory; leaves its evidence there for boxes.rs. Facts only.
# Arguments: how often each, and how it is recorded (0: usual events, 1: stacks, 2: a probed function).

/usr/bin/busybox ifconfig lo up
/usr/bin/stillcore internal plant "$PWD/truth" 2 1 $1 $2
