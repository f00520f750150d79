"""The join by a timing condition: what it computes, and what it makes of two sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module

import numpy as np
import pyarrow as pa

import cpu_fallback
from coincide.engine.backends import load_task_backend
from coincide.engine.events.sides import Side, grouped_events
from coincide.engine.events.timestamps import Pairs, pair_model
from coincide.engine.join.derived_joins import (
    FilteredJoin,
    doubt_of_order,
    numbered,
    selection_of,
    stamps_of,
    window_once,
)
from coincide.engine.join.spec import AnySpec, Pairing
from coincide.engine.pairs.best import BestMatches, OrderedBest, RankedBest
from coincide.engine.pairs.resilient import resilient_ranked
from coincide.engine.pairs.source import PairSource, RangedSource, RankedSource
from coincide.engine.resilient import GPU
from coincide.model.condition import OpenWindow, Window
from coincide.model.errors import MemoryBudgetError
from coincide.model.relations import SpanWindow
from coincide.model.remembered import remembered
from coincide.model.sides import RIGHT
from coincide.model.timestamps import IntervalPairs
from coincide.model.timestamps.protocol import group_codes
from coincide.model.timestamps.spans import SpanPairs
from coincide.model.units import UNBOUNDED
from cpu_fallback import event_decisions, event_merits, event_probabilities
from cpu_fallback.join.filtering import EARLIER, NEVER, order_of_pairs
from cpu_fallback.join.instants import InstantJoin
from cpu_fallback.join.nearest import NearestJoin


@dataclass(frozen=True)
class JoinSpec(AnySpec):
    """What a join by probability computes, resolved to ticks."""

    window: Window
    classes: int | None = None
    has_previous: bool = False  # the last right event before the window counts too
    opens_later: bool = False  # the end before that first tick does not belong to the window

    @property
    def widest(self) -> Window:
        """As in `AnySpec`; the event before the window may be as far away as it likes."""
        if self.has_previous:
            return OpenWindow(-UNBOUNDED, self.window.hi, self.window.confidence)
        return self.window

    @property
    def adds_up(self) -> bool:
        """As in `AnySpec`: of the events before a window one counts, if none is there as it begins."""
        return not self.has_previous

    @property
    def pairs(self) -> Pairs:
        """The condition on the timestamps of both sides, which what counts cannot miss."""
        return pair_model(self.widest, *self.models)

    def pairing(self, left: Side, right: Side) -> TimingPairing:  # noqa: D102
        return TimingPairing(left, right, self)

    def moved(self, ticks: int) -> JoinSpec:
        """As in `AnySpec`: the window moves instead, the other way."""
        return super().moved(ticks).but(window=self.window.moved(-ticks), has_previous=False)


class TimingPairing(Pairing):
    """A timing condition on two sides; right times are moved, not the window, where they tell more."""

    spec: JoinSpec

    def __init__(self, left: Side, right: Side, spec: JoinSpec) -> None:
        if spec.is_one_stream:
            left, right = numbered(left, right)
        # Times tell which event of one stream is the earlier, and which match is the nearest.
        if spec.shift and (spec.is_one_stream or spec.choice.one_to_one):
            right = replace(right, max_time=right.max_time + spec.shift)
            spec = spec.but(window=spec.window.moved(spec.shift))
        super().__init__(left, right, spec)
        # What is prepared of ranges of matches is the CPU's work, and most of it all.
        is_quicker_here = spec.row.is_aggregated and spec.backend == "auto"
        self._backend = load_task_backend("cpu" if is_quicker_here else spec.backend)
        events = grouped_events(left, right)
        window, is_enough = spec.window, False
        self._model, *self._events = pair_model(window, *spec.models).for_events(*events)
        if spec.pairs_once and spec.where is None and not isinstance(window, SpanWindow):
            window, is_enough = window_once(window, left, right)
        if window != spec.window:
            self._model = IntervalPairs(spec.window, sought=window)
        # Not by way of self: in a cycle a GPU's memory would wait for the collector.
        sides, model = self._events, self._model
        is_dealt = spec.devices == "all"
        join: PairSource
        ranked: RankedSource | None = None
        ranged: RangedSource | None = None
        if isinstance(window, SpanWindow) and window.is_unbounded:
            assert isinstance(model, SpanPairs)
            shortest = model.possible.left_shortest, model.possible.right_shortest
            is_backward = window.kind == "after"
            join = NearestJoin(sides[0], sides[1], shortest, spec.k, is_backward=is_backward)
        elif isinstance(window, OpenWindow):
            join = NearestJoin(
                sides[0],
                sides[1],
                (0, 0),
                spec.k,
                is_backward=window.is_backward,
                beyond=window.beyond,
            )
        elif self._are_of_instants():
            join = InstantJoin(
                sides[0], sides[1], (window.lo, window.hi), threads=spec.threads, empty=arrow_int64
            )
        else:
            join = ranked = ranged = resilient_ranked(
                self._backend,
                lambda package: event_join(package, is_dealt)(
                    *sides, model, classes=spec.classes, threads=spec.threads, empty=arrow_int64
                ),
            )
        selection = selection_of(self, spec.is_one_stream and not is_enough)
        if selection is not None:
            join = ranked = FilteredJoin(self, join, selection)
        # Last: what a copy of it is part of, as tests of pairs are, must not lead back to the join.
        self.join, self._ranked, self._is_filtered = join, ranked, selection is not None
        if selection is None and ranged is not None and ranged.has_ranges:
            self.ranged = ranged

    def _are_of_instants(self) -> bool:
        """Whether sorted times alone tell all pairs: of exact ones, where none of them is ranked."""
        spec = self.spec
        takes_ranks = spec.row.is_best or spec.row.is_aggregated or spec.choice.one_to_one
        return (
            not takes_ranks
            and self._backend is cpu_fallback
            and isinstance(self._model, IntervalPairs)
            and self.left.are_instants
            and self.right.are_instants
        )

    @remembered
    def previous(self) -> np.ndarray | None:
        """As in `Pairing`: among equally late ones the last row."""
        spec = self.spec
        if not spec.has_previous:
            return None
        left, right = map(group_codes, self._events)
        begin = self.left.max_time + (spec.window.lo - spec.opens_later)
        found = last_until(left, right, begin, self.right.max_time, self.rows_in_time)
        if not spec.opens_later and len(self.right):
            # One that is there as the window begins lies in it, and takes the place of those before.
            found[(found >= 0) & (self.right.max_time[found] == begin)] = -1
        return found

    @property
    def not_moved(self) -> int:
        """As in `Pairing`: of two sides the window moves instead."""
        return 0 if self.spec.is_one_stream else self.spec.shift

    def probabilities(self, left_rows: np.ndarray, right_rows: np.ndarray) -> np.ndarray:  # noqa: D102
        left, right = self._events
        given = left, left_rows, right, right_rows, self._model
        if self.spec.threads > 1:  # they would take turns at a GPU, to the same bits
            return event_probabilities(*given)
        try:
            found: np.ndarray = self._backend.event_probabilities(*given)
        except MemoryBudgetError:
            # The CPU's, to the bit; a join that lacks memory has given its warning by now.
            found = event_probabilities(*given)
        return found

    def probabilities_swapped(self, right_rows: np.ndarray, left_rows: np.ndarray) -> np.ndarray:
        """Satisfaction probabilities of pairs of one stream whose right event is taken to be left."""
        left, right = self._events
        found: np.ndarray = event_probabilities(right, right_rows, left, left_rows, self._model)
        return found

    def merits(
        self, left_rows: np.ndarray, right_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """As in `Pairing`; of matched pairs of one stream of the same bits in both orders."""
        left, right = self._events
        merits, apart = event_merits(left, left_rows, right, right_rows, self._model)
        if self.spec.is_one_stream and self.spec.choice.one_to_one:
            stamps, rows = (stamps_of(self.left), stamps_of(self.right)), (left_rows, right_rows)
            later = order_of_pairs(*stamps, rows, NEVER) != EARLIER
            swapped = right, right_rows[later], left, left_rows[later]
            merits[later] = event_merits(*swapped, self._model)[0]
        return merits, apart

    def best_matches(self, *, in_order: bool) -> BestMatches:
        """As in `Pairing`."""
        ranked, ranks = self._ranked, self.tie_ranks(RIGHT)
        assert ranked is not None
        if self._is_filtered:
            _ = ranked.offsets  # before threads share it
        ranks = ranks[ranked.right_order]
        if in_order:
            return OrderedBest(ranked, ranks, self.spec.threads)
        return RankedBest(ranked, ranks)

    def meet_swapped(self, right_rows: np.ndarray, left_rows: np.ndarray) -> np.ndarray:  # noqa: D102
        left, right = self._events
        return event_decisions(right, right_rows, left, left_rows, self._model)

    def meet_themselves(self) -> np.ndarray:  # noqa: D102
        side, found = self.left, np.zeros(len(self.left), bool)
        rows = np.arange(len(side)) if side.matchable is None else np.flatnonzero(side.matchable)
        own, moved = (
            side.model.events(side.max_time[rows] + shift, side.shapes[rows], None, 1)
            for shift in (0, self.spec.shift)
        )
        same = np.arange(rows.size)
        found[rows] = event_decisions(own, same, moved, same, self._model)
        return found

    @property
    def doubt(self) -> int:  # noqa: D102
        return doubt_of_order(self.spec.window, self.spec.are_symmetric)


def event_join(package: str, is_dealt: bool) -> Callable[..., RangedSource]:
    """What makes a backend's join; of a GPU's one that may be dealt over all devices."""
    if is_dealt and package == GPU:
        found: Callable[..., RangedSource] = import_module(f"{package}.dealt").DealtJoin
        return found
    of_one: Callable[..., RangedSource] = import_module(package).EventJoin
    return of_one


def last_until(
    left: np.ndarray, right: np.ndarray, until: np.ndarray, times: np.ndarray, order: np.ndarray
) -> np.ndarray:
    """For each left event the last right row of its group at or before a time, -1 for none: int64 array.

    `left` and `right` are groups, below 0 of what matches nothing, and `order` has right rows by time.
    """
    order = order[np.argsort(right[order], kind="stable")]
    order = order[np.searchsorted(right[order], 0) :]
    found, ticks = np.full(until.size, -1), np.unique(times)
    # One number ascends by group, then by time.
    places = right[order] * (ticks.size + 1) + np.searchsorted(ticks, times[order])
    begin = left * (ticks.size + 1)
    last = np.searchsorted(places, begin + np.searchsorted(ticks, until, side="right")) - 1
    has_one = (left >= 0) & (last >= np.searchsorted(places, begin))
    found[has_one] = order[last[has_one]]
    return found


def arrow_int64(size: int) -> np.ndarray:
    """An int64 array in Arrow's pool, which keeps pages from one batch to the next."""
    return np.frombuffer(pa.allocate_buffer(8 * size), np.int64)
