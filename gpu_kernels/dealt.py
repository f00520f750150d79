"""The join of events on all GPUs of this process: blocks of base events dealt over the devices."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from typing import NamedTuple, TypeVar

import numpy as np

from coincide.model.counters import CountedJoin, JoinCounters, offsets_of
from coincide.model.range_sums import Found
from coincide.model.range_sums import Prepared as PreparedRanges
from coincide.model.remembered import remembered
from coincide.model.timestamps.protocol import Events, PairModel
from gpu_kernels.device.turn import TURN, thread_of
from gpu_kernels.device.usable import all_devices
from gpu_kernels.join import EventJoin, fill_of

T = TypeVar("T")

_RUNS_OF_DEVICE = 16
"""Runs for each device: where events are dense a run takes long, and the other devices take more runs."""

_LEAST_RUN = 1 << 16
"""Base events: fewer keep no GPU busy. But no device is left without a run."""


class DealtJoin(CountedJoin):
    """A join of two sides, each of which all devices hold, ready to be counted and filled.

    Parameters and results are those of `gpu_kernels.join.EventJoin`, in the same order, to the bit. All
    arrays that it takes and returns are in host memory.

    Devices are dealt runs of base positions: of counts, best matches and aggregates the next one goes to
    the first device that is free. What is filled together goes to the devices in turn, and while the
    caller takes what one has filled, the others fill what comes next.
    """

    orders_values = EventJoin.orders_values

    def __init__(
        self,
        left: Events,
        right: Events,
        model: PairModel,
        *,
        classes: int | None = None,
        threads: int = 1,
        empty: Callable[[int], np.ndarray] = lambda size: np.empty(size, np.int64),
    ) -> None:
        def share() -> _Share:
            return _Share(left, right, model, classes=classes, threads=threads, empty=empty)

        self._devices = all_devices()
        self._shares: list[_Share] = on_devices({number: share for number in self._devices})
        self.threads = threads
        self.bands, self.has_ranges = self._shares[0].bands, self._shares[0].has_ranges
        self.best_rows = EventJoin.best_rows * len(self._shares)
        self._lock = threading.Lock()
        self._order = _FillOrder.none()
        self._sought: dict[int, _Sought] = {}

    @remembered
    def left_order(self) -> np.ndarray:
        """Left row at each base position: int64 array, shape (n_left,)."""
        return self._agreed("left_order")

    @remembered
    def right_order(self) -> np.ndarray:
        """Right row at each target position: int64 array, shape (n_right,)."""
        return self._agreed("right_order")

    def _agreed(self, name: str) -> np.ndarray:
        """An order that all devices have: one tells it, and the others need not be sent it later."""
        with self._lock:
            if name not in vars(self):  # else another thread was first
                order: np.ndarray = self._on(0, lambda share: getattr(share, name))
                for place in range(1, len(self._shares)):
                    self._on(place, lambda share: share.note(name, order))
                vars(self)[name] = order
            found: np.ndarray = vars(self)[name]
            return found

    @remembered
    def _counted(self) -> tuple[np.ndarray, np.ndarray]:
        """The counts, and the tally of all runs."""
        with self._lock:
            if "_counted" in vars(self):  # another thread was first
                return self._counted
            counts = np.empty(self._shares[0].size, np.int64)
            tallies = self._deal(0, counts.size, lambda share, a, b: share.count(a, b, counts))
            tally, offsets = sum(tallies, np.zeros(3, np.int64)), offsets_of(counts)
            for share in self._shares:
                share.take_counts(counts, tally, offsets)
            vars(self).update(_counted=(counts, tally), offsets=offsets)
        return counts, tally

    def chunks(self, batch_pairs: int) -> Iterator[tuple[int, int]]:
        """As `CountedJoin.chunks`. Some are filled together, by one device."""
        runs = list(super().chunks(batch_pairs))
        for share in self._shares:
            share.chunks(batch_pairs)  # it notes the runs, those of the others too
        self._order = _FillOrder.of(runs, self.offsets)
        return iter(runs)

    def pairs(
        self, start: int, stop: int, left_values: np.ndarray, right_values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The matches of the base positions start ... stop."""
        return self._filled(
            start, stop, (left_values, right_values),
            lambda share, a, b: share.pairs(a, b, left_values, right_values),
        )  # fmt: skip

    def matches(self, start: int, stop: int, right_values: np.ndarray) -> np.ndarray:
        """As `pairs`, the right side only: int64 array, shape (matches,)."""
        return self._filled(
            start, stop, (None, right_values), lambda share, a, b: share.matches(a, b, right_values)
        )

    def best(
        self, start: int, stop: int, ranks: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, JoinCounters]:
        """The most probable match of the base positions start ... stop. Needs no counts."""
        found = self._deal(start, stop, lambda share, a, b: share.best(a, b, ranks))
        if not found:
            return self._on(0, lambda share: share.best(start, stop, ranks))
        best, merits, counters = zip(*found, strict=True)
        return np.concatenate(best), np.concatenate(merits), sum(counters, JoinCounters())

    def aggregated(
        self, start: int, stop: int, prepared: PreparedRanges
    ) -> tuple[Found, JoinCounters]:
        """Aggregates of the matches of the base positions start ... stop. Needs no counts."""
        dealt = self._deal(start, stop, lambda share, a, b: share.aggregated(a, b, prepared))
        if not dealt:
            return self._on(0, lambda share: share.aggregated(start, stop, prepared))
        found, counters = zip(*dealt, strict=True)
        return Found(*map(np.concatenate, zip(*found, strict=True))), sum(counters, JoinCounters())

    def _on(self, place: int, work: Callable[[_Share], T]) -> T:
        """What work finds on one device."""
        share = self._shares[place]
        return on_devices({self._devices[place]: lambda: work(share)})[0]

    def _deal(self, start: int, stop: int, work: Callable[[_Share, int, int], T]) -> list[T]:
        """What work finds of runs of the base positions start ... stop, in the order of these."""
        runs = _runs(start, stop, len(self._shares))
        found: dict[int, T] = {}
        # Each device has a first run of its own, and then takes the next that is left.
        rest = iter(range(len(self._shares), len(runs)))

        def work_through(share: _Share, number: int | None) -> None:
            try:
                while number is not None and number < len(runs):
                    found[number] = work(share, *runs[number])
                    number = next(rest, None)
            except BaseException:
                for _ in rest:  # the others need not go on
                    pass
                raise

        def worker(place: int) -> Callable[[], None]:
            return lambda: work_through(self._shares[place], place)

        on_devices(
            {device: worker(place) for place, device in enumerate(self._devices)},
            stop=lambda: deque(rest, maxlen=0),
        )
        return [found[number] for number in range(len(runs))]

    def _filled(
        self,
        start: int,
        stop: int,
        values: tuple[np.ndarray | None, np.ndarray],
        fill: Callable[[_Share, int, int], T],
    ) -> T:
        """What a device fills, while others fill what comes after it."""
        devices = len(self._shares)
        asked = self._order.fill_at(start)
        for after in range(asked + 1, asked + devices):
            run, place = self._order.first_run_from(after, stop), after % devices
            if run is not None and self._is_new(place, _Sought(after, values)):
                # What it raises is raised again where these pairs are asked for.
                thread_of(self._devices[place]).submit(fill, self._shares[place], *run)
        return self._on(asked % devices, lambda share: fill(share, start, stop))

    def _is_new(self, place: int, sought: _Sought) -> bool:
        """Whether a device was not asked for this ahead of time as the last thing."""
        last = self._sought.get(place)
        self._sought[place] = sought
        return last is None or not last.is_same(sought)


