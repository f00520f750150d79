"""The causality join in DuckDB: by time buckets, or by cells of space and time, then the condition."""

from __future__ import annotations

import duckdb
import pyarrow as pa

from bench.fingerprints import sums

EARTH_KM = 6371.0088
HAVERSINE = f"""
CREATE MACRO haversine(a, b, c, d) AS 2 * {EARTH_KM} * asin(least(1.0, sqrt(
    pow(sin(radians(c - a) / 2), 2) + cos(radians(a)) * cos(radians(c)) * pow(sin(radians(d - b) / 2), 2)
)))
"""
_SQUARED = "((e.x - c.x) * (e.x - c.x) + (e.y - c.y) * (e.y - c.y))"


class DuckDBCausality:
    """A database in memory that holds causes and effects, with places in a plane or in degrees."""

    def __init__(
        self, causes: pa.Table, effects: pa.Table, window: int, radius: float, threads: int
    ) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"SET threads = {threads}")
        self._connection.execute("SET preserve_insertion_order = false")
        self._connection.execute(HAVERSINE)
        for name, table in (("causes", causes), ("effects", effects)):
            self._connection.register(f"{name}_arrow", table)
            self._connection.execute(f"CREATE TABLE {name} AS FROM {name}_arrow")
        in_time = f"e.time BETWEEN c.time AND c.time + {window}"
        if "x" in causes.column_names:
            self._distance = f"sqrt({_SQUARED})"
            where = f"{in_time} AND {_SQUARED} <= {radius * radius!r}"
            cells = {"cells of space and time": _cells(window, radius, where)}
        else:
            self._distance = "haversine(c.lat, c.lon, e.lat, e.lon)"
            # Degrees of latitude first: they exclude most pairs before there is any trigonometry.
            band = f"abs(e.lat - c.lat) <= {radius / EARTH_KM * 57.2957795131 * 1.0000001!r}"
            where = f"{in_time} AND {band} AND {self._distance} <= {radius!r}"
            cells = {}
        buckets = {
            f"{reach + 1} buckets of time": _buckets(window, reach, where) for reach in (1, 2, 4)
        }
        self._plans = buckets | cells

    @property
    def variants(self) -> list[str]:
        """Names of the ways to write the join."""
        return list(self._plans)

    def pairs(self, variant: str) -> int:
        """Write all pairs, with delta and distance, into a table; their number."""
        row = self._connection.execute(
            "CREATE OR REPLACE TABLE pairs AS SELECT c.id AS a, e.id AS b, e.time - c.time AS delta,"
            f" {self._distance} AS distance {self._plans[variant]}"
        ).fetchone()
        assert row is not None
        return int(row[0])

    def fingerprint(self) -> tuple[int, ...]:
        """The fingerprint of the pairs written last: see `bench.fingerprints`."""
        row = self._connection.execute(f"SELECT {sums('a', 'b')} FROM pairs").fetchone()
        assert row is not None
        return tuple(int(value or 0) for value in row)


def _buckets(window: int, reach: int, where: str) -> str:
    """An equi-join on buckets of time, each effect copied to all buckets whose causes can reach it."""
    width = max(1, window // reach)
    copies = f"time // {width} - unnest(range(0, {reach + 2}))"
    return (
        f"FROM (SELECT *, time // {width} AS bucket FROM causes) c"
        f" JOIN (SELECT *, {copies} AS bucket FROM effects) e ON c.bucket = e.bucket WHERE {where}"
    )


def _cells(window: int, radius: float, where: str) -> str:
    """The same on cells of time, x and y."""
    near = "unnest(range(-1, 2))"
    return (
        f"FROM (SELECT *, time // {window} AS bucket, floor(x / {radius!r}) AS u,"
        f" floor(y / {radius!r}) AS v FROM causes) c"
        f" JOIN (SELECT *, time // {window} - unnest(range(0, 2)) AS bucket FROM"
        f" (SELECT *, floor(x / {radius!r}) + {near} AS u FROM"
        f" (SELECT *, floor(y / {radius!r}) + {near} AS v FROM effects))) e"
        f" ON c.bucket = e.bucket AND c.u = e.u AND c.v = e.v WHERE {where}"
    )
