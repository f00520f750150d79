"""Sequences and coincidences of streaming DataFrames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from coincide.engine.join.pair_arguments import GivenWindow
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.sequences.arguments import (
    CheckTable,
    ColumnsOfAll,
    DurationsOfAll,
    KeysOfAll,
    SequenceEmit,
    SequenceHow,
    SequencePrefer,
    TimesOfAll,
    WidthOrWindows,
)
from coincide.engine.sequences.coincidences import coincidence_arguments, coincidence_tables
from coincide.engine.sequences.tables import sequence_arguments, sequence_tables
from coincide.model.condition import Confidence
from coincide.model.docstrings import documented
from coincide.model.options import Backend, CorrelateOptions
from coincide.model.units import Duration
from spark_plugin.operators.sequences import coincidences, sequences

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from spark_plugin.operators.sequences import Frames


@documented(sequence_tables, sequences)
def sequence_streams(
    dataframes: Frames,
    windows: Sequence[GivenWindow],
    confidence: Confidence | None = None,
    *,
    delay: DurationsOfAll,
    longest: DurationsOfAll | None = None,
    ahead: DurationsOfAll | None = None,
    clock: Mapping[str, DataFrame] | None = None,
    slice_length: Duration | None = None,
    key_buckets: int | None = None,
    name: str = "sequences",
    total: GivenWindow | None = None,
    names: Sequence[str] | None = None,
    time: TimesOfAll = ("min_time", "max_time"),
    by: KeysOfAll = (),
    columns: ColumnsOfAll = ("id",),
    how: SequenceHow = "inner",
    emit: SequenceEmit = "sequences",
    probability: bool = False,
    link_probability: bool = False,
    where: GivenWhere = None,
    prefer: SequencePrefer = "probability",
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
) -> DataFrame:
    """Find sequences of events of several streaming DataFrames.

    All rows together are those of `coincide.sequence_tables` for all rows that are not late: each comes out
    once, and is final. Rows wait in Spark's state by slices of time, like in `coincide.correlate_streams`.
    A slice has the first events of its time, and of the other streams what these may reach.

    Parameters
    ----------
    dataframes : list of streaming DataFrames, or dict of them by name, at least two
        In the order of the steps. One DataFrame may be given several times: it is read and kept once, and
        no event is in a sequence twice.
    windows, confidence
        As in `coincide.sequence_tables`.
    delay : int, str or timedelta; or dict of them by name
        How much later than a newer row of its stream a row may come. A row within its delay is never
        late. Longer delays wait longer. A DataFrame at several places has the longest delay of these.
    longest : int, str or timedelta, optional; or dict of them by name
        The longest time between the min and the max time of an event. A longer event is invalid. Needed
        with a confidence below 0.5; otherwise rows come out sooner with it. Exact times need none.
    ahead : int, str or timedelta, optional; or dict of them by name
        How far ahead of the median max_time of its stream in its micro-batch a row may be. A row further
        ahead is set aside: it takes no part, and Spark's progress counts it.
    clock : dict of DataFrames by name, optional
        Streams of one timestamp column: the stream of that name has come at least so far. Without one a
        silent stream holds all others up.
    slice_length : int, str or timedelta, optional
        Length of slices. None: so long that rows come out at most twice as late as they must.
    key_buckets : int, optional
        Parts of a slice by keys. None: as many as ``spark.sql.shuffle.partitions``.
    name : str
        What the counts of rows are called in Spark's progress: ``sequences_click`` of a stream that is
        called ``click``, ``sequences_late`` and ``sequences_output``.
    total, names, time, by, columns, how, emit, probability, link_probability, where, prefer, backend
        As in `coincide.sequences`.
    options : CorrelateOptions
        What numbers in time columns count, what becomes of invalid rows, and how it runs. Streams have no
        ``max_pairs``, ``slices`` and ``way``.

    Returns
    -------
    DataFrame
        A streaming DataFrame for output mode ``append``, with the columns of `coincide.sequences`.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If the windows or an argument make no sense, a DataFrame is static, or the session cannot keep the
        state: it needs RocksDB. A query that starts from the checkpoint of another search fails with it, by
        way of Spark.
    BackendError
        If the backend is not possible, or Spark is older than 4.1.

    Examples
    --------
    >>> found = sequence_streams(
    ...     {"click": clicks, "cart": carts, "pay": payments},
    ...     windows=[("0s", "2min"), ("0s", "30min")], time="at", by="user", delay="10s",
    ... )
    >>> found.writeStream.option("checkpointLocation", "checkpoint").start("sequences")
    """
    from spark_plugin.ways.streaming.sequences import TupleStreamArguments, find_in_streams

    asked = TupleStreamArguments(
        operator="sequence_streams", tables="sequences", delay=delay, longest=longest, ahead=ahead,
        clock=clock, slice_length=slice_length, key_buckets=key_buckets, name=name,
    )  # fmt: skip
    question = sequence_arguments(
        dataframes, windows, confidence, total=total, names=names, time=time, by=by,
        columns=columns, how=how, emit=emit, probability=probability,
        link_probability=link_probability, where=where, prefer=prefer, backend=backend, options=options,
        check=_check("sequence_tables"),
    )  # fmt: skip
    return find_in_streams(question, asked)


@documented(coincidence_tables, coincidences, sequence_streams)
def coincidence_streams(
    dataframes: Frames,
    within: WidthOrWindows,
    confidence: Confidence | None = None,
    *,
    delay: DurationsOfAll,
    longest: DurationsOfAll | None = None,
    ahead: DurationsOfAll | None = None,
    clock: Mapping[str, DataFrame] | None = None,
    slice_length: Duration | None = None,
    key_buckets: int | None = None,
    name: str = "coincidences",
    at_least: int | None = None,
    names: Sequence[str] | None = None,
    time: TimesOfAll = ("min_time", "max_time"),
    by: KeysOfAll = (),
    columns: ColumnsOfAll = ("id",),
    probability: bool = False,
    where: GivenWhere = None,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
) -> DataFrame:
    """Find sets of events of streaming DataFrames within a width of each other.

    All rows together are those of `coincide.coincidence_tables` for all rows that are not late: each comes
    out once, and is final. Rows wait like in `coincide.sequence_streams`.

    Parameters
    ----------
    dataframes : list of streaming DataFrames, or dict of them by name, at least two
        Each once.
    within, confidence, at_least
        As in `coincide.coincidence_tables`.
    delay, longest, ahead, clock, slice_length, key_buckets
        As in `coincide.sequence_streams`.
    name : str
        What the counts of rows are called in Spark's progress: ``coincidences_north`` of a stream that is
        called ``north``, ``coincidences_late`` and ``coincidences_output``.
    names, time, by, columns, probability, where, backend
        As in `coincide.coincidences`.
    options
        As in `coincide.sequence_streams`.

    Returns
    -------
    DataFrame
        A streaming DataFrame for output mode ``append``, with the columns of `coincide.coincidences`.

    Raises
    ------
    SchemaError, ConditionError, BackendError
        As `coincide.sequence_streams`.

    Examples
    --------
    >>> found = coincidence_streams(
    ...     {"north": north, "east": east, "south": south}, within="30ms", at_least=2, time="at",
    ...     delay="2s",
    ... )
    """
    from spark_plugin.ways.streaming.sequences import TupleStreamArguments, find_in_streams

    asked = TupleStreamArguments(
        operator="coincidence_streams", tables="coincidences", delay=delay, longest=longest,
        ahead=ahead, clock=clock, slice_length=slice_length, key_buckets=key_buckets, name=name,
    )  # fmt: skip
    question = coincidence_arguments(
        dataframes, within, confidence, at_least=at_least, names=names, time=time, by=by,
        columns=columns, probability=probability, where=where, backend=backend, options=options,
        check=_check("coincidence_tables"),
    )  # fmt: skip
    return find_in_streams(question, asked)


def _check(tables: str) -> CheckTable:
    """What refuses all but DataFrames; `tables` takes tables."""
    from spark_plugin.frames.keyed_rows import must_be_frame

    return lambda given, name: must_be_frame(given, name, tables)
