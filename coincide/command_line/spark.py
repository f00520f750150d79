"""Spark, as commands use it: one quiet session, and inputs as DataFrames."""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from coincide.command_line.event_inputs import check_for_spark, has_plain_subfolders
from coincide.command_line.interruption import OUR_FAILURE
from coincide.command_line.problems import Problem, explain
from coincide.engine.files.arrow_inputs import ArrowInput
from coincide.engine.files.credentials import NOT_FOR_SPARK, holds_settings
from coincide.engine.files.footers import read_footers
from coincide.engine.files.source import path_columns
from coincide.model.errors import SchemaError
from coincide.model.units import NANOSECONDS_PER_UNIT
from spark_plugin.cluster.connect import context_of
from spark_plugin.cluster.session import active_session, local_session
from spark_plugin.frames.columns import decode, quoted, spark_type, with_file_name
from spark_plugin.tasks import MARKS_VARIABLE
from spark_plugin.tasks.wire import carried_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType


_STOP_SECONDS = 30
_ERROR_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")


@contextmanager
def session(master: str | None, conf: dict[str, str], debug: bool) -> Iterator[SparkSession]:
    """A Spark session for one command, stopped at its end unless it was there before."""
    # What the JVM says on its stderr goes to a file, which is kept only when we fail.
    there = active_session()
    if there is not None:
        with _quiet(debug), _keeping_marks(there):
            yield there
        return
    handle, log = tempfile.mkstemp(prefix="coincide-spark-", suffix=".log")
    os.close(handle)
    spark, keep, stop = None, False, _stop
    try:
        with _same_handler():
            spark = local_session(master, "coincide", log=None if debug else log, **conf)
        with _quiet(debug), _keeping_marks(spark):
            yield spark
    except Exception as error:
        keep = explain(error)[0] == OUR_FAILURE and os.path.getsize(log) > 0
        if keep:
            error.add_note(f"Spark's log: {log}")
        raise
    except BaseException:
        stop = _abandon
        raise
    finally:
        if spark is not None:
            stop(spark)
        if not keep:
            os.remove(log)


@contextmanager
def _keeping_marks(spark: SparkSession) -> Iterator[None]:
    """Have workers mark arguments in their errors, so that options are named; Spark Connect sets none."""
    context = context_of(spark)
    variables: dict[str, str] = {} if context is None else context.environment
    before = variables.get(MARKS_VARIABLE, "0")
    variables[MARKS_VARIABLE] = "1"
    try:
        yield
    finally:
        variables[MARKS_VARIABLE] = before


@contextmanager
def _quiet(debug: bool) -> Iterator[None]:
    """Keep PySpark from printing the errors that it raises, with their stack, as JSON."""
    from pyspark.logger import PySparkLogger

    # Through PySpark's own class: a plain logger of the name would not take what PySpark says.
    loggers = [PySparkLogger.getLogger(name) for name in _ERROR_LOGGERS]
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = logger.disabled or not debug
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


@contextmanager
def _same_handler() -> Iterator[None]:
    """Undo PySpark's handler of SIGINT: it talks to the JVM in the middle of another talk."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _stop(spark: SparkSession) -> None:
    spark.stop()


def _abandon(spark: SparkSession) -> None:
    """Cancel what runs and stop, from another thread: this one's talk with the JVM was cut off."""
    context = getattr(spark, "_sc", None)

    def end() -> None:
        with suppress(Exception):
            if context is not None:
                context.cancelAllJobs()
        with suppress(Exception):
            spark.stop()

    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    thread.join(_STOP_SECONDS)
    jvm = getattr(getattr(context, "_gateway", None), "proc", None)
    if jvm is not None:
        # It ends with its stdin; nothing may go on writing when the output is taken away.
        with suppress(Exception):
            jvm.stdin.close()
            jvm.wait(_STOP_SECONDS)


_GLOB_CHARACTERS = str.maketrans({character: "\\" + character for character in "\\{}[]*?,"})
_NANOS_AS_LONG = "spark.sql.legacy.parquet.nanosAsLong"


