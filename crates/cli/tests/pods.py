"""The pods of deploy/kubernetes as containers of this machine, one of which is killed while something is changed.

    pods.py PROGRAM DIR

PROGRAM is the static program, DIR an empty directory. Rights, mounts, commands and the environment are those of the
files; Podman stands for the kubelet (it starts the init container, then the other), DIR/node for the node's
/var/lib/stillcore. Needs root, tracefs at /sys/kernel/tracing, Podman, crun, BusyBox (static) and PyYAML. Prints what it has seen; exits 1 where a
setting differs at the end, or where nothing was changed that could.

1. study.yaml measures, without any privilege but its two capabilities. Its preStop, and that of the other file, ends
   the study in the middle of a cell and leaves nothing.
2. study-isolate.yaml is killed (SIGKILL to all its processes, the guardian among them) in a cell that has isolated
   a CPU and records a trace. What differs then is still there.
3. The init container of the next pod undoes it.
4. Killed again, `stillcore isolate undo` undoes it, called on the node.
5. monitor.yaml keeps a late thread of the node with who was in its way, under the node's name. Killed, it leaves nothing behind
   the next one; stopped, nothing at all.
"""

import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

import yaml

DEPLOY = pathlib.Path(__file__).parents[3] / "deploy/kubernetes"
NODE_STATE = "/var/lib/stillcore"
NODE = "node-1"
STUDY = """
schema = "stillcore.experiment/1"
name = "containers"
title = "t"
source = "s"
seed = 1
repetitions = 1
[[factor]]
name = "way"
levels = [{ name = "WAY"BEFORE }]
[[step]]
run = ["measure", "wakeup", "--cpus", "CPU", "--duration", "SECONDS", "--quiet", "--out", "{out}"TRACE]
[[value]]
name = "threads"
title = "threads"
at = "threads"
take = "count"
"""
ISOLATES = (
    ', before = [["isolate", "apply", "--cpus", "CPU", "--placement", "affinity", "--keep", "policy:realtime"]],'
    ' after = [["isolate", "undo"]]'
)


def podman(*words, **options):
    """Calls Podman where crun can read the control groups: it refuses a version 2 hierarchy beside those of version 1
    that has controllers (crun 1.8)."""
    words = ["podman", "--cgroup-manager=cgroupfs", "--runtime=crun", *map(str, words)]
    if os.path.ismount("/sys/fs/cgroup/unified"):
        words = ["unshare", "--mount", "sh", "-c", 'umount /sys/fs/cgroup/unified; exec "$@"', "-", *words]
    return subprocess.Popen(words, stdin=subprocess.DEVNULL, text=True, **options)


class Node:
    """This machine as the node of a cluster: one directory for what the pods share, and the image."""

    def __init__(self, program, place):
        self.program, self.place = program, place
        self.image, self.study = place / "image", place / "study"
        self.volumes = {"state": place / "node", "results": place / "results", "study": self.study}
        self.volumes |= {name: place / name for name in ("textfile", "containerd", "packages")}
        for made in (self.image / "bin", *self.volumes.values()):
            made.mkdir(parents=True)
        self.volumes["tracing"] = pathlib.Path("/sys/kernel/tracing")
        folders = ("proc", "sys", "dev", "tmp", "etc", "run", "var/lib/stillcore", "results", "study", "textfile", "var/lib/dpkg")
        for folder in (*folders, "run/containerd/io.containerd.runtime.v2.task"):
            (self.image / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(program, self.image / "bin/stillcore")
        shutil.copy(shutil.which("busybox"), self.image / "bin/sh")

    def declare(self, way, seconds, cpu, isolates):
        text = STUDY.replace("BEFORE", ISOLATES if isolates else "").replace("WAY", way)
        text = text.replace("TRACE", ', "--trace"' if isolates else "")
        (self.study / "study.toml").write_text(text.replace("SECONDS", f"{seconds}s").replace("CPU", str(cpu)))

    def start(self, pod, container, name):
        """The container of a pod's specification, with its rights and mounts and no others."""
        rights = container["securityContext"]
        words = ["run", "--rm", "--name", name, "--network=none"]
        # What this caller may give: Podman's defaults may be above it.
        for limit, kind in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC)):
            most = resource.getrlimit(kind)[1]
            most = 1024 if most == resource.RLIM_INFINITY else min(most, 1024)
            words.append(f"--ulimit={limit}={most}:{most}")
        if rights.get("privileged"):
            words.append("--privileged")
        else:
            assert rights["allowPrivilegeEscalation"] is False
            words.append("--security-opt=no-new-privileges")
            words += [f"--cap-drop={name}" for name in rights["capabilities"]["drop"]]
            words += [f"--cap-add={name}" for name in rights["capabilities"]["add"]]
        if pod.get("hostPID"):
            words.append("--pid=host")
        assert rights["readOnlyRootFilesystem"]
        words += ["--read-only", "--read-only-tmpfs=false"]
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        for mount in container["volumeMounts"]:
            volume, to = volumes[mount["name"]], mount["mountPath"]
            if "emptyDir" in volume:
                words.append(f"--tmpfs={to}")
                continue
            if mount["name"] == "state":
                assert volume["hostPath"]["path"] == to == NODE_STATE
            words.append(f"--volume={self.volumes[mount['name']]}:{to}" + (":ro" if mount.get("readOnly") else ""))
        environment = {entry["name"]: entry.get("value", NODE) for entry in container.get("env", [])}
        # One part, of which this pod is the first.
        environment |= {"JOB_COMPLETION_INDEX": "0"} | ({"PARTS": "1"} if "PARTS" in environment else {})
        words += [f"--env={key}={value}" for key, value in environment.items()]
        arguments = [word.replace("$(NODE_NAME)", NODE) for word in container.get("args", [])]
        words += ["--rootfs", str(self.image), *container["command"], *arguments]
        return podman(*words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, pod, container, name):
        output, _ = self.start(pod, container, name).communicate(timeout=180)
        return output

    def kill(self, name):
        """Ends every process of a container at once, as when it is out of memory or out of time."""
        inspected = podman("inspect", name, stdout=subprocess.PIPE).communicate(timeout=60)[0]
        pid = json.loads(inspected)[0]["State"]["Pid"]
        groups = pathlib.Path(f"/proc/{pid}/cgroup").read_text().split("\n")
        mine = {group for group in groups if group and "libpod" in group}
        assert mine, groups
        pids = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mine & set((process / "cgroup").read_text().split("\n")):
                    pids.append(int(process.name))
            except OSError:
                pass
        for victim in pids:
            try:
                os.kill(victim, 9)
            except ProcessLookupError:
                pass
        return len(pids)


