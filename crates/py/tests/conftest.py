"""Captured runs and results of the project, and copies of them to damage."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SMALL = ROOT / "fixtures/runs/small"


@pytest.fixture
def small() -> Path:
    """An assessment of one CPU, with a trace."""
    return SMALL


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The same, to write to."""
    return Path(shutil.copytree(SMALL, tmp_path / "run"))
