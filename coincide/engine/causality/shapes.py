"""From a causality join to Arrow batches: the shapes of `correlate`, with delta and distance of pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.engine.backends import load_task_backend, resilient
from coincide.engine.events.sides import PairTest, Side, tie_ranks
from coincide.engine.join.emission import (
    Counts,
    Emission,
    LeftRows,
    Lists,
    MakeBatch,
    Pairs,
    Rows,
    arrow_int64,
)
from coincide.engine.join.filtered import FilteredPairs, OneStream, pair_test
from coincide.engine.join.matched import (
    Chosen,
    LocalBests,
    LocalFew,
    Mutual,
    Optimal,
    Unambiguous,
    times_of,
)
from coincide.engine.join.one_stream import numbered
from coincide.engine.join.order import PairOrder
from coincide.engine.join.partial_results import sortable
from coincide.model.causality.condition import CausalityModel
from coincide.model.causality.spaces import PlacedEvents
from coincide.model.causality.template_rule import deciding_rule
from coincide.model.options import Emit
from coincide.model.units import NANOSECONDS_PER_UNIT, Tick
from cpu_fallback.causality import Merits
from cpu_fallback.join.filtering import ALWAYS, NESTED, NEVER, Keys


class _Causal(Emission):
    """The output batches of a causality join of two sides, which to the join are `events`."""

    def __init__(
        self,
        causes: Side,
        effects: Side,
        events: tuple[PlacedEvents, PlacedEvents | None],
        spec: Any,
        schema: pa.Schema,
    ) -> None:
        self._placed_events = events
        super().__init__(causes, effects, spec, schema, load_task_backend(spec.backend))

    def _make_join(self) -> Any:
        return resilient(self._backend, self._joined_by)

    def _joined_by(self, package: str) -> Any:
        spec: Any = self._spec
        make = import_module(f"{package}.causality").CausalityJoin
        given: dict[str, Any] = {"threads": spec.threads, "empty": arrow_int64}
        own, others = self._placed_events
        if self._is_halved:
            return stamped(make(*self._halved, spec.model, **given), self._left, self._right)
        join = make(own, own if others is None else others, spec.model, **given)
        join = stamped(join, self._left, self._right)
        stream = None
        if spec.is_one_stream:
            doubt = doubt_of_condition(spec.model, own)
            stream = OneStream(doubt, self._meet_swapped, self._meet_themselves, spec.shift)
        measures = (
            lambda *rows: measured_by_name(join, spec.delta_name, *rows),
            lambda *rows: swapped_by_name(join, spec.delta_name, *rows),
        )
        test, itself = pair_test(self._left, self._right, spec, stream, measures)
        if test is None:
            return join
        return FilteredCausality(join, test, spec.batch_pairs, spec.threads, itself)

    @property
    def _is_halved(self) -> bool:
        """Whether pairs of one stream are looked for in the order in which they are given."""
        spec: Any = self._spec
        is_exact = all(each is None or each.lengths is None for each in self._placed_events)
        return spec.pairs_once and spec.where is None and is_exact and spec.model.is_forward

    @property
    def _halved(self) -> tuple[PlacedEvents, PlacedEvents | None]:
        own, others = self._placed_events
        if others is None:
            return own, None
        ranks, shift = (self._left.ranks, self._right.ranks), self._spec.shift
        if shift:  # of equal times what was earlier is the cause
            ranks = np.full(len(own), 1), np.full(len(others), 0 if shift > 0 else 2)
        return replace(own, ranks=ranks[0]), replace(others, ranks=ranks[1])

    def _meet_swapped(self, right_rows: np.ndarray, left_rows: np.ndarray) -> np.ndarray:
        """Which pairs of one stream qualify whose effect is taken to be the cause."""
        spec: Any = self._spec
        own, others = self._placed_events
        rule = deciding_rule(spec.model, own, others)
        return Merits(own if others is None else others, own, rule).meet(right_rows, left_rows)

    def _meet_themselves(self) -> np.ndarray:
        """Which causes of one stream qualify with themselves: bool array, shape (causes,)."""
        spec: Any = self._spec
        own, _ = self._placed_events
        found, rows = np.zeros(len(own), bool), np.flatnonzero(own.codes >= 0)
        moved = replace(own, times=own.times + spec.shift)
        found[rows] = Merits(own, moved, deciding_rule(spec.model, own, own)).meet(rows, rows)
        return found

    @property
    def _measures(self) -> bool:
        return self._spec.hands_out_partners

    def _measured(self, left_rows: np.ndarray, right_rows: np.ndarray) -> list[np.ndarray]:
        """As `CausalitySpec.measures` has them, but the rank."""
        rows, spec = (left_rows, right_rows), self._spec
        measured = self._wanted(self.join.measured(*rows), rows)
        if not spec.merits:
            return measured
        apart = self._merits.of(*rows)[1]
        if "preferred" in spec.measures:
            measured.append(self._order.preferred(rows))
        measured.append(sortable(apart))
        if spec.matching:
            measured += times_of((self._left, self._right), rows)
        return measured

    def _probabilities(self, left_rows: np.ndarray, right_rows: np.ndarray) -> np.ndarray:
        events = self._placed_events
        if all(side is None or side.lengths is None for side in events):
            return np.ones(left_rows.size)
        return self._merits.of(left_rows, right_rows)[0]

    @cached_property
    def _merits(self) -> Merits:
        spec: Any = self._spec
        rule = deciding_rule(spec.model, *self._placed_events)
        return Merits(*self._placed_events, rule)

    @cached_property
    def _order(self) -> CausalOrder:
        return CausalOrder(self._left, self._right, self._spec, self._merits, self.join.measured)

    def _wanted(
        self, measures: Sequence[np.ndarray], rows: tuple[np.ndarray, np.ndarray]
    ) -> list[np.ndarray]:
        """Delta, the distance where there is one, and the probability where it is told."""
        told = [self._probabilities(*rows)] if "probability" in self._spec.measures else []
        return [*list(measures)[: 1 + ("distance" in self._spec.measures)], *told]


class _CausalPairs(_Causal, Pairs):
    """Delta and distance come from where the pair is found, which has its events at hand."""

    def _of_others(self, spec: Any) -> Emission:
        return _CausalCounts(self._left, self._right, self._placed_events, spec, pa.schema([]))

    @property
    def _direct(self) -> bool:
        return self._is_plain and "probability" not in self._spec.measures

    def _found(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
        join = self.join
        own, others, *measures = join.measured_pairs(start, stop, join.left_order, join.right_order)
        return own, others, self._wanted(measures, (own, others))

    def _direct_batch(self, start: int, stop: int) -> pa.RecordBatch:
        values = self._left_direct, self._right_direct
        own, others, *measures = self.join.measured_pairs(start, stop, *values)
        ids = self._left_columns[0].wrap(own), self._right_columns[0].wrap(others)
        rows = np.empty(0, np.int64), np.empty(0, np.int64)
        measured = [pa.array(each) for each in self._wanted(measures, rows)]
        return pa.RecordBatch.from_arrays([*ids, *measured], schema=self.schema)


class _CausalLists(_Causal, Lists):
    pass


class _CausalCounts(_Causal, Counts):
    pass


class _CausalRows(_Causal, LeftRows):
    pass


class _CausalBest(_Causal):
    """One row per cause, with its best effect; chosen among the pairs that a backend has found."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        _ = self._ranks, self._merits  # made before threads share them
        return super().__iter__()

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        join = self.join
        own, others = join.pairs(start, stop, join.left_order, join.right_order)
        offsets = join.offsets[start : stop + 1] - join.offsets[start]
        best = self._merits.best(offsets, own, others, self._ranks)
        chosen = best[best >= 0]
        pairs = own[chosen], others[chosen]
        found = np.flatnonzero(best >= 0)
        lonely = np.flatnonzero(best < 0) if self._spec.how == "left" else found[:0]
        yield from self._beside_lonely(
            pairs, self._measured(*pairs), join.left_order[start + lonely],
            np.searchsorted(found, lonely),
        )  # fmt: skip

    @cached_property
    def _ranks(self) -> np.ndarray:
        """Order for ties, by row."""
        return tie_ranks(self._right)


