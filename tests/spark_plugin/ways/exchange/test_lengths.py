"""Events that do not last alike, and events that nothing can reach: each row only where it is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CorrelateOptions,
    JoinReport,
    LargeSlicesWarning,
    TimingCondition,
    containing,
    correlate,
    correlate_tables,
    inside,
    overlapping,
    spans,
    within,
)
from coincide.engine.events.spans import SpanModel
from coincide.engine.join.timing import JoinSpec
from coincide.model.condition import Window
from coincide.model.units import Tick
from spark_plugin.tasks.samples import Reach, Sample
from spark_plugin.tasks.slice_plan import Places, SlicePlan
from spark_plugin.ways.correlation import Correlation
from spark_plugin.ways.exchange import planning
from spark_plugin.ways.exchange.planning import (
    KnownLengths,
    check_room,
    plan_by_lengths,
    plan_slices,
)
from tests.helpers.joins import plan_correlation
from tests.helpers.rows import in_order
from tests.helpers.spark_cases import SPREAD, frame, rows_of, settings
from tests.spark_plugin.ways.exchange.test_slices import sample

SECOND = 10**6
MONTH = 30 * 86_400 * SECOND
N = 20_000
LONG_ARE_USELESS = JoinSpec(Window(-2 * SECOND, 2 * SECOND, 0.1))
"""No interval of a pair is longer than 40 s."""
LONG_ARE_RARE = JoinSpec(Window(-2 * SECOND, 2 * SECOND, 1e-6))
"""Here intervals of 30 days have matches."""
LASTING = JoinSpec(overlapping().window(Tick()), models=(SpanModel("both"), SpanModel("both")))
"""Spans, which overlap others however long they are."""
SLICES = 400


def side(seed: int, long: int, n: int = N, span: int = 2 * MONTH) -> pa.Table:
    """Events over 60 days, seconds long but for some of 30 days."""
    rng = np.random.default_rng(seed)
    begins, lengths = rng.integers(0, span, n), rng.integers(0, 3 * SECOND, n)
    lengths[rng.choice(n, long, replace=False)] = MONTH
    return pa.table({"id": np.arange(n), "min_time": begins, "max_time": begins + lengths})


def sampled(table: pa.Table, weight: float = 1.0) -> tuple[Sample, KnownLengths]:
    low, high = table["min_time"].to_numpy(), table["max_time"].to_numpy()
    found = sample(low + high, shapes=high - low, weight=weight)
    return found, KnownLengths(found, high - low)


def planned(
    left: pa.Table, right: pa.Table, spec: JoinSpec, weight: float = 1.0, **options: Any
) -> tuple[SlicePlan, Sample]:
    (own, about), (others, _) = sampled(left, weight), sampled(right, weight)
    given = CorrelateOptions(**options)

    def plan_for(reach: Reach) -> SlicePlan:
        return plan_slices(own, others, reach, given, parallelism=4, pair_work=0.3, keyed=False)

    lengths = [(int(each.shapes.min()), int(each.shapes.max())) for each in (own, others)]
    reach = Reach.of(spec.pairs, lengths[0], lengths[1], spec.largest_useful)
    plan = plan_by_lengths(plan_for, others, about, reach, spec)
    check_room(plan, others, given)
    return plan, others


def rows_sent(plan: SlicePlan, right: Sample) -> int:
    """Copies of right events, by what places them in a worker."""
    places = Places(right.midpoints, None, right.hashes, shapes=right.shapes)
    return int(plan.slices_of(places, is_left=False)[0].size)


@pytest.mark.parametrize(
    "spec", [LONG_ARE_USELESS, LONG_ARE_RARE, LASTING], ids=["useless", "rare", "spans"]
)
@pytest.mark.parametrize("long", [(10, 0), (0, 10), (10, 10)], ids=str)
def test_few_long_events_are_no_reason_to_copy_others(
    spec: JoinSpec, long: tuple[int, int]
) -> None:
    plan, right = planned(side(1, long[0]), side(2, long[1]), spec, slices=SLICES)
    assert plan.count >= SLICES
    assert rows_sent(plan, right) < 1.2 * N
    assert plan.replication == pytest.approx(rows_sent(plan, right) / N)
    is_apart = spec is not LONG_ARE_USELESS and long[0] > 0
    assert (plan.apart is not None) == is_apart
    if plan.apart is not None:
        assert 2 * SECOND <= plan.apart < MONTH / 10


@pytest.mark.parametrize("spec", [LONG_ARE_RARE, LASTING], ids=["rare", "spans"])
@pytest.mark.parametrize("rows", [10**7, 10**8])
def test_many_rows_of_which_few_are_long(rows: int, spec: JoinSpec) -> None:
    """Neither copied to all slices that make room for them, nor refused."""
    left, right = side(1, 10), side(2, 10)
    plan, _ = planned(left, right, spec, weight=rows / N)
    assert plan.count >= rows // 10**6
    assert plan.replication < 1.2
    assert plan.apart is not None


def test_what_is_one_slice_anyway_is_read_once() -> None:
    plan, _ = planned(side(1, 10), side(2, 10), LONG_ARE_RARE, slices=1)
    assert plan.count == 1
    assert plan.apart is None


@pytest.mark.parametrize("seed", range(12))
def test_each_pair_is_in_one_slice(seed: int) -> None:
    """Windows wide and narrow, and lengths of all sizes, or left events apart."""
    rng = np.random.default_rng(seed)
    low = rng.integers(-1000, 1000, (2, 150))
    lengths = (10 ** rng.uniform(0, rng.choice([1.5, 3, 4]), (2, 150))).astype(np.int64)
    lengths[:, rng.random(150) < 0.3] = rng.integers(0, 9)
    lo = int(rng.integers(-60, 30))
    window = Window(lo, lo + int(rng.integers(0, 90)), float(rng.choice([0.02, 0.1, 0.3, 0.6, 1])))
    left, right = (
        pa.table({"id": np.arange(150), "min_time": each, "max_time": each + longs})
        for each, longs in zip(low, lengths, strict=True)
    )
    plan, _ = planned(left, right, JoinSpec(window), slices=int(rng.choice([2, 7, 40])))
    slices: list[dict[int, set[int]]] = []
    for begins, longs, is_left in zip(low, lengths, (True, False), strict=True):
        none = np.zeros(150, np.int64)
        places = Places(2 * begins + longs, None, none, np.arange(150), longs)
        rows, numbers = plan.slices_of(places, is_left=is_left)
        of_row: dict[int, set[int]] = {row: set() for row in range(150)}
        for row, number in zip(rows.tolist(), numbers.tolist(), strict=True):
            of_row[row].add(number)
        slices.append(of_row)
    pairs = correlate_tables(
        left, right, TimingCondition(within(window.lo, window.hi), window.confidence)
    )
    usual = set(np.flatnonzero(lengths[0] <= (plan.apart or MONTH)).tolist())
    found = zip(pairs["left_id"].to_pylist(), pairs["right_id"].to_pylist(), strict=True)
    met = [len(slices[0][a] & slices[1][b]) for a, b in found if a in usual]
    assert set(met) <= {1}
    assert met or window.width < 9


def test_what_useless_events_reach_is_nothing() -> None:
    """They go to no slice, and where all are such, none does."""
    plan, right = planned(side(1, 0), side(2, N), LONG_ARE_USELESS, slices=SLICES)
    assert rows_sent(plan, right) == 0
    unforeseen = Places(right.midpoints[:9], shapes=np.full(9, 5 * MONTH))
    assert plan.slices_of(unforeseen, is_left=False)[0].size == 9, "a task has to refuse them"


def test_long_events_that_are_many_stay_in_slices() -> None:
    plan, _ = planned(side(1, N // 2), side(2, 0), LONG_ARE_RARE, slices=SLICES)
    assert plan.apart is None


def test_a_plan_that_needs_much_room_says_so() -> None:
    """Half of all events reach half of all others: no plan is good, and few copies are made."""
    left, right = side(1, N // 2), side(2, N // 2)
    given: dict[str, Any] = {"slice_rows": 10**6, "slice_bytes": 10**12}
    with pytest.warns(LargeSlicesWarning, match=r"hold 2\d\.\d times .*slice_rows=1000000 and"):
        plan, _ = planned(left, right, LONG_ARE_RARE, weight=1000.0, **given)
    assert plan.replication <= planning.MOST_COPIES


# --- on Spark ---

ASKED: list[dict[str, Any]] = [
    *({"how": how} for how in ("inner", "left", "semi", "anti")),
    *({"how": "left", "emit": emit} for emit in ("counts", "lists", "best")),
    {"emit": "best", "k": 2, "probability": True},
    {"how": "left", "matching": "mutual"},
]


def answer(rows: list[dict[str, Any]]) -> list[str]:
    for row in rows:
        if isinstance(row.get("right_id"), list):
            row["right_id"].sort()
    return sorted(map(str, rows))


def asked_of(asked: dict[str, Any]) -> dict[str, Any]:
    times = ["id", "min_time", "max_time"]  # by which mutual choice tells events apart
    return (
        {**asked, "left_columns": times, "right_columns": times} if "matching" in asked else asked
    )


LASTING_ASKED: list[dict[str, Any]] = [
    {"condition": overlapping(), "how": "full"},
    {"condition": overlapping(gap=9 * SECOND), "how": "left", "emit": "counts"},
    {"condition": inside(), "emit": "best", "k": 2, "prefer": "last"},
    {"condition": containing(), "how": "left", "emit": "lists", "confidence": 0.6},
]


@pytest.mark.spark
@pytest.mark.parametrize("asked", LASTING_ASKED, ids=lambda asked: str(asked["condition"]))
@pytest.mark.parametrize("seed", [3, pytest.param(7, marks=pytest.mark.slow)])
def test_long_spans_apart_give_the_answer_of_tables(
    spark: SparkSession, asked: dict[str, Any], seed: int
) -> None:
    around = SECOND if "confidence" in asked else None
    tables = []
    for number in (seed, seed + 1):
        table = side(number, 5, 600, MONTH)
        tables.append(table.set_column(2, "max_time", pc.add(table["max_time"], 2 * SECOND)))
    given = {**asked, "left_time": spans("min_time", "max_time", around=around)}
    given["right_time"] = spans("min_time", "max_time", closed="left")
    options, report = CorrelateOptions(way="exchange", slices=10), JoinReport()
    found = correlate(
        *(frame(spark, each) for each in tables), options=options, report=report, **given
    )
    expected = correlate_tables(*tables, **given)
    assert expected.num_rows > 0
    assert answer(rows_of(found)) == answer(expected.to_pylist())
    if seed == 3:  # a sample of few rows does not always show how rare the long ones are
        assert ("apart" in str(report.summary().why)) == (asked["condition"] != inside())


@pytest.mark.spark
@pytest.mark.parametrize("asked", ASKED, ids=str)
def test_long_left_events_apart_give_the_answer_of_tables(
    spark: SparkSession, asked: dict[str, Any]
) -> None:
    tables = [side(seed, 5, 600, MONTH) for seed in (3, 4)]
    nulls = pa.table({"id": [-1], "min_time": pa.nulls(1, pa.int64()), "max_time": [5]})
    tables[0] = pa.concat_tables([tables[0], nulls])
    condition, given = TimingCondition(within(-600 * SECOND, 900 * SECOND), 2e-4), asked_of(asked)
    options = CorrelateOptions(way="exchange", slices=10)
    report = JoinReport()
    join = plan_correlation(
        *(frame(spark, table) for table in tables),
        condition,
        options=options,
        observe=True,
        **given,
    )
    assert isinstance(join.plan, SlicePlan)
    assert join.plan.apart is not None
    assert "apart" in join.plan.describe()
    join.tell(report)
    expected = correlate_tables(*tables, condition, **given)
    assert answer(rows_of(join.dataframe)) == answer(expected.to_pylist())
    if asked == {"how": "inner"}:
        found = report.summary().counters
        assert found is not None
        assert found.pairs == expected.num_rows


NOTHING = pa.table(
    {"id": np.arange(300), "min_time": np.zeros(300, np.int64), "max_time": [8000] * 300}
)


def unreached(spark: SparkSession, asked: dict[str, Any], **options: Any) -> Correlation:
    return plan_correlation(
        frame(spark, NOTHING), frame(spark, NOTHING), TimingCondition(within(-1000, 4000), 0.9),
        options=CorrelateOptions(**options), **asked_of(asked),
    )  # fmt: skip


@pytest.mark.spark
@pytest.mark.parametrize("asked", ASKED[1:7], ids=str)
def test_where_no_pair_can_be_all_left_events_are_alone(
    spark: SparkSession, asked: dict[str, Any]
) -> None:
    found = unreached(spark, asked, way="exchange", slices=8)
    expected = correlate_tables(
        NOTHING, NOTHING, TimingCondition(within(-1000, 4000), 0.9), **asked
    )
    assert answer(rows_of(found.dataframe)) == answer(expected.to_pylist())


@pytest.mark.spark
@pytest.mark.parametrize(
    ("way", "partitions"),
    [("exchange", 1),
     *((way, 9) for way in ("exchange", "broadcast-left", "broadcast-right", "broadcast-both"))],
)  # fmt: skip
def test_few_rows_in_many_slices_and_partitions(
    spark: SparkSession, way: Any, partitions: int
) -> None:
    few = NOTHING.slice(0, 3)
    given = CorrelateOptions(way=way, slices=7) if way == "exchange" else CorrelateOptions(way=way)
    with settings(spark, SPREAD):
        sides = [frame(spark, few).repartition(partitions) for _ in "lr"]
        for window, pairs in ((within(-1000, 4000), 3), (within(-9000, 9000), 9)):
            found = correlate(*sides, TimingCondition(window, 0.9), how="left", options=given)
            assert found.count() == pairs


@pytest.mark.spark
@pytest.mark.parametrize("emit", ["pairs", "counts"])
def test_a_burst_that_a_task_must_hold_whole_is_told_of(spark: SparkSession, emit: Any) -> None:
    left, right = (
        pa.table({"id": range(n), "min_time": [50] * n, "max_time": [50] * n}) for n in (20, 60)
    )
    given: dict[str, Any] = {"condition": TimingCondition(within(0, 0), 1.0), "emit": emit}
    options = CorrelateOptions(way="exchange", slice_rows=10)
    with pytest.warns(LargeSlicesWarning, match=r"hold \d\.\d times what slice_rows=10 "):
        found = correlate(frame(spark, left), frame(spark, right), **given, options=options)
    assert in_order(found.toArrow()) == in_order(correlate_tables(left, right, **given))
