"""Causes and effects of uncertain times, as the reference and as tables have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from coincide import CausalityCondition, ConditionError
from coincide.model.units import Tick
from cpu_fallback.reference import causality as reference
from tests.helpers.causality_cases import Case

DELTAS = range(-200, 201)
"""Far beyond all times of the cases."""

Interval = tuple[int, int, tuple[float, ...]]


class TimedCase(NamedTuple):
    """A case whose times are intervals; of one stream both sides are the causes."""

    condition: CausalityCondition
    causes: list[Interval]
    effects: list[Interval]
    names: list[str]


def timed_case(
    case: Case, lengths: Sequence[int], confidence: float, is_one_stream: bool
) -> TimedCase | None:
    """The case with times of these lengths in turn; none where a side is empty, or nothing can be found."""
    try:
        condition = CausalityCondition(case.predicates, confidence=confidence)
        condition.limits(Tick())
    except ConditionError:
        return None
    causes = intervals(case.causes, lengths)
    effects = causes if is_one_stream else intervals(case.effects, lengths[::-1])
    if not causes or not effects:
        return None
    return TimedCase(condition, causes, effects, ["x", "y", "z"][: len(causes[0][2])])


def intervals(events: Sequence[reference.Event], lengths: Sequence[int]) -> list[Interval]:
    whole = [e for e in events if None not in e]
    return [
        (time - lengths[i % len(lengths)], time, where) for i, (time, where, _) in enumerate(whole)
    ]


def table(events: Sequence[Interval], names: Sequence[str]) -> pa.Table:
    columns = {n: pa.array([e[2][i] for e in events], pa.float64()) for i, n in enumerate(names)}
    times = {n: pa.array([e[i] for e in events], pa.int64()) for i, n in enumerate(("low", "high"))}
    return pa.table({"id": pa.array(range(len(events)), pa.int64()), **times, **columns})
