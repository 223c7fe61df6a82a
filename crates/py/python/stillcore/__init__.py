"""Runs of stillcore as Arrow and NumPy, their analysis, schedulability, and audits of captured machines.

Needs neither root nor Linux.

>>> import stillcore                                                    # doctest: +SKIP
>>> run = stillcore.open("run")                                         # doctest: +SKIP
>>> run.samples(probe="wakeup", phase="disturbed")["value_ns"].max()    # doctest: +SKIP
"""

from __future__ import annotations

from . import analysis, sched
from ._audit import audit
from ._error import Error
from ._native import Table, __version__
from ._notebook import Comparison
from ._record import Record
from ._run import Run, open
from .analysis import best, chi2, compare, distribution, exceedance, exposure, exposure_facts, read_runs

__all__ = [
    "Comparison",
    "Error",
    "Record",
    "Run",
    "Table",
    "__version__",
    "analysis",
    "audit",
    "best",
    "chi2",
    "compare",
    "distribution",
    "exceedance",
    "exposure",
    "exposure_facts",
    "open",
    "read_runs",
    "sched",
]
