"""Events in arrays, and in what memory these are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.events.time_columns import INVALID_REASONS, in_plain_units
from coincide.model.errors import CoincideError, DataError, SchemaError, argument, brief
from coincide.model.sides import SIDES

_CUDA_DEVICES = 2, 13
"""What DLPack calls memory of a CUDA device, and memory that one manages."""
_TAKEN = "a NumPy, CuPy, Arrow or pandas array, or one that offers DLPack"


class EventArrays(NamedTuple):
    """Events of one side of `correlate_arrays`, in arrays of one kind of memory.

    Attributes
    ----------
    min_time : array, shape (n,)
        Earliest times: whole numbers, datetime64 or timedelta64, or floats with a unit in the
        options. Exact instants if `max_time` is None.
    max_time : array, shape (n,), or None
        Latest times.
    key : array, shape (n,), or None
        Whole numbers that must be equal on both sides. One below 0 matches nothing.

    Examples
    --------
    >>> import numpy as np
    >>> from coincide import EventArrays
    >>> hits = EventArrays(np.array([10, 60]), np.array([12, 65]), key=np.array([0, 3]))
    >>> hits.key.tolist()
    [0, 3]
    """

    min_time: Any
    max_time: Any | None = None
    key: Any | None = None


def event_arrays(side: str, given: Any) -> EventArrays:
    """What was given as a side: `EventArrays`, a tuple of as many arrays, or one array of instants."""
    if given is None or isinstance(given, (dict, str)):
        raise SchemaError(
            f"{argument(side)} must be EventArrays(min_time, max_time, key) or one array (found"
            f" {brief(given)}). Give its arrays."
        )
    if not isinstance(given, tuple):
        return EventArrays(given)
    if not 1 <= len(given) <= len(EventArrays._fields):
        raise SchemaError(
            f"{argument(side)} must be EventArrays(min_time, max_time, key) or one array (found a"
            f" tuple of {len(given)}). Give one to three arrays."
        )
    return EventArrays(*given)


def named_arrays(sides: list[EventArrays]) -> Iterator[tuple[str, str, Any]]:
    """The arrays that there are: side, field and array."""
    for side, events in zip(SIDES, sides, strict=False):
        for field, array in zip(EventArrays._fields, events, strict=True):
            if array is not None:
                yield side, field, array


def are_on_device(sides: list[EventArrays], others: dict[str, Any]) -> bool:
    """Whether all arrays are in a GPU's memory; refuses some here and some there."""
    given = {f"{side}.{field}": array for side, field, array in named_arrays(sides)} | others
    there = {name: is_on_device(name, array) for name, array in given.items()}
    if len(set(there.values())) > 1:
        device, host = (
            next(name for name, is_there in there.items() if is_there is wanted)
            for wanted in (True, False)
        )
        raise SchemaError(
            f"all arrays must be in one memory (found {device} on a GPU, and {host} not)."
            " Bring them together, with cupy.asarray(...) or .get()."
        )
    return any(there.values())


def is_on_device(name: str, array: Any) -> bool:
    """Whether an array is in a GPU's memory."""
    if isinstance(array, np.ndarray):
        return False
    try:
        if getattr(array, "__cuda_array_interface__", None) is not None:
            return True
    except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:  # cuDF's, of nulls
        raise SchemaError(
            f"{name} offers no memory of a GPU (found {brief(str(error))}). Leave rows with nulls"
            " out first, or fill the nulls of a key with -1."
        ) from error
    place = getattr(array, "__dlpack_device__", None)
    return place is not None and int(place()[0]) in _CUDA_DEVICES


def table_of(side: str, events: EventArrays) -> pa.Table:
    """Events in the host's memory as a table whose columns are named as the arrays are."""
    columns = {}
    for field, array in zip(EventArrays._fields, events, strict=True):
        if array is not None:
            column = host_column(f"{side}.{field}", array)
            columns[field] = _key(side, column) if field == "key" else column
            _check_no_nulls(f"{side}.{field}", columns[field], is_key=field == "key")
    check_lengths(side, {field: len(column) for field, column in columns.items()})
    if "key" in columns:
        columns["key"] = _without_negative(columns["key"])
    return pa.table(columns)


