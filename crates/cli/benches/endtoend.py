#!/usr/bin/env python3
"""The shipped program from a file to its answer: `sched analyze`, `trace explain`, `report`, `summary`.

    python3 crates/cli/benches/endtoend.py PROGRAM [--before PROGRAM] [--run DIR] [--rounds N] [--sets N] [--rows FILE]

Times are CPU time of the process, user and system, with all its threads; the value is the least of the rounds, in which PROGRAM, the
program of --before and trace-cmd take turns. Memory is VmHWM, looked up while the process runs. SchedCAT's rates are recorded ones,
of another day on a machine of the same kind: process CPU time of one thread with the sets already in memory.

Without --run it records a run by `assess` of CPU 1, which needs root and the package trace-cmd; without both, those rows say so.
Prints one JSON object a line, {"row": ...} or {"note": ...}, to the file of --rows or to standard output.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

# SchedCAT at 86211bc, sets per second: what was measured, and how.
PLAIN = ["--n", "40", "--utilization", "0.8", "--periods", "uniform:10ms:100ms:1us", "--jitter", "104us"]
LOCKS = ["--n", "10", "--cores", "20", "--per-core", "--utilization", "0.4", "--periods", "uniform:10ms:100ms:1us",
         "--resources", "1", "--section", "20us:20us"]
CASES = [
    # name, generator, share of the sets, options, peer, its rate
    ("fp-rta, 40 tasks", PLAIN, 1.0, ["--test", "fp-rta"], "SchedCAT, recorded: Python, objects made before", 1463),
    ("edf-qpa, 40 tasks", PLAIN, 1.0, ["--test", "edf-qpa"], "SchedCAT, recorded: native, with conversion", 10937),
    ("fifo-np, 20 cores of 10 tasks", LOCKS, 0.05, ["--locks", "fifo-np"], "SchedCAT, recorded: mixed-integer program, GLPK", 1.28),
    ("phase-fair, 20 cores of 10 tasks", LOCKS, 0.05, ["--locks", "phase-fair"], "SchedCAT, recorded: fixpoint, schedulable", 387),
]
PER_CORE_S = 100_000
# Of a default `assess` run, with both buffers and stacks; scheduler events alone have a row of
# `bench trace`.
EXPLAIN_EVENTS_S = 5e6
EXPLAIN_MB = 64
REPORT_S = 1.0


class Used:
    """CPU seconds and peak megabytes of a process that has ended."""

    def __init__(self, words, out=None, codes=(0, 2)):
        with open(out or os.devnull, "wb") as to:
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=to, stderr=subprocess.PIPE)
        self.peak_mb = 0.0
        while True:
            self.peak_mb = max(self.peak_mb, peak_mb(child.pid))
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            time.sleep(0.002)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode not in codes:
            sys.exit(f"endtoend: {' '.join(map(str, words))}: exit {child.returncode}: {child.stderr.read().decode()[:500]}")
        child.stderr.close()
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.system_s = usage.ru_stime


def peak_mb(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return 0.0


class Rows:
    def __init__(self, path):
        self.out = open(path, "a") if path else sys.stdout

    def note(self, text):
        print(json.dumps({"note": text}), file=self.out, flush=True)

    def absent(self, what, why):
        self.add(what, None, "", why=why)

    def add(self, what, value, unit, n=None, peer=None, limit=None, why=None):
        """limit: ("at_most" or "at_least", number); peer: (name, value in the same unit)."""
        verdict = "none"
        if limit and value is not None:
            good = value <= limit[1] if limit[0] == "at_most" else value >= limit[1]
            verdict = "met" if good else "missed"
        ratio = value / peer[1] if peer and peer[1] and value is not None else None
        row = {
            "what": what, "value": value, "unit": unit, "n": n, "low": None, "high": None,
            "peer": {"name": peer[0], "value": peer[1]} if peer else None,
            "ratio": {"median": ratio, "low": None, "high": None} if ratio is not None else None,
            "budget": {"of": "value", "limit": {limit[0]: limit[1]}} if limit else None,
            "verdict": verdict,
        }
        if why:
            row["why"] = why
        print(json.dumps({"row": row}), file=self.out, flush=True)


def least(runs):
    return min(run.cpu_s for run in runs), max(run.peak_mb for run in runs)


def turns(programs, rounds, words, out=None):
    """Runs of each program, in turns; `words` is what follows the program's name."""
    runs = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            runs[name].append(Used([program, *words(name)] if callable(words) else [program, *words], out))
    return runs


