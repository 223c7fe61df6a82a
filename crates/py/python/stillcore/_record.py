"""JSON objects as dictionaries whose keys are attributes as well."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["Record", "loads"]


class Record(dict[str, Any]):
    """A JSON object: ``record["n"]`` and ``record.n`` are the same. A key that is also a method of ``dict`` is reached by brackets only."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key for key in self if key.isidentifier())]


def loads(text: str) -> Any:
    """A JSON text, objects as :class:`Record`."""
    return json.loads(text, object_hook=Record)
