"""A report prints what the command of its operator prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coincide as c
from coincide.command_line import run

LEFT = pa.table({"id": [0, 1, 2], "t": [0, 10, None], "key": ["a", "b", "c"]})
RIGHT = pa.table({"id": [5, 6], "t": [2, 90], "key": ["a", "<b>"]})
FAR = RIGHT.set_column(1, "t", pa.array([500, 900]))
NEAR: dict[str, Any] = {"within": (-3, 3), "left_time": "t", "right_time": "t"}
QUERIES = pa.table({"query_id": [1], "lower": [3.0], "upper": [9.0]})
READINGS = pa.table({"stream_id": [1, 1, 1], "time": [0, 9, 9], "value": [0.0, 5.0, 6.0]})
OF_THE_COMMAND = ("engine", "seconds", "output", "rows", "way")


def printed(tmp_path: Path, capsys: Any, command: str, *tables: pa.Table, words: str) -> list[str]:
    """The lines of a command, without those of its files and its engine."""
    paths = [str(tmp_path / f"{i}.parquet") for i in range(len(tables))]
    for path, table in zip(paths, tables, strict=True):
        pq.write_table(table, path)
    capsys.readouterr()
    options = ["-o", str(tmp_path / "out.parquet"), "--overwrite", "--engine", "local"]
    assert run([command, *paths, *options, *words.split()]) == 0
    return own(capsys.readouterr().out)


def own(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith(OF_THE_COMMAND)]


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("right", [RIGHT, FAR], ids=["pairs", "no pairs"])
def test_of_a_join(tmp_path: Path, capsys: Any, right: pa.Table) -> None:
    report = c.JoinReport()
    c.correlate_tables(LEFT, right, report=report, **NEAR)
    words = "--within 3 --left-time t --right-time t --shifts 100,-100"
    said = printed(tmp_path, capsys, "join", LEFT, right, words=words)
    chance = c.accidental_pair_tables(LEFT, right, shifts=[100, -100], **NEAR)
    # The command tells of chance, below the pairs, what the function does.
    (line,) = (line for line in said if line.startswith("accidental"))
    assert line.split() == str(chance).split()
    assert said[said.index(line) - 1].startswith("pairs ")
    said.remove(line)
    assert own(str(report)) == said
    assert "left        3 rows; 1 without time or key" in said
    assert str(report).splitlines()[-1].startswith("seconds ")
    assert own(str(report.summary())) == said


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
def test_of_borders(tmp_path: Path, capsys: Any) -> None:
    report = c.BorderReport()
    c.border_crossing_tables(READINGS, QUERIES, report=report)
    assert str(report).splitlines() == printed(
        tmp_path, capsys, "borders", READINGS, QUERIES, words=""
    )
    assert "entered    1" in str(report)


def test_of_transitions(tmp_path: Path, capsys: Any) -> None:
    report = c.TransitionReport()
    crossings = c.border_crossing_tables(READINGS.slice(0, 2), QUERIES)
    c.transition_tables(crossings, within=5, confidence=0.9, report=report)
    words = "--within 5 --confidence 90%"
    lines = printed(tmp_path, capsys, "transitions", crossings, words=words)
    # Each front end names the option in its way.
    assert str(report).splitlines() == [line.replace("--until", "until") for line in lines]


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
def test_of_operators_without_pairs() -> None:
    report = c.JoinReport()
    c.clock_error_tables(LEFT, RIGHT, max_offset=5, left_time="t", right_time="t", report=report)
    assert str(report).splitlines()[1] == "right    2 rows"
    assert "pairs" not in str(report)


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
def test_before_anything_was_told_and_in_a_notebook() -> None:
    report = c.JoinReport()
    assert repr(report) == str(report) == "JoinReport  nothing has reported here yet"
    c.correlate_tables(LEFT.slice(0, 2), RIGHT, report=report, how="anti", by="key", **NEAR)
    table = report._repr_html_()
    assert table.startswith("<table><tr><th>left</th><td>2 rows</td></tr>")
    c.correlate_tables(LEFT.slice(0, 2), FAR, report=report, by="key", **NEAR)
    assert "<b>" not in report._repr_html_()
    assert "\u2061" not in str(report) + report._repr_html_()


def test_of_a_result_that_is_computed_later() -> None:
    """It does not wait: it reports what is known, and how to learn the rest."""
    report, asked = c.JoinReport(), []
    c.correlate_tables(LEFT.slice(0, 2), RIGHT, report=report, **NEAR)
    planned = report.summary()
    report.take(planned, lambda: asked.append(1) or planned)  # type: ignore[func-returns-value]
    assert (
        str(report).splitlines()[-1]
        == "JoinReport  its summary() has all numbers once the result was used"
    )
    assert not asked
    report.summary()
    assert asked == [1]
    assert "JoinReport" not in str(report)
