"""Runs as mappings, tables and conclusions."""

import copy as copying
import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import ROOT

import stillcore


def test_a_run_is_a_mapping_of_its_run_json_with_attributes(small: Path) -> None:
    run = stillcore.open(small)
    stored = json.loads((small / "run.json").read_text())
    # A run of schema 1 reads as one of schema 2, in which probe records are objects by probe.
    assert (stored["schema"], run["schema"]) == ("stillcore.run/1", "stillcore.run/2")
    for key in stored.keys() - {"schema", "probes"}:
        assert run[key] == stored[key], key
    assert [one.probe for one in run.probes] == [one["probe"] for one in stored["probes"]]
    assert run.measured_cpus == stored["measured_cpus"] == run["measured_cpus"]
    assert run.phases[1].name == "disturbed"
    assert "windows" in run and len(run) == len(stored)
    with pytest.raises(AttributeError, match="nothing_such"):
        _ = run.nothing_such
    assert run.machine.machine.kernel.release.startswith("6.1")
    assert {finding.state for finding in run.findings} <= {
        "ok",
        "fixable",
        "boot",
        "immovable",
        "not-applicable",
        "unknown",
    }


def test_the_verdicts_are_those_of_the_report(small: Path) -> None:
    run = stillcore.open(small)
    worst = run.verdicts()
    assert [one.what for one in worst] == ["worst wake-up", "longest gap"]
    text = " ".join(run.summary(120).split())
    for one in worst:
        assert one.value_ns > 0 and one.cpu in (2,), one
        assert " ".join(one.cause.split())[:60] in text, one.cause


def test_runs_travel_between_processes(small: Path) -> None:
    run = stillcore.open(small)
    assert pickle.loads(pickle.dumps(run)) == run == copying.copy(run)


def test_samples_are_those_of_the_files(small: Path) -> None:
    run = stillcore.open(small)
    table = pa.table(run.samples())
    assert table.num_rows == sum(probe.samples for probe in run.probes)
    rows = table.to_pandas()
    for probe, path in zip(run.probes, run.sample_files, strict=True):
        theirs = pq.read_table(path).to_pandas()
        ours = rows[(rows.probe == probe.probe) & (rows.phase == probe.phase) & (rows.cpu == probe.cpu)]
        for name in ("t_ns", "value_ns", "seq", "missed", "flags"):
            assert (ours[name].to_numpy() == theirs[name].to_numpy()).all(), (path, name)


def test_columns_of_a_probes_own_are_null_elsewhere() -> None:
    run = stillcore.open(ROOT / "fixtures/runs/measure/periodic")
    table = run.samples()
    theirs = pq.read_table(run.sample_files[0])
    own = [name for name in theirs.column_names if name not in ("t_ns", "value_ns", "seq", "missed", "flags")]
    assert own and set(own) <= set(table.column_names)
    first = run.samples(cpu=run.probes[0].cpu)
    for name in own:
        assert (first[name] == theirs[name].to_numpy()).all()


def test_one_files_columns_are_shared_and_may_not_be_written_to(small: Path) -> None:
    table = stillcore.open(small).samples(probe="wakeup", phase="disturbed")
    values = table["value_ns"]
    column = pa.table(table)["value_ns"].chunk(0)
    assert column.buffers()[1].address == values.__array_interface__["data"][0]
    assert not values.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 1
    # The array outlives the table it came from.
    expected = values.copy()
    del table, column
    stillcore.open(small).samples()
    assert (values == expected).all()


