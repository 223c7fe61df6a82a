# What a thread elsewhere did to a measured CPU, provoked one by one and recorded. Runs under
# busybox sh as root in its own directory; leaves its evidence there for truth.rs. Facts only.
# Arguments: how often each cause, whether to add kernel probes (1).

cat /sys/devices/system/cpu/nohz_full >nohz_full 2>/dev/null
/usr/bin/stillcore internal provoke "$PWD/truth" 2 1 $1 $2
