"""Times that are decimals: columns of that type, and text of CSV, which loses no digit."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CorrelateOptions,
    DataError,
    JoinReport,
    TimingCondition,
    correlate_tables,
    within,
)
from coincide.engine.events.schemas import arrow_time_column
from coincide.engine.events.ticks import Ticks
from coincide.engine.events.time_columns import TimeScale, resolve_tick, scale_of
from spark_plugin.frames.float_ticks import with_ticks
from tests.helpers.rows import pair_ids
from tests.helpers.spark_cases import frame

AT = {"left_time": "t", "right_time": "t"}
UNITS = [("s", None), ("s", "us"), ("ms", "s"), ("ns", "d"), ("d", None), ("us", "us")]
DECIMALS = pa.decimal128(38, 12)


def scale_for(unit: str, tick: str | None) -> TimeScale:
    column = arrow_time_column("left", "t", DECIMALS)
    options = CorrelateOptions(unit=unit, tick=tick)
    return scale_of(column, resolve_tick([column], options), options)


def decimals() -> list[Decimal | None]:
    rng = np.random.default_rng(3)
    sizes = rng.integers(-(10**14), 10**14, 2000), rng.integers(-(10**6), 10**6, 2000) * 5
    found = [Decimal(int(n)).scaleb(-int(p)) for each in sizes for n, p in zip(
        each, rng.integers(0, 13, 2000), strict=True
    )]  # fmt: skip
    return [*found, *(Decimal(500 * k) for k in range(-9, 9)), None, Decimal(10) ** 25]


def test_decimals_are_exact_in_ticks() -> None:
    column = pa.chunked_array([pa.array(decimals(), DECIMALS)])
    for unit, tick in UNITS:
        scale = scale_for(unit, tick)
        ticks = Ticks(column, scale)
        expected = [round(Fraction(v) * scale.factor) for v in decimals()[:-2] if v is not None]
        is_far = ticks.out_of_range[:-2]
        assert is_far.tolist() == [abs(each) >= 2**61 for each in expected]
        near = [each for each in expected if abs(each) < 2**61]
        assert ticks.ticks[:-2][~is_far].tolist() == near
        assert ticks.null[-2]
        assert ticks.out_of_range[-1]


@pytest.mark.spark
def test_decimals_are_the_same_on_spark(spark: SparkSession) -> None:
    table = pa.table({"t": pa.array(decimals(), DECIMALS), "id": range(len(decimals()))})
    scales = [scale_for(*each) for each in UNITS]
    made = with_ticks(frame(spark, table), {f"t{i}": scale for i, scale in enumerate(scales)})
    found = made.toArrow().sort_by("id")
    for i, scale in enumerate(scales):
        here, there = Ticks(table["t"], scale), found[f"t{i}"].fill_null(0).to_numpy()
        is_near = ~here.out_of_range
        assert np.array_equal(here.ticks[is_near], there[is_near])
        assert (np.abs(there[~is_near]) >= 2**61).all()


def written(path: Path, times: list[str], ending: str = "") -> str:
    lines = [f"{time}{ending},{i}" for i, time in enumerate(times)]
    path.write_text("\n".join(["t,id", *lines]) + "\n")
    return str(path)


def joined(left: str, right: str, window: str, **more: Any) -> pa.Table:
    condition = TimingCondition(within("-" + window, window), 1.0)
    options = CorrelateOptions(unit="s")
    return correlate_tables(left, right, condition, **AT, **more, options=options)


@pytest.mark.parametrize("ending", ["", "000000", "000000000000000"])
@pytest.mark.parametrize("base", [0, 1_700_000_000])
def test_text_of_csv_keeps_exact_ties(base: int, ending: str, tmp_path: Path) -> None:
    """2,000 pairs exactly 5 ms apart, however many zeros are written behind."""
    ms = np.arange(2000) * 1000 + np.random.default_rng(1).integers(0, 900, 2000)
    paths = [
        written(tmp_path / f"{i}.csv", [f"{base + t // 1000}.{t % 1000:03d}" for t in each], ending)
        for i, each in enumerate((ms, ms + 5))
    ]
    found = joined(*paths, "5ms", left_columns=["id", "t"])
    assert found.num_rows == 2000
    assert found.schema.field("left_t").type == pa.float64()


def test_no_digit_of_csv_is_lost(tmp_path: Path) -> None:
    """A double at 1.7e9 stands for 240 ns; such a column comes out as decimals."""
    texts = ["1700000000.123456789", "1700000000.123456790", "1700000000.5"]
    path = written(tmp_path / "a.csv", texts)
    found = joined(path, written(tmp_path / "b.csv", texts[1:]), "1ns", left_columns=["id", "t"])
    pairs = pair_ids(found)
    assert pairs == [(0, 0), (1, 0), (2, 1)]
    assert found["left_t"].to_pylist()[:2] == [Decimal(text) for text in texts[:2]]


@pytest.mark.parametrize("far", ["1e300", "-1.7976931348623157e308", "9" * 41])
def test_what_is_too_large_for_decimals_is_left_out(far: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"id,t\n0,1700000000.30512345678\n1,{far}\n")
    options = CorrelateOptions(unit="s", invalid="drop")
    ids = {"left_columns": "id", "right_columns": "id", "options": options}
    found = correlate_tables(tmp_path / "a.csv", tmp_path / "a.csv", within=(0, 0), **AT, **ids)
    assert found.to_pylist() == [{"left_id": 0, "right_id": 0}]


@pytest.mark.parametrize("unit", ["s", "min"])
def test_what_is_not_finite_is_told_from_what_is_too_large(unit: str, tmp_path: Path) -> None:
    """Next to times that only decimals tell apart, which have neither NaN nor infinity."""
    texts = ["1700000000.30512345678", "NaN", "-inf", "+Infinity", "1e300", "9" * 400, "", "inf"]
    path = written(tmp_path / "a.csv", texts)
    options = CorrelateOptions(unit=unit, tick="s", invalid="drop")
    report = JoinReport()
    asked = {**AT, "left_columns": "id", "options": options, "report": report}
    found = correlate_tables(path, path, within=(0, 0), **asked)
    summary = report.summary()
    assert found.num_rows == 1
    for side in (summary.left, summary.right):
        assert (side.invalid, side.unmatchable) == ({"not_finite": 4, "range": 2}, 1)


@pytest.mark.parametrize(
    ("text", "ticks"),
    [("0.0000000015" + "4" * 40, 2), ("1e-300", 0), ("3." + "3" * 30 + "e-9", 3), ("5e-324", 0)],
)
def test_more_places_than_decimals_hold_are_rounded(text: str, ticks: int, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"id,t\n0,17.30512345678901234\n1,{text}\n")
    right = pa.table({"id": range(5), "t": range(2, 7)})
    options = CorrelateOptions(left_unit="s", right_unit="ns")
    found = correlate_tables(
        tmp_path / "a.csv", right, within=("2ns", "2ns"), **AT, options=options
    )
    assert found.to_pylist() == [{"left_id": 1, "right_id": ticks}]


def test_what_is_no_number_is_found_among_decimals(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", ["1700000000.123456789", "2.5", "x"])
    with pytest.raises(DataError, match=r"a\.csv, line 4.*'x'"):
        joined(path, path, "1ns")
    path = written(tmp_path / "b.csv", ["1700000000.123456789", "2.5", "inf"])
    with pytest.raises(
        DataError, match=r"NaN or infinity in t in 1 row .found t=NaN or infinity, id=2"
    ):
        joined(path, path, "1ns")
