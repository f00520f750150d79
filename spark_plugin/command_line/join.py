"""`coincide join`, on either engine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pyarrow as pa

from spark_plugin.accelerator import is_accelerated
from spark_plugin.command_line.arguments import JoinRequest
from spark_plugin.command_line.arrow_inputs import ArrowInput, with_like_keys
from spark_plugin.command_line.input_checks import check_for_spark, check_zones, path_columns
from spark_plugin.command_line.inputs import Source, find_source
from spark_plugin.command_line.interruption import raise_if_interrupted
from spark_plugin.command_line.outputs import (
    RowGroups,
    local_output,
    spark_output,
    write_frame,
)
from spark_plugin.command_line.progress import Progress
from spark_plugin.command_line.spark_session import session
from spark_plugin.command_line.summary import Summary
from spark_plugin.command_line.unknown_types import Types, unknown_types
from spark_plugin.tables import plain_type
from spark_plugin.worker import TableJoin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from spark_plugin.correlation import Correlation


def run_join(request: JoinRequest) -> Summary:
    """Join and write the output.

    Raises
    ------
    CoincideError
        For bad usage or bad data; no output is left then, nor after any other failure.
    """
    sources = [
        find_source(side, text, request.file_format)
        for side, text in (("left", request.left), ("right", request.right))
    ]
    with Progress() as progress:
        if request.engine == "local":
            return _run_local(request, sources, progress)
        return _run_spark(request, sources, progress)


def _run_local(request: JoinRequest, sources: list[Source], progress: Progress) -> Summary:
    with local_output(request.output, request.overwrite, sources) as output:
        started = time.perf_counter()
        inputs = [ArrowInput(s, request.arguments["options"].unit == "ns") for s in sources]
        for given, columns in zip(inputs, request.columns, strict=True):
            check_zones(given, columns)
        types = _unknown_types(request, inputs)
        needed = list(zip(inputs, request.columns, types, strict=True))
        # First without rows: what is wrong with columns shows before anything is read.
        empty = [given.typed(columns, kinds).empty_table() for given, columns, kinds in needed]
        _table_join(request, empty)
        tables = []
        for given, columns, kinds in needed:
            progress.show(f"reading {given.source.text}")
            tables.append(given.table(columns, kinds))
        job = _table_join(request, tables)
        progress.show("joining")
        with RowGroups(output, job.schema) as groups:
            for batch in job.batches():
                raise_if_interrupted()
                groups.write(batch)
                progress.show(f"joining: {groups.rows:,} rows written")
        raise_if_interrupted()
        output.commit()
        seconds = time.perf_counter() - started
    done = job.summary
    assert done is not None
    return Summary(
        request.output, "local", done.left, done.right, done.counters, groups.rows, seconds
    )


def _table_join(request: JoinRequest, tables: list[pa.Table]) -> TableJoin:
    left, right = with_like_keys(tables[0], tables[1], request.arguments["by"])
    return TableJoin(left, right, request.condition, **request.arguments)


def _unknown_types(request: JoinRequest, inputs: list[ArrowInput]) -> tuple[Types, Types]:
    """Types for what the files do not tell; of inputs that only Spark can open nothing is known."""
    left, right = (
        pa.schema([]) if request.engine == "spark" and given.source.is_uri else given.told(columns)
        for given, columns in zip(inputs, request.columns, strict=True)
    )
    return unknown_types(request, (left, right))


def _run_spark(request: JoinRequest, sources: list[Source], progress: Progress) -> Summary:
    with spark_output(request.output, request.overwrite, sources) as output:
        inputs = [ArrowInput(source) for source in sources]
        types = _check_before_spark(request, inputs)
        progress.show("starting Spark")
        begun = time.perf_counter()
        with session(request.master, request.conf, request.debug) as spark:
            started = time.perf_counter()
            plan = _spark_join(request, inputs, types, spark, progress)
            with progress.following(spark, "joining"):
                write_frame(plan.dataframe, output)
            counters = plan.counters() if plan.observation is not None else None
            seconds = time.perf_counter() - started
        rows = output.rows()
        output.commit()
    return Summary(
        request.output, "spark", plan.left, plan.right, counters, rows, seconds,
        started - begun, plan.slices, plan.replication,
    )  # fmt: skip


def _check_before_spark(request: JoinRequest, inputs: list[ArrowInput]) -> tuple[Types, Types]:
    """What can be told without Spark fails before it has to start. Types for unknown columns."""
    for given, columns in zip(inputs, request.columns, strict=True):
        check_for_spark(given, columns)
    types = _unknown_types(request, inputs)
    tables = []
    for given, names, unknown in zip(inputs, _time_names(request), types, strict=True):
        if given.source.is_uri or path_columns(given.source).intersection(names):
            return types  # Spark alone knows of which type they are
        schema = given.typed(names, unknown)
        tables.append(pa.schema([f.with_type(plain_type(f.type)) for f in schema]).empty_table())
    # Times only: as keys, Spark takes many types for one that differ here.
    left, right = _time_names(request)
    handed_out = {"by": [], "left_columns": left, "right_columns": right}
    TableJoin(tables[0], tables[1], request.condition, **(request.arguments | handed_out))
    return types


def _time_names(request: JoinRequest) -> tuple[list[str], list[str]]:
    given = request.arguments
    return list(dict.fromkeys(given["left_time"])), list(dict.fromkeys(given["right_time"]))


def _spark_join(
    request: JoinRequest,
    inputs: list[ArrowInput],
    types: tuple[Types, Types],
    spark: SparkSession,
    progress: Progress,
) -> Correlation:
    from spark_plugin.command_line.spark_inputs import spark_frame
    from spark_plugin.correlation import plan_correlation

    # The Accelerator cannot plan a query that is observed, and fails it.
    observe = not is_accelerated(spark)
    with progress.following(spark, "planning"):
        left, right = (
            spark_frame(spark, *one) for one in zip(inputs, request.columns, types, strict=True)
        )
        return plan_correlation(
            left, right, request.condition, **request.arguments, observe=observe
        )
