"""Task sets, tests, budgets and certificates: published answers, stored simulations, and what must hold between answers."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

import stillcore
from stillcore import sched

MS = 1_000_000
ONE = {"tasks": [{"period": 10, "cost": 1}]}
SIMULATED = json.loads((ROOT / "crates/sched/tests/fixtures/fp_simulated.json").read_text())["sets"]


def test_the_published_set() -> None:
    # R. Delgado and B. W. Choi, IEEE Access 8, 2020, Table 6.
    sets = sched.TaskSets.from_arrays([10 * MS, 20 * MS, 40 * MS], [3 * MS, 5 * MS, 10 * MS])
    verdicts = sched.analyze(sets)
    assert verdicts.response_times.tolist() == [[3 * MS, 8 * MS, 29 * MS]]
    assert verdicts.schedulable.tolist() == [True]
    budget = sched.budget(sets)
    assert (budget.budget_ns.tolist(), budget.limiting_task.tolist()) == ([7 * MS], [0])
    assert budget.budgets_ns.tolist() == [[7 * MS, 9 * MS, 8 * MS]]


def test_priorities_are_given_anew() -> None:
    # Deadlines beyond periods, where no order by a key holds: Lehoczky, RTSS 1990.
    tasks = [{"period": 100, "cost": 52, "deadline": 110}, {"period": 140, "cost": 52, "deadline": 154}]
    sets = sched.TaskSets.from_dicts([{"tasks": tasks}, {"tasks": [{"period": 100, "cost": 30}, {"period": 10, "cost": 3}]}])
    assert sched.analyze(sets).schedulable.tolist() == [False, False]
    assert sched.analyze(sets, order="dm").schedulable.tolist() == [False, True]
    found = sched.analyze(sets, order="audsley")
    assert found.schedulable.tolist() == [True, True]
    assert found.priorities is not None and found.priorities.tolist() == [[1, 0], [1, 0]]
    assert found.response_times.tolist() == [[108, 52], [45, 3]]
    assert found[1].priorities == [1, 0]
    with pytest.raises(stillcore.Error, match="a test by priority"):
        sched.analyze(sets, "edf-qpa", order="dm")
    with pytest.raises(stillcore.Error, match="order"):
        sched.analyze(sets, order="alphabetical")


@pytest.mark.parametrize("threads", [None, 1, 3])
def test_stored_simulations(threads: int | None) -> None:
    names = ("period", "deadline", "cost", "jitter", "blocking")
    rows = [[{name: one[name][at] for name in names} for at in range(len(one["cost"]))] for one in SIMULATED]
    sets = sched.TaskSets.from_dicts([{"tasks": tasks} for tasks in rows])
    verdicts = sched.analyze(sets, threads=threads)
    assert verdicts.schedulable.tolist() == [one["schedulable"] for one in SIMULATED]
    widest = max(len(one["cost"]) for one in SIMULATED)
    assert verdicts.response_times.shape == (len(SIMULATED), widest)
    for at, one in enumerate(SIMULATED):
        assert verdicts[at].response_times == one["response"]
        missing = verdicts.response_times[at, len(one["cost"]) :]
        assert (missing == -1).all()
    # The same through arrays, for those of one width.
    same = [one for one in SIMULATED if len(one["cost"]) == 7]
    columns = {name: [one[name] for one in same] for name in names}
    arrays = sched.TaskSets.from_arrays(**columns)
    assert [answer.response_times for answer in sched.analyze(arrays)] == [one["response"] for one in same]


def test_sets_come_back_as_they_went_in() -> None:
    given = {"unit": "us", "cores": 2, "tasks": [{"period": 40, "cost": 3, "core": 1}, {"period": 20, "cost": 5, "priority": 0}]}
    given["tasks"][0]["priority"] = 1
    sets = sched.TaskSets.from_dicts([given])
    assert sets.period.tolist() == [[40, 20]] and sets.core.tolist() == [[1, 0]]
    assert sets.deadline.tolist() == sets.period.tolist() and sets.jitter.tolist() == [[0, 0]]
    assert (sets.units, sets.cores) == (["us"], [2])
    # By priority.
    assert [task.period for task in sets.to_dicts()[0].tasks] == [20, 40]
    again = pickle.loads(pickle.dumps(sets))
    assert again.to_jsonl() == sets.to_jsonl()
    assert sched.analyze(given).response_times.tolist() == [[3, 5]]


@pytest.mark.parametrize("unit", ["ns", "us", "ms"])
def test_answers_are_in_the_unit_of_the_question(unit: str) -> None:
    sets = sched.TaskSets.from_arrays([[10, 20]], [[3, 5]], jitter=[[1, 2]], unit=unit)
    assert sched.analyze(sets).response_times.tolist() == [[4, 10]]


def test_a_set_does_not_depend_on_how_it_is_drawn() -> None:
    spec = {"tasks": 12, "utilization": 0.9, "periods": "log-uniform:1ms:1s"}
    whole = sched.generate(spec, seed=5, lo=0, hi=60)
    for lo, hi, threads in ((0, 13, 1), (13, 40, 4), (40, 60, None)):
        part = sched.generate(spec, seed=5, lo=lo, hi=hi, threads=threads)
        assert part.to_jsonl() == whole[lo:hi].to_jsonl()
    assert (sched.generate(spec, seed=6, lo=0, hi=60).period != whole.period).any()
    load = (whole.cost / whole.period).sum(axis=1)
    assert np.allclose(load, 0.9, atol=1e-4)
    assert (sched.generate(spec, seed=5, hi=3, jitter="72us").jitter == 72_000).all()


def test_cores_are_assigned_and_global_tests_bind_none() -> None:
    sets = sched.generate({"tasks": 12, "utilization": 2.4, "cores": 4}, seed=2, hi=40)
    alone = sched.analyze(sets)
    placed = sched.analyze(sets, partition="wfd")
    assert not alone.schedulable.any() and placed.schedulable.any()
    assert set(placed.cores.ravel()) == {0, 1, 2, 3}
    everywhere = sched.analyze(sets, "gedf-gfb")
    assert everywhere.schedulable.any()
    with pytest.raises(stillcore.Error, match="binds no task"):
        sched.analyze(sets, "gedf-gfb", partition="wfd")


def contended(cores: int, **more: object) -> dict:
    """A task a core, each with one request of 100 a job for the same resource."""
    request = {"resource": 0, "length": 100}
    task = {"period": 10_000, "cost": 1_000, "requests": [request], **more}
    return {"cores": cores, "tasks": [{**task, "core": core} for core in range(cores)]}


@pytest.mark.parametrize("cores", [1, 2, 5])
def test_locks_block(cores: int) -> None:
    verdicts = sched.analyze(contended(cores), locks="fifo-np")
    # In FIFO order each other core is in front at most once.
    assert verdicts.spin.tolist() == [[100 * (cores - 1)] * cores]
    assert (verdicts.blocking == verdicts.spin + verdicts.arrival).all()
    assert verdicts.response_times.tolist() == [[1_000 + 100 * (cores - 1)] * cores]
    once = sched.analyze(contended(cores, response_time=2_000), locks="fifo-np", blocking_only=True)
    assert (once.spin == verdicts.spin).all()


def test_a_lock_of_one_core_has_a_ceiling_on_request() -> None:
    request = {"requests": [{"resource": 0, "length": 300}]}
    low = {"period": 5_000, "cost": 400, "priority": 40, **request}
    urgent = {"period": 1_000, "cost": 50, "deadline": 60, "priority": 80}
    line = {"unit": "us", "policy": "linux", "tasks": [low, urgent, {**low, "period": 9_000, "priority": 20}]}
    assert not sched.analyze(line, locks="fifo-np").schedulable[0]
    assert sched.analyze(line, locks="fifo-np", ceilings=True).schedulable[0]
    with pytest.raises(stillcore.Error, match="with task-fair"):
        sched.analyze(line, locks="task-fair", ceilings=True)
    with pytest.raises(stillcore.Error, match="no protocol"):
        sched.analyze(ONE, ceilings=True)


def test_fair_servers_are_reservations() -> None:
    line = {"unit": "ms", "cores": 2, "tasks": [{"period": 1_000, "cost": 905}] * 2}
    assert not sched.analyze(line, "sched-deadline").schedulable[0]
    assert sched.analyze(line, "sched-deadline", fair_server_us=(0, 1)).schedulable[0]
    with pytest.raises(stillcore.Error, match="runtime no longer"):
        sched.analyze(line, "sched-deadline", fair_server_us=(2, 1))


def test_named_cores_are_not_overruled() -> None:
    with pytest.raises(stillcore.Error, match="names its core"):
        sched.analyze({"cores": 2, "tasks": [{"period": 10, "cost": 1, "core": 1}]}, partition="ff")


def test_what_a_test_does_not_know_is_refused() -> None:
    with pytest.raises(stillcore.Error, match="requests for resources") as raised:
        sched.analyze([ONE, contended(2)])
    assert raised.value.where == "sets[1]"
    with pytest.raises(stillcore.Error, match="whose budget"):
        sched.budget(contended(2))


def test_drawn_requests() -> None:
    shared = {"resources": 2, "section": ["10us", "100us"], "access": 0.5, "readers": 0.5}
    spec = {"tasks": 4, "utilization": 0.4, "cores": 4, "per_core": True, "sharing": shared}
    sets = sched.generate(spec, seed=1, hi=20)
    requests = [request for one in sets.to_dicts() for task in one.tasks for request in task.get("requests", [])]
    assert 0.3 < len(requests) / (20 * 16 * 2) < 0.7
    assert {request.get("access", "write") for request in requests} == {"read", "write"}
    assert sched.analyze(sets, locks="phase-fair").blocking.max() > 0


@pytest.mark.parametrize("test", sched.BUDGET_TESTS)
def test_the_budget_is_the_last_jitter_that_holds(test: str) -> None:
    sets = sched.generate({"tasks": 6, "utilization": 0.75, "deadlines": [0.8, 1.0]}, seed=9, hi=25)
    budgets = sched.budget(sets, test).budget_ns
    assert ((budgets >= 0) == sched.analyze(sets, test).schedulable).all() and (budgets > 0).any()
    for at in np.flatnonzero(budgets >= 0):
        one = sets[int(at) : int(at) + 1]
        holds = [bool(sched.analyze(one, test, jitter=int(budgets[at]) + more).schedulable[0]) for more in (0, 1)]
        assert holds == [True, False]


def test_the_cost_budget_is_a_factor() -> None:
    sets = sched.TaskSets.from_arrays([[10_000, 20_000]], [[2_000, 4_000]])
    budget = sched.cost_budget(sets)
    # Twice the cost of both is a load of 0.8; 2.5 times is 1, and harmonic periods can be filled.
    assert budget.factor_ppm.tolist() == [2_500_000]
    assert budget.factors_ppm.tolist() == [[4_000_000, 4_000_000]]
    assert sched.cost_budget(sets, "edf-qpa").factor_ppm.tolist() == [2_500_000]


@pytest.mark.parametrize("test", ["fp-rta", "edf-qpa"])
def test_certificates_prove_verdicts_and_nothing_else(test: str) -> None:
    sets = sched.generate({"tasks": 5, "utilization": 0.93}, seed=4, hi=30)
    verdicts = sched.analyze(sets, test, certificate=True)
    if test == "fp-rta":
        assert 0 < verdicts.schedulable.sum() < len(sets)
    for at, proof in enumerate(verdicts.certificates):
        assert proof.schedulable == verdicts.schedulable[at]
        assert sched.check_certificate(proof, sets, at) is None
    assert "another task" in sched.check_certificate(verdicts.certificates[0], sets, 1)
    crowded = sched.TaskSets.from_jsonl('{"tasks": [{"period": 10, "cost": 8}, {"period": 10, "cost": 8}]}')
    assert sched.analyze(crowded, test, certificate=True, partition="ff").certificates == [None]
    turned = {**verdicts.certificates[0], "schedulable": not verdicts.schedulable[0]}
    assert sched.check_certificate(turned)
    with pytest.raises(stillcore.Error):
        sched.check_certificate({"schema": "something"})


def test_overheads_make_it_worse() -> None:
    sets = sched.generate({"tasks": 8, "utilization": 0.8}, seed=3, hi=40)
    plain = sched.analyze(sets)
    loaded = sched.analyze(sets, overheads={"context_switch_ns": 200_000})
    assert loaded.schedulable.sum() < plain.schedulable.sum()
    assert not (loaded.schedulable & ~plain.schedulable).any()
    more = sched.analyze(sets, "edf-qpa", jitter="2ms")
    pessimistic = sched.analyze(sets, "edf-qpa", jitter="2ms", edf_jitter="td")
    assert not (pessimistic.schedulable & ~more.schedulable).any()


def test_a_late_job_is_as_probable_as_the_command_says(small: Path) -> None:
    # The same run and sets as in crates/cli/tests/cmd/sched-more.trycmd.
    sets = [
        {"unit": "ms", "tasks": [{"period": 100, "cost": 20}, {"period": 200, "cost": 30}]},
        {"unit": "ms", "tasks": [{"period": 10, "cost": 1}]},
    ]
    likelihoods = sched.probabilistic(sets, small, latest="40ms")
    assert (likelihoods.wakeups, likelihoods.longest_ns > 21 * MS) == (226, True)
    assert likelihoods.budgets_ns.tolist() == [[80 * MS, 130 * MS], [9 * MS, -1]]
    assert likelihoods.releases.tolist() == [[1, 2], [5, -1]]
    assert likelihoods.late_at_most[0] == pytest.approx([0.01327433628318584, 0.02654867256637168])
    assert likelihoods.late_at_most[1, 0] == pytest.approx(0.3120890875964947)
    assert np.isnan(likelihoods.late_at_most[1, 1])
    assert likelihoods.hold(0.5).tolist() == [True, True]
    assert likelihoods.hold(0.1).tolist() == [True, False]
    with pytest.raises(stillcore.Error, match="which was observed"):
        sched.probabilistic(sets, small)
    with pytest.raises(stillcore.Error, match="self-suspension"):
        sched.probabilistic({"tasks": [{"period": 10**9, "cost": 1, "suspension": 1}]}, small)


def test_the_share_of_real_time_tasks() -> None:
    sets = {"unit": "ms", "tasks": [{"period": 10, "cost": 10}]}
    assert not sched.analyze(sets, "sched-deadline").schedulable[0]
    assert sched.analyze(sets, "sched-deadline", rt_runtime_us=-1).schedulable[0]
    with pytest.raises(stillcore.Error, match="rt_period_us"):
        sched.analyze(sets, "sched-deadline", rt_period_us=0)


def test_no_set_and_an_empty_one() -> None:
    verdicts = sched.analyze([])
    assert len(verdicts) == 0 and verdicts.response_times.shape == (0, 0)
    assert sched.analyze({"tasks": []}).schedulable.tolist() == [True]
    assert sched.generate(lo=3, hi=3).to_dicts() == []


@pytest.mark.parametrize(
    ("ask", "where"),
    [
        (lambda: sched.analyze([ONE, {"tasks": [{"period": 0, "cost": 1}]}]), "line 2, tasks[0].period"),
        (lambda: sched.analyze({"tasks": [{"period": 10, "cost": -1}]}), "line 1, tasks[0].cost"),
        (lambda: sched.analyze({"tasks": [{"period": 10, "cost": 1, "core": 1}]}), "line 1, tasks[0].core"),
        (lambda: sched.analyze({"tasks": [{"period": float("nan"), "cost": 1}]}), "sets"),
        (lambda: sched.analyze('{"tasks":[{"per'), "line 1, the line"),
        (lambda: sched.analyze(ONE, "rta"), "test"),
        (lambda: sched.analyze(ONE, locks="mutex"), "locks"),
        (lambda: sched.analyze(ONE, partition="random"), "partition"),
        (lambda: sched.analyze(ONE, blocking_only=True), "blocking_only"),
        (lambda: sched.analyze(ONE, jitter=-1), "jitter"),
        (lambda: sched.analyze(ONE, jitter="72"), "time"),
        (lambda: sched.analyze(ONE, overheads={"tick_ns": 2**60}), "overheads, tick_ns"),
        (lambda: sched.analyze(ONE, certificate=True, locks="fifo-np"), "certificate"),
        (lambda: sched.analyze(ONE, threads=0), "threads"),
        (lambda: sched.budget(ONE, "gedf-gfb"), "budget_test"),
        (lambda: sched.TaskSets.from_arrays([[10]], [[2**53]]), "cost[0, 0]"),
        (lambda: sched.TaskSets.from_arrays([[10.5]], [[1]]), "period[0, 0]"),
        (lambda: sched.TaskSets.from_arrays([[10]], [[1, 2]]), "cost"),
        (lambda: sched.TaskSets.from_arrays([[10]], [[1]], core=[[2]]), "core[0, 0]"),
        (lambda: sched.generate({"tasks": 0}), "tasks"),
        (lambda: sched.generate({"periods": "normal:1ms:2ms"}), "periods"),
        (lambda: sched.generate({"task": 3}), "spec"),
        (lambda: sched.generate(lo=3, hi=2), "hi"),
    ],
)
def test_bad_input_is_named(ask: object, where: str) -> None:
    with pytest.raises(stillcore.Error) as raised:
        ask()
    assert raised.value.where == where
    assert raised.value.what and raised.value.expected


def test_late_costs_are_no_bad_input() -> None:
    assert not sched.analyze({"tasks": [{"period": 10, "cost": 11}]}).schedulable.any()


def _drawn(sets: int) -> sched.TaskSets:
    return sched.generate({"tasks": 12, "utilization": 0.85}, seed=3, hi=sets, jitter="50us")


def test_columns_give_the_verdicts_of_sets() -> None:
    sets = _drawn(300)
    names = ("period", "cost", "deadline", "jitter")
    matrices = {name: getattr(sets, name) for name in names}
    rows = {name: matrix.reshape(-1) for name, matrix in matrices.items()}
    rows["set"] = np.repeat(np.arange(len(sets)) * 3, 12)
    for test in ("fp-rta", "edf-qpa", "edf-rta"):
        expected = sched.analyze(sets, test, jitter="1ms")
        for columns in (matrices, rows):
            found = sched.analyze_columns(columns, test, jitter="1ms", threads=2)
            assert found.schedulable.tolist() == expected.schedulable.tolist()
            assert found.rounds.tolist() == expected.rounds.tolist()
            assert found.response_times.shape == columns["period"].shape
            assert found.response_times.reshape(-1).tolist() == expected.response_times.reshape(-1).tolist()
            assert not found.undecided.any()
    assert 0 < sched.analyze(sets, "fp-rta", jitter="1ms").schedulable.sum() < len(sets)


def test_columns_of_tables() -> None:
    import pandas
    import polars
    import pyarrow

    columns = {"set": [1, 1, 2], "period": [10, 20, 8], "cost": [3, 5, 3], "priority": [2, 1, 0]}
    expected = sched.analyze_columns(columns)
    assert expected.response_times.tolist() == [8, 5, 3]
    for table in (pandas.DataFrame(columns), polars.DataFrame(columns), pyarrow.table(columns)):
        assert sched.analyze_columns(table).response_times.tolist() == [8, 5, 3]
    assert sched.analyze_columns({name: np.array(values, np.uint16) for name, values in columns.items()}).schedulable.all()


@pytest.mark.parametrize(
    ("columns", "where"),
    [
        ({"set": [1, 2, 1], "period": [9, 9, 9], "cost": [1, 1, 1]}, "set[2]"),
        ({"set": [1, 1, 2], "period": [9, 9, 9], "cost": [1, 0, 1]}, "set 1, tasks[1].cost"),
        ({"period": [[9, 9], [9, -4]], "cost": [[1, 1], [1, 1]]}, "row 2, tasks[1].period"),
        ({"period": [9, 9], "cost": [1, 1]}, "columns"),
        ({"set": [1], "cost": [1]}, "columns"),
        ({"set": [1], "period": [9], "cost": [1], "deadine": [8]}, "columns"),
        ({"set": [1, 1], "period": [9, 9], "cost": [1]}, "cost"),
        ({"set": [1], "period": [9.5], "cost": [1]}, "period[0]"),
        ({"set": [1], "period": [2**63], "cost": [1]}, "period[0]"),
        ({"set": [1, 1], "cores": [1, 2], "period": [9, 9], "cost": [1, 1]}, "set 1, tasks[1].cores"),
        (7, "columns"),
    ],
)
def test_columns_that_are_no_sets(columns: object, where: str) -> None:
    with pytest.raises(stillcore.Error) as error:
        sched.analyze_columns(columns)
    assert error.value.where == where


def test_columns_are_not_copied() -> None:
    # Memory at its highest, by the kernel's account, in a process of its own, in columns.
    text = """
import numpy as np
from stillcore import sched
rows = 40 * 100_000
columns = {"period": np.full((100_000, 40), 10**9), "cost": np.full((100_000, 40), 10**6),
           "deadline": np.full((100_000, 40), 10**9), "jitter": np.zeros((100_000, 40), np.int64) + 1}
peak = lambda: next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
sched.analyze_columns({name: column[:256] for name, column in columns.items()}, threads=1)
before = peak()
assert sched.analyze_columns(columns, threads=1).schedulable.all()
print((peak() - before) / (rows * 8))
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("no account of memory here")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    # The answer is two columns, and some sets at a time are on their way; copies of the columns would be four more.
    assert float(done.stdout) < 3.5, done.stdout
