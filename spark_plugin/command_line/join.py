"""`coincide join`, on either engine."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from spark_plugin.command_line.arguments import JoinRequest
from spark_plugin.command_line.arrow_inputs import ArrowInput, with_like_keys
from spark_plugin.command_line.inputs import Source, find_source
from spark_plugin.command_line.outputs import (
    RowGroups,
    local_output,
    spark_output,
    write_frame,
)
from spark_plugin.command_line.progress import Progress
from spark_plugin.command_line.spark_session import session
from spark_plugin.command_line.summary import Summary
from spark_plugin.worker import TableJoin

if TYPE_CHECKING:
    import pyarrow as pa
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
        # First without rows: what is wrong with columns shows before anything is read.
        _table_join(request, [_no_rows(*one) for one in zip(inputs, request.columns, strict=True)])
        tables = []
        for given, columns in zip(inputs, request.columns, strict=True):
            progress.show(f"reading {given.source.text}")
            tables.append(given.table(columns))
        job = _table_join(request, tables)
        progress.show("joining")
        with RowGroups(output, job.schema) as groups:
            for batch in job.batches():
                groups.write(batch)
                progress.show(f"joining: {groups.rows:,} rows written")
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


def _no_rows(given: ArrowInput, columns: list[str]) -> pa.Table:
    given.check_columns(columns)
    return given.schema.empty_table().select(columns)


def _run_spark(request: JoinRequest, sources: list[Source], progress: Progress) -> Summary:
    with spark_output(request.output, request.overwrite, sources) as output:
        for source, columns in zip(sources, request.columns, strict=True):
            if not source.is_uri:
                ArrowInput(source).check_columns(columns)  # fails before Spark has to start
        progress.show("starting Spark")
        begun = time.perf_counter()
        with session(request.master, request.conf, request.debug) as spark:
            started = time.perf_counter()
            plan = _spark_join(request, sources, spark, progress)
            with progress.following(spark, "joining"):
                write_frame(plan.dataframe, output)
            counters = plan.counters()
            seconds = time.perf_counter() - started
        rows = output.rows()
        output.commit()
    return Summary(
        request.output, "spark", plan.left, plan.right, counters, rows, seconds,
        started - begun, plan.slices, plan.replication,
    )  # fmt: skip


def _spark_join(
    request: JoinRequest, sources: list[Source], spark: SparkSession, progress: Progress
) -> Correlation:
    from spark_plugin.command_line.spark_inputs import spark_frame
    from spark_plugin.correlation import plan_correlation

    with progress.following(spark, "planning"):
        left, right = (
            spark_frame(spark, source, columns)
            for source, columns in zip(sources, request.columns, strict=True)
        )
        return plan_correlation(left, right, request.condition, **request.arguments, observe=True)
