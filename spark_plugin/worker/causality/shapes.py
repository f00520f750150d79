"""From a causality join to Arrow batches: the shapes of `correlate`, with delta and distance of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from coincide.cause_and_effect.condition import CausalityModel
from coincide.cause_and_effect.points import PlacedEvents
from coincide.cause_and_effect.template_rule import deciding_rule
from coincide.options import Emit
from cpu_fallback.causality import Merits
from cpu_fallback.join.filtering import ALWAYS, NESTED, NEVER
from spark_plugin.worker.arrow.sides import Side, tie_ranks
from spark_plugin.worker.backends.devices import load_task_backend
from spark_plugin.worker.backends.fallback import resilient
from spark_plugin.worker.causality.filtered import FilteredCausality
from spark_plugin.worker.causality.measures import stamped
from spark_plugin.worker.causality.order import CausalOrder
from spark_plugin.worker.emission.chosen import Chosen
from spark_plugin.worker.emission.emission import Emission, MakeBatch, arrow_int64
from spark_plugin.worker.emission.lists import Lists
from spark_plugin.worker.emission.matched import LocalBests, LocalFew, Mutual, Unambiguous, times_of
from spark_plugin.worker.emission.optimal import Optimal
from spark_plugin.worker.emission.pair_tests import OneStream, pair_test
from spark_plugin.worker.emission.pairs import Pairs
from spark_plugin.worker.emission.rows import Counts, LeftRows
from spark_plugin.worker.one_stream import numbered
from spark_plugin.worker.partial_results import sortable


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