class _Share(EventJoin):
    """The join on one device, which has all events of both sides and is asked for some."""

    @property
    def size(self) -> int:
        """Number of base events."""
        return self._size

    def count(self, start: int, stop: int, counts: np.ndarray) -> np.ndarray:
        """Count the matches of the base positions start ... stop; the tally of these."""
        return self._count(start, stop, counts)

    def take_counts(self, counts: np.ndarray, tally: np.ndarray, offsets: np.ndarray) -> None:
        """Take the counts of all base positions."""
        vars(self).update(_counted=(counts, tally), offsets=offsets)

    def note(self, name: str, order: np.ndarray) -> None:
        """Note that the order here is one in host memory."""
        with TURN:
            vars(self)[name] = self._residents.known(order, getattr(self, f"_{name}"))


class _FillOrder(NamedTuple):
    """The runs of base positions that will be asked for, and what is filled together."""

    runs: Sequence[tuple[int, int]]
    starts: np.ndarray  # int64, shape (runs,), ascending
    fills: np.ndarray  # int64, shape (runs,): each the one before, or the next number

    @classmethod
    def none(cls) -> _FillOrder:
        """As long as it is not known what will be asked for."""
        return cls((), np.empty(0, np.int64), np.empty(0, np.int64))

    @classmethod
    def of(cls, runs: Sequence[tuple[int, int]], offsets: np.ndarray) -> _FillOrder:
        """From the runs and the matches before each base position."""
        starts = np.array([start for start, _ in runs], np.int64)
        # Numbers without gaps, so that devices take turns.
        return cls(runs, starts, np.unique(fill_of(offsets[starts]), return_inverse=True)[1])

    def fill_at(self, start: int) -> int:
        """The fill of the run that a base position is in."""
        place = int(np.searchsorted(self.starts, start, side="right")) - 1
        return int(self.fills[place]) if place >= 0 else 0

    def first_run_from(self, fill: int, start: int) -> tuple[int, int] | None:
        """The first run of a fill; None if it has none, or begins before a base position."""
        place = int(np.searchsorted(self.fills, fill))
        is_there = place < self.fills.size and self.fills[place] == fill
        return self.runs[place] if is_there and self.runs[place][0] >= start else None


class _Sought(NamedTuple):
    """A fill, and what is written for its matches."""

    fill: int
    values: tuple[np.ndarray | None, np.ndarray]

    def is_same(self, other: _Sought) -> bool:
        """Whether the same arrays are written for the same matches."""
        pairs = zip(self.values, other.values, strict=True)
        return self.fill == other.fill and all(mine is theirs for mine, theirs in pairs)


def _runs(start: int, stop: int, devices: int) -> list[tuple[int, int]]:
    """Cut base positions into runs, at least one for each device as long as there are as many."""
    count = stop - start
    step = max(_LEAST_RUN, -(-count // (_RUNS_OF_DEVICE * devices)))
    step = max(1, min(step, -(-count // devices)))
    return [(a, min(a + step, stop)) for a in range(start, stop, step)]


def on_devices(
    work: dict[int, Callable[[], T]], stop: Callable[[], object] = lambda: None
) -> list[T]:
    """What each device's work finds, all at once, each by the thread of its device.

    An error, or an interruption, calls `stop`, which lets the others end early.

    An error is raised once no device works any more, so that the caller may let go of what they share.
    """
    begun: list[Future[T]] = []
    try:
        for number, each in work.items():
            begun.append(thread_of(number).submit(each))
        return [future.result() for future in begun]
    except BaseException:
        stop()
        raise
    finally:
        wait(begun)
        # An error would lead back to itself by way of this frame, and keep the device's arrays.
        begun.clear()
