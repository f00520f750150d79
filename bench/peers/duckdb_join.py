"""The join in DuckDB: a range join or an equi-join on time buckets, then the closed form."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa

from bench.events import Condition
from bench.fingerprints import sums

CDF = """
CREATE MACRO cdf(z, l1, l2) AS CASE
    WHEN z <= -l2 THEN 0.0::DOUBLE
    WHEN z >= l1 THEN 1.0::DOUBLE
    WHEN z + l2 <= least(l1, l2) THEN (z + l2) * (z + l2) / (2.0::DOUBLE * (l1 * l2))
    WHEN z + l2 <= greatest(l1, l2)
        THEN (2.0::DOUBLE * (z + l2) - least(l1, l2)) / (2.0::DOUBLE * greatest(l1, l2))
    ELSE 1.0::DOUBLE - (l1 - z) * (l1 - z) / (2.0::DOUBLE * (l1 * l2))
END
"""
"""The trapezoid; all arguments are whole doubles below 2**53, so each difference is exact.

Not for two exact instants, which no stream of the benchmarks has.
"""

_EVENTS = """(
    SELECT *, (max_time - min_time)::DOUBLE AS length FROM {table}
)"""
_SHIFT = "(r.max_time - l.max_time)::DOUBLE"


class DuckDBJoin:
    """A database in memory that holds both streams (microseconds), as tables and as registered Arrow."""

    def __init__(
        self, left: pa.Table, right: pa.Table, threads: int, condition: Condition = Condition()
    ) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {threads}")
        self._connection.execute("SET preserve_insertion_order = false")
        self._connection.execute(CDF)
        for name, table in (("left", left), ("right", right)):
            self._connection.register(f"{name}_arrow", table)
            self._connection.execute(f"CREATE TABLE {name}_table AS FROM {name}_arrow")
        self._plans = {
            f"{join}, {source}": plan
            for source in ("table", "arrow")
            for join, plan in _plans(source, condition).items()
        }

    @property
    def variants(self) -> list[str]:
        """Names of the ways to write the join."""
        return list(self._plans)

    def pairs(self, variant: str) -> int:
        """Write all pairs of ids into a table; their number."""
        return self._number("CREATE OR REPLACE TABLE pairs AS SELECT l.id AS a, r.id AS b", variant)

    def fingerprint(self) -> tuple[int, ...]:
        """The fingerprint of the pairs written last: see `bench.fingerprints`."""
        row = self._connection.execute(f"SELECT {sums('a', 'b')} FROM pairs").fetchone()
        assert row is not None
        return tuple(int(value or 0) for value in row)

    def count(self, variant: str) -> int:
        """The number of pairs."""
        return self._number("SELECT count(*)", variant)

    def counts(self, variant: str) -> int:
        """Write the number of pairs of each left event into a table; the number of such events."""
        select = "CREATE OR REPLACE TABLE counts AS SELECT l.id AS a, count(*) AS matches"
        return self._number(select, variant, "GROUP BY l.id")

    def aggregates(self, variant: str, selected: str) -> int:
        """Write aggregates of the matches ``r`` of each left event; the number of such events."""
        select = f"CREATE OR REPLACE TABLE aggregates AS SELECT l.id AS id, {selected}"
        return self._number(select, variant, "GROUP BY l.id")

    def aggregated(self) -> pa.Table:
        """The aggregates written last, in the order of left ids."""
        return self._connection.sql("FROM aggregates ORDER BY id").to_arrow_table()

    def _number(self, select: str, variant: str, end: str = "") -> int:
        row = self._connection.execute(f"{select} {self._plans[variant]} {end}").fetchone()
        assert row is not None
        return int(row[0])


class DuckDBFiles:
    """The join of two Parquet files of timestamps into a third, by ``COPY``."""

    def __init__(
        self, left: Path, right: Path, threads: int, condition: Condition = Condition()
    ) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {threads}")
        self._connection.execute("SET preserve_insertion_order = false")
        self._connection.execute(CDF)
        for name, path in (("left", left), ("right", right)):
            times = ", ".join(f"epoch_us({n}) AS {n}" for n in ("min_time", "max_time"))
            self._connection.execute(
                f"CREATE VIEW {name}_table AS SELECT id, {times} FROM read_parquet('{path}')"
            )
        self._plans = _plans("table", condition)

    @property
    def variants(self) -> list[str]:
        """Names of the ways to write the join."""
        return list(self._plans)

    def copy(self, variant: str, out: str) -> int:
        """Write all pairs of ids to a Parquet file; their number."""
        select = f"SELECT l.id AS left_id, r.id AS right_id {self._plans[variant]}"
        row = self._connection.execute(f"COPY ({select}) TO '{out}' (FORMAT parquet)").fetchone()
        assert row is not None
        return int(row[0])


def _plans(source: str, condition: Condition) -> dict[str, str]:
    left, right = (_EVENTS.format(table=f"{name}_{source}") for name in ("left", "right"))
    near = (
        f"r.min_time <= l.max_time + {condition.deadline_us}"
        f" AND r.max_time >= l.min_time - {condition.deadline_us}"
    )
    where = f"{near} AND {_qualifies(condition)}"
    return {
        "range join": f"FROM {left} l JOIN {right} r ON {near} WHERE {_qualifies(condition)}",
        **{
            f"{2 * reach + 1} buckets": _bucket_plan(
                left, right, condition.reach_us // reach, reach, where
            )
            for reach in (1, 2, 4)
        },
    }


def _qualifies(condition: Condition) -> str:
    upper, lower = (
        f"cdf({bound}::DOUBLE - {_SHIFT}, l.length, r.length)"
        for bound in (condition.deadline_us, -condition.deadline_us)
    )
    return f"{upper} - {lower} >= {condition.confidence}::DOUBLE - pow(2.0::DOUBLE, -50)"


def _bucket_plan(left: str, right: str, width: int, reach: int, where: str) -> str:
    """An equi-join on time buckets, each right event copied to all buckets within reach."""
    copies = f"max_time // {width} + unnest(range({-reach}, {reach + 1}))"
    return (
        f"FROM (SELECT *, max_time // {width} AS bucket FROM {left}) l"
        f" JOIN (SELECT *, {copies} AS bucket FROM {right}) r ON l.bucket = r.bucket"
        f" WHERE {where}"
    )
