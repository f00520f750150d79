"""What policies and windows find of all pairs of a recorded stream, and what any policy could."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from coincide.causal_windows.policies import BY_DISTANCE, Policy
from coincide.causal_windows.state import CAUSE, EFFECT
from coincide.cause_and_effect.condition import CausalityModel
from coincide.cause_and_effect.points import PlacedEvents, no_points
from spark_plugin.worker.windowed_causality.arguments import WindowArguments
from spark_plugin.worker.windowed_causality.reading import Arriving

BOUND = "bound"
"""In the place of a policy: what none can exceed."""


class Recall(NamedTuple):
    """Pairs that a policy found with a window, of all pairs."""

    policy: str
    window: int
    pairs: int
    exact: int
    recall: float | None


def exact_pairs(
    arriving: Arriving, model: CausalityModel, own: bool, threads: int
) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of causes and effects: their positions by arrival, two int64 arrays, shape (pairs,)."""
    join_of = import_module("cpu_fallback.causality").CausalityJoin
    if own:
        rows = [np.arange(arriving.times.size)] * 2
        events = _events(arriving, rows[0])
        join = join_of(events, None if model.is_forward else events, model, threads=threads)
    else:
        rows = [np.flatnonzero(arriving.roles == role) for role in (CAUSE, EFFECT)]
        join = join_of(*(_events(arriving, each) for each in rows), model, threads=threads)
    own_rows, others = rows[0][join.left_order], rows[1][join.right_order]
    found = join.pairs(0, own_rows.size, own_rows, others)
    if own and not model.is_forward:
        return _once(found[0], found[1], arriving.times)
    return found[0], found[1]


def _once(
    causes: np.ndarray, effects: np.ndarray, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of one stream without those that are told in the other order, or of one tuple."""
    is_back = np.where(
        times[causes] == times[effects], causes > effects, times[causes] > times[effects]
    )
    is_told = np.isin(effects * times.size + causes, causes * times.size + effects)
    kept = (causes != effects) & ~(is_back & is_told)
    return causes[kept], effects[kept]


def recalls(
    arriving: Arriving,
    arguments: WindowArguments,
    model: CausalityModel,
    tick: Any,
    windows: Sequence[int],
    policies: Sequence[Policy],
    threads: int,
) -> Iterator[Recall]:
    """What each policy finds with each window, and the bound of each window."""
    windowed = import_module("cpu_fallback.causality.windowed")
    causes, effects = exact_pairs(arriving, model, arguments.role is None, threads)
    exact, tuples = causes.size, arriving.times.size
    points = no_points() if arriving.points is None else arriving.points
    first, second = np.minimum(causes, effects), np.maximum(causes, effects)
    for window in windows:
        for policy in policies:
            stay = arguments.options.max_stay if policy == "fcfo" else None
            chosen = arguments.with_options(window=window, policy=policy, max_stay=stay)
            join = windowed.WindowJoin(chosen.terms(model, tick))
            taken = join.take(arriving.times, arriving.clocks, points, arriving.roles)
            yield _recall(policy, window, sum(part.causes.size for part in taken), exact)
        bound = windowed.most_pairs(first, second, tuples, window)
        yield _recall(BOUND, window, bound, exact)


def usable(policies: Sequence[Policy], arguments: WindowArguments) -> list[Policy]:
    """The policies that what is given allows."""
    has_home = arguments.home not in ((), [])
    learns = arguments.options.sample != 0
    return [
        p for p in policies if (has_home or p not in BY_DISTANCE) and (learns or p != "expected")
    ]


def _recall(policy: str, window: int, pairs: int, exact: int) -> Recall:
    return Recall(policy, window, pairs, exact, pairs / exact if exact else None)


def _events(arriving: Arriving, rows: np.ndarray) -> PlacedEvents:
    points = None if arriving.points is None else arriving.points[:, rows]
    return PlacedEvents(arriving.times[rows], points)
