"""Schedulability: task sets in NumPy, the tests of ``stillcore sched`` by their names, studies over many machines.

Everything here is a pure function of its arguments. Long work runs without the interpreter's lock, on as many threads as there are CPUs
unless ``threads`` says otherwise; the answers do not depend on how many.

A value of a task stands in a matrix: a row a set, a column a task in the order it was given. ``-1`` is "none": no response time
within the deadline, no such task in a smaller set. Sources of every test: ``docs/schedulability.md``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _native
from ._columns import ColumnVerdicts, whole_numbers
from ._columns import analyze_columns as _analyze_columns
from ._error import Error
from ._native import TaskSets as _Native
from ._probabilistic import Likelihoods
from ._record import Record, loads

__all__ = [
    "BUDGET_TESTS",
    "LOCKS",
    "ORDERS",
    "PARTITIONS",
    "TESTS",
    "Budget",
    "ColumnVerdicts",
    "CostBudget",
    "Likelihoods",
    "Study",
    "TaskSets",
    "Verdicts",
    "analyse_batch",
    "analyze",
    "analyze_columns",
    "budget",
    "check_certificate",
    "cost_budget",
    "generate",
    "probabilistic",
    "read_declaration",
    "study",
]

_NAMES = _native.names()
#: Names of the tests of :func:`analyze`.
TESTS: tuple[str, ...] = tuple(_NAMES["test"])
#: Names of the locking protocols.
LOCKS: tuple[str, ...] = tuple(_NAMES["locks"])
#: Names of the ways to assign cores.
PARTITIONS: tuple[str, ...] = tuple(_NAMES["partition"])
#: Names of the ways to give priorities.
ORDERS: tuple[str, ...] = tuple(_NAMES["order"])
#: Names of the tests of :func:`budget`.
BUDGET_TESTS: tuple[str, ...] = tuple(_NAMES["budget_test"])


_Int64 = NDArray[np.int64]


class TaskSets:
    """Task sets, checked. Made by :meth:`from_arrays`, :meth:`from_dicts`, :meth:`from_jsonl` and :func:`generate`.

    ``period``, ``deadline``, ``cost``, ``jitter``, ``blocking`` and ``core`` are int64 matrices of shape (sets, most tasks of a set), in
    the unit of each set, ``-1`` where a set has fewer tasks; each access makes a new one.
    """

    def __init__(self, native: _Native) -> None:
        self._native = native

    @staticmethod
    def from_arrays(
        period: ArrayLike,
        cost: ArrayLike,
        *,
        deadline: ArrayLike | None = None,
        jitter: ArrayLike | None = None,
        blocking: ArrayLike | None = None,
        core: ArrayLike | None = None,
        priority: ArrayLike | None = None,
        cores: int = 1,
        unit: Literal["ns", "us", "ms"] = "ns",
    ) -> TaskSets:
        """Sets from whole numbers: each argument of shape (sets, tasks), or (tasks,) for a single set.

        Args:
            period: periods, at least 1.
            cost: worst-case execution times, at least 1.
            deadline: relative deadlines, at least 1; the periods where left out.
            jitter: release jitters; 0 where left out.
            blocking: times for which lower priorities may block; 0 where left out.
            core: the core of each task, from 0; 0 where left out.
            priority: 0 is the highest; by the order of the columns where left out.
            cores: cores of every set.
            unit: the unit of all times and of the answers.

        Raises:
            Error: a value out of its range (times end at 2**53 - 1 ns), not whole, or arrays of different shapes.
        """
        given = {
            "period": period,
            "cost": cost,
            "deadline": deadline,
            "jitter": jitter,
            "blocking": blocking,
            "core": core,
            "priority": priority,
        }
        fields = {name: _whole(name, values) for name, values in given.items() if values is not None}
        return TaskSets(_native.sets_from_arrays(fields, cores, unit))

    @staticmethod
    def from_dicts(sets: Sequence[Mapping[str, Any]]) -> TaskSets:
        """Sets as ``stillcore sched analyze`` reads them: ``{"unit": "us", "cores": 2, "tasks": [{"period": 1000, "cost": 20}]}``.

        Raises:
            Error: a field out of its range; ``where`` counts sets as lines, from 1.
        """
        try:
            lines = [json.dumps(one, allow_nan=False) for one in sets]
        except (TypeError, ValueError) as error:
            raise Error(str(error), "sets", "dictionaries of whole numbers, lists and texts") from error
        return TaskSets.from_jsonl("\n".join(lines))

    @staticmethod
    def from_jsonl(text: str) -> TaskSets:
        """Sets from text, a JSON object a line.

        Raises:
            Error: a line that is no task set; ``where`` names line and field.
        """
        return TaskSets(_native.sets_from_jsonl(text))

    def to_jsonl(self) -> str:
        """The sets as text, a JSON object a line, tasks by priority: what ``stillcore sched analyze`` reads."""
        return self._native.to_jsonl()

    def to_dicts(self) -> list[Record]:
        """The sets as dictionaries."""
        return [loads(line) for line in self.to_jsonl().splitlines()]

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, which: slice) -> TaskSets:
        start, stop, step = which.indices(len(self))
        if step != 1:
            raise Error(f"a step of {step}", "slice", "neighbouring sets")
        return TaskSets(self._native.part(start, max(start, stop)))

    def __repr__(self) -> str:
        return repr(self._native)

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return (TaskSets.from_jsonl, (self.to_jsonl(),))

    @property
    def units(self) -> list[str]:
        """The unit of the times of each set."""
        return self._native.units

    @property
    def cores(self) -> list[int]:
        """The number of cores of each set."""
        return self._native.cores

    @property
    def period(self) -> _Int64:
        """Periods."""
        return self._native.period

    @property
    def deadline(self) -> _Int64:
        """Relative deadlines."""
        return self._native.deadline

    @property
    def cost(self) -> _Int64:
        """Worst-case execution times."""
        return self._native.cost

    @property
    def jitter(self) -> _Int64:
        """Release jitters."""
        return self._native.jitter

    @property
    def blocking(self) -> _Int64:
        """Blocking times."""
        return self._native.blocking

    @property
    def core(self) -> _Int64:
        """Cores, from 0."""
        return self._native.core


def _whole(name: str, values: ArrayLike) -> _Int64:
    """The values as a matrix of whole numbers; a value that is not one is an error, not rounded."""
    array = np.atleast_2d(np.asarray(values))
    if array.ndim != 2:
        raise Error(f"{array.ndim} dimensions", name, "sets and tasks")
    return np.ascontiguousarray(whole_numbers(name, array))


def _sets(sets: Any) -> _Native:
    if isinstance(sets, TaskSets):
        return sets._native
    if isinstance(sets, Mapping):
        return TaskSets.from_dicts([sets])._native
    if isinstance(sets, str):
        return TaskSets.from_jsonl(sets)._native
    return TaskSets.from_dicts(sets)._native


def _time_ns(name: str, time: int | str) -> int:
    if isinstance(time, str):
        return _native.read_time(time)
    if time < 0:
        raise Error(str(time), name, "ns from 0 on, or a text such as 72us")
    return int(time)


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What a test says of sets. Matrices are of shape (sets, most tasks of a set), times in the unit of each set.

    Attributes:
        schedulable: bool, a value a set: every response time is known and within its deadline. With ``blocking_only`` it means nothing.
        response_times: bounds from arrival, own release jitter included; ``-1`` beyond the deadline, or not decided.
        blocking: all blocking charged to the task, spinning and arrival blocking included.
        spin: the part of it spent spinning for locks.
        arrival: the part of it that lock holders cause on arrival.
        cores: the core of each task.
        undecided: 1 where a task was given up at the cap on rounds and counts as late, else 0.
        rounds: uint64, a value a set: how often a busy-window equation was evaluated.
        certificates: for each set the numbers that prove its verdict, or ``None``; only where asked for.
        priorities: each task's place in the order of priority, 0 the highest; only with ``order``.
    """

    schedulable: NDArray[np.bool_]
    response_times: _Int64
    blocking: _Int64
    spin: _Int64
    arrival: _Int64
    cores: _Int64
    undecided: _Int64
    rounds: NDArray[np.uint64]
    certificates: list[Record | None] | None = None
    priorities: _Int64 | None = None

    def __len__(self) -> int:
        return len(self.schedulable)

    def __getitem__(self, at: int) -> Record:
        """The verdict on one set, with the keys of ``stillcore sched analyze --json``; ``None`` stands for "none"."""
        there = self.cores[at] >= 0
        times = [None if time < 0 else int(time) for time in self.response_times[at][there]]
        verdict: dict[str, Any] = {"schedulable": bool(self.schedulable[at]), "response_times": times}
        for name in ("blocking", "spin", "arrival", "cores"):
            verdict[name] = getattr(self, name)[at][there].tolist()
        verdict["undecided"] = np.flatnonzero(self.undecided[at] > 0).tolist()
        verdict["rounds"] = int(self.rounds[at])
        if self.certificates is not None:
            verdict["certificate"] = self.certificates[at]
        if self.priorities is not None:
            verdict["priorities"] = self.priorities[at][there].tolist()
        return Record(verdict)

    def __iter__(self) -> Iterator[Record]:
        return (self[at] for at in range(len(self)))