class _CausalChosen(_Causal, Chosen):
    pass


class _CausalMutual(_Causal, Mutual):
    pass


class _CausalLocalBests(_Causal, LocalBests):
    pass


class _CausalUnambiguous(_Causal, Unambiguous):
    pass


class _CausalLocalFew(_Causal, LocalFew):
    pass


class _CausalOptimal(_Causal, Optimal):
    pass


_SHAPES: dict[Emit, type[_Causal]] = {
    "pairs": _CausalPairs,
    "lists": _CausalLists,
    "counts": _CausalCounts,
    "best": _CausalBest,
}


def measured_by_name(
    join: Any, delta: str, left_rows: np.ndarray, right_rows: np.ndarray
) -> dict[str, np.ndarray]:
    """Delta, by its name, and distance of pairs; the distance is empty where there are no places."""
    return dict(zip((delta, "distance"), join.measured(left_rows, right_rows), strict=True))


def swapped_by_name(
    join: Any, delta: str, right_rows: np.ndarray, left_rows: np.ndarray
) -> dict[str, np.ndarray]:
    """The same of pairs of one stream whose effect is taken to be the cause."""
    found = measured_by_name(join, delta, left_rows, right_rows)
    return {**found, delta: -found[delta]}


def doubt_of_condition(model: CausalityModel, events: PlacedEvents) -> int:
    """As `doubt_of_order`, of a causality join."""
    if model.is_symmetric:
        return NEVER
    return NESTED if model.is_forward and events.templates is None else ALWAYS


