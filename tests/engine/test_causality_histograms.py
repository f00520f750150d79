"""Causality joins of histogram timestamps: the pairs of the definition, of intervals, of timing joins."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CausalityCondition,
    ConditionError,
    CorrelateOptions,
    Ellipsoidal,
    Spatial,
    SpeedRange,
    Temporal,
    Tick,
    TimingCondition,
    accidental_pair_tables,
    causality,
    causality_tables,
    clusters,
    correlate_tables,
    histograms,
    within,
)
from coincide.model.causality import template_rule
from coincide.model.causality.spaces import PlacedEvents
from cpu_fallback.reference import causality as reference
from tests.helpers.causality_tables import XY, answer
from tests.helpers.histogram_tables import (
    by_device,
    events,
    histograms_of,
    one_bucket,
    random_templates,
    with_ends,
)

NEAR = [SpeedRange(0.5, 2.0, slack=5, per=None), Spatial(40)]
WHOLE = range(-10, 91)


def placed(seed: int, rows: int, *, coarse: bool = False) -> pa.Table:
    """Events on a grid of places, coarse ones at few of them."""
    table, random = events(seed, rows, span=600), np.random.default_rng([seed, 1])
    for name in ("x", "y"):
        where = random.integers(0, 3 if coarse else 60, rows) * (20 if coarse else 1)
        table = table.append_column(name, pa.array(where.astype(float)))
    return table


def in_reference(predicates: list[Any], *sides: tuple[pa.Table, Any], confidence: float) -> Any:
    """Rows of pairs by the definition; of a side its table, and its templates, None of instants."""
    given = []
    for table, templates in sides:
        if templates is None:
            times = [[(t, t, 1.0)] for t in table["seen_at"].to_pylist()]
        else:
            times = histograms_of(table, templates)
        places = zip(table["x"].to_pylist(), table["y"].to_pylist(), strict=True)
        given.append(list(zip(times, places, strict=True)))
    return reference.histogram_causality(given[0], given[1], predicates, confidence, WHOLE)


SPEEDS = [reference.speed_range(0.5, 2.0, 5, 5), reference.spatial(40)]


@pytest.mark.parametrize("coarse", [True, False], ids=["by place", "by grid"])
@pytest.mark.parametrize("mixed", ["both", "causes", "effects"])
def test_pairs_of_the_definition(coarse: bool, mixed: str) -> None:
    causes, effects = placed(1, 20, coarse=coarse), placed(2, 20, coarse=coarse)
    own = random_templates(3) if mixed != "effects" else None
    others = random_templates(4) if mixed != "causes" else None
    times = [
        "seen_at" if templates is None else by_device(templates) for templates in (own, others)
    ]
    some = 0
    for confidence in (0.2, 0.5, 0.75, 1.0):
        wanted = in_reference(SPEEDS, (causes, own), (effects, others), confidence=confidence)
        condition = CausalityCondition(NEAR, confidence=confidence)
        asked: Any = {"cause_time": times[0], "effect_time": times[1], **XY}
        found = causality_tables(causes, effects, condition, **asked)
        pairs = zip(found["cause_id"].to_pylist(), found["effect_id"].to_pylist(), strict=True)
        assert sorted(pairs) == wanted
        counts = causality_tables(causes, effects, condition, emit="counts", how="left", **asked)
        assert sum(counts["matches"].to_pylist()) == len(wanted)
        some += len(wanted)
    assert some > 30


@pytest.mark.parametrize("emit", ["pairs", "best", "counts"])
def test_one_bucket_is_an_interval(emit: Any) -> None:
    causes, effects = with_ends(placed(5, 200)), with_ends(placed(6, 200))
    condition = CausalityCondition([*NEAR, Ellipsoidal(50, 90)], confidence=0.4)
    kinds: list[Any] = [by_device(one_bucket()), ("min_time", "seen_at")]
    found = [
        causality_tables(causes, effects, condition, cause_time=a, effect_time=b, emit=emit, **XY)
        for a in kinds
        for b in kinds
    ]
    # With histograms delta is between the times seen, with intervals between midpoints.
    alike = [each.select([n for n in each.column_names if n != "delta"]) for each in found]
    assert all(answer(each) == answer(alike[-1]) for each in alike)
    assert found[-1].num_rows > 20


@pytest.mark.parametrize("bounds", [(-30, 50), (0, 7), (-3, -3)])
def test_of_times_alone_the_pairs_of_a_timing_join(bounds: tuple[int, int]) -> None:
    """Which decides templates by a table of integers: ties are met, the same way, at every threshold."""
    templates = pa.table({
        "template": ["d0", "d0", "d0", "d1", "d1", "d2", "d3", "d3"],
        "lower": [-10, -6, -1, -4, 0, -20, -9, -3], "upper": [-6, -1, 0, 0, 0, 0, -3, 0],
        "mass": [0.1, 0.2, 0.7, 0.6, 0.4, 1.0, 0.3, 0.7],
    })  # fmt: skip
    left, right = events(7, 150, span=200), events(8, 150, span=200)
    for confidence in (0.06, 0.1, 0.3, 0.42, 0.7, 0.9, 1.0):
        timing = TimingCondition(within(*bounds), confidence)
        times: Any = {"left_time": by_device(templates), "right_time": by_device(templates)}
        wanted = correlate_tables(left, right, timing, **times)
        condition = CausalityCondition([Temporal(*bounds)], confidence=confidence)
        asked: Any = {"cause_time": by_device(templates), "effect_time": by_device(templates)}
        found = causality_tables(left, right, condition, **asked)
        assert answer(found.select(["cause_id", "effect_id"])) == answer(wanted)


def test_the_sum_over_buckets_is_what_the_walk_gives() -> None:
    condition, table = CausalityCondition(NEAR, confidence=0.5), random_templates(3)
    templates = by_device(table).table(Tick())
    none = PlacedEvents(*[np.zeros(0, np.int64)], templates=templates)
    rule = template_rule.deciding_rule(condition.model(Tick()), none, none)
    assert isinstance(rule, template_rule.TemplateRule)
    for s in range(-200, 200, 7):
        for pair in np.ndindex(4, 4):
            walked = template_rule.probability_within(rule, 0.0, 0.0, s, *pair)
            lo, hi = rule.window_at(0.0)
            summed = template_rule._sum_over_buckets(rule, s, *pair, lo, hi)
            assert walked == pytest.approx(summed, abs=1e-14)


def test_clusters_of_one_bucket_are_those_of_intervals() -> None:
    table = with_ends(placed(11, 300))
    condition = CausalityCondition([Temporal(0, 20), Spatial(12)], confidence=0.6)
    place: Any = {"place": ("x", "y")}
    found = clusters(table, condition, time=by_device(one_bucket()), **place)
    assert found.equals(clusters(table, condition, time=("min_time", "seen_at"), **place))
    assert len(set(found["cluster"].to_pylist())) < 290


@pytest.mark.spark
@pytest.mark.parametrize(
    ("way", "emit"),
    [
        ("exchange", "pairs"),
        ("small slices", "best"),
        ("broadcast-left", "best"),
        ("broadcast-right", "pairs"),
    ],
)
def test_on_spark(spark: SparkSession, way: str, emit: Any) -> None:
    causes, effects = placed(12, 150), with_ends(placed(13, 150))
    condition = CausalityCondition(NEAR, confidence=0.3)
    asked: Any = {
        "cause_time": by_device(random_templates(3)), "effect_time": ("min_time", "seen_at"),
        "emit": emit, "how": "left", **XY,
    }  # fmt: skip
    wanted = causality_tables(causes, effects, condition, **asked)
    given: Any = {"way": way, **({"slices": 3} if way == "exchange" else {})}
    if way == "small slices":
        given = {"way": "exchange", "slice_rows": 40}
    frames = map(spark.createDataFrame, (causes, effects))
    found = causality(*frames, condition, **asked, options=CorrelateOptions(**given))  # type: ignore[misc]
    assert answer(found.toArrow()) == answer(wanted)
    assert wanted["effect_id"].null_count < wanted.num_rows


def test_shifts_of_histograms() -> None:
    causes, effects = placed(14, 100), placed(15, 100)
    condition, table = CausalityCondition(NEAR, confidence=0.3), by_device(random_templates(3))
    times: Any = {"cause_time": table, "effect_time": table, **XY}
    found = accidental_pair_tables(causes, effects, condition, shifts=[700], **times)
    moved = effects.set_column(2, "seen_at", pa.array(effects["seen_at"].to_numpy() + 700))
    assert found.counts == (causality_tables(causes, moved, condition, **times).num_rows,)


def test_what_is_refused() -> None:
    causes, table = placed(1, 5), by_device(one_bucket())
    condition = CausalityCondition(NEAR)
    options = CorrelateOptions(left_longest=5)
    with pytest.raises(ConditionError, match="left_longest declares the longest interval, but"):
        causality_tables(causes, causes, condition, cause_time=table, options=options, **XY)
    unknown = histograms("seen_at", template="place", templates=one_bucket())
    with pytest.raises(Exception, match="unknown or missing ids of templates in place"):
        causality_tables(causes, causes, condition, cause_time=unknown, effect_time="seen_at", **XY)
