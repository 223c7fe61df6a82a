"""Machines: which mechanisms keep CPUs still, and what to do about those that do not."""

from __future__ import annotations

import os

from . import _native
from ._record import Record, loads

__all__ = ["audit"]


def audit(
    root: str | os.PathLike[str],
    *,
    cpus: str | None = None,
    catalogue: str | os.PathLike[str] | None = None,
) -> Record:
    """Judges every mechanism of the catalogue on a captured machine, as ``stillcore audit --root`` does.

    Nothing is changed, and the machine need not be this one: what ``stillcore snapshot`` has taken
    is audited the same on any system.

    Args:
        root: directory or tar archive of ``stillcore snapshot``; on Linux, ``"/"`` is this machine.
        cpus: the CPUs that are to be still, as a list such as ``"2-3"``; the isolated ones, else the
            highest one, where it is not given.
        catalogue: directory of mechanisms to use instead of the built-in catalogue.

    Returns:
        What ``stillcore audit --json`` prints (schema ``stillcore.audit/1``): ``findings`` with one
        entry a mechanism (``id``, ``state``, ``want``, ``have``, ``reason``, ``remedy``), ``failed``,
        ``counts`` by state, ``boot_line``, ``fixes``, ``machine``.

    Raises:
        Error: there is no machine under ``root``, or it has no such CPUs.
    """
    folder = None if catalogue is None else os.fspath(catalogue)
    answer: Record = loads(_native.audit_machine(os.fspath(root), cpus, folder))
    return answer
