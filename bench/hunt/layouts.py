"""Tables as files: Parquet in all sorts of layouts, CSV, Arrow IPC."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from bench.hunt.chance import Chance
from bench.hunt.data import DataSet
from bench.hunt.templates import Templates


def write_parquet(
    folder: Path, table: pa.Table, chance: Chance, *, order_by: str, old_times: bool = False
) -> Path:
    """Write a table to a new folder, as one file or some, in row groups of some size and order."""
    folder.mkdir(parents=True)
    table = _ordered(table, chance, order_by)
    cuts = sorted(chance.integer(0, table.num_rows) for _ in range(chance.choice((0, 0, 0, 1, 2))))
    edges = [0, *cuts, table.num_rows]
    settings = _settings(chance, table.schema, old_times)
    written = []
    for i, (start, stop) in enumerate(pairwise(edges)):
        part = table.slice(start, stop - start)
        group = chance.choice((1, 2, 3, 7, 10**6, max(1, part.num_rows // 2)))
        path = folder / f"part-{i}.parquet"
        pq.write_table(part, path, row_group_size=group, **settings)
        written.append(path)
    return written[0] if len(written) == 1 and chance.happens(70) else folder


def in_folders(table: pa.Table) -> list[str]:
    """The columns that the names of folders can tell: an empty text is a null there."""

    def is_told(name: str) -> bool:
        values, kind = table[name], table.schema.field(name).type
        if pa.types.is_date32(kind):  # written by Python, which has four digits for a year
            days = values.drop_null().cast(pa.int32()).to_pylist()
            return all(_FIRST_DAY <= day <= _LAST_DAY for day in days)
        if pa.types.is_string(kind):
            return "" not in values.to_pylist()
        return bool(pa.types.is_integer(kind))

    return list(filter(is_told, table.column_names))


_FIRST_DAY, _LAST_DAY = ((day - date(1970, 1, 1)).days for day in (date.min, date.max))


_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""What a folder says that has a null."""
_FILTERS = (
    (("1", "2"), ("0", "13", _NO_VALUE), "{} IN (1, 2)"),
    (("7", "8"), ("6", "10", _NO_VALUE), "{} BETWEEN 7 AND 8"),
    (("-3", "5"), ("4", _NO_VALUE), "{0} = 5 OR {0} < 3.5"),
    (("2026-11-01", "2026-12-31"), ("2026-10-31", _NO_VALUE), "{} >= '2026-11-01'"),
    (("a b", "é,c", _NO_VALUE), ("null",), "NOT {} <=> 'null'"),
    (("x=1", "null"), ("y", _NO_VALUE), "{} <> 'y'"),
    ((_NO_VALUE,), ("null", "0"), "{} IS NULL"),
)
"""What folders say that a filter keeps, what others say, and the filter in SQL."""


def write_filtered(folder: Path, table: pa.Table, name: str, chance: Chance) -> str:
    """As `write_folders`, in folders next to others that a filter leaves out; the filter's SQL."""
    kept, others, condition = chance.choice(_FILTERS)
    column = f"a folder of {table.num_columns}"  # no column of a case is called so
    places = [chance.integer(0, len(kept) - 1) for _ in range(table.num_rows)]
    parts = [
        (said, [r for r, each in enumerate(places) if each == i]) for i, said in enumerate(kept)
    ]
    last = table.num_rows - 1
    parts += [(said, list(range(chance.integer(0, last), last + 1))) for said in others]
    for said, rows in parts:
        inside = folder / f"{_escaped(column)}={said if said == _NO_VALUE else _escaped(said)}"
        inside.mkdir()
        write_folders(inside, table.take(pa.array(rows, pa.int64())), name, chance)
    return condition.format(f"`{column}`")


def write_folders(folder: Path, table: pa.Table, name: str, chance: Chance) -> None:
    """Write a file for each value of a column, which only the name of its folder tells."""
    values = table[name].to_pylist()
    for value in sorted(set(values), key=repr):
        rows = [row for row, each in enumerate(values) if each == value]
        told = _NO_VALUE if value is None else _escaped(str(value))
        inside = folder / f"{_escaped(name)}={told}"
        inside.mkdir()
        part = table.drop_columns(name).take(pa.array(rows))
        pq.write_table(part, inside / "part.parquet", row_group_size=chance.choice((1, 3, 50)))


def _escaped(text: str) -> str:
    """As Spark writes values in names of folders, and a few more characters so."""
    return "".join(
        each if each.isalnum() or ord(each) > 127 or each in " -." else f"%{ord(each):02X}"
        for each in text
    )


def _ordered(table: pa.Table, chance: Chance, order_by: str) -> pa.Table:
    order = chance.choice(("time", "time", "given", "shuffled", "half"))
    if order == "time":
        return table.sort_by(order_by)
    if order == "given" or not table.num_rows:
        return table
    rows = chance.shuffled(range(table.num_rows))
    if order == "half":  # some rows in order of time, then the others in none
        early, late = (table.take(pa.array(part, pa.int64())) for part in (rows[::2], rows[1::2]))
        return pa.concat_tables([early.sort_by(order_by), late])
    return table.take(rows)


