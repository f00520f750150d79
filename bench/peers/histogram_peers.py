"""Histogram timestamps by other means: a sum at each candidate, and a table joined in DuckDB."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa

from coincide.model.compiled import compiled
from coincide.model.condition import Window
from coincide.model.templates.tails import SatisfactionTimes
from coincide.model.templates.template import Buckets, TemplateTable
from coincide.model.timestamps import HistogramEvents


def probe_each(left: HistogramEvents, right: HistogramEvents, window: Window, last: int) -> int:
    """Pairs of the first left events, by max_time: Theorem 1 at each candidate of Equations 4 and 5."""
    threshold = window.confidence - 2.0**-50
    longest = int(left.table.lengths.max()), int(right.table.lengths.max())
    return int(
        _probe(
            left.max_time[:last],
            left.template,
            left.table.buckets,
            right.max_time,
            right.template,
            right.table.buckets,
            (window.lo - longest[0], window.hi + longest[1]),
            (window.lo, window.hi),
            threshold,
        )
    )


@compiled
def _probe(left, left_templates, x, right, right_templates, y, reach, window, threshold):
    found, start = 0, 0
    for i in range(left.size):
        while start < right.size and right[start] - left[i] < reach[0]:
            start += 1
        t = start
        while t < right.size and right[t] - left[i] <= reach[1]:
            s = right[t] - left[i]
            p = theorem_1(x, left_templates[i], y, right_templates[t], window[1] - s)
            p -= theorem_1(x, left_templates[i], y, right_templates[t], window[0] - s)
            found += p >= threshold
            t += 1
    return found


@compiled
def theorem_1(x, i, y, j, z):
    """P(Y - X <= z): both histograms adjusted to all edges, Definition 3 and Equation 3."""
    a, a_end = x.starts[i], x.starts[i + 1] - 1
    b, b_end = y.starts[j], y.starts[j + 1] - 1
    at = min(x.edges[a] + z, y.edges[b])
    below = total = 0.0
    # Walks the adjusted buckets: `below` is the mass of Y before, half counts within one.
    while a < a_end:
        x_next = x.edges[a + 1] + z if at >= x.edges[a] + z else x.edges[a] + z
        y_next = x_next
        if b < b_end:
            y_next = y.edges[b + 1] if at >= y.edges[b] else y.edges[b]
        stop = min(x_next, y_next)
        own = x.densities[a] * float(stop - at) if at >= x.edges[a] + z else 0.0
        other = 0.0
        if b < b_end and at >= y.edges[b]:
            other = y.densities[b] * float(stop - at)
        total += own * (below + 0.5 * other)
        below += other
        at = stop
        if at >= x.edges[a + 1] + z:
            a += 1
        if b < b_end and at >= y.edges[b + 1]:
            b += 1
    return total


def bisected(x: TemplateTable, y: TemplateTable, window: Window, pairs: int) -> np.ndarray:
    """The largest s of the first pairs of templates, by bisection on P: int64 array."""
    return np.asarray(_bisect(x.buckets, y.buckets, window.hi, window.confidence - 2.0**-50, pairs))


@compiled(allocates=True)
def _bisect(x: Buckets, y: Buckets, hi: int, threshold: float, pairs: int) -> np.ndarray:
    found = np.empty(pairs, np.int64)
    columns = y.starts.size - 1
    for pair in range(pairs):
        i, j = pair // columns, pair % columns
        low = hi + y.edges[y.starts[j]]
        high = hi - x.edges[x.starts[i]] - y.edges[y.starts[j]] + 1
        while high - low > 1:
            s = (low + high) >> 1
            if theorem_1(x, i, y, j, hi - s) >= threshold:
                low = s
            else:
                high = s
        found[pair] = low
    return found


class DuckDBTable:
    """A database in memory that holds both sides and the table of satisfaction times as a relation."""

    PLANS = ("range join", "buckets")

    def __init__(
        self,
        left: HistogramEvents,
        right: HistogramEvents,
        table: SatisfactionTimes,
        threads: int,
    ) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {threads}")
        self._connection.execute("SET preserve_insertion_order = false")
        for name, side in (("l", left), ("r", right)):
            rows = pa.table(
                {"id": np.arange(len(side)), "t": side.max_time, "template": side.template}
            )
            self._connection.register("given", rows)
            self._connection.execute(f"CREATE TABLE {name} AS FROM given")
        lefts, rights = np.indices(table.first.shape)
        rows = pa.table(
            {
                "a": lefts.ravel(),
                "b": rights.ravel(),
                "first": table.first.ravel(),
                "last": table.last.ravel(),
            }
        )
        self._connection.register("given", rows)
        self._connection.execute("CREATE TABLE stimes AS FROM given")
        some = table.first <= table.last
        self._low, self._high = int(table.first[some].min()), int(table.last[some].max())

    def pairs(self, plan: str) -> int:
        """Write all pairs of ids into a table; their number."""
        width = self._high - self._low
        near = f"r.t BETWEEN l.t + {self._low} AND l.t + {self._high}"
        sides = f"l JOIN r ON {near}"
        if plan == "buckets":
            sides = (
                f"(SELECT *, UNNEST(range((t + {self._low}) // {width},"
                f" (t + {self._high}) // {width} + 1)) AS cell FROM l) l"
                f" JOIN r ON l.cell = r.t // {width} AND {near}"
            )
        self._connection.execute(
            f"CREATE OR REPLACE TABLE pairs AS SELECT l.id AS a, r.id AS b FROM {sides}"
            " JOIN stimes s ON s.a = l.template AND s.b = r.template"
            " AND r.t - l.t BETWEEN s.first AND s.last"
        )
        row = self._connection.execute("SELECT count(*) FROM pairs").fetchone()
        assert row is not None
        return int(row[0])
