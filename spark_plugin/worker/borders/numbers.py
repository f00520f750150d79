"""Values and borders as float64, without a change of any of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.errors import DataError, SchemaError
from coincide.plurals import several
from spark_plugin.worker.arrow.schemas import check_name, column_of, plain_type
from spark_plugin.worker.arrow.ticks import contiguous


def check_number(side: str, name: str, kind: pa.DataType) -> None:
    """Refuse a column that floats do not hold.

    Raises
    ------
    SchemaError
    """
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        raise SchemaError(
            f"{side}.{name} is {kind}; it must be an integer or a float. Cast it to float64"
        )


def check_numbers(side: str, names: list[str], schema: pa.Schema) -> None:
    """Refuse columns that are missing, or that floats do not hold.

    Raises
    ------
    SchemaError
    """
    for name in names:
        check_name(side, name, schema.names)
        check_number(side, name, plain_type(schema.field(name).type))


def floats_of(table: pa.Table, side: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A column as floats, NaN where it is null; and where it is null.

    Returns
    -------
    float64 array, bool array, shape (n,)

    Raises
    ------
    DataError
        If an integer is none of float64.
    """
    column = contiguous(column_of(table, side, name))
    null = pc.is_null(column).to_numpy(zero_copy_only=False)
    try:
        values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        # As integers: as a float 2^53 + 1 is 2^53.
        whole = pc.fill_null(column, 0).to_numpy()
        far = (whole > 2**53) | (whole < -(2**53))
        example = column[int(np.argmax(far))].as_py()
        raise DataError(words_of_far(side, name, int(far.sum()), str(example))) from None
    return values, null


def words_of_far(side: str, name: str, count: int, example: str) -> str:
    """What is wrong with integers that are none of float64."""
    return (
        f"{side}.{name} has integers beyond 2^53, which float64 does not tell apart, in"
        f" {several(count, 'row')}, for example {example}; subtract an offset from values and"
        " borders, or cast both to float64"
    )
