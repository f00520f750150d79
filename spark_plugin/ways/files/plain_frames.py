"""The direct way for DataFrames that are nothing but reads of Parquet files."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame

from coincide.engine.files.planning import NotDirect
from coincide.engine.files.slice_join import DirectJoin
from coincide.engine.join.arguments import JoinArguments
from coincide.model.errors import CoincideError
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames.columns import spark_type
from spark_plugin.frames.plain_reads import PlainRead, plain_read
from spark_plugin.ways.correlation import TELLS_NOTHING
from spark_plugin.ways.files.join import plan_direct
from spark_plugin.ways.join_sides import settled

_log = logging.getLogger("coincide")


def plan_plain_frames(
    left: DataFrame, right: DataFrame | None, arguments: JoinArguments, *, counts: bool
) -> DirectJoin | None:
    """The direct join of the files that DataFrames read, or None where they do more, or it is closed."""
    asked = arguments.options.way == "files"
    try:
        join = _planned(left, right, arguments, counts or asked)
    except CoincideError as closed:
        if asked:
            raise
        # The way that is taken then says what is wrong with the arguments.
        _log.debug("correlate: way 'files' is not possible: %s", closed)
        return None
    _log.info("correlate: by files, %s", join.plan.describe())
    if not counts:
        _log.info(TELLS_NOTHING)
    return join


def _planned(
    left: DataFrame, right: DataFrame | None, arguments: JoinArguments, counts: bool
) -> DirectJoin:
    spark, options = left.sparkSession, arguments.options
    if options.way not in ("auto", "files"):
        raise NotDirect("you chose another way.")
    if is_accelerated(spark) and options.way != "files":
        raise NotDirect("the RAPIDS Accelerator reads the files.")
    if options.invalid == "drop" and not counts:
        raise NotDirect(
            "only a report can tell how many rows are skipped. Pass report=JoinReport()."
        )
    frames = (left,) if right is None else (left, right)
    arguments = settled(arguments, frames[0], frames[-1])
    given = list(zip(arguments.sides, frames, arguments.columns, strict=False))
    reads = [_read_by(*each) for each in given]
    second = None if right is None else reads[1].paths
    names = reads[0].names, reads[-1].names
    join = plan_direct(spark, reads[0].paths, second, arguments, compares_slices=True, names=names)
    for (_, frame, needed), schema in zip(given, join.tables.as_asked(join.schemas), strict=False):
        _check_types(frame, schema, needed)
    return join


def _read_by(side: str, frame: DataFrame, needed: Sequence[str]) -> PlainRead:
    read = plain_read(frame, needed)
    if read is None:
        raise NotDirect(
            f"{side} is a DataFrame that does more than read local Parquet files. Use"
            " correlate_files, or another way."
        )
    return read


def _check_types(frame: DataFrame, schema: pa.Schema, needed: Sequence[str]) -> None:
    """Refuse what Spark reads as something else than the file says: the reader was given a schema."""
    for name in needed:
        own, of_file = frame.schema[name].dataType, spark_type(name, schema.field(name).type)
        if own != of_file:
            raise NotDirect(
                f"Spark reads the column {name!r} as {own.simpleString()}, not as stored."
            )
