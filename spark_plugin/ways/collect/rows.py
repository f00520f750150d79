"""Rows on their way to the driver, which Spark's estimate may take for far fewer than they are.

A task is one partition, and what it finds is in memory as a whole, several times over. So each stops at a
bound of its own, and what could come from any number of partitions is counted first.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from spark_plugin.cluster.spark_errors import spark_errors_as_ours
from spark_plugin.frames.columns import field_of, quoted, wire_bytes

_ROW_OF_PARTITION = "(monotonically_increasing_id() & ((1L << 33) - 1L))"


@dataclass(frozen=True, eq=False)
class Wanted:
    """Columns of a DataFrame."""

    frame: DataFrame
    names: list[str]
    called: str = ""
    is_computed: bool = False

    @property
    def widths(self) -> dict[str, int | str | None]:
        """Bytes of the values of each: alike, in SQL, or None of nested ones."""
        kinds = {name: field_of(self.frame, "", name).dataType for name in self.names}
        return {name: wire_bytes(quoted(name), kind) for name, kind in kinds.items()}


def must_be_counted(wanted: Wanted) -> bool:
    """Whether no bound on rows bounds what the driver takes: of nested columns no row tells its size."""
    return None in wanted.widths.values()


def counted(wanted: Wanted) -> tuple[int, int]:
    """Bytes and number of the rows, nested columns as long as their text would be. Runs a job."""
    nested = "coalesce(octet_length(to_json(struct({}))), 0)"
    widths = [
        str(nested.format(quoted(name)) if width is None else width)
        for name, width in wanted.widths.items()
    ]
    size = f"coalesce(sum({' + '.join(widths)}), 0)"
    with spark_errors_as_ours():
        (found,) = wanted.frame.selectExpr(f"{size} AS bytes", "count(1) AS rows").collect()
    return int(found["bytes"]), found["rows"]


def collected_rows(wanted: Wanted, most: tuple[int, int] | None) -> pa.Table | None:
    """All rows; where there are more than `most`, some that are more. None if texts are too long."""
    frame = wanted.frame
    # Always a plan of its own: that of the user's DataFrame may have been run before, and Spark would take
    # again what it shuffled then, and the hour that it was.
    if most is None or sorted(frame.columns) != sorted(wanted.names):
        frame = frame.selectExpr(*map(quoted, wanted.names))
    texts = {name: width for name, width in wanted.widths.items() if isinstance(width, str)}
    if most is not None and wanted.is_computed:
        # Spark leaves out a limit that it knows to be kept, and with it the one partition.
        frame = frame.limit(most[1] + 1).coalesce(1)
    if most is not None:
        frame = frame.where(f"{_ROW_OF_PARTITION} <= {most[1]}L")
    if most is None or not texts:
        return _arrow(frame)
    withheld = max(wanted.names, key=len) + "_"  # which no other column is called
    own = " + ".join(texts.values())
    frame = frame.selectExpr(
        "*", f"{_ROW_OF_PARTITION} * ({own}) > {most[0]}L AS {quoted(withheld)}"
    )
    kept = {name: quoted(name) for name in frame.columns}
    for name in texts:
        kept[name] = f"if({quoted(withheld)}, NULL, {quoted(name)}) AS {quoted(name)}"
    table = _arrow(frame.selectExpr(*kept.values()))
    is_withheld = pc.any(table.column(withheld)).as_py()
    return None if is_withheld else table.drop_columns(withheld)


def _arrow(frame: DataFrame) -> pa.Table:
    with spark_errors_as_ours():
        return frame.toArrow()
