"""`emit="best"` of causality joins: the reference's choice, in the same order whatever the batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import (
    CausalityCondition,
    CorrelateOptions,
    Plane,
    Spatial,
    SpeedRange,
    Sphere,
    Temporal,
    causality_tables,
)
from cpu_fallback.reference.causality import Asked, best_effects
from cpu_fallback.reference.causality import pairs as pairs_of
from tests.helpers.causality_cases import Case, plane_cases
from tests.helpers.timed_effects import DELTAS, table, timed_case

DRAWN = (
    plane_cases(),
    st.lists(st.sampled_from([0, 4, 8, 16]), min_size=1, max_size=3),
    st.sampled_from([1.0, 0.5, 0.125]),
    st.booleans(),
    st.integers(1, 9),
)
"""Lengths are powers of two, so that probabilities are exact and ties are ties."""


@settings(max_examples=50)
@given(*DRAWN)
def test_the_reference_chooses_the_same(
    case: Case, lengths: list[int], confidence: float, is_one_stream: bool, batch: int
) -> None:
    check(case, lengths, confidence, is_one_stream, batch)


@pytest.mark.slow
@settings(max_examples=150)
@given(*DRAWN)
def test_the_reference_chooses_the_same_at_length(
    case: Case, lengths: list[int], confidence: float, is_one_stream: bool, batch: int
) -> None:
    check(case, lengths, confidence, is_one_stream, batch)


def check(
    case: Case, lengths: list[int], confidence: float, is_one_stream: bool, batch: int
) -> None:
    """Both shapes of the answer, in batches of a few pairs."""
    timed = timed_case(case, lengths, confidence, is_one_stream)
    if timed is None:
        return
    condition, causes, effects, names = timed
    given_ = causes, effects, case.exact, confidence, DELTAS, is_one_stream
    asked_ = Asked(*given_)
    expected = [(cause, effect) for cause, effect, _ in best_effects(asked_, pairs_of(asked_))]
    asked: dict[str, Any] = {
        "cause_time": ("low", "high"), "effect_time": ("low", "high"), "cause_place": names,
        "effect_place": names, "options": CorrelateOptions(batch_pairs=batch, threads=1),
    }  # fmt: skip
    sides = table(causes, names), None if is_one_stream else table(effects, names)
    found = causality_tables(*sides, condition, emit="best", how="left", **asked)
    rows = zip(*(found[n].to_pylist() for n in ("cause_id", "effect_id")), strict=True)
    assert sorted(found["cause_id"].to_pylist()) == list(range(len(causes)))
    assert sorted(pair for pair in rows if pair[1] is not None) == expected
    inner = causality_tables(*sides, condition, emit="best", **asked)
    assert inner.num_rows == len(expected)
    if not is_one_stream:
        pairs = causality_tables(*sides, condition, **asked)
        assert set(map(str, inner.to_pylist())) <= set(map(str, pairs.to_pylist()))


CAUSE = pa.table({"id": [0], "time": [0], "x": [0.0]})


def best_of(condition: CausalityCondition, **columns: Any) -> int:
    effects = pa.table({"id": range(len(columns["time"])), **columns})
    found = causality_tables(
        CAUSE, effects, condition, cause_place="x", effect_place="x", emit="best"
    )
    (best,) = found["effect_id"].to_pylist()
    return int(best)


def test_by_hand() -> None:
    near = CausalityCondition([Temporal(0, 10), Spatial(9)])
    assert best_of(near, time=[1, 4, 9], x=[0.0, 3.0, 1.0]) == 1  # 5 is the middle
    assert best_of(near, time=[4, 6, 6], x=[3.0, 2.0, -2.5]) == 1  # as near to 5: the nearest
    assert (
        best_of(near, time=[6, 4, 4], x=[2.0, -2.0, 2.0]) == 1
    )  # the earlier; then the smaller id
    # Each pair has its own window: at a distance of 8 from 4 to 8, at 2 from 1 to 2.
    speeds = CausalityCondition([SpeedRange(1, 2, per=None), Spatial(9)])
    assert best_of(speeds, time=[7, 2], x=[8.0, 2.0]) == 1
    assert best_of(speeds, time=[6, 2], x=[8.0, 2.0]) == 0
    # Open windows have no middle: nearest to the end that there is, or in space.
    later = CausalityCondition([Temporal(3, None), Spatial(9)])
    assert best_of(later, time=[99, 4, 5], x=[0.0, 3.0, 1.0]) == 1
    before = CausalityCondition([Temporal(None, -3), Spatial(9)])
    assert best_of(before, time=[-99, -4, -5], x=[0.0, 3.0, 1.0]) == 1
    assert best_of(CausalityCondition([Spatial(9)]), time=[1, 50], x=[3.0, 2.0]) == 1


@pytest.mark.parametrize("space", [Plane(), Sphere()])
def test_batches_threads_and_the_order_of_rows_do_not_matter(space: Any) -> None:
    rng = np.random.default_rng(5)
    own, others = (
        pa.table(
            {
                "id": np.arange(600), "low": (low := rng.integers(0, 3000, 600)),
                "high": low + rng.choice([0, 8, 30], 600), "x": rng.integers(0, 9, 600) / 2,
                "y": rng.integers(0, 9, 600) / 2, "h": rng.integers(0, 3, 600) * 1.0,
            }
        )
        for _ in range(2)
    )  # fmt: skip
    unit = 100.0 if isinstance(space, Sphere) else 1.0
    condition = CausalityCondition([Temporal(-50, 300), Spatial(2 * unit)], space, 0.3)
    arguments: dict[str, Any] = {
        "cause_time": ("low", "high"), "effect_time": ("low", "high"), "emit": "best",
        "cause_place": ("x", "y", "h"), "effect_place": ("x", "y", "h"), "how": "left",
    }  # fmt: skip
    wanted = causality_tables(own, others, condition, **arguments)
    assert wanted.column_names == ["cause_id", "effect_id", "delta", "distance"]
    assert wanted["effect_id"].null_count < 300
    for threads, batch in ((2, 7), (1, 100)):
        options = CorrelateOptions(threads=threads, batch_pairs=batch)
        order = rng.permutation(600)
        found = causality_tables(
            own.take(order), others.take(order[::-1]), condition, options=options, **arguments
        )
        assert found.sort_by("cause_id").equals(wanted.sort_by("cause_id"))


def test_distances_are_compared_as_they_are_handed_out() -> None:
    """Different squares may have one root: by every way the same effect is chosen then."""
    far = 2.0**30
    causes = pa.table({"id": [1], "time": [0], "x": [0.0], "y": [0.0]})
    effects = pa.table({"id": [1, 2], "time": [5, 5], "x": [far, far], "y": [16.0, 0.0]})
    condition = CausalityCondition([Temporal(0, 10), Spatial(2 * far)])
    places: Any = {"cause_place": ("x", "y"), "effect_place": ("x", "y")}
    found = causality_tables(causes, effects, condition, emit="best", **places)
    assert found.select(["effect_id", "distance"]).to_pylist() == [
        {"effect_id": 1, "distance": far}
    ]
