"""Events of a slice as bytes, and back: Arrow's stream, whole numbers in no more bits than they need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from coincide.engine.events.schemas import of_one_type, one_array

_BYTES = 4 << 20
"""About the most that one holds."""
_LIGHT_BYTES, _ROWS = 256 << 10, 4096
"""What is enough for one: bytes, and rows. What takes half a region of G1's heap, 512 KiB or more, has Java
mark that heap time and again while tasks run; with few rows a column costs more than its values.
"""
_LEAST, _FIRST = b"least", b"first"
_NARROW = (np.uint8, np.uint16, np.uint32)
_NARROWEST = _NARROW[:2]
_WORD = 8
"""Bytes of an int64."""


def packed(events: pa.Table) -> Iterator[pa.Buffer]:
    """Bytes of events, in parts of bounded size, none of no events: all that `unpacked` needs."""
    if not events.num_rows:
        return
    light = min(-(-events.nbytes // _LIGHT_BYTES), events.num_rows // _ROWS)
    parts = max(-(-events.nbytes // _BYTES), light)
    rows = -(-events.num_rows // max(1, parts))
    for start in range(0, events.num_rows, rows):
        yield _blob(events.slice(start, rows))


def rows_of(blob: pa.Buffer) -> int:
    """The number of events in a blob."""
    return _opened(blob).num_rows


def unpacked(blobs: Sequence[pa.Buffer]) -> pa.Table:
    """The events of at least one blob."""
    batches = [_opened(blob) for blob in blobs]
    fields = [[batch.schema.field(i) for batch in batches] for i in range(batches[0].num_columns)]
    return pa.table({
        of_blobs[0].name: _column([batch.column(i) for batch in batches], of_blobs)
        for i, of_blobs in enumerate(fields)
    })  # fmt: skip


def told_blob(columns: dict[str, np.ndarray]) -> pa.Buffer:
    """Bytes that hold no events, but int64 numbers of whoever reads them."""
    batch = pa.RecordBatch.from_pydict({name: pa.array(each) for name, each in columns.items()})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue()


def told_by(blob: pa.Buffer, names: Sequence[str]) -> list[np.ndarray] | None:
    """The numbers of `told_blob` by these names; None of a blob of events."""
    batch = _opened(blob)
    if batch.schema.names != list(names):
        return None
    return [column.to_numpy() for column in batch.columns]


def column_of(blobs: Sequence[pa.Buffer], *, as_numbers: bool) -> pa.Array:
    """Blobs as a column, binary or lists of int64, together less than 2 GiB."""
    ends = np.cumsum([0, *(blob.size for blob in blobs)]).astype(np.int32)
    whole = blobs[0] if len(blobs) == 1 else pa.py_buffer(b"".join(blobs))
    if as_numbers:  # a stream of Arrow has whole words
        words = pa.Array.from_buffers(pa.int64(), whole.size // _WORD, [None, whole])
        return pa.ListArray.from_arrays(pa.array(ends // _WORD), words)
    return pa.Array.from_buffers(pa.binary(), len(blobs), [None, pa.py_buffer(ends), whole])


def blob_of(value: pa.Scalar) -> pa.Buffer:
    """The blob that is a value of such a column."""
    if not isinstance(value, pa.ListScalar):
        return value.as_buffer()
    words = value.values
    return words.buffers()[1].slice(_WORD * words.offset, _WORD * len(words))


def _opened(blob: pa.Buffer) -> pa.RecordBatch:
    return pa.ipc.open_stream(blob).read_next_batch()


def _blob(events: pa.Table) -> pa.Buffer:
    columns, fields = [], []
    for name, column in zip(events.column_names, events.columns, strict=True):
        narrow, told = _narrowed(one_array(column))
        columns.append(narrow)
        fields.append(pa.field(name, narrow.type, metadata=told))
    batch = pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue()


def _narrowed(column: pa.Array) -> tuple[pa.Array, dict[bytes, bytes] | None]:
    """A column of whole numbers in fewer bits, by their least, or their least step; and what undoes it."""
    if column.type != pa.int64() or column.null_count:
        return column, None
    values = column.to_numpy()
    least, most = int(values.min()), int(values.max())
    kind = _narrow_kind(most - least)
    if kind in _NARROWEST or values.size < 2:
        return _exceeding(column, values, kind, {_LEAST: least})
    steps = np.diff(values, prepend=values[0])  # what is beyond 64 bits comes back as it went
    steps[0] = steps[1]
    step = int(steps.min())
    of_steps = _narrow_kind(int(steps.max()) - step)
    if of_steps is None or (kind is not None and kind().itemsize <= of_steps().itemsize):
        return _exceeding(column, values, kind, {_LEAST: least})
    return _exceeding(column, steps, of_steps, {_LEAST: step, _FIRST: int(values[0])})


def _narrow_kind(most: int) -> type[np.unsignedinteger] | None:
    """The narrowest type of numbers up to that; None if it takes 64 bits."""
    return next((kind for kind in _NARROW if most <= np.iinfo(kind).max), None)


def _exceeding(
    column: pa.Array,
    values: np.ndarray,
    kind: type[np.unsignedinteger] | None,
    told: dict[bytes, int],
) -> tuple[pa.Array, dict[bytes, bytes] | None]:
    if kind is None:
        return column, None
    narrow = pa.array((values - told[_LEAST]).astype(kind))
    return narrow, {name: str(number).encode() for name, number in told.items()}


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
        _numbers(array, field, values[start : start + len(array)])
        start += len(array)
    return pa.array(values)


def _numbers(array: pa.Array, field: pa.Field, out: np.ndarray) -> None:
    """What `_narrowed` was given."""
    out[:] = array.to_numpy()
    told = field.metadata or {}
    if _LEAST in told:
        out += np.int64(int(told[_LEAST]))
    if _FIRST in told:
        out[0] = int(told[_FIRST])
        np.cumsum(out, out=out)


def _widened(array: pa.Array, field: pa.Field) -> pa.Array:
    if field.metadata is None:
        return array
    values = np.empty(len(array), np.int64)
    _numbers(array, field, values)
    return pa.array(values)
