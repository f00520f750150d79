"""What a correlator returns: matches, late events, and statistics of itself."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from typing import NamedTuple, TypeVar

import numpy as np

from bench.papers.streams.state import (
    BUFFER_MAX,
    BUFFER_SUM,
    EVALUATIONS,
    HITS,
    INVALIDATED,
    LATE,
    PAIRS,
    RESPONSE_MAX,
    RESPONSE_SUM,
    SAMPLES,
    SURE,
    TALLY_SIZE,
)


@dataclass(frozen=True, eq=False)
class Matches:
    """Pairs that became final."""

    count: int  # Number of pairs
    left: np.ndarray  # int64, shape (count,)
    right: np.ndarray  # int64, shape (count,)


@dataclass(frozen=True, eq=False)
class LateEvents:
    """Intervals of one side that arrived later than its delay permits, and were not correlated."""

    numbers: np.ndarray  # int64, shape (n,): arrival numbers
    min_time: np.ndarray  # int64, shape (n,): timestamps, ticks
    max_time: np.ndarray  # int64, shape (n,): timestamps, ticks

    def __len__(self) -> int:
        return self.numbers.size


@dataclass(frozen=True, eq=False)
class LateHistogramEvents:
    """As `LateEvents`, of a side whose timestamps are histograms."""

    numbers: np.ndarray  # int64, shape (n,): arrival numbers
    max_time: np.ndarray  # int64, shape (n,): ticks
    template: np.ndarray  # int64, shape (n,): numbers of templates

    def __len__(self) -> int:
        return self.numbers.size


Late = LateEvents | LateHistogramEvents
_L = TypeVar("_L", LateEvents, LateHistogramEvents)

_NOTHING = np.empty(0, np.int64)
NO_MATCHES = Matches(0, _NOTHING, _NOTHING)


def joined_matches(parts: list[Matches]) -> Matches:
    """Several results as one."""
    if not parts:
        return NO_MATCHES
    if len(parts) == 1:
        return parts[0]
    left, right = (np.concatenate([getattr(p, side) for p in parts]) for side in ("left", "right"))
    return Matches(sum(part.count for part in parts), left, right)


def joined_late(parts: list[_L]) -> _L:
    """Several lots of late events, one at least, as one."""
    names = [field.name for field in fields(parts[0])]
    return type(parts[0])(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in names)
    )


_FEWEST = 256
_SMALLEST_SLAB = 1 << 13
_LARGEST_SLAB = 1 << 21
_RESULTS_PER_SLAB = 8
_MOST_SLABS = 3
_SPARSE = 4


class _Slab(NamedTuple):
    """Left and right numbers of several results, one after the other."""

    left: np.ndarray
    right: np.ndarray


class PairRoom:
    """Gives room for the pairs of one result after the other.

    Fresh memory costs more than filling it. So results are consecutive slices of a slab, which is used
    again once all of them have been dropped; a caller who keeps them keeps the slab, and the next
    results go to a new one.
    """

    def __init__(self) -> None:
        self._slabs: list[_Slab] = [_new_slab(0)]
        self._used = 0
        self._expected = _FEWEST

    def take(self) -> tuple[np.ndarray, np.ndarray]:
        """Room for the left and the right numbers of about as many pairs as came last."""
        if self._slabs[-1].left.size - self._used < self._expected:
            self._change_slab()
        left, right = self._slabs[-1]
        return left[self._used :], right[self._used :]

    def give(self, count: int, left: np.ndarray, right: np.ndarray) -> Matches:
        """The result, once a kernel has filled its room, or made itself larger room."""
        self._expected = max(_FEWEST, count + count // 4, self._expected * 3 // 4)
        if count == 0:
            return NO_MATCHES
        slab = self._slabs[-1]
        if left.size == slab.left.size - self._used:
            left, right = slab.left[self._used :], slab.right[self._used :]
            self._used += count
        elif _SPARSE * count < left.size:
            # The kernel's own room is as large as its candidates were many, and a slice would keep all
            # of it for as long as the caller keeps the pairs.
            return Matches(count, left[:count].copy(), right[:count].copy())
        return Matches(count, left[:count], right[:count])

    def _change_slab(self) -> None:
        # Somewhat more than expected, or the next result but one would need yet another slab.
        size = self._expected + self._expected // 4
        size = max(_SMALLEST_SLAB, size, min(_RESULTS_PER_SLAB * size, _LARGEST_SLAB))
        self._used = 0
        for i, slab in enumerate(self._slabs):
            if self._expected <= slab.left.size <= 2 * size and _is_free(slab):
                self._slabs.append(self._slabs.pop(i))
                return
        self._slabs = [*self._slabs[1 - _MOST_SLABS :], _new_slab(size)]


def _new_slab(size: int) -> _Slab:
    return _Slab(np.empty(size, np.int64), np.empty(size, np.int64))


def _is_free(slab: _Slab) -> bool:
    """Whether no result is left in a slab: a slice holds a reference to its array."""
    # The slab's own reference and that of the call.
    return sys.getrefcount(slab.left) <= 2 and sys.getrefcount(slab.right) <= 2


@dataclass(frozen=True)
class StreamStats:
    """What a correlator has looked at, found and kept so far."""

    pairs: int  # Pairs found
    evaluations: int  # Evaluations of the probability formula
    sure: int  # Pairs admitted by the satisfaction region, without evaluation
    hits: int  # Candidates in probe regions that the look-up table decided
    response_mean: float | None
    response_max: float | None  # Lee & Lee (2010), section 5.1
    buffer_mean: tuple[float, float]
    buffer_max: tuple[int, int]
    invalidated: tuple[int, int]  # Events removed as obsolete, left and right
    late: tuple[int, int]  # Events that came later than the delay permits, left and right
    arrived: tuple[int, int]  # Events pushed, late ones included, left and right

    @property
    def probed(self) -> int:
        """Candidates in probe regions: evaluated, or decided by the look-up table."""
        return self.evaluations + self.hits

    @property
    def hit_ratio(self) -> float:
        """hits / probed, Lee & Lee (2010), Figure 7; 0 if nothing was probed."""
        return self.hits / self.probed if self.probed else 0.0


def new_tally() -> np.ndarray:
    """All zero: int64 array, shape (TALLY_SIZE,)."""
    return np.zeros(TALLY_SIZE, np.int64)


def new_response() -> np.ndarray:
    """No sum, and no maximum yet, which may turn out negative: float64 array, shape (2,)."""
    return np.array([0.0, -np.inf])


def stats_of(tally: np.ndarray, response: np.ndarray | None, arrived: np.ndarray) -> StreamStats:
    """Put a tally into words."""

    def sides(entry: int) -> tuple[int, int]:
        return int(tally[entry]), int(tally[entry + 1])

    sums = sides(BUFFER_SUM)
    samples, pairs = max(1, int(tally[SAMPLES])), int(tally[PAIRS])
    mean = longest = None
    if response is not None:
        mean = float(response[RESPONSE_SUM]) / max(1, pairs)
        longest = float(response[RESPONSE_MAX]) if pairs else 0.0
    return StreamStats(
        pairs=pairs,
        evaluations=int(tally[EVALUATIONS]),
        sure=int(tally[SURE]),
        hits=int(tally[HITS]),
        response_mean=mean,
        response_max=longest,
        buffer_mean=(sums[0] / samples, sums[1] / samples),
        buffer_max=sides(BUFFER_MAX),
        invalidated=sides(INVALIDATED),
        late=sides(LATE),
        arrived=(int(arrived[0]), int(arrived[1])),
    )
