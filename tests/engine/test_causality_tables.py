"""Causality joins and clusters of tables: columns, units, missing and impossible rows, shapes of output."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from coincide import (
    BackendError,
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    DataError,
    DroppedRowsWarning,
    JoinReport,
    NoPairsWarning,
    Plane,
    SchemaError,
    Spatial,
    SpeedRange,
    Sphere,
    Temporal,
    UnmatchableRowsWarning,
    causality_tables,
    clusters,
)
from coincide.engine.events.sides import Side
from coincide.engine.events.timestamps import INTERVALS
from coincide.engine.join.derived_joins import ranked_sides
from gpu_kernels.device import usable
from tests.helpers.rows import tuples

NEAR = CausalityCondition([Temporal(0, 10), Spatial(5)])
XY: Any = {"cause_place": ("x", "y"), "effect_place": ("x", "y")}


def causes(**columns: Any) -> pa.Table:
    given = {"id": [1, 2, 3], "time": [0, 5, 100], "x": [0.0, 9.0, 0.0], "y": [0.0, 0.0, 1.0]}
    return pa.table(given | columns)


def effects(**columns: Any) -> pa.Table:
    given = {"id": [7, 8, 9], "time": [3, 10, 11], "x": [3.0, 6.0, 9.0], "y": [4.0, 4.0, 0.0]}
    return pa.table(given | columns)


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(tuples(table), key=str)


def test_pairs_with_delta_and_distance() -> None:
    found = causality_tables(causes(), effects(), NEAR, **XY)
    assert found.schema == pa.schema(
        [
            *(("cause_id", pa.int64()), ("effect_id", pa.int64())),
            *(("delta", pa.int64()), ("distance", pa.float64())),
        ]
    )
    assert rows(found) == [(1, 7, 3, 5.0), (2, 8, 5, 5.0), (2, 9, 6, 0.0)]


def test_how_and_emit() -> None:
    def of(**arguments: Any) -> list[tuple[Any, ...]]:
        found = causality_tables(causes(), effects(), NEAR, **XY, **arguments)
        return rows(found)

    assert of(how="left")[-1] == (3, None, None, None)
    assert of(how="semi") == [(1,), (2,)]
    assert of(how="anti") == [(3,)]
    assert of(emit="counts") == [(1, 1), (2, 2)]
    assert of(emit="counts", how="left") == [(1, 1), (2, 2), (3, 0)]
    (one, two) = of(emit="lists")
    assert one == (1, [7], [3], [5.0])
    assert sorted(zip(*two[1:], strict=True)) == [(8, 5, 5.0), (9, 6, 0.0)]
    # 8 comes after 5, in the middle of the window, and 9 after 6.
    assert of(emit="best") == [(1, 7, 3, 5.0), (2, 8, 5, 5.0)]
    assert of(emit="best", how="left")[-1] == (3, None, None, None)
    with pytest.raises(ConditionError, match="emit must be one of pairs, lists, counts, best"):
        of(emit="worst")


def test_keys_and_columns() -> None:
    given = causes(kind=["a", "b", None]), effects(kind=["a", "a", "b"])
    found = causality_tables(
        *given, NEAR, **XY, by="kind", cause_columns=("time", "id"), effect_columns=()
    )
    assert rows(found) == [("a", 0, 1, 3, 5.0), ("b", 5, 2, 6, 0.0)]
    assert found.column_names == ["kind", "cause_time", "cause_id", "delta", "distance"]


def test_times_alone_need_no_places() -> None:
    found = causality_tables(causes(), effects(), CausalityCondition(Temporal(5, 6)))
    assert rows(found) == [(2, 8, 5), (2, 9, 6)]
    assert found.column_names == ["cause_id", "effect_id", "delta"]


def test_batches_and_threads_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    tables = [
        pa.table(
            {"id": np.arange(2000), "time": rng.integers(0, 9999, 2000), "x": rng.random(2000)}
        )
        for _ in range(2)
    ]
    condition = CausalityCondition([Temporal(0, 500), Spatial(0.1)])
    found = [
        rows(
            causality_tables(
                *tables, condition, cause_place="x", effect_place="x",
                options=CorrelateOptions(batch_pairs=batch, threads=threads),
            )
        )
        for batch, threads in ((None, 1), (100, 2), (17, 1))
    ]  # fmt: skip
    assert found[0] == found[1] == found[2]
    assert len(found[0]) > 5000


def test_units_of_times_and_speeds() -> None:
    condition = CausalityCondition([Spatial(100), SpeedRange(4, 5, "100ms")])
    own = pa.table({"id": [1], "time": pa.array([0], pa.timestamp("us")), "x": [0], "y": [0]})
    other = pa.table({"id": [1], "time": pa.array([10], pa.timestamp("s")), "x": [30], "y": [40]})
    found = causality_tables(own, other, condition, **XY)
    assert rows(found) == [(1, 1, 10_000_000, 50.0)]
    seconds = [t.set_column(1, "time", [[value]]) for t, value in ((own, 0), (other, 10))]
    with pytest.raises(ConditionError, match="has a unit, but the unit of the time columns"):
        causality_tables(*seconds, condition, **XY)
    options = CorrelateOptions(unit="s", tick="ms")
    assert rows(causality_tables(*seconds, condition, **XY, options=options)) == [
        (1, 1, 10_000, 50.0)
    ]
    with pytest.raises(
        SchemaError, match=r"what a number in effect.time counts is unknown.*right_unit"
    ):
        causality_tables(*seconds, condition, **XY, options=CorrelateOptions(left_unit="s"))


def test_intervals() -> None:
    own = pa.table({"id": [1], "a": [0], "b": [10], "x": [0.0]})
    other = pa.table({"id": [1, 2], "time": [10, 15], "x": [1.0, 1.0]})
    for confidence, ids in ((0.5, [1, 2]), (0.6, [1])):
        condition = CausalityCondition([Temporal(0, 10), Spatial(2)], confidence=confidence)
        found = causality_tables(
            own, other, condition, cause_time=("a", "b"), effect_time="time", cause_place="x"
        )
        assert sorted(found["effect_id"].to_pylist()) == ids


def test_missing_places_match_nothing_and_are_counted() -> None:
    given = causes(x=[None, float("nan"), 0.0], y=[0.0, 0.0, 1.0])
    report = JoinReport()
    with pytest.warns(UnmatchableRowsWarning, match="cause, 3 rows: 2 without time, place or key"):
        found = causality_tables(given, effects(), NEAR, **XY, how="left", report=report)
    assert found["cause_id"].to_pylist().count(1) == 1
    assert found["effect_id"].null_count == 3
    assert report.summary().left is not None
    assert report.summary().left.unmatchable == 2  # type: ignore[union-attr]


def test_a_missing_coordinate_excuses_no_impossible_time() -> None:
    given = causes(x=[None, float("nan"), 0.0], time=[2**61, 5, 100])
    with pytest.raises(DataError, match=r"cause: .* in 1 row .found .*id=1"):
        causality_tables(given, effects(), NEAR, **XY)
    report, options = JoinReport(), CorrelateOptions(invalid="drop")
    causality_tables(given, effects(), NEAR, **XY, options=options, report=report)
    told = report.summary().left
    assert told is not None
    assert (told.unmatchable, told.invalid) == (1, {"range": 1})


@pytest.mark.parametrize(
    ("predicates", "own", "others", "words"),
    [
        ([Temporal(0, 9), Spatial(2)], causes(), effects(x=[99.0] * 3), "is 90 or more from every"),
        ([Temporal(0, 2), Spatial(9)], causes(), effects(), "no pair has a delta of 0 ticks to 2"),
        ([Temporal(7, 9)], causes(), effects(), "no pair has a delta of 7 ticks to 9 ticks; t"),
        (
            [Temporal(7, 9)],
            causes(),
            effects(),
            "the nearest pair has a delta of 10 ticks, 1 ticks too long",
        ),
        (
            [Temporal(12, 90)],
            causes(),
            effects(time=[3, 10, 500]),
            "of 10 ticks, 2 ticks too short",
        ),
        (
            [Temporal(8, 80)],
            causes(time=[0, 5, 90]),
            None,
            "has a delta of 5 ticks, 3 ticks too short",
        ),
        (
            [Temporal(3, 6), Spatial(2), SpeedRange(0, 2, per=None)],
            causes(),
            effects(y=[4.0, 4.0, 3.0]),
            "the nearest of these are 3 apart, and the condition reaches 2;",
        ),
        (
            [Temporal(1, 6), Spatial(9), SpeedRange(2, 3, per=None)],
            causes(),
            effects(x=[3.0, 90.0, 90.0]),
            "has a delta of 3 ticks at a distance of 5, 0 ticks too long",
        ),
        (
            [Temporal(-900, -600)],
            causes(),
            effects(),
            "effect times are 503 ticks or more too late",
        ),
        (
            [Temporal(-9, 9), Spatial(1)],
            causes(),
            None,
            "1 pair has a delta of -9 ticks to 9 ticks",
        ),
        (
            [Spatial(0), SpeedRange(0.5, 1, per=None), Temporal(1, 3)],
            causes(),
            effects(),
            "no delta meets all predicates",
        ),
        ([Temporal(200, 300)], causes(), None, "too early for the window: event 0 to 100"),
        (
            [Temporal(0, 9)],
            causes(),
            effects(time=pa.nulls(3, pa.int64())),
            "effect has no row that can match",
        ),
    ],
)
def test_an_empty_answer_says_why(predicates: Any, own: Any, others: Any, words: str) -> None:
    place = {"cause_place": ("x", "y")} if others is None else XY
    with pytest.warns(NoPairsWarning) as told:
        causality_tables(own, others, CausalityCondition(predicates), **place)
    assert words in str(next(w.message for w in told if w.category is NoPairsWarning))


@pytest.mark.parametrize(
    ("predicates", "words"),
    [
        (
            [Temporal(20, 60)],
            ["no pair is likely enough to have a delta of 20 ticks to 60 ticks"],
        ),
        ([Temporal(20, 60), Spatial(9)], []),
    ],
)
def test_uncertain_times_that_are_not_likely_enough(predicates: Any, words: list[str]) -> None:
    """No probability of pairs in all is worked out to say why none was found."""
    own, others = (
        table.append_column("last", pa.array([t + 10 for t in table["time"].to_pylist()]))
        for table in (causes(), effects(time=[0, 5, 100]))
    )
    condition, report = CausalityCondition(predicates, confidence=0.9), JoinReport()
    times: Any = {"cause_time": ("time", "last"), "effect_time": ("time", "last")}
    assert not causality_tables(own, others, condition, **times, **XY, report=report).num_rows
    told = report.summary().no_pairs
    assert told is not None
    assert [line for line in told.lines if "delta" in line] == words


@pytest.mark.parametrize("is_one_stream", [False, True])
def test_windows_that_are_too_narrow_for_the_timestamps(is_one_stream: bool) -> None:
    """At a distance of 5 the window is from 5 to 10: of two lengths of 20 it holds 1 - 17.5² / 400."""
    own, others = (
        table.append_column("last", pa.array([t + 20 for t in table["time"].to_pylist()]))
        for table in (causes(), effects())
    )
    predicates, report = [SpeedRange(0.5, 1, per=None), Spatial(5)], JoinReport()
    condition = CausalityCondition(predicates, confidence=0.5)
    time: Any = {"cause_time": ("time", "last"), "effect_time": ("time", "last")}
    place = {"cause_place": ("x", "y")} if is_one_stream else XY
    causality_tables(
        own, None if is_one_stream else others, condition, **time, **place, report=report
    )
    told = report.summary().no_pairs
    assert told is not None
    lengths = "20 ticks" if is_one_stream else "20 ticks (cause) and 20 ticks (effect)"
    assert told.reasons[0] == (
        "the highest probability that these lengths and this window allow is 0.234375, below the confidence"
        f" 0.5: the shortest timestamps are {lengths} long, and at no distance is the window more than"
        " 5 ticks wide. Widen it, or lower the confidence"
    )
    assert told.highest_probability == 0.234375
    lower = CausalityCondition(predicates, confidence=0.05)
    found = causality_tables(own, None if is_one_stream else others, lower, **time, **place)
    assert is_one_stream or found.num_rows


def test_other_units_are_told_in_the_words_of_causality() -> None:
    later = effects(time=[3_000_000, 10_000_000, 101_000_000])
    report = JoinReport()
    own = causes(time=[3000, 10_000, 101_000])
    causality_tables(own, later, CausalityCondition([Temporal(0, 9)]), report=report)
    told = report.summary().no_pairs
    assert told is not None
    assert (
        "effect's times are about 1,000 times cause's. If the sides count different units, give them"
        " with left_unit for cause times, right_unit for effect times"
    ) in told.hints


@pytest.mark.parametrize(
    "bounds", [Spatial(80), SpeedRange(0.1, 80, 0, per=None)], ids=["radius", "speed"]
)
def test_far_apart_on_a_sphere(bounds: Any) -> None:
    """As with a latitude and a longitude that changed places."""
    condition = CausalityCondition([Temporal(0, 1), bounds], Sphere())
    report = JoinReport()
    own, others = causes(x=[42.0] * 3, y=[12.0] * 3), effects(x=[12.0] * 3, y=[42.0] * 3)
    causality_tables(own, others, condition, **XY, report=report)
    told = report.summary().no_pairs
    assert told is not None
    assert "4422.03 or more from every cause, and the condition reaches 80" in told.reasons[0]


def test_backends() -> None:
    with pytest.raises(ConditionError, match="backend must be one of"):
        causality_tables(causes(), effects(), NEAR, **XY, backend="tpu")  # type: ignore[arg-type]
    if usable.problem() is None:
        pytest.skip("there is a GPU")
    with pytest.raises(BackendError, match="backend='gpu' is not possible:"):
        causality_tables(causes(), effects(), NEAR, **XY, backend="gpu")


@pytest.mark.parametrize(
    ("space", "place", "bad"),
    [
        (Plane(), ("x", "y"), {"x": [0.0, float("inf"), 0.0]}),
        (Plane((1e10, 1)), ("x", "y"), {"x": [0.0, 1e99, 0.0]}),
        (Sphere(), ("x", "y"), {"x": [0.0, -90.5, 0.0]}),
        (Sphere(), ("x", "y"), {"y": [0.0, 361.0, 0.0]}),
        (Sphere(), ("x", "y", "z"), {"z": [0.0, float("-inf"), 0.0]}),
    ],
)
def test_impossible_places(space: Any, place: Any, bad: dict[str, Any]) -> None:
    given = [t.append_column("z", [[0.0, 0.0, 0.0]]) for t in (causes(), effects())]
    condition = CausalityCondition([Temporal(0, 10), Spatial(1e9)], space)
    for name, values in bad.items():
        given[1] = given[1].set_column(given[1].column_names.index(name), name, [values])
    arguments: Any = {"cause_place": place, "effect_place": place}
    with pytest.raises(DataError, match=r"effect: infinite coordinates.* in 1 row .found .*id=8"):
        causality_tables(*given, condition, **arguments)
    options = CorrelateOptions(invalid="drop")
    with pytest.warns(DroppedRowsWarning, match="effect, 3 rows: skipped 1 invalid"):
        found = causality_tables(*given, condition, **arguments, options=options)
    assert found.num_rows > 0
    assert 8 not in found["effect_id"].to_pylist()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({}, ConditionError, "Name them in cause_place and effect_place"),
        (
            {"cause_place": ("x", "y"), "effect_place": ()},
            ConditionError,
            "2 coordinates and effect_place 0",
        ),
        (
            {"cause_place": ("x", "y", "z"), "effect_place": ("x", "y")},
            ConditionError,
            "cause_place has 3 coordinates and effect_place 2",
        ),
        ({**XY, "cause_place": "abcd"}, ConditionError, "1 coordinate and effect_place 2"),
        ({**XY, "cause_place": [True, 1]}, ConditionError, "cause_place must be a sequence of"),
        ({**XY, "effect_place": ("x", "nothing")}, SchemaError, "effect has no column 'nothing'"),
        ({**XY, "cause_place": ("x", "name")}, SchemaError, "cause.name must be a number"),
        ({**XY, "cause_time": "name"}, SchemaError, "cause.name must be a timestamp"),
        ({**XY, "cause_time": ("a", "b", "c")}, ConditionError, "cause_time must be a column name"),
        ({**XY, "by": "x"}, SchemaError, "cannot be compared exactly"),
        ({**XY, "cause_columns": ["id", "id"]}, ConditionError, "two output columns"),
        ({**XY, "how": "outer"}, ConditionError, "how must be one of"),
        ({**XY, "options": 3}, ConditionError, "options must be CorrelateOptions"),
    ],
)
def test_refused_arguments(arguments: dict[str, Any], error: Any, words: str) -> None:
    given = causes(name=["a", "b", "c"], z=[0, 0, 0])
    with pytest.raises(error, match=words):
        causality_tables(given, effects(), NEAR, **arguments)


def test_refused_inputs() -> None:
    with pytest.raises(SchemaError, match="causes must be a table"):
        causality_tables([1], effects(), NEAR, **XY)
    with pytest.raises(SchemaError, match="condition must be a CausalityCondition"):
        causality_tables(causes(), effects(), Spatial(1), **XY)  # type: ignore[arg-type]
    with pytest.raises(ConditionError, match="a sphere has a latitude"):
        causality_tables(
            causes(),
            effects(),
            CausalityCondition(Spatial(1), Sphere()),
            cause_place="x",
            effect_place="x",
        )


def test_constants_are_everyone_s_coordinate() -> None:
    found = causality_tables(
        causes(), effects(), NEAR, cause_place=("x", "y"), effect_place=(0.0, 0)
    )
    assert rows(found) == [(1, 7, 3, 0.0), (1, 8, 10, 0.0)]


def test_frames_and_empty_tables() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = causality_tables(causes().to_pandas(), effects().to_pandas(), NEAR, **XY)
        assert found.num_rows == 3
        for left, right in ((causes()[:0], effects()), (causes(), effects()[:0])):
            assert causality_tables(left, right, NEAR, **XY).num_rows == 0


def test_clusters() -> None:
    events = pa.table(
        {
            "id": list("abcdefg"),
            "time": [0, 2, 4, 100, 101, None, 3],
            "x": [0.0, 1.0, 2.0, 0.0, 0.5, 0.0, 50.0],
            "kind": [1, 1, 1, 1, 2, 1, 1],
        }
    )
    condition = CausalityCondition([Temporal(0, 3), Spatial(1)])
    with pytest.warns(UnmatchableRowsWarning, match="event, 7 rows: 1 without"):
        found = clusters(events, condition, place="x")
    assert found.column_names == ["id", "cluster"]
    assert found["cluster"].to_pylist() == [0, 0, 0, 3, 3, None, 6]
    found = clusters(events, condition, place="x", by="kind", columns=())
    assert found["cluster"].to_pylist() == [0, 0, 0, 3, 4, None, 6]
    frame = clusters(events.to_pandas().astype({"time": pd.Int64Dtype()}), condition, place="x")
    assert frame["cluster"].to_pylist() == [0, 0, 0, 3, 3, None, 6]
    assert clusters(events[:0], condition, place="x").num_rows == 0


def test_clusters_refuse() -> None:
    events = causes()
    with pytest.raises(ConditionError, match="Name them in place"):
        clusters(events, NEAR)
    with pytest.raises(SchemaError, match=r"the key .x. .*found double"):
        clusters(events, NEAR, place=("x", "y"), by="x")
    with pytest.raises(ConditionError, match="two output columns would be named cluster"):
        clusters(
            events.append_column("cluster", [[1, 2, 3]]), NEAR, place=("x", "y"), columns="cluster"
        )


def test_no_spark_is_loaded() -> None:
    program = (
        "import sys; from coincide import causality_tables, clusters;"
        " assert 'pyspark' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_one_stream() -> None:
    """The earlier of two is the cause, of simultaneous ones the one in the lower row."""
    events = causes(time=[5, 5, 0], x=[0.0, 3.0, 0.0])
    arguments: Any = {"cause_place": ("x", "y"), "effect_columns": "time"}
    found = causality_tables(events, None, NEAR, **arguments)
    assert rows(found) == [(1, 5, 0, 3.0), (3, 5, 5, 1.0), (3, 5, 5, 10**0.5)]
    report = JoinReport()
    causality_tables(events, None, NEAR, how="anti", report=report, **arguments)
    told = report.summary()
    assert (told.left.rows if told.left else 0, told.right, told.sides) == (3, None, ("event",) * 2)
    with pytest.raises(ConditionError, match="Remove effect_place"):
        causality_tables(events, None, NEAR, cause_place=("x", "y"), effect_place=("y", "x"))


def test_parts_of_one_stream_know_their_events() -> None:
    """Whatever the order of rows, an event has one number on both sides, and equal ones have two."""
    rng = np.random.default_rng(4)
    identity = np.repeat(rng.integers(0, 9, (2, 25)), 2, axis=1)

    def side(chosen: np.ndarray) -> Side:
        hashes = [pa.array(column[chosen]) for column in identity]
        times = np.arange(50)[chosen]
        return Side(times, np.zeros_like(times), INTERVALS, None, [], [], [], hashes)

    kept = rng.permutation(50)
    kept = kept[identity[0][kept] > 2]  # equal events are kept together
    own, others, (ranks, ranks2) = ranked_sides(side(kept), side(rng.permutation(50)))
    assert (np.diff(ranks) > 0).all()
    assert (np.diff(ranks2) > 0).all()
    of_rank = dict(zip(ranks2.tolist(), identity.T[others.max_time].tolist(), strict=True))
    assert [of_rank[rank] for rank in ranks.tolist()] == identity.T[own.max_time].tolist()
    assert len(own) == kept.size


def test_a_missing_unit_is_told_once_a_column() -> None:
    seconds = [t.set_column(1, "time", [[1.0, 2.0, 3.0]]) for t in (causes(), effects())]
    with pytest.raises(
        SchemaError, match=r"need a unit .found none for cause\.time, effect\.time\). Give"
    ):
        causality_tables(*seconds, NEAR, **XY)
