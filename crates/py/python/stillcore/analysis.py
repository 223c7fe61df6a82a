"""The analysis: figures of samples, groups of runs against each other, exposure. Needs no run of stillcore's own.

Times are ns. A quantile is given only where ten effective samples lie above it (samples
that depend on each other are worth fewer); "none seen" is an upper bound; a maximum is an observed one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _native
from ._error import Error
from ._notebook import Comparison
from ._record import Record, loads
from ._run import Run

__all__ = [
    "Runs",
    "best",
    "chi2",
    "compare",
    "distribution",
    "exceedance",
    "exposure",
    "exposure_facts",
    "read_runs",
]


def _vector(name: str, values: ArrayLike | None, kind: type[np.generic]) -> Any:
    """The values as a vector of whole numbers; a value that is none is an error, not rounded."""
    if values is None:
        return None
    array = np.asarray(values)
    if array.ndim != 1:
        raise Error(f"{array.ndim} dimensions", name, "one: a value a sample")
    if array.size and array.dtype.kind not in "iuf":
        raise Error(f"values of type {array.dtype}", name, "whole numbers")
    with np.errstate(invalid="ignore"):
        whole = array.astype(kind)
    wrong = np.flatnonzero(whole != array)
    if len(wrong):
        raise Error(str(array[wrong[0]]), f"{name}[{wrong[0]}]", f"a whole number that {kind.__name__} holds")
    return np.ascontiguousarray(whole)


def distribution(
    values: ArrayLike,
    *,
    t_ns: ArrayLike | None = None,
    missed: ArrayLike | None = None,
    flags: ArrayLike | None = None,
    period_ns: int | None = None,
    probe: str = "wakeup",
    threshold_ns: int | None = None,
    spin_ns: int | None = None,
) -> Record:
    """What samples say: quantiles, exceedances, histogram, timeline; of noise the time stolen.

    Args:
        values: whole ns, shape (n,): latencies from the intended release, or lengths of gaps. Copied once.
        t_ns: when, whole ns, shape (n,); every ``period_ns`` where left out.
        missed: releases that passed unserved just before each, shape (n,). With ``period_ns`` they are charged with the lateness they
            had (``corrected_quantiles``, ``corrected_max_ns``).
        flags: bits as in samples files, shape (n,); what is flagged first, warm-up, clock step or not on its CPU is in no figure.
        period_ns: distance of the releases.
        probe: whose samples: ``wakeup`` and ``periodic`` have releases, ``noise`` has gaps.
        threshold_ns: shortest gap that was stored (noise).
        spin_ns: time that the busy loop ran (noise): what the share stolen is of.

    Returns:
        The keys of a window's ``distributions`` in ``analysis.json`` (``docs/run-directory.md``). Quantiles are nearest-rank
        (Hyndman and Fan 1996, definition 1), always an observed value.

    Raises:
        Error: values that are not whole, or arrays of different lengths.

    >>> distribution([5_000] * 99 + [90_000], period_ns=1_000_000).quantiles[0].value_ns
    5000
    """
    about = {"probe": probe, "period_ns": period_ns, "threshold_ns": threshold_ns, "spin_ns": spin_ns}
    record: Record = loads(
        _native.describe(
            _vector("values", values, np.int64),
            _vector("t_ns", t_ns, np.int64),
            _vector("missed", missed, np.uint32),
            _vector("flags", flags, np.uint32),
            about,
        )
    )
    return record


def exceedance(values: ArrayLike, threshold_ns: int) -> Record:
    """How many samples reach a threshold, and the share that these do not exclude.

    Args:
        values: ns, shape (n,).
        threshold_ns: the threshold; a sample that equals it counts.

    Returns:
        ``threshold_ns``, ``n``, ``count``, ``share``, and ``upper_share``: the upper end of the one-sided 95 % interval (Clopper and Pearson
        1934; 3/n where none was seen), which holds for samples that do not depend on each other.

    Raises:
        Error: values that are not whole.

    >>> exceedance([100] * 3000, 50_000).upper_share
    0.001
    """
    vector = _vector("values", values, np.int64)
    n, count = len(vector), int(np.count_nonzero(vector >= threshold_ns))
    return Record(
        threshold_ns=int(threshold_ns),
        n=n,
        count=count,
        share=count / n if n else 0.0,
        upper_share=_native.share_bound(count, n),
    )


class Runs:
    """Runs of one kind, read: run directories, and results of cyclictest (``--json``, ``-h``), oslat, rtla and jitterdebugger.

    ``len(runs)``, and ``runs[i]``: what is known of a run, each of its ``windows`` with ``values_ns`` and ``counts`` (int64 and uint64
    arrays, ascending; of other tools' histograms the lower edges of their bins).
    """

    def __init__(self, native: _native.Runs) -> None:
        self._native = native

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, at: int) -> Record:
        place = range(len(self))[at]
        run: Record = loads(self._native.about(place))
        for number, window in enumerate(run.windows):
            window["values_ns"], window["counts"] = self._native.counts(place, number)
        return run

    def __repr__(self) -> str:
        return f"<stillcore.analysis.Runs: {len(self)} runs>"


def read_runs(*paths: Any, series: str | None = None) -> Runs:
    """Reads runs to be compared.

    Args:
        paths: run directories (or :class:`stillcore.Run`), result files of other tools, directories of these.
        series: of ``rtla timerlat``: ``irq``, ``thread`` (where left out) or ``user``.

    Raises:
        Error: a path that is none of these, a file that is damaged, a run that was not completed.
    """
    listed: list[Path] = []
    for path in paths:
        listed.extend(_expanded(path.path if isinstance(path, Run) else Path(path)))
    return Runs(_native.load_runs(listed, series))


def _expanded(path: Path) -> list[Path]:
    """A run, or the runs of a directory that is none itself, by name."""
    if not path.is_dir() or (path / "run.json").exists():
        return [path]
    inside = sorted(one for one in path.iterdir() if not one.name.startswith("."))
    inside = [one for one in inside if one.is_file() or (one / "run.json").exists()]
    if not inside:
        raise Error("no run in it", str(path), "a run directory, or a directory of runs")
    return inside


def _runs(source: Any, series: str | None) -> _native.Runs:
    if isinstance(source, Runs):
        return source._native
    if isinstance(source, (Run, str, os.PathLike)):
        return read_runs(source, series=series)._native
    return read_runs(*source, series=series)._native


def _asked(
    probe: str | None,
    phase: str | None,
    figures: Iterable[str] = (),
    margin_ns: float | None = None,
    margin_share: float | None = None,
    fail_if: Iterable[str] = (),
    anyway: bool = False,
) -> dict[str, Any]:
    return {
        "probe": probe,
        "phase": phase,
        "figures": list(figures),
        "margin_ns": margin_ns,
        "margin_share": margin_share,
        "fail_if": list(fail_if),
        "anyway": anyway,
    }


def compare(
    base: Any,
    other: Any,
    *,
    figures: Sequence[str] = (),
    margin_ns: float | None = None,
    margin_share: float | None = None,
    probe: str | None = None,
    phase: str | None = None,
    series: str | None = None,
    fail_if: Sequence[str] = (),
    anyway: bool = False,
) -> Comparison:
    """Compares two groups of runs, the run as the unit: ``stillcore compare`` (methods and sources in ``docs/compare.md``).

    Args:
        base: :class:`Runs`, a run or path, or a sequence of them.
        other: the same; differences are other less base.
        figures: ``min``, ``p50``, ``p99.9`` and the like, ``max``, ``exceed:100us``, ``stolen``; the usual ones where left out.
        margin_ns: difference that matters, ns (1,000 or 5 %, the larger, where neither is given).
        margin_share: the same as a share of the base.
        probe: only this one: ``wakeup``, ``noise``, ``periodic``.
        phase: only this one; the disturbed one, where every run has it, where left out.
        series: as of :func:`read_runs`.
        fail_if: conditions such as ``"p99 > +5us"``; what came of them is in ``conditions``.
        anyway: compare what was measured differently as well; ``warnings`` then say so.

    Returns:
        The object of ``stillcore compare --json``: ``windows`` with ``figures`` (``difference``, ``interval``, ``verdict``: ``better``, ``worse``,
        ``equivalent``, ``cannot-tell``, ``one-run``, ``withheld``), ``shift``, ``distance``.

    Raises:
        Error: runs that cannot be compared, or a figure or condition that is none.
    """
    asked = _asked(probe, phase, figures, margin_ns, margin_share, fail_if, anyway)
    return Comparison(loads(_native.compare(_runs(base, series), _runs(other, series), asked)))


def chi2(
    reference: Any,
    observed: Any,
    *,
    probe: str | None = None,
    phase: str | None = None,
    series: str | None = None,
    anyway: bool = False,
) -> list[Record]:
    """The chi-square selection of deployments as published (Delgado and Choi, IEEE Access 8, 2020), with what its verdict is worth.

    Args:
        reference: as of :func:`compare`: the deployment that others are held against.
        observed: the other.
        probe: as of :func:`compare`.
        phase: as of :func:`compare`.
        series: as of :func:`compare`.
        anyway: as of :func:`compare`.

    Returns:
        One entry a probe of latencies: ``test`` (``statistic``, ``critical``, ``rejected``, ``per_100``, …), ``itself`` (the reference against
        itself), ``exchanged`` (probability were the labels of runs exchangeable), ``qq`` (quantiles against the reference's).

    Raises:
        Error: as of :func:`compare`; no latencies; a reference that spans more than a second.
    """
    asked = _asked(probe, phase, anyway=anyway)
    selections: list[Record] = loads(
        _native.compare_chi2(_runs(reference, series), _runs(observed, series), asked)
    )
    return selections


def best(
    groups: Mapping[str, Any],
    loss: str = "p99.9",
    *,
    probe: str | None = None,
    phase: str | None = None,
    series: str | None = None,
    anyway: bool = False,
) -> Record:
    """Ranks configurations by a loss, and says which cannot be told from the best: ``stillcore compare --best``.

    Args:
        groups: at least two: a name, and runs as of :func:`compare`.
        loss: the figure that is to be low.
        probe: as of :func:`compare`.
        phase: as of :func:`compare`.
        series: as of :func:`compare`.
        anyway: as of :func:`compare`.

    Returns:
        ``groups``, best first, each with ``value``, ``interval``, ``p_best`` and ``may_be_best``.

    Raises:
        Error: as of :func:`compare`.
    """
    named = [(name, _runs(runs, series)) for name, runs in groups.items()]
    ranking: Record = loads(_native.rank(named, loss, _asked(probe, phase, anyway=anyway)))
    return ranking


def exposure_facts(run: Run | str | os.PathLike[str]) -> Record:
    """What was counted in the run of a single stressor between idle controls: events by class while operations ran, and without.

    Args:
        run: a run directory that ``stillcore study exposure`` has written (``cells/``).

    Returns:
        ``name``, ``record``, ``disturbed``, ``idle_before``, ``idle_after``, ``sources``; ``void`` says why there is no coefficient, if so.

    Raises:
        Error: a file of the run is missing or damaged, or it is the run of something else.
    """
    path = run.path if isinstance(run, Run) else Path(run)
    facts: Record = loads(_native.exposure_facts(path))
    return facts


def exposure(
    cells: Iterable[Any], *, seen: Sequence[str] = (), unseen: Sequence[str] = ()
) -> Record:
    """Events per successful operation of each stressor, by class, with intervals (``docs/exposure.md``).

    Args:
        cells: run directories of single stressors, or their :func:`exposure_facts`; repetitions are pooled.
        seen: stressors that must be seen: positive controls.
        unseen: stressors that must not: negative controls.

    Returns:
        ``void`` and ``verdict``, ``controls``, and ``rows``: a stressor each, ``classes`` with ``per_operation``, ``low``, ``high``, ``seen``.
        Without controls of both kinds the study is void, which it says.

    Raises:
        Error: as of :func:`exposure_facts`.
    """
    facts = [cell if isinstance(cell, Mapping) and not isinstance(cell, Run) else exposure_facts(cell) for cell in cells]
    table: Record = loads(_native.exposure_table([json.dumps(one) for one in facts], list(seen), list(unseen)))
    return table
