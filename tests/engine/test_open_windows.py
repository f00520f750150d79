"""Windows without one of their ends: the last event before each, however long ago; the first after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.hunt.questions import open_windows
from coincide import (
    ConditionError,
    around,
    correlate_tables,
    delay,
    explore_tables,
    stream_tables,
)
from coincide.command_line import run
from tests.helpers.rows import tuples

TRADES = pa.table({"id": ["a", "b", "c"], "t": [10, 20, 3]})
QUOTES = pa.table({"id": ["q1", "q2", "q3"], "t": [5, 15, 20]})
ASKED: dict[str, Any] = {"left_time": "t", "right_time": "t", "emit": "best", "how": "left"}
BEFORE = [("a", "q1"), ("b", "q3"), ("c", None)]


def found(window: Any, prefer: str, **more: Any) -> list[tuple[Any, ...]]:
    answer = correlate_tables(TRADES, QUOTES, within=window, prefer=prefer, **ASKED | more)
    return tuples(answer)


def test_the_last_before_and_the_first_after() -> None:
    assert found((None, 0), "last") == found((None, 0), "nearest") == BEFORE
    assert found((None, -1), "last") == [("a", "q1"), ("b", "q2"), ("c", None)]
    assert found((None, 7), "last") == [("a", "q2"), ("b", "q3"), ("c", "q1")]
    assert found((0, None), "first") == [("a", "q2"), ("b", "q3"), ("c", "q1")]
    assert found(delay(1), "nearest") == [("a", "q2"), ("b", None), ("c", "q1")]
    assert found((None, 0), "last", pair_columns="delta", how="inner", probability=True) == [
        ("a", "q1", -5, 1.0), ("b", "q3", 0, 1.0),
    ]  # fmt: skip
    anti = correlate_tables(
        TRADES, QUOTES, within=(None, 0), left_time="t", right_time="t", how="anti"
    )
    assert anti.to_pylist() == [{"left_id": "c"}]


def test_rows_of_equal_time() -> None:
    left = pa.table({"id": [0], "t": [5]})
    right = pa.table({"id": [7, 3, 8, 2], "t": [4, 4, 6, 6]})
    asked = {"left_time": "t", "right_time": "t", "emit": "best"}
    for window, prefer, expected in (
        ((None, 0), "last", 3), ((None, 0), "nearest", 7), ((0, None), "first", 8),
        ((0, None), "nearest", 8),
    ):  # fmt: skip
        pairs = correlate_tables(left, right, within=window, prefer=prefer, **asked)
        assert pairs["right_id"].to_pylist() == [expected]


def test_times_as_far_apart_as_there_are() -> None:
    far = 2**61 - 1
    left, right = pa.table({"id": [0], "t": [far]}), pa.table({"id": [1], "t": [-far]})
    asked = {"left_time": "t", "right_time": "t", "emit": "best", "prefer": "last"}
    for hi in (0, -far, far):
        pairs = correlate_tables(left, right, within=(None, hi), pair_columns="delta", **asked)
        assert pairs.to_pylist() == [{"left_id": 0, "right_id": 1, "delta": -2 * far}]


def test_drawn_windows() -> None:
    for seed in range(300):
        assert open_windows.wrong(np.random.default_rng(seed)) is None


def test_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [tmp_path / "left.parquet", tmp_path / "right.parquet"]
    for path, table in zip(paths, (TRADES, QUOTES), strict=True):
        pq.write_table(table, path)
    words = ["join", *map(str, paths), "-o", str(tmp_path / "out.parquet"), "--within", "none", "0"]
    words += ["--left-time", "t", "--right-time", "t", "--engine", "local"]
    assert run(words) == 2
    said = capsys.readouterr().err
    assert "Give both ends, such as --within -1h 0s, or ask for the last match alone:" in said
    assert "--emit best, --prefer last" in said
    assert run([*words, "--left-around", "1"]) == 2
    said = capsys.readouterr().err
    assert "those of left are uncertain" in said
    assert "Give both ends, such as --within -1h 0s, and --confidence 0.5." in said
    explored = ["explore", *map(str, paths), "-o", str(tmp_path / "page.html"), *words[5:-2]]
    assert run(explored) == 2
    said = capsys.readouterr().err
    assert "has two ends then (found delta <= 0). Give both, such as --within -1h 0s." in said
    assert "--emit" not in said
    assert run([*words, "--emit", "best", "--prefer", "last", "--how", "left"]) == 0
    rows = pq.read_table(tmp_path / "out.parquet").to_pylist()
    assert sorted(tuple(row.values()) for row in rows) == BEFORE


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "all pairs": ({"emit": "pairs", "prefer": "probability"}, "holds for most pairs"),
    "the most probable": ({"prefer": "probability"}, "ask for the last match alone"),
    "the first of all": ({"prefer": "first"}, "ask for the last match alone"),
    "the nearest of both directions": ({"within": (None, 7), "prefer": "nearest"}, "the last match"),
    "the last of all": ({"within": (0, None)}, "ask for the first match alone"),
    "a condition on pairs": ({"where": "left_id <> right_id"}, "without where"),
    "uncertain times": ({"right_time": around("t", 2)}, "those of right are uncertain"),
    "uncertain times of no confidence": (
        {"right_time": around("t", 2), "confidence": None}, "those of right .* and confidence=0.5"
    ),
    "two preferences in one text": ({"prefer": "last,-seq"}, r"Write prefer=\['last', '-seq'\]"),
    "no end at all": ({"within": (None, None)}, "at least one bound"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    more, words = REFUSED[name]
    asked = {"within": (None, 0), "prefer": "last", "confidence": 0.9, **ASKED, **more}
    with pytest.raises(ConditionError, match=words):
        correlate_tables(TRADES, QUOTES, **asked)


def test_other_questions_need_both_ends() -> None:
    window = {"within": (None, 0), "left_time": "t", "right_time": "t"}
    with pytest.raises(ConditionError, match="a stream keeps events as long as its window reaches"):
        stream_tables(**window, emit="best", prefer="last", left_delay=0, right_delay=0)
    with pytest.raises(
        ConditionError, match="an exploration counts all pairs of a window, which has two ends"
    ):
        explore_tables(TRADES, QUOTES, **window)
