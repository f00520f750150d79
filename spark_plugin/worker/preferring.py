"""A column by which partners are preferred, as numbers of which the least is the best."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.errors import SchemaError
from coincide.partners import Preferred
from spark_plugin.worker.arrow.wide_columns import stored

_LAST = np.iinfo(np.int64).max - 1
"""Of null; of NaN one less, and of numbers at most two less."""
_MOST_DIGITS = 18
"""Of a decimal whose digits are an int64."""


def check_preferred(side: str, name: str, kind: pa.DataType) -> None:
    """Refuse a column by which partners cannot be ordered.

    Raises
    ------
    SchemaError
    """
    types = pa.types
    is_number = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    is_number |= types.is_decimal(kind) and kind.precision <= _MOST_DIGITS
    if not (is_number or (types.is_temporal(kind) and not types.is_interval(kind))):
        raise SchemaError(
            f"{side}.{name} is {kind}, and prefer takes a column of numbers or times; cast it, as long"
            " decimals to float64"
        )


def preference(column: pa.Array, preferred: Preferred) -> np.ndarray:
    """Numbers of which the least is the best: int64 array, shape (n,); nulls are last, before them NaN.

    Whole numbers within 3 of the last one of 64 bits count as equal.
    """
    column = stored(column)
    nulls = pc.is_null(column).to_numpy(zero_copy_only=False)
    kind = column.type
    if pa.types.is_floating(kind):
        # From 16 bits NumPy widens, which Arrow does not.
        values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
        found = _of_floats(-values if preferred.is_descending else values)
    else:
        found = _of_whole(column)
        found = np.minimum(~found if preferred.is_descending else found, _LAST - 2)
    found[nulls] = _LAST
    return found


def _of_floats(values: np.ndarray) -> np.ndarray:
    bits = (values + 0.0).view(np.int64)  # of the two zeros one
    found = np.where(bits < 0, bits ^ np.iinfo(np.int64).max, bits)
    found[np.isnan(values)] = _LAST - 1
    return found


def _of_whole(column: pa.Array) -> np.ndarray:
    """Whole numbers, and what is stored as such, in their order: int64 array."""
    kind, types = column.type, pa.types
    if types.is_uint64(kind):
        return (column.fill_null(0).to_numpy() ^ np.uint64(1 << 63)).view(np.int64)
    if types.is_decimal(kind):
        wide = column.cast(pa.decimal128(kind.precision, kind.scale)).fill_null(0)
        digits = np.frombuffer(wide.buffers()[1], np.int64)[::2]
        return digits[wide.offset : wide.offset + len(wide)].copy()
    if types.is_temporal(kind):
        column = column.view(pa.int32() if kind.bit_width == 32 else pa.int64())
    return column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False).copy()
