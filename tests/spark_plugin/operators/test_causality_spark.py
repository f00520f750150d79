"""Causality joins of DataFrames: those of tables and of the reference, by every way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import coincide
from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    DataError,
    Ellipsoidal,
    JoinReport,
    SchemaError,
    Spatial,
    SpeedRange,
    Sphere,
    Temporal,
    around,
    causality,
    causality_tables,
)
from coincide.engine.causality.arguments import CausalityArguments
from cpu_fallback.reference import causality as reference
from spark_plugin.ways.causality import event_frames
from tests.helpers.causality_tables import XY, answer, random_events, reference_pairs
from tests.helpers.rows import tuples
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.spark

CAUSES, EFFECTS = random_events(1, 120, prefix="c"), random_events(2, 150)
NEAR = CausalityCondition([Spatial(3), Temporal(-7, 40)])
NEAR_EXACTLY = [reference.spatial(3), reference.temporal(-7, 40)]
NOWHEN = CausalityCondition([Spatial(1.5, strict=True)])
STRICT = CausalityCondition(
    [SpeedRange(0.25, 1.5, 4, per=None, strict=True), Temporal(0, 30, strict=True)]
)
OVAL = CausalityCondition([Ellipsoidal(4, 25)])
WAYS: dict[str, dict[str, Any]] = {
    "chosen": {},
    "slices of time": {"slices": 7},
    "small slices": {"way": "exchange", "slice_rows": 40},
    "causes everywhere": {"way": "broadcast-left"},
    "effects everywhere": {"way": "broadcast-right"},
}
CASES: list[Any] = [
    ("chosen", NEAR, {}),
    ("slices of time", NEAR, {"how": "left", "cause_columns": ("name", "id")}),
    ("slices of time", STRICT, {"by": "key", "how": "anti"}),
    ("small slices", NOWHEN, {"how": "left", "emit": "lists"}),
    ("small slices", NEAR, {"by": "key"}),
    ("causes everywhere", OVAL, {"emit": "counts", "how": "left"}),
    ("effects everywhere", STRICT, {"effect_columns": ("key", "name", "id")}),
    ("effects everywhere", STRICT, {"emit": "best"}),
    # By these ways `test_the_best_of_uncertain_times` has the best as well.
    *(
        pytest.param(*case, marks=pytest.mark.slow)
        for case in (
            ("slices of time", NEAR, {"emit": "best", "how": "left", "by": "key"}),
            ("small slices", NOWHEN, {"emit": "best", "effect_columns": ("name", "id")}),
            ("causes everywhere", OVAL, {"emit": "best", "how": "left"}),
        )
    ),
]


def both(
    spark: SparkSession,
    condition: CausalityCondition,
    causes: pa.Table = CAUSES,
    effects: pa.Table | None = EFFECTS,
    way: str = "chosen",
    **arguments: Any,
) -> tuple[pa.Table, pa.Table, Any, Any]:
    """What Spark finds and what tables give, with what both tell of it."""
    report, expected = JoinReport(), JoinReport()
    options = arguments.pop("options", CorrelateOptions())
    wanted = causality_tables(
        causes, effects, condition, options=options, report=expected, **arguments
    )
    options = CorrelateOptions(
        **{name: getattr(options, name) for name in ("unit", "tick", "invalid")}, **WAYS[way]
    )
    found = causality(
        frame(spark, causes).repartition(2),
        None if effects is None else frame(spark, effects).repartition(3),
        condition,
        options=options,
        report=report,
        **arguments,
    ).toArrow()
    return found, wanted, report.summary(), expected.summary()


@pytest.mark.parametrize(("way", "condition", "arguments"), CASES)
def test_the_answer_is_that_of_tables(
    spark: SparkSession, way: str, condition: CausalityCondition, arguments: dict[str, Any]
) -> None:
    found, wanted, told, expected = both(spark, condition, way=way, **XY, **arguments)
    assert wanted.num_rows > 10
    assert found.column_names == wanted.column_names
    assert answer(found) == answer(wanted)
    assert (told.left, told.right) == (expected.left, expected.right)
    assert told.left.unmatchable > 0
    assert told.counters.pairs == expected.counters.pairs
    assert (told.sides, told.matchless) == (("cause", "effect"), "time, place or key")
    assert told.way == ("broadcast" if way == "chosen" or "every" in way else "exchange")
    if way == "slices of time":
        assert told.slices > 3
        assert told.replication > 1
    if way == "small slices":
        assert told.slices > 3


BEST: list[tuple[str, bool, dict[str, Any]]] = [
    ("small slices", False, XY),
    ("causes everywhere", False, {}),
    ("slices of time", True, {"cause_place": ("x", "y")}),
    ("small slices", True, {}),
]


@pytest.mark.parametrize(("way", "is_one_stream", "place"), BEST)
def test_the_best_of_uncertain_times(
    spark: SparkSession, way: str, is_one_stream: bool, place: dict[str, Any]
) -> None:
    """Tasks tell probabilities, too; without places no distance decides; of one stream from 0 on."""
    causes, effects = random_events(5, 90), random_events(6, 90)
    if is_one_stream:  # either of two simultaneous events may be the cause
        times = np.random.default_rng(7).permutation(600)[:90]
        causes = causes.slice(0, 90).set_column(1, "time", pa.array(times))
    causes, effects = (
        each.append_column("late", pa.compute.add(each["time"], longer))
        for each, longer in ((causes, 8), (effects, 16))
    )
    predicates = [Temporal(-7, 40), *([Spatial(4)] if place else [])]
    time: dict[str, Any] = {"cause_time": ("time", "late")}
    if not is_one_stream:
        time["effect_time"] = ("time", "late")
    found, wanted, *_ = both(
        spark, CausalityCondition(predicates, confidence=0.25), causes,
        None if is_one_stream else effects, way, **place, **time, emit="best", how="left",
        probability=not is_one_stream,
    )  # fmt: skip
    assert answer(found) == answer(wanted)
    assert wanted.num_rows - wanted["effect_id"].null_count > 20


def test_the_answer_is_the_reference_s(spark: SparkSession) -> None:
    found, wanted, *_ = both(spark, NEAR, way="slices of time", **XY)
    pairs = sorted(
        zip(*(found[name].to_pylist() for name in ("cause_id", "effect_id")), strict=True)
    )
    assert pairs == reference_pairs(CAUSES, EFFECTS, NEAR_EXACTLY)
    assert answer(found) == answer(wanted)


@pytest.mark.parametrize("way", ["slices of time", "small slices"])
def test_one_stream(spark: SparkSession, way: str) -> None:
    """Each pair once, the earlier event first; of simultaneous ones either."""
    events = random_events(3, 90, span=50)
    arguments = {"cause_place": ("x", "y"), "effect_columns": ("id", "key")}
    found, wanted, told, expected = both(spark, NEAR, events, None, way, **arguments)
    exact = reference_pairs(events, None, [reference.spatial(3), reference.temporal(-7, 40)])

    def unordered(pairs: list[tuple[int, int]], deltas: list[int]) -> list[Any]:
        told = zip(pairs, deltas, strict=True)
        return sorted((d, *sorted(pair)) if d == 0 else (d, *pair) for pair, d in told)

    own, others = (tuples(t, "cause_id", "effect_id") for t in (found, wanted))
    assert sorted(others) == exact
    pairs = unordered(own, found["delta"].to_pylist())
    assert pairs == unordered(others, wanted["delta"].to_pylist())
    assert sum(delta == 0 for delta, *_ in pairs) > 10
    assert any(i == j for _, i, j in pairs)  # rows that are there twice
    assert told.left == expected.left
    assert told.right is None
    assert told.slices > 2


def test_events_of_one_stream_that_differ_in_nulls_alone(spark: SparkSession) -> None:
    """What tells events apart does not pass over nulls, as hashes do, nor over what is nested."""
    nested = pa.array([[("a", 1)]] * 3 + [[("a", 2)]], pa.map_(pa.string(), pa.int64()))
    events = pa.table(
        {"id": [1, None, 1, 1], "other": [None, 1, None, None], "map": nested, "time": [5] * 4}
    )
    arguments = CausalityArguments(
        CausalityCondition(Temporal(0, 1)), cause_columns=("id", "other"), effect_columns="map",
        is_one_stream=True,
    )  # fmt: skip
    source = frame(spark, events)
    for side in event_frames((source, source), arguments):
        told = source.selectExpr("id", *side.identities).toArrow().to_pylist()
        identities = [(row["identity0"], row["identity1"]) for row in told]
        assert identities[0] == identities[2]
        assert len(set(identities)) == 3


def test_effects_on_the_edges_of_slices(spark: SparkSession) -> None:
    """Windows that end where slices do: each pair once, in the slice of its cause."""
    times = np.arange(
        120
    )  # without a gap, so that some effect is just in reach of the slice before
    causes = pa.table({"id": times, "time": times})
    effects = pa.table({"id": times, "time": times + 20})
    for lo, hi, strict in ((20, 20, False), (-10, 30, True)):
        condition = CausalityCondition(Temporal(lo, hi, strict))
        found, wanted, told, _ = both(spark, condition, causes, effects, "slices of time")
        assert answer(found) == answer(wanted)
        assert wanted.num_rows > 0
        assert told.slices > 3


def test_great_circles_across_the_date_line_and_by_the_poles(spark: SparkSession) -> None:
    rng = np.random.default_rng(6)

    def side(n: int) -> pa.Table:
        latitudes = rng.choice([-90.0, -89.99, 0.0, 0.5, 42.0, 89.9, 90.0], n)
        longitudes = rng.choice([-180.0, -179.9, 179.8, 180.0, 0.0, 13.0, 359.9], n)
        depths = rng.choice([0.0, 5.0, -3.0], n)
        return pa.table(
            {
                "id": np.arange(n), "time": rng.integers(0, 300, n).astype(np.float64),
                "lat": latitudes.astype(np.float32), "lon": pa.array(longitudes), "depth": depths,
            }
        )  # fmt: skip

    condition = CausalityCondition([Spatial(60), SpeedRange(0.5, 8, "2s")], Sphere())
    found, wanted, *_ = both(
        spark, condition, side(150), side(160), "slices of time", cause_place=("lat", "lon", "depth"),
        effect_place=("lat", "lon", 0.0), options=CorrelateOptions(unit="s", tick="ms"),
    )  # fmt: skip
    assert wanted.num_rows > 100
    assert answer(found) == answer(wanted)  # distances to the bit


def test_uncertain_times(spark: SparkSession) -> None:
    rng = np.random.default_rng(9)

    def side(n: int) -> pa.Table:
        low = rng.integers(0, 500, n)
        columns = {"id": np.arange(n), "low": low, "high": low + rng.integers(0, 40, n)}
        return pa.table({**columns, "x": rng.integers(0, 5, n), "y": rng.integers(0, 5, n)})

    condition = CausalityCondition([Spatial(3), Temporal(0, 25)], confidence=0.4)
    times = {"cause_time": ("low", "high"), "effect_time": around("low", before=4, after=31)}
    found, wanted, told, _ = both(
        spark, condition, side(200), side(220), "slices of time", **XY, **times, probability=True,
        where="delta > 0",
    )  # fmt: skip
    assert wanted.num_rows > 100
    assert answer(found) == answer(wanted)
    assert told.slices > 3


def test_empty_sides(spark: SparkSession) -> None:
    nothing = EFFECTS.slice(0, 0)
    for way, causes, effects, how, rows in (
        ("chosen", CAUSES, nothing, "left", CAUSES.num_rows),
        ("slices of time", nothing, EFFECTS, "inner", 0),
    ):
        found, wanted, *_ = both(spark, NEAR, causes, effects, way, how=how, **XY)
        assert answer(found) == answer(wanted)
        assert found.num_rows == rows
    report = JoinReport()
    never = CausalityCondition([Temporal(10**6, 10**7)])
    causality(frame(spark, CAUSES), frame(spark, EFFECTS), never, report=report).collect()
    no_pairs = report.summary().no_pairs
    assert no_pairs is not None
    assert "too early for the window: cause " in no_pairs.reasons[0]


def test_impossible_places_are_refused_or_left_out_and_counted(spark: SparkSession) -> None:
    far = pa.array([*[0.0] * 128, np.inf, -np.inf, None, None])
    times = CAUSES["time"].to_pylist()[: len(far) - 1]
    causes = CAUSES.slice(0, len(far)).set_column(2, "x", far)
    # A missing coordinate does not excuse an impossible time.
    causes = causes.set_column(causes.column_names.index("time"), "time", [[*times, 2**61]])
    with pytest.raises(DataError, match=r"cause: .* in x and y in 2 rows"):
        causality(frame(spark, causes), frame(spark, EFFECTS), NEAR, **XY)
    options = CorrelateOptions(invalid="drop")
    found, wanted, told, expected = both(
        spark, NEAR, causes, way="slices of time", options=options, **XY
    )
    assert answer(found) == answer(wanted)
    assert (told.left, told.right) == (expected.left, expected.right)
    assert told.left.invalid["place"] > 0
    assert told.left.invalid["range"] == 1


def test_what_cannot_be_is_refused_at_plan_time(spark: SparkSession) -> None:
    causes, effects = frame(spark, CAUSES), frame(spark, EFFECTS)
    text = frame(spark, EFFECTS.set_column(2, "x", pa.array(["far"] * EFFECTS.num_rows)))
    refused: list[tuple[Any, type[Exception], str]] = [
        ((causes, EFFECTS, NEAR, XY), SchemaError, "effects must be a Spark DataFrame"),
        ((causes, text, NEAR, XY), SchemaError, "effect.x must be a number, as it is a coordinate"),
        ((causes, effects, NEAR, {}), ConditionError, "Name them in cause_place and"),
        (
            (causes, effects, NEAR, {**XY, "effect_columns": "nam"}),
            SchemaError, "effect has no column 'nam'",
        ),
        (
            (causes, effects, NEAR, {**XY, "options": CorrelateOptions(way="files")}),
            ConditionError, "reads files",
        ),
        (
            (causes, None, NEAR, {"cause_place": ("x", "y"), "options": CorrelateOptions(way="broadcast")}),
            ConditionError, "one stream is joined with itself by an exchange",
        ),
        ((causes, None, NEAR, {**XY, "effect_time": "other"}), ConditionError, "Remove effect_time"),
    ]  # fmt: skip
    for (own, others, condition, arguments), kind, words in refused:
        with pytest.raises(kind, match=words):
            causality(own, others, condition, **arguments)


def test_the_front_door() -> None:
    assert coincide.causality is causality
    assert "causality" in dir(coincide)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("way", WAYS)
def test_random_joins_by_every_way(spark: SparkSession, way: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    causes, effects = (random_events(10 * seed + k, int(rng.integers(0, 200))) for k in range(2))
    condition = (NEAR, NOWHEN, STRICT, OVAL)[seed]
    shapes = ("left", "pairs"), ("left", "lists"), ("inner", "counts"), ("semi", "pairs")
    # Every condition and every way meets all of them.
    for how, emit in shapes[(seed + list(WAYS).index(way)) % 2 :: 2]:
        arguments = {"how": how, "emit": emit, "by": ["key"] if rng.integers(2) else []}
        found, wanted, *_ = both(spark, condition, causes, effects, way, **XY, **arguments)
        assert answer(found) == answer(wanted)
