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
from spark_plugin.worker.one_stream import Ranks


def points_of(side: Side, space: Space) -> np.ndarray | None:
    """Where the events of a side are, as `PlacedEvents.points`; None of a side without coordinates."""
    return space.points([column.to_numpy() for column in side.places]) if side.places else None


def placed_events(
    causes: Side,
    effects: Side,
    space: Space,
    ranks: Ranks | None = None,
    *,
    case_fold: bool = False,
) -> tuple[PlacedEvents, PlacedEvents]:
    """Both sides as a causality join takes them.

    Parameters
    ----------
    causes, effects : Side
    space : Space
        Of their coordinates, if they have any.
    ranks : two int64 arrays or None
        As `PlacedEvents.ranks`.
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
            rank,
            side.model.table,
        )
        for side, events, rank in zip(
            (causes, effects), grouped, ranks or (None, None), strict=True
        )
    )
    if own.templates is None and others.templates is None:
        return own, others
    return with_templates(own), with_templates(others)


def moved_sides(
    causes: PlacedEvents, effects: PlacedEvents, ticks: int, is_one_stream: bool
) -> tuple[PlacedEvents, PlacedEvents]:
    """Both sides, the times of effects moved and no other column copied.

    Of one stream, of two events that are simultaneous then the one that was earlier is the cause.

    Raises
    ------
    ConditionError
        If a time leaves the range of times.
    """
    times = effects.times if effects.group is None else effects.times[effects.group >= 0]
    farthest = max(abs(int(times.min(initial=0)) + ticks), abs(int(times.max(initial=0)) + ticks))
    if farthest >= TIME_LIMIT:
        raise ConditionError(
            f"a shift of {ticks} ticks moves effects beyond 2^61 ticks. Use a shorter one, or a coarser"
            " tick"
        )
    moved = replace(effects, times=effects.times + ticks)
    if not is_one_stream:
        return causes, moved
    ranks = np.full(len(causes), 1), np.full(len(effects), 0 if ticks > 0 else 2)
    return replace(causes, ranks=ranks[0]), replace(moved, ranks=ranks[1])


def placed_stream(events: Side, space: Space, *, case_fold: bool = False) -> PlacedEvents:
    """One stream as a causality join with itself takes it."""
    nothing = events.rows(np.empty(0, np.int64))
    return placed_events(events, nothing, space, case_fold=case_fold)[0]
