"""Ids of regions and streams as keys, which stay the same from batch to batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from spark_plugin.worker.arrow.ids import Ids

_STREAM_BITS = 32


@dataclass(frozen=True, eq=False)
class PairIds:
    """Ids of queries and streams, and keys that a pair of them has for good.

    Parameters
    ----------
    queries, streams : Ids
    """

    queries: Ids
    streams: Ids

    def keyed(self, ids: tuple[pa.Array, pa.Array]) -> tuple[PairIds, np.ndarray]:
        """These and those of more rows, with the keys of the rows: int64 array, shape (n,)."""
        queries, query = self.queries.numbered(ids[0])
        streams, stream = self.streams.numbered(ids[1])
        return PairIds(queries, streams), (query << _STREAM_BITS) | stream

    def compact(self, keys: np.ndarray) -> np.ndarray:
        """Smaller numbers in the same order: int64 array."""
        query, stream = _parts(keys)
        return query * len(self.streams.known) + stream

    def of(self, keys: np.ndarray) -> tuple[pa.Array, pa.Array]:
        """Query and stream of keys."""
        query, stream = _parts(keys)
        return self.queries.of(query), self.streams.of(stream)


def _parts(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return keys >> _STREAM_BITS, keys & ((1 << _STREAM_BITS) - 1)
