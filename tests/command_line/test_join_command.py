"""`coincide join` in one process: what it prints and what it writes."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide.command_line import run
from coincide.command_line.progress import Progress
from tests.helpers.rows import in_order
from tests.helpers.workplace import WINDOW, events


def test_join_writes_the_pairs_of_the_worker(work):
    code, out, err = work.join(*WINDOW, "--by", "key", "--probability")
    assert (code, err) == (0, "")
    expected = work.expected(by="key", probability=True)
    assert expected.num_rows == 3
    assert work.result().equals(expected)
    assert [path.name for path in work.output.parent.iterdir()] == ["out.parquet"]
    assert "pairs" in out
    assert str(work.output) in out


@pytest.mark.parametrize(
    "window",
    [
        ("--within", "-3", "5"),
        ("--within=-3", "5"),
    ],
    ids=" ".join,
)
def test_a_window_may_begin_with_a_minus(work, window):
    assert work.join(*window, "--confidence", "0.5")[0] == 0
    assert in_order(work.result()) == in_order(work.expected())


@pytest.mark.parametrize("words", [("--confidence", "90%"), ("--confidence=90%",)], ids=" ".join)
def test_a_confidence_may_be_a_percentage(work, words):
    assert work.join("--within", "-1", "2", *words)[0] == 0
    few = in_order(work.result())
    assert few == in_order(work.expected(-1, 2, confidence=0.9))
    assert work.join("--within", "-1", "2", "--confidence", "0.3", "--overwrite")[0] == 0
    assert len(few) < len(in_order(work.result()))


def test_durations_with_a_unit_before_or_after_other_options(work):
    assert work.join("--unit", "ms", "--confidence", "0.5", "--within", "-3ms", "0.005s")[0] == 0
    assert in_order(work.result()) == in_order(work.expected())


def test_mutual_deadline(work):
    assert work.join("--mutual-deadline", "4", "--confidence", "0.5")[0] == 0
    assert in_order(work.result()) == in_order(work.expected(-4, 4))


@pytest.mark.parametrize(
    "words",
    [
        ("--within", "4", "--confidence", "0.5"),
        ("--confidence", "0.5", "--within", "4"),
        ("--confidence", "0.5", "--within=4"),
        ("--unit", "ms", "--within", "4ms", "--confidence", "0.5"),
    ],
    ids=" ".join,
)
def test_one_duration_is_the_window_about_zero(work, words):
    assert work.join(*words)[0] == 0
    assert in_order(work.result()) == in_order(work.expected(-4, 4))


def test_one_duration_before_the_inputs(work):
    words = ["--within", "4", str(work.left), str(work.right), "-o", str(work.output)]
    assert run(["join", *words, "--engine", "local", "--confidence", "0.5"]) == 0
    assert in_order(work.result()) == in_order(work.expected(-4, 4))


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("emit", ["pairs", "lists", "counts", "best"])
def test_how_and_emit(work, how, emit):
    if how in ("semi", "anti") and emit != "pairs":
        assert f"Remove --emit {emit}" in work.refused(*WINDOW, "--how", how, "--emit", emit)
        return
    if how in ("right", "full") and emit != "pairs" and (how, emit) != ("right", "best"):
        assert f"--emit {emit}" in work.refused(*WINDOW, "--how", how, "--emit", emit)
        return
    assert work.join(*WINDOW, "--how", how, "--emit", emit)[0] == 0
    assert in_order(work.result()) == in_order(work.expected(how=how, emit=emit))


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ("--emit best --prefer last --k 2", {"emit": "best", "prefer": "last", "k": 2}),
        ("--matching mutual --prefer first", {"matching": "mutual", "prefer": "first"}),
        ("--emit best --prefer -id", {"emit": "best", "prefer": "-id"}),
        ("--emit best --prefer=-id --k 2", {"emit": "best", "prefer": "-id", "k": 2}),
        ("--emit best --prefer last,-id", {"emit": "best", "prefer": ["last", "-id"]}),
        ("--emit best --prefer -key,id --k 2", {"emit": "best", "prefer": ["-key", "id"], "k": 2}),
        ("--matching unambiguous", {"matching": "unambiguous"}),
        ("--matching optimal --largest-group 9", {"matching": "optimal", "largest_group": 9}),
    ],
)
def test_which_match(work, options, asked):
    assert work.join(*WINDOW, *options.split())[0] == 0
    assert in_order(work.result()) == in_order(work.expected(**asked))


def test_columns_to_hand_out_and_exact_times(work):
    options = ("--left-time", "min_time", "--left-columns", "key,min_time", "--right-columns", "id")
    assert work.join(*WINDOW, *options, "--right-columns", "max_time")[0] == 0
    assert work.result().column_names == [
        "left_key", "left_min_time", "right_id", "right_max_time"
    ]  # fmt: skip
    expected = work.expected(
        left_time="min_time", left_columns=["key", "min_time"], right_columns=["id", "max_time"]
    )
    assert in_order(work.result()) == in_order(expected)


def test_json_summary(work):
    work.write("left.parquet", events(min_time=[0, None, 99, 30]))
    code, out, _ = work.join(*WINDOW, "--invalid", "drop", "--json")
    assert code == 0
    summary = json.loads(out)
    assert summary["left"] == {"rows": 4, "unmatchable": 1, "invalid": {"order": 1}}
    assert summary["right"] == {"rows": 4, "unmatchable": 0, "invalid": {}}
    assert summary["pairs"] == summary["rows"] == work.result().num_rows
    assert {"candidates", "probed", "seconds", "output", "engine"} <= summary.keys()


def test_summary_tells_pairs_from_the_best_of_them(work):
    window = ("--within", "-50", "50", "--confidence", "0.5")
    out = work.join(*window, "--emit", "best")[1]
    pairs = work.expected(-50, 50).num_rows
    assert pairs > work.result().num_rows
    assert f"{pairs:,}, among which the best were chosen" in out
    assert "chosen" not in work.join(*window, "--emit", "lists", "--overwrite")[1]


def test_progress_shows_before_the_first_row(work, monkeypatch):
    many = pa.table({name: list(range(20_000)) for name in ("id", "min_time", "max_time")})
    for name in ("left.parquet", "right.parquet"):
        work.write(name, many)
    said = []
    monkeypatch.setattr(Progress, "show", lambda self, text, *more: said.append(text))
    words = ("--within", "-20000", "20000", "--confidence", "0.5", "--emit", "counts")
    assert work.join(*words, "--where", "left_id > right_id")[0] == 0
    told = [text for text in said if text.endswith("events have been compared")]
    assert told
    assert said.index(told[-1]) < said.index("joining: 19,999 rows written")


def test_summary_counts_what_was_left_out(work):
    work.write("left.parquet", events(min_time=[0, None, 99, 30]))
    _, out, _ = work.join(*WINDOW, "--invalid", "drop")
    assert "4 rows; 1 without time or key; skipped 1 invalid row (1 whose min is above max)" in out


def test_empty_inputs_give_an_empty_file(work):
    work.write("left.parquet", events().slice(0, 0))
    assert work.join(*WINDOW)[0] == 0
    assert work.result().num_rows == 0
    assert work.result().column_names == ["left_id", "right_id"]


def test_small_batches_are_gathered_into_row_groups(work):
    many = {"id": list(range(500)), "min_time": list(range(500)), "max_time": list(range(500))}
    for name in ("left.parquet", "right.parquet"):
        work.write(name, pa.table(many))
    assert work.join("--mutual-deadline", "3", "--confidence", "1", "--batch-pairs", "10")[0] == 0
    assert work.result().num_rows == 500 * 7 - 12
    assert pq.read_metadata(work.output).num_row_groups == 1


def test_overwrite_replaces_a_file(work):
    work.output.write_text("old")
    assert work.join(*WINDOW, "--overwrite")[0] == 0
    assert work.result().num_rows == work.expected().num_rows


def test_overwrite_replaces_a_folder_of_parquet(work):
    work.output.mkdir()
    pq.write_table(events(), work.output / "part-0.parquet")
    (work.output / "_SUCCESS").touch()
    assert work.join(*WINDOW, "--overwrite")[0] == 0
    assert work.output.is_file()
    assert [path.name for path in work.output.parent.iterdir()] == ["out.parquet"]


def test_a_failure_keeps_the_old_output(work):
    work.output.write_text("old")
    work.write("left.parquet", events(min_time=[9, 10, 20, 30]))
    work.refused(*WINDOW, "--overwrite")
    assert work.output.read_text() == "old"


def test_a_bug_is_our_failure(work, monkeypatch):
    def broken(*_: object) -> None:
        raise KeyError("some\nthing")

    monkeypatch.setattr("coincide.command_line.event_inputs.checked_types", broken)
    code, out, err = work.join(*WINDOW)
    assert (code, out) == (1, "")
    assert err.startswith("coincide: KeyError")
    assert len(err.splitlines()) == 1
    assert list(work.output.parent.iterdir()) == []
    code, _, err = work.join(*WINDOW, "--debug")
    assert code == 1
    assert "Traceback" in err


def test_interrupted_in_the_middle(work, monkeypatch):
    def interrupted(*_: object) -> None:
        assert len(list(work.output.parent.iterdir())) == 1
        raise KeyboardInterrupt

    monkeypatch.setattr("coincide.engine.files.result_rows.ParquetRows.write", interrupted)
    code, out, err = work.join(*WINDOW)
    assert (code, out) == (130, "")
    assert len(err.splitlines()) == 1
    assert list(work.output.parent.iterdir()) == []
