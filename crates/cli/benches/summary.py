#!/usr/bin/env python3
"""A thousand million samples summarised by us, and by numpy and polars.

    python3 crates/cli/benches/summary.py PROGRAM [--samples N] [--rounds N] [--rows FILE]

Makes an environment with numpy, polars and pyarrow, and samples files in a temporary directory, and removes both. The large file has the
columns of every samples file, and is packed as those that we write: snappy, dictionaries where they pay, groups of 65,536 rows. Ours reads it whole;
numpy reads it in batches and counts values as we do; polars computes exact quantiles, which needs all values at once, and so gets a tenth of
the rows. Quantiles, numbers and maxima must be equal.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

LEVELS = [0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999]
META = {
    "probe": "wakeup", "cpu": 3, "thread": 0, "phase": "measured", "unit": "ns", "clock": "CLOCK_MONOTONIC",
    "counter": "CLOCK_MONOTONIC", "policy_asked": {"name": "SCHED_FIFO", "priority": 80},
    "policy_effective": {"name": "SCHED_FIFO", "priority": 80}, "period_ns": 1000000, "threshold_ns": None,
}


def make(path, rows):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = [("t_ns", pa.int64()), ("value_ns", pa.int64()), ("seq", pa.uint64()), ("missed", pa.uint32()), ("flags", pa.uint32())]
    schema = pa.schema([pa.field(name, of, nullable=False) for name, of in types], metadata={"stillcore": json.dumps(META)})
    random = np.random.default_rng(1)
    level = 0.0
    with pq.ParquetWriter(path, schema, compression="snappy") as out:
        for start in range(0, rows, 1 << 20):
            n = min(1 << 20, rows - start)
            seq = np.arange(start, start + n)
            # A level that wanders every 4,096 samples, a body, and a rare long one.
            steps = random.normal(0, 300, n // 4096 + 1)
            wander = []
            for step in steps:
                level = 0.9 * level + step
                wander.append(level)
            values = 20000 + np.repeat(wander, 4096)[:n] + random.gamma(4.0, 700.0, n)
            values += np.where(random.random(n) < 1e-5, random.uniform(50_000, 900_000, n), 0)
            zeros = np.zeros(n, np.uint32)
            columns = [seq * 1_000_000, values.astype(np.int64), seq.astype(np.uint64), zeros, zeros]
            out.write_table(pa.table([pa.array(c, of[1]) for c, of in zip(columns, types)], schema=schema), row_group_size=1 << 16)


def with_numpy(path):
    import numpy as np
    import pyarrow.parquet as pq

    counts = np.zeros(1 << 20, np.int64)
    n, most = 0, 0
    for batch in pq.ParquetFile(path).iter_batches(batch_size=1 << 16, columns=["value_ns", "missed", "flags"]):
        values = batch.column(0).to_numpy()
        kept = values[(batch.column(2).to_numpy() & 0x17) == 0]
        counts += np.bincount(np.minimum(kept, (1 << 20) - 1), minlength=1 << 20)
        n += len(kept)
        most = max(most, int(kept.max()))
    upto = np.cumsum(counts)
    ranks = [-(-n * round(level * 100_000) // 100_000) for level in LEVELS]
    return {"n": n, "max": most, "quantiles": [int(np.searchsorted(upto, rank)) for rank in ranks]}


def with_polars(path):
    import polars as pl

    values = pl.scan_parquet(path).filter((pl.col("flags") & 0x17) == 0).select("value_ns")
    n = values.select(pl.len()).collect().item()
    ranks = [-(-n * round(level * 100_000) // 100_000) for level in LEVELS]
    ordered = pl.col("value_ns").sort()
    row = values.select(*[ordered.get(rank - 1).alias(str(at)) for at, rank in enumerate(ranks)], pl.col("value_ns").max().alias("max")).collect()
    return {"n": n, "max": row["max"].item(), "quantiles": [row[str(at)].item() for at in range(len(ranks))]}


def ours(answer):
    series = json.loads(answer)["series"][0]
    return {"n": series["n"], "max": series["observed_max_ns"], "quantiles": [q["value_ns"] for q in series["quantiles"]]}


def timed(command, read):
    start = time.monotonic()
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(command, stdout=out)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:
            sys.exit(f"{command[0]} failed: {child.returncode}")
        out.seek(0)
        found = read(out.read())
    return found, time.monotonic() - start, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


class Rows:
    """The lines that `result::sink` reads: a row or a note each."""

    def __init__(self, path):
        self.path = path

    def write(self, line):
        with open(self.path, "a") as file:
            file.write(json.dumps(line) + "\n")

    def note(self, text):
        self.write({"note": text})

    def row(self, what, value, unit, n, peer, peer_value, **more):
        row = {"what": what, "value": value, "unit": unit, "n": n, "low": None, "high": None}
        row |= {"peer": {"name": peer, "value": peer_value}, "ratio": None, "budget": None, "verdict": "none"}
        self.write({"row": row | more})

    def compare(self, what, ours, peer, theirs):
        """Medians, and the median ratio of the rounds; too few rounds for an interval."""
        ratio = statistics.median(one / other for one, other in zip(ours, theirs))
        unit = "M samples per s of CPU time"
        found = {"median": ratio, "low": None, "high": None}
        self.row(what, statistics.median(ours), unit, len(ours), peer, statistics.median(theirs), ratio=found)

    def peak(self, what, value, peer, peer_value, n, most):
        if most is None:
            return self.row(what, value, "MB", n, peer, peer_value)
        verdict = "met" if value <= most else "missed"
        limit = {"of": "value", "limit": {"at_most": most}}
        return self.row(what, value, "MB", n, peer, peer_value, budget=limit, verdict=verdict)


def bench(args):
    work = tempfile.mkdtemp(prefix="stillcore-summary-")
    try:
        python = os.path.join(work, "venv/bin/python")
        subprocess.run([sys.executable, "-m", "venv", os.path.join(work, "venv")], check=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "numpy", "polars", "pyarrow"], check=True)
        versions = "import numpy, polars, pyarrow; print('numpy', numpy.__version__, 'polars', polars.__version__, 'pyarrow', pyarrow.__version__)"
        out = Rows(args.rows)
        out.note(subprocess.run([python, "-c", versions], check=True, capture_output=True, text=True).stdout.strip())
        files = {"all": (os.path.join(work, "all.parquet"), args.samples), "tenth": (os.path.join(work, "tenth.parquet"), args.samples // 10)}
        for path, rows in files.values():
            subprocess.run([python, __file__, "--make", path, "--samples", str(rows)], check=True)
            out.note(f"{rows:,} samples, {os.path.getsize(path) / 1e9:.2f} GB on disk, removed at the end")
        program = [args.program, "summary", "--json"]
        runs = [
            ("stillcore", "all", [*program, files["all"][0]], ours),
            ("numpy, in batches", "all", [python, __file__, "--numpy", files["all"][0]], json.loads),
            ("stillcore", "tenth", [*program, files["tenth"][0]], ours),
            ("numpy, in batches", "tenth", [python, __file__, "--numpy", files["tenth"][0]], json.loads),
            ("polars, exact", "tenth", [python, __file__, "--polars", files["tenth"][0]], json.loads),
        ]
        by_input, rates = {}, {}
        for _ in range(args.rounds):
            for name, which, command, read in runs:
                found, clock, cpu, peak = timed(command, read)
                rows = files[which][1]
                print(f"{name:20} {rows:>14,} samples {clock:>9.1f} s {cpu:>9.1f} s of CPU {peak:>9.1f} MB", file=sys.stderr, flush=True)
                by_input.setdefault(which, []).append((name, found))
                rates.setdefault((name, which), []).append((rows / cpu, peak))
        for which, answers in by_input.items():
            differ = [(name, found) for name, found in answers if found != answers[0][1]]
            if differ:
                sys.exit(f"answers differ: {answers[0]} and {differ[0]}")
        middle = lambda name, which: sorted(rates[name, which])[len(rates[name, which]) // 2][0]
        out.note("numbers, maxima and six quantiles are equal, to the ns")
        words = {"all": f"{args.samples:,}", "tenth": f"{args.samples // 10:,}"}
        for which, peer in [("all", "numpy, in batches"), ("tenth", "numpy, in batches"), ("tenth", "polars, exact")]:
            ours, theirs = rates["stillcore", which], rates[peer, which]
            what = f"{words[which]} samples beside {peer.split(',')[0]}"
            out.compare(f"{what}: rate", [rate / 1e6 for rate, _ in ours], peer, [rate / 1e6 for rate, _ in theirs])
            peaks = [max(peak for _, peak in of) for of in (ours, theirs)]
            out.peak(f"{what}: peak memory", peaks[0], peer, peaks[1], len(ours), 200 if which == "all" else None)
    finally:
        shutil.rmtree(work)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", nargs="?")
    parser.add_argument("--samples", type=int, default=1_000_000_000)
    parser.add_argument("--rows", default="/dev/stdout", help="file that takes the rows, a JSON object a line")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--make")
    parser.add_argument("--numpy")
    parser.add_argument("--polars")
    args = parser.parse_args()
    if args.make:
        make(args.make, args.samples)
    elif args.numpy:
        print(json.dumps(with_numpy(args.numpy)))
    elif args.polars:
        print(json.dumps(with_polars(args.polars)))
    else:
        bench(args)


main()
