#!/usr/bin/env python3
"""The closed optima of the spin-lock bounds beside their integer programs, solved by HiGHS (`cargo xtask bench solver`).

Wieder and Brandenburg, RTSS 2013: which requests of other cores delay the spinning of a job, and which one resource blocks its arrival. The
program counts what `stillcore sched analyze --blocking-only --semantics sound` bounds; its constraints are written here a second
time, with numbers of requests for variables. Systems are those of `stillcore sched generate`.

    solver.py STILLCORE [--systems N] [--rows FILE]
"""

import argparse
import json
import subprocess
import sys
import time

import highspy

PROTOCOLS = ["fifo-np", "fifo-p", "unordered", "baseline"]
SHAPES = [
    # cores, tasks a core, resources, most requests a job, access, critical sections
    (2, 3, 1, 1, 1.0, "100us:100us"),
    (4, 4, 2, 2, 0.7, "1us:100us"),
    (8, 5, 3, 2, 0.5, "1us:100us"),
    (8, 8, 4, 3, 0.3, "50us:300us"),
]


def stillcore(program, *arguments, text=None):
    command = [program, "sched", *arguments]
    done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def jobs(interval, response, period):
    return -(-(interval + response) // period)


class Program:
    """What may delay one job."""

    def __init__(self, tasks, index, protocol):
        self.tasks, self.index, self.protocol = tasks, index, protocol
        self.own = tasks[index]
        here = [at for at in range(len(tasks)) if tasks[at]["core"] == self.own["core"]]
        self.remote = [at for at in range(len(tasks)) if tasks[at]["core"] != self.own["core"]]
        self.higher = [at for at in here if at < index]
        self.lower = [at for at in here if at > index]
        self.resources = sorted({one["resource"] for task in tasks for one in task["requests"]})
        self.local = [(at, jobs(self.own["response_time"], 0, tasks[at]["period"])) for at in self.higher]
        self.local.append((index, 1))

    def request(self, at, resource):
        """Requests of a job and their length."""
        found = [one for one in self.tasks[at]["requests"] if one["resource"] == resource]
        return (found[0]["count"], found[0]["length"]) if found else (0, 0)

    def released(self, at, interval):
        return jobs(interval, self.tasks[at]["response_time"], self.tasks[at]["period"])

    def waiting(self, resource):
        """Requests of the job and of local jobs above it: ncs."""
        return sum(count * self.request(at, resource)[0] for at, count in self.local)

    def supply(self, at, resource):
        return self.released(at, self.own["response_time"]) * self.request(at, resource)[0]

    def met(self, at, resource):
        """Requests issued while a local job is pending that requests the resource."""
        users = [(local, count) for local, count in self.local if self.request(local, resource)[0]]
        together = sum(count * self.released(at, self.tasks[local]["response_time"]) for local, count in users)
        return together * self.request(at, resource)[0]

    def section(self, resource):
        """The longest local section below that can block the arrival; none where none can."""
        users = [at for at in range(len(self.tasks)) if self.request(at, resource)[0]]
        shared = len({self.tasks[at]["core"] for at in users}) > 1
        lengths = [self.request(at, resource)[1] for at in self.lower if self.request(at, resource)[0]]
        return max(lengths) if lengths and (shared or users[0] <= self.index) else None

    def wait(self, resource):
        """How long one request can wait without any order: the least solution of its recurrence."""
        issued = lambda released: sum(
            released(at) * self.request(at, resource)[0] * self.request(at, resource)[1] for at in self.remote
        )
        wait = issued(lambda _: 1)
        while 0 < wait <= self.own["period"]:
            longer = issued(lambda at: self.released(at, wait)) + 1
            if longer == wait:
                return wait
            wait = longer
        return wait if wait == 0 else self.own["response_time"]

    def optimum(self):
        solver = highspy.Highs()
        solver.setOptionValue("output_flag", False)
        solver.setOptionValue("mip_rel_gap", 0.0)
        solver.setOptionValue("mip_abs_gap", 0.5)
        solver.setOptionValue("threads", 1)
        integer = lambda high, gain: solver.addVariable(lb=0, ub=high, obj=gain, type=highspy.HighsVarType.kInteger)
        fifo = self.protocol.startswith("fifo")
        preemptable = self.protocol in ("fifo-p", "baseline")
        blockers = {}
        for resource in self.resources:
            if (section := self.section(resource)) is not None:
                blockers[resource] = integer(1, section)
        if blockers:
            solver.addConstr(sum(blockers.values()) <= 1)
        requeues = {}
        if self.protocol == "fifo-p":
            most = sum(count for at, count in self.local if at != self.index)
            requeues = {resource: integer(most, 0) for resource in self.resources if self.waiting(resource)}
            if requeues:
                solver.addConstr(sum(requeues.values()) <= most)
        spinning, arriving = {}, {}
        for at in self.remote:
            for resource in self.resources:
                count, length = self.request(at, resource)
                if not count:
                    continue
                supply = self.supply(at, resource)
                most = supply if self.protocol == "baseline" else min(supply, self.met(at, resource))
                if self.protocol == "unordered":
                    each = self.released(at, self.wait(resource)) * count
                    most = min(most, each * self.waiting(resource))
                spins = integer(most, length)
                spinning.setdefault((self.tasks[at]["core"], resource), []).append(spins)
                if resource in blockers and not preemptable:
                    arrives = integer(supply, length)
                    solver.addConstr(spins + arrives <= supply)
                    if fifo:
                        arriving.setdefault((self.tasks[at]["core"], resource), []).append(arrives)
                    else:
                        solver.addConstr(arrives <= each * blockers[resource])
        if fifo:
            for (core, resource), some in spinning.items():
                places = self.waiting(resource)
                if resource in requeues:
                    solver.addConstr(sum(some) <= places + requeues[resource])
                else:
                    solver.addConstr(sum(some) <= places)
            for (core, resource), some in arriving.items():
                solver.addConstr(sum(some) <= blockers[resource])
        if solver.getNumCol() == 0:
            return 0
        solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        solver.run()
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            sys.exit(f"HiGHS: {solver.getModelStatus()}")
        return round(solver.getObjectiveValue())


def systems(program, shape, count):
    cores, tasks, resources, requests, access, section = shape
    spec = ["--n", tasks, "--cores", cores, "--per-core", "--utilization", 0.5, "--resources", resources, "--access", access]
    spec += ["--requests", requests, "--section", section, "--count", count, "--seed", 7]
    drawn = stillcore(program, "generate", *map(str, spec))
    for system in drawn:
        for place, task in enumerate(system["tasks"]):
            task.setdefault("core", 0)
            task.setdefault("requests", [])
            # From a quarter of the period to all of it: how long jobs are pending is given, not analysed.
            task["response_time"] = task["period"] * (1 + place % 4) // 4
    return drawn


def write(path, line):
    """A line that `result::sink` reads."""
    with open(path, "a") as file:
        file.write(json.dumps(line) + "\n")


def row(path, what, value, unit, n, **more):
    found = {"what": what, "value": value, "unit": unit, "n": n, "low": None, "high": None, "peer": None}
    write(path, {"row": found | {"ratio": None, "budget": None, "verdict": "none"} | more})


def none_differ(path, what, different, terms):
    verdict = "met" if different == 0 else "missed"
    row(path, what, different, "", terms, budget={"of": "value", "limit": {"at_most": 0.0}}, verdict=verdict)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stillcore")
    parser.add_argument("--systems", type=int, default=10, help="systems of each shape")
    parser.add_argument("--rows", default="/dev/stdout", help="file that takes the rows, a JSON object a line")
    asked = parser.parse_args()
    write(asked.rows, {"note": f"HiGHS {highspy.Highs().version()}"})
    wrong = compared = 0
    for shape in SHAPES:
        drawn = systems(asked.stillcore, shape, asked.systems)
        lines = "".join(json.dumps(system) + "\n" for system in drawn)
        for protocol in PROTOCOLS:
            how = ["--locks", protocol, "--ceilings", "--blocking-only", "--semantics", "sound", "--json"]
            answers = stillcore(asked.stillcore, "analyze", "-", *how, text=lines)
            terms = different = 0
            start = time.process_time()
            for system, answer in zip(drawn, answers, strict=True):
                for index, ours in enumerate(answer["blocking"]):
                    theirs = Program(system["tasks"], index, protocol).optimum()
                    terms += 1
                    if ours != theirs:
                        different += 1
                        print(f"  {protocol}, task {index} of {json.dumps(system)}: {ours}, HiGHS {theirs}", file=sys.stderr)
            each = (time.process_time() - start) / terms * 1e3
            print(f"{shape}, {protocol}: {terms} terms, {different} differ", file=sys.stderr)
            size = f"{shape[0]} cores of {shape[1]} tasks, {shape[2]} resources, {protocol}"
            none_differ(asked.rows, f"{size}: terms that differ", different, terms)
            row(asked.rows, f"{size}: building and solving a term", each, "ms", terms)
            compared, wrong = compared + terms, wrong + different
    none_differ(asked.rows, "all: terms that differ", wrong, compared)


if __name__ == "__main__":
    main()
