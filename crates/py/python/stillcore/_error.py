"""The one exception of this package."""

from __future__ import annotations

__all__ = ["Error"]


class Error(Exception):
    """Something is wrong with an input: a damaged run, a file of nobody's, an argument out of its range.

    Attributes:
        what: what was found.
        where: path, with line or byte where known, or the name of an argument; ``None`` where ``what`` says it all.
        expected: what would have been accepted; ``None`` where nothing is, as when a disk fails.
    """

    def __init__(self, what: str, where: str | None = None, expected: str | None = None) -> None:
        super().__init__(what, where, expected)
        self.what = what
        self.where = where
        self.expected = expected

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        expected = f"; expected {self.expected}" if self.expected else ""
        return f"{place}{self.what}{expected}"