def test_every_library_takes_the_table(small: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    table = stillcore.open(small).samples(probe="noise")
    n, most = len(table), int(table["value_ns"].max())
    frame = polars.DataFrame(table)
    assert (frame.height, frame["value_ns"].max()) == (n, most)
    assert frame["phase"].unique().sort().to_list() == ["disturbed", "idle-after", "idle-before"]
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert pandas.DataFrame.from_arrow(table)["value_ns"].max() == most
    shared = pa.table(table)
    assert duckdb.sql("select count(*), max(value_ns) from shared where probe = 'noise'").fetchall() == [(n, most)]
    # A table can be asked again: nothing was moved out of it.
    assert pa.table(table).equals(shared)


def test_numpy_has_what_arrow_has(small: Path) -> None:
    run = stillcore.open(small)
    for table in (run.samples(), run.events()):
        arrow = pa.table(table)
        columns = table.to_numpy()
        assert list(columns) == arrow.column_names == table.column_names
        for name, column in columns.items():
            assert len(column) == len(table) == arrow.num_rows
            assert np.ma.getdata(column).shape == (len(table),)
            assert column.tolist() == arrow[name].to_pylist(), name
    with pytest.raises(KeyError, match="nothing_such"):
        _ = table["nothing_such"]


def test_only_what_figures_count(small: Path) -> None:
    run = stillcore.open(small)
    every = run.samples(probe="wakeup", phase="disturbed")
    counted = run.samples(probe="wakeup", phase="disturbed", counted=True)
    kept = every["flags"] & (1 | 2 | 4 | 16) == 0
    assert 0 < kept.sum() < len(every)
    for name in ("t_ns", "value_ns", "seq", "missed", "flags"):
        assert (counted[name] == every[name][kept]).all()
    window = next(one for one in run.analysis().distributions if (one.probe, one.phase) == ("wakeup", "disturbed"))
    assert (window.n, window.observed_max_ns) == (len(counted), counted["value_ns"].max())


def test_a_table_says_what_was_lost(small: Path) -> None:
    run = stillcore.open(small)
    about = json.loads(run.samples(probe="wakeup").metadata["stillcore"])
    wakeups = [probe for probe in run.probes if probe.probe == "wakeup"]
    assert about["missed_releases"] == sum(probe.missed for probe in wakeups)
    assert [one["policy_effective"] for one in about["files"]] == [probe.policy_effective for probe in wakeups]
    assert json.loads(run.events().metadata["stillcore"])["holes"] == 0


def test_events_are_those_of_the_analysis(small: Path) -> None:
    run = stillcore.open(small)
    events = run.events()
    assert set(events["cpu"]) == {2}
    for window in run.analysis().events:
        place = next(one for one in run.windows if (one.phase, one.probe) == (window.phase, window.probe))
        during = (events["t0_ns"] >= place.t0_ns) & (events["t0_ns"] <= place.t1_ns) & events["counts"]
        for row in window.classes:
            found = int(((events["class"] == row["class"]) & during).sum())
            # The probe's own page faults, and what came before its first sample, are in the window and in no figure.
            own = row["class"] in ("exception", "self", "timer.tick", "softirq")
            assert found >= row.count and (own or found == row.count), (window.phase, window.probe, row)
    assert sum(one.count for window in run.analysis().events for one in window.classes) > 1_000
    assert (np.diff(events["t0_ns"]) >= 0).all()
    known = events["source_cpu"][events["confidence"] == "exact"]
    assert len(known) > 0


def test_events_name_the_control_group_of_their_source(copy: Path) -> None:
    def sources() -> tuple[list[int | None], list[str | None]]:
        events = pa.table(stillcore.open(copy).events())
        return events["source_pid"].to_pylist(), events["source_group"].to_pylist()

    pids, groups = sources()
    assert set(groups) == {None}
    pid = next(pid for pid in pids if pid)
    run = json.loads((copy / "run.json").read_text())
    run["trace"]["groups"] = [{"path": "/system.slice/cron.service", "tids": [pid]}]
    (copy / "run.json").write_text(json.dumps(run))
    pids, groups = sources()
    assert groups == ["cron.service" if one == pid else None for one in pids]


def test_conclusions_are_drawn_and_nothing_is_written(copy: Path) -> None:
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    run = stillcore.open(copy)
    analysis = run.analysis()
    assert analysis.outcome.status == "finding"
    assert analysis.schema == "stillcore.analysis/1"
    assert "Is CPU 2 still?" in run.report_html()
    assert max(map(len, run.summary(80).splitlines())) <= 80
    assert {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()} == before


def test_notebooks_get_a_fragment_without_anything_that_runs(copy: Path) -> None:
    hostile = "<script>alert(1)</script>"
    text = (copy / "run.json").read_text().replace('"--duration"', json.dumps(hostile))
    (copy / "run.json").write_text(text)
    fragment = stillcore.open(copy)._repr_html_()
    assert "<table>" in fragment and "&lt;script&gt;" in fragment
    assert "<script" not in fragment and "<style" not in fragment


def test_a_notebook_shows_both_ends_of_a_table(small: Path) -> None:
    table = stillcore.open(small).samples(probe="wakeup")
    shown = table._repr_html_()
    assert shown.count("<tr>") == 1 + 5 + 1 + 5, shown
    assert f"<p>{len(table):,} rows, {len(table.column_names)} columns</p>" in shown
    values = table["value_ns"]
    assert f"<td>{values[0]}</td>" in shown and f"<td>{values[-1]}</td>" in shown


def test_a_notebook_shows_what_is_wrong_with_a_damaged_run(copy: Path) -> None:
    run = stillcore.open(copy)
    trace = copy / "trace.dat"
    trace.rename(copy / "<b>")
    trace.write_bytes((copy / "<b>").read_bytes()[:5000])
    assert "trace.dat" in run._repr_html_()
    named = copy / "<i>"
    named.mkdir()
    (named / "run.json").write_bytes((copy / "run.json").read_bytes())
    fragment = stillcore.open(named)._repr_html_()
    assert "&lt;i&gt;" in fragment and "<i>" not in fragment


def wrong(path: Path) -> stillcore.Error:
    """What using a run raises, whatever it is used for."""
    with pytest.raises(stillcore.Error) as raised:
        run = stillcore.open(path)
        run.samples()
        run.events()
        run.analysis()
    assert str(raised.value) and pickle.loads(pickle.dumps(raised.value)).args == raised.value.args
    return raised.value


def test_no_run(tmp_path: Path) -> None:
    error = wrong(tmp_path)
    assert error.where == str(tmp_path / "run.json")
    assert "cannot read" in error.what


def test_damaged_words_name_line_and_column(copy: Path) -> None:
    (copy / "run.json").write_text('{\n "schema": oops')
    assert wrong(copy).where == f"{copy / 'run.json'}:2:12"
    (copy / "run.json").write_text((ROOT / "fixtures/runs/small/run.json").read_text().replace("run/1", "run/9"))
    assert wrong(copy).expected == "stillcore.run/2"


def test_samples_that_are_cut_or_of_another_file(copy: Path) -> None:
    first, second = (copy / probe["file"] for probe in stillcore.open(copy).probes[:2])
    whole = first.read_bytes()
    first.write_bytes(whole[: len(whole) // 2])
    assert wrong(copy).where == str(first)
    first.write_bytes(second.read_bytes())
    error = wrong(copy)
    assert "noise probe" in error.what and "wakeup probe" in (error.expected or "")
    first.unlink()
    assert "cannot read" in wrong(copy).what


def test_a_damaged_trace(copy: Path) -> None:
    trace = copy / "trace.dat"
    trace.write_bytes(trace.read_bytes()[:5000])
    run = stillcore.open(copy)
    assert len(run.samples()) > 0
    for ask in (run.events, run.analysis, run.report_html):
        with pytest.raises(stillcore.Error, match="trace.dat"):
            ask()


def test_flipped_bytes_are_the_one_error_or_nothing(copy: Path) -> None:
    path = copy / stillcore.open(copy).probes[0]["file"]
    whole = path.read_bytes()
    refused = 0
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            stillcore.open(copy).samples(probe="wakeup")
        except stillcore.Error:
            refused += 1
    assert refused > len(whole) // 70


def test_what_is_missing_of_a_partial_run_is_listed(copy: Path) -> None:
    stored = json.loads((copy / "run.json").read_text())
    stored.update(complete=False, incomplete_reason="killed")
    (copy / "run.json").write_text(json.dumps(stored))
    (copy / stored["probes"][0]["file"]).unlink()
    run = stillcore.open(copy)
    table = run.samples(probe="wakeup")
    about = json.loads(table.metadata["stillcore"])
    assert not about["complete"] and stored["probes"][0]["file"] in about["missing"][0]
    assert len(table) == sum(one.samples for one in run.probes[1:] if one.probe == "wakeup")


def test_what_was_not_measured(small: Path) -> None:
    run = stillcore.open(small)
    with pytest.raises(stillcore.Error, match="no samples of probe ipi"):
        run.samples(probe="ipi")
    with pytest.raises(stillcore.Error, match="CPU 7"):
        run.events(cpu=7)
    with pytest.raises(stillcore.Error, match="no trace"):
        stillcore.open(ROOT / "fixtures/runs/measure/periodic").events()