def analyze(
    sets: Any,
    test: str = "fp-rta",
    locks: str | None = None,
    partition: str | None = None,
    *,
    order: str | None = None,
    ceilings: bool = False,
    jitter: int | str = 0,
    edf_jitter: Literal["d", "td"] = "d",
    overheads: Mapping[str, int] | None = None,
    rt_runtime_us: int = 950_000,
    rt_period_us: int = 1_000_000,
    fair_server_us: tuple[int, int] = (50_000, 1_000_000),
    blocking_only: bool = False,
    semantics: str = "schedcat",
    certificate: bool = False,
    threads: int | None = None,
) -> Verdicts:
    """Tests task sets: ``stillcore sched analyze``.

    Args:
        sets: a :class:`TaskSets`, or what makes one: a dictionary, a sequence of them, JSON lines.
        test: one of :data:`TESTS`.
        locks: the locking protocol under which tasks wait for shared resources, one of :data:`LOCKS`.
        partition: assign cores first by bin packing, one of :data:`PARTITIONS`.
        order: give priorities anew, core by core, one of :data:`ORDERS`: by period, deadline, deadline less jitter, or by
            Audsley's search for an order that holds.
        ceilings: resources that one core alone uses are held at their ceiling, not without preemption (the MSRP's are anyway).
        jitter: release jitter on top of every task's own, ns or a text such as ``"72us"``.
        edf_jitter: how it counts under EDF: ``d`` (D - J, exact) or ``td`` (T - J as well, as SchedCAT does).
        overheads: what the kernel costs, ns: ``{"context_switch_ns": 2000}``; for ``fp-rta``, with locks too, and ``edf-qpa``.
        rt_runtime_us: what tasks of ``SCHED_DEADLINE`` may take of each core in every ``rt_period_us``, ``-1`` all (``sched-deadline``).
        rt_period_us: see there; the kernel's ``sched_rt_runtime_us`` and ``sched_rt_period_us``.
        fair_server_us: runtime and period of each core's fair server, which is a reservation, too (since Linux 6.12); ``(0, 1)`` for none.
        blocking_only: one pass of blocking from the response times given in the sets, and no verdict.
        semantics: whose counting that pass follows.
        certificate: add to every verdict numbers that prove it (``fp-rta``, ``edf-qpa``).
        threads: how many; as many as there are CPUs where left out.

    Returns:
        The verdicts, in the order of the sets.

    Raises:
        Error: a set that is none, or one that the test says nothing of: ``where`` names it.

    >>> answer = analyze({"tasks": [{"period": 10, "cost": 3}, {"period": 20, "cost": 5}]})
    >>> answer.response_times
    array([[3, 8]])
    """
    asked = {
        "test": test,
        "partition": partition,
        "order": order,
        "locks": locks,
        "ceilings": ceilings,
        "blocking_only": blocking_only,
        "semantics": semantics,
        "extra_jitter_ns": _time_ns("jitter", jitter),
        "edf_jitter": edf_jitter,
        "rt_runtime_us": rt_runtime_us,
        "rt_period_us": rt_period_us,
        "fair_server_us": tuple(fair_server_us),
        "overheads": None if overheads is None else json.dumps(dict(overheads)),
        "certificate": certificate,
        "threads": threads,
    }
    answer = _native.analyze(_sets(sets), asked)
    proofs = answer.pop("certificates", None)
    if proofs is not None:
        proofs = [None if proof is None else loads(proof) for proof in proofs]
    return Verdicts(**answer, certificates=proofs)


