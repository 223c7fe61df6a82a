"""Verdicts on columns: arrays and tables in memory, read where they lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _native
from ._error import Error

_Int64 = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ColumnVerdicts:
    """What a test says of sets in columns. Times are in the unit of the columns.

    Attributes:
        schedulable: bool, a value a set: every deadline is met.
        rounds: uint64, a value a set: how often a busy-window equation, or demand, was evaluated.
        response_times: of the shape of the columns: bounds from arrival, own release jitter included; ``-1`` beyond the deadline, not decided,
            or where the test only decides.
        undecided: of that shape: 1 where a task was given up at the cap on rounds and counts as late, else 0.
    """

    schedulable: NDArray[np.bool_]
    rounds: NDArray[np.uint64]
    response_times: _Int64
    undecided: _Int64

    def __len__(self) -> int:
        return len(self.schedulable)


def whole_numbers(name: str, array: NDArray[Any]) -> _Int64:
    """The values as whole numbers of 64 bits: themselves where they are, else copies. A value that is not whole is an error, not rounded."""
    if array.dtype == np.int64 and array.dtype.isnative:
        return array
    if array.size == 0:
        return np.zeros(array.shape, np.int64)
    if array.dtype.kind not in "iuf":
        raise Error(f"values of type {array.dtype}", name, "whole numbers")
    with np.errstate(invalid="ignore"):
        whole: _Int64 = array.astype(np.int64)
    # A number above 2^63 - 1 wraps, and may equal its neighbours once both are floats.
    unsigned = array.dtype.kind == "u"
    wrong = np.argwhere((whole != array) | (whole < 0) if unsigned else whole != array)
    if len(wrong):
        at = tuple(int(place) for place in wrong[0])
        raise Error(f"{array[at]}", f"{name}[{', '.join(map(str, at))}]", "a whole number of at most 2^63 - 1")
    return whole


def column_names(columns: Any) -> Iterable[str]:
    """The names of the columns of a mapping or a table: Arrow's, Polars', pandas'."""
    if isinstance(columns, Mapping):
        return list(columns)
    for attribute in ("column_names", "columns"):
        names = getattr(columns, attribute, None)
        if names is not None and not callable(names):
            return [str(name) for name in names]
    raise Error(f"a {type(columns).__name__}", "columns", "a mapping of names to arrays, or a table with column_names or columns")


def analyze_columns(columns: Any, test: str, unit: str, extra_jitter_ns: int, threads: int | None) -> ColumnVerdicts:
    """See :func:`stillcore.sched.analyze_columns`."""
    arrays = {name: whole_numbers(name, np.asarray(columns[name])) for name in column_names(columns)}
    for needed in ("period", "cost"):
        if needed not in arrays:
            raise Error(f"no {needed}", "columns", "period and cost, and any of the other keys")
    shape = arrays["period"].shape
    if len(shape) == 1:
        width = None
        if "set" not in arrays:
            raise Error("no set", "columns", "a column set, or matrices with a row a set")
    elif len(shape) == 2 and shape[1] > 0 and "set" not in arrays:
        width = shape[1]
    else:
        raise Error(f"shape {shape}", "period", "(rows,) with a column set, or (sets, tasks) without")
    for name, array in arrays.items():
        if array.shape != shape:
            raise Error(f"shape {array.shape}", name, f"{shape}, that of period")
    # Rows one behind the other already are a view, without a copy.
    flat = {name: np.ascontiguousarray(array).reshape(-1) for name, array in arrays.items()}
    answer = _native.analyze_columns(flat, width, test, unit, extra_jitter_ns, threads)
    for name in ("response_times", "undecided"):
        answer[name] = answer[name].reshape(shape)
    return ColumnVerdicts(**answer)
