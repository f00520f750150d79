"""The events of one key, as kernels take them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coincide.model.remembered import remembered

_FEW = 1000


class Streams(NamedTuple):
    """Events of two clocks; those of one code may have a common cause."""

    left: np.ndarray  # int64 (n,), ascending, ticks
    codes: np.ndarray  # int64 (n,), the code of each left event
    right: np.ndarray  # int64 (m,), ascending within a code, ticks
    ends: np.ndarray  # int64 (codes + 1,), where the right events of each code begin


@dataclass(frozen=True, eq=False)
class ClockEvents:
    """Events of one key on two clocks, counted from the first left one.

    `step`: the number of ticks of which all differences of times are multiples, but for one number.
    """

    streams: Streams
    origin: int
    step: int

    @classmethod
    def of(
        cls,
        left: np.ndarray,
        right: np.ndarray,
        left_codes: np.ndarray | None = None,
        right_codes: np.ndarray | None = None,
    ) -> ClockEvents:
        """Times in any order, ticks; codes are from 0 on, and None where all events are alike."""
        origin = int(left.min()) if left.size else 0
        if left_codes is None or right_codes is None:
            codes, ends = np.zeros(left.size, np.int64), np.array([0, right.size])
            own, others = _sorted(left), _sorted(right)
        else:
            order = np.lexsort((left_codes, left))
            own, codes = left[order], left_codes[order].astype(np.int64)
            order = np.lexsort((right, right_codes))
            others = right[order]
            count = 1 + max(left_codes.max(initial=0), right_codes.max(initial=0))
            ends = np.searchsorted(right_codes[order], np.arange(count + 1))
        step = math.gcd(_step_of(own), _step_of(others)) or 1
        streams = Streams(own - origin, codes, others - origin, ends.astype(np.int64))
        return cls(streams, origin, step)

    @remembered
    def spans(self) -> tuple[int, int]:
        """The first and the last time at which both sides have events."""
        left, right = self.streams.left, self.streams.right
        return max(int(left[0]), int(right.min())), min(int(left[-1]), int(right.max()))

    def slid(self, by: int, is_turned: bool = False) -> ClockEvents:
        """The same with right times moved round, or turned too, so that no pair has a common cause."""
        right = self.streams.right
        first, last = int(right.min()), int(right.max())
        moved = ((last - right if is_turned else right - first) + by) % (last - first + 1) + first
        return self._moved(moved)

    def shuffled(self, stretch: int, by: int, seed: int) -> ClockEvents:
        """The same with each stretch of right times moved for itself, by so much at most.

        Pairs are as many, and as bursts have them, but no longer lie on a line that is sharper.
        """
        rng, right = np.random.default_rng(seed), self.streams.right
        places = (right - int(right.min()) + int(rng.integers(stretch))) // stretch
        most = by // self.step
        moves = rng.integers(-most, most + 1, int(places.max()) + 1) * self.step
        return self._moved(right + moves[places])

    def rights_between(self, begin: int, end: int) -> ClockEvents:
        """The same with the right times from begin to end alone."""
        left, codes, right, ends = self.streams
        own = (right >= begin) & (right <= end)
        ends = np.append(0, np.cumsum(own))[ends]
        return ClockEvents(Streams(left, codes, right[own], ends), self.origin, self.step)

    def _moved(self, right: np.ndarray) -> ClockEvents:
        """The same with other right times, in any order within a code."""
        left, codes, _, ends = self.streams
        code = np.repeat(np.arange(ends.size - 1), np.diff(ends))
        order = np.lexsort((right, code)) if ends.size > 2 else np.argsort(right, kind="stable")
        return ClockEvents(Streams(left, codes, right[order], ends), self.origin, self.step)


def _sorted(times: np.ndarray) -> np.ndarray:
    return times if (times[1:] >= times[:-1]).all() else np.sort(times)


def _step_of(times: np.ndarray) -> int:
    """The number of ticks of which all differences of times are multiples."""
    for some in (times[:_FEW], times):  # mostly a few tell that it is 1
        step = int(np.gcd.reduce(some - some[0])) if some.size else 0
        if step == 1:
            break
    return step
