"""From arguments to a planned direct join, or to the reason why the direct way is closed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.parquet as pq

from event_model.condition import TimingCondition
from event_model.errors import CoincideError
from event_model.options import CorrelateOptions
from spark_plugin.direct.columns import check_present, needed_columns, with_like_keys
from spark_plugin.direct.files import Given, ParquetFiles, find_files
from spark_plugin.direct.footers import (
    RowGroup,
    check_alike,
    common_schema,
    file_schemas,
    int96_columns,
    read_footers,
    row_groups,
)
from spark_plugin.direct.plan import DirectPlan, direct_plan
from spark_plugin.direct.slice_join import DirectJoin
from spark_plugin.worker import TablePlan, names_of, plan_tables

TIMES_WITH_STATISTICS = (
    'spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")'
)
"""Spark's default, INT96, has none."""
REMEDY = f'{TIMES_WITH_STATISTICS} and df.sort("min_time").write.parquet("ordered")'


_BEST_GROUP_ROWS = 100_000


class NotDirect(CoincideError, ValueError):
    """The files can be joined, but not this way; the text says why and what would help."""


def plan_files(
    left: Given,
    right: Given,
    condition: TimingCondition,
    *,
    parallelism: int,
    **arguments: Any,
) -> DirectJoin:
    """Plan a join from the footers of its files.

    Parameters
    ----------
    left, right : str, path or sequence of str
        As `find_files` takes them.
    condition : TimingCondition
    parallelism : int
        Tasks that run at once.
    **arguments
        As `spark_plugin.correlate_tables`, which also says what is raised.

    Raises
    ------
    NotDirect
        If a needed column is INT96, row groups have no statistics of their times, or so little order
        that rows would be read more than ``options.max_replication`` times.
    DataError
        If a file is missing or cannot be read.
    SchemaError
        If a column is missing, or differs between the files of a side; `MissingColumn` if only some
        files of a side have it.
    """
    files = find_files("left", left), find_files("right", right)
    footers = [read_footers(side) for side in files]
    for side, read, names in zip(files, footers, needed_columns(arguments), strict=True):
        check_present(side.side, file_schemas(side, read), names)
    own = [common_schema(*side) for side in zip(files, footers, strict=True)]
    schemas = with_like_keys(own, names_of(arguments.get("by", ())))
    tables = plan_tables(schemas[0], schemas[1], condition, **arguments)
    groups = []
    for i in (0, 1):
        check_alike(files[i], footers[i], own[i], tables.columns(i))
        _check_no_int96(files[i], footers[i], tables.columns(i))
        groups.append(row_groups(footers[i], tables.scales[i]))
        _check_known(files[i], groups[i], tables, i)
    options: CorrelateOptions = arguments.get("options", CorrelateOptions())
    plan = direct_plan(
        groups[0], groups[1], tables.spec.window,
        parallelism=parallelism, slices=options.slices, slice_rows=options.slice_rows,
    )  # fmt: skip
    _check_ordered(plan, groups, options)
    return DirectJoin(files, tables, plan, (schemas[0], schemas[1]))


def _check_no_int96(
    files: ParquetFiles, footers: Sequence[pq.FileMetaData], names: Sequence[str]
) -> None:
    """PyArrow would read them as nanoseconds, and times before 1678 or after 2262 wrongly."""
    for path, footer in zip(files.paths, footers, strict=True):
        old = sorted(int96_columns(footer).intersection(names))
        if old:
            raise NotDirect(
                f"{files.side}: {path} has {' and '.join(old)} as INT96, Spark's default for"
                f" timestamps, which has no statistics; write it again after {TIMES_WITH_STATISTICS}"
            )


def _check_known(
    files: ParquetFiles, groups: Sequence[RowGroup], tables: TablePlan, side: int
) -> None:
    unknown = next((group for group in groups if not group.is_known), None)
    if unknown is not None:
        names = " and ".join(dict.fromkeys(s.column.name for s in tables.scales[side]))
        raise NotDirect(
            f"{files.side}: {files.paths[unknown.file]} has no statistics of {names}; write it with"
            " statistics, and times as timestamps in microseconds or integers"
        )


def _check_ordered(
    plan: DirectPlan, groups: Sequence[Sequence[RowGroup]], options: CorrelateOptions
) -> None:
    if plan.reads > options.max_replication:
        sizes = [group.rows for side in groups for group in side]
        largest, slice_rows = max(sizes), max(1, sum(sizes) // len(plan.slices))
        if largest > slice_rows:
            raise NotDirect(
                f"row groups hold up to {largest:,} rows where a slice has about {slice_rows:,}, and are"
                f" read whole, so that each row would be read {plan.reads:.1f} times on average"
                f" (max_replication is {options.max_replication:g}); written once in order of time and"
                f" in smaller row groups, as by {_smaller_groups(slice_rows)}, the files would be joined"
                " without an exchange"
            )
        raise NotDirect(
            f"the files are so little ordered in time that each row would be read {plan.reads:.1f} times"
            f" on average (max_replication is {options.max_replication:g}); ordered once, as by"
            f" {REMEDY}, they would be joined without an exchange"
        )


def _smaller_groups(slice_rows: int) -> str:
    """How to write row groups of which a slice holds several."""
    size = max(1, min(_BEST_GROUP_ROWS, slice_rows // 4))
    return f'pq.write_table(table.sort_by("min_time"), "ordered.parquet", row_group_size={size})'
