"""The causality join: what it computes, and what it makes of two sides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib import import_module
from typing import ClassVar

import numpy as np

from coincide.engine.backends import load_task_backend
from coincide.engine.events.sides import Side, grouped_events
from coincide.engine.events.timestamps import table_of
from coincide.engine.join.derived_joins import (
    FilteredJoin,
    OrderedJoin,
    is_ascending,
    numbered,
    selection_of,
)
from coincide.engine.join.spec import AnySpec, Pairing
from coincide.engine.join.timing import arrow_int64
from coincide.engine.pairs.best import BestMatches
from coincide.engine.pairs.resilient import resilient_measured
from coincide.engine.pairs.source import PairSource, Rows
from coincide.model.causality.condition import CausalityModel
from coincide.model.causality.spaces import PlacedEvents, Space
from coincide.model.causality.template_rule import deciding_rule, with_templates
from coincide.model.classes import ShapeClasses
from coincide.model.condition import Window
from coincide.model.counters import JoinCounters
from coincide.model.errors import ConditionError
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT, RIGHT
from coincide.model.templates.template import TemplateTable
from coincide.model.timestamps.mixed import around_keys
from coincide.model.units import TIME_LIMIT
from cpu_fallback.causality import Merits
from cpu_fallback.join.filtering import ALWAYS, NESTED, NEVER


@dataclass(frozen=True)
class CausalitySpec(AnySpec):
    """What a causality join computes, resolved to ticks: effects are moved where they are joined."""

    model: CausalityModel
    space: Space

    prefixes: ClassVar[tuple[str, str]] = ("cause", "effect")

    @property
    def widest(self) -> Window:
        """As in `AnySpec`, exactly; of no delta at all where one would be looked for."""
        (lo, hi), threshold = self.model.deltas, self.model.rule.threshold
        return Window(*((lo, hi) if lo <= hi else self.model.window), threshold)

    @property
    def widest_of_rows(self) -> Window:  # noqa: D102
        lo, hi = self.model.window
        return replace(self.widest, lo=lo - self.shift, hi=hi - self.shift)

    @property
    def pairs(self) -> CausalBounds:
        """The condition on the timestamps of both sides."""
        own, others = map(table_of, self.models)
        return CausalBounds(*self.model.window, self.shift, self.model, (own, others))

    def pairing(self, left: Side, right: Side) -> CausalPairing:  # noqa: D102
        return CausalPairing(left, right, self)


class CausalPairing(Pairing):
    """A causality condition on causes and effects.

    `events` is what they are to the join, and `qualifying` the join of all pairs that meet the condition.
    """

    spec: CausalitySpec

    def __init__(self, causes: Side, effects: Side, spec: CausalitySpec) -> None:
        if spec.is_one_stream:
            causes, effects = numbered(causes, effects)
        own, others = placed_events(causes, effects, spec)
        if spec.shift:
            moved = own if others is None else others
            effects, others = moved_effects(effects, moved, spec.shift)
        super().__init__(causes, effects, spec)
        self.events = own, others
        sides, model, threads = self._joined, spec.model, spec.threads
        # Not by way of self: in a cycle a GPU's memory would wait for the collector.
        join = resilient_measured(
            load_task_backend(spec.backend),
            lambda package: import_module(f"{package}.causality").CausalityJoin(
                *sides, model, threads=threads, empty=arrow_int64
            ),
        )
        self.qualifying = join
        # Its deltas are between max_times: of instants these are the stamps.
        before = [side.model.before_ends(side.shapes) for side in (causes, effects)]
        self._is_exact = not any(each.any() for each in before)
        selection = None if self._is_halved else selection_of(self, spec.is_one_stream)
        self.join = join if selection is None else FilteredJoin(self, join, selection)
        self.measuring = join if self._is_exact and selection is None else None

    @property
    def _joined(self) -> tuple[PlacedEvents, PlacedEvents | None]:
        """Both sides as the join takes them."""
        own, others = self.events
        if not self._is_halved:
            return own, own if others is None else others
        if others is None:
            return own, None
        ranks = self.left.ranks, self.right.ranks
        if self.spec.shift:  # with equal times what was earlier is the cause
            later = 0 if self.spec.shift > 0 else 2
            ranks = np.full(len(own), 1), np.full(len(others), later)
        return replace(own, ranks=ranks[0]), replace(others, ranks=ranks[1])

    @property
    def _is_halved(self) -> bool:
        """Whether pairs of one stream are looked for in the order in which they are given."""
        spec, model = self.spec, self.spec.model
        is_exact = all(each is None or each.lengths is None for each in self.events)
        return spec.pairs_once and spec.where is None and is_exact and model.is_forward

    def probabilities(self, left_rows: np.ndarray, right_rows: np.ndarray) -> np.ndarray:
        """As in `Pairing`; of exact instants 1."""
        if all(side is None or side.lengths is None for side in self.events):
            return np.ones(left_rows.size)
        return self.merits(left_rows, right_rows)[0]

    def merits(  # noqa: D102
        self, left_rows: np.ndarray, right_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        return self._merits.of(left_rows, right_rows)

    @remembered
    def _merits(self) -> Merits:
        return Merits(*self.events, deciding_rule(self.spec.model, *self.events))

    def best_matches(self, *, in_order: bool) -> BestMatches:
        """As in `Pairing`, of all pairs."""
        is_moved = in_order and not is_ascending(self.join.left_order)
        join = OrderedJoin(self) if is_moved else self.join
        _ = join.offsets  # before threads share it
        return _CausalBest(join, self._merits, self.tie_ranks(RIGHT))

    def measured(self, left_rows: np.ndarray, right_rows: np.ndarray) -> dict[str, np.ndarray]:
        """Delta, and distance, which is empty where there are no places."""
        delta, distance = self.qualifying.measured(left_rows, right_rows)
        found = {"distance": distance}
        if name := self.spec.delta_name:
            found[name] = delta if self._is_exact else self.deltas(left_rows, right_rows)
        return found

    def meet_swapped(self, right_rows: np.ndarray, left_rows: np.ndarray) -> np.ndarray:  # noqa: D102
        own, others = self.events
        rule = deciding_rule(self.spec.model, own, others)
        return Merits(own if others is None else others, own, rule).meet(right_rows, left_rows)

    def meet_themselves(self) -> np.ndarray:  # noqa: D102
        own, _ = self.events
        found, rows = np.zeros(len(own), bool), np.flatnonzero(own.codes >= 0)
        moved = replace(own, times=own.times + self.spec.shift)
        rule = deciding_rule(self.spec.model, own, own)
        found[rows] = Merits(own, moved, rule).meet(rows, rows)
        return found

    @property
    def doubt(self) -> int:  # noqa: D102
        model = self.spec.model
        if model.is_symmetric:
            return NEVER
        return NESTED if model.is_forward and self.events[0].templates is None else ALWAYS


@dataclass(frozen=True, eq=False)
class _CausalBest:
    """The best of all pairs of each cause; ranks are by row."""

    join: PairSource
    merits: Merits
    ranks: np.ndarray
    at_once: ClassVar[None] = None

    @property
    def left_order(self) -> np.ndarray:
        """As `BestMatches`, and so is all that follows."""
        return self.join.left_order

    def of(self, start: int, stop: int) -> tuple[np.ndarray, Rows]:
        join = self.join
        own, others = join.pairs(start, stop, join.left_order, join.right_order)
        offsets = join.offsets[start : stop + 1] - join.offsets[start]
        best = self.merits.best(offsets, own, others, self.ranks)
        found = np.flatnonzero(best >= 0)
        return found, (own[best[found]], others[best[found]])

    @property
    def counters(self) -> JoinCounters:
        return self.join.counters


_FARTHEST = 2**63 - 1
"""Half ticks; no two midpoints are as far apart."""


@dataclass(frozen=True)
class CausalBounds:
    """How far apart causes and effects can be: `coincide.engine.events.timestamps.Bounds`."""

    lo: int
    hi: int
    shift: int = 0
    model: CausalityModel | None = None
    tables: tuple[TemplateTable | None, TemplateTable | None] = (None, None)

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """Bounds on the difference of doubled midpoints: int64 array, shape (K1, K2, 4), half ticks."""
        # Delta may be off by the intervals' lengths.
        sides = (own, other) if base_side == LEFT else (other, own)
        causes, effects = (around_keys(*each) for each in zip(self.tables, sides, strict=True))
        before, after = np.add.outer(causes[0], effects[1]), np.add.outer(causes[1], effects[0])
        first, last = 2 * self.lo - before, 2 * self.hi + after
        first, last = first - 2 * self.shift, last - 2 * self.shift
        if base_side != LEFT:
            first, last = -last.T, -first.T
        first, last = (np.clip(ends, -_FARTHEST, _FARTHEST) for ends in (first, last))
        return np.stack([first, first, last, last], axis=-1).astype(np.int64)


def points_of(side: Side, space: Space) -> np.ndarray | None:
    """Where the events of a side are, as `PlacedEvents.points`; None of a side without coordinates."""
    return space.points([column.to_numpy() for column in side.places]) if side.places else None


def placed_events(
    causes: Side, effects: Side, spec: CausalitySpec
) -> tuple[PlacedEvents, PlacedEvents | None]:
    """Both sides as a causality join takes them; None of effects that are the same rows."""
    groups = grouped_events(causes, effects)
    sides = [(causes, groups[0]), (effects, groups[1])][: 1 if groups[0] is groups[1] else 2]
    placed = [
        PlacedEvents(
            side.max_time,
            points_of(side, spec.space),
            side.shapes if side.shapes.any() or not side.model.shape_is_length else None,
            events.group,
            events.groups,
            templates=table_of(side.model),
        )
        for side, events in sides
    ]
    if any(each.templates is not None for each in placed):
        placed = list(map(with_templates, placed))
    return placed[0], placed[1] if len(placed) > 1 else None


def moved_effects(effects: Side, events: PlacedEvents, ticks: int) -> tuple[Side, PlacedEvents]:
    """Effects, their times moved and no other column copied."""
    times = events.times if events.group is None else events.times[events.group >= 0]
    farthest = max(abs(int(times.min(initial=0)) + ticks), abs(int(times.max(initial=0)) + ticks))
    if farthest >= TIME_LIMIT:
        raise ConditionError(
            f"a shift of {ticks} ticks moves effects beyond 2^61 ticks. Use a shorter one, or a"
            " coarser tick."
        )
    moved = events.times + ticks
    return replace(effects, max_time=moved), replace(events, times=moved)
