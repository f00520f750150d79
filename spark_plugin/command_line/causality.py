"""`coincide causality`, on either engine."""

from __future__ import annotations

import time
from dataclasses import replace

import pyarrow as pa

from spark_plugin.command_line.causality_request import CausalityRequest
from spark_plugin.command_line.engines import settled
from spark_plugin.command_line.input_checks import (
    check_complete,
    check_for_spark,
    check_zones,
    path_columns,
)
from spark_plugin.command_line.known_columns import with_known_columns
from spark_plugin.command_line.outputs import local_output, spark_output, write_frame
from spark_plugin.command_line.progress import Progress
from spark_plugin.command_line.runs import spark_at_work, written
from spark_plugin.command_line.summary import Summary
from spark_plugin.worker.arrow.schemas import plain_type
from spark_plugin.worker.causality.join import TableCausality
from spark_plugin.worker.causality.places import names_of_coordinates
from spark_plugin.worker.inputs.arrow_inputs import ArrowInput
from spark_plugin.worker.inputs.csv_keys import read_ahead, with_text_keys
from spark_plugin.worker.inputs.source import Source
from spark_plugin.worker.inputs.unknown_types import Types, types_of_unknown


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
    with Progress(request.hide) as progress:
        done = run(request, sources, progress)
    return replace(done, output=request.hide(request.output), engine_why=request.engine_why)


def _run_local(request: CausalityRequest, sources: list[Source], progress: Progress) -> Summary:
    with local_output(request, sources) as output:
        started = time.perf_counter()
        inputs = _inputs(request, sources)
        request = with_known_columns(request, inputs)
        for given, columns in zip(inputs, request.columns, strict=True):
            check_complete(given, columns)
            check_zones(given, columns)
        types = _types(request, inputs)
        needed = list(zip(inputs, request.columns, types, strict=True))
        # First without rows: what is wrong with columns shows before anything is read.
        _job(request, inputs, [g.typed(c, kinds).empty_table() for g, c, kinds in needed])
        if request.effects is not None:
            inputs = read_ahead(request, inputs, types, progress.show)
        tables: list[pa.Table] = []
        needed = list(zip(inputs, request.columns, types, strict=True))
        for given, columns, kinds in needed[: len(sources)]:
            progress.show(f"reading {given.source.text}")
            tables.append(given.table(columns, kinds))
        job = _job(request, inputs, tables)
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
        inputs = _inputs(request, sources)
        request = with_known_columns(request, inputs)
        types = _checked_before_spark(request, inputs)
        with spark_at_work(request, progress) as (spark, started, start_seconds):
            if request.effects is not None:
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


def _inputs(request: CausalityRequest, sources: list[Source]) -> list[ArrowInput]:
    """Causes and effects; of one stream both are the same."""
    arguments, options = request.arguments, request.options
    fine = request.engine == "local" and "ns" in (options.unit, options.tick)
    found = [
        ArrowInput(source, fine, times, tuple(names_of_coordinates(place)))
        for source, times, place in zip(sources, arguments.clocks, arguments.places, strict=False)
    ]
    return [found[0], found[-1]]


def _types(request: CausalityRequest, inputs: list[ArrowInput]) -> tuple[Types, Types]:
    """For columns of which no file tells the type; coordinates are numbers."""
    places = request.arguments.places
    own, others = (
        {**dict.fromkeys(names_of_coordinates(place), pa.float64()), **found}
        for place, found in zip(places, types_of_unknown(request, inputs), strict=True)
    )
    return own, others


def _job(
    request: CausalityRequest, inputs: list[ArrowInput], tables: list[pa.Table]
) -> TableCausality:
    if request.effects is None:
        return TableCausality(tables[0], None, request.arguments)
    causes, effects = with_text_keys(inputs, tables, request.keys)
    return TableCausality(causes, effects, request.arguments)


def _checked_before_spark(
    request: CausalityRequest, inputs: list[ArrowInput]
) -> tuple[Types, Types]:
    """What can be told without Spark fails before it has to start. Types for unknown columns."""
    for given, columns in zip(inputs, request.columns, strict=True):
        check_for_spark(given, columns)
    types = _types(request, inputs)
    arguments, tables = request.arguments, []
    needed = arguments.timestamp_columns
    for given, columns, unknown in zip(inputs, needed, types, strict=True):
        if given.source.is_uri or path_columns(given.source).intersection(columns):
            return types  # Spark alone knows of which type they are
        schema = given.typed(columns, unknown)
        tables.append(pa.schema([f.with_type(plain_type(f.type)) for f in schema]).empty_table())
    # Times and places only: as keys, Spark takes many types for one that differ here.
    alone = replace(
        arguments, by=(), cause_columns=needed[0], effect_columns=needed[1], where=None, case_fold=False
    )  # fmt: skip
    TableCausality(tables[0], None if request.effects is None else tables[1], alone)
    return types
