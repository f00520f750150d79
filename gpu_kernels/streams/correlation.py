"""A block of a stream correlated with the live events of the other side; what is found, on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from coincide.sides import LEFT
from coincide.streams.shared import EVALUATIONS, RESPONSE_MAX, RESPONSE_SUM, SURE, Rules
from gpu_kernels.device.arrays import array_module, on_device, on_host
from gpu_kernels.device.memory import in_parts, take
from gpu_kernels.join.blocks import BandedSides, Block
from gpu_kernels.kernels.layout import Base, Sides, Sorted, Targets
from gpu_kernels.streams.sorted_events import Live
from gpu_kernels.streams.tables import Tables

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
    side: int, block: Sorted, targets: Live, tables: Tables, by_key: bool, rules: Rules, now: int,
    found: Found,
) -> None:  # fmt: skip
    """Correlate a block, in as many parts as the device's memory demands.

    Parameters
    ----------
    side : int
        Of the block.
    block : Sorted
    targets : Live
        Of the other side.
    tables : Tables
    by_key : bool
        Whether events are sorted by the keys of their model; else by doubled max_times.
    rules : Rules
    now : int
        The streams' time, ticks.
    found : Found, added to

    Raises
    ------
    DeviceMemoryError
        If memory does not suffice for one event of the block.
    """
    rule = tables.rule
    base_keys = block.keys if by_key else _keys(rule, side, block)
    target_keys = targets.events.keys if by_key else _keys(rule, 1 - side, targets.events)
    sides = Sides(
        _base(block, base_keys, tables.tops[side]), _targets(targets, target_keys), rule, side
    )
    banded = BandedSides(sides, tables.bands[side])
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