def _settings(chance: Chance, schema: pa.Schema, old_times: bool) -> dict[str, Any]:
    """How Parquet is written; nothing of it changes a value."""
    nanoseconds = any(pa.types.is_timestamp(kind) and kind.unit == "ns" for kind in schema.types)
    if old_times and chance.happens(60):
        return {"use_deprecated_int96_timestamps": True}
    return {
        "version": "2.6" if nanoseconds else chance.choice(("2.6", "2.6", "2.4", "1.0")),
        "write_statistics": not chance.happens(10),
        "use_dictionary": chance.happens(50),
        "data_page_version": chance.choice(("1.0", "2.0")),
        "compression": chance.choice(("snappy", "none", "zstd")),
        # Without Arrow's schema a duration is read as a plain number.
        "store_schema": chance.happens(75) or any(map(pa.types.is_duration, schema.types)),
    }


def can_be_parquet(data: DataSet) -> bool:
    """Whether every time can be written: seconds become milliseconds, which not all have room for."""
    for side in data.sides:
        for i, kind in enumerate(side.types):
            if kind.step == "s" and any(abs(row[i] or 0) > 2**53 for row in side.rows):
                return False
    return True


def can_be_int96(data: DataSet) -> bool:
    """Whether all times are instants, as INT96 is, of years that its writer takes."""
    if data.families != {"timestamp"} or (
        data.extra is not None and data.extra.name == "wall clock"
    ):
        return False
    return all(
        abs(value or 0) * data.factor(kind) < 2**52
        for side in data.sides
        for row in side.rows
        for value, kind in zip(row, side.types, strict=False)
    )


def write_ipc(path: Path, table: pa.Table, chance: Chance) -> Path:
    """Write an Arrow IPC file or stream."""
    new: Callable[..., Any] = chance.choice((pa.ipc.new_stream, pa.ipc.new_file))
    with new(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=chance.choice((1, 5, 1000)))
    return path


def write_templates(folder: Path, data: DataSet, chance: Chance) -> dict[int, Path]:
    """The templates of the sides that have some, each in a file of some kind and layout."""
    found = {}
    for number, side in enumerate(data.sides):
        if side.templates is not None:
            table = _template_table(side.templates, by_bucket=chance.happens(50))
            nested = "masses" in table.column_names
            kind = chance.choice((".parquet", ".arrow", ".feather", *[".csv"] * (not nested)))
            found[number] = folder / f"templates-{number}{kind}"
            _WRITERS[kind](table, found[number])
    return found


def _template_table(templates: Templates, *, by_bucket: bool) -> pa.Table:
    """A row per bucket, or a row per template."""
    ends = ("delay_lower", "delay_upper") if templates.delays else ("lower", "upper")
    if not by_bucket:
        ids, edges, masses = map(list, zip(*templates.given, strict=True))
        name = "delays" if templates.delays else "edges"
        return pa.table({"template": ids, name: edges, "masses": masses})
    rows = [
        (name, *bucket)
        for name, edges, masses in templates.given
        for bucket in zip(edges, edges[1:], masses, strict=False)
    ]
    columns = map(list, zip(*rows, strict=True))
    return pa.table(dict(zip(("template", *ends, "mass"), columns, strict=True)))


def _write_ipc_file(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


_WRITERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    ".parquet": pq.write_table, ".csv": pa_csv.write_csv,
    ".arrow": _write_ipc_file, ".feather": _write_ipc_file,
}  # fmt: skip

_CSV_TIMES = ("int64", "float64", "timestamp[us]", "timestamp_ntz[us]")
_CSV_VALUES = ("string", "int64")
_CSV_LATEST = 9 * 10**15
"""Microseconds; later ones are no nanoseconds, in which Arrow reads fractions first."""


def can_be_csv(data: DataSet) -> bool:
    """Whether readers of CSV, who guess types, guess those of the data."""
    kinds = [kind for side in data.sides for kind in side.types]
    values = [*data.key_types, *([] if data.extra is None else [data.extra])]
    stamped = any(family.startswith("timestamp") for family in data.families)
    times = [row[i] for side in data.sides for row in side.rows for i in (0, 1)]
    return (
        all(kind.name in _CSV_TIMES for kind in kinds)
        and len({kind.name for kind in kinds}) == 1
        and all(value.name in _CSV_VALUES for value in values)
        and not any("" in (*row.keys, row.extra) for side in data.sides for row in side.rows)
        and not (stamped and any(abs(time or 0) > _CSV_LATEST for time in times))
    )


def write_csv(path: Path, data: DataSet, side: int) -> Path:
    """Write a side with a header; nulls are empty."""
    given, table = data.sides[side], data.table(side)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        for row in given.rows:
            times = [
                _csv_time(row[i], given.types[i].family) for i in range(len(data.time_names(side)))
            ]
            template = [] if given.templates is None else [row.template]
            extra = [] if data.extra is None else [row.extra]
            writer.writerow([*times, row.number, *row.keys, *template, *extra])
    return path


def _csv_time(value: Any, family: str) -> Any:
    if value is None or not family.startswith("timestamp"):
        return value
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=value)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S.%f")
    return text + "Z" * (family == "timestamp")
