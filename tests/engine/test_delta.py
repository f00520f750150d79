"""Delta as a column of pairs of any join: between stamps, or midpoints, in a column that says its unit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    GivenTemplate,
    Templates,
    Temporal,
    TimingCondition,
    around,
    causality_tables,
    correlate,
    correlate_tables,
    histograms,
    within,
)
from coincide.command_line import run
from tests.helpers.spark_cases import frame

CONDITION = TimingCondition(within(-30, 40), 0.2)
COLUMNS = {"left_columns": ["id", "min_time", "max_time"]}
COLUMNS["right_columns"] = COLUMNS["left_columns"]
TIMES = [f"{side}_{end}_time" for side in ("left", "right") for end in ("min", "max")]
SHAPES: list[dict[str, Any]] = [
    {}, {"how": "left", "probability": True}, {"how": "full"}, {"emit": "best"},
    {"emit": "best", "k": 3, "how": "left"}, {"emit": "best", "prefer": "last"},
    {"matching": "mutual"}, {"matching": "unambiguous", "how": "left"}, {"where": "left_id < right_id"},
]  # fmt: skip


def events(seed: int, n: int = 80) -> pa.Table:
    random = np.random.default_rng(seed)
    low = random.integers(0, 900, n)
    ends = low + random.integers(0, 12, n)
    return pa.table({"id": range(n), "min_time": low, "max_time": ends})


def check(found: pa.Table) -> None:
    """Every pair has the difference of its midpoints, half a tick cut off, and a row of no pair null."""
    assert found.num_rows > 9
    for row in found.to_pylist():
        low, high, low2, high2 = (row[name] for name in TIMES)
        is_pair = None not in (low, low2)
        assert row["delta"] == (int((low2 + high2 - low - high) / 2) if is_pair else None)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tables(shape: dict[str, Any]) -> None:
    asked = {**COLUMNS, **shape}
    sides = events(1), events(2)
    found = correlate_tables(*sides, CONDITION, pair_columns="delta", **asked)
    check(found)
    assert found.drop_columns("delta").equals(correlate_tables(*sides, CONDITION, **asked))
    if shape.get("how") != "full":
        check(correlate_tables(sides[0], None, CONDITION, pair_columns=["delta"], **COLUMNS))


def test_lists_and_plain_columns() -> None:
    sides = events(1), events(2)
    pairs = correlate_tables(*sides, CONDITION, pair_columns="delta")
    assert pairs.column_names == ["left_id", "right_id", "delta"]
    lists = correlate_tables(*sides, CONDITION, pair_columns="delta", emit="lists").to_pylist()
    flat = [(row["left_id"], d) for row in lists for d in row["delta"]]
    assert sorted(flat) == sorted(
        zip(*(pairs[n].to_pylist() for n in ("left_id", "delta")), strict=True)
    )


def test_stamps_are_as_of_causality() -> None:
    """Between stamps where there are such, in the unit of the tick."""
    milliseconds = np.array([0, 700, 1900])
    table = pa.table({"id": range(3), "t": pa.array(milliseconds, pa.timestamp("ms"))})
    for options, name in (
        (CorrelateOptions(), "delta_us"),
        (CorrelateOptions(unit="ns"), "delta_ns"),
    ):
        times = around("t", "10ms"), "t"
        found = correlate_tables(
            table, table, within="1s", confidence=0.9, left_time=times[0], right_time=times[1],
            pair_columns="delta", options=options,
        )  # fmt: skip
        caused = causality_tables(
            table, table, CausalityCondition([Temporal("-1s", "1s")], confidence=0.9),
            cause_time=times[0], effect_time=times[1], options=options,
        )  # fmt: skip
        assert sorted(found[name].to_pylist()) == sorted(caused[name].to_pylist())
        assert found.num_rows == 5


def test_stamps_of_delays() -> None:
    """A template of delays says when an event was, and its stamp is when it was seen."""
    delays = Templates({"late": GivenTemplate((10, 14, 20), (0.5, 0.5), delays=True)})
    seen = pa.table({"id": [0, 1], "t": [100, 130], "template": ["late", "late"]})
    exact = pa.table({"id": [9], "t": [105]})
    time = histograms("t", template="template", templates=delays)
    found = correlate_tables(
        seen, exact, within=(-60, 60), confidence=0.9, left_time=time, right_time="t",
        pair_columns="delta",
    )  # fmt: skip
    caused = causality_tables(
        seen, exact, CausalityCondition([Temporal(-60, 60)], confidence=0.9),
        cause_time=time, effect_time="t",
    )  # fmt: skip
    assert sorted(found["delta"].to_pylist()) == [-25, 5]
    assert sorted(caused["delta"].to_pylist()) == [-25, 5]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"pair_columns": "delay"}, "pair_columns takes 'delta'"),
        ({"pair_columns": 3}, "pair_columns must be a column name"),
        (
            {"pair_columns": "delta", "how": "anti"},
            "how='anti' gives no pairs, so there is no delta",
        ),
        (
            {"pair_columns": "delta", "emit": "counts"},
            "emit='counts' gives no pairs, so there is no delta",
        ),
    ],
)
def test_refused(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(ConditionError, match=words):
        correlate_tables(events(1), events(2), CONDITION, **asked)


def test_files(tmp_path: Path) -> None:
    for side, seed in (("left", 1), ("right", 2)):
        pq.write_table(events(seed), tmp_path / f"{side}.parquet")
    given = [str(tmp_path / f"{name}.parquet") for name in ("left", "right", "pairs")]
    code = run(
        ["join", *given[:2], "-o", given[2], "--engine", "local", "--within", "-30", "40",
         "--confidence", "0.2", "--pair-columns", "delta"]
    )  # fmt: skip
    assert code == 0
    expected = correlate_tables(events(1), events(2), CONDITION, pair_columns="delta")
    order = [(name, "ascending") for name in expected.column_names]
    assert pq.read_table(given[2]).sort_by(order).equals(expected.sort_by(order))


@pytest.mark.parametrize("way", ["broadcast", "exchange"])
@pytest.mark.parametrize("shape", [SHAPES[2], SHAPES[4], SHAPES[6]], ids=str)
def test_spark(spark: SparkSession, way: Any, shape: dict[str, Any]) -> None:
    tables = events(1), events(2)
    asked = {**COLUMNS, **shape, "pair_columns": "delta"}
    expected = correlate_tables(*tables, CONDITION, **asked)
    options = CorrelateOptions(way=way)
    sides = (frame(spark, table) for table in tables)
    found = correlate(*sides, CONDITION, options=options, **asked).toArrow()
    order = [(name, "ascending") for name in expected.column_names]
    assert found.column_names == expected.column_names
    assert found.sort_by(order).to_pylist() == expected.sort_by(order).to_pylist()
