"""Models of releases beside those of LiME's reference, `rt-model-inference` (MIT), value by value.

    reference.py PROGRAM --rows FILE [--sequences N]
    reference.py PROGRAM --fixture FILE

PROGRAM is this crate's example `models`. The reference keeps candidate periods in sets, and the
order of a set decides between equals. Each sequence is therefore computed twice by the reference:
as it is, and with its sets in ascending order, which is the rule of ours. All values must be equal
to the latter; where both differ, the model is not defined, and the row says how often. `--fixture`
writes short sequences and the reference's values for the tests.
"""

import argparse
import json
import random
import subprocess
import sys
import time

import rt_model_inference as reference
from rt_model_inference import certain_periodic, uncertain_periodic


class Rows:
    """Rows of a result, one JSON object a line."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")

    def add(self, what, value, unit, n, budget=None, **more):
        row = {"what": what, "value": value, "unit": unit, "n": n, "low": None, "high": None, "peer": None}
        row |= {"ratio": None, "budget": None, "verdict": "none"} | more
        if budget:
            of, most = budget
            row["budget"] = {"of": of, "limit": {"at_most": most}}
            number = value if of == "value" else row["ratio"]["median"]
            row["verdict"] = "met" if number <= most else "missed"
        print(json.dumps(row))
        self.file.write(json.dumps({"row": row}) + "\n")
        self.file.flush()


def in_order(values=()):
    """A set whose order is that of its values."""
    return sorted(dict.fromkeys(values))


def periodic(rng, n):
    period = rng.choice([10, 997, 1_000_000, 2_500_000, 33_333_333])
    jitter = rng.choice([0, 1, period // 100, period // 3, period])
    begin = rng.randrange(0, 10**rng.randrange(1, 16))
    return sorted(begin + i * period + rng.randint(0, jitter) for i in range(n))


def sporadic(rng, n):
    least = rng.choice([1, 50, 1_000_000])
    at, releases = rng.randrange(0, 10**9), []
    for _ in range(n):
        at += least + int(rng.expovariate(1 / (least * rng.choice([0.01, 0.5, 4]))))
        releases.append(at)
    return releases


def bursts(rng, n):
    at, releases = 0, []
    while len(releases) < n:
        at += rng.randint(10_000, 10_000_000)
        for _ in range(rng.randint(1, 6)):
            releases.append(at)
            at += rng.choice([0, 1, 100])
    return releases[:n]


def outliers(rng, n):
    releases = periodic(rng, n)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(n)
        shift = rng.randint(1, 10**9)
        releases = releases[:at] + [one + shift for one in releases[at:]]
    return releases


def windows(rng, releases):
    """Half of the sequences are uncertain."""
    if rng.random() < 0.5:
        return [[one, one] for one in releases]
    width = rng.choice([1, 100, 100_000])
    result, first, last = [], 0, 0
    for one in releases:
        first, last = max(first, one - rng.randint(0, width)), max(last, one + rng.randint(0, width))
        result.append([first, last])
    return result


def sequence(rng):
    n = rng.choice([2, 3, 5, 17, 40, 120])
    releases = rng.choice([periodic, sporadic, bursts, outliers])(rng, n)
    most = rng.choice([2, 5, n, n + 3])
    return {"windows": windows(rng, releases), "most": max(2, most), "batch": rng.choice([8, 16, 33, 4096])}


def fitted(infer, given, batch):
    try:
        return list(infer(given, batch_size=batch))
    except ValueError:
        return None


def fits(one):
    given = [tuple(window) for window in one["windows"]]
    result = {
        "certain": fitted(reference.infer_certain_fit_periodic_model, given, one["batch"]),
        "possible": fitted(reference.infer_possible_fit_periodic_model, given, one["batch"]),
    }
    if all(first == last for first, last in given):
        exact = [first for first, _ in given]
        result["exact"] = fitted(reference.infer_periodic_model, exact, one["batch"])
    return result


def fits_in_order(one):
    modules = [certain_periodic, uncertain_periodic]
    for module in modules:
        module.set = in_order
    result = fits(one)
    for module in modules:
        del module.set
    return result


def curves(one):
    given, most = [tuple(window) for window in one["windows"]], one["most"]
    result = {
        "min_hi": reference.infer_delta_min_hi(given, most),
        "min_lo": reference.infer_delta_min_lo(given, most),
        "max_hi": reference.infer_delta_max_hi(given, most),
        "max_lo": reference.infer_delta_max_lo(given, most),
    }
    if all(first == last for first, last in given):
        exact = [first for first, _ in given]
        result["min_exact"] = reference.infer_delta_min(exact, most)
        result["max_exact"] = reference.infer_delta_max(exact, most)
    return result


def ours(program, sequences):
    lines = "".join(json.dumps(one) + "\n" for one in sequences)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def fixture(path):
    rng, lines = random.Random(7), []
    while len(lines) < 60:
        one = sequence(rng)
        if len(one["windows"]) <= 40 and fits(one) == (expected := fits_in_order(one)):
            lines.append(json.dumps(one | {"expected": curves(one) | expected}, separators=(",", ":")))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


SAME = {"exact": "certain", "min_exact": "min_hi", "max_exact": "max_lo"}


def compare(program, count, rows):
    rng = random.Random(29)
    sequences = [sequence(rng) for _ in range(count)]
    differ, undefined, values = 0, 0, 0
    for one, mine in zip(sequences, ours(program, sequences), strict=True):
        in_ascending_order = fits_in_order(one)
        undefined += fits(one) != in_ascending_order
        for name, value in (curves(one) | in_ascending_order).items():
            values += 1
            if mine[SAME.get(name, name)] != value:
                differ += 1
                print(f"{name}: {mine[SAME.get(name, name)]}, reference {value}: {json.dumps(one)}")
    rows.add("models compared", values, "", n=count)
    rows.add("models that differ", differ, "", n=values, budget=("value", 0.0))
    rows.add("sequences where the order of a set decides in the reference", undefined, "", n=count)
    return differ


def speed(program, rows):
    """Of long sequences, the processes' start not counted; in turns, the median of five."""
    rng = random.Random(5)
    pairs = {"periodic": [], "curve of 64 releases": []}
    for _ in range(5):
        one = {"windows": [[at, at] for at in sorted(periodic(rng, 20_000))], "most": 64, "batch": 4096}
        [mine] = ours(program, [one])
        exact = [first for first, _ in one["windows"]]
        begin = time.perf_counter_ns()
        reference.infer_periodic_model(exact)
        middle = time.perf_counter_ns()
        reference.infer_delta_min(exact, 64)
        end = time.perf_counter_ns()
        pairs["periodic"].append((mine["certain_ns"], middle - begin))
        pairs["curve of 64 releases"].append((mine["curve_ns"], end - middle))
    for what, both in pairs.items():
        both.sort(key=lambda pair: pair[1] / pair[0])
        mine, theirs = both[2]
        rows.add(
            f"{what}: time per release",
            mine / 20_000,
            "ns",
            n=5,
            peer={"name": "rt-model-inference 1.0.1", "value": theirs / 20_000},
            ratio={"median": mine / theirs, "low": None, "high": None},
            budget=("ratio", 0.01),
        )


def memory(program, rows):
    for releases in [100_000, 10_000_000]:
        done = subprocess.run([program, "--stream", str(releases)], capture_output=True, text=True, check=True)
        period_ns, peak_kib = map(int, done.stdout.split())
        assert period_ns == 1_000_000, period_ns
        rows.add(f"peak memory of {releases:,} releases", peak_kib / 1024, "MiB", n=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rows")
    parser.add_argument("--fixture")
    parser.add_argument("--sequences", type=int, default=12_000)
    args = parser.parse_args()
    if args.fixture:
        return fixture(args.fixture)
    rows = Rows(args.rows)
    differ = compare(args.program, args.sequences, rows)
    speed(args.program, rows)
    memory(args.program, rows)
    return 1 if differ else 0


sys.exit(main())
