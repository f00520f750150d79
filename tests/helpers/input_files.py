"""Files for both engines, and how one process reads them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from coincide.engine.files.arrow_inputs import arrow_input
from coincide.engine.files.source import find_source

MICROS, UTC_MICROS = pa.timestamp("us"), pa.timestamp("us", "UTC")
TABLE = pa.table({"id": [1, 2, 3], "min_time": [0, 10, 20], "max_time": [5, 15, 25]})


def read(path: Path | str, columns: list[str] | None = None, **options: object) -> pa.Table:
    given = arrow_input(find_source("left", str(path), options.pop("file_format", None)), **options)
    return given.table(columns or given.schema.names)


def write_ipc(path: Path, table: pa.Table, stream: bool) -> None:
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(path, table.schema) as writer:
        writer.write_table(table)


def csv(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


TIMES = [
    ("2026-01-02T03:04:05", datetime(2026, 1, 2, 3, 4, 5)),
    ("2026-01-02 03:04:05", datetime(2026, 1, 2, 3, 4, 5)),
    ("2026-01-02T03:04:05.5", datetime(2026, 1, 2, 3, 4, 5, 500_000)),
    ("2026-01-02 03:04:05.000001", datetime(2026, 1, 2, 3, 4, 5, 1)),
    ("1969-12-31 23:59:59.999999", datetime(1969, 12, 31, 23, 59, 59, 999_999)),
    ("2026-01-02 03:04", datetime(2026, 1, 2, 3, 4)),
    ("2026-01-02", datetime(2026, 1, 2)),
]
ZONED = [
    ("2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ("2026-01-02 03:04:05.25+02:00", datetime(2026, 1, 2, 1, 4, 5, 250_000, tzinfo=UTC)),
    ("2026-01-02T03:04:05-0130", datetime(2026, 1, 2, 4, 34, 5, tzinfo=UTC)),
    ("2026-01-02T03:04:05+01", datetime(2026, 1, 2, 2, 4, 5, tzinfo=UTC)),
]
MIXED = """id,name,ok,day,score,time,zoned
1,"a ""quoted"", b",true,2026-01-02,1.5,2026-01-02T03:04:05.5,2026-01-02T03:04:05Z
2,,false,,NaN,,
,"",,2026-01-03,,2026-01-02 03:04:05,2026-01-02 03:04:05+02:00
-9007199254740993, é ,true,2026-01-02,-1e300,1969-12-31 23:59:59.999999,1969-12-31T23:59:59.5Z
"""
