"""Stream correlators on the CPU: their buffers and live blocks, made by the options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import numpy as np

from coincide.model.classes import ShapeClasses
from coincide.model.condition import TimingCondition, Window
from coincide.model.errors import ConditionError
from coincide.model.options import check_choice
from coincide.model.results import offsets_of
from coincide.model.sides import LEFT, RIGHT
from coincide.model.streams.correlator import ClassedCorrelator, LazyCorrelator, StreamCorrelator
from coincide.model.streams.intake import Batch
from coincide.model.streams.models import impossible_regions, max_time_regions
from coincide.model.streams.options import Emit, StreamOptions, window_in_ticks
from coincide.model.streams.sides import MOST_LENGTHS, Side, declared
from coincide.model.streams.state import (
    SMALLEST,
    Deferred,
    LiveBlockStep,
    LiveEvents,
    Progress,
    Regions,
    Rules,
    Waiting,
    is_wasteful,
    live_counts,
)
from coincide.model.templates.template import Templates, TemplateTable
from cpu_fallback.streams.kernels.buffering import let_go
from cpu_fallback.streams.kernels.lazy import CLASSED, LAZY, LOOKUP, evaluate
from cpu_fallback.streams.kernels.simple import correlate_eagerly, correlate_simple, let_go_unsorted


class Buffers(NamedTuple):
    """Live events, per side and class."""

    keys: np.ndarray
    shapes: np.ndarray
    numbers: np.ndarray
    ends: np.ndarray


def new_buffers(classes: int, capacity: int = SMALLEST) -> Buffers:
    """Empty buffers."""
    keys, shapes, numbers = (np.empty((2, classes, capacity), np.int64) for _ in range(3))
    return Buffers(keys, shapes, numbers, np.zeros((2, classes, 2), np.int64))


def live_events_of(buffers: Buffers, side: int) -> LiveEvents:
    """A copy of the events in the buffers of a side."""
    runs = [slice(start, stop) for start, stop in buffers.ends[side].tolist()]
    keys, shapes, numbers = (
        np.concatenate([array[side, k, run] for k, run in enumerate(runs)]) for array in buffers[:3]
    )
    counts = buffers.ends[side, :, 1] - buffers.ends[side, :, 0]
    return LiveEvents(keys, shapes, numbers, offsets_of(counts))


def buffers_of(events: tuple[LiveEvents, LiveEvents]) -> Buffers:
    """Buffers that hold the given events, of the left and the right side, of as many classes."""
    largest = max(int(np.diff(side.offsets).max()) for side in events)
    fresh = new_buffers(events[0].offsets.size - 1, max(SMALLEST, largest))
    for side, k in np.ndindex(fresh.ends.shape[:2]):
        start, stop = events[side].offsets[k : k + 2]
        for new, old in zip(fresh[:3], events[side][:3], strict=True):
            new[side, k, : stop - start] = old[start:stop]
        fresh.ends[side, k, 1] = stop - start
    return fresh


def roomy_buffers(buffers: Buffers, extra: int) -> Buffers:
    """Buffers in which every class has room for `extra` more events.

    The same ones if there is room, and not far too much of it; else new ones of twice the need: so
    what obsolete events leave behind is taken back, and copying costs a constant per event.
    """
    stops = buffers.ends[:, :, 1]
    live = stops - buffers.ends[:, :, 0]
    needed, capacity = int(live.max()) + extra, buffers.keys.shape[2]
    if int(stops.max()) + extra <= capacity and not is_wasteful(capacity, needed):
        return buffers
    classes = live.shape[1]
    roomy = new_buffers(classes, max(SMALLEST, 2 * needed))
    for side, k in np.ndindex(2, classes):
        start, stop = buffers.ends[side, k]
        for old, new in zip(buffers[:3], roomy[:3], strict=True):
            new[side, k, : stop - start] = old[side, k, start:stop]
    roomy.ends[:, :, 1] = live
    return roomy


def reclassed_buffers(
    events: tuple[LiveEvents, LiveEvents], classes: tuple[ShapeClasses, ShapeClasses]
) -> Buffers:
    """Buffers of live events, left and right, in other classes; keys are those of their model."""
    most = max(each.count for each in classes)
    left, right = (_reclassed(*side, most) for side in zip(events, classes, strict=True))
    return buffers_of((left, right))


def _reclassed(events: LiveEvents, classes: ShapeClasses, count: int) -> LiveEvents:
    """The events of a side in its classes, and as many empty ones as make `count`."""
    owner = np.searchsorted(classes.highest, events.shapes)
    order = np.lexsort((events.keys, owner))
    offsets = np.searchsorted(owner[order], np.arange(count + 1))
    return LiveEvents(events.keys[order], events.shapes[order], events.numbers[order], offsets)


Immediate = Literal["simple", "simple-sort", "eager"]


class ImmediateCorrelator(StreamCorrelator):
    """Correlates each event as it arrives, Lee & Lee (2010), Algorithms 1 to 3."""

    def __init__(self, options: StreamOptions, algorithm: Immediate) -> None:
        regions = max_time_regions if algorithm == "eager" else impossible_regions
        super().__init__(options, regions(options))
        self._algorithm = algorithm
        self._buffers = new_buffers(1)

    def _take(self, batch: Batch, late: np.ndarray) -> None:
        self._buffers = roomy_buffers(self._buffers, batch.sides.size)
        given = (batch, self._buffers, self._progress, self._regions, self._rules)
        written = (self._tally, self._response, late, *self._space())
        self._halfway = True
        if self._algorithm == "eager":
            self._keep(*correlate_eagerly(*given, *written))
        else:
            ordered = self._algorithm == "simple-sort"
            self._keep(*correlate_simple(*given, ordered, *written))
        self._halfway = False

    def _time_passed(self) -> None:
        release = let_go_unsorted if self._algorithm == "simple" else let_go
        release(self._buffers, self._progress, self._regions, self._rules, self._tally)

    def _finish(self) -> None:
        """Nothing waits."""

    def _fit(self) -> None:
        self._buffers = roomy_buffers(self._buffers, 0)


_KERNELS = {"lazy": LAZY, "lookup": LOOKUP, "classes": CLASSED}


class LiveBlocks:
    """Live events in host memory: a `LiveBlockStep`, which says what each method does."""

    def __init__(
        self, algorithm: Deferred, events: tuple[LiveEvents, LiveEvents] | None = None
    ) -> None:
        self._algorithm = algorithm
        self.buffers = new_buffers(1) if events is None else buffers_of(events)

    @property
    def counts(self) -> np.ndarray:
        """As `LiveBlockStep`, like all that follow."""
        return live_counts(self.buffers)

    def shapes(self, side: int) -> np.ndarray:
        """Shapes of the live events of a side."""
        return self.events(side).shapes

    def reserve(self, extra: int) -> None:
        """Have room for more events."""
        self.buffers = roomy_buffers(self.buffers, extra)

    def reclassed(self, classes: tuple[ShapeClasses, ShapeClasses]) -> LiveBlocks:
        """The same events in other classes."""
        made = type(self)(self._algorithm)
        made.buffers = reclassed_buffers((self.events(LEFT), self.events(RIGHT)), classes)
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
        """Correlate all events that wait. There must be room for them (`reserve`).

        An exception leaves events half correlated.
        """
        return evaluate(
            _KERNELS[self._algorithm], waiting, self.buffers, progress, regions, rules, tally, response,
            left_out, right_out,
        )  # fmt: skip

    def let_go(self, progress: Progress, regions: Regions, rules: Rules, tally: np.ndarray) -> None:
        """Let go of obsolete events."""
        let_go(self.buffers, progress, regions, rules, tally)

    def events(self, side: int) -> LiveEvents:
        """A copy of the live events of a side."""
        return live_events_of(self.buffers, side)


MakeLive = Callable[[Deferred], LiveBlockStep]
"""Makes the live blocks of a lazy algorithm: on the CPU, `LiveBlocks`."""

_MAKERS: dict[str, Callable[[StreamOptions, MakeLive], StreamCorrelator]] = {
    **{
        name: lambda options, _, name=name: ImmediateCorrelator(options, name)  # type: ignore[misc]
        for name in get_args(Immediate)
    },
    "lazy": lambda options, live: LazyCorrelator(options, live("lazy")),
    "lookup": lambda options, live: LazyCorrelator(options, live("lookup")),
    "classes": lambda options, live: ClassedCorrelator(options, live("classes")),
}

ALGORITHMS = tuple(_MAKERS)
"""The papers' Simple, Simple-Sort, Eager, Lazy and Lazy with look-up; then lazy with length classes."""


