"""The assignment of the greatest gain, by shortest augmenting paths (Crouse, 2016)."""

from __future__ import annotations

import numpy as np

from coincide.model.compiled import compiled


def greatest_assignment(gains: np.ndarray) -> np.ndarray:
    """The column of each row, -1 of no column, so that the sum of gains is greatest: int64 array.

    `gains`: float64 array, shape (rows, columns), of whole numbers whose sums are exact.
    """
    rows, columns = gains.shape
    is_tall = rows > columns
    costs = np.ascontiguousarray(-(gains.T if is_tall else gains), dtype=np.float64)
    of_short, of_long = np.full(costs.shape[0], -1), np.full(costs.shape[1], -1)
    _assign(costs, of_short, of_long)
    return of_long if is_tall else of_short


@compiled(allocates=True)
def _assign(costs, column_of, row_of):
    """Give each row a column of its own, so that costs are least; there are as many columns at least."""
    rows, columns = costs.shape
    of_rows, of_columns = np.zeros(rows), np.zeros(columns)  # the dual variables
    least, before = np.empty(columns), np.empty(columns, np.int64)
    seen_rows, seen = np.empty(rows, np.bool_), np.empty(columns, np.bool_)
    left = np.empty(columns, np.int64)
    for begin in range(rows):
        seen_rows[:] = False
        cost, column = _shortest_path(
            costs, begin, of_rows, of_columns, row_of, least, before, left, seen_rows, seen
        )
        of_rows[begin] += cost
        for i in range(rows):
            if seen_rows[i] and i != begin:
                of_rows[i] += cost - least[column_of[i]]
        for j in range(columns):
            if seen[j]:
                of_columns[j] -= cost - least[j]
        # Along the path, each row takes the column that the next one had.
        row = -1
        while row != begin:
            row = before[column]
            row_of[column] = row
            column_of[row], column = column, column_of[row]


@compiled(allocates=True)
def _shortest_path(costs, row, of_rows, of_columns, row_of, least, before, left, seen_rows, seen):
    """The cost of the shortest path from a row to a column that no row has, and that column."""
    columns = row_of.size
    seen[:] = False
    least[:] = np.inf
    # Backwards, so that equal costs give row i column i.
    for k in range(columns):
        left[k] = columns - 1 - k
    cost = 0.0
    for count in range(columns, 0, -1):
        seen_rows[row] = True
        chosen, lowest = -1, np.inf
        for k in range(count):
            j = left[k]
            through = cost + costs[row, j] - of_rows[row] - of_columns[j]
            if through < least[j]:
                least[j], before[j] = through, row
            if least[j] < lowest or (least[j] == lowest and row_of[j] < 0):
                lowest, chosen = least[j], k
        cost, j = lowest, left[chosen]
        seen[j] = True
        left[chosen] = left[count - 1]
        if row_of[j] < 0:
            return cost, j
        row = row_of[j]
    return cost, -1
