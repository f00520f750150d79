"""The kernels of aggregates: count, add up and compare the matches of a base event. Numba, no GIL.

Sums are differences of sums before each target (`cpu_fallback.aggregates.digits`). Least values are
looked up in sparse tables over blocks of targets. So the targets between the inner cursors of
`cpu_fallback.join.kernels` cost the same however many they are; those in the shell are probed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.model.compiled import compiled
from coincide.model.range_sums import BLOCK_BITS, NOTHING, Found, Prepared, least_between
from coincide.model.timestamps.protocol import difference

_BLOCK = 1 << BLOCK_BITS


def tables_of(codes: np.ndarray) -> np.ndarray:
    """Tables of the least codes: int64 array, shape (columns, levels, blocks)."""
    blocks = -(-codes.shape[1] // _BLOCK)
    tables = np.full((codes.shape[0], max(1, blocks.bit_length()), blocks), NOTHING)
    for column, table in zip(codes, tables, strict=True):
        _fill_table(column, table)
    return tables


@compiled
def _fill_table(codes, table):
    n, blocks = codes.size, table.shape[1]
    for b in range(blocks):
        least = NOTHING
        for t in range(b << BLOCK_BITS, min(n, (b + 1) << BLOCK_BITS)):
            least = min(least, codes[t])
        table[0, b] = least
    for k in range(1, table.shape[0]):
        half = 1 << (k - 1)
        for b in range(blocks - 2 * half + 1):
            table[k, b] = min(table[k - 1, b], table[k - 1, b + half])


class Aggregates(NamedTuple):
    """Takes the matches of a walk into what is found: a `cpu_fallback.join.kernels.Taker`."""

    prepared: Prepared
    found: Found

    def take(self, sides, e, row, first, inner, shell, last):
        """Take runs that qualify: those that are probed go on in those that qualify unseen."""
        prepared, found = self.prepared, self.found
        known = found.counts[row]
        begun = _take_runs(sides, prepared, e, first, first, inner, found, row)
        begun = _take_runs(sides, prepared, e, begun, shell, last, found, row)
        _take_range(prepared, begun, last, found, row)
        return found.counts[row] - known - (shell - inner)


@compiled
def _take_range(prepared, start, stop, found, row):
    """Take the targets start ... stop, all of which qualify."""
    if start >= stop:
        return
    before, codes = prepared.before, prepared.codes
    found.counts[row] += stop - start
    for c in range(before.shape[1]):
        found.sums[row, c] += before[stop, c] - before[start, c]
    for c in range(codes.shape[0]):
        least = least_between(codes[c], prepared.tables[c], start, stop)
        found.least[row, c] = min(found.least[row, c], least)


@compiled(forceinline=True)
def _take_runs(sides, prepared, i, begun, start, stop, found, row):
    """Probe the targets start ... stop; take runs that end there, and return where the last one begins."""
    rule, base, targets = sides.rule, sides.base, sides.targets
    for t in range(start, stop):
        s = difference(rule, base.keys[i], base.shapes[i], targets.keys[t], targets.shapes[t])
        if not rule.qualifies(s, base.shapes[i], targets.shapes[t]):
            _take_range(prepared, begun, t, found, row)
            begun = t + 1
    return begun


@compiled
def aggregate_pairs(offsets, start, stop, before, codes, found):
    """Take the pairs start ... stop of base events whose pairs begin at `offsets` into what was found."""
    # `before` and `codes` have these pairs alone.
    row = np.searchsorted(offsets, start, side="right") - 1
    at = start
    while at < stop:
        while offsets[row + 1] <= at:
            row += 1
        end = min(stop, offsets[row + 1])
        a, b = at - start, end - start
        found.counts[row] += b - a
        for c in range(before.shape[1]):
            found.sums[row, c] += before[b, c] - before[a, c]
        for c in range(codes.shape[0]):
            for p in range(a, b):
                found.least[row, c] = min(found.least[row, c], codes[c, p])
        at = end
