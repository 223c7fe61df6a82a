#!/usr/bin/env python3
"""`sched analyze` from each kind of file, and from Python's columns: sets per second of CPU time.

    python3 crates/cli/benches/analyze.py PROGRAM [--before PROGRAM] [--sets N] [--rounds N] [--rows FILE]

Sets of 40 tasks, drawn by PROGRAM; the same ones in every format. CPU time is that of the process, user and system, with one thread; the value is
the best of the rounds, in which all programs take turns, and a ratio is the median over the rounds with its range. An earlier program
of --before reads lines only. Makes an environment with pyarrow and the package `stillcore` (built from this tree, profile `wheel`) in a temporary
directory, and removes it.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

from endtoend import PER_CORE_S, PLAIN, Rows, Used

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
TESTS = ["fp-rta", "edf-qpa"]
KEYS = ["period", "cost", "deadline", "jitter"]

# Started with PATH, TEST; prints CPU seconds of the analysis alone.
FROM_COLUMNS = """
import sys, time
import pyarrow.ipc
from stillcore import sched
with pyarrow.ipc.open_file(pyarrow.memory_map(sys.argv[1])) as file:
    table = file.read_all()
columns = {name: table[name].to_numpy() for name in table.column_names}
start = time.process_time()
found = sched.analyze_columns(columns, sys.argv[2], threads=1)
print(time.process_time() - start, int(found.schedulable.sum()))
"""


def tables(python, lines, place):
    """The sets of lines as a Parquet and an Arrow file."""
    make = f"""
import json, pyarrow, pyarrow.ipc, pyarrow.parquet
columns = {{key: [] for key in ["set", *{KEYS}]}}
for number, line in enumerate(open({lines!r})):
    for task in json.loads(line)["tasks"]:
        columns["set"].append(number)
        for key in {KEYS}:
            columns[key].append(task.get(key, task["period"] if key == "deadline" else 0))
table = pyarrow.table(columns)
pyarrow.parquet.write_table(table, {place!r} + "/sets.parquet")
with pyarrow.ipc.new_file({place!r} + "/sets.arrow", table.schema) as file:
    file.write_table(table)
"""
    subprocess.run([python, "-c", make], check=True)


def row(rows, what, sets, cpu, system, before, found):
    """CPU seconds by round."""
    rates = sorted(sets / one for one in cpu)
    peer = ("the program of --before, in turns", sets / min(before)) if before else None
    ratios = sorted(old / new for old, new in zip(before, cpu)) if before else []
    text = f"system time {100 * sum(system) / sum(cpu):.0f} %; {found}" if system else found
    rows.add(what, rates[-1], "sets per s", sets, peer, ("at_least", PER_CORE_S), text)
    if ratios:
        rows.add(f"{what}: ratio to --before", statistics.median(ratios), "", len(ratios), why=f"{ratios[0]:.2f} to {ratios[-1]:.2f}")


def measure(rows, what, programs, sets, rounds, words):
    """`words`: what follows the name of the program."""
    runs = {name: [] for name in programs}
    for _ in range(rounds):
        for name, program in programs.items():
            runs[name].append(Used([program, *words]))
    cpu = {name: [run.cpu_s for run in runs[name]] for name in programs}
    row(rows, what, sets, cpu["now"], [run.system_s for run in runs["now"]], cpu.get("before", []), "one thread")


def python_rows(rows, python, place, sets, rounds):
    built = subprocess.run([python, "-m", "pip", "install", "--quiet", os.path.join(ROOT, "crates/py")], stderr=subprocess.PIPE, text=True)
    for test in TESTS:
        what = f"{test}, columns in Python"
        if built.returncode:
            rows.absent(what, f"the package cannot be built: {built.stderr.strip()[-200:]}")
            continue
        script = os.path.join(place, "columns.py")
        with open(script, "w") as out:
            out.write(FROM_COLUMNS)
        outs = [subprocess.run([python, script, f"{place}/sets.arrow", test], capture_output=True, text=True, check=True).stdout for _ in range(rounds)]
        times = [float(out.split()[0]) for out in outs]
        row(rows, what, sets, times, [], [], "the call alone; arrays in memory, not copied")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--before", help="an earlier program to compare with, in turns")
    parser.add_argument("--sets", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--rows", help="file to append to")
    args = parser.parse_args()
    rows = Rows(args.rows)
    now = {"now": os.path.abspath(args.program)}
    programs = {**now, "before": os.path.abspath(args.before)} if args.before else now
    place = tempfile.mkdtemp(prefix="stillcore-analyze-")
    try:
        rows.note(f"40 tasks, U 0.8, jitter 104 us; {args.sets} sets; CPU time, user and system, one thread; best of {args.rounds} rounds, in turns")
        lines = os.path.join(place, "sets.jsonl")
        for utilization, file in [("0.8", lines), ("0.9", os.path.join(place, "late.jsonl"))]:
            generate = [word if word != "0.8" else utilization for word in PLAIN]
            with open(file, "wb") as out:
                subprocess.run([now["now"], "sched", "generate", *generate, "--count", str(args.sets), "--seed", "1"], stdout=out, check=True)
        for test in TESTS:
            words = ["sched", "analyze", "--test", test, "--threads", "1"]
            measure(rows, f"{test}, lines, JSON", programs, args.sets, args.rounds, [*words, "--json", lines])
            measure(rows, f"{test}, lines, text", programs, args.sets, args.rounds, [*words, lines])
            measure(rows, f"{test}, lines of U 0.9, text", programs, args.sets, args.rounds, [*words, os.path.join(place, "late.jsonl")])
        environment = os.path.join(place, "venv")
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        python = os.path.join(environment, "bin/python")
        subprocess.run([python, "-m", "pip", "install", "--quiet", "numpy", "pyarrow"], check=True)
        tables(python, lines, place)
        for test in TESTS:
            words = ["sched", "analyze", "--test", test, "--threads", "1", "--json"]
            for name in ["Parquet", "Arrow"]:
                measure(rows, f"{test}, {name}, JSON", now, args.sets, args.rounds, [*words, f"{place}/sets.{name.lower()}"])
        python_rows(rows, python, place, args.sets, args.rounds)
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