def check_lengths(side: str, sizes: dict[str, int]) -> None:
    """Refuse arrays of a side that differ in length."""
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{field} of {size:,}" for field, size in sizes.items())
        raise SchemaError(
            f"arrays of {side} differ in length (found {found}). Give each event one."
        )


def host_column(name: str, array: Any) -> pa.Array | pa.ChunkedArray:
    """An array in the host's memory as Arrow has it, copied only where it is not contiguous."""
    given = array
    try:
        if not isinstance(array, np.ndarray):
            array = _of_library(name, array)
        return _of_numpy(name, array) if isinstance(array, np.ndarray) else array
    except CoincideError:
        raise
    except (pa.ArrowException, OverflowError, TypeError, ValueError, BufferError) as error:
        told = f"{array.dtype}" if isinstance(array, np.ndarray) else brief(given)
        raise SchemaError(
            f"{name} must be {_TAKEN}, of whole numbers, floats, or datetime64 of s to ns (found"
            f" {told}). Convert it with numpy.asarray(...) or .astype(...)."
        ) from error


def _of_library(name: str, array: Any) -> np.ndarray | pa.Array | pa.ChunkedArray:
    """An array of another library than NumPy, as Arrow or NumPy has it."""
    if isinstance(array, (pa.Array, pa.ChunkedArray)):
        return array
    if hasattr(array, "__arrow_c_stream__"):
        return _one_column(name, pa.chunked_array(array))
    if hasattr(array, "__arrow_c_array__") or hasattr(array, "__arrow_array__"):
        return pa.array(array)
    if type(array).__module__.partition(".")[0] == "pandas":
        return pa.array(array, from_pandas=True)
    if hasattr(array, "__dlpack__"):
        return np.from_dlpack(array)
    return np.asarray(array)


def _of_numpy(name: str, array: np.ndarray) -> pa.Array:
    _check_flat(name, array)
    if array.size == 0 and array.dtype == np.float64:  # numpy.array([]) has no other
        array = array.astype(np.int64)
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    return pa.array(in_plain_units(name, array, has_dates=False))


def _one_column(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_struct(column.type):
        raise SchemaError(
            f"{name} must be one array (found a table of {column.type.num_fields} columns). Give one"
            " of its columns."
        )
    return column


def _check_flat(name: str, array: np.ndarray) -> None:
    if array.ndim != 1:
        raise SchemaError(
            f"{name} must have one dimension (found {array.ndim}). Give an array of shape (n,)."
        )


_CURES = {
    "range": "Count in a coarser unit, such as options=CorrelateOptions(unit='us'). Or: ",
    "order": "The second array is max_time: EventArrays(times, key=keys) has keys. Or: ",
}


def invalid_event(side: str, reason: str, row: int, times: dict[str, Any]) -> DataError:
    """The error of the first event whose times cannot be, for a reason of `INVALID_REASONS`."""
    told = ", ".join(f"{name}={value}" for name, value in times.items())
    return DataError(
        f"{side}: {INVALID_REASONS[reason]} {' and '.join(times)} in row {row} (found {told})."
        f" {_CURES.get(reason, '')}Mend this event, or leave such events out first."
    )


def _key(side: str, column: Any) -> Any:
    if pa.types.is_integer(column.type):
        return column
    raise SchemaError(
        f"{side}.key must be whole numbers (found {column.type}). Give codes, for example those of"
        " numpy.unique(..., return_inverse=True) of the keys of both sides together."
    )


def _check_no_nulls(name: str, column: Any, *, is_key: bool) -> None:
    if not column.null_count:
        return
    nulls = column.is_null().to_numpy(zero_copy_only=False)
    cure = "Fill them with -1" if is_key else "Leave these events out"
    raise DataError(
        f"{name} has {column.null_count:,} missing (found the first in row"
        f" {int(nulls.argmax())}). {cure} first."
    )


def _without_negative(key: Any) -> Any:
    """Keys in which one below 0, which matches nothing, is null."""
    if pa.types.is_unsigned_integer(key.type):
        return key
    chunks = key.chunks if isinstance(key, pa.ChunkedArray) else [key]
    found = []
    for chunk in chunks:
        codes = chunk.to_numpy()
        negative = codes < 0
        found.append(pa.array(codes, mask=negative) if negative.any() else chunk)
    return pa.chunked_array(found, key.type)
