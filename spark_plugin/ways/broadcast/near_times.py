"""When partners of a small side's events can be: a test in SQL that most rows of a sparse join fail.

Time is cut into cells, of which each has a bit. A row is looked up by the cell in which its support
begins, and needs no length of the large side: rows longer than a margin pass, and the bits of all shorter
ones are set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from coincide.condition import Window
from spark_plugin.dataframes.columns import literal
from spark_plugin.worker.arrow.sides import Side

_MOST_CELLS = 1 << 22
"""Bits: half a megabyte."""
_FULL = 0.9
"""Of so many cells in use, the test is not worth its time."""
_WORD = 6


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

    def has(self, spark: SparkSession) -> Column:
        """Whether a valid row of ``low`` and ``high`` can have a partner: boolean."""
        if not self.words.size:
            return F.expr("low > high")  # of a plain false Spark leaves out what is counted, too
        # Of a literal every plan that is shown or logged would hold all words.
        told = spark.createDataFrame(pa.table({"words": pa.array([self.words])}))
        cell = f"(shiftright(low, {self.width}) - {literal(self.first)})"
        word = F.get(told.scalar(), F.expr(f"CAST(shiftright({cell}, {_WORD}) AS INT)"))
        bit = F.expr(f"shiftleft(1L, CAST({cell} & 63L AS INT))")
        last = literal((self.words.size << _WORD) - 1)
        return (
            F.when(F.expr(f"high - low > {literal(self.margin)}"), F.lit(True))
            .when(F.expr(f"{cell} BETWEEN 0L AND {last}"), word.bitwiseAND(bit) != 0)
            .otherwise(F.lit(False))
        )


def near_cells(
    small: Side, is_left: bool, window: Window, longest: int | None = None
) -> NearCells | None:
    """Where rows of the large side begin that can have partners.

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
    NearCells or None
        None where nearly all cells are in use, so that nothing would be gained.
    """
    rows = slice(None) if small.matchable is None else small.matchable
    high, lengths = small.max_time[rows], small.lengths[rows]
    if not high.size:
        return NearCells(0, 0, high, 0)
    lo, hi = (window.lo, window.hi) if is_left else (-window.hi, -window.lo)
    # Where the support of a partner has a point, in whole ticks.
    first, last = high - lengths + lo, high + hi
    reach = int(np.median(last - first))
    if longest is None:
        longest = _margin(lengths, reach, int(last.max()) - int(first.min()))
    reach += longest
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


def _margin(lengths: np.ndarray, reach: int, span: int) -> int:
    """The length up to which rows are told apart, so that fewest pass if they are as long as events.

    Of n events over a span about ``n * (length + reach) / span`` of the short rows pass, and all others.
    """
    upto = np.sort(lengths)
    n = upto.size
    passing = n * (upto + float(reach)) / max(span, 1) - np.arange(1, n + 1) / n
    return int(upto[np.argmin(passing)])
