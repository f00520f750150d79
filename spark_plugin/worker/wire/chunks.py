"""Batches of Spark's, put together to as much as is worked on at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa


def chunks(batches: Iterable[pa.RecordBatch], rows: int, size: int) -> Iterator[pa.Table]:
    """Gather batches until they have so many rows or bytes."""
    gathered: list[pa.RecordBatch] = []
    count = held = 0
    for batch in batches:
        gathered.append(batch)
        count += batch.num_rows
        held += batch.nbytes
        if count >= rows or held >= size:
            yield pa.Table.from_batches(gathered)
            gathered, count, held = [], 0, 0
    if gathered:
        yield pa.Table.from_batches(gathered)