def analyze_columns(
    columns: Any,
    test: str = "fp-rta",
    *,
    unit: Literal["ns", "us", "ms"] = "ns",
    jitter: int | str = 0,
    threads: int | None = None,
) -> ColumnVerdicts:
    """Tests task sets that stand in columns of whole numbers, as ``stillcore sched analyze`` tests those of a Parquet or Arrow table.

    Columns of int64 whose values lie one behind the other are read where they lie: nothing of them is copied. Other types of whole
    numbers, columns in several chunks and columns of a matrix in Fortran's order are copied once.

    Args:
        columns: arrays by name, or a table whose columns NumPy takes (Arrow, Polars, pandas). Either matrices with a row a set and a
            column a task, or columns with a row a task and one named ``set``, in whose ascending order the rows are. Keys are those of
            a task in JSON: ``period`` and ``cost``, and if there ``deadline``, ``jitter``, ``blocking``, ``core``, ``priority``,
            ``suspension``, ``non_preemptive``; ``cores`` is of the set, the same in all its rows.
        test: one of :data:`TESTS`. ``fp-rta`` and ``edf-qpa`` of sets on one core are the fast ones.
        unit: the unit of all times and of the answers.
        jitter: release jitter on top of every task's own, ns or a text such as ``"72us"``.
        threads: how many; as many as there are CPUs where left out.

    Raises:
        Error: a set that is none, or one that the test says nothing of: ``where`` names it.

    >>> answer = analyze_columns({"set": [1, 1, 2], "period": [10, 20, 8], "cost": [3, 5, 9]})
    >>> answer.schedulable, answer.response_times
    (array([ True, False]), array([ 3,  8, -1]))
    """
    return _analyze_columns(columns, test, unit, _time_ns("jitter", jitter), threads)


