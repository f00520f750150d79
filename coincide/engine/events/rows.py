"""Rows of tables: gathered by number, measured in bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pyarrow as pa

from coincide.model.counters import RowValues
from coincide.model.errors import MemoryBudgetError
from coincide.model.options import OUTPUT_ROWS


class Gather:
    """A column to take rows from; plain 64-bit integers without nulls take the NumPy way."""

    # `sizes`: bytes of each row, int64 array, shape (n,); None where all are small and alike.

    def __init__(self, column: pa.Array, kind: pa.DataType) -> None:
        self.column, self.kind = column, kind
        self.values: np.ndarray | None = None
        self.by_row: RowValues | None = None
        self.sizes: np.ndarray | None = None
        if column.null_count == 0 and _is_int64(column.type) and column.type == kind:
            self.values = column.view(pa.int64()).to_numpy()
            self.by_row = RowValues(self.values)
        else:
            self.sizes = row_bytes(column)

    def __call__(self, rows: np.ndarray | slice) -> pa.Array:
        """The rows' values; those of a slice without a copy, if their type stays."""
        if isinstance(rows, slice):
            taken = self.column.slice(rows.start, rows.stop - rows.start)
            return taken if taken.type == self.kind else taken.cast(self.kind)
        if self.values is not None:
            return self.wrap(self.values[rows])
        taken = self.column.take(pa.array(rows))
        return taken if taken.type == self.kind else taken.cast(self.kind)

    def or_null(self, rows: np.ndarray) -> pa.Array:
        """The rows' values; null for what is below 0."""
        nobody = rows < 0
        if not nobody.any():
            return self(rows)
        return self.column.take(pa.array(rows, mask=nobody)).cast(self.kind)

    def list_of(self, rows: np.ndarray) -> pa.Array:
        """The rows' values, which are to be one list."""
        if self.sizes is not None and has_short_offsets(self.kind):
            taken = int(self.sizes[rows].sum())
            if taken > ARRAY_BYTES:
                raise MemoryBudgetError(
                    f"the {rows.size} matches of one left event hold {taken} bytes of {self.kind}"
                    f" in one column, more than a list can hold. Use {OUTPUT_ROWS['pairs'].said},"
                    " or remove this column."
                )
        return self(rows)

    def taken(self, rows: np.ndarray) -> np.ndarray:
        """The rows' values: int64 array."""
        assert self.values is not None
        return self.values[rows]

    def wrap(self, values: np.ndarray) -> pa.Array:
        """An int64 array as a column of this type, without a copy."""
        return pa.array(values).view(self.column.type)


def _is_int64(kind: pa.DataType) -> bool:
    types = pa.types
    return (
        types.is_int64(kind)
        or types.is_timestamp(kind)
        or types.is_duration(kind)
        or types.is_time64(kind)
    )


BATCH_BYTES = 64 << 20
"""Bytes that a batch should not exceed; a row that alone exceeds them is a batch of its own."""
ARRAY_BYTES = 2**31 - 1
"""Bytes of text, or elements of lists, that Arrow's offsets of 32 bits can count."""
_SMALL_ROW = 16
"""Bytes of a value, such as a decimal's, for which the bound on the rows of a batch is enough."""

_Widths = int | np.ndarray
"""Bytes of every row, or, by row, the bytes of all rows before it: int64 array, shape (n + 1,)."""


def row_bytes(column: pa.Array) -> np.ndarray | None:
    """Bytes of each row: int64 array, shape (n,); None where all are small and alike."""
    # In a dictionary or a view they are those of what it stands for. An element of a list takes a
    # byte more than what is in it, so that lists of few bytes, too, have fewer elements than can be
    # counted.
    widths = _widths(column)
    if not isinstance(widths, int):
        return np.diff(widths)
    return None if widths <= _SMALL_ROW else np.full(len(column), widths)


def total_bytes(sizes: Iterable[np.ndarray | None]) -> np.ndarray | None:
    """Bytes of each row in several columns, from `row_bytes` of each; None where all are None."""
    known = [each for each in sizes if each is not None]
    return sum(known[1:], known[0]) if known else None


def cuts(sizes: np.ndarray | None, rows: int, most: int) -> Iterator[tuple[int, int]]:
    """Runs of rows that take `most` bytes at most, or are one row."""
    if sizes is None:
        if rows:
            yield 0, rows
        return
    ends = np.cumsum(sizes)
    start = 0
    while start < rows:
        before = ends[start - 1] if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + most, side="right")))
        yield start, stop
        start = stop


