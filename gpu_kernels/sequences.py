"""Tuples of events that links make, and which of them qualify, on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coincide.model.remembered import remembered
from coincide.model.sequences.making import (
    Decision,
    Demands,
    Links,
    Made,
    Step,
    StreamEvents,
    Tuples,
    ends_and_laws,
)
from coincide.model.sequences.wholes import CHAIN, chain_room
from coincide.model.templates.template import Buckets
from gpu_kernels.device.arrays import array_module, on_device, tuple_on_device
from gpu_kernels.device.memory import (
    DeviceMemoryError,
    exclusive_scan,
    filled,
    in_parts,
    take,
    translated,
)
from gpu_kernels.device.transfers import current
from gpu_kernels.device.turn import TURN
from gpu_kernels.join import tile_owners
from gpu_kernels.kernels import sequences as kernels
from gpu_kernels.kernels.compilation import launch_each, launch_tiles
from gpu_kernels.kernels.sequences import Asked, LinkArrays, Streams, Times, Work

_WHAT = "tuples of events"
_WORK_BYTES = 1 << 28
"""Memory in which threads decide tuples: with more of them at once a GPU is not faster."""


class TupleMaker:
    """As `coincide.model.sequences.making.TupleMaker`: tuples grow and are decided in device memory."""

    at_once = 1 << 22
    """Enough to keep a GPU busy. They take some hundred megabytes there."""

    def __init__(self, events: Sequence[StreamEvents], buckets: Buckets | None) -> None:
        self._events, self._buckets = events, buckets
        self._sent: dict[int, tuple[np.ndarray, Any]] = {}

    def make(
        self,
        part: Tuples,
        steps: Sequence[Step],
        decision: Decision | Demands | None,
        *,
        tells: bool = False,
    ) -> Made:
        """As in `coincide.model.sequences.making.TupleMaker`."""
        made: list[Made] = []

        def some(start: int, stop: int) -> None:
            given = part.of(slice(start, stop))
            try:
                with translated(_WHAT):
                    made.append(self._made(given, start, steps, decision, tells))
            except DeviceMemoryError:
                # Links that are not used now may be in the way.
                self._sent.clear()
                raise

        with TURN:
            in_parts(some, 0, part.size)
        return made[0] if len(made) == 1 else _together(made)

    def _made(
        self,
        part: Tuples,
        start: int,
        steps: Sequence[Step],
        decision: Decision | Demands | None,
        tells: bool,
    ) -> Made:
        growing = _Growing(self, part, start, tells)
        for step in steps:
            growing.grow(step)
            if step.demands is not None:
                growing.keep(growing.met(step.demands))
        return growing.decided(decision)

    def sent(self, array: np.ndarray) -> Any:
        """The device's copy of an array of the streams or links, which stays there."""
        if id(array) not in self._sent:
            self._sent[id(array)] = array, current().send_one(array)
        return self._sent[id(array)][1]

    def times(self, stream: int) -> Times:
        """The times of a stream."""
        events = self._events[stream]
        return Times(self.sent(events.first), self.sent(events.last))

    def numbers(self, stream: int) -> Any:
        """Which event each of a stream is."""
        numbers = self._events[stream].numbers
        assert numbers is not None
        return self.sent(numbers)

    def links(self, links: Links) -> LinkArrays:
        """Links in device memory."""
        chances = take(0, np.float64) if links.chances is None else self.sent(links.chances)
        begins, ends, targets = map(self.sent, (links.begins, links.ends, links.targets))
        return LinkArrays(begins, ends, targets, chances)

    def streams(self, members: Sequence[int]) -> Streams:
        """What decisions need of the events of the streams of tuples."""
        begins, ends, laws = self._ends_and_laws
        return Streams(on_device(begins[np.array(members)]), self.sent(ends), self.sent(laws))

    @remembered
    def _ends_and_laws(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return ends_and_laws(self._events)

    @remembered
    def buckets(self) -> Buckets:
        """The laws of all times, in device memory."""
        found: Buckets = tuple_on_device(self._buckets)
        return found


class _Growing:
    """Tuples in device memory."""

    def __init__(self, maker: TupleMaker, part: Tuples, start: int, tells: bool) -> None:
        self._maker = maker
        self._rows, self._known = (_sent(each) for each in (part.rows, part.chances))
        self._tells, size = tells, part.size if tells else 0
        self._parents = array_module().arange(start, start + size, dtype=np.int64)

    @property
    def _size(self) -> int:
        return int(self._rows.shape[1])

    def grow(self, step: Step) -> None:
        """Add each event to which a link leads."""
        links, tells = self._maker.links(step.links), self._tells
        counts = take(self._size + 1, np.int64)
        launch_each(kernels.count_links, self._size, links, step.place, self._rows, counts[1:])
        scan = exclusive_scan(counts)
        size, steps = int(scan[-1]), len(self._rows)
        known = self._known.shape[0] + (step.links.chances is not None)
        rows, chances = take((steps + 1, size), np.int64), take((known, size), np.float64)
        parents = take(size if tells else 0, np.int64)
        launch_tiles(
            kernels.grow, size, links, step.place, scan, tile_owners(scan, size), self._rows,
            self._known, parents, rows, chances,
        )  # fmt: skip
        self._rows, self._known = rows, chances
        self._parents = self._parents[parents] if tells else parents

    def met(self, demands: Demands) -> Any:
        """Flags of the tuples that meet demands, after a place for their scan."""
        flags, maker = self._flags(), self._maker
        *_, last = demands.streams
        for place, lo, hi in demands.windows:
            launch_each(
                kernels.flag_near, self._size, self._rows, place, lo, hi,
                maker.times(demands.streams[place]), maker.times(last), flags[1:],
            )  # fmt: skip
        for place in demands.others:
            launch_each(
                kernels.flag_others, self._size, self._rows, place,
                maker.numbers(demands.streams[place]), maker.numbers(last), flags[1:],
            )  # fmt: skip
        return flags

    def _flags(self) -> Any:
        return filled(self._size + 1, np.int64, 1)

    def keep(self, flags: Any, *more: Any) -> list[Any]:
        """Let go of the tuples without a flag, and of what more is known of them, of 64 bits each."""
        scan = exclusive_scan(flags)
        size = int(scan[-1])
        if size == self._size:
            return list(more)
        self._rows, self._known = (
            self._moved(each, scan, size) for each in (self._rows, self._known)
        )
        if self._tells:
            self._parents = self._moved(self._parents.reshape(1, -1), scan, size).ravel()
        return [self._moved(each.reshape(1, -1), scan, size).ravel() for each in more]

    def _moved(self, given: Any, scan: Any, size: int) -> Any:
        """Those columns of a table that are to be kept."""
        kept = take((given.shape[0], size), np.int64)
        launch_each(kernels.keep, given.shape[1], scan, given.view(np.int64), kept)
        return kept.view(given.dtype)

    def decided(self, decision: Decision | Demands | None) -> Made:
        """What qualifies, in the host's memory."""
        tried = self._size
        if isinstance(decision, Decision):
            return self._fetched(tried, *self._judged(decision))
        if decision is not None:
            self.keep(self.met(decision))
        return self._fetched(tried)

    def _judged(self, decision: Decision) -> list[Any]:
        """Probabilities and verdicts of the tuples that may qualify; the others are gone."""
        whole, size = decision.whole, self._size
        out, verdicts, flags = take(size, np.float64), take(size, np.int64), self._flags()
        asked = Asked(
            on_device(whole.lows), on_device(whole.highs), decision.at_least, decision.doubt,
            decision.wants,
        )  # fmt: skip
        # The one link of two events is the whole.
        is_known = decision.has_steps or whole.kind == CHAIN
        known = self._known if is_known else take((0, size), np.float64)
        streams, buckets = self._maker.streams(decision.streams), self._maker.buckets
        work = _work(decision, size)
        slots = work.events.shape[2]
        for start in range(0, size, slots):
            launch_each(
                kernels.JUDGES[whole.kind], min(slots, size - start), asked, self._rows, known, start,
                streams, buckets, work, out, verdicts, flags[1:],
            )  # fmt: skip
        if not decision.keeps_chances:
            self._known = take((0, size), np.float64)
        verdicts, *kept = self.keep(flags, verdicts, *([out] if decision.wants else []))
        return [verdicts.astype(np.int8), *kept]

    def _fetched(self, tried: int, verdicts: Any = None, out: Any = None) -> Made:
        given = self._rows, self._known, self._parents, verdicts, out
        with current().fetching() as fetch:
            here = [None if each is None else _result(each.size, each.dtype) for each in given]
            for there, result in zip(given, here, strict=True):
                if result is not None:
                    fetch(there.reshape(-1), result)
        rows, known, parents, verdicts, out = here
        assert rows is not None
        assert known is not None
        tuples = Tuples(rows.reshape(self._rows.shape), known.reshape(self._known.shape))
        return Made(tuples, parents if self._tells else None, out, verdicts, tried)


def _sent(array: np.ndarray) -> Any:
    return current().send_one(array.reshape(-1)).reshape(array.shape)


def _result(size: int, dtype: Any) -> np.ndarray:
    return current().result(size, dtype, lambda: np.empty(size, dtype))


def _work(decision: Decision, tuples: int) -> Work:
    """Memory for as many tuples at once as it is bounded to."""
    n = len(decision.streams)
    room = chain_room(decision.edges) if decision.whole.kind == CHAIN else 0
    shapes = (2, n), (2, room), (room, n + 2), (room, n + 2), (2, n + 2)
    kinds = np.int64, np.int64, np.float64, np.float64, np.float64
    items = sum(a * b for a, b in shapes)
    slots = max(1, min(tuples, _WORK_BYTES // (8 * items)))
    return Work(*(take((*shape, slots), kind) for shape, kind in zip(shapes, kinds, strict=True)))


def _together(made: Sequence[Made]) -> Made:
    """What was made in parts."""
    rows, chances = (
        np.concatenate([getattr(each.tuples, name) for each in made], axis=1)
        for name in ("rows", "chances")
    )
    parents, probability, verdicts = (
        None
        if getattr(made[0], name) is None
        else np.concatenate([getattr(each, name) for each in made])
        for name in ("parents", "probability", "verdicts")
    )
    tried = sum(each.tried for each in made)
    return Made(Tuples(rows, chances), parents, probability, verdicts, tried)
