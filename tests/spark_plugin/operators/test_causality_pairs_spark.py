"""Causality joins on Spark by keys of other names, with a condition on pairs, with all columns."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    SchemaError,
    Spatial,
    Temporal,
    accidental_pair_tables,
    accidental_pairs,
    causality,
    causality_tables,
)
from tests.helpers.causality_tables import XY, answer, random_events
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.spark


def _events(seed: int, n: int) -> pa.Table:
    """Keys as texts, and as whole numbers of two widths."""
    events = random_events(seed, n)
    numbers = [None if i % 9 == 0 else i % 3 for i in range(events.num_rows)]
    kind = pa.int16() if seed % 2 else pa.int64()
    return events.append_column(f"k{seed}", events["key"]).append_column(
        f"n{seed}", pa.array(numbers, kind)
    )


CAUSES, EFFECTS = _events(1, 130), _events(2, 160)
NEAR = CausalityCondition([Spatial(4), Temporal(-7, 60)])
SOMETIME = CausalityCondition([Spatial(2)])
WHERE = "distance <= 1.0 + cause_x / 4 AND (cause_name <> effect_name OR delta BETWEEN 2 AND 30)"
KEYS: dict[str, Any] = {"by": [("k1", "k2"), ("n1", "n2")]}
BLOCKS = {"way": "exchange", "slice_rows": 40}
CASES: list[Any] = [
    (NEAR, {"slices": 6}, {"cause_columns": "*", "effect_columns": "*"}),
    (NEAR, {"slices": 6}, {**KEYS, "how": "left", "emit": "lists"}),
    (SOMETIME, BLOCKS, {"how": "left", "emit": "best", "effect_columns": ("id", "name")}),
    pytest.param(SOMETIME, BLOCKS, {"how": "anti"}, marks=pytest.mark.slow),
    (SOMETIME, BLOCKS, {"how": "left", "emit": "counts", "by": [("k1", "k2")]}),
    (NEAR, {"way": "broadcast-left"}, {"how": "left", "emit": "best"}),
    (NEAR, {"way": "broadcast-left", "slice_rows": 40}, {
        "how": "left", "emit": "aggregates", "aggregates": {
            "n": "count", "near": ("distance", "min"), "far": ("distance", "sum"), "x": ("x", "std"),
            "last": ("name", "last"), "soon": ("delta", "min"),
        },
    }),
    pytest.param(NEAR, {"way": "broadcast-left"}, {"how": "semi", **KEYS}, marks=pytest.mark.slow),
    (NEAR, {"way": "broadcast-right"}, {**KEYS, "how": "left", "cause_columns": "*"}),
]  # fmt: skip


@pytest.mark.parametrize(("condition", "way", "shape"), CASES)
def test_the_answer_is_that_of_tables(
    spark: SparkSession, condition: CausalityCondition, way: dict[str, Any], shape: dict[str, Any]
) -> None:
    given = {**XY, "where": WHERE, **shape}
    wanted = causality_tables(CAUSES, EFFECTS, condition, **given)
    alone = causality_tables(CAUSES, EFFECTS, condition, **{**given, "where": None})
    found = causality(
        frame(spark, CAUSES), frame(spark, EFFECTS), condition, **given,
        options=CorrelateOptions(**way),
    ).toArrow()  # fmt: skip
    assert found.column_names == wanted.column_names
    assert repr(answer(found)) == repr(answer(wanted)) != repr(answer(alone))  # NaN is a place
    assert wanted.num_rows > 5


CHOSEN: list[Any] = [
    (NEAR, {"slices": 6}, {"emit": "best", "prefer": "distance", "k": 3}),
    (SOMETIME, BLOCKS, {"emit": "best", "prefer": "distance", "k": 2}),
    pytest.param(SOMETIME, BLOCKS, {"emit": "best", "prefer": "last"}, marks=pytest.mark.slow),
    (NEAR, {"way": "broadcast-left"}, {"emit": "best", "k": 2}),
    pytest.param(
        NEAR,
        {"way": "broadcast-left"},
        {"emit": "best", "prefer": "nearest"},
        marks=pytest.mark.slow,
    ),
    (NEAR, {"way": "broadcast-right"}, {"emit": "best", "prefer": "first", "k": 2}),
    pytest.param(
        NEAR, {"slices": 6}, {"matching": "mutual", "prefer": "distance"}, marks=pytest.mark.slow
    ),
    (SOMETIME, BLOCKS, {"matching": "mutual"}),
    (NEAR, {"way": "broadcast-left"}, {"matching": "mutual", "prefer": "first", "how": "inner"}),
    (NEAR, {}, {"matching": "optimal", "prefer": "nearest", "largest_group": 1000}),
    (
        SOMETIME,
        {"slices": 4},
        {"matching": "optimal", "prefer": "nearest", "largest_group": 1000, "by": [("n1", "n2")]},
    ),
]


@pytest.mark.parametrize(("condition", "way", "shape"), CHOSEN)
def test_chosen_effects_are_those_of_tables(
    spark: SparkSession, condition: CausalityCondition, way: dict[str, Any], shape: dict[str, Any]
) -> None:
    """Times are uncertain; events that are alike in all output columns are alike in all."""
    columns = ("id", "x", "y", "name")
    times = {f"{side}_time": ("time", "late") for side in ("cause", "effect")}
    sides = [
        each.append_column("late", pc.add(each["time"], longer))
        for each, longer in ((CAUSES, 8), (EFFECTS, 16))
    ]
    condition = CausalityCondition(condition.predicates, confidence=0.25)
    given: dict[str, Any] = {
        **XY, **times, "where": "cause_name <> effect_name", "how": "left", **shape,
        "cause_columns": columns, "effect_columns": columns, "probability": True,
    }  # fmt: skip
    wanted = causality_tables(*sides, condition, **given)
    options = CorrelateOptions(**way)
    found = causality(
        *(frame(spark, side) for side in sides), condition, **given, options=options
    ).toArrow()
    assert found.column_names == wanted.column_names
    if shape.get("matching") == "optimal":  # several may be equally good
        assert _worth(found) == _worth(wanted)
    else:
        assert repr(answer(found)) == repr(answer(wanted))
    assert wanted.num_rows - wanted["effect_id"].null_count > 20


def _worth(found: pa.Table) -> tuple[int, int]:
    """How many pairs, and how far apart their middles are."""
    deltas = [delta for delta in found["delta"].to_pylist() if delta is not None]
    return len(deltas), sum(map(abs, deltas))


def test_mutual_choice_needs_to_know_events_again(spark: SparkSession) -> None:
    with pytest.raises(
        ConditionError, match=r"on Spark identifies events by their output columns. Add 'x'"
    ):
        causality(frame(spark, CAUSES), frame(spark, EFFECTS), NEAR, **XY, matching="mutual")


def test_one_stream_and_shifts(spark: SparkSession) -> None:
    where = pc.field("cause_name") != pc.field("effect_name")
    given: dict[str, Any] = {
        "cause_place": ("x", "y"), "where": where, "by": "k1", "cause_columns": "id",
    }  # fmt: skip
    events = CAUSES.slice(0, 130)
    times = [7 * i % 600 for i in range(130)]  # either of two simultaneous events may be the cause
    events = events.set_column(1, "time", pa.array(times))
    wanted = causality_tables(events, None, NEAR, **given)
    rows, options = frame(spark, events), CorrelateOptions(slices=4)
    found = causality(rows, None, NEAR, options=options, **given)
    assert answer(found.toArrow()) == answer(wanted)
    assert wanted.num_rows > 5
    given["shifts"] = [150, -170]
    chance = accidental_pair_tables(events, None, NEAR, **given)
    assert accidental_pairs(rows, None, NEAR, options=options, **given) == chance


def test_it_is_checked_when_the_join_is_planned(spark: SparkSession) -> None:
    causes, effects = frame(spark, CAUSES), frame(spark, EFFECTS)
    for where, words in (
        ("cause_size = 3", "a pair has no column 'cause_size' .found 'cause_id'"),
        ("cause_name = 3", "where does not fit these columns: cause_name = 3 has no value"),
    ):
        with pytest.raises(SchemaError, match=words):
            causality(causes, effects, NEAR, **XY, where=where)
