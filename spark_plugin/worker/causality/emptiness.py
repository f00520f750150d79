"""Why a causality join finds nothing: beside rows, times and keys, what places tell."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

import numpy as np

from coincide.cause_and_effect.limits import UNBOUNDED, Limits
from coincide.cause_and_effect.placing.buckets import extent
from coincide.cause_and_effect.points import PlacedEvents
from coincide.cause_and_effect.rule import pair_rule
from coincide.cause_and_effect.spaces import Plane
from coincide.cause_and_effect.sphere import squared_arc
from coincide.cause_and_effect.widest import widest_window
from coincide.condition import Window
from coincide.probability import highest_probability
from coincide.units import Tick
from spark_plugin.worker.arrow.time_words import length_words
from spark_plugin.worker.causality.bounds import CausalBounds
from spark_plugin.worker.causality.emission import CausalitySpec
from spark_plugin.worker.causality.nearest import NearMiss, nearest_in_space, nearest_miss_in_time
from spark_plugin.worker.reports.emptiness import (
    Evidence,
    NoPairs,
    explain_emptiness,
    highest,
    of_probability,
)
from spark_plugin.worker.reports.key_overlap import KeyOverlap

_MOST_MEASURED = 1 << 22
"""Pairs that are looked at to tell which comes nearest."""


def explain_no_effects(
    causes: Evidence,
    effects: Evidence,
    spec: CausalitySpec,
    keys: KeyOverlap | None,
    events: tuple[PlacedEvents, PlacedEvents | None],
) -> NoPairs:
    """What speaks against any pair.

    Parameters
    ----------
    causes, effects, keys
        As of `spark_plugin.worker.reports.emptiness.explain_emptiness`.
    spec : CausalitySpec
    events : (PlacedEvents, PlacedEvents or None)
        All of them; None of one stream.
    """
    found = explain_emptiness(causes, effects, spec, keys)
    if not causes.events or not effects.events:
        return found
    reasons = list(found.reasons)
    if events[1] is not None:
        reasons += _of_places((events[0], events[1]), spec)
    told = (
        [] if reasons or found.is_asked_for else list(_of_deltas(events, spec, causes.scale.tick))
    )
    return replace(found, reasons=tuple(reasons), hints=(*told, *found.hints))


@highest.register
def _(
    pairs: CausalBounds, left: Evidence, right: Evidence, window: Window
) -> tuple[float | None, list[tuple[bool, str]]]:
    """By the widest window of any pair: exact instants have a probability of 1 or none."""
    if pairs.model is None or any(table is not None for table in pairs.tables):
        return None, []
    width = widest_window(pairs.model)
    if width < 0:
        return 0.0, [
            (True, "at no distance is there a delta that meets all predicates of the condition")
        ]
    lengths = left.shortest, right.shortest, left.typical or 0, right.typical or 0
    if width >= UNBOUNDED or not any(lengths):
        return None, []
    best = highest_probability(left.shortest, right.shortest, width)
    of_pair = Window(0, width, window.confidence)
    words = (
        "and at no distance is the window more than"
        if pairs.model.rule.measured
        else "the window is"
    )
    return best, [of_probability(left, right, of_pair, best, words)]


def _of_places(events: tuple[PlacedEvents, PlacedEvents], spec: CausalitySpec) -> Iterator[str]:
    """Whether all effects are out of reach of all causes."""
    if any(side.points is None for side in events):
        return
    (low, high), (low2, high2) = (extent(side.points, side.codes) for side in events)
    apart = np.maximum(np.maximum(low2 - high, low - high2), 0.0)[:3]
    gap, rule = float((apart**2).sum()), spec.model.rule
    arc = rule.curvature * squared_arc(min(gap, 4.0))
    distance = math.sqrt(arc if rule.curvature else gap)
    if distance > spec.model.reach * (1 + 1e-9):
        yield (
            f"every effect is {distance:.6g} or more from every cause, and the condition reaches"
            f" {spec.model.reach:.6g}: are coordinates in their order, and in the unit that it is said in?"
        )


def _of_deltas(
    events: tuple[PlacedEvents, PlacedEvents | None], spec: CausalitySpec, tick: Tick
) -> Iterator[str]:
    """How many pairs the times alone would leave."""
    (lo, hi), rule = spec.model.deltas, spec.model.rule
    if max(-lo, hi) >= UNBOUNDED:
        return
    ends = " to ".join(_signed(end, tick) for end in (lo, hi))
    is_uncertain = any(side is not None and side.lengths is not None for side in events)
    if rule.is_temporal:
        yield f"no pair {'is likely enough to have' if is_uncertain else 'has'} a delta of {ends}"
        if not is_uncertain:
            yield from _of_nearest(nearest_miss_in_time(*events, lo, hi), spec, tick)
        return
    if is_uncertain:  # Counting would take the probability of every pair of such times.
        return
    of_times = pair_rule(Limits(lo, hi), Plane(), False, 1.0)
    of_times = of_times._replace(threshold=rule.threshold)
    model = replace(spec.model, rule=of_times, reach=math.inf)
    own, others = (None if side is None else replace(side, points=None) for side in events)
    joined = import_module("cpu_fallback.causality").CausalityJoin
    join = joined(own, others, model, threads=spec.threads)
    count = int(join.counts.sum())
    if not count:
        yield f"no pair has a delta of {ends}, which is what the condition allows at any distance"
        yield from _of_nearest(nearest_miss_in_time(*events, lo, hi), spec, tick)
    else:
        yield (
            f"{count:,} {'pairs have' if count > 1 else 'pair has'} a delta of {ends}, which is what the"
            " condition allows at any distance, but none at the distance that goes with it"
        )
        if count <= _MOST_MEASURED and spec.where is None:
            measured = joined(*events, spec.model, threads=spec.threads).measured
            runs = (
                measured(*join.pairs(*run, join.left_order, join.right_order))
                for run in join.chunks(_MOST_MEASURED >> 2)
            )
            yield from _of_nearest(nearest_in_space(runs, rule, spec.model.reach), spec, tick)


def _of_nearest(miss: NearMiss | None, spec: CausalitySpec, tick: Tick) -> Iterator[str]:
    """What the pair has that comes nearest to the condition."""
    if miss is None or spec.where is not None:
        return
    if not miss.is_in_reach:
        yield (
            f"the nearest of these are {miss.distance:.6g} apart, and the condition reaches"
            f" {spec.model.reach:.6g}"
        )
        return
    at = "" if miss.distance is None else f" at a distance of {miss.distance:.6g}"
    judged = "short" if miss.delta < miss.lo else "long"
    yield (
        f"the nearest pair has a delta of {_signed(miss.delta, tick)}{at},"
        f" {length_words(max(miss.by, 0.0), tick)} too {judged}"
    )


def _signed(ticks: int, tick: Tick) -> str:
    return f"{'-' if ticks < 0 else ''}{length_words(abs(ticks), tick)}"
