"""Border crossings in DuckDB: borders between two readings, or two stabs and a difference."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from bench.borders import PROOF_SQL, Proof, Ranges, Walks
from coincide.model.borders.moves import MOVE

_BETWEEN = """
    SELECT point, query, (b > a)::INTEGER AS entered FROM moves JOIN queries
        ON lower > low AND lower <= high WHERE upper - high > 0
    UNION ALL
    SELECT point, query, (b < a)::INTEGER AS entered FROM moves JOIN queries
        ON upper > low AND upper <= high WHERE low - lower >= 0
"""
"""What moves up past a lower border and stops below the upper one enters; down the same way leaves.

The last condition is a difference so that no other two are joined on, which takes a hundred times as long.
"""

_EITHER_END = """
    SELECT point, query, 1 AS entered FROM moves JOIN queries
        ON lower <= b AND upper > b WHERE NOT (lower <= a AND upper > a)
    UNION ALL
    SELECT point, query, 0 AS entered FROM moves JOIN queries
        ON lower <= a AND upper > a WHERE NOT (lower <= b AND upper > b)
"""

_STABS = """
    SELECT coalesce(n.point, o.point) AS point, coalesce(n.query, o.query) AS query,
        (o.query IS NULL)::INTEGER AS entered
    FROM held_now n FULL JOIN held_before o ON n.point = o.point AND n.query = o.query
    WHERE n.query IS NULL OR o.query IS NULL
"""
_STAB = """
    CREATE OR REPLACE TEMP TABLE held_{name} AS
    SELECT point, query FROM moves JOIN queries ON lower <= {end} AND upper > {end}
"""
"""Into a table: of a common table expression DuckDB joins on one border only, forty times as slowly."""


PLANS: dict[str, tuple[tuple[str, ...], str]] = {
    "borders between": ((), _BETWEEN),
    "what holds either end": ((), _EITHER_END),
    "two stabs and a difference": (
        (_STAB.format(name="now", end="b"), _STAB.format(name="before", end="a")),
        _STABS,
    ),
}
"""What each plan makes first, and the query for point, query and whether it was entered."""


class DuckDBBorders:
    """A database in memory that holds moves and queries of one dimension."""

    def __init__(self, ranges: Ranges, walks: Walks, threads: int) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {threads}")
        self._connection.execute("SET preserve_insertion_order = false")
        queries = pa.table(
            {
                "query": range(ranges.lower.shape[0]),
                **{name: each[:, 0].astype("int64") for name, each in ranges._asdict().items()},
            }
        )
        readings = pa.table(
            {
                "point": range(walks.kinds.size),
                "value": walks.values[:, 0].astype("int64"),
                "moved": walks.kinds == MOVE,
            }
        )
        for name, table in (("queries", queries), ("readings", readings)):
            self._connection.register("given", table)
            self._connection.execute(f"CREATE TABLE {name} AS FROM given")
        self._connection.execute(
            "CREATE TABLE moves AS SELECT n.point, o.value AS a, n.value AS b, least(a, b) AS low,"
            " greatest(a, b) AS high FROM readings n JOIN readings o ON n.point = o.point + 1"
            " WHERE n.moved"
        )

    def count(self, plan: str) -> int:
        """How many events there are: the sink is left out."""
        return self._row("count(*)", plan)[0]

    def proof(self, plan: str) -> Proof:
        """As `bench.borders.proof`."""
        return self._row(PROOF_SQL, plan)

    def _row(self, what: str, plan: str) -> Proof:
        before, events = PLANS[plan]
        for statement in before:
            self._connection.execute(statement)
        row = self._connection.execute(f"SELECT {what} FROM ({events})").fetchone()
        assert row is not None
        return tuple(int(value or 0) for value in row)
