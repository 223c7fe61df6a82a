"""Studies: the same bits however the work is divided, on this process or on workers that die."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

import stillcore
from stillcore import sched

TABLE = ROOT / "experiments/replication-table7.toml"

SPEC = {
    "schema": "stillcore.sched-curves/1",
    "name": "pieces",
    "title": "Pieces",
    "seed": 11,
    "sets": 3_000,
    "generate": {"tasks": 20, "periods": "uniform:10ms:100ms"},
    "axis": {"of": "utilization", "values": [0.7, 0.85, 0.95]},
    "curve": [
        {"name": "fixed", "test": "fp-rta"},
        {"name": "late", "test": "fp-rta", "jitter": "4ms"},
        {"name": "edf", "test": "edf-qpa", "jitter": "104us"},
    ],
}


def test_batches_are_parts_of_the_whole() -> None:
    whole = sched.analyse_batch(SPEC, 11, 0, 700, at=1)
    assert (whole.shape, whole.dtype) == ((3, 700), np.bool_)
    parts = [sched.analyse_batch(SPEC, 11, lo, hi, at=1, threads=1) for lo, hi in ((0, 1), (1, 400), (400, 700))]
    assert (np.concatenate(parts, axis=1) == whole).all()
    # More jitter loses sets and wins none.
    assert (whole[0] | ~whole[1]).all() and whole[1].sum() < whole[0].sum()


def test_a_batch_is_what_analyze_says_of_its_sets() -> None:
    spec = {**SPEC["generate"], "utilization": 0.85}
    sets = sched.generate(spec, seed=11, lo=100, hi=160)
    batch = sched.analyse_batch(SPEC, 11, 100, 160, at=1)
    for curve, asked in zip(batch, SPEC["curve"], strict=True):
        verdicts = sched.analyze(sets, asked["test"], jitter=asked.get("jitter", 0))
        assert (verdicts.schedulable == curve).all()


def test_table_vii_again() -> None:
    study = sched.study(TABLE)
    assert study.verdicts.shape == (3, 8, 500)
    shares = study.verdicts.mean(axis=2)
    for curve, row in zip(study.conclusions.curves, shares, strict=True):
        assert [point.share for point in curve.points] == row.tolist()
        # As published, where a sample of 500 can say so much: all of them, and none.
        assert row[:2].tolist() == [1.0, 1.0] and row[-1] == 0.0
    assert study.conclusions.schema == "stillcore.sched-study/1"


@pytest.mark.parametrize("block", [1, 999, 3_000, 10_000])
def test_the_division_changes_nothing(block: int) -> None:
    small = {**SPEC, "sets": 300 if block == 1 else 3_000}
    one = sched.study(small, block=block, threads=2)
    other = sched.study(small)
    assert (one.verdicts == other.verdicts).all() and one.conclusions == other.conclusions


def test_a_worker_is_killed_in_the_middle_and_every_bit_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    spec = {**SPEC, "sets": 12_000}
    serial = sched.study(spec)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        before = client.run(os.getpid)
        assert len(set(before.values())) == 2 and os.getpid() not in before.values()
        victim, pid = next(iter(before.items()))
        worked, waited = sched._worked, []

        def with_a_death(text: str, seed: int, pieces: list, *more: object) -> Iterator:
            """The pieces; one worker dies once it holds some that are done, or when half of all are."""
            for number, piece in enumerate(worked(text, seed, pieces, *more), start=1):
                if not waited and (client.has_what()[victim] or number > len(pieces) // 2):
                    os.kill(pid, signal.SIGKILL)
                    waited.append(len(pieces) - number)
                yield piece

        monkeypatch.setattr(sched, "_worked", with_a_death)
        study = sched.study(spec, client, block=200)
        assert waited[0] > 0
        assert pid not in set(client.run(os.getpid).values())
    assert (study.verdicts == serial.verdicts).all()
    assert study.conclusions == serial.conclusions


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"schema": "other"}, "spec, schema"),
        ({"sets": 0}, "spec, sets"),
        ({"curve": [{"name": "x", "test": "rta"}]}, 'spec, curve "x", test'),
        ({"axis": {"of": "utilization", "values": [2, 1]}}, "spec, axis.values"),
        ({"generate": {"tasks": 0, "periods": "uniform:10ms:100ms"}}, "tasks"),
    ],
)
def test_declarations_that_make_no_sense(change: dict, where: str) -> None:
    with pytest.raises(stillcore.Error) as raised:
        sched.study({**SPEC, **change})
    assert raised.value.where == where


def test_files_that_are_no_declarations(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    with pytest.raises(stillcore.Error, match="cannot read"):
        sched.study(path)
    path.write_text('schema = "stillcore.sched-curves/1"\nname = 3\n')
    with pytest.raises(stillcore.Error) as raised:
        sched.study(path)
    assert raised.value.where == f"{path}, line 2"
    with pytest.raises(stillcore.Error, match="0 to 2"):
        sched.analyse_batch(SPEC, 1, 0, 1, at=3)
