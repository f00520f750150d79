"""What is said of an empty join of exact times: the pair that is nearest to the window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from coincide import (
    CausalityCondition,
    CorrelateOptions,
    JoinReport,
    NoPairsWarning,
    Spatial,
    SpeedRange,
    Temporal,
    TimingCondition,
    Window,
    causality,
    correlate,
    correlate_tables,
    within,
)
from coincide.engine.events.sides import Side
from coincide.engine.events.timestamps import INTERVALS
from coincide.engine.reports.emptiness import instants_of, nearest_miss
from tests.helpers.joins import local_files_join
from tests.helpers.spark_cases import frame

EVENTS = st.lists(st.tuples(st.integers(-40, 40), st.sampled_from(["a", "b", None])), max_size=8)
NANOSECONDS = pa.timestamp("ns")
ASKED: dict[str, Any] = {
    "left_time": "t", "right_time": "t", "within": ("0us", "33us"), "confidence": 1.0,
    "options": CorrelateOptions(tick="ns"),
}  # fmt: skip
NEAREST = "in the nearest pair right is 33.333 us after left, and the window ends at 33 us"


def side_of(rows: list[tuple[int, str | None]]) -> Side:
    times = pa.array([time for time, _ in rows], pa.int64()).to_numpy()
    key = pa.array([key for _, key in rows], pa.string())
    return Side(times, 0 * times, INTERVALS, ~key.is_null().to_numpy(False), [key], [])


@given(EVENTS, EVENTS, st.integers(-20, 20), st.integers(0, 9))
def test_no_pair_is_nearer(
    left: list[tuple[int, str | None]], right: list[tuple[int, str | None]], lo: int, width: int
) -> None:
    window = Window(lo, lo + width, 1.0)
    deltas = [b - a for a, key in left for b, other in right if key == other is not None]
    missed = {delta: max(delta - window.hi, window.lo - delta) for delta in deltas}
    instants = instants_of(side_of(left), side_of(right))
    assert instants is not None
    found = nearest_miss(*instants, window)
    if not missed or min(missed.values()) <= 0:
        assert found is None
    else:
        assert found is not None
        assert missed[found.delta] == min(missed.values())


@given(EVENTS, st.integers(-20, 20), st.integers(0, 9))
def test_no_pair_of_one_stream_is_nearer(
    rows: list[tuple[int, str | None]], lo: int, width: int
) -> None:
    events = list(enumerate(rows))
    deltas = [
        b - a for i, (a, k) in events for j, (b, o) in events if i != j and k == o is not None
    ]
    missed = {delta: max(delta - lo - width, lo - delta) for delta in deltas}
    instants = instants_of(side_of(rows), side_of(rows))
    assert instants is not None
    found = nearest_miss(instants[0], None, Window(lo, lo + width, 1.0))
    if not missed or min(missed.values()) <= 0:
        assert found is None
    else:
        assert found is not None
        assert missed[found.delta] == min(missed.values())


def sides(kind: pa.DataType = NANOSECONDS) -> tuple[pa.Table, pa.Table]:
    """Equal keys are 33.333 µs apart at least; others are 5 µs apart."""
    left, right = (
        pa.table({"t": pa.array(times, kind), "id": range(3), "key": ["a", "b", "a"]})
        for times in ([0, 1_000_000, 2_000_000], [33_333, 5_000, 2_090_000])
    )
    return left, right


def test_tables_tell_the_nearest_miss() -> None:
    with pytest.warns(NoPairsWarning, match=NEAREST) as warned:
        correlate_tables(*sides(), by="key", **ASKED)
    assert "highest probability" not in str(warned[0].message)
    report = JoinReport()
    left, right = sides()
    given = {**ASKED, "within": ("-50us", "-40us")}
    with pytest.warns(
        NoPairsWarning, match=r"right is 5 us after left, and the window ends at -40 us"
    ):
        correlate_tables(left, right, report=report, **given)
    assert report.summary().no_pairs.nearest_delta == 5_000
    mirrored = {**ASKED, "within": ("-33us", "-1us"), "by": "key"}
    with pytest.warns(
        NoPairsWarning, match="33.333 us before left, and the window begins at -33 us"
    ):
        correlate_tables(right, left, **mirrored)


def test_one_stream_tells_it() -> None:
    times = pa.table({"t": pa.array([0, 33_333, 90_000], NANOSECONDS), "id": range(3)})
    told = (
        "in the nearest pair one event is 33.333 us after the other, and the window ends at 33 us"
    )
    with pytest.warns(NoPairsWarning, match=told):
        correlate_tables(times, **ASKED | {"within": ("1us", "33us"), "right_time": "t"})


def test_exact_times_out_of_reach_are_told_no_probability() -> None:
    left, right = sides()
    far = right.set_column(0, "t", pa.array([10**9] * 3, NANOSECONDS))
    with pytest.warns(NoPairsWarning, match="all right times are .* too late") as warned:
        correlate_tables(left, far, **ASKED)
    assert "probability" not in str(warned[0].message)


def test_uncertain_times_have_a_probability_instead() -> None:
    left, right = sides()
    wide = left.append_column("late", pa.array([7, 1_000_009, 2_000_009], NANOSECONDS))
    with pytest.warns(NoPairsWarning, match="the highest probability"):
        correlate_tables(wide, right, by="key", **ASKED | {"left_time": ("t", "late")})


def test_a_pair_that_where_leaves_out_is_no_miss() -> None:
    given = ASKED | {"where": "left_id > 5", "within": ("0us", "40us")}
    with pytest.warns(
        NoPairsWarning, match="a pair must also meet where, which may exclude all that"
    ) as warned:
        correlate_tables(*sides(), **given)
    assert "nearest pair" not in str(warned[0].message)


def test_files_tell_it(tmp_path: Path) -> None:
    paths = [tmp_path / "left.parquet", tmp_path / "right.parquet"]
    for path, table in zip(paths, sides(), strict=True):
        pq.write_table(table.sort_by("t"), path)
    condition = TimingCondition(within("0us", "33us"), 1.0)
    given = {"by": "key", "left_time": "t", "right_time": "t"}
    job = local_files_join(
        *map(str, paths), condition, options=CorrelateOptions(tick="ns"), **given
    )
    assert not sum(batch.num_rows for batch in job.batches())
    assert job.summary.no_pairs.hints[0] == NEAREST


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
def test_spark_tells_it(spark: SparkSession) -> None:
    frames = [frame(spark, table) for table in sides(pa.int64())]
    report = JoinReport()
    exact = {"within": (0, 33_000), "by": "key", "options": CorrelateOptions()}
    given = ASKED | exact | {"report": report}
    assert correlate(*frames, **given).count() == 0
    line = (
        "in the nearest pair right is 33,333 ticks after left, and the window ends at 33,000 ticks"
    )
    assert report.summary().no_pairs.hints[0] == line


CAUSAL = {"cause_time": "t", "effect_time": "t"}


@pytest.mark.spark
@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize(
    ("predicates", "places", "window"),
    [
        ([Temporal(0, 33_000)], {}, "ends at 33,000 ticks"),
        ([Temporal(40_000, 80_000)], {}, "begins at 40,000 ticks"),
        (
            [SpeedRange(0.5, None, 1000, per=None), Spatial(9_000)],
            {"place": "x"},
            "ends at 19,000 ticks",
        ),
    ],
)
def test_spark_tells_it_of_causality(
    spark: SparkSession, predicates: list[Any], places: dict[str, str], window: str
) -> None:
    """By time alone, with what the condition allows at any distance; 33.333 µs apart are the nearest."""
    tables = [table.append_column("x", pa.array([0.0] * 3)) for table in sides(pa.int64())]
    given = CAUSAL | {f"{side}_place": "x" for side in ("cause", "effect") if places}
    report = JoinReport()
    condition = CausalityCondition(predicates)
    found = causality(
        *(frame(spark, table) for table in tables), condition, by="key", report=report, **given
    )
    assert found.count() == 0
    line = f"in the nearest pair effect is 33,333 ticks after cause, and the window {window}"
    assert line in report.summary().no_pairs.hints
