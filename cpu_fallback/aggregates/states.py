"""Exact sums on their way from one task to another: words of 16 bits on one grid, whatever digits they had.

A number is the sum of word * 2 ** (16 * place) over its places. Its words are those of the two's
complement, the lowest first, without those at either end that say nothing. Before them comes the place of
the first. 0 has no words. So numbers that were found apart add up word by word, of floats of any size, too.
"""

from __future__ import annotations

import numpy as np

from coincide.model.compiled import compiled
from cpu_fallback.aggregates.digits import carried

BITS = 16
"""Bits of a word: the words of 2 ** 46 numbers add up in 64 bits, and a divisor may be as great."""
_MASK, _HALF = (1 << BITS) - 1, 1 << (BITS - 1)
_MORE = 6
"""Words that a digit of 64 bits reaches into, and one for the sign."""


def told_sums(sums: np.ndarray, width: int, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Words of sums of digits, int64, shape (n, count): int16 array, and where each number begins."""
    place = first // BITS
    sums = np.ascontiguousarray(sums)
    starts = np.zeros(len(sums) + 1, np.int64)
    _fill_words(sums, width, first - BITS * place, place, starts, np.empty(0, np.int16))
    np.cumsum(starts, out=starts)
    words = np.empty(starts[-1], np.int16)
    _fill_words(sums, width, first - BITS * place, place, starts, words)
    return words, starts


@compiled(allocates=True)
def _fill_words(sums, width, shift, place, starts, out):
    """Words of sums; where there is no room for them, how many each has: entry i + 1 for number i."""
    n, count = sums.shape
    words = np.empty(((shift + (count - 1) * width) // BITS) + _MORE, np.int64)
    for i in range(n):
        words[:] = 0
        for k in range(count):
            bit = shift + k * width
            j, own = bit // BITS, bit % BITS
            rest = sums[i, k]
            words[j] += (rest & ((1 << (BITS - own)) - 1)) << own
            rest >>= BITS - own
            for more in range(1, _MORE - 2):
                words[j + more] += rest & _MASK
                rest >>= BITS
            words[j + _MORE - 2] += rest
        carried(words, BITS)
        last = words.size - 1
        words[last] &= _MASK
        while last > 0 and words[last] == (_MASK if words[last - 1] & _HALF else 0):
            last -= 1
        low = 0
        while low < last and words[low] == 0:
            low += 1
        size = 0 if last == 0 and words[0] == 0 else last - low + 2
        if not out.size:
            starts[i + 1] = size
        elif size:
            at = starts[i]
            out[at] = place + low
            for k in range(low, last + 1):
                out[at + 1 + k - low] = words[k] - ((words[k] & _HALF) << 1)


def extent(words: np.ndarray, starts: np.ndarray) -> tuple[int, int]:
    """The first place of such numbers, and the one after the last; 0 and 0 of none."""
    begins, sizes = starts[:-1], np.diff(starts)
    begins, sizes = begins[sizes > 0], sizes[sizes > 0]
    if not begins.size:
        return 0, 0
    places = words[begins].astype(np.int64)
    return int(places.min()), int((places + sizes).max()) - 1


@compiled
def put_words(words, starts, first, out):
    """The words of such numbers by place, from `first` on: int64, shape (n, places)."""
    for i in range(starts.size - 1):
        at, end = starts[i], starts[i + 1]
        if at == end:
            continue
        place = np.int64(words[at]) - first
        for k in range(at + 1, end):
            word = np.int64(words[k])
            # All but the last are without a sign.
            out[i, place] = word if k == end - 1 else word & _MASK
            place += 1
