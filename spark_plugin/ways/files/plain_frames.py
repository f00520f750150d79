"""The direct way for DataFrames that are nothing but reads of Parquet files."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from coincide.errors import CoincideError
from spark_plugin.cluster.accelerator import is_accelerated
from spark_plugin.dataframes.plain_reads import PlainRead, plain_read
from spark_plugin.ways.files.join import plan_direct
from spark_plugin.ways.files.planning import NotDirect
from spark_plugin.ways.files.renamed import in_files
from spark_plugin.ways.files.wire import spark_type
from spark_plugin.ways.files.worker.slice_join import DirectJoin
from spark_plugin.ways.join_sides import settled
from spark_plugin.ways.planned_join import TELLS_NOTHING
from spark_plugin.worker.arguments import JoinArguments

_log = logging.getLogger("coincide")


@dataclass(frozen=True)
class PlainFrames:
    """A direct join of the files that DataFrames read.

    Parameters
    ----------
    join : DirectJoin
    names : (list of str, list of str, list of str)
        What the DataFrames call the keys, and the columns of left and of right that are handed out.
    """

    join: DirectJoin
    names: tuple[list[str], list[str], list[str]]


def plan_plain_frames(
    left: DataFrame, right: DataFrame | None, arguments: JoinArguments, *, counts: bool
) -> PlainFrames | None:
    """The direct join of the files that DataFrames read, or None where they do more, or it is closed.

    Parameters
    ----------
    left : DataFrame
    right : DataFrame or None
        None: left is joined with itself.
    arguments : JoinArguments
    counts : bool
        Whether somebody learns what was dropped: without, a look at the data has to say it.

    Raises
    ------
    NotDirect
        If ``options.way`` is ``"direct"`` and it cannot be gone.
    """
    asked = arguments.options.way == "direct"
    try:
        found = _planned(left, right, arguments, counts or asked)
    except CoincideError as closed:
        if asked:
            raise
        # What is wrong with the arguments is told by the way that is taken then.
        _log.debug("correlate: not directly, since %s", closed)
        return None
    _log.info("correlate: directly, %s", found.join.plan.describe())
    if not counts:
        _log.info(TELLS_NOTHING)
    return found


def _planned(
    left: DataFrame, right: DataFrame | None, arguments: JoinArguments, counts: bool
) -> PlainFrames:
    spark, options = left.sparkSession, arguments.options
    if options.way not in ("auto", "direct") or options.time_range is not None:
        raise NotDirect("another way was asked for")
    if is_accelerated(spark) and options.way != "direct":
        raise NotDirect("the RAPIDS Accelerator reads the files")
    if options.invalid == "drop" and not counts:
        raise NotDirect("without a report nobody would learn how many rows were dropped")
    frames = (left,) if right is None else (left, right)
    arguments = settled(arguments, frames[0], frames[-1])
    given = list(zip(arguments.sides, frames, arguments.columns, strict=False))
    reads = [_read_by(*each) for each in given]
    second = None if right is None else reads[1].paths
    of_files = in_files(arguments, reads[0].names, reads[-1].names)
    join = plan_direct(spark, reads[0].paths, second, of_files, compares_slices=True)
    for (_, frame, _), read, schema in zip(given, reads, join.schemas, strict=False):
        _check_types(frame, read.names, schema)
    return PlainFrames(join, (arguments.keys, *arguments.payload))


def _read_by(side: str, frame: DataFrame, needed: Sequence[str]) -> PlainRead:
    read = plain_read(frame, needed)
    if read is None:
        raise NotDirect(
            f"{side} is a DataFrame that does more than read local Parquet files; take"
            " correlate_files, or another way"
        )
    return read


def _check_types(frame: DataFrame, names: Mapping[str, str], schema: pa.Schema) -> None:
    """Refuse what Spark reads as something else than the file says: the reader was given a schema."""
    for name, of_file in names.items():
        own, stored = frame.schema[name].dataType, spark_type(name, schema.field(of_file).type)
        if own != stored:
            raise NotDirect(
                f"Spark reads the column {name!r} as {own.simpleString()}, not as stored"
            )