def _widths(array: pa.Array) -> _Widths:
    """Bytes of an array's rows."""
    return _way(array.type)(array)


def _way(kind: pa.DataType) -> Callable[[pa.Array], _Widths]:
    types = pa.types
    if is_text(kind):
        return offsets
    if types.is_string_view(kind) or types.is_binary_view(kind):
        return _widths_of_views
    if is_listing(kind):
        return lambda array: _at(_widths(array.values), offsets(array))
    if types.is_fixed_size_list(kind):
        return _widths_of_fixed_lists
    if types.is_struct(kind):
        return _widths_of_structs
    return _widths_of_entries if types.is_dictionary(kind) else _width


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings or binaries, one after the other in a buffer."""
    return kind in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())


def is_string(kind: pa.DataType) -> bool:
    """Whether values are strings, of short or of long offsets."""
    return kind in (pa.string(), pa.large_string())


def has_short_offsets(kind: pa.DataType) -> bool:
    """Whether values, or what is in them, are counted by 32 bits."""
    if kind in (pa.string(), pa.binary()) or pa.types.is_list(kind) or pa.types.is_map(kind):
        return True
    return any(has_short_offsets(kind.field(i).type) for i in range(kind.num_fields))


def is_listing(kind: pa.DataType) -> bool:
    """Whether values are lists or maps of any length."""
    return any(is_(kind) for is_ in (pa.types.is_list, pa.types.is_large_list, pa.types.is_map))


def _width(array: pa.Array) -> int:
    """Bytes of a value of fixed size; the mean for types whose layout is not read."""
    try:
        return int(array.type.bit_width + 7) // 8
    except ValueError:
        return max(1, -(-array.nbytes // max(1, len(array))))


def _widths_of_fixed_lists(array: pa.Array) -> _Widths:
    size = array.type.list_size
    return _at(_widths(array.values), (array.offset + np.arange(len(array) + 1)) * size)


def _widths_of_structs(array: pa.Array) -> _Widths:
    fields = [_widths(array.field(i)) for i in range(array.type.num_fields)]
    alike = sum(w for w in fields if isinstance(w, int))
    wide = [w for w in fields if not isinstance(w, int)]
    return sum(wide, np.arange(len(array) + 1) * alike) if wide else max(1, alike)


def _widths_of_entries(array: pa.DictionaryArray) -> _Widths:
    """Bytes of dictionaries' entries: what they decode to."""
    entries = _widths(array.dictionary)
    if isinstance(entries, int):
        return entries
    if not len(array.dictionary):
        return 1
    sizes = np.diff(entries)[array.indices.fill_null(0).to_numpy()]
    return np.concatenate([[0], np.cumsum(sizes)])


def _widths_of_views(array: pa.Array) -> _Widths:
    """A view's first 4 of 16 bytes are the length of its text."""
    views = np.frombuffer(array.buffers()[1] or b"", np.int32).reshape(-1, 4)
    lengths = views[array.offset : array.offset + len(array), 0]
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def _at(widths: _Widths, ends: np.ndarray) -> np.ndarray:
    """Bytes before each end of lists. Each element counts, also one that is empty."""
    return ends * widths if isinstance(widths, int) else widths[ends] + ends


def offsets(array: pa.Array) -> np.ndarray:
    """Where the rows of texts or lists begin and end: int64 array, shape (n + 1,)."""
    return _stored_offsets(array).astype(np.int64, copy=False)


def ends(array: pa.Array) -> tuple[int, int]:
    """Where the first row of texts or lists begins, and the last one ends."""
    found = _stored_offsets(array)
    return int(found[0]), int(found[-1])


def _stored_offsets(array: pa.Array) -> np.ndarray:
    """As an array has them, in 32 or 64 bits: shape (n + 1,)."""
    if not len(array):
        return np.zeros(1, np.int64)
    types = pa.types
    large = (types.is_large_string, types.is_large_binary, types.is_large_list)
    width = np.int64 if any(is_(array.type) for is_ in large) else np.int32
    found = np.frombuffer(array.buffers()[1], width)
    return found[array.offset : array.offset + len(array) + 1]


def numbers_in_runs(begins: np.ndarray) -> np.ndarray:
    """The position of each entry in its run, from 0: int64 array, shape (n,)."""
    places = np.arange(begins.size)
    return places - np.maximum.accumulate(np.where(begins, places, 0))
