"""Templates: fitted to a table of delays, read from tables and small files, and written to them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Integral
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq

from coincide.engine.events.frames import TABLES, arrow_table, offers_arrow
from coincide.engine.events.schemas import can_be_label, check_name, plain_type
from coincide.engine.events.ticks import contiguous
from coincide.model.errors import ConditionError, DataError, SchemaError, argument, brief
from coincide.model.templates.fitting import TemplateFit, fitted_to_delays
from coincide.model.templates.template import Edge, GivenTemplate, Templates, comparable
from coincide.model.units import NANOSECONDS_PER_UNIT, TIME_LIMIT, parse_duration, unit_name

_ROWS = {"lower": False, "delay_lower": True}
_LISTS = {"edges": False, "delays": True}
_TWICE = "templates: the id {} is given twice. Give each template its own id."
_KNOWN = {"template", "mass", "masses", "upper", "delay_upper", *_ROWS, *_LISTS}

_LAYOUTS = (
    "Give a row per bucket with the columns template, lower, upper, mass. For delays of detection the"
    " columns are template, delay_lower, delay_upper, mass. Or give a row per template with lists:"
    " template, edges, masses, or for delays template, delays, masses."
)


def templates_of(source: object, unit: str | None = None) -> Templates:
    """Templates from whatever holds them."""
    if isinstance(source, TemplateFit):
        source = source.templates
    if isinstance(source, Templates):
        if unit is not None and source.unit not in (None, unit_name(unit)):
            raise ConditionError(
                f"templates: the edges have the unit {source.unit} already (found unit={unit!r})."
                " Remove unit."
            )
        return source if unit is None else Templates(source.given, unit)
    if isinstance(source, str | os.PathLike):
        return _of_table(_read(Path(source)), unit)
    if isinstance(source, Mapping):
        return _of_mapping(source, unit)
    if not offers_arrow(source):
        raise SchemaError(
            "templates must be a mapping, the path of a file, or a table that offers Arrow's C"
            f" stream (found {brief(source)} of type {type(source).__name__})."
        )
    names = () if isinstance(source, pa.Table) else getattr(source, "columns", ())
    return _of_table(arrow_table("templates", source, list(names)), unit)


def template_rows(templates: Templates | TemplateFit) -> pa.Table:
    """Templates as a table, to be kept in a file: a row per template, with lists of edges and masses.

    Edges that have a unit are durations of whole nanoseconds; exact ones that have none are integers where
    they are whole, and else the doubles nearest to them, as masses are.

    Parameters
    ----------
    templates : Templates or TemplateFit

    Returns
    -------
    pa.Table
        ``template``, ``edges`` (or ``delays``) and ``masses``.

    Raises
    ------
    DataError
        If some templates describe delays and others times.
    """
    if isinstance(templates, TemplateFit):
        templates = templates.templates
    given = templates.given
    kinds = {each.delays for each in given.values()}
    if len(kinds) > 1:
        raise DataError(
            "one table cannot hold templates of delays and other templates. Write two tables."
        )
    edges = pa.array([_whole_edges(each.edges, templates.unit) for each in given.values()])
    if templates.unit is not None:
        edges = edges.cast(pa.list_(pa.int64())).cast(pa.list_(pa.duration("ns")))
    return pa.table(
        {
            "template": list(given),
            "delays" if kinds.pop() else "edges": edges,
            "masses": [[float(mass) for mass in each.masses] for each in given.values()],
        }
    )


def _whole_edges(edges: Sequence[Edge], unit: str | None) -> list[Edge]:
    """Edges as nanoseconds; as numbers that Arrow can mix where they have no unit."""
    if unit is None:
        return [_plain_edge(edge) for edge in edges]
    size = NANOSECONDS_PER_UNIT[unit]
    return [
        round(parse_duration(edge) if isinstance(edge, str) else Fraction(edge) * size)
        for edge in edges
    ]


def _plain_edge(edge: Edge) -> Edge:
    if not isinstance(edge, Decimal | Fraction):
        return edge
    number = float(edge)
    return int(edge) if number.is_integer() and int(edge) == edge else number


def _of_mapping(source: Mapping, unit: str | None) -> Templates:
    given: dict[str, GivenTemplate] = {}
    for key, pair in source.items():
        if isinstance(key, bool) or not isinstance(key, str | Integral):
            raise SchemaError(f"templates: an id must be text or an integer (found {brief(key)}).")
        name = str(key)
        if name in given:
            raise DataError(_TWICE.format(brief(name)))
        given[name] = _given(name, pair)
    return Templates(given, unit)


def _given(name: str, pair: object) -> GivenTemplate:
    if isinstance(pair, GivenTemplate):
        return pair
    if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
        raise SchemaError(f"template {brief(name)} must be (edges, masses) (found {brief(pair)}).")
    for part in pair:
        if isinstance(part, str) or not isinstance(part, Iterable):
            raise SchemaError(
                f"template {brief(name)}: edges and masses must be sequences (found {brief(part)})."
            )
    edges, masses = pair
    return GivenTemplate(tuple(edges), tuple(masses))


def _read(path: Path) -> pa.Table:
    readers = {".parquet": _read_parquet, ".csv": _read_csv}
    ipc = {".arrow", ".feather", ".ipc"}
    kind = path.suffix.lower()
    if kind not in readers.keys() | ipc:
        raise SchemaError(
            f"templates: the format of {path} is unknown. Give a .parquet, .csv, .arrow or"
            " .feather file."
        )
    try:
        if kind in ipc:
            return pa.ipc.open_file(path).read_all()
        return readers[kind](path)
    except FileNotFoundError as error:
        raise DataError(f"templates: {path} does not exist. Check its name.") from error
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"templates: {path} cannot be read: {error}") from error


def _read_parquet(path: Path) -> pa.Table:
    """A file as it is, columns that are there twice included, or a folder of such."""
    if path.is_dir():
        return pq.read_table(path)
    with pq.ParquetFile(path) as file:
        return file.read()


def _read_csv(path: Path) -> pa.Table:
    """Ids as they are written, so that "007" is no number; an empty one is null."""
    options = pa.csv.ConvertOptions(
        column_types={"template": pa.string()}, null_values=[""], strings_can_be_null=True
    )
    return pa.csv.read_csv(path, convert_options=options)


def _of_table(table: pa.Table, unit: str | None) -> Templates:
    names = set(table.column_names)
    for name in sorted(names & _KNOWN):
        check_name("templates", name, table.column_names)
    for first, delays in _LISTS.items():
        if {"template", first, "masses"} <= names:
            return _of_lists(table, first, delays, unit)
    for first, delays in _ROWS.items():
        if {"template", first, first.replace("lower", "upper"), "mass"} <= names:
            return _of_buckets(table, first, delays, unit)
    found = ", ".join(table.column_names) or "no column"
    raise SchemaError(f"templates have other columns than are known (found {found}). {_LAYOUTS}")


def _of_lists(table: pa.Table, edges: str, delays: bool, unit: str | None) -> Templates:
    ids = _ids(table)
    if len(set(ids)) < len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise DataError(_TWICE.format(brief(twice)))
    for name in (edges, "masses"):
        kind = table.schema.field(name).type
        if not _is_list(kind):
            raise SchemaError(f"templates: {name} must be a list of numbers (found {kind}).")
    value, unit = _plain_values(table.column(edges), unit)
    rows = zip(ids, value.to_pylist(), table.column("masses").to_pylist(), strict=True)
    given = {}
    for name, ends, masses in rows:
        if ends is None or masses is None or None in ends or None in masses:
            raise DataError(f"template {brief(name)}: edges and masses must not be null.")
        given[name] = GivenTemplate(tuple(ends), tuple(masses), delays)
    return Templates(given, unit)


def _of_buckets(table: pa.Table, lower: str, delays: bool, unit: str | None) -> Templates:
    upper = lower.replace("lower", "upper")
    for name in (lower, upper, "mass"):
        if table.column(name).null_count:
            raise DataError(f"templates: {name} must not be null. Remove such rows.")
    if len({pa.types.is_duration(table.schema.field(name).type) for name in (lower, upper)}) > 1:
        raise SchemaError(
            f"templates: {lower} and {upper} must have one kind (found"
            f" {table.schema.field(lower).type} and {table.schema.field(upper).type}). Give both"
            " as durations, or both as numbers."
        )
    ends = {}
    for name in (lower, upper):
        ends[name], found = _plain_values(table.column(name), unit)
    buckets: dict[str, list[tuple]] = {}
    columns = _ids(table), *(ends[n].to_pylist() for n in (lower, upper))
    for name, low, high, mass in zip(*columns, table.column("mass").to_pylist(), strict=True):
        buckets.setdefault(name, []).append((low, high, mass))
    given = {name: _joined(name, rows, delays) for name, rows in buckets.items()}
    return Templates(given, found if given else unit)


def _joined(name: str, rows: list[tuple], delays: bool) -> GivenTemplate:
    """Buckets in their order as one template; what is between two of them is a bucket of mass 0."""
    rows = sorted(rows, key=lambda row: [comparable(name, end) for end in row[:2]])
    edges, masses = [rows[0][0]], []
    for low, high, mass in rows:
        if low != edges[-1]:
            if comparable(name, low) < comparable(name, edges[-1]):
                raise DataError(
                    f"template {brief(name)}: two buckets overlap, at {low}. Give buckets that"
                    " follow one another."
                )
            edges.append(low)
            masses.append(0.0)
        edges.append(high)
        masses.append(mass)
    return GivenTemplate(tuple(edges), tuple(masses), delays)


def _is_list(kind: pa.DataType) -> bool:
    lists = pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list
    return any(is_one(kind) for is_one in lists)


def _ids(table: pa.Table) -> list[str]:
    column = table.column("template")
    kind = plain_type(column.type)
    if not can_be_label(kind):
        raise SchemaError(f"templates: template must be text or an integer (found {kind}).")
    if column.null_count:
        raise DataError("templates: an id is null. Give each template an id.")
    return pc.cast(pc.cast(column, kind), pa.string()).to_pylist()


def _plain_values(column: pa.ChunkedArray, unit: str | None) -> tuple[pa.ChunkedArray, str | None]:
    """Durations as nanoseconds; anything else as it is."""
    kind = column.type
    inner = kind.value_type if _is_list(kind) else kind
    if not pa.types.is_duration(inner):
        return column, unit
    fine, plain = pa.duration("ns"), pa.int64()
    if inner is not kind:
        fine, plain = pa.list_(fine), pa.list_(plain)
    try:
        return column.cast(fine).cast(plain), "ns"
    except pa.ArrowInvalid as error:
        raise DataError(f"templates: an edge of type {inner} reaches 2^63 ns: {error}") from error


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
        The unit of plain numbers. None: ticks of the time columns that the templates will be used for.
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
    if not offers_arrow(table):
        raise SchemaError(f"delays must be {TABLES} (found {brief(table)}).")
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
        raise DataError(f"{name} has {column.null_count} null values. Remove such rows.")
    return column


def _by_id(values: np.ndarray, column: pa.ChunkedArray, name: str) -> dict[str, np.ndarray]:
    """The delays of each id, in order of the ids."""
    kind = plain_type(column.type)
    if not can_be_label(kind):
        raise SchemaError(f"{name}: ids of templates must be text or integers (found {kind}).")
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
        raise SchemaError(f"{name}: delays must be durations or numbers (found {kind}).")
    elif pa.types.is_floating(kind) and unit is None:
        raise ConditionError(
            f"{name}: delays are floats without a unit. Give it, for example {argument('unit', 's')}."
        )
    else:
        numbers = column.to_numpy()
    scale = 1.0 if unit is None else float(NANOSECONDS_PER_UNIT[unit_name(unit)] / nanoseconds)
    if not np.isfinite(numbers).all():
        raise DataError(
            f"{name}: a delay must be finite (found NaN or infinity). Remove such rows."
        )
    ticks = numbers if unit is None else np.rint(numbers.astype(np.float64) * scale)
    far = (ticks <= -_LIMIT) | (ticks >= _LIMIT)
    if far.any():
        raise DataError(
            f"{name}: the delay {numbers[far][0]} reaches 2^60 ticks. Remove such rows, or count"
            " in a coarser tick."
        )
    return ticks.astype(np.int64), None if unit is None else tick