def report_rows(rows, what, runs, n, limit=None, peak_limit=None):
    """CPU time and memory of PROGRAM, beside the program of --before."""
    now, now_mb = least(runs["now"])
    before = least(runs["before"]) if "before" in runs else None
    peer = lambda at: ("the program of --before", before[at]) if before else None
    rows.add(f"{what}: CPU time", now, "s", n, peer(0), limit)
    rows.add(f"{what}: peak memory", now_mb, "MB", n, peer(1), peak_limit)
    return now


def sched(rows, programs, args, place):
    for name, generator, share, options, peer, rate in CASES:
        sets = max(int(args.sets * share), 10)
        file = os.path.join(place, "sets.jsonl")
        with open(file, "wb") as out:
            command = [programs["now"], "sched", "generate", *generator, "--count", str(sets), "--seed", "1"]
            subprocess.run(command, stdout=out, check=True)
        for shape in [[], ["--json"]]:
            label = f"sched analyze {name}, {'JSON' if shape else 'text'}"
            words = ["sched", "analyze", file, *options, "--threads", "1", *shape]
            runs = turns(programs, args.rounds, words)
            now = report_rows(rows, label, runs, sets)
            limit = ("at_least", PER_CORE_S) if generator is PLAIN and shape else None
            rows.add(f"{label}: sets of a core", sets / now, "per s", sets, (peer, rate), limit)
        runs = turns(programs, args.rounds, ["sched", "analyze", file, *options])
        limit = ("at_most", 0.4 * sets / 20_000) if generator is PLAIN else None
        report_rows(rows, f"sched analyze {name}, as typed (text, every CPU)", runs, sets, limit)


def recorded(args, rows, place):
    """The run directory, or none and why."""
    if args.run:
        return args.run, None
    if os.geteuid() != 0:
        return None, "no --run DIR, and recording one needs root"
    run = os.path.join(place, "run")
    command = [args.program, "assess", "--cpus", "1", "--out", run, "--state", os.path.join(place, "state")]
    made = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if made.returncode == 1 or not os.path.exists(os.path.join(run, "trace.dat")):
        return None, f"assess made no trace: {made.stderr.decode().strip()[:200]}"
    return run, None


def traces(rows, programs, args, place):
    run, why = recorded(args, rows, place)
    if not run:
        rows.absent("trace explain", why)
        rows.absent("report", why)
        return
    trace = os.path.join(run, "trace.dat")
    counted = subprocess.run([args.program, "trace", "counts", trace, "--buffer", "all", "--json"], stdout=subprocess.PIPE, check=True)
    events = json.loads(counted.stdout)["total"]
    rows.note(f"the run has {events} events in {os.path.getsize(trace) / 1e6:.1f} MB, both buffers")
    programs_and_peer = dict(programs)
    if shutil.which("trace-cmd"):
        programs_and_peer["trace-cmd"] = "trace-cmd"
    words = lambda name: ["report", "-i", trace] if name == "trace-cmd" else ["trace", "explain", run]
    runs = turns(programs_and_peer, args.rounds, words)
    now = report_rows(rows, "trace explain", runs, events, None, ("at_most", EXPLAIN_MB))
    theirs = events / least(runs["trace-cmd"])[0] if "trace-cmd" in runs else None
    peer = ("trace-cmd report of the same file, in turns", theirs) if theirs else None
    rows.add("trace explain: events", events / now, "per s", events, peer, ("at_least", EXPLAIN_EVENTS_S))
    # A copy: the report is written into the run.
    copy = os.path.join(place, "copy")
    shutil.copytree(run, copy)
    runs = turns(programs, args.rounds, ["report", copy])
    report_rows(rows, "report", runs, events, ("at_most", REPORT_S))


def summary(rows, programs, args):
    if not args.samples:
        rows.absent("summary", "no --samples FILE.parquet")
        return
    runs = turns(programs, args.rounds, ["summary", args.samples])
    report_rows(rows, "summary", runs, args.samples_rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--before", help="an older program to compare with, in turns")
    parser.add_argument("--run", help="run directory with a trace")
    parser.add_argument("--samples", help="a samples file to summarise")
    parser.add_argument("--samples-rows", type=int, help="how many rows it has")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sets", type=int, default=20_000, help="task sets; a twentieth of it where locks are analysed")
    parser.add_argument("--rows", help="file to append to")
    args = parser.parse_args()
    rows = Rows(args.rows)
    programs = {"now": os.path.abspath(args.program)}
    if args.before:
        programs["before"] = os.path.abspath(args.before)
    place = tempfile.mkdtemp(prefix="stillcore-endtoend-")
    try:
        rows.note(f"CPU time of the process, user and system: the least of {args.rounds} rounds; memory: the highest of all")
        sched(rows, programs, args, place)
        traces(rows, programs, args, place)
        summary(rows, programs, args)
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
