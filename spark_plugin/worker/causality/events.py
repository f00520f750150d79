"""Sides of a causality join as the events that it takes: times, points, groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coincide.cause_and_effect.points import PlacedEvents
from coincide.cause_and_effect.spaces import Space
from coincide.cause_and_effect.template_rule import with_templates
from coincide.errors import ConditionError
from coincide.units import TIME_LIMIT
from spark_plugin.worker.arrow.sides import Side, grouped_events


def points_of(side: Side, space: Space) -> np.ndarray | None:
    """Where the events of a side are, as `PlacedEvents.points`; None of a side without coordinates."""
    return space.points([column.to_numpy() for column in side.places]) if side.places else None


def placed_events(
    causes: Side,
    effects: Side,
    space: Space,
    *,
    case_fold: bool = False,
) -> tuple[PlacedEvents, PlacedEvents]:
    """Both sides as a causality join takes them.

    Parameters
    ----------
    causes, effects : Side
    space : Space
        Of their coordinates, if they have any.
    case_fold : bool
        As of `CausalitySpec`.
    """
    grouped = grouped_events(causes, effects, case_fold=case_fold)
    own, others = (
        PlacedEvents(
            side.max_time,
            points_of(side, space),
            side.shapes if side.shapes.any() or side.model.table is not None else None,
            events.group,
            events.groups,
            templates=side.model.table,
        )
        for side, events in zip((causes, effects), grouped, strict=True)
    )
    if own.templates is None and others.templates is None:
        return own, others
    return with_templates(own), with_templates(others)


def moved_effects(effects: Side, events: PlacedEvents, ticks: int) -> tuple[Side, PlacedEvents]:
    """Effects, their times moved and no other column copied.

    Raises
    ------
    ConditionError
        If a time leaves the range of times.
    """
    times = events.times if events.group is None else events.times[events.group >= 0]
    farthest = max(abs(int(times.min(initial=0)) + ticks), abs(int(times.max(initial=0)) + ticks))
    if farthest >= TIME_LIMIT:
        raise ConditionError(
            f"a shift of {ticks} ticks moves effects beyond 2^61 ticks. Use a shorter one, or a coarser"
            " tick"
        )
    moved = events.times + ticks
    return replace(effects, max_time=moved), replace(events, times=moved)


def placed_stream(events: Side, space: Space, *, case_fold: bool = False) -> PlacedEvents:
    """One stream as a causality join with itself takes it."""
    nothing = events.rows(np.empty(0, np.int64))
    return placed_events(events, nothing, space, case_fold=case_fold)[0]
