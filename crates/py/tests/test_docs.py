"""Every example of the documentation, as it stands there."""

import doctest

import pytest
from conftest import ROOT

import stillcore

FLAGS = doctest.NORMALIZE_WHITESPACE


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(("page", "least"), [("python.md", 26), ("fleet.md", 10), ("monitor-fleet.md", 6)])
def test_the_page(page: str, least: int) -> None:
    failed, tried = doctest.testfile(str(ROOT / "docs" / page), module_relative=False, optionflags=FLAGS)
    assert failed == 0 and tried >= least


@pytest.mark.parametrize("module", [stillcore.analysis, stillcore.sched])
def test_docstrings(module: object) -> None:
    failed, tried = doctest.testmod(module, optionflags=FLAGS)
    assert failed == 0 and tried > 0


def test_everything_public_is_documented() -> None:
    for module in (stillcore, stillcore.analysis, stillcore.sched):
        for name in module.__all__:
            thing = getattr(module, name)
            if callable(thing):
                assert (thing.__doc__ or "").strip(), name
