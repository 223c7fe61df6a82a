"""How tables and comparisons look in a notebook: small HTML tables without styles and scripts, every text escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from ._record import Record

if TYPE_CHECKING:
    from ._native import Table

__all__ = ["Comparison", "table"]

#: Units in which a time is shown: from how many ns on, and how many ns it has.
_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


def _rows(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table: texts to the left, everything else as it comes."""
    head = "".join(f"<th>{escape(text)}</th>" for text in heads)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def table(first: Table, last: Table, count: int) -> str:
    """The first and the last rows of a table, and how many rows and columns it has."""
    names = first.column_names
    rows: list[Sequence[Any]] = list(zip(*first.to_numpy().values(), strict=True))
    if len(last):
        rows += [["…"] * len(names), *zip(*last.to_numpy().values(), strict=True)]
    return _rows(names, rows) + f"<p>{count:,} rows, {len(names)} columns</p>"


def _value(number: float | None, unit: str, *, sign: bool = False) -> str:
    """A number with three digits and its unit."""
    if number is None:
        return "–"
    plus = "+" if sign else ""
    if unit == "ns":
        divisor, unit = next((one for one in _UNITS if abs(number) >= one[0]), _UNITS[-1])
        number /= divisor
    # Three digits, but never a power of ten in place of digits before the point.
    digits = max(0, 3 - len(str(int(abs(number))))) if abs(number) >= 1 else 3
    return f"{number:{plus}.{digits}f} {unit}" if abs(number) >= 1 or unit == "ns" else f"{number:{plus}.3g} {unit}"


def _verdict(figure: Record) -> str:
    verdict: str = figure["verdict"].replace("-", " ")
    if figure["more_runs"] is not None:
        verdict += f": {figure['more_runs']} more runs a side"
    return verdict if figure["why"] is None else f"{verdict}: {figure['why']}"


class Comparison(Record):
    """What :func:`stillcore.compare` returns: the object of ``stillcore compare --json``; a notebook shows its table."""

    def _repr_html_(self) -> str:
        parts = []
        for one in self.get("conditions") or []:
            word = {True: "failed", False: "passed", None: "cannot be judged"}[one["holds"]]
            parts.append(f"<p><b>{escape(word)}</b> <code>{escape(one['condition'])}</code>: {escape(one['sentence'])}</p>")
        for window in self["windows"]:
            title = f"{window['probe']}, phase {window['phase']}: {len(self['base'])} and {len(self['other'])} runs"
            parts.append(f"<p>{escape(title)}</p>")
            rows = []
            for one in window["figures"]:
                unit, interval = one["unit"], one["interval"] or [None, None]
                low, high = (_value(end, unit, sign=True) for end in interval)
                rows.append(
                    [
                        one["figure"],
                        _value(one["base"], unit),
                        _value(one["other"], unit),
                        _value(one["difference"], unit, sign=True),
                        "–" if one["interval"] is None else f"{low} to {high}",
                        _verdict(one),
                    ]
                )
            heads = ["statistic", "base", "other", "difference", "95 % interval", "verdict"]
            parts.append(_rows(heads, rows))
        parts += [f"<p>{escape(text)}</p>" for text in self["warnings"]]
        return "".join(parts)
