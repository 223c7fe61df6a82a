#!/bin/sh
# The C compiler for the allocator of static binaries: musl's own where there is one, else the machine's, whose headers agree with
# musl in all that the allocator uses. Called by its build script, which sets TARGET.
#
# The flags in .cargo/config.toml keep it so: gnu11 and no _FORTIFY_SOURCE, else glibc's headers name functions that musl lacks
# (__isoc23_strtol, __memcpy_chk). MI_DEFAULT_*: memory becomes writable piece by piece in steps of 64 MiB of addresses. The default
# of 1 GiB at once exceeds RLIMIT_DATA of disturbances, and RLIMIT_MEMLOCK when the probe locks its memory.
set -eu
arch=${TARGET%%-*}
for prefix in "$arch-linux-musl" "$arch-linux-gnu"; do
    if command -v "$prefix-gcc" >/dev/null 2>&1; then exec "$prefix-gcc" "$@"; fi
done
if [ "$(uname -m)" = "$arch" ]; then exec cc "$@"; fi
echo "no C compiler for $TARGET: install gcc-$(echo "$arch" | tr _ -)-linux-gnu (Debian and Ubuntu), or set CC_$(echo "$TARGET" | tr - _)" >&2
exit 1
