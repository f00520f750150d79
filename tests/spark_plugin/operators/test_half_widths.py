"""Half-widths by a column: as intervals whose ends were computed before, in one process and on Spark."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    DataError,
    JoinReport,
    SchemaError,
    Temporal,
    around,
    causality_tables,
    correlate,
    correlate_files,
    correlate_tables,
)
from coincide.command_line import run
from tests.helpers.rows import in_order, pair_ids, tuples

ANY: dict[str, Any] = {"within": (-20, 60), "confidence": 0.6, "probability": True}


def stamped(seed: int, size: int = 300) -> pa.Table:
    """Stamps in ms and half-widths; some are missing."""
    random = np.random.default_rng(seed)
    times = np.sort(random.integers(0, 5000, size))
    own, others = (random.integers(0, 30, size).astype(float) for _ in range(2))
    own[random.random(size) < 0.05] = np.nan
    own[random.random(size) < 0.05] = -1.0
    others[random.random(size) < 0.02] = np.inf
    return pa.table(
        {
            "id": np.arange(size),
            "t": pa.array(times, mask=random.random(size) < 0.05),
            "early": own,
            "late": pa.array(others, mask=random.random(size) < 0.05),
        }
    )


def with_ends(table: pa.Table) -> pa.Table:
    """The valid rows as intervals; of those without a time both ends are null."""
    t, own, others = (table[name].to_pylist() for name in ("t", "early", "late"))
    rows = [
        {"id": i, "min_time": None if t[i] is None else t[i] - int(own[i]),
         "max_time": None if t[i] is None else t[i] + int(others[i])}
        for i in range(len(t))
        if t[i] is None or (others[i] is not None and np.isfinite(others[i]) and own[i] >= 0)
    ]  # fmt: skip
    schema = pa.schema([(name, pa.int64()) for name in ("id", "min_time", "max_time")])
    return pa.Table.from_pylist(rows, schema)


BOTH = around("t", column=("early", "late"))
LEFT, RIGHT = stamped(1), stamped(2)
DROP = CorrelateOptions(invalid="drop")


EXPECTED = correlate_tables(with_ends(LEFT), with_ends(RIGHT), **ANY)


def test_as_intervals() -> None:
    report = JoinReport()
    found = correlate_tables(
        LEFT, RIGHT, left_time=BOTH, right_time=BOTH, options=DROP, report=report, **ANY
    )
    assert in_order(found) == in_order(EXPECTED)
    assert found.num_rows > 200
    counts = report.summary().left
    assert counts is not None
    assert counts.invalid == {"width": LEFT.num_rows - with_ends(LEFT).num_rows}
    assert counts.invalid["width"] > 20
    assert counts.unmatchable == LEFT["t"].null_count


def test_units() -> None:
    start = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    table = pa.table({"id": [1], "t": [start], "sigma": [1.5]})
    other = pa.table({"id": [2], "t": [start + dt.timedelta(milliseconds=2)]})
    given: dict[str, Any] = {"right_time": "t", "within": "600us", "confidence": 1e-9}
    for unit, share in (("ms", 0.1 / 3), ("s", 1.2 / 3000)):
        time = around("t", column="sigma", unit=unit)
        answer = correlate_tables(table, other, left_time=time, probability=True, **given)
        assert answer["probability"].to_pylist() == [pytest.approx(share)]
    with pytest.raises(ConditionError, match="Give the unit of the numbers to around"):
        correlate_tables(table, other, left_time=around("t", column="sigma"), **given)
    numbers = pa.table({"id": [1], "t": [5], "sigma": [2]})
    time = around("t", column="sigma", unit="ms")
    with pytest.raises(
        ConditionError,
        match=r"the unit of left\.t is unknown|what a number in left\.t counts is unknown",
    ):
        correlate_tables(numbers, numbers, left_time=time, **given)
    ends = correlate_tables(
        numbers, numbers, left_time=time, right_time="t", within="2ms", confidence=1.0,
        options=CorrelateOptions(unit="us"), how="semi",
    )  # fmt: skip
    assert ends.num_rows == 1


def test_causality_takes_them() -> None:
    given: dict[str, Any] = {"how": "inner", "options": DROP}
    condition = CausalityCondition([Temporal(-20, 60)], confidence=0.6)
    found = causality_tables(LEFT, RIGHT, condition, cause_time=BOTH, effect_time=BOTH, **given)
    assert sorted(tuples(found, "cause_id", "effect_id")) == pair_ids(EXPECTED)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: around("t", "1ms", column="s"), ConditionError, "found both"),
        (lambda: around("t", "1ms", unit="s"), ConditionError, "around without a column of half-widths"),
        (lambda: around("t", column=("a", "b", "c")), ConditionError, "column must be the name of a"),
        (lambda: around("t", column=""), ConditionError, "column must be the name of a column"),
        (lambda: around("t", column="s", unit="parsec"), ConditionError, "parsec"),
        (lambda: around("t", column="name"), SchemaError, "left.name must hold half-widths, which are"),
        (lambda: around("t", column="none"), SchemaError, "left has no column 'none'"),
        (lambda: around("t", column="bad"), DataError, "missing, negative or infinite half-widths in bad"),
    ],
)  # fmt: skip
def test_what_makes_no_sense(make: Any, error: Any, words: str) -> None:
    table = pa.table({"id": [1], "t": [0], "name": ["a"], "bad": [-1]})
    with pytest.raises(error, match=words):
        correlate_tables(table, table, left_time=make(), right_time="t", within=1, confidence=0.5)


def test_on_the_command_line(tmp_path: Path, capsys: Any) -> None:
    for name, table in (("left", LEFT), ("right", RIGHT)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
    inputs = [str(tmp_path / f"{name}.parquet") for name in ("left", "right")]
    output = tmp_path / "out.parquet"
    options = ["--within", "-20", "60", "--confidence", "0.6", "--probability", "--engine", "local"]
    for side in ("left", "right"):
        options += [f"--{side}-time", "t", f"--{side}-around-column", "early,late"]
    assert run(["join", *inputs, "-o", str(output), *options, "--invalid", "drop"]) == 0
    assert in_order(pq.read_table(output)) == in_order(EXPECTED)
    assert "with a missing, negative or infinite half-width" in capsys.readouterr().out
    wrong = [*options, "--left-around", "3"]
    assert run(["join", *inputs, "-o", str(tmp_path / "none"), *wrong]) == 2
    assert "--left-around and --left-around-column describe the same" in capsys.readouterr().err


@pytest.mark.spark
@pytest.mark.parametrize("options", [{"slices": 5}, {"way": "broadcast-right"}])
def test_dataframes(spark: Any, options: dict[str, Any]) -> None:
    from tests.helpers.spark_cases import frame

    report = JoinReport()
    found = correlate(
        frame(spark, LEFT), frame(spark, RIGHT), left_time=BOTH, right_time=BOTH, report=report, **ANY,
        options=CorrelateOptions(invalid="drop", **options),
    ).toArrow()  # fmt: skip
    assert in_order(found) == in_order(EXPECTED)
    counts = report.summary().left
    assert counts is not None
    assert counts.invalid == {"width": LEFT.num_rows - with_ends(LEFT).num_rows}
    with pytest.raises(DataError, match=r"half-widths in early and late in .* rows"):
        correlate(frame(spark, LEFT), frame(spark, RIGHT), left_time=BOTH, right_time=BOTH, **ANY)


@pytest.mark.spark
def test_files(spark: Any, tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{name}.parquet") for name in ("left", "right")]
    for path, table in zip(paths, (LEFT, RIGHT), strict=True):
        pq.write_table(table, path, row_group_size=70)
    given: dict[str, Any] = {**ANY, "left_time": BOTH, "right_time": BOTH}
    with pytest.raises(
        Exception, match="the times of a row group do not bound its events, as early and late"
    ):
        correlate_files(spark, *paths, options=CorrelateOptions(way="files"), **given)
    options = CorrelateOptions(
        way="files", slices=3, left_longest=60, right_longest=60, invalid="drop"
    )
    found = correlate_files(spark, *paths, options=options, **given).toArrow()
    assert in_order(found) == in_order(EXPECTED)
