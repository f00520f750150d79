"""Templates from a table of measured delays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import pyarrow as pa

from coincide.engine.events.frames import arrow_table, offers_arrow
from coincide.engine.events.schemas import can_be_label, check_name, plain_type
from coincide.engine.events.ticks import contiguous
from coincide.model.errors import ConditionError, DataError, SchemaError, brief
from coincide.model.templates.fitting import TemplateFit, fitted_to_delays
from coincide.model.units import NANOSECONDS_PER_UNIT, TIME_LIMIT, unit_name

_ALL = "all"
_LIMIT = TIME_LIMIT // 2


def templates_from_delays(
    table: object,
    *,
    delay: str,
    by: str | None = None,
    buckets: int = 12,
    method: Literal["quantile", "width"] = "quantile",
    fewest: int = 30,
    pool: bool = False,
    unit: str | None = None,
    tick: str = "us",
) -> TemplateFit:
    """Template histograms of measured delays: Mok, Woo & Lee (2006), Example 3.

    Parameters
    ----------
    table : table
        Anything that offers Arrow's C stream: Arrow tables, pandas, Polars.
    delay : str
        Column of delays, seen less happened: durations, whole numbers, or floats with a `unit`.
    by : str, optional
        Column of template ids: one template for each. None: one template, ``"all"``.
    buckets : int
        Most buckets of a template. Few delays make fewer: five a bucket at least.
    method : {"quantile", "width"}
        Buckets of equal numbers of delays, or of equal width.
    fewest : int
        Delays that a template needs.
    pool : bool
        Whether ids with fewer get the histogram of all delays together; else they are an error.
    unit : str, optional
        Of plain numbers. None: ticks of the time columns that the templates will be used for.
    tick : str
        Unit of the templates' edges, where delays have one.

    Returns
    -------
    TemplateFit
        With the fit of each template.

    Raises
    ------
    SchemaError
        If a column is missing or of a wrong type.
    DataError
        If delays are null, not finite or too few.
    """
    if not (offers_arrow(table) or isinstance(table, Mapping)):
        raise SchemaError(
            "delays: expected a table that offers Arrow's C stream, such as those of pyarrow, pandas and"
            f" Polars; found {brief(table)}"
        )
    rows = arrow_table("delays", table, [delay] if by is None else [delay, by])
    values, edge_unit = _whole_delays(_column(rows, delay), delay, unit, tick)
    alone = {_ALL: values} if values.size else {}
    delays = alone if by is None else _by_id(values, _column(rows, by), by)
    return fitted_to_delays(
        delays, buckets=buckets, method=method, fewest=fewest, pool=pool, unit=edge_unit
    )


def _column(table: pa.Table, name: str) -> pa.ChunkedArray:
    check_name("delays", name, table.column_names)
    column = table.column(name)
    if column.null_count:
        raise DataError(f"{name}: {column.null_count} values are null; leave such rows out")
    return column


def _by_id(values: np.ndarray, column: pa.ChunkedArray, name: str) -> dict[str, np.ndarray]:
    """The delays of each id, in order of the ids."""
    kind = plain_type(column.type)
    if not can_be_label(kind):
        raise SchemaError(f"{name}: ids of templates are text or integers; found {kind}")
    ids = contiguous(column).cast(kind).cast(pa.string()).dictionary_encode()
    places = ids.indices.to_numpy()
    ends = np.cumsum(np.bincount(places, minlength=len(ids.dictionary)))
    parts = np.split(values[np.argsort(places, kind="stable")], ends[:-1])
    found = dict(zip(ids.dictionary.to_pylist(), parts, strict=False))
    return {each: found[each] for each in sorted(found)}


def _whole_delays(
    column: pa.ChunkedArray, name: str, unit: str | None, tick: str
) -> tuple[np.ndarray, str | None]:
    """Delays as int64, and the unit they are counted in."""
    kind, nanoseconds = column.type, NANOSECONDS_PER_UNIT[unit_name(tick)]
    if pa.types.is_duration(kind):
        unit, numbers = kind.unit, column.cast(pa.int64()).to_numpy()
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise SchemaError(f"{name}: delays are durations or numbers; found {kind}")
    elif pa.types.is_floating(kind) and unit is None:
        raise ConditionError(f"{name}: delays are floats; say of which unit (unit='s')")
    else:
        numbers = column.to_numpy()
    scale = 1.0 if unit is None else NANOSECONDS_PER_UNIT[unit_name(unit)] / nanoseconds
    if not np.isfinite(numbers).all():
        raise DataError(f"{name}: a delay is not finite; leave such rows out")
    ticks = numbers if unit is None else np.rint(numbers.astype(np.float64) * scale)
    far = (ticks <= -_LIMIT) | (ticks >= _LIMIT)
    if far.any():
        raise DataError(
            f"{name}: the delay {numbers[far][0]} reaches 2^60 ticks; leave such rows out, or count in a"
            " coarser tick"
        )
    return ticks.astype(np.int64), None if unit is None else tick
