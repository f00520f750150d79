"""The order of many numbers that fit a word with their rows, equal ones by row, by several threads."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from coincide.model.compiled import compiled
from coincide.model.threads import kept_busy, run_tasks

_FEW = 1 << 15
_WORD = 64
_DIGIT_BITS, _VALUES = 8, 256
"""So few values of a digit that all places that are written to stay in the cache."""
_BUCKET_BITS, _MOST_BITS = 12, 11
"""Buckets of about 2**12 rows stay there, too, if there are no more than 2**11 of them."""
_SHORT = 24
"""Rows that are in order sooner by insertion than by digits."""
_PARTS_OF_A_THREAD = 4


class Digits(NamedTuple):
    """How a number is cut, a key above the least one with its group before it: in bits."""

    least: np.uint64
    key: np.uint64
    rest: np.uint64  # All but the bucket
    row: np.uint64
    buckets: int

    @classmethod
    def of(cls, keys: np.ndarray, group: np.ndarray) -> Digits | None:
        """None for few rows, or where a number, or all but its bucket with the row, does not fit a word."""
        if keys.size < _FEW:
            return None
        least, row = keys.min(), (keys.size - 1).bit_length()
        key = (int(keys.max()) - int(least)).bit_length()
        bits = key + int(group.max(initial=0)).bit_length()
        bucket = min(bits, max(1, min(_MOST_BITS, row - _BUCKET_BITS)))
        if bits > _WORD or bits - bucket + row > _WORD:
            return None
        word = np.uint64
        return cls(least.view(word), word(key), word(bits - bucket), word(row), 1 << bucket)


def packed_order(keys: np.ndarray, group: np.ndarray, digits: Digits, threads: int) -> np.ndarray:
    """Deal rows to buckets by the first digits, and put each bucket in order by the others."""
    n = keys.size
    threads = kept_busy(n, threads)
    parts = list(pairwise(n * k // threads for k in range(threads + 1)))
    places = np.zeros((threads, digits.buckets), np.int64)
    given = keys, group, digits
    run_tasks([partial(_count, *part, *given, places[k]) for k, part in enumerate(parts)], threads)
    # The rows of a bucket that come first are those of the first thread.
    ends = np.cumsum(places.T).reshape(-1, threads).T
    places = np.ascontiguousarray(ends - places)
    bounds = np.append(0, ends[-1])
    packed, order = np.empty((2, n), np.uint64), np.empty(n, np.int64)
    run_tasks(
        [partial(_deal, *part, *given, places[k], packed[0]) for k, part in enumerate(parts)],
        threads,
    )
    shares = threads * _PARTS_OF_A_THREAD
    cuts = np.searchsorted(bounds, [n * k // shares for k in range(1, shares)]).tolist()
    runs = pairwise([0, *cuts, digits.buckets])
    run_tasks([partial(_sort, *run, bounds, digits, *packed, order) for run in runs], threads)
    return order


@compiled(forceinline=True)
def _number(keys, group, digits, i):
    """How far a key is above the least one, after its group."""
    number = np.uint64(keys[i]) - digits.least
    return number | (np.uint64(group[i]) << digits.key) if group.size else number


@compiled
def _count(start, stop, keys, group, digits, places):
    """How many of the rows start ... stop go to each bucket."""
    for i in range(start, stop):
        places[_number(keys, group, digits, i) >> digits.rest] += 1


@compiled
def _deal(start, stop, keys, group, digits, places, packed):
    """Put the other digits of the rows start ... stop into buckets, each with its row behind them."""
    others = (np.uint64(1) << digits.rest) - np.uint64(1)
    for i in range(start, stop):
        number = _number(keys, group, digits, i)
        bucket = number >> digits.rest
        at = places[bucket]
        places[bucket] = at + 1
        packed[at] = ((number & others) << digits.row) | np.uint64(i)


@compiled(allocates=True)
def _sort(first, last, bounds, digits, packed, spare, order):
    """Put buckets first ... last in order."""
    rows = (np.uint64(1) << digits.row) - np.uint64(1)
    rest = (np.int64(digits.rest) + _DIGIT_BITS - 1) // _DIGIT_BITS
    places = np.empty((rest, _VALUES), np.int64)
    for bucket in range(first, last):
        start, stop = bounds[bucket], bounds[bucket + 1]
        own, other = packed[start:stop], spare[start:stop]
        if own.size <= _SHORT:
            _insert(own)
        else:
            _begin(own, digits.row, places)
            for digit in range(rest):
                if places[digit, 0] >= 0:
                    _pass(own, digits.row + np.uint64(_DIGIT_BITS * digit), places[digit], other)
                    own, other = other, own
        for i in range(own.size):
            order[start + i] = np.int64(own[i] & rows)


@compiled
def _insert(numbers):
    for i in range(1, numbers.size):
        number, j = numbers[i], i
        while j > 0 and numbers[j - 1] > number:
            numbers[j] = numbers[j - 1]
            j -= 1
        numbers[j] = number


@compiled
def _begin(numbers, row_bits, places):
    """Where the first of each value of each digit goes; below 0 for a digit that all have alike."""
    places[:] = 0
    for number in numbers:
        rest = number >> row_bits
        for digit in range(places.shape[0]):
            places[digit, rest & np.uint64(_VALUES - 1)] += 1
            rest >>= np.uint64(_DIGIT_BITS)
    for digit in range(places.shape[0]):
        at, alike = np.int64(0), False
        for value in range(_VALUES):
            count = places[digit, value]
            alike |= count == numbers.size
            places[digit, value] = at
            at += count
        if alike:
            places[digit, 0] = -1


@compiled
def _pass(numbers, shift, places, out):
    """Put numbers in the order of one digit."""
    for number in numbers:
        value = (number >> shift) & np.uint64(_VALUES - 1)
        at = places[value]
        places[value] = at + 1
        out[at] = number
