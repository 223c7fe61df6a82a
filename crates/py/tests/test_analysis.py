"""Figures of samples beside NumPy's, and groups of runs."""

import json
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT

import stillcore

RESULTS = ROOT / "fixtures/results"


def test_quantiles_are_numpys_and_need_ten_above() -> None:
    values = np.random.default_rng(1).lognormal(9, 1, 20_000).astype(np.int64)
    record = stillcore.distribution(values, period_ns=1_000_000)
    assert (record.n, record.min_ns, record.observed_max_ns) == (20_000, values.min(), values.max())
    for quantile in record.quantiles:
        nearest = np.quantile(values, quantile.p, method="inverted_cdf")
        above = 20_000 - np.ceil(20_000 * quantile.p)
        # Drawn independently, they are worth about as many as they are, and never more.
        assert 0.5 * above <= quantile.effective_above <= above
        assert quantile.value_ns == (nearest if quantile.effective_above >= 10 else None), quantile
    for one in record.exceedances:
        assert one.count == (values >= one.threshold_ns).sum()
    assert sum(count for _, _, count in record.histogram) == 20_000


def test_missed_releases_are_charged_with_their_lateness() -> None:
    values, missed = np.full(100, 10), np.zeros(100, np.uint32)
    values[40], missed[41] = 50_500, 50
    record = stillcore.distribution(values, missed=missed, period_ns=1_000)
    assert record.missed == 50
    late = {one.threshold_ns: one.count for one in record.exceedances}
    # The late one itself, and each release behind it that was still so late: 50,500 less k periods.
    for threshold in (1_000, 20_000, 50_000):
        assert late[threshold] == 1 + sum(50_500 - 1_000 * k >= threshold for k in range(1, 51))
    assert (record.n, record.corrected_max_ns) == (100, 50_500)


def test_flags_leave_samples_out() -> None:
    record = stillcore.distribution([900, 10, 20], flags=[1, 0, 0])
    assert (record.n, record.excluded, record.observed_max_ns) == (2, 1, 20)


def test_none_seen_is_an_upper_bound() -> None:
    record = stillcore.exceedance(np.full(3_000, 500), 1_000)
    assert (record.count, record.share, record.upper_share) == (0, 0.0, 0.001)
    # One of two: Clopper and Pearson's closed form.
    assert stillcore.exceedance([1, 5], 5).upper_share == pytest.approx(0.95**0.5)
    assert stillcore.exceedance([], 5).upper_share == 1.0


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"values": [1.5]}, "values[0]"),
        ({"values": [float("nan")]}, "values[0]"),
        ({"values": ["1"]}, "values"),
        ({"values": [[1]]}, "values"),
        ({"values": [1, 2], "t_ns": [1]}, "t_ns"),
        ({"values": [1], "missed": [-1]}, "missed[0]"),
        ({"values": [1], "probe": "cyclictest"}, "probe"),
    ],
)
def test_samples_that_are_none(arguments: dict, where: str) -> None:
    with pytest.raises(stillcore.Error) as raised:
        stillcore.distribution(**arguments)
    assert raised.value.where == where and raised.value.expected


@pytest.mark.parametrize(
    ("name", "tool", "n"),
    [
        ("cyclictest.txt", "cyclictest", 4_000),
        ("cyclictest.json", "cyclictest", 4_000),
        ("jitterdebugger.json", "jitterdebugger", 2_000),
    ],
)
def test_results_of_other_tools(name: str, tool: str, n: int) -> None:
    (run,) = stillcore.read_runs(RESULTS / name)
    assert run.tool == tool
    (window,) = run.windows
    assert window.n == n == int(window.counts.sum())
    assert window.values_ns.dtype == np.int64 and (np.diff(window.values_ns) > 0).all()
    assert window.resolution_ns == 1_000


def test_both_of_cyclictests_forms_say_the_same() -> None:
    text, other = stillcore.read_runs(RESULTS / "cyclictest.txt", RESULTS / "cyclictest.json")
    assert (text.windows[0].values_ns == other.windows[0].values_ns).all()
    assert (text.windows[0].counts == other.windows[0].counts).all()


def test_counts_of_oslat_are_those_of_its_file() -> None:
    histogram = json.loads((RESULTS / "oslat.json").read_text())["thread"]["0"]["histogram"]
    (run,) = stillcore.read_runs(RESULTS / "oslat.json")
    assert int(run.windows[0].counts.sum()) == sum(histogram.values())


def test_rtla_has_series_to_choose_from() -> None:
    irq = stillcore.read_runs(RESULTS / "rtla-timerlat.txt", series="irq")[0]
    thread = stillcore.read_runs(RESULTS / "rtla-timerlat.txt")[0]
    assert irq.tool != thread.tool
    assert irq.windows[0].values_ns[0] < thread.windows[0].values_ns[0]
    assert stillcore.read_runs(RESULTS / "rtla-osnoise.txt")[0].windows[0].probe == "noise"


