"""When partners of a small side's events can be: a test in SQL that most rows of a sparse join fail.

Time is cut into cells, of which each has a bit. A row is looked up by the cell in which its support
begins, and needs no length of the large side: rows longer than a margin pass, and the bits of all shorter
ones are set.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np

from coincide.condition import Window
from spark_plugin.dataframes.columns import literal
from spark_plugin.worker.arrow.sides import Side

_MOST_CELLS = 1 << 22
"""Bits; as text in a plan they take up to 1.4 MB."""
_FULL = 0.9
"""Of so many cells in use, the test is not worth its time."""
_WORD = 6


def near_times(small: Side, is_left: bool, window: Window, longest: int | None = None) -> str:
    """SQL of whether a valid row of the large side, of ``low`` and ``high``, can have a partner.

    Parameters
    ----------
    small : Side
        The other side.
    is_left : bool
        Whether that is the left one.
    window : Window
        The widest on ``t_right - t_left``, ticks.
    longest : int, optional
        Of the supports of rows, ticks, where that is known.

    Returns
    -------
    str
        Of a boolean; ``"true"`` where nothing would be gained.
    """
    cells = near_cells(small, is_left, window, longest)
    if cells is None:
        return "true"
    return cells.sql if cells.words.size else "false"


@dataclass(frozen=True, eq=False)
class NearCells:
    """Cells of time in which rows can begin that have partners.

    Parameters
    ----------
    width : int
        Binary logarithm of the ticks of a cell.
    first : int
        The first cell: ticks shifted right by `width`.
    words : int64 array
        A bit for each cell from the first on.
    margin : int
        Most ticks of a support that the cells hold for.
    """

    width: int
    first: int
    words: np.ndarray
    margin: int

    @property
    def sql(self) -> str:
        """As of `near_times`."""
        cell = f"(shiftright(low, {self.width}) - {literal(self.first)})"
        words = f"from_json('{json.dumps(self.words.tolist())}', 'array<bigint>')"
        # In the test itself each plan that Spark shows or logs would have all of them in it.
        words = f"(SELECT words FROM VALUES ({words}) AS near_times (words))"
        word = f"get({words}, CAST(shiftright({cell}, {_WORD}) AS INT))"
        cells = literal((self.words.size << _WORD) - 1)
        bit = f"({word} & shiftleft(1L, CAST({cell} & 63L AS INT))) <> 0L"
        is_long = f"high - low > {literal(self.margin)}"
        return f"CASE WHEN {is_long} THEN true WHEN {cell} BETWEEN 0L AND {cells} THEN {bit} ELSE false END"


def near_cells(small: Side, is_left: bool, window: Window, longest: int | None) -> NearCells | None:
    """The cells of `near_times`; None where nearly all are in use."""
    rows = slice(None) if small.matchable is None else small.matchable
    high, lengths = small.max_time[rows], small.lengths[rows]
    if not high.size:
        return NearCells(0, 0, high, 0)
    lo, hi = (window.lo, window.hi) if is_left else (-window.hi, -window.lo)
    # Where the support of a partner has a point, in whole ticks.
    first, last = high - lengths + lo, high + hi
    if longest is None:  # on both sides they are mostly alike
        longest = int(lengths.max())
    reach = int(np.median(last - first)) + longest
    width = max(reach // 4, 1).bit_length() - 1
    while (int(last.max()) - int(first.min())) >> width >= _MOST_CELLS:
        width += 1
    margin = max(longest, 1 << width)
    begins, ends = (first - margin) >> width, last >> width
    start = int(begins.min())
    cells = (int(ends.max()) - start | 63) + 1
    steps = np.bincount(begins - start, minlength=cells + 1)
    steps -= np.bincount(ends - start + 1, minlength=cells + 1)
    is_near = np.cumsum(steps)[:cells] > 0
    if is_near.mean() > _FULL:
        return None
    words = np.packbits(is_near, bitorder="little").view("<i8").astype(np.int64)
    return NearCells(width, start, words, margin)
