"""The declared types are those of the module."""

import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

SETTINGS = ROOT / "crates/py/pyproject.toml"


def run(folder: Path, *arguments: str) -> None:
    """Runs a checker where it may leave what it likes."""
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_typed_strictly(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    import stillcore

    assert (Path(stillcore.__file__).parent / "py.typed").exists()
    run(tmp_path, "mypy", "--config-file", str(SETTINGS), str(ROOT / "crates/py/python/stillcore"))


def test_stubs_are_what_the_extension_holds(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    run(tmp_path, "mypy.stubtest", "stillcore", "--mypy-config-file", str(SETTINGS))
