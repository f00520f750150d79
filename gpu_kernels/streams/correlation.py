"""A block of a stream correlated with the live events of the other side; what is found, on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.sides import LEFT
from coincide.streams.shared import EVALUATIONS, RESPONSE_MAX, RESPONSE_SUM, SURE, Rules
from gpu_kernels.device.arrays import array_module, on_device, on_host
from gpu_kernels.device.memory import in_parts, take
from gpu_kernels.join.blocks import Block, Sides
from gpu_kernels.kernels.layout import Base, Condition, Sorted, Targets
from gpu_kernels.streams.sorted_events import Live

_Arrays = tuple[Any, Any]


class Found:
    """What the parts of an evaluation have found. A part counts once it has been added as a whole.

    Parameters
    ----------
    left, right : int64 arrays, written
        Room for pairs, of any size.
    """

    def __init__(self, left: np.ndarray, right: np.ndarray) -> None:
        self.count = 0
        self.left, self.right = left, right
        self._evaluations = self._sure = 0
        self._response, self._longest = 0.0, -np.inf

    def add(self, block: Block, pairs: _Arrays | None, waits: tuple[float, float] | None) -> None:
        """Add what a placed block found.

        Parameters
        ----------
        block : Block
        pairs : two int64 arrays, shape (matches,), in device memory, or None
            Left and right numbers.
        waits : (float, float) or None
            Sum and maximum of the response times, ticks.
        """
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
    side: int, block: Sorted, tops: Any, targets: Live, bands: Any, by_midpoint: bool, rules: Rules,
    now: int, found: Found,
) -> None:  # fmt: skip
    """Correlate a block, in as many parts as the device's memory demands.

    Parameters
    ----------
    side : int
        Of the block.
    block : Sorted
    tops : int64 array, shape (K1,), in device memory
        Longest length of each class of base events, ticks.
    targets : Live
        Of the other side.
    bands : int64 array, shape (K1, K2, 4), in device memory
        Of the block's side, from `Regions`.
    by_midpoint : bool
        Whether keys are doubled midpoints; else doubled max_times.
    rules : Rules
    now : int
        The streams' time, ticks.
    found : Found, added to

    Raises
    ------
    DeviceMemoryError
        If memory does not suffice for one event of the block.
    """
    sides = Sides(
        _base(block, tops, by_midpoint),
        _targets(targets, by_midpoint),
        bands,
        Condition(rules.lo, rules.hi, rules.threshold, side),
    )
    max_times = [_max_times(events) for events in (sides.base, sides.targets) if rules.response]

    def correlate_part(start: int, stop: int) -> None:
        placed = Block(sides, start, stop)
        pairs = waits = None
        if rules.pairs and placed.matches:
            pairs = placed.fill(block.numbers, targets.events.numbers)
            pairs = pairs if side == LEFT else (pairs[1], pairs[0])
        if rules.response and placed.matches:
            waits = _waits(now, *placed.fill(*max_times))
        found.add(placed, pairs, waits)

    for start, stop in sides.blocks(0, block.keys.size):
        in_parts(correlate_part, start, stop)


def _base(block: Sorted, tops: Any, by_midpoint: bool) -> Base:
    classes = array_module().searchsorted(tops, block.lengths, side="left").astype(np.uint8)
    offsets = on_device(np.array([0, block.keys.size], np.int64))
    return Base(_midpoints(block, by_midpoint), block.lengths, classes, offsets)


def _targets(live: Live, by_midpoint: bool) -> Targets:
    # One group of each class, which begins and ends where its live events do.
    offsets, events = on_device(live.ends), live.events
    return Targets(events.keys, _midpoints(events, by_midpoint), events.lengths, offsets)


def _midpoints(events: Sorted, by_midpoint: bool) -> Any:
    if by_midpoint:
        return events.keys
    out = take(events.keys.size, np.int64)
    return array_module().subtract(events.keys, events.lengths, out=out)


def _max_times(events: Base | Targets) -> Any:
    return (events.midpoints + events.lengths) >> 1


def _waits(now: int, base_max: Any, target_max: Any) -> tuple[float, float]:
    """Sum and maximum of how long pairs have waited since the later of their events, ticks."""
    waited = now - array_module().maximum(base_max, target_max)
    return float(waited.astype(np.float64).sum()), float(waited.max())
