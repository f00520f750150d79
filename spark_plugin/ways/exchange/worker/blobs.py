"""Events of a slice as bytes, and back: Arrow's stream, whole numbers in no more bits than they need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from spark_plugin.worker.arrow.wide_columns import of_one_type, one_array

_BYTES = 4 << 20
"""About the most that one holds."""
_LIGHT_BYTES, _ROWS = 256 << 10, 4096
"""What is enough for one: so many bytes, and so many rows. What takes half a region of G1's heap, 512 KiB
or more, has Java mark that heap time and again beside the tasks; of few rows a column costs more than
its values.
"""
_LEAST = b"least"
_NARROW = (np.uint8, np.uint16, np.uint32)


def packed(events: pa.Table) -> Iterator[pa.Buffer]:
    """Bytes of events, in parts of bounded size: all that `unpacked` needs.

    Parameters
    ----------
    events : pa.Table
        Of at least one row.
    """
    light = min(-(-events.nbytes // _LIGHT_BYTES), events.num_rows // _ROWS)
    parts = max(-(-events.nbytes // _BYTES), light)
    rows = -(-events.num_rows // max(1, parts))
    for start in range(0, events.num_rows, rows):
        yield _blob(events.slice(start, rows))


def unpacked(blobs: Sequence[pa.Buffer]) -> pa.Table:
    """The events of at least one blob."""
    batches = [pa.ipc.open_stream(blob).read_next_batch() for blob in blobs]
    fields = [[batch.schema.field(i) for batch in batches] for i in range(batches[0].num_columns)]
    return pa.table({
        of_blobs[0].name: _column([batch.column(i) for batch in batches], of_blobs)
        for i, of_blobs in enumerate(fields)
    })  # fmt: skip


def binaries(blobs: Sequence[pa.Buffer]) -> pa.Array:
    """Blobs as a column, together less than 2 GiB."""
    ends = np.cumsum([0, *(blob.size for blob in blobs)]).astype(np.int32)
    whole = blobs[0] if len(blobs) == 1 else pa.py_buffer(b"".join(blobs))
    return pa.Array.from_buffers(pa.binary(), len(blobs), [None, pa.py_buffer(ends), whole])


def _blob(events: pa.Table) -> pa.Buffer:
    columns, fields = [], []
    for name, column in zip(events.column_names, events.columns, strict=True):
        narrow, least = _narrowed(one_array(column))
        columns.append(narrow)
        told = None if least is None else {_LEAST: str(least).encode()}
        fields.append(pa.field(name, narrow.type, metadata=told))
    batch = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue()


def _narrowed(column: pa.Array) -> tuple[pa.Array, int | None]:
    """A column of whole numbers as what they exceed the least one by, where that takes fewer bits."""
    if column.type != pa.int64() or column.null_count:
        return column, None
    values = column.to_numpy()
    least, most = int(values.min()), int(values.max())
    for kind in _NARROW:
        if most - least <= np.iinfo(kind).max:
            return pa.array((values - least).astype(kind)), least
    return column, None


def _column(arrays: list[pa.Array], fields: list[pa.Field]) -> pa.Array:
    if all(field.metadata is None and field.type != pa.int64() for field in fields):
        return one_array(of_one_type(arrays))
    if any(array.null_count for array in arrays):
        return one_array(
            of_one_type([_widened(*each) for each in zip(arrays, fields, strict=True)])
        )
    values = np.empty(sum(map(len, arrays)), np.int64)
    start = 0
    for array, field in zip(arrays, fields, strict=True):
        part = values[start : start + len(array)]
        part[:] = array.to_numpy()
        part += _least(field)
        start += len(array)
    return pa.array(values)


def _widened(array: pa.Array, field: pa.Field) -> pa.Array:
    if field.metadata is None:
        return array
    return pa.array(array.to_numpy().astype(np.int64) + _least(field))


def _least(field: pa.Field) -> np.int64:
    return np.int64(int(field.metadata[_LEAST]) if field.metadata else 0)
