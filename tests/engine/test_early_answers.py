"""Answers that are stamped before their requests: the warning, and what the earlier window changes."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import coincide as c
from coincide import EarlyAnswersWarning, around
from coincide.command_line import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLOCKS: dict[str, Any] = {"left_time": around("t", "50ms"), "right_time": around("t", "20ms")}
ASKED: dict[str, Any] = {
    **CLOCKS,
    "within": ("0s", "2s"),
    "confidence": 0.5,
    "by": "order",
    "how": "anti",
}
SAID = (
    r"^how='anti' reports a left event as unmatched if its match is stamped before it"
    r" \(found a window from 0, and timestamps of up to 100 ms and 40 ms\)."
    r" If keys tie answers to requests, begin the window at"
    r" '-140ms'.$"
)


def sides(n: int = 2_000) -> tuple[pa.Table, pa.Table, set[int]]:
    """Requests and answers by order, and which requests have no answer in time."""
    rng = np.random.default_rng(5)
    asked, delay = rng.integers(0, 10**9, n), rng.exponential(10**5, n).astype(int)
    is_answered = rng.random(n) < 0.9
    ids = np.arange(n)
    stamps = (
        asked + rng.integers(-50_000, 50_001, n),
        asked + delay + rng.integers(-20_000, 20_001, n),
    )
    left, right = (
        pa.table({"id": ids, "order": ids, "t": pa.array(each, pa.timestamp("us"))})
        for each in stamps
    )
    return left, right.filter(pa.array(is_answered)), set(ids[~is_answered].tolist())


def told(**changed: Any) -> list[str]:
    left, right, _ = sides(50)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        c.correlate_tables(left, right, **{**ASKED, **changed})
    return [str(each.message) for each in caught if each.category is EarlyAnswersWarning]


def test_the_window_that_it_proposes_finds_what_is_missing() -> None:
    left, right, missing = sides()
    with pytest.warns(EarlyAnswersWarning, match=SAID):
        found = c.correlate_tables(left, right, **ASKED)
    assert len(set(found["left_id"].to_pylist()) - missing) > 200
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = c.correlate_tables(left, right, **{**ASKED, "within": ("-140ms", "2s")})
    assert set(found["left_id"].to_pylist()) == missing


@pytest.mark.parametrize(
    "changed",
    [
        {"how": "left"}, {"how": "semi"}, {"how": "full"}, {"how": "right"}, {"by": ()},
        {"within": ("-1us", "2s")}, {"within": ("1us", "2s")}, {"left_time": "t", "right_time": "t"},
        {"left_time": around("t", "0s"), "right_time": "t"}, {"how": "right", "within": ("-2s", "0s")},
    ],
    ids=str,
)  # fmt: skip
def test_who_is_not_warned(changed: dict[str, Any]) -> None:
    assert told(**changed) == []


def test_lengths_that_are_not_known() -> None:
    left, right, _ = sides(50)
    late = left.append_column("until", left["t"])
    asked = {**ASKED, "left_time": ("t", "until"), "right_time": "t"}
    with pytest.warns(
        EarlyAnswersWarning, match="by the longest timestamps of both sides together"
    ):
        c.correlate_tables(late, right, **asked)
    with pytest.warns(
        EarlyAnswersWarning, match=r"up to 9 ms and 0 .* begin the window at '-9000us'"
    ):
        c.correlate_tables(late, right, **asked, options=c.CorrelateOptions(left_longest="9ms"))


def test_streams_and_files_warn_at_their_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live = c.stream_tables(**ASKED, left_delay="1s", right_delay="1s")
    left, right, _ = sides(50)
    live.push("left", left)
    with pytest.warns(EarlyAnswersWarning, match=SAID):
        live.push("right", right)
    for name, table in zip(("left", "right"), sides(50), strict=False):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    words = [
        *(
            "join",
            str(tmp_path / "left.parquet"),
            str(tmp_path / "right.parquet"),
            "--engine",
            "local",
        ),
        *("-o", str(tmp_path / "out.parquet"), "--left-time", "t", "--left-around", "50ms"),
        *(
            "--right-time",
            "t",
            "--right-around",
            "20ms",
            "--within",
            "0s",
            "2s",
            "--confidence",
            "0.5",
        ),
        *("--by", "order", "--how", "anti"),
    ]
    assert run(words) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "--how anti reports a left event as unmatched" in said
    assert "begin the window at '-140ms'" in said


@pytest.mark.spark
def test_spark_warns(spark: SparkSession) -> None:
    left, right, _ = sides(50)
    with pytest.warns(EarlyAnswersWarning, match=SAID):
        c.correlate(spark.createDataFrame(left), spark.createDataFrame(right), **ASKED)
