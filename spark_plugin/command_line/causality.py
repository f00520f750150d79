"""`coincide causality`, on either engine."""

from __future__ import annotations

import time
from dataclasses import replace

import pyarrow as pa

from spark_plugin.command_line.causality_request import CausalityRequest
from spark_plugin.command_line.engines import settled
from spark_plugin.command_line.event_inputs import (
    checked_before_spark,
    checked_types,
    inputs_of,
    read_tables,
)
from spark_plugin.command_line.known_columns import with_known_columns
from spark_plugin.command_line.lines import warnings_as_lines
from spark_plugin.command_line.outputs import local_output, spark_output, write_frame
from spark_plugin.command_line.progress import Progress
from spark_plugin.command_line.requests import lines_left_out
from spark_plugin.command_line.runs import spark_at_work, written
from spark_plugin.command_line.summary import Summary
from spark_plugin.worker.causality.arguments import CausalityArguments
from spark_plugin.worker.causality.join import TableCausality
from spark_plugin.worker.inputs.csv_keys import read_ahead
from spark_plugin.worker.inputs.source import Source
from spark_plugin.worker.pair_arguments import PairArguments


def run_causality(request: CausalityRequest) -> Summary:
    """Find pairs and write the output.

    Raises
    ------
    CoincideError
        For bad usage or bad data; no output is left then, nor after any other failure.
    """
    sources = request.sources()
    request = settled(request, sources)
    run = _run_local if request.engine == "local" else _run_spark
    with warnings_as_lines(), Progress(request.hide) as progress:
        done = run(request, sources, progress)
    output, why = request.hide(request.output), request.engine_why
    return replace(done, output=output, engine_why=why, skipped=lines_left_out(sources))


def _run_local(request: CausalityRequest, sources: list[Source], progress: Progress) -> Summary:
    with local_output(request, sources) as output:
        started = time.perf_counter()
        inputs = inputs_of(request, sources)
        request = with_known_columns(request, inputs)
        types = checked_types(request, inputs, _job)
        job = _job(request.arguments, read_tables(request, inputs, types, progress.show))
        progress.show("looking for effects")

        def say(rows: int) -> None:
            progress.show(f"looking for effects: {rows:,} rows written")

        rows = written(job.batches(), job.schema, output, say)
        output.publish()
        seconds = time.perf_counter() - started
    assert job.summary is not None
    return Summary(replace(job.summary, rows=rows, seconds=seconds, way=""), "", "local")


def _run_spark(request: CausalityRequest, sources: list[Source], progress: Progress) -> Summary:
    from spark_plugin.command_line.spark_inputs import spark_frame
    from spark_plugin.ways.causality import plan_causality

    with spark_output(request, sources) as output:
        inputs = inputs_of(request, sources)
        request = with_known_columns(request, inputs)
        types = checked_before_spark(request, inputs, _job)
        with spark_at_work(request, progress) as (spark, started, start_seconds):
            inputs = read_ahead(request, inputs, types, progress.show)
            needed = list(zip(inputs, request.columns, types, strict=True))
            with progress.following(spark, "planning"):
                frames = [spark_frame(spark, *one) for one in needed[: len(sources)]]
                effects = None if request.effects is None else frames[1]
                plan = plan_causality(frames[0], effects, request.arguments, observe=True)
            with progress.following(spark, "looking for effects"):
                write_frame(plan.dataframe, output)
            summary = plan.summary()
            seconds = time.perf_counter() - started
        rows = output.rows()
        output.publish()
    done = replace(summary, rows=rows, seconds=seconds, why=request.hide(summary.why))
    return Summary(done, "", "spark", start_seconds)


def _job(arguments: PairArguments, tables: list[pa.Table]) -> TableCausality:
    causes, *effects = tables
    assert isinstance(arguments, CausalityArguments)
    return TableCausality(causes, effects[0] if effects else None, arguments)