def settings():
    """What isolation by affinities changes and can be compared, by path."""
    found = {}
    paths = [*pathlib.Path("/proc/irq").glob("*/smp_affinity"), pathlib.Path("/proc/irq/default_smp_affinity")]
    paths += [pathlib.Path("/sys/devices/virtual/workqueue/cpumask"), pathlib.Path("/proc/sys/vm/stat_interval")]
    for path in paths:
        try:
            found[str(path)] = path.read_text().strip()
        except OSError:
            pass
    return found


def instances(node):
    """The trace instances that the journals on the node name: not those of other calls on this machine."""
    journals = (node.volumes["state"] / "journal").glob("*.jsonl")
    entries = [json.loads(line) for journal in journals for line in journal.read_text().splitlines()]
    made = [entry["change"]["path"] for entry in entries if entry["kind"] == "trace-instance"]
    # That on which the cost of an event is measured is gone before the cell measures.
    names = {pathlib.Path(path).name for path in made if not path.endswith("-cost")}
    return [pathlib.Path("/sys/kernel/tracing/instances", name) for name in sorted(names)]


def differing(before):
    now = settings()
    return sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))


def stopped(node, pod, before, cell, isolates):
    """Deletes a pod as the kubelet does: preStop, in the container, which ends by that."""
    process = measuring(node, pod, cell, isolates)
    assert bool(differing(before)) == isolates, differing(before)
    hook = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
    called = podman("exec", f"stillcore-{cell}", *hook, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = called.communicate(timeout=pod["terminationGracePeriodSeconds"])[0]
    print(f"preStop, {cell}: {said.strip()}")
    process.communicate(timeout=60)
    assert process.returncode != 0, "its part is not complete"
    undone(node, before, [])


def undone(node, before, traces):
    assert not differing(before), differing(before)
    assert not [instance for instance in traces if instance.exists()], traces
    assert not (node.volumes["state"] / "isolation.jsonl").exists() and not instances(node)


def document(name):
    return yaml.safe_load((DEPLOY / name).read_text())["spec"]["template"]["spec"]


def measuring(node, pod, cell, isolates):
    """Starts a pod; it is in the middle of its cell then."""
    node.declare(cell, 60, node.cpu, isolates)
    shutil.rmtree(node.volumes["results"] / "part-0", ignore_errors=True)
    process = node.start(pod, pod["containers"][0], f"stillcore-{cell}")
    give_up = time.monotonic() + 60
    samples = lambda: list(node.volumes["results"].glob("part-0/runs/*/run/samples/*"))
    # The instance of the measured CPU and that of the others, which a machine of one CPU does not have.
    wanted = min(2, os.cpu_count()) if isolates else 0
    made = lambda: [instance for instance in instances(node) if instance.exists()]
    while not samples() or len(made()) < wanted:
        if process.poll() is not None or time.monotonic() > give_up:
            sys.exit(f"the cell never measured: {process.communicate(timeout=60)[0]}")
        time.sleep(0.1)
    time.sleep(1)
    return process


def killed(node, pod, before, cell):
    """Kills a pod in the middle of a cell that has isolated and traces; the trace instances that are left behind it."""
    process = measuring(node, pod, cell, True)
    count = node.kill(f"stillcore-{cell}")
    process.communicate(timeout=60)
    left = differing(before)
    traces = [instance for instance in instances(node) if instance.exists()]
    print(f"killed {count} processes; behind them {len(left)} settings differ, {len(traces)} trace instances are left")
    assert count >= 3, "shell or study, measurement, guardian or probe"
    assert any(path.endswith("smp_affinity") for path in left), left
    assert (node.volumes["state"] / "isolation.jsonl").exists() and traces
    return traces


def late_by_a_hog(cpu, enough):
    """A process that sleeps a millisecond again and again on a CPU, kept from it by another one of a higher priority, until
    `enough`. False where nobody may have a real-time policy."""
    victim = os.fork()
    if victim == 0:
        urgent(cpu, 40)
        while True:
            time.sleep(0.001)
    try:
        for _ in range(12):
            hog = os.fork()
            if hog == 0:
                urgent(cpu, 90)
                time.sleep(0.3)
                end = time.monotonic() + 0.06
                while time.monotonic() < end:
                    pass
                os._exit(0)
            if os.waitpid(hog, 0)[1] != 0:
                return False
            time.sleep(1)
            if enough():
                break
    finally:
        os.kill(victim, 9)
        os.waitpid(victim, 0)
    return True


def urgent(cpu, priority):
    os.sched_setaffinity(0, {cpu})
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError:
        os._exit(1)


def watched(node):
    """The monitor of monitor.yaml, of a CPU that is there, with a limit that this machine does not pass by itself all the time."""
    pod = document("monitor.yaml")
    container = pod["containers"][0]
    given = {"2-3": str(node.cpu), "500us": "40ms"}
    container["args"] = [given.get(word, word) for word in container["args"]]
    process = node.start(pod, container, "stillcore-monitor")
    give_up = time.monotonic() + 60
    while not process.stdout.readline().startswith("watching"):
        assert process.poll() is None and time.monotonic() < give_up, process.communicate(timeout=60)
    return process


def listed(node):
    call = [node.program, "monitor", "list", "--json", "--state", node.volumes["state"]]
    return [json.loads(line) for line in subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()]


def monitored(node):
    own = lambda breach: breach["fate"] == "kept" and breach["worst"]["tid"] is not None
    process = watched(node)
    urgent_here = late_by_a_hog(node.cpu, lambda: any(map(own, listed(node))))
    breaches = [breach for breach in listed(node) if own(breach)]
    print(f"monitor.yaml: {len(breaches)} breaches kept" if urgent_here else "monitor.yaml: no real-time policy here")
    assert breaches or not urgent_here
    assert not breaches or breaches[-1]["explained"]["cause"], breaches
    count = node.kill("stillcore-monitor")
    process.communicate(timeout=60)
    left = [instance for instance in instances(node) if instance.exists()]
    print(f"killed {count} processes; {len(left)} trace instances are left")
    process = watched(node)
    assert not [instance for instance in left if instance.exists()], left
    numbers = node.volumes["textfile"] / "stillcore.prom"
    give_up = time.monotonic() + 60
    while not numbers.exists():
        assert time.monotonic() < give_up, "it never wrote its numbers"
        time.sleep(0.1)
    podman("stop", "stillcore-monitor", stdout=subprocess.DEVNULL).communicate(timeout=90)
    process.communicate(timeout=60)
    assert not [instance for instance in instances(node) if instance.exists()]
    history = list((node.volumes["state"] / "monitor/history").glob("*.jsonl"))
    hosts = {json.loads(line)["host"] for path in history for line in path.read_text().splitlines()}
    assert hosts == {NODE}, hosts


def main():
    program, place = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve()
    node = Node(program, place)
    node.cpu = max(os.sched_getaffinity(0))
    before = settings()

    node.declare("measures", 1, node.cpu, False)
    pod = document("study.yaml")
    output = node.run(pod, pod["containers"][0], "stillcore-measures")
    cells = [json.loads(cell.read_text()) for cell in node.volumes["results"].glob("part-0/cells/*.json")]
    assert [cell["result"]["state"] for cell in cells] == ["ok"], output
    assert not differing(before), differing(before)
    print("study.yaml: one cell measured, nothing differs")

    stopped(node, pod, before, "stopped", False)

    pod = document("study-isolate.yaml")
    stopped(node, pod, before, "stopped-isolated", True)
    first = pod["initContainers"][0]
    traces = killed(node, pod, before, "first")
    print("next pod:", node.run(pod, first, "stillcore-undo").strip())
    undone(node, before, traces)
    traces = killed(node, pod, before, "second")
    undo = [program, "isolate", "undo", "--state", node.volumes["state"]]
    print("on the node:", subprocess.run(undo, capture_output=True, text=True, check=True, timeout=120).stdout.strip())
    undone(node, before, traces)

    monitored(node)


if __name__ == "__main__":
    main()
