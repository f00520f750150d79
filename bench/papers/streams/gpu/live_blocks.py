"""Live events of a stream on a GPU, sorted, and the step that correlates a block."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from bench.papers.streams.gpu import merging
from bench.papers.streams.gpu.merging import Sorted
from bench.papers.streams.state import (
    EVALUATIONS,
    INVALIDATED,
    NEVER,
    RESPONSE_MAX,
    RESPONSE_SUM,
    SURE,
    Due,
    LiveEvents,
    Progress,
    Regions,
    Rules,
    Waiting,
)
from coincide.model.classes import ShapeClasses
from coincide.model.counters import offsets_of
from coincide.model.errors import BackendError
from coincide.model.sides import LEFT, RIGHT
from gpu_kernels.device.arrays import array_module, on_device, on_host, tuple_on_device
from gpu_kernels.device.memory import in_parts, take, translated
from gpu_kernels.device.turn import TURN
from gpu_kernels.join import BandedSides, Block
from gpu_kernels.kernels.compilation import launch_each
from gpu_kernels.kernels.join import Base, Sides, Targets


class Tables(NamedTuple):
    """`Regions` (by base side) and the rule in device memory, and those that they are a copy of."""

    source: Regions
    source_rule: Any
    rule: Any  # `Rules.pair_rule`
    bands: list[Any]  # Those of `Regions`
    tops: list[Any]  # Those of `Regions`
    target_tops: list[Any]  # Those of `Regions`
    keep: list[Any]  # Those of `Regions`

    @classmethod
    def of(cls, regions: Regions, rules: Rules) -> Tables:
        """Copies."""
        fields = ([on_device(table) for table in field] for field in regions)
        return cls(regions, rules.pair_rule, tuple_on_device(rules.pair_rule), *fields)

    def are_of(self, regions: Regions, rules: Rules) -> bool:
        """Whether these are copies of what is given: a rule is another one when its table has grown."""
        return self.source is regions and self.source_rule is rules.pair_rule


class Live(NamedTuple):
    """The live events of one side."""

    events: Sorted
    ends: np.ndarray  # int64, shape (K, 2)

    @property
    def counts(self) -> np.ndarray:
        """Live events of each class, in host memory: int64 array, shape (K,)."""
        return self.ends[:, 1] - self.ends[:, 0]

    def on_host(self) -> LiveEvents:
        """A copy in host memory. Takes no device memory."""
        keys, shapes, numbers = (_runs(on_host(array), self.ends, np) for array in self.events)
        return LiveEvents(keys, shapes, numbers, offsets_of(self.counts))

    def compact(self) -> Live:
        """The same without what obsolete events have left between the classes."""
        xp = array_module()
        size = int(self.counts.sum())
        out = Sorted(*(take(size, np.int64) for _ in Sorted._fields))
        for old, new in zip(self.events, out, strict=True):
            _runs(old, self.ends, xp, out=new)
        return Live(out, ends_of(offsets_of(self.counts)))


def _runs(array: Any, ends: np.ndarray, xp: Any, out: Any = None) -> Any:
    return xp.concatenate([array[start:stop] for start, stop in ends.tolist()], out=out)


def ends_of(offsets: np.ndarray) -> np.ndarray:
    """First and past last position of each class, from an exclusive scan: int64 array, shape (K, 2)."""
    return np.stack([offsets[:-1], offsets[1:]], axis=1)


def live_on_device(events: LiveEvents) -> Live | None:
    """Live events copied to the device; None without any."""
    if not events.keys.size:
        return None
    return Live(Sorted(*(on_device(array) for array in events[:3])), ends_of(events.offsets))


def arrived(side: int, count: int, waiting: Waiting, rule: Any | None) -> Sorted:
    """The events of a side that wait, copied to the device in order of arrival."""
    max_times, shapes, numbers = (on_device(array[side, :count]) for array in waiting)
    keys = 2 * max_times
    return Sorted(keys if rule is None else keys - rule.lean(side, shapes), shapes, numbers)


def by_class(events: Sorted, tops: Any, classes: int) -> tuple[Sorted, Any]:
    """Sort by class, and by key within, stably."""
    xp = array_module()
    order = xp.argsort(events.keys, kind="stable")
    # Few bytes a key make the second sort fast.
    owner = xp.searchsorted(tops, events.shapes[order], side="left").astype(np.uint16)
    if classes > 1:
        place = xp.argsort(owner, kind="stable")
        order, owner = order[place], owner[place]
    offsets = xp.searchsorted(owner, xp.arange(classes + 1), side="left").astype(np.int64)
    return Sorted(*(array[order] for array in events)), offsets


def merged(live: Live | None, block: Sorted, offsets: Any) -> Live:
    """Live events and a block of the same side, together; out of place."""
    new = on_host(offsets)
    if live is None:
        return Live(block, ends_of(new))
    before = offsets_of(live.counts)
    size = int(before[-1]) + block.keys.size
    out = Sorted(*(take(size, np.int64) for _ in Sorted._fields))
    launch_each(
        merging.merge, size, live.events, on_device(live.ends), on_device(before), block, offsets, out
    )  # fmt: skip
    return Live(out, ends_of(before + new))


def without_obsolete(live: Live, limit: int, keep: Any) -> tuple[Live | None, int]:
    """Let go of events whose keys are below limit + keep."""
    classes = live.ends.shape[0]
    first = take(classes, np.int64)
    ends = on_device(live.ends)
    launch_each(merging.first_live, classes, live.events.keys, ends, limit, keep, first)
    left = Live(live.events, np.stack([on_host(first), live.ends[:, 1]], axis=1))
    gone = int(live.counts.sum() - left.counts.sum())
    return (left if left.counts.any() else None), gone


ALGORITHMS = ("lazy", "classes")
"""Those whose block step runs on a GPU."""

_SMALLEST, _WASTEFUL = 1024, 8
_NOTHING = np.empty(0, np.int64)

_Sides = tuple[Live | None, Live | None]


class LiveBlocks:
    """Live events in device memory: methods and answers as `bench.papers.streams.live_blocks.LiveBlocks`.

    Pairs come in another order, and the sum of response times is rounded otherwise. Only the events of a
    block travel to the device, and only pairs, counts and the ends of the live ranges travel back.

    Any method but `counts` may raise DeviceMemoryError, or BackendError if the device fails. Pickles
    and deep copies are made by way of host memory.
    """

    def __init__(self, algorithm: str, events: tuple[LiveEvents, LiveEvents] | None = None) -> None:
        if algorithm not in ALGORITHMS:
            raise BackendError(
                f"the GPU has no stream correlator {algorithm!r}, as a look-up table gains nothing"
                " there. Use 'classes' or 'lazy', or the CPU's live blocks."
            )
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

    def evaluate(self, due: Due) -> tuple[int, np.ndarray, np.ndarray]:
        """As `LiveBlockStep`. What it writes, but for the room for pairs, it writes when all is done."""
        waiting, progress, regions, rules, tally, response, left_out, right_out = due
        now = int(progress.clock.max())
        found = LivePairs(left_out, right_out)
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


_Arrays = tuple[Any, Any]


class LivePairs:
    """What the parts of an evaluation have found. A part counts once it has been added as a whole."""

    def __init__(self, left: np.ndarray, right: np.ndarray) -> None:
        self.count = 0
        self.left, self.right = left, right
        self._evaluations = self._sure = 0
        self._response, self._longest = 0.0, -np.inf

    def add(self, block: Block, pairs: _Arrays | None, waits: tuple[float, float] | None) -> None:
        """Add what a placed block found."""
        sure, probed, _ = block.tally.tolist()
        end = self.count + block.matches
        if pairs is not None:
            self.left, self.right = (
                self._extended(out, end, new)
                for out, new in zip((self.left, self.right), pairs, strict=True)
            )
        if waits is not None:
            self._response += waits[0]
            self._longest = max(self._longest, waits[1])
        self._sure += sure
        self._evaluations += probed
        self.count = end

    def _extended(self, out: np.ndarray, end: int, new: Any) -> np.ndarray:
        """The array, or a larger copy, with new entries from `count` to `end`."""
        if end > out.size:
            larger = np.empty(end + end // 2, np.int64)
            larger[: self.count] = out[: self.count]
            out = larger
        on_host(new, out[self.count : end])
        return out

    def note(self, tally: np.ndarray, response: np.ndarray) -> None:
        """Enter what was looked at into a tally and the response times."""
        tally[SURE] += self._sure
        tally[EVALUATIONS] += self._evaluations
        response[RESPONSE_SUM] += self._response
        response[RESPONSE_MAX] = max(response[RESPONSE_MAX], self._longest)


def correlate(
    side: int, block: Sorted, targets: Live, tables: Tables, by_key: bool, rules: Rules, now: int,
    found: LivePairs,
) -> None:  # fmt: skip
    """Correlate a block, in as many parts as the device's memory demands."""
    rule = tables.rule
    base_keys = block.keys if by_key else _keys(rule, side, block)
    target_keys = targets.events.keys if by_key else _keys(rule, 1 - side, targets.events)
    sides = Sides(
        _base(block, base_keys, tables.tops[side]), _targets(targets, target_keys), rule, side
    )
    banded = BandedSides(sides, tables.bands[side], are_in_order=False)
    max_times = []
    if rules.response:
        max_times = [_max_times(rule, side, sides.base), _max_times(rule, 1 - side, sides.targets)]

    def correlate_part(start: int, stop: int) -> None:
        placed = Block(banded, start, stop)
        pairs = waits = None
        if rules.pairs and placed.matches:
            pairs = placed.fill(block.numbers, targets.events.numbers)
            pairs = pairs if side == LEFT else (pairs[1], pairs[0])
        if rules.response and placed.matches:
            waits = _waits(now, *placed.fill(*max_times))
        found.add(placed, pairs, waits)

    for start, stop in banded.blocks(0, block.keys.size):
        in_parts(correlate_part, start, stop)


def _base(block: Sorted, keys: Any, tops: Any) -> Base:
    classes = array_module().searchsorted(tops, block.shapes, side="left").astype(np.uint16)
    offsets = on_device(np.array([0, block.keys.size], np.int64))
    return Base(keys, block.shapes, classes, offsets)


def _targets(live: Live, keys: Any) -> Targets:
    # One group of each class, which begins and ends where its live events do.
    offsets, events = on_device(live.ends), live.events
    return Targets(events.keys, keys, events.shapes, offsets)


def _keys(rule: Any, side: int, events: Sorted) -> Any:
    """The keys of events that are sorted by their doubled max_times."""
    out = take(events.keys.size, np.int64)
    return array_module().subtract(events.keys, rule.lean(side, events.shapes), out=out)


def _max_times(rule: Any, side: int, events: Base | Targets) -> Any:
    return (events.keys + rule.lean(side, events.shapes)) >> 1


def _waits(now: int, base_max: Any, target_max: Any) -> tuple[float, float]:
    """Sum and maximum of how long pairs have waited since the later of their events, ticks."""
    waited = now - array_module().maximum(base_max, target_max)
    return float(waited.astype(np.float64).sum()), float(waited.max())