def check_certificate(certificate: Mapping[str, Any] | str, question: Any = None, at: int = 0) -> str | None:
    """Checks the numbers that prove a verdict, by substitution, without the analysis that found them: ``sched check-certificate``.

    Args:
        certificate: one of :attr:`Verdicts.certificates`, or its JSON.
        question: task sets; the certificate then has to be about the tasks of set ``at``.
        at: which set.

    Returns:
        ``None`` where it proves its verdict, else why it does not.

    Raises:
        Error: what is given is no certificate.
    """
    text = certificate if isinstance(certificate, str) else json.dumps(certificate)
    return _native.check_certificate(text, None if question is None else _sets(question), at)


_USUAL = {"tasks": 40, "utilization": 0.8, "periods": "uniform:10ms:100ms"}


def generate(
    spec: Mapping[str, Any] | None = None,
    seed: int = 1,
    lo: int = 0,
    hi: int = 1,
    *,
    jitter: int | str = 0,
    threads: int | None = None,
) -> TaskSets:
    """Random task sets: set i of a seed is the same on every machine and in every order.

    Args:
        spec: keys of ``[generate]`` in ``docs/sched-studies.md``, the options of ``stillcore sched generate``: ``tasks`` (40),
            ``utilization`` (0.8), ``utilizations`` (``uunifast``, ``randfixedsum``), ``periods`` (``uniform:10ms:100ms``), ``deadlines``
            (``[1, 1]``, shares of the period), ``cores`` (1), ``per_core`` (false), ``sharing`` (``{"resources": 1, "section": ["100us", "100us"],
            "access": 1, "requests": 1, "readers": 0}``).
        seed: what all numbers follow from.
        lo: number of the first set.
        hi: number behind the last.
        jitter: release jitter of every task, ns or a text such as ``"72us"``.
        threads: how many; as many as there are CPUs where left out.

    Returns:
        The sets, in ns, tasks in deadline-monotonic order.

    Raises:
        Error: a specification that makes no sense; ``where`` names the key.

    >>> generate({"tasks": 3}, seed=7, lo=10, hi=12)
    <stillcore.sched.TaskSets: 2 sets of at most 3 tasks>
    """
    text = _json("spec", {**_USUAL, **(spec or {})})
    return TaskSets(_native.generate(text, seed, lo, hi, _time_ns("jitter", jitter), threads))


