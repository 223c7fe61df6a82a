#!/usr/bin/env python3
"""`monitor start` for a while beside a load, scraped by a real Prometheus: what it takes, and whether it grows.

    python3 crates/cli/benches/monitor.py PROGRAM [--seconds N] [--cpu N] [--every-us N] [--rows FILE]

The load is cyclictest on the watched CPU, with so many microseconds between two wake-ups; Prometheus is on the others. Twice, a quarter and three quarters
through, a task of a higher priority takes the CPU for 60 ms: each is to be a breach, and Prometheus is to fire the alert of
deploy/prometheus. Half-way a program runs under a thousand names there: they are not to become series. Memory is VmRSS, looked at
every two seconds; its slope is a least-squares line through the second half, with the interval of 95 % for independent errors of
blocks of a tenth. CPU time is that of /proc/PID/stat, of the process and of its ended children. Needs root, rt-tests, and for the
rows of Prometheus the package prometheus.
"""

import argparse
import ctypes
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

from endtoend import Rows

HERE = os.path.dirname(os.path.abspath(__file__))
DEPLOY = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(HERE))), "deploy", "prometheus")
PORT, PROMETHEUS = 19469, 19470
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
HOG_S = 0.06
RSS_MIB, CPU_PERCENT, SERIES = 16, 1.0, 1200
# Student's t of 95 %, two-sided, for ten blocks (eight degrees of freedom).
T = 2.306


def text(path):
    with open(path) as file:
        return file.read()


def cpu_s(pid):
    """Of the process, and of its children that have ended."""
    fields = text(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) * TICK_S, (int(fields[13]) + int(fields[14])) * TICK_S


def rss_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", text(f"/proc/{pid}/status")).group(1))


def name_thread(name):
    ctypes.CDLL(None).prctl(15, name.encode(), 0, 0, 0)


def take_cpu(cpu):
    """Takes a CPU for a moment, above everything of the load."""
    if os.fork() == 0:
        os.sched_setaffinity(0, {cpu})
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(95))
        name_thread("monitor-hog")
        time.sleep(0.2)
        end = time.monotonic() + HOG_S
        while time.monotonic() < end:
            pass
        os._exit(0)
    os.wait()


def bomb(cpu, names):
    """Runs for a moment under each of so many names."""
    if os.fork() == 0:
        os.sched_setaffinity(0, {cpu})
        for number in range(names):
            name_thread(f"bomb-{number}")
            time.sleep(0.002)
        os._exit(0)
    os.wait()


def metrics():
    with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in lines if not line.startswith("#")}


def total(values, family):
    return sum(value for name, value in values.items() if name.split("{")[0] == family)


def slope(points):
    """KiB per hour and the half-width of its interval, from means of ten blocks."""
    size = len(points) // 10
    blocks = [points[at * size:(at + 1) * size] for at in range(10)] if size else []
    if not blocks:
        return None
    x = [statistics.mean(t for t, _ in block) / 3600 for block in blocks]
    y = [statistics.mean(kib for _, kib in block) for block in blocks]
    mean_x, mean_y = statistics.mean(x), statistics.mean(y)
    spread = sum((one - mean_x) ** 2 for one in x)
    rise = sum((one - mean_x) * (other - mean_y) for one, other in zip(x, y)) / spread
    left = sum((other - mean_y - rise * (one - mean_x)) ** 2 for one, other in zip(x, y))
    return rise, T * (left / 8 / spread) ** 0.5


class Prometheus:
    def __init__(self, place):
        config = text(os.path.join(DEPLOY, "prometheus.yml")).replace("127.0.0.1:9469", f"127.0.0.1:{PORT}")
        with open(os.path.join(place, "prometheus.yml"), "w") as file:
            file.write(config)
        shutil.copy(os.path.join(DEPLOY, "stillcore-alerts.yml"), place)
        words = ["prometheus", f"--config.file={place}/prometheus.yml", f"--storage.tsdb.path={place}/tsdb",
                 f"--web.listen-address=127.0.0.1:{PROMETHEUS}", "--log.level=error"]
        self.child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.sched_setaffinity(self.child.pid, {0})

    def ask(self, path, **query):
        url = f"http://127.0.0.1:{PROMETHEUS}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def firing(self):
        return {alert["labels"]["alertname"] for alert in self.ask("alerts")["alerts"] if alert["state"] == "firing"}

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        self.child.wait()


def dashboard():
    panels = json.loads(text(os.path.join(DEPLOY, "grafana-dashboard.json")))["panels"]
    return [target["expr"].replace("$instance", ".*") for panel in panels for target in panel["targets"]]


