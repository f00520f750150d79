"""Columns of texts and lists of any size: offsets that reach far enough.

Arrow's strings, binaries, lists and maps have offsets of 32 bits, so an array of them ends at 2 GiB of
text, or at 2**31 elements. A column may hold more: inside, it then has offsets of 64 bits (`wide_type`);
what is handed out is cut into arrays of the types that were promised.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from coincide.errors import MemoryBudgetError
from spark_plugin.worker.arrow import row_sizes
from spark_plugin.worker.arrow.row_sizes import (
    cuts,
    ends,
    is_listing,
    is_text,
    row_bytes,
    total_bytes,
)


def wide_type(kind: pa.DataType) -> pa.DataType:
    """A type with offsets of 64 bits instead of 32; maps have no such type, their texts do."""
    return _retyped(kind, {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}, True)


def narrow_type(kind: pa.DataType) -> pa.DataType:
    """A type with offsets of 32 bits instead of 64."""
    return _retyped(kind, {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}, False)


def _retyped(kind: pa.DataType, texts: dict[pa.DataType, pa.DataType], wide: bool) -> pa.DataType:
    def inner(field: pa.Field) -> pa.Field:
        return field.with_type(_retyped(field.type, texts, wide))

    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind):
        return (pa.large_list if wide else pa.list_)(inner(kind.value_field))
    if types.is_fixed_size_list(kind):
        return pa.list_(inner(kind.value_field), kind.list_size)
    if types.is_struct(kind):
        return pa.struct([inner(field) for field in kind])
    if types.is_map(kind):
        return pa.map_(inner(kind.key_field), inner(kind.item_field), kind.keys_sorted)
    return texts.get(kind, kind)


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column as one contiguous array, of its `wide_type` where 32 bits cannot count it.

    Raises
    ------
    MemoryBudgetError
        If it holds more entries of maps, which have no wide type, than can be counted.
    """
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks == 0:
        return pa.array([], column.type)
    if _largest_extent(column.chunks) > row_sizes.ARRAY_BYTES:
        column = column.cast(wide_type(column.type))
    try:
        return pa.concat_arrays(column.chunks)
    except pa.ArrowInvalid as error:
        raise MemoryBudgetError(
            f"a column of {column.type} holds more entries than one array can; join fewer rows at once"
            " (a smaller slice_rows), or leave the column out"
        ) from error


def of_one_type(arrays: Sequence[pa.Array]) -> pa.ChunkedArray:
    """Arrays of one column, of which some may be wide, as one column."""
    if len({array.type for array in arrays}) > 1:
        arrays = [array.cast(wide_type(array.type)) for array in arrays]
    return pa.chunked_array(arrays)


def decoded(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column without its encoding (dictionaries, runs, views), in chunks that 32 bits can count.

    Parameters
    ----------
    column : pa.ChunkedArray
    kind : pa.DataType
        What it decodes to.
    """
    if column.type == kind:
        return column
    if pa.types.is_run_end_encoded(column.type):
        column = pc.run_end_decode(column)
    chunks = []
    for chunk in column.chunks:
        taken = cuts(row_bytes(chunk), len(chunk), row_sizes.ARRAY_BYTES)
        chunks += [chunk.slice(start, stop - start).cast(kind) for start, stop in taken]
    return pa.chunked_array(chunks, kind)


def narrowed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table of which some columns are wide, in the types of a schema: in chunks that these can count."""
    if table.schema.types == schema.types:
        return table.cast(schema)
    sizes = total_bytes(row_bytes(one_array(column)) for column in table.columns)
    parts = cuts(sizes, table.num_rows, row_sizes.ARRAY_BYTES)
    cast = [table.slice(start, stop - start).cast(schema) for start, stop in parts]
    return pa.concat_tables([schema.empty_table(), *cast])


def _largest_extent(chunks: Sequence[pa.Array]) -> int:
    """Most bytes or elements that the offsets of one node of a column count, over its chunks."""
    return max(map(sum, zip(*map(_extents, chunks), strict=True)), default=0)


def _extents(array: pa.Array) -> list[int]:
    """Bytes or elements of each node of an array that has offsets."""
    kind, types = array.type, pa.types
    if types.is_struct(kind):
        return [each for i in range(kind.num_fields) for each in _extents(array.field(i))]
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        return _extents(array.values.slice(array.offset * size, len(array) * size))
    if not (is_text(kind) or is_listing(kind)):
        return []
    first, last = ends(array)
    if is_text(kind):
        return [last - first]
    return [last - first, *_extents(array.values.slice(first, last - first))]


def stored(values: pa.Array) -> pa.Array:
    """Values as they are stored: most of PyArrow's functions take no extension types, as UUIDs."""
    return values.storage if isinstance(values, pa.ExtensionArray) else values