def _json(name: str, value: Any) -> str:
    try:
        return json.dumps(value, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Error(str(error), name, "numbers, texts, lists and dictionaries") from error


@dataclass(frozen=True, eq=False)
class Budget:
    """How much release jitter sets tolerate on top of their own, ns; ``-1`` is "none".

    Attributes:
        budget_ns: a value a set: the most that may be added to every task; ``-1`` where the set is late as it is.
        limiting_task: a value a set: the task that is late first, by its place; ``-1`` where the test does not tell tasks apart.
        budgets_ns: of shape (sets, tasks): added to the jitter of all, and this task is still in time.
    """

    budget_ns: _Int64
    limiting_task: _Int64
    budgets_ns: _Int64


def budget(
    sets: Any, test: str = "fp-rta", partition: str | None = None, *, threads: int | None = None
) -> Budget:
    """The largest release jitter, say wake-up latency of a core, that sets tolerate: ``sched budget --of jitter``. Exact to the ns.

    Args:
        sets: as of :func:`analyze`, without self-suspension and requests.
        test: one of :data:`BUDGET_TESTS`.
        partition: assign cores first, one of :data:`PARTITIONS`.
        threads: how many; as many as there are CPUs where left out.

    Raises:
        Error: as of :func:`analyze`.
    """
    return Budget(**_native.budget_jitter(_sets(sets), test, partition, threads))


@dataclass(frozen=True, eq=False)
class CostBudget:
    """How much more jobs may cost, as factors in millionths; ``-1`` is "none".

    Attributes:
        factor_ppm: a value a set: of all its costs together; below 1,000,000 where the set is late as it is.
        factors_ppm: of shape (sets, tasks): of each task's cost alone.
    """

    factor_ppm: _Int64
    factors_ppm: _Int64


def cost_budget(
    sets: Any, test: str = "fp-rta", partition: str | None = None, *, threads: int | None = None
) -> CostBudget:
    """The largest factor of costs at which sets are in time: ``sched budget --of cost``. Arguments and errors as of :func:`budget`."""
    return CostBudget(**_native.budget_cost(_sets(sets), test, partition, threads))


def probabilistic(
    sets: Any,
    run: str | os.PathLike[str],
    partition: str | None = None,
    *,
    latest: int | str | None = None,
    threads: int | None = None,
) -> Likelihoods:
    """How probable a late job is under fixed priorities, from all wake-ups that a run measured: ``docs/sched-probabilistic.md``.

    Args:
        sets: as of :func:`analyze`, without self-suspension, sections that cannot be preempted and requests.
        run: the directory of a run in which wake-ups were measured.
        partition: assign cores first, one of :data:`PARTITIONS`.
        latest: no release ever is later than this, measured or not: ns or a text such as ``"30ms"``; the shortest period of its core where
            left out.
        threads: how many; as many as there are CPUs where left out.

    Raises:
        Error: as of :func:`analyze`; no run, none with wake-ups, or a release later than ``latest`` was observed.
    """
    latest_ns = None if latest is None else _time_ns("latest", latest)
    return Likelihoods(**_native.probabilistic(_sets(sets), Path(run), partition, latest_ns, threads))


def read_declaration(spec: Mapping[str, Any] | str | os.PathLike[str]) -> Record:
    """A declared study, checked, with everything that it leaves open filled in.

    Args:
        spec: a dictionary, or the path of a TOML file such as ``experiments/replication-table7.toml``.

    Raises:
        Error: there is no such file, or its declaration makes no sense; ``where`` names the line or the field.
    """
    declaration: Record = loads(_declaration(spec))
    return declaration


def _declaration(spec: Mapping[str, Any] | str | os.PathLike[str]) -> str:
    if isinstance(spec, Mapping):
        return _native.read_declaration(_json("spec", spec), False, "spec")
    path = Path(spec)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Error(f"cannot read: {error.strerror or error}", str(path)) from error
    except UnicodeDecodeError as error:
        raise Error(f"byte {error.start} is no text", str(path), "a study in TOML") from error
    return _native.read_declaration(text, True, str(path))


def analyse_batch(
    spec: Mapping[str, Any] | str | os.PathLike[str],
    seed: int,
    lo: int,
    hi: int,
    at: int = 0,
    *,
    threads: int | None = None,
) -> NDArray[np.bool_]:
    """The unit of work of a study: what every curve says of the sets ``lo`` to ``hi - 1`` at one point of the axis.

    A pure function: the same on every machine, in every order and in every division of the sets.

    Args:
        spec: a declared study, as of :func:`study`.
        seed: what all sets follow from.
        lo: number of the first set.
        hi: number behind the last.
        at: which point of the axis, from 0.
        threads: how many; as many as there are CPUs where left out.

    Returns:
        Whether a set is schedulable, of shape (curves, hi - lo).

    Raises:
        Error: a declaration that makes no sense, or a test that says nothing of such sets.
    """
    return _native.analyse_batch(_declaration(spec), seed, lo, hi, at, threads)


@dataclass(frozen=True, eq=False)
class Study:
    """A study that has been carried out.

    Attributes:
        conclusions: shares with intervals, areas, pairs of curves: the object of ``stillcore sched study --json``.
        verdicts: bool, of shape (curves, points, sets): whether a curve's test accepts a set.
    """

    conclusions: Record
    verdicts: NDArray[np.bool_]


def study(
    spec: Mapping[str, Any] | str | os.PathLike[str],
    client: Any = None,
    *,
    sets: int | None = None,
    seed: int | None = None,
    block: int = 10_000,
    threads: int | None = None,
) -> Study:
    """Carries out a declared study, here or over the workers of a ``dask.distributed`` client.

    The result does not depend on where and in what order the pieces were worked on: a worker that dies has its pieces done by another,
    and every bit is as if all had been done here.

    Args:
        spec: a dictionary, or the path of a TOML file (``experiments/``; the keys are in ``docs/sched-studies.md``).
        client: a ``distributed.Client`` whose workers can import this package; none to work here.
        sets: sets a point; as declared where left out.
        seed: what all sets follow from; as declared where left out.
        block: sets of a piece.
        threads: how many for one piece; without a client as many as there are CPUs, with one 1, as workers have threads of their own.

    Raises:
        Error: as of :func:`analyse_batch`.
    """
    declaration = json.loads(_declaration(spec))
    if sets is not None:
        declaration["sets"] = sets
    if seed is not None:
        declaration["seed"] = seed
    text = _native.read_declaration(json.dumps(declaration), False, "spec")
    declaration = json.loads(text)
    if block < 1:
        raise Error(str(block), "block", "1 or more sets")
    points, n = len(declaration["axis"]["values"]), declaration["sets"]
    verdicts = np.zeros((len(declaration["curve"]), points, n), np.bool_)
    pieces = [(at, lo, min(lo + block, n)) for at in range(points) for lo in range(0, n, block)]
    for (at, lo, hi), bits in _worked(text, declaration["seed"], pieces, client, threads):
        verdicts[:, at, lo:hi] = np.unpackbits(bits, axis=1, count=hi - lo).astype(np.bool_)
    conclusions: Record = loads(_native.study_conclude(text, verdicts))
    return Study(conclusions, verdicts)


_Piece = tuple[int, int, int]


def _worked(
    text: str, seed: int, pieces: list[_Piece], client: Any, threads: int | None
) -> Iterator[tuple[_Piece, NDArray[np.uint8]]]:
    """Every piece with its bits, in whatever order they are done."""
    if client is None:
        for piece in pieces:
            yield piece, _work(piece, text, seed, threads)
        return
    from distributed import as_completed

    threads = 1 if threads is None else threads
    # Not pure: a key by content would let two studies share what one of them cancels.
    futures = client.map(_work, pieces, text=text, seed=seed, threads=threads, pure=False)
    place = {future.key: piece for future, piece in zip(futures, pieces, strict=True)}
    try:
        for future, bits in as_completed(futures, with_results=True):
            yield place[future.key], bits
    finally:
        client.cancel(futures)


def _work(piece: _Piece, text: str, seed: int, threads: int | None) -> NDArray[np.uint8]:
    """One piece, eight sets a byte."""
    at, lo, hi = piece
    return np.packbits(_native.analyse_batch(text, seed, lo, hi, at, threads), axis=1)