def stream_correlator(
    algorithm: str,
    condition: Window | TimingCondition,
    *,
    left_delay: int,
    right_delay: int,
    left_longest: int | None = None,
    right_longest: int | None = None,
    left_shortest: int = 0,
    right_shortest: int = 0,
    left_templates: Templates | TemplateTable | None = None,
    right_templates: Templates | TemplateTable | None = None,
    most_lengths: int = MOST_LENGTHS,
    block: int | None = 1000,
    every: int | None = None,
    emit: Emit = "pairs",
    classes: int | None = None,
    response: bool = False,
    live_blocks: MakeLive = LiveBlocks,
) -> StreamCorrelator:
    """Make a stream correlator."""
    check_choice("algorithm", algorithm, ALGORITHMS)
    left = Side("left", left_delay, left_shortest, left_longest, left_templates)
    right = Side("right", right_delay, right_shortest, right_longest, right_templates)
    if algorithm == "lookup" and not (left.templates is None is right.templates):
        raise ConditionError(
            "the look-up table is for intervals on both sides: what it concludes for a neighbour follows"
            " from lengths (Lee & Lee (2010), Corollary 2). Use 'lazy' or 'classes' with templates"
        )
    model, limits = declared(window_in_ticks(condition), left, right, most_lengths)
    options = StreamOptions(
        model=model,
        limits=limits,
        block=block,
        every=every,
        emit=emit,
        classes=classes,
        response=response,
    )
    return _MAKERS[algorithm](options, live_blocks)
