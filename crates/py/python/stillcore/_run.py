"""Run directories: what was measured, as tables, and what follows from it."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import _native
from ._error import Error
from ._native import Table
from ._record import Record, loads

__all__ = ["Run", "open"]


def open(path: str | os.PathLike[str]) -> Run:  # noqa: A001 - the verb of the package
    """Opens a run directory.

    Args:
        path: a directory that ``stillcore assess`` or ``stillcore measure`` has written.

    Returns:
        The run. Only ``run.json`` has been read.

    Raises:
        Error: there is no run, or its ``run.json`` is damaged.
    """
    return Run(path)


class Run(Mapping[str, Any]):
    """One measurement on disk: a mapping of what ``run.json`` holds, its keys also attributes (``run.measured_cpus``).

    A run does not change; neither does this object write to it. The keys are described in ``docs/run-directory.md``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        stored, converted = _native.read_run(self._path)
        self._record: Record = loads(stored)
        if converted is not None:
            self._record.update(loads(converted))
        self._concluded: _native.Conclusions | None = None

    @property
    def path(self) -> Path:
        """The directory."""
        return self._path

    def __getitem__(self, key: str) -> Any:
        return self._record[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._record)

    def __len__(self) -> int:
        return len(self._record)

    def __getattr__(self, name: str) -> Any:
        # Before __init__ has run, as in a copy, there is nothing to look into.
        record = self.__dict__.get("_record", {})
        try:
            return record[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._record]

    # Two runs are the same if they are the same directory with the same words.
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Run) and (self._path, self._record) == (other._path, other._record)

    def __hash__(self) -> int:
        return hash(self._path)

    def __reduce__(self) -> tuple[type[Run], tuple[Path]]:
        return (Run, (self._path,))

    def __repr__(self) -> str:
        whole = "" if self["complete"] else ", not complete"
        return f"<stillcore.Run {str(self._path)!r}: CPUs {self['measured_cpus']}, {len(self['windows'])} windows{whole}>"

    @property
    def machine(self) -> Record:
        """The machine before the run, as in ``machine-before.json``."""
        machine: Record = self._file(self["machine_before"])
        return machine

    @property
    def findings(self) -> list[Record]:
        """What the audit found, as in ``findings.json``."""
        findings: list[Record] = self._file("findings.json")
        return findings

    @property
    def sample_files(self) -> list[Path]:
        """Paths of the samples files: Parquet, for tools that read them piece by piece (``duckdb.read_parquet``)."""
        return [self._path / probe["file"] for probe in self["probes"]]

    def _file(self, name: str) -> Any:
        path = self._path / name
        try:
            return loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise Error(f"cannot read: {error.strerror or error}", str(path)) from error
        except UnicodeDecodeError as error:
            raise Error(f"byte {error.start} is no text", str(path), "a file written by stillcore") from error
        except json.JSONDecodeError as error:
            place = f"{path}:{error.lineno}:{error.colno}"
            raise Error(error.msg, place, "a file written by stillcore") from error

    def samples(
        self,
        probe: str | None = None,
        phase: str | None = None,
        cpu: int | None = None,
        *,
        counted: bool = False,
    ) -> Table:
        """The samples, a row a sample.

        Columns: ``probe`` and ``phase`` (text), ``cpu``, ``thread`` (uint32), ``t_ns`` (int64: intended release, or start of a gap,
        CLOCK_MONOTONIC), ``value_ns`` (int64: wake-up latency, or length of a gap; negative where a task was early), ``seq`` (uint64),
        ``missed`` (uint32: releases that passed unserved just before), ``flags`` (uint32: 1 first, 2 warm-up, 4 clock step, 8 samples lost
        just before, 16 not on its CPU); then int64 columns of the probe's own, null in rows of other probes.

        Args:
            probe: only this one: ``wakeup``, ``noise``, ``periodic``, ``taskset``, ``ipi``, ``overheads``, ``clocks``.
            phase: only this one, such as ``disturbed``.
            cpu: only this one.
            counted: leave out what no figure counts (first, warm-up, clock step, not on its CPU); copies the columns.

        Returns:
            A table. Arrow libraries share its memory: ``pyarrow.table(t)``, ``polars.DataFrame(t)``, ``duckdb.from_arrow(t)``,
            ``pandas.DataFrame.from_arrow(t)``. ``t["value_ns"]`` is a NumPy array, shared with the table (and not to be
            written to) where the rows come from one samples file, put together from several otherwise.
            ``t.metadata["stillcore"]`` is JSON with the clock and policy of each file, and what was missed and lost.

        Raises:
            Error: a samples file is missing, damaged or not the run's (of a run that is not complete, that is told in the metadata); or
                nothing was measured that fits.
        """
        return _native.read_samples(self._path, probe, phase, cpu, counted)

    def events(self, cpu: int | None = None) -> Table:
        """The interference events of the measured CPUs, a row an event, by start: who ran, and who caused it.

        Columns: ``cpu`` (uint32), ``class`` (text: ``ipi.call``, ``timer.tick``, …), ``label`` (text: what ran), ``t0_ns``, ``t1_ns``
        (int64, CLOCK_MONOTONIC), ``net_ns`` (uint64: without what interrupted it), ``counts`` (bool: false where it only goes on
        after an interruption), ``source_cpu``, ``source_who``, ``source_pid``, ``source_site``, ``source_group`` (its
        task's container or control group, null where the run does not know it), ``confidence``
        (``exact`` or ``by order``; null where no source is known), ``other_sources`` (text).

        Args:
            cpu: only this measured CPU.

        Returns:
            A table, as of :meth:`samples`; ``metadata["stillcore"]`` tells how many places the trace lost events in (``holes``).

        Raises:
            Error: the run has no trace, or it is damaged.
        """
        return _native.read_events(self._path, cpu)

    def _conclusions(self) -> _native.Conclusions:
        if self._concluded is None:
            self._concluded = _native.conclude(self._path)
        return self._concluded

    def analysis(self) -> Record:
        """The conclusions, drawn anew from samples and trace: the content of ``analysis.json``; nothing is written.

        Raises:
            Error: a file of the run is missing or damaged.
        """
        analysis: Record = loads(self._conclusions().analysis_json())
        return analysis

    def verdicts(self) -> list[Record]:
        """Of each kind that was measured the largest sample and its cause, as the report opens: the worst wake-up, the longest gap.

        Each has ``what``, ``probe``, ``phase``, ``cpu``, ``value_ns``, ``t_ns``, ``cause`` (a sentence), ``confidence``, ``share`` (of the
        value, 0 to 1; ``None`` where it was not taken apart), ``against`` (commands), ``in_place``, ``look`` (commands that show more).

        Raises:
            Error: a file of the run is missing or damaged.
        """
        verdicts: list[Record] = loads(self._conclusions().verdicts_json())
        return verdicts

    def report_html(self) -> str:
        """The report: one page of HTML that needs nothing beside it."""
        return self._conclusions().report_html()

    def summary(self, width: int = 100) -> str:
        """What ``stillcore report`` prints of the run, in lines of at most ``width`` columns (60 to 120)."""
        return self._conclusions().summary(width)

    def _repr_html_(self) -> str:
        # A notebook asks of its own accord: what is wrong is shown where the run would be, and no stack with it.
        try:
            return self._conclusions().notebook_html()
        except Error as error:
            return f"<p>{html.escape(repr(self))}</p><p>{html.escape(str(error))}</p>"