def causal_emission(
    causes: Side,
    effects: Side,
    events: tuple[PlacedEvents, PlacedEvents | None],
    spec: Any,
    schema: pa.Schema,
) -> Emission:
    """The output batches of a causality join of two sides, which to the join are `events`."""
    if spec.is_one_stream:
        causes, effects = numbered(causes, effects)
    return _shape_of(spec)(causes, effects, events, spec, schema)


def _shape_of(spec: Any) -> type[_Causal]:
    if spec.one_row_per_event:
        return _CausalRows
    if spec.matching == "mutual":
        return _CausalLocalBests if spec.merits else _CausalMutual
    if spec.matching == "unambiguous":
        return _CausalLocalFew if spec.merits else _CausalUnambiguous
    if spec.matching == "optimal":
        return _CausalOptimal
    if spec.emit == "best" and not spec.partners.is_most_probable:
        return _CausalChosen
    return _SHAPES[spec.emit]


class FilteredCausality(FilteredPairs):
    """Pairs of a causality join that pass a test, with delta and distance; used like the join."""

    def __init__(
        self,
        join: Any,
        test: PairTest,
        batch_pairs: int,
        threads: int,
        itself: np.ndarray | None = None,
    ) -> None:
        super().__init__(join, test, batch_pairs, threads, itself)
        self.measured = join.measured

    def measured_pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """As of the join: `cpu_fallback.causality.CausalityJoin.measured_pairs`."""
        own, others = self.pairs(start, stop, *self._positions)
        measures = self.measured(self.left_order[own], self.right_order[others])
        return left_values[own], right_values[others], *measures


DELTA = "delta"
DELTA_NAMES = (DELTA, *(f"{DELTA}_{unit}" for unit in NANOSECONDS_PER_UNIT))
"""All that the column of delta may be called."""


def delta_name(tick: Tick) -> str:
    """The column of delta, which says what it counts: ``delta_us``; of bare ticks ``delta``."""
    return DELTA if tick.unit is None else f"{DELTA}_{tick.unit}"


def stamped(join: Any, causes: Side, effects: Side) -> Any:
    """A causality join whose deltas are between stamps, or midpoints; that of exact instants as it is."""
    before = [side.model.before_ends(side.shapes) for side in (causes, effects)]
    return StampedCausality(join, *before) if any(each.any() for each in before) else join


class StampedCausality:
    """A causality join whose deltas are between stamps or midpoints; used like the join."""

    def __init__(self, join: Any, own: np.ndarray, others: np.ndarray) -> None:
        self._join, self._before = join, (own, others)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._join, name)

    def measured(
        self, left_rows: np.ndarray, right_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Delta, of which half a tick is left off, and distance of given pairs."""
        delta, distance = self._join.measured(left_rows, right_rows)
        own, others = self._before
        doubled = 2 * delta + own[left_rows] - others[right_rows]
        return (doubled + (doubled < 0)) >> 1, distance

    def measured_pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """As of the join."""
        join = self._join
        positions = np.arange(join.left_order.size), np.arange(join.right_order.size)
        own, others = join.pairs(start, stop, *positions)
        measures = self.measured(join.left_order[own], join.right_order[others])
        return left_values[own], right_values[others], *measures


class CausalOrder(PairOrder):
    """The order of causes and effects among the partners of an event."""

    def __init__(
        self, causes: Side, effects: Side, spec: Any, merits: Merits, measure: Callable[..., Any]
    ) -> None:
        super().__init__(causes, effects, spec, lambda own, others: merits.of(own, others)[0])
        self._of, self._measure, self._is_placed = merits.of, measure, bool(spec.coordinates)

    def preferred(self, rows: Rows) -> np.ndarray:
        """As of `PairOrder`; by distance, floats that are not negative are ordered as their bits are."""
        if self._spec.partners.prefer == "distance":
            return self._distances(rows).view(np.int64)
        return super().preferred(rows)

    def leading(self, rows: Rows) -> Keys:
        """As of `PairOrder`."""
        if self._spec.partners.prefer != "probability":
            return super().leading(rows)
        probability, apart = self._of(*rows)
        return -probability.view(np.int64), sortable(apart)

    def after_preferred(self, rows: Rows) -> list[np.ndarray]:
        """As of `PairOrder`, then the nearest in space."""
        probability, apart = self._of(*rows)
        placed = [self._distances(rows)] if self._is_placed else []
        return [-probability, apart, *placed]

    def from_middle(self, rows: Rows) -> np.ndarray:
        """How far pairs are from the middle of their own windows: uint64 array, shape (pairs,)."""
        return self._of(*rows)[1]

    def _merits(self, rows: Rows) -> np.ndarray:
        return self._of(*rows)[0]

    def _distances(self, rows: Rows) -> np.ndarray:
        distances: np.ndarray = self._measure(*rows)[1]
        return distances