def watch(args, place, rows):
    state = os.path.join(place, "state")
    words = [args.program, "monitor", "start", "--cpus", str(args.cpu), "--over", "40ms", "--quota", "64M", "--state", state,
             "--listen", f"127.0.0.1:{PORT}"]
    log = open(os.path.join(place, "log"), "w+")
    child = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT)
    while "watching" not in text(log.name):
        if child.poll() is not None:
            sys.exit("monitor: " + text(log.name))
        time.sleep(0.1)
    load = subprocess.Popen(["cyclictest", "-q", "-t1", f"-a{args.cpu}", "-p80", f"-i{args.every_us}", "-D", str(args.seconds + 60)],
                            stdout=subprocess.DEVNULL)
    prometheus = Prometheus(place) if shutil.which("prometheus") else None
    # Until it is warm: buffers have their size.
    time.sleep(10)
    begun, first = time.monotonic(), (cpu_s(child.pid), metrics())
    planted = 0
    memory, fired, before = [], set(), None
    marks = {int(args.seconds * share) for share in (0.25, 0.75)}
    while (now := time.monotonic() - begun) < args.seconds:
        memory.append((now, rss_kib(child.pid)))
        if any(now >= mark for mark in marks):
            marks = {mark for mark in marks if now < mark}
            threading.Thread(target=take_cpu, args=(args.cpu,)).start()
            planted += 1
        if before is None and now >= args.seconds / 2:
            before = len(metrics())
            threading.Thread(target=bomb, args=(args.cpu, 1000)).start()
        if prometheus and int(now) % 10 == 0:
            fired |= prometheus.firing()
        time.sleep(2)
    (own_s, children_s), last = cpu_s(child.pid), metrics()
    took = time.monotonic() - begun
    events = total(last, "stillcore_observer_events_total") - total(first[1], "stillcore_observer_events_total")
    own = own_s - first[0][0]
    rows.note(f"{took:.0f} s beside cyclictest every {args.every_us} us: {events / took:.0f} events a second")
    rows.add("events recorded", events / took, "per s", n=int(events))
    rows.add("CPU time of the monitor", 100 * own / took, "% of one CPU", n=int(took), limit=("at_most", CPU_PERCENT))
    rows.add("the same, per event", 1e6 * own / max(events, 1), "us", n=int(events))
    rows.add("CPU time of explaining breaches", children_s - first[0][1], "s", n=planted)
    said = last['stillcore_observer_cpu_seconds_total{process="monitor"}'] \
        - first[1]['stillcore_observer_cpu_seconds_total{process="monitor"}']
    rows.add("what it says of its CPU time", said / own if own else None, "of the kernel's account", limit=("at_least", 0.8))
    rows.add("memory, the most", max(kib for _, kib in memory) / 1024, "MiB", n=len(memory), limit=("at_most", RSS_MIB))
    found = slope(memory[len(memory) // 2:])
    if found:
        rows.add("growth of memory", found[0], "KiB per hour", n=len(memory) // 2)
        rows.add("the interval of 95 % on either side", found[1], "KiB per hour")
        rows.add("growth beyond that interval", max(found[0] - found[1], 0), "KiB per hour", limit=("at_most", 0))
    kept = [json.loads(line) for line in subprocess.run(
        [args.program, "monitor", "list", "--json", "--last", "100000", "--state", state],
        capture_output=True, text=True, check=True).stdout.splitlines()]
    hogs = [one for one in kept if "monitor-hog" in json.dumps(one.get("explained") or {})]
    rows.add("planted breaches", planted, "")
    rows.add("breaches with the planted culprit", len(hogs), "", n=len(kept), limit=("at_least", planted))
    rows.add("series before a thousand names", before, "")
    rows.add("series behind them", len(last), "", limit=("at_most", SERIES))
    rows.add("of these with one of the names", sum("bomb-" in name for name in last), "", limit=("at_most", 0))
    if prometheus:
        up = prometheus.ask("query", query=f"sum_over_time(up[{int(took)}s])")["result"]
        count = prometheus.ask("query", query=f"count_over_time(up[{int(took)}s])")["result"]
        scrapes, good = (int(float(one[0]["value"][1])) if one else 0 for one in (count, up))
        rows.add("scrapes by Prometheus that failed", scrapes - good, "", n=scrapes, limit=("at_most", 0))
        empty = [query for query in dashboard() if not prometheus.ask("query", query=query)["result"]]
        rows.add("queries of the dashboard without an answer", len(empty), "", n=len(dashboard()), limit=("at_most", 0),
                 why="; ".join(empty) or None)
        rows.add("alerts of a breach that fired", int("StillcoreBreach" in fired), "", limit=("at_least", 1))
        prometheus.end()
    else:
        rows.absent("scrapes by Prometheus that failed", "the package prometheus is not installed")
    for one in (load, child):
        one.send_signal(signal.SIGTERM)
        one.wait()
    left = [name for name in os.listdir(state) if name not in ("journal", "monitor")] + os.listdir(os.path.join(state, "journal"))
    rows.add("left behind", len(left), "", limit=("at_most", 0), why=", ".join(left) or None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=int, default=600)
    parser.add_argument("--cpu", type=int, default=os.cpu_count() - 1)
    parser.add_argument("--every-us", type=int, default=6000)
    parser.add_argument("--rows")
    args = parser.parse_args()
    # What looks on is elsewhere, as it would be beside an isolated CPU.
    others = os.sched_getaffinity(0) - {args.cpu}
    if others:
        os.sched_setaffinity(0, others)
    with tempfile.TemporaryDirectory() as place:
        watch(args, place, Rows(args.rows))


if __name__ == "__main__":
    main()
