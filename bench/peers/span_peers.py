"""Pairs and counts of spans that overlap, by engines of intervals and by query engines.

A span is a row of int64 starts and ends, both of which belong to it; ids are row numbers. Keys are put into
times beforehand. An engine gives the two arrays of ids of all pairs, and the matches of each left span.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from bench.fingerprints import fingerprint, sums

Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Ends:
    """The spans of one side."""

    start: np.ndarray
    end: np.ndarray

    @property
    def size(self) -> int:
        """How many there are."""
        return self.start.size

    def table(self) -> pa.Table:
        """With their ids."""
        return pa.table({"id": np.arange(self.size), "s": self.start, "e": self.end})


@dataclass(frozen=True)
class Peer:
    """One engine at one piece of work: what is timed, and what its answers are in short."""

    pairs: Callable[[], Any]
    counts: Callable[[], Any] | None  # None: it has no such function
    pairs_in_short: Callable[[Any], tuple[int, ...]]
    counts_in_short: Callable[[Any], int]


def peers(left: Ends, right: Ends, cores: int) -> dict[str, Peer]:
    """The engines that can be imported, by name."""
    return {
        name: make(left, right, cores)
        for name, (module, make) in _PEERS.items()
        if find_spec(module) is not None
    }


def missing() -> list[str]:
    """Names of those that cannot."""
    return [name for name, (module, _) in _PEERS.items() if find_spec(module) is None]


def checksum(counts: np.ndarray) -> int:
    """A checksum of the matches of each left span, in the order of ids."""
    return int(np.dot(counts.astype(np.int64), np.arange(1, counts.size + 1)))


def _of_arrays(pairs: Callable[[], Pairs], counts: Callable[[], np.ndarray] | None) -> Peer:
    def in_short(found: Pairs) -> tuple[int, ...]:
        return fingerprint(*(ids.astype(np.int64) for ids in found))

    return Peer(pairs, counts, in_short, checksum)


def _superintervals(left: Ends, right: Ends, cores: int) -> Peer:
    from superintervals import IntervalMap

    # It takes 32 bits.
    s1, e1, s2, e2 = (x.astype(np.int32) for x in (left.start, left.end, right.start, right.end))

    def pairs() -> Pairs:
        found = IntervalMap.from_arrays(s2, e2).search_idxs_batch(s1, e1)
        counts = np.fromiter(map(len, found), np.int64, len(found))
        flat = np.fromiter(chain.from_iterable(found), np.int64, int(counts.sum()))
        return np.repeat(np.arange(counts.size), counts), order[flat]

    def counts() -> np.ndarray:
        return np.array(IntervalMap.from_arrays(s2, e2).count_batch(s1, e1), np.int64)

    # Its numbers are places in its own order, by start and then by end, longest first.
    order = np.lexsort((-e2.astype(np.int64), s2))
    return _of_arrays(pairs, counts)


def _ncls(left: Ends, right: Ends, cores: int) -> Peer:
    from ncls import NCLS

    ids = np.arange(left.size), np.arange(right.size)

    def pairs() -> Pairs:
        index = NCLS(right.start, right.end + 1, ids[1])
        found: Pairs = index.all_overlaps_both(left.start, left.end + 1, ids[0])
        return found

    return _of_arrays(pairs, None)


def _ruranges(left: Ends, right: Ends, cores: int) -> Peer:
    from ruranges import numpy as ruranges

    def given() -> dict[str, np.ndarray]:
        ends = {"ends": left.end + 1, "ends2": right.end + 1}
        return {"starts": left.start, "starts2": right.start, **ends}

    return _of_arrays(
        lambda: ruranges.overlaps(**given(), sort_output=False),
        lambda: ruranges.count_overlaps(**given()),
    )


def _bioframe(left: Ends, right: Ends, cores: int) -> Peer:
    from bioframe.core.arrops import overlap_intervals

    def pairs() -> Pairs:
        found: Pairs = overlap_intervals(left.start, left.end + 1, right.start, right.end + 1)
        return found

    return _of_arrays(pairs, None)


def _duckdb(left: Ends, right: Ends, cores: int) -> Peer:
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SET threads = {cores}")
    connection.execute("SET preserve_insertion_order = false")
    for name, side in (("l", left), ("r", right)):
        connection.register(f"{name}_arrow", side.table())
        connection.execute(f"CREATE TABLE {name} AS FROM {name}_arrow")
    join = "FROM l JOIN r ON r.s <= l.e AND r.e >= l.s"

    def run(sql: str) -> tuple[Any, ...]:
        row = connection.execute(sql).fetchone()
        assert row is not None
        return row

    return Peer(
        lambda: run(f"CREATE OR REPLACE TABLE pairs AS SELECT l.id AS a, r.id AS b {join}"),
        lambda: run(f"CREATE OR REPLACE TABLE c AS SELECT l.id AS a, count(*) AS n {join} GROUP BY 1"),
        lambda _: tuple(int(value or 0) for value in run(f"SELECT {sums('a', 'b')} FROM pairs")),
        lambda _: int(run("SELECT sum(n * (a + 1)) FROM c")[0] or 0),
    )  # fmt: skip


def _polars(left: Ends, right: Ends, cores: int) -> Peer:
    import polars as pl

    frames = [pl.DataFrame(side.table()).lazy() for side in (left, right)]
    near = pl.col("s_right") <= pl.col("e"), pl.col("e_right") >= pl.col("s")

    def pairs() -> Any:
        return frames[0].join_where(frames[1], *near).select("id", "id_right").collect()

    return Peer(
        pairs, None, lambda found: fingerprint(*(found[name].to_numpy() for name in found.columns)),
        lambda _: 0,
    )  # fmt: skip


_PEERS: Mapping[str, tuple[str, Callable[[Ends, Ends, int], Peer]]] = {
    "superintervals": ("superintervals", _superintervals),
    "NCLS": ("ncls", _ncls),
    "ruranges": ("ruranges", _ruranges),
    "bioframe": ("bioframe", _bioframe),
    "DuckDB": ("duckdb", _duckdb),
    "Polars": ("polars", _polars),
}
"""By name: the module that must be there, and what makes it."""
