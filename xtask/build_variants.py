#!/usr/bin/env python3
"""The size of the static program and the time of its build, for each setting of the release build.

    python3 xtask/build_variants.py WORK [--rows FILE] [--only WORD]

Every variant is built from nothing in WORK, with all CPUs. Crates are downloaded before. Wall time
depends on the load of this machine; CPU time is that of cargo and of its children. Prints one JSON
object a line, {"row": ...}, to the file of --rows or to standard output.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import time

# Name, profile, settings of cargo, flags of the compiler that replace those of .cargo/config.toml
# (None: keep them).
VARIANTS = [
    ("release, as shipped", "release", [], None),
    ("quick, of `make assess`", "quick", [], None),
    ("release, at level 3", "release", ["profile.release.opt-level=3"], None),
    ("release, 16 pieces a crate", "release", ["profile.release.codegen-units=16"], None),
    ("release, 16 pieces a crate, optimised together once more", "release",
     ["profile.release.codegen-units=16", "profile.release.lto=false"], None),
    ("release, relocations in the long form and equal functions kept", "release", [], "-Cdebuginfo=0"),
]
BYTES = 20_000_000
QUICK_S = 180


def row(what, value, unit, limit=None):
    verdict = "none" if limit is None else "met" if value <= limit else "missed"
    budget = {"of": "value", "limit": {"at_most": limit}} if limit is not None else None
    return {"row": {"what": what, "value": value, "unit": unit, "n": None, "low": None, "high": None, "peer": None, "ratio": None,
                    "budget": budget, "verdict": verdict}}


def build(work, profile, settings, flags):
    """Bytes of the program, wall time and CPU time of its build, s."""
    target = f"{platform.machine()}-unknown-linux-musl"
    folder = os.path.join(work, "variant")
    shutil.rmtree(folder, ignore_errors=True)
    command = ["cargo", "build", "--quiet", "--locked", "--package", "stillcore", "--target", target, "--profile", profile]
    for setting in settings:
        command += ["--config", setting]
    environment = {**os.environ, "CARGO_TARGET_DIR": folder}
    if flags is not None:
        environment["RUSTFLAGS"] = flags
    began, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True)
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    size = os.path.getsize(os.path.join(folder, target, profile, "stillcore"))
    shutil.rmtree(folder)
    return size, wall, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work")
    parser.add_argument("--rows", help="file to append to")
    parser.add_argument("--only", default="", help="variants with this in their name")
    args = parser.parse_args()
    out = open(args.rows, "a") if args.rows else sys.stdout
    subprocess.run(["cargo", "fetch", "--quiet", "--locked"], check=True)
    for name, profile, settings, flags in VARIANTS:
        if args.only not in name:
            continue
        size, wall, cpu = build(args.work, profile, settings, flags)
        shipped, quick = name.startswith("release, as shipped"), profile == "quick"
        print(json.dumps(row(f"{name}: size", size, "B", BYTES if shipped else None)), file=out)
        print(json.dumps(row(f"{name}: wall time", round(wall, 1), "s", QUICK_S if quick else None)), file=out)
        print(json.dumps(row(f"{name}: CPU time", round(cpu, 1), "s")), file=out, flush=True)


if __name__ == "__main__":
    main()
