"""The benchmarks run, agree on their answers, and write results that can be read later."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from typer import BadParameter
from typer.testing import CliRunner

pytest.importorskip("duckdb")
pytest.importorskip("psutil")

from bench import command_line
from bench.catalogue import experiments
from bench.charts import LABELS
from bench.command_line import app
from bench.documentation import write_report
from bench.events import LONGEST_US, SHORTEST_US, Load, stream, with_timestamps
from bench.experiment import Bench, CheckFailedError, Experiment
from bench.experiments.classes import fit
from bench.experiments.growth import exponent
from bench.fingerprints import fingerprint, fingerprint_of_table
from bench.joins import local_join
from bench.machine import commit
from bench.peers.naive_kernel import naive_counts, naive_pairs
from bench.processes import PeakMemory
from bench.report import Check, Figure, Report
from bench.sessions import any_frame
from bench.streams import StreamLoad, StreamRun, mutual_deadline_us
from bench.timing import Timing, alternate
from coincide.model.timestamps import IntervalPairs
from cpu_fallback import EventJoin
from spark_plugin.frames.plain_reads import plain_read, plan_of


def test_list_names_every_experiment():
    done = CliRunner().invoke(app, ["list"])
    assert done.exit_code == 0
    assert {"local", "spark", "growth", "memory", "startup", "classes"} <= experiments().keys()
    assert all(name in done.output for name in experiments())


def test_unknown_experiment_is_bad_usage():
    assert CliRunner().invoke(app, ["run", "nothing"]).exit_code == 2


def test_out_is_checked_before_anything_is_measured(monkeypatch, tmp_path):
    monkeypatch.setitem(experiments(), "local", Experiment("", lambda bench: pytest.fail("ran")))
    taken = tmp_path / "taken"
    taken.write_text("a file")
    done = CliRunner().invoke(app, ["run", "local", "--quick", "--out", str(taken)])
    assert done.exit_code == 2
    assert "cannot write to --out" in done.output
    assert taken.read_text() == "a file"


def test_results_are_kept_with_the_code_only_if_recorded(monkeypatch, tmp_path):
    kept, scratch = tmp_path / "kept", tmp_path / "scratch"
    monkeypatch.setattr(command_line, "RESULTS", kept)
    monkeypatch.setattr(command_line, "SCRATCH", scratch)
    monkeypatch.setitem(experiments(), "local", Experiment("", lambda bench: None))
    run_experiment = partial(
        command_line.run_experiment, "local", quick=True, rounds=None, cores=1
    )  # fmt: skip
    run_experiment(out=scratch)
    assert len(list(scratch.iterdir())) == 1
    assert not kept.exists()
    run_experiment(out=scratch, record=True)
    assert len(list(kept.iterdir())) == 1
    with pytest.raises(BadParameter, match="Give one of them"):
        run_experiment(out=tmp_path, record=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is no JSON"),
        ("[]", "lacks quick"),
        ('{"quick": false}', "lacks date, commit"),
        (None, "holds a quick run"),
    ],
)
def test_page_refuses_results_that_it_cannot_show(text, message, tmp_path):
    path = some_report(quick=True).write(tmp_path)
    path = path.rename(tmp_path / "local.json")
    if text is not None:
        path.write_text(text)
    page = tmp_path / "page.md"
    arguments = ["report", "--results", str(tmp_path), "--page", str(page)]
    done = CliRunner().invoke(app, arguments, env={"COLUMNS": "400"})
    assert done.exit_code == 2
    assert message in done.output
    assert "local.json" in done.output
    assert not page.exists()


def test_disagreement_ends_with_exit_code_1(monkeypatch, tmp_path):
    def disagree(bench):
        bench.check_equal("pairs", {"ours": 1, "theirs": 2})

    monkeypatch.setitem(experiments(), "local", Experiment("", disagree))
    done = CliRunner().invoke(app, ["run", "local", "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "differ" in done.output
    assert not list(tmp_path.iterdir())


def test_check_notes_equal_answers_and_refuses_others():
    bench = Bench(Report("some"))
    bench.check_equal("pairs", {"ours": 3, "theirs": 3})
    with pytest.raises(CheckFailedError, match="differ"):
        bench.check_equal("pairs", {"ours": 3, "theirs": 4})
    assert [check.passed for check in bench.report.checks] == [True, False]
    assert Check("rows", {"ours": (1, 2), "theirs": (1, 2)}).passed


def test_ratio_is_of_medians_and_spreads_over_rounds():
    bench = Bench(Report("some"))
    bench.ratio("peer", Timing((2.0, 6.0, 4.0)), Timing((1.0, 2.0, 4.0)), bar=2.0)
    (figure,) = bench.report.figures
    assert (figure.value, figure.low, figure.high) == (2.0, 1.0, 3.0)
    assert figure.reached


@pytest.mark.parametrize(
    ("value", "bar", "at_least", "judged", "reached"),
    [
        (2.0, 1.8, True, True, True),
        (1.7, 1.8, True, True, False),
        (1.7, 1.8, False, True, True),
        (2.0, 1.8, False, True, False),
        (2.0, None, True, True, None),
        (2.0, 1.8, True, False, None),
    ],
)
def test_bars(value, bar, at_least, judged, reached):
    figure = Figure("some", value, value, value, "x", bar, at_least, judged)
    assert figure.reached is reached


def test_rounds_alternate_after_warming_up():
    order = []
    contestants = {name: lambda name=name: order.append(name) for name in "ab"}
    timings = alternate(contestants, rounds=5, warmups=1)
    rounds = ["".join(order[i : i + 2]) for i in range(0, 12, 2)]
    assert len(rounds) == 6
    assert set(rounds) == {"ab", "ba"}
    assert [(name, len(timing.seconds)) for name, timing in timings.items()] == [("a", 5), ("b", 5)]


def test_streams_are_seeded_and_ordered():
    table = stream(1_000, 100.0, seed=1)
    assert table.equals(stream(1_000, 100.0, seed=1))
    assert not table.equals(stream(1_000, 100.0, seed=2))
    begin, end = table["min_time"].to_numpy(), table["max_time"].to_numpy()
    assert (np.diff(begin) >= 0).all()
    assert ((end - begin >= SHORTEST_US) & (end - begin <= LONGEST_US)).all()
    assert begin.max() < 10_000_000


def test_timestamps_keep_the_lengths():
    table = stream(100, 100.0, seed=1)
    stamped = with_timestamps(table)
    assert stamped["min_time"].type == pa.timestamp("us", tz="UTC")
    for name in ("min_time", "max_time"):
        moved = stamped[name].cast(pa.int64()).to_numpy() - table[name].to_numpy()
        assert np.unique(moved).size == 1


@pytest.mark.parametrize("events", [1, 7, 500])
def test_naive_kernel_finds_the_same_pairs(events):
    left, right = Load(events, 50.0).tables()
    pairs = local_join(left, right, "pairs", 1).num_rows
    assert naive_pairs(left, right, 2) == naive_counts(left, right, 2) == pairs


def test_every_duckdb_plan_finds_the_same_pairs():
    from bench.peers.duckdb_join import DuckDBJoin

    left, right = Load(500, 50.0).tables()
    pairs = local_join(left, right, "pairs", 1).num_rows
    events = local_join(left, right, "counts", 1).num_rows
    duck = DuckDBJoin(left, right, 1)
    for plan in duck.variants:
        assert (duck.pairs(plan), duck.count(plan), duck.counts(plan)) == (pairs, pairs, events)


@pytest.mark.parametrize("events", [1, 500])
def test_every_duckdb_plan_and_pairs_have_our_aggregates(events):
    from bench.experiments.aggregates import IN_SQL, aggregated, grouped_pairs, in_short, tables
    from bench.peers.duckdb_join import DuckDBJoin

    left, right = tables(Load(events, 50.0))
    ours = aggregated(left, right, 1)
    duck = DuckDBJoin(left, right, 1)
    for plan in duck.variants:
        assert duck.aggregates(plan, IN_SQL) == ours.num_rows
        assert in_short(duck.aggregated(), ours) == (True,) * 5
    assert in_short(grouped_pairs(left, right, 1).sort_by("left_id"), ours) == (True,) * 5


@pytest.mark.parametrize("events", [1, 500])
def test_every_polars_plan_has_our_aggregates(events):
    from bench.experiments.aggregates import aggregated, in_polars, in_short, tables
    from bench.peers.polars_join import VARIANTS, polars_aggregates

    left, right = tables(Load(events, 50.0))
    ours = aggregated(left, right, 1)
    for plan in VARIANTS:
        found = polars_aggregates(left, right, in_polars(), variant=plan).sort("id").to_arrow()
        assert in_short(found, ours) == (True,) * 5


def test_other_aggregates_are_seen():
    from bench.experiments.aggregates import aggregated, in_short, tables

    left, right = tables(Load(500, 50.0))
    ours = aggregated(left, right, 1)
    moved = right.set_column(
        right.schema.get_field_index("b"), "b", pc.multiply(right["b"], 1.00001)
    )
    assert in_short(aggregated(left, moved, 1), ours) == (True, True, False, False, True)
    assert not any(in_short(ours.slice(1), ours))


@pytest.mark.spark
def test_any_frame_is_no_read_of_files_and_costs_nothing(spark, tmp_path):
    Load(100, 4.0).write(tmp_path)
    read = spark.read.parquet(str(tmp_path / "left.parquet"))
    found = any_frame(read)
    assert plain_read(read, read.columns) is not None
    assert plain_read(found, read.columns) is None
    plans = [plan_of(frame).toString().strip() for frame in (read, found)]
    assert plans[0] == plans[1]
    assert plans[0].startswith("Relation ")


def test_exponent_of_squares_is_two():
    sizes = [1, 2, 4]
    value, (low, high) = exponent(sizes, [Timing((n**2.0, 3 * n**2.0)) for n in sizes])
    assert (value, low, high) == pytest.approx((2.0, 2.0, 2.0))


def test_fit_finds_costs_and_lets_none_be_negative():
    amounts = np.array([[1.0, 1.0, 0.0], [1.0, 2.0, 5.0], [1.0, 4.0, 1.0], [1.0, 8.0, 3.0]])
    np.testing.assert_allclose(fit(amounts, amounts @ [3.0, 2.0, 1.0]), [3.0, 2.0, 1.0])
    assert (fit(amounts, amounts @ [3.0, 2.0, -0.1]) >= 0.0).all()


def test_peak_memory_sees_a_child_process():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        peak = PeakMemory()
        peak.sample()
        assert child.pid in peak.workers
        assert peak.worker >= peak.workers[child.pid]
    finally:
        child.communicate(b"\n")


def test_fingerprints_tell_pairs_apart():
    left, right = np.array([1, 2, 3]), np.array([4, 5, 6])
    found = fingerprint(left, right)
    assert found == (3, 6, 15, 32)
    assert found == fingerprint(left[::-1], right[::-1])
    assert found != fingerprint(left, right[::-1]), "the same ids, paired otherwise"
    assert fingerprint_of_table(pa.table([left, right], names=["a", "b"])) == found
    assert fingerprint(left[:0], right[:0]) == (0, 0, 0, 0)


def test_streams_are_those_of_the_batch_join():
    load = StreamLoad(100.0, 3.0)
    arrivals = load.arrivals()
    assert (np.diff(arrivals.arrival) >= 0).all()
    late = arrivals.arrival - arrivals.max_time
    assert late.min() >= 0
    assert load.delay_us / 2 < late.max() <= load.delay_us
    lengths = arrivals.max_time - arrivals.min_time
    assert SHORTEST_US <= lengths.min() < lengths.max() <= LONGEST_US
    window = mutual_deadline_us(500, 0.8)
    expected = int(EventJoin(*load.events(), IntervalPairs(window)).counts.sum())
    assert expected > 0
    assert {StreamRun(load, window, block=50)(name).pairs for name in LABELS} == {expected}
    ordered = StreamLoad(100.0, 3.0, ordered=True).arrivals()
    assert (ordered.arrival == ordered.max_time).all()


def some_report(quick=False):
    bench = Bench(Report("some", quick))
    bench.chart("one", "A title", "x (s)", "y (ms)", [1.0, 2.0], {"Eager": [3.0, 4.0]})
    bench.claim("they say", "we | see", True)
    bench.claim("they also say", "we see not", False)
    for row in ("first", "second"):
        for column in ("a", "b"):
            bench.figure(f"{row}: {column}", 2.0, "x", spread=(1.5, 2.5))
    for name in ("alone | here", "alone", "also alone"):
        bench.figure(name, 2.0, "s", 3.0)
    bench.figure("second: c", 2.0, "s")
    return bench.report


def test_report_draws_its_charts(tmp_path):
    path = some_report().write(tmp_path)
    results = json.loads(path.read_text(encoding="utf-8"))
    assert results["charts"][0]["lines"] == {"Eager": [3.0, 4.0]}
    assert [claim["agrees"] for claim in results["claims"]] == [True, False]
    assert (tmp_path / "some-one.png").read_bytes().startswith(b"\x89PNG")
    assert [claim.agrees for claim in some_report(quick=True).claims] == [None, None]


def test_page_is_written_from_results(tmp_path):
    some_report().write(tmp_path / "results")
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    catalogue = {
        "some": Experiment("", lambda bench: None, title="Something", about="How it was done."),
        "other": Experiment("", lambda bench: None),
    }
    assert write_report(catalogue, tmp_path / "results", page) == ["other"]
    text = page.read_text(encoding="utf-8")
    assert "Not measured yet: `run other`." in text
    assert "## Something\n\nHow it was done. `run some`" in text
    assert "Charts: [A title](../results/some-one.png)." in text
    assert "|  | a | b |" in text
    assert "| second | 2 × (1.5 … 2.5) | 2 × (1.5 … 2.5) |" in text
    assert "| alone &#124; here | 2 s, **not ≥ 3** |" in text
    assert "second: c" not in text  # without a bar and in no matrix: its JSON file has it


def test_what_has_few_figures_is_a_line_of_the_page(tmp_path):
    bench = Bench(Report("plain", False))
    bench.figure("first: a", 2.0, "x")
    bench.figure("second", 2.0, "s", 1.0, at_least=False)
    bench.report.write(tmp_path / "results")
    page = tmp_path / "page.md"
    catalogue = {"plain": Experiment("", lambda bench: None, title="Plain", about="So it was.")}
    assert write_report(catalogue, tmp_path / "results", page) == []
    text = page.read_text(encoding="utf-8")
    assert "\n## Further experiments\n\n- **Plain.** second 2 s, **not ≤ 1**. So it was." in text
    assert "first: a" not in text


def test_run_all_goes_on_after_a_failure(monkeypatch, tmp_path):
    def fail(bench):
        raise OSError("no such disk")

    for name in list(experiments()):
        monkeypatch.delitem(experiments(), name)
    monkeypatch.setitem(experiments(), "broken", Experiment("", fail))
    monkeypatch.setitem(experiments(), "whole", Experiment("", lambda bench: None))
    done = CliRunner().invoke(app, ["run", "all", "--quick", "--out", str(tmp_path)])
    assert done.exit_code == 1
    assert "broken failed: OSError: no such disk" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["whole-quick.json"]


def test_only_changed_code_marks_a_commit(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        name = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *name, *words], cwd=tmp_path, check=True, capture_output=True)

    assert commit(tmp_path / "nowhere") == "unknown"
    (tmp_path / "bench" / "results").mkdir(parents=True)
    code, result = tmp_path / "code.py", tmp_path / "bench" / "results" / "spark.json"
    page = tmp_path / "docs" / "page.md"
    page.parent.mkdir()
    page.write_text("")
    code.write_text("1")
    result.write_text("{}")
    git("init")
    git("add", ".")
    git("commit", "-m", "all")
    clean = commit(tmp_path)
    result.write_text("[]")
    page.write_text("more")
    assert len(clean) == 40
    assert commit(tmp_path) == clean
    code.write_text("2")
    assert commit(tmp_path) == clean + "-dirty"
