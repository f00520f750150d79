"""Cells of space for a causality join, and which cells can hold matches of each other, at what deltas.

Cells are numbered row by row, so that neighbours in the last dimension are
neighbours in the order of their numbers: of each row of cells around a cell a join visits one run
of numbers. What a cell and one at a given offset from it leave of the window on delta, its *slab*,
is computed once for each offset.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product as combinations
from typing import NamedTuple

import numpy as np

from coincide.model.causality.deciding import PairRule, window_between
from coincide.model.causality.spaces import squared_arc
from coincide.model.compiled import Float64s, Int64s
from coincide.model.units import UNBOUNDED

_GUARD = 1e-8
"""What bounds are widened by, relatively: more than a coordinate moves, in cells, by being rounded."""
_MOST_NUMBERS = 2**62
_MOST_CELLS = 2**20
"""In one dimension: rounding a coordinate moves it by far less than `_STRETCH` of this many cells."""
_STRETCH = 1 + 2.0**-28
DIMENSIONS = 4
NEVER = 1, 0
"""The slab of two cells of which no pair can qualify."""


class CellNumbers(NamedTuple):
    """How events get the number of their cell."""

    origin: Float64s  # float64, shape (4,): where cells begin, by x, y, z, h
    per_unit: Float64s  # float64, shape (4,): cells in one unit; 0 where there is but one
    stride: Int64s  # int64, shape (5,)


class Neighbours(NamedTuple):
    """The runs of cell numbers around a cell, a row of cells each."""

    offsets: np.ndarray  # int64, shape (rows,): first number of the run, less the cell's own
    widths: np.ndarray  # int64, shape (rows,): cells in the run
    slabs: np.ndarray  # int64, shape (rows, most cells of a run, 2)


@dataclass(frozen=True, eq=False)
class Grid:
    """Cells and their neighbours."""

    numbers: CellNumbers
    neighbours: Neighbours
    most: int  # Every number is below it
    cells: int  # About how many cells of a group there are where events can be
    gap: float  # The largest |x - y|² of a pair that can qualify, or a little more


def make_grid(
    rule: PairRule, reach: float, low: np.ndarray, high: np.ndarray, groups: int, fineness: int
) -> Grid | None:
    """A grid over the places of two sides."""
    extent = np.maximum(high - low, 0.0)
    size, steps = _sizes(rule, reach, extent, groups, fineness)
    cells = np.array(
        [1 if k == 0 else int(e / s) + 1 for e, s, k in zip(extent, size, steps, strict=True)]
    )
    if cells.max() == 1:
        return None
    order = np.argsort(cells, kind="stable")  # the dimension of most cells last
    stride, total = np.zeros(DIMENSIONS + 1, np.int64), 1
    for d in order[::-1].tolist():
        stride[d] = total
        # A gap, so that no neighbour beyond an end is a cell at the other end.
        total *= int(cells[d] + steps[d])
    stride[DIMENSIONS] = total
    per_unit = np.where(steps > 0, 1.0 / size, 0.0)
    numbers = CellNumbers(np.ascontiguousarray(low, np.float64), per_unit, stride)
    neighbours = _neighbours(rule, reach, extent, size, steps, order, stride)
    # On a sphere events lie on a surface.
    cells = np.sort(cells)
    occupied = int(cells[-2:].prod()) if rule.curvature else int(cells.prod())
    radius = reach / math.sqrt(rule.curvature) if rule.curvature else reach
    return Grid(numbers, neighbours, total * groups, occupied, radius**2 * (1 + _GUARD))


def one_cell(window: tuple[int, int], groups: int) -> Grid:
    """The grid of events that need no places: one cell a group, as the window holds for all."""
    zeros = np.zeros(DIMENSIONS)
    stride = np.array([0] * DIMENSIONS + [1], np.int64)
    slabs = np.array([[window]], np.int64)
    neighbours = Neighbours(np.zeros(1, np.int64), np.ones(1, np.int64), slabs)
    return Grid(CellNumbers(zeros, zeros, stride), neighbours, groups, 1, math.inf)


def _sizes(
    rule: PairRule, reach: float, extent: np.ndarray, groups: int, fineness: int
) -> tuple[np.ndarray, np.ndarray]:
    """Size of a cell in each dimension, and how many cells the reach spans; 0 where there is but one."""
    reaches = np.full(DIMENSIONS, reach)
    if rule.curvature:
        # A chord is never longer than its arc.
        reaches[:3] = reach / math.sqrt(rule.curvature)
    dimensions = max(1, int((extent > reaches).sum()))
    most = min(_MOST_CELLS, int((_MOST_NUMBERS / groups) ** (1 / dimensions)) // 2)
    size, steps = np.ones(DIMENSIONS), np.zeros(DIMENSIONS, np.int64)
    for d in range(DIMENSIONS):
        # One cell a reach would do as well as a single one; so would none where all lie together.
        if extent[d] > reaches[d]:
            size[d] = max(reaches[d] * (1 + _GUARD) / fineness, extent[d] / most) * _STRETCH
            steps[d] = max(1, math.ceil(reaches[d] * (1 + _GUARD) / size[d]))
    return size, steps


def _neighbours(
    rule: PairRule,
    reach: float,
    extent: np.ndarray,
    size: np.ndarray,
    steps: np.ndarray,
    order: np.ndarray,
    stride: np.ndarray,
) -> Neighbours:
    last = int(order[-1])
    offsets, runs = [], []
    for leading in combinations(*(range(-steps[d], steps[d] + 1) for d in order[:-1])):
        offset = np.zeros(DIMENSIONS, np.int64)
        offset[order[:-1]] = leading
        run = []
        for along in range(-int(steps[last]), int(steps[last]) + 1):
            offset[last] = along
            run.append(_slab(rule, reach, extent, size, steps, offset))
        kept = [i for i, (lo, hi) in enumerate(run) if lo <= hi]
        if kept:
            begin = int((offset * stride[:DIMENSIONS]).sum()) - 2 * int(steps[last])
            offsets.append(begin + kept[0])
            runs.append(run[kept[0] : kept[-1] + 1])
    slabs = np.empty((len(runs), 2 * int(steps[last]) + 1, 2), np.int64)
    slabs[:] = NEVER
    for row, run in zip(slabs, runs, strict=True):
        row[: len(run)] = run
    return Neighbours(
        np.array(offsets, np.int64), np.array([len(run) for run in runs], np.int64), slabs
    )


def _slab(
    rule: PairRule,
    reach: float,
    extent: np.ndarray,
    size: np.ndarray,
    steps: np.ndarray,
    offset: np.ndarray,
) -> tuple[int, int]:
    """The window on delta of two cells at an offset, a little wider than needed; `NEVER` for none."""
    apart = np.where(steps > 0, np.maximum(np.abs(offset) - 1, 0) * size, 0.0) * (1 - _GUARD)
    across = np.where(steps > 0, (np.abs(offset) + 1) * size, extent) * (1 + _GUARD)
    nearest = _squared(rule, apart)
    # No pair farther apart than the reach qualifies, so that its deltas do not count.
    farthest = min(_squared(rule, across), reach**2) * (1 + _GUARD)
    if nearest > reach**2 * (1 + _GUARD):
        return NEVER
    lo, hi = window_between(rule, nearest * (1 - _GUARD), farthest)
    return (int(lo), int(hi)) if lo <= hi else NEVER


def _squared(rule: PairRule, lengths: np.ndarray) -> float:
    """The squared distance of lengths by x, y, z and h."""
    gap = float((lengths[:3] ** 2).sum())
    if not rule.curvature:
        return gap
    return rule.curvature * squared_arc(min(gap, 4.0)) + float(lengths[3]) ** 2


assert UNBOUNDED == _MOST_NUMBERS
