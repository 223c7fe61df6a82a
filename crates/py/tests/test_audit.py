"""Captured machines, audited."""

import tarfile
from pathlib import Path

import pytest
from conftest import ROOT

import stillcore

MACHINES = ROOT / "fixtures/machines"


def test_a_captured_machine_is_judged_mechanism_by_mechanism() -> None:
    answer = stillcore.audit(MACHINES / "isolated-6.1", cpus="2-3")
    assert answer.schema == "stillcore.audit/1"
    assert (answer.cpus, answer.machine.kernel.release.split(".")[0]) == ("2,3", "6")
    states = {finding.id: finding.state for finding in answer.findings}
    assert len(states) == len(answer.findings) == answer.mechanisms["all"] > 200
    assert states["isolcpus"] == "ok"
    assert sum(answer.counts.values()) == len(states)
    dropped = stillcore.audit(MACHINES / "isolcpus-dropped-6.1", cpus="2-3")
    assert {finding.id: finding.state for finding in dropped.findings}["isolcpus"] != "ok"


def test_an_archive_is_as_good_as_its_directory(tmp_path: Path) -> None:
    machine = MACHINES / "isolated-6.1"
    archive = tmp_path / "machine.tar"
    with tarfile.open(archive, "w") as tar:
        for entry in sorted(machine.iterdir()):
            tar.add(entry, entry.name)
    of_archive, of_directory = (stillcore.audit(root, cpus="2-3") for root in (archive, machine))
    assert of_archive.findings == of_directory.findings


def test_what_is_wrong_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(stillcore.Error):
        stillcore.audit(tmp_path)
    with pytest.raises(stillcore.Error, match="2-3"):
        stillcore.audit(MACHINES / "isolated-6.1", cpus="two")
    with pytest.raises(stillcore.Error, match="99"):
        stillcore.audit(MACHINES / "isolated-6.1", cpus="99")