def test_a_file_of_nobody(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(stillcore.Error, match="no tool that is known"):
        stillcore.read_runs(tmp_path / "notes.txt")
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(stillcore.Error, match="no run in it"):
        stillcore.read_runs(empty)


def planted(folder: Path, name: str, seed: int, shift_us: int) -> Path:
    """A result as jitterdebugger leaves it: a histogram in us of wake-ups around 20 us."""
    result = json.loads((RESULTS / "jitterdebugger.json").read_text())
    drawn = np.random.default_rng(seed).normal(20 + shift_us, 2, 5_000).clip(1).astype(int)
    values, counts = np.unique(drawn, return_counts=True)
    cpu = result["cpu"]["0"]
    cpu["histogram"] = {str(value): int(count) for value, count in zip(values, counts, strict=True)}
    cpu.update(count=5_000, min=int(values[0]), max=int(values[-1]), avg=float(drawn.mean()))
    result["cpu"] = {"0": cpu}
    path = folder / f"{name}-{seed}.json"
    path.write_text(json.dumps(result))
    return path


def test_a_planted_shift_is_found_and_none_is_not(tmp_path: Path) -> None:
    base = [planted(tmp_path, "base", seed, 0) for seed in range(8)]
    same = [planted(tmp_path, "same", 100 + seed, 0) for seed in range(8)]
    later = [planted(tmp_path, "later", 200 + seed, 9) for seed in range(8)]
    comparison = stillcore.compare(base, later, figures=["p50"], fail_if=["p50 > +5us", "p50 > +20us"], margin_ns=3_000)
    (figure,) = comparison.windows[0].figures
    assert figure.verdict == "worse"
    low, high = figure.interval
    assert low <= 9_000 <= high
    assert [one.holds for one in comparison.conditions] == [True, False]
    shown = comparison._repr_html_()
    for part in ("<td>p50</td>", "<td>worse</td>", "p50 &gt; +5us", " µs to +", "8 and 8 runs"):
        assert part in shown, shown
    hostile = stillcore.Comparison(comparison, warnings=["<script>alert(1)</script>"])
    assert "<script" not in hostile._repr_html_()
    (figure,) = stillcore.compare(base, same, figures=["p50"], margin_ns=3_000).windows[0].figures
    assert figure.verdict == "equivalent"
    ranking = stillcore.best({"later": later, "base": stillcore.read_runs(*base)}, loss="p99")
    assert [group.name for group in ranking.groups] == ["base", "later"]
    assert [group.may_be_best for group in ranking.groups] == [True, False]
    (selected,) = stillcore.chi2(base, later)
    assert selected.test.rejected and selected.test.per_100 > 0
    assert selected.qq.slope == pytest.approx(1, abs=0.1)


def test_what_cannot_be_compared(small: Path, tmp_path: Path) -> None:
    other = RESULTS / "cyclictest.txt"
    with pytest.raises(stillcore.Error, match="no measurement in common"):
        stillcore.compare(small, other)
    with pytest.raises(stillcore.Error, match="no figure") as raised:
        stillcore.compare(small, other, figures=["mean"])
    assert raised.value.where == "figures"
    with pytest.raises(stillcore.Error) as raised:
        stillcore.compare(small, other, fail_if=["p99"])
    assert raised.value.where == "fail_if"
    with pytest.raises(stillcore.Error, match="two or more"):
        stillcore.best({"one": small})


def test_exposure_is_events_per_operation() -> None:
    with pytest.raises(stillcore.Error, match="expected exactly one"):
        stillcore.exposure_facts(ROOT / "fixtures/runs/small")
    table = stillcore.exposure([cell("planted", 3_000), cell("quiet", 0)], seen=["planted"], unseen=["quiet"])
    assert not table.void, table.verdict
    planted, quiet = table.rows
    call = next(one for one in planted.classes if one["class"] == "ipi.call")
    assert call.seen and call.low < 3.0 < call.high and call.per_operation == pytest.approx(3.0)
    assert not quiet.all.seen
    blind = stillcore.exposure([cell("planted", 0)], seen=["planted"], unseen=[])
    assert blind.void


def cell(name: str, events: int) -> dict:
    """Facts of a stressor with 1,000 operations in a second on one CPU, idle for a second before and after."""
    count = {"count": events, "dispersion": 1.0, "by_cpu": {"2": events} if events else {}}
    none = {"count": 0, "dispersion": 1.0, "by_cpu": {}}
    idle = {"length_ns": 10**9, "classes": {}, "all": none}
    return {
        "name": name,
        "record": stressor(name),
        "measured": "2",
        "policy": "SCHED_FIFO",
        "observable": ["ipi.call"],
        "disturbed": {"length_ns": 10**9, "classes": {"ipi.call": count} if events else {}, "all": count},
        "idle_before": idle,
        "idle_after": idle,
        "sources": [],
        "changed": [],
        "limits": [],
    }


def stressor(name: str) -> dict:
    run = stillcore.open(ROOT / "fixtures/runs/small")
    return {**run.stressors[0], "name": name, "ops_ok": 1_000, "ops_failed": {}, "state": "ok"}
