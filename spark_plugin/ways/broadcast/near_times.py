"""When partners of a small side's events can be: a test in SQL that most rows of a sparse join fail.

Time is cut into cells, of which each has a bit. A row is looked up by the cell in which its support
begins, and needs no length of the large side: rows longer than a margin pass, and the bits of all shorter
ones are set.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

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
"""Of so many cells in use, what lies before all and after all is told apart in less time."""
_FEW_CELLS = 32
_SURE = 0.5
"""Of no more cells in use, that no row passes for its length is worth them."""
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
        cell = f"(shiftright(low, {self.width}) - {literal(self.first)})"
        if self.words.size == 1:
            word = F.lit(int(self.words[0])).cast("bigint")
        else:
            # Of a literal every plan that is shown or logged would hold all words.
            told = spark.createDataFrame(pa.table({"words": pa.array([self.words])}))
            word = F.get(told.scalar(), F.expr(f"CAST(shiftright({cell}, {_WORD}) AS INT)"))
        bit = F.expr(f"shiftleft(1L, CAST({cell} & 63L AS INT))")
        last = literal((self.words.size << _WORD) - 1)
        return (
            F.when(F.expr(f"high - low > {literal(self.margin)}"), F.lit(True))
            .when(F.expr(f"{cell} BETWEEN 0L AND {last}"), word.bitwiseAND(bit) != 0)
            .otherwise(F.lit(False))
        )


def near_cells(small: Side, is_left: bool, window: Window, longest: int | None = None) -> NearCells:
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
        Of the supports of rows, ticks, where that is known: then none of them passes for its length.

    Returns
    -------
    NearCells
        Few where nearly all are in use.
    """
    rows = slice(None) if small.matchable is None else small.matchable
    high, lengths = small.max_time[rows], small.lengths[rows]
    if not high.size:
        return NearCells(0, 0, high, 0)
    lo, hi = (window.lo, window.hi) if is_left else (-window.hi, -window.lo)
    # Where the support of a partner has a point, in whole ticks.
    first, last = high - lengths + lo, high + hi
    reach = int(np.median(last - first))
    cells_upto = partial(_cells, first, last, reach)
    choices = [] if longest is None else [cells_upto(longest)]
    if not choices or choices[0][0] > _SURE:  # declared to be safe, it may be far too long
        span = int(last.max()) - int(first.min())
        choices.append(cells_upto(_margin(lengths, reach, span)))
    share, cells = min(choices, key=lambda choice: choice[0])
    return cells if share <= _FULL else cells_upto(cells.margin, _FEW_CELLS)[1]


def _cells(
    first: np.ndarray, last: np.ndarray, reach: int, longest: int, most: int = _MOST_CELLS
) -> tuple[float, NearCells]:
    """About as many cells as are asked for at most, and which share of them is in use.

    For rows no longer than that, where partners have points from `first` to `last`.
    """
    width = max((reach + longest) // 4, 1).bit_length() - 1
    while (int(last.max()) - int(first.min())) >> width >= most:
        width += 1
    margin = max(longest, 1 << width)
    begins, ends = (first - margin) >> width, last >> width
    start = int(begins.min())
    count = int(ends.max()) - start + 1
    steps = np.zeros(count + 1, np.int32)
    np.add.at(steps, begins - start, 1)
    np.subtract.at(steps, ends - start + 1, 1)
    is_near = np.zeros((count | 63) + 1, bool)
    is_near[:count] = np.cumsum(steps[:count], dtype=np.int32) > 0
    words = np.packbits(is_near, bitorder="little").view("<i8").astype(np.int64)
    return np.count_nonzero(is_near) / count, NearCells(width, start, words, margin)


def _margin(lengths: np.ndarray, reach: int, span: int) -> int:
    """The length up to which rows are told apart, so that fewest pass if they are as long as events.

    Of n events over a span about ``n * (length + reach) / span`` of the short rows pass, and all others.
    """
    upto = np.sort(lengths)
    n = upto.size
    passing = n * (upto + float(reach)) / max(span, 1) - np.arange(1, n + 1) / n
    return int(upto[np.argmin(passing)])