def spark_frame(
    spark: SparkSession,
    given: ArrowInput,
    columns: list[str],
    types: Mapping[str, pa.DataType] | None = None,
) -> DataFrame:
    """One input as a DataFrame."""
    check_for_spark(given, columns)
    return with_file_name(_parquet(spark, given, columns, types or {}), columns)


def _parquet(
    spark: SparkSession, given: ArrowInput, columns: list[str], types: Mapping[str, pa.DataType]
) -> DataFrame:
    from spark_plugin.frames.delta_reads import refuse_elsewhere

    source = given.source
    if source.is_uri:
        if holds_settings(source.text):
            raise Problem(f"{source.side}: {source.text} {NOT_FOR_SPARK}")
        refuse_elsewhere(spark, source.side, source.text)
        return spark.read.parquet(source.text)
    source.found.check_held(columns)
    # Spark has no nanoseconds: it reads such columns as integers, if a setting says so.
    spark.conf.set(_NANOS_AS_LONG, "true")
    # No character is to be read as a glob, nor another file system than this one's.
    paths = ["file://" + path.translate(_GLOB_CHARACTERS) for path in source.paths]
    subfolders = str(has_plain_subfolders(source)).lower()
    frame = spark.read.option("recursiveFileLookup", subfolders).parquet(*paths)
    told = given.told(columns)
    _refuse_beyond_microseconds(given, told)
    unknown = [
        field for field in given.typed(columns, types) if field.type != told.field(field.name).type
    ]
    changed = {
        f.name: _microseconds(source.side, f.name, f.type)
        for f in told
        if _is_fine(f.type) or pa.types.is_duration(f.type)
    } | {field.name: _nothing(source.side, field) for field in unknown}
    # Spark Connect refuses to change no column.
    return frame.withColumns(changed) if changed else frame


def _refuse_beyond_microseconds(given: ArrowInput, needed: pa.Schema) -> None:
    from spark_plugin.frames.coarse_times import refuse_beyond_microseconds

    own = path_columns(given.source)
    coarse = [
        field.name
        for field in needed
        if pa.types.is_timestamp(field.type) and field.type.unit in ("s", "ms")
        if field.name not in own
    ]
    if coarse:
        files = given.source.found
        refuse_beyond_microseconds(files, read_footers(files, coarse), coarse, "use --engine local")


def _nothing(side: str, field: pa.Field) -> Column:
    """Spark would take a column without a type for integers."""
    from pyspark.sql import functions as F

    return F.lit(None).cast(_spark_kind(side, field.with_type(carried_type(field.type))))


def _is_fine(kind: pa.DataType) -> bool:
    return (pa.types.is_timestamp(kind) or pa.types.is_duration(kind)) and kind.unit == "ns"


def _microseconds(side: str, name: str, kind: pa.DataType) -> Column:
    """Nanoseconds as a timestamp, or integers as a duration; an error where that would lose time."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as T

    value = F.col(quoted(name))
    if kind.unit != "ns":
        whole = f"({quoted(name)} * {NANOSECONDS_PER_UNIT[kind.unit] // 1000}L)"
        return F.expr(decode(whole, T.DayTimeIntervalType()))
    refused = F.raise_error(F.lit(_too_fine(side, name))).cast("bigint")
    micros = F.when(value % 1000 == 0, F.expr(f"{quoted(name)} div 1000")).when(
        value.isNotNull(), refused
    )
    if pa.types.is_duration(kind):
        return micros * F.expr(decode("1L", T.DayTimeIntervalType()))
    instant = F.timestamp_micros(micros)
    return instant if kind.tz is not None else instant.cast("timestamp_ntz")


def _too_fine(side: str, name: str) -> str:
    return (
        f"{side}.{name} has times finer than 1 us, which Spark cannot hold. Use --engine local"
        " --unit ns, or round them."
    )


def _spark_kind(side: str, field: pa.Field) -> DataType:
    """Spark's type for a column; timestamps without a zone stay wall-clock times."""
    try:
        return spark_type(field.name, field.type)
    except SchemaError:
        raise Problem(
            f"{side}.{field.name} has a type that Spark does not have (found {field.type}). Cast"
            " it, or use --engine local."
        ) from None
