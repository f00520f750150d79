"""Histograms of delays: which way pairs are counted, and the work in parts, for several threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from coincide.model.ordering import stable_order
from coincide.model.threads import blocks_of, in_order, step
from cpu_fallback.correlograms.kernels import (
    LANES,
    LIMB_BITS,
    WHOLE,
    Masses,
    Stamps,
    Supports,
    add_masses,
    bin_pairs,
    count_below,
    count_within,
    fill_cells,
    sample_pairs,
)

_STEPS_OF_A_PAIR = 3
"""To put one pair into a bucket takes as long as this many steps of merges."""
_SAMPLE = 64
"""Left events by which pairs are estimated."""
_CELLS_OF_A_BUCKET = 4
"""Most cells hold no edge then, and they stay in the cache."""
_CELLS = 1 << 20
"""Buckets of all groups that a task fills."""
_MOST_PAIRS = 1 << 28
"""Pairs that a task may add up: the limbs have room for more, and a signal waits for no more."""


class _Part(NamedTuple):
    """Groups, and the left positions of them that a task looks at."""

    first_group: int
    stop_group: int
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class StampCounter:
    """Exact delays of two sides, whose groups are the same, sorted once for any edges."""

    left: Stamps
    right: Stamps
    threads: int
    is_one_stream: bool = False

    def pairs(self, edges: Sequence[int]) -> np.ndarray:
        """Pairs by group and bucket, the last one with its upper edge: int64, shape (groups, buckets).

        Edges are ticks and ascend. Where both sides are one stream no event meets itself.
        """
        bounds = np.array([2 * edge for edge in edges], np.int64)
        bounds[-1] += 1
        first, last = self._few(bounds)
        parts = bounds[: first + 1], bounds[first : last + 1], bounds[last:]
        ways = self._by_edges, self._one_by_one, self._by_edges
        counts = np.concatenate(
            [way(part) for way, part in zip(ways, parts, strict=True) if part.size > 1], axis=1
        )
        if self.is_one_stream and bounds[0] <= 0 < bounds[-1]:
            counts[:, np.searchsorted(bounds, 0, "right") - 1] -= np.diff(self.left.offsets)
        return counts

    def _few(self, bounds: np.ndarray) -> tuple[int, int]:
        """Between which edges so few pairs are that they are put into their buckets one by one."""
        seen = np.zeros(bounds.size - 1, np.int64)
        steps = self.left.times.size + self.right.times.size
        stride = max(1, self.left.times.size // _SAMPLE)
        sample_pairs(self.left, self.right, bounds, stride, seen)
        gains = np.append(0.0, np.cumsum(steps - float(_STEPS_OF_A_PAIR * stride) * seen))
        last = int(np.argmax(gains - np.minimum.accumulate(gains)))
        first = int(np.argmin(gains[: last + 1]))
        # The sample may lack a burst.
        near = count_within(self.left, self.right, bounds[first], bounds[last])
        is_right = int(near) * _STEPS_OF_A_PAIR <= steps * (last - first)
        return (first, last) if is_right else (0, 0)

    def _one_by_one(self, bounds: np.ndarray) -> np.ndarray:
        """Each pair is put into its bucket."""
        counts = np.zeros((self._groups, bounds.size - 1), np.int64)
        table = np.empty(_CELLS_OF_A_BUCKET * bounds.size, np.int64)
        fill_cells(bounds, table)

        def count(part: _Part) -> list[tuple[_Part, np.ndarray]]:
            own = np.zeros((part.stop_group - part.first_group, bounds.size - 1), np.int64)
            bin_pairs(*part, self.left, self.right, bounds, table, own)
            step(part.stop - part.start)
            return [(part, own)]

        parts = _parts(self.left.offsets, bounds.size, self.threads)
        for part, own in in_order(count, parts, self.threads):
            counts[part.first_group : part.stop_group] += own
        return counts

    def _by_edges(self, bounds: np.ndarray) -> np.ndarray:
        """For each edge one merge of both sides, whatever the number of pairs."""
        runs = -(-bounds.size // LANES)
        padded = np.full(runs * LANES, bounds[-1])
        padded[: bounds.size] = bounds
        below = np.empty((runs, self._groups, LANES), np.int64)

        def count(run: int) -> list[None]:
            edges = padded[run * LANES : (run + 1) * LANES]
            count_below(0, self._groups, self.left, self.right, edges, below[run])
            step(self.left.times.size // runs)
            return [None]

        for _ in in_order(count, range(runs), self.threads):
            pass
        whole = below.transpose(1, 0, 2).reshape(self._groups, padded.size)[:, : bounds.size]
        return np.diff(whole, axis=1)

    @property
    def _groups(self) -> int:
        return self.left.offsets.size - 1


def stamps(times: np.ndarray, group: np.ndarray, groups: int, threads: int) -> Stamps:
    """Doubled midpoints, half ticks, by group and time; int64 arrays, groups from 0."""
    order = stable_order(times, None if groups == 1 else group, threads)
    return Stamps(times[order], _offsets(group, groups))


def supports(
    latest: np.ndarray,
    lengths: np.ndarray,
    shapes: np.ndarray,
    group: np.ndarray,
    groups: int,
    rows: np.ndarray,
) -> Supports:
    """Uncertain times by group, class of lengths and latest time: a class is twice as long at most."""
    # The longest of a class bounds how far its events reach: a long one costs the short ones nothing.
    found, kinds = np.unique(np.frexp(lengths.astype(float))[1], return_inverse=True)
    number = group * max(found.size, 1) + kinds
    order = stable_order(latest, number)
    longest = np.zeros(max(found.size, 1), np.int64)
    np.maximum.at(longest, kinds, lengths)
    offsets = _offsets(number, groups * longest.size)
    return Supports(rows[order], latest[order], lengths[order], shapes[order], offsets, longest)


def mass_histogram(
    left: Supports, right: Supports, masses: Masses, groups: int, threads: int
) -> np.ndarray:
    """Sums of probabilities by group and bucket: float64, shape (groups, buckets).

    Each mass is a whole multiple of 2^-62 and they are added up exactly, so that no order changes a bit.
    """
    buckets = masses.edges.size - 1
    total = np.zeros((3, groups, buckets), np.int64)
    of_left = left.offsets[:: left.longest.size]
    own = left._replace(offsets=np.ascontiguousarray(of_left))

    def add(part: _Part) -> list[tuple[_Part, np.ndarray]]:
        limbs = np.zeros((2, part.stop_group - part.first_group, buckets), np.int64)
        add_masses(*part, own, right, masses, *limbs)
        step(part.stop - part.start)
        return [(part, limbs)]

    most = max(1, _MOST_PAIRS // max(1, right.rows.size))
    for part, limbs in in_order(add, _parts(of_left, buckets, threads, most), threads):
        _carry(total[:, part.first_group : part.stop_group], limbs)
    ones, upper, lower = total
    return ones + ((upper << LIMB_BITS) | lower) / float(WHOLE)


def _carry(total: np.ndarray, limbs: np.ndarray) -> None:
    """Add limbs to sums: whole pairs, and two limbs of the rest."""
    mask = (1 << LIMB_BITS) - 1
    lower = total[2] + limbs[1]
    upper = total[1] + limbs[0] + (lower >> LIMB_BITS)
    total[0] += upper >> LIMB_BITS
    total[1], total[2] = upper & mask, lower & mask


def _parts(
    offsets: np.ndarray, buckets: int, threads: int, most: int | None = None
) -> Iterator[_Part]:
    """Groups of no more than `_CELLS` buckets together, and in them at most `most` left positions."""
    groups = offsets.size - 1
    size = max(1, _CELLS // buckets)
    for first in range(0, groups, size):
        stop = min(groups, first + size)
        begin, end = int(offsets[first]), int(offsets[stop])
        for a, b in blocks_of(end - begin, threads):
            for c in range(a, b, most or b - a):
                yield _Part(first, stop, begin + c, begin + min(b, c + (most or b - a)))


def _offsets(group: np.ndarray, groups: int) -> np.ndarray:
    """Where each group begins once rows are in their order: int64, shape (groups + 1,)."""
    return np.append(0, np.cumsum(np.bincount(group, minlength=groups)[:groups])).astype(np.int64)
