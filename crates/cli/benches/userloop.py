#!/usr/bin/env python3
"""A busy loop in user space beside a SCHED_FIFO thread: it may hold up no interrupt, and no thread that goes before it.

    python3 crates/cli/benches/userloop.py PROGRAM [--cpu N] [--duration 5s] [--rows FILE]

Needs root. The loop is an ordinary task on the measured CPU and asks the kernel for nothing, so whatever delays a timer, its handler
or an IPI there is something else: a hypervisor, firmware, or an interrupt. Reported is the time that `trace explain` puts into the
loop's box in steps that wait for an interrupt, over all wake-ups, and the steal time that the kernel counted meanwhile.

Prints one JSON object a line, {"row": ...} or {"note": ...}, to the file of --rows or to standard output.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from endtoend import Rows

LOOP = "userloop"
# It ends by itself, should nobody end it.
SOURCE = "import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end:\n    for _ in range(10_000_000): pass\n"
INTERRUPTS = ("timer-late", "timer-handler", "wake-up", "ipi-in-flight")
WANTED = 100_000


RUNS = 5


def measured(program, cpu, duration, place):
    """The runs beside the loop, and the loop's number. Several short ones: every wake-up of each is looked at."""
    # The name of a process is that of the file it executes.
    python = os.path.join(place, LOOP)
    os.symlink(sys.executable, python)
    runs = [os.path.join(place, f"run-{number}") for number in range(RUNS)]
    loop = subprocess.Popen([python, "-c", SOURCE.format(seconds=300)], preexec_fn=lambda: os.sched_setaffinity(0, {cpu}))
    try:
        for run in runs:
            subprocess.run(
                [program, "measure", "wakeup", "--cpus", str(cpu), "--priority", "50", "--period", "200us", "--duration", duration,
                 "--trace", "--quiet", "--out", run, "--state", os.path.join(place, "state")],
                check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    finally:
        loop.kill()
        loop.wait()
    return runs, loop.pid


class Sums:
    """Over all wake-ups, ns."""

    def __init__(self):
        self.wakeups = self.all = self.charged = self.before = self.late = self.steal = 0

    def add(self, program, run, loop):
        words = [program, "trace", "explain", run, "--json", "--worst", "1000000"]
        answer = json.loads(subprocess.run(words, check=True, stdout=subprocess.PIPE).stdout)
        for wakeup in answer["wakeups"]:
            self.wakeups += 1
            self.all += wakeup["value_ns"]
            self.late = max(self.late, wakeup["value_ns"])
            for part in wakeup["parts"]:
                who = (part["taken"] or {}).get("who") or {}
                if who.get("pid") == loop and part["step"] in INTERRUPTS:
                    self.charged += part["ns"]
                elif who.get("pid") == loop and part["taken"]["kind"] == "task":
                    self.before += part["ns"]
        with open(os.path.join(run, "run.json")) as file:
            self.steal += sum(ns for window in json.load(file)["windows"] for ns in window["steal_ns"].values())


def main():
    parser = argparse.ArgumentParser(description="A busy loop in user space is charged with nothing that it cannot delay.")
    parser.add_argument("program")
    parser.add_argument("--cpu", type=int, default=1)
    parser.add_argument("--duration", default="5s", help="of each of five runs")
    parser.add_argument("--rows")
    args = parser.parse_args()
    rows, sums = Rows(args.rows), Sums()
    with tempfile.TemporaryDirectory(prefix="stillcore-userloop-") as place:
        runs, loop = measured(args.program, args.cpu, args.duration, place)
        for run in runs:
            sums.add(args.program, run, loop)
    n = sums.wakeups
    rows.note(f"the loop is an ordinary task on CPU {args.cpu}; the worst wake-up was {sums.late / 1e3:.1f} us late")
    rows.add("wake-ups taken apart", n, "count", n, limit=("at_least", WANTED))
    rows.add("charged to the loop in steps that wait for an interrupt", sums.charged / 1e6, "ms", n, limit=("at_most", 0.0))
    rows.add("charged to the loop as a task that went before", sums.before / 1e6, "ms", n, limit=("at_most", 0.0))
    rows.add("all latency", sums.all / 1e6, "ms", n)
    rows.add("steal time counted meanwhile", sums.steal / 1e6, "ms", n)


if __name__ == "__main__":
    main()
