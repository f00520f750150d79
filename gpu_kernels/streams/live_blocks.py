"""Live events in device memory, and the step that correlates a block with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.shape_classes import ShapeClasses
from coincide.sides import LEFT, RIGHT
from coincide.streams.shared import (
    INVALIDATED,
    NEVER,
    LiveEvents,
    Progress,
    Regions,
    Rules,
    Waiting,
)
from gpu_kernels.device.arrays import on_device
from gpu_kernels.device.memory import translated
from gpu_kernels.device.usable import TURN
from gpu_kernels.streams import check_algorithm
from gpu_kernels.streams.correlation import Found, correlate
from gpu_kernels.streams.sorted_events import (
    Live,
    arrived,
    by_class,
    live_on_device,
    merged,
    without_obsolete,
)
from gpu_kernels.streams.tables import Tables

_SMALLEST, _WASTEFUL = 1024, 8
_NOTHING = np.empty(0, np.int64)

_Sides = tuple[Live | None, Live | None]


class LiveBlocks:
    """Live events in device memory: methods and answers as `cpu_fallback.streams.LiveBlocks`.

    Pairs come in another order, and the sum of response times is rounded otherwise. Only the events of a
    block travel to the device, and only pairs, counts and the ends of the live ranges travel back.

    Any method but `counts` may raise DeviceMemoryError, or BackendError if the device fails. With the
    first, nothing has changed: the same call on the same events, elsewhere, does all of it. Pickles and
    deep copies are made by way of host memory.

    Parameters
    ----------
    algorithm : {"lazy", "classes"}
    events : (LiveEvents, LiveEvents), optional
        Live events to begin with, of the left and the right side; none if not given.

    Raises
    ------
    BackendError
        If the algorithm has no form for a GPU.
    """

    def __init__(self, algorithm: str, events: tuple[LiveEvents, LiveEvents] | None = None) -> None:
        check_algorithm(algorithm)
        self._algorithm = algorithm
        self._by_key = algorithm == "classes"
        self._classes = 1
        self._tables: Tables | None = None
        self._keep((None, None))
        if events is not None:
            self._classes = events[LEFT].offsets.size - 1
            with TURN, translated("the live events"):
                self._keep((live_on_device(events[LEFT]), live_on_device(events[RIGHT])))

    def __reduce__(self) -> tuple[Any, ...]:
        return LiveBlocks, (self._algorithm, (self.events(LEFT), self.events(RIGHT)))

    @property
    def counts(self) -> np.ndarray:
        """Live events, left and right: int64 array, shape (2,), in host memory."""
        return self._counts

    def shapes(self, side: int) -> np.ndarray:
        """Shapes of the live events of a side: int64 array, shape (n,), in host memory."""
        return self.events(side).shapes

    def events(self, side: int) -> LiveEvents:
        """A copy of the live events of a side, in host memory. Takes no device memory."""
        live = self._sides[side]
        if live is None:
            return LiveEvents(_NOTHING, _NOTHING, _NOTHING, np.zeros(self._classes + 1, np.int64))
        with TURN, translated("the live events"):
            return live.on_host()

    def reserve(self, extra: int) -> None:
        """Give memory back that obsolete events have left; room for more is taken when it is needed."""
        if any(live is not None and _is_wasteful(live) for live in self._sides):
            with TURN, translated("the live events"):
                left, right = (None if live is None else live.compact() for live in self._sides)
            self._keep((left, right))

    def reclassed(self, classes: tuple[ShapeClasses, ShapeClasses]) -> LiveBlocks:
        """The same events in other classes, of the left and the right side."""
        made = LiveBlocks(self._algorithm)
        made._classes = max(each.count for each in classes)
        with TURN, translated("the live events"):
            left, right = (
                None if live is None else _reclassed(live, of_side, made._classes)
                for live, of_side in zip(self._sides, classes, strict=True)
            )
        made._keep((left, right))
        return made

    def evaluate(
        self,
        waiting: Waiting,
        progress: Progress,
        regions: Regions,
        rules: Rules,
        tally: np.ndarray,
        response: np.ndarray,
        left_out: np.ndarray,
        right_out: np.ndarray,
    ) -> tuple[int, np.ndarray, np.ndarray]:
        """Correlate all events that wait, keep them, and let go of obsolete ones.

        Parameters and result as `cpu_fallback.streams.LiveBlocks`. What it writes, but for the room for
        pairs, it writes when all is done.
        """
        now = int(progress.clock.max())
        found = Found(left_out, right_out)
        sides = list(self._sides)
        with TURN, translated("a block of the stream"):
            tables = self._tables_of(regions, rules)
            for side in (LEFT, RIGHT):
                count = int(progress.waiting[side])
                if count == 0:
                    continue
                block, offsets = by_class(
                    arrived(side, count, waiting, tables.rule if self._by_key else None),
                    tables.target_tops[side],
                    self._classes,
                )
                targets = sides[1 - side]
                if targets is not None:
                    correlate(side, block, targets, tables, self._by_key, rules, now, found)
                sides[side] = merged(sides[side], block, offsets)
            left, gone = self._without_obsolete(
                (sides[LEFT], sides[RIGHT]), progress, tables, rules
            )
        found.note(tally, response)
        tally[INVALIDATED : INVALIDATED + 2] += gone
        self._keep(left)
        progress.waiting[:] = 0
        progress.evaluated_at[0] = now
        return found.count, found.left, found.right

    def let_go(self, progress: Progress, regions: Regions, rules: Rules, tally: np.ndarray) -> None:
        """Let go of obsolete events."""
        with TURN, translated("the live events"):
            tables = self._tables_of(regions, rules)
            left, gone = self._without_obsolete(self._sides, progress, tables, rules)
        tally[INVALIDATED : INVALIDATED + 2] += gone
        self._keep(left)

    def _without_obsolete(
        self, sides: _Sides, progress: Progress, tables: Tables, rules: Rules
    ) -> tuple[_Sides, np.ndarray]:
        """What is left of both sides, and how many events of each go."""
        left, gone = list(sides), np.zeros(2, np.int64)
        for side in (LEFT, RIGHT):
            base, live = 1 - side, sides[side]
            if live is not None and progress.clock[base] != NEVER:
                limit = 2 * max(int(progress.clock[base] - rules.delays[base]), NEVER)
                left[side], gone[side] = without_obsolete(live, limit, tables.keep[base])
        return (left[LEFT], left[RIGHT]), gone

    def _keep(self, sides: _Sides) -> None:
        self._sides = sides
        counts = [0 if live is None else int(live.counts.sum()) for live in sides]
        self._counts = np.array(counts, np.int64)

    def _tables_of(self, regions: Regions, rules: Rules) -> Tables:
        if self._tables is None or not self._tables.are_of(regions, rules):
            self._tables = Tables.of(regions, rules)
        return self._tables


def _reclassed(live: Live, classes: ShapeClasses, count: int) -> Live:
    events, offsets = by_class(live.compact().events, on_device(classes.highest), count)
    return merged(None, events, offsets)


def _is_wasteful(live: Live) -> bool:
    """Whether obsolete events take far more memory than live ones."""
    size = live.events.keys.size
    return size > _SMALLEST and size > _WASTEFUL * int(live.counts.sum())
