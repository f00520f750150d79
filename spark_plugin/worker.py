"""The worker half: joins of Arrow data in one process, without a JVM."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from event_model.condition import TimingCondition
from event_model.errors import ConditionError, SchemaError
from event_model.options import Backend, CorrelateOptions, Emit, How, check_choice
from event_model.results import JoinCounters
from event_model.units import Tick
from spark_plugin.backends import check_backend, load_backend
from spark_plugin.emission import Emission, JoinSpec, check_emission, output_schema
from spark_plugin.sides import Side
from spark_plugin.tables import (
    SideCounts,
    arrow_time_column,
    can_be_key,
    check_keys,
    column_of,
    plain_type,
    read_side,
)
from spark_plugin.time_columns import TimeScale, resolve_tick, scale_of, time_names

_BATCH_PAIRS = 1_000_000


@dataclass(frozen=True)
class JoinSummary:
    """What a finished join did.

    Parameters
    ----------
    left, right : SideCounts
    counters : JoinCounters
    seconds : float
    """

    left: SideCounts
    right: SideCounts
    counters: JoinCounters
    seconds: float


def correlate_tables(
    left: pa.Table,
    right: pa.Table,
    condition: TimingCondition,
    *,
    left_time: str | Sequence[str] = ("min_time", "max_time"),
    right_time: str | Sequence[str] = ("min_time", "max_time"),
    by: str | Sequence[str] = (),
    left_columns: str | Sequence[str] = ("id",),
    right_columns: str | Sequence[str] = ("id",),
    how: How = "inner",
    emit: Emit = "pairs",
    probability: bool = False,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
) -> pa.Table:
    """Join two tables of events by satisfaction probability, in this process.

    The same join as `spark_plugin.correlate`, with the same arguments, on Arrow tables.

    Parameters
    ----------
    left, right : pa.Table
        Events: time columns (timestamps, integers or floats), key columns, columns to hand out.
    condition : TimingCondition
        The window on T_right - T_left and the confidence that it must reach.
    left_time, right_time : str or (str, str)
        The min and max column of the interval timestamps; one name for exact instants.
    by : str or sequence of str
        Columns that must be equal on both sides.
    left_columns, right_columns : str or sequence of str
        Columns to hand out, as ``left_<name>`` and ``right_<name>``.
    how : {"inner", "left", "semi", "anti"}
        ``left`` keeps left events without a partner, ``semi`` and ``anti`` give one row per left event
        that has, or lacks, a partner.
    emit : {"pairs", "lists", "counts", "best"}
        One row a pair; or one row per left event with arrays (in no particular order), with the number
        of its ``matches``, or with its most probable partner. With ``how="inner"`` events without a
        partner are left out, with ``how="left"`` they have empty arrays, 0, or nulls.
    probability : bool
        Add the satisfaction probability (float64), a column or an array.
    backend : {"auto", "cpu", "gpu"}
    options : CorrelateOptions

    Returns
    -------
    pa.Table
        Columns `by`, ``left_...``, ``right_...`` (or ``matches``), ``probability``.

    Raises
    ------
    SchemaError
        If a column is missing or of a type that cannot serve.
    ConditionError
        If the condition or an argument makes no sense.
    DataError
        If rows are invalid and ``options.invalid`` is ``"raise"``.
    BackendError
        If the backend is not here.
    """
    job = TableJoin(
        left, right, condition, left_time=left_time, right_time=right_time, by=by,
        left_columns=left_columns, right_columns=right_columns, how=how, emit=emit,
        probability=probability, backend=backend, options=options,
    )  # fmt: skip
    return pa.Table.from_batches(job.batches(), schema=job.schema)


class TableJoin:
    """A join of two tables, batch by batch. Arguments as `correlate_tables`.

    Everything that can be known without the rows is checked when it is made.
    """

    def __init__(
        self,
        left: pa.Table,
        right: pa.Table,
        condition: TimingCondition,
        *,
        left_time: str | Sequence[str] = ("min_time", "max_time"),
        right_time: str | Sequence[str] = ("min_time", "max_time"),
        by: str | Sequence[str] = (),
        left_columns: str | Sequence[str] = ("id",),
        right_columns: str | Sequence[str] = ("id",),
        how: How = "inner",
        emit: Emit = "pairs",
        probability: bool = False,
        backend: Backend = "auto",
        options: CorrelateOptions = CorrelateOptions(),
    ) -> None:
        check_arguments(condition, how, emit, probability, backend)
        check_sides(left, right, pa.Table, "a pyarrow.Table")
        check_names(
            left_time=left_time, right_time=right_time, by=by,
            left_columns=left_columns, right_columns=right_columns,
        )  # fmt: skip
        check_options(options)
        self._tables = left, right
        self._by = names_of(by)
        self._payload = names_of(left_columns), names_of(right_columns)
        self._options = options
        self._check_key_types()
        scales, tick = self._scales(time_names("left", left_time), time_names("right", right_time))
        self._scales_of_sides = scales
        self._longest = declared_lengths(options, tick)
        self._spec = JoinSpec(
            condition.window(tick), how, emit, probability, backend, options.classes,
            options.threads or len(os.sched_getaffinity(0)), options.batch_pairs or _BATCH_PAIRS,
        )  # fmt: skip
        self.schema = output_schema(self._spec, *self._fields())
        self.summary: JoinSummary | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the join. `summary` stands when the last batch was taken.

        Raises
        ------
        DataError
            If rows are invalid and ``options.invalid`` is ``"raise"``.
        """
        started = time.perf_counter()
        (left, left_counts), (right, right_counts) = self._read(0), self._read(1)
        emission = Emission(left, right, self._spec, self.schema, load_backend(self._spec.backend))
        yield from emission
        seconds = time.perf_counter() - started
        self.summary = JoinSummary(left_counts, right_counts, emission.counters, seconds)

    def _read(self, i: int) -> tuple[Side, SideCounts]:
        return read_side(
            self._tables[i], self._scales_of_sides[i], self._by, self._payload[i],
            self._options.invalid, self._longest[i],
        )  # fmt: skip

    def _check_key_types(self) -> None:
        kinds = [
            [plain_type(column_of(table, side, name).type) for name in self._by]
            for table, side in zip(self._tables, ("left", "right"), strict=True)
        ]
        check_keys(self._by, *([(str(kind), can_be_key(kind)) for kind in side] for side in kinds))

    def _scales(self, *names: tuple[str, str]) -> tuple[list[tuple[TimeScale, TimeScale]], Tick]:
        columns = [
            arrow_time_column(side, name, column_of(table, side, name).type)
            for table, side, pair in zip(self._tables, ("left", "right"), names, strict=True)
            for name in pair
        ]
        unit = self._options.unit
        tick = resolve_tick(columns, unit)
        scales = [scale_of(column, tick, unit) for column in columns]
        return [(scales[0], scales[1]), (scales[2], scales[3])], tick

    def _fields(self) -> list[list[pa.Field]]:
        left, right = self._tables
        by = [pa.field(name, plain_type(column_of(left, "left", name).type)) for name in self._by]
        sides = [
            [
                pa.field(f"{side}_{name}", plain_type(column_of(table, side, name).type))
                for name in names
            ]
            for table, side, names in zip(
                (left, right), ("left", "right"), self._payload, strict=True
            )
        ]
        return [by, *sides]


def check_arguments(
    condition: TimingCondition, how: str, emit: str, probability: bool, backend: str
) -> None:
    """The checks that need no data.

    Raises
    ------
    ConditionError, BackendError
    """
    if not isinstance(condition, TimingCondition):
        raise SchemaError(
            f"condition must be a TimingCondition(predicate, confidence); found {condition!r}"
        )
    check_choice("how", how, ("inner", "left", "semi", "anti"))
    check_choice("emit", emit, ("pairs", "lists", "counts", "best"))
    check_emission(how, emit, probability)
    check_backend(backend)


def check_sides(left: object, right: object, kind: type, words: str) -> None:
    """Refuse what are no tables.

    Raises
    ------
    SchemaError
    """
    for side, given in (("left", left), ("right", right)):
        if not isinstance(given, kind):
            raise SchemaError(f"{side} must be {words}; found {type(given).__name__}. Convert it")


def check_names(**arguments: object) -> None:
    """Refuse what are no names of columns.

    Raises
    ------
    ConditionError
    """
    for argument, given in arguments.items():
        if isinstance(given, str):
            continue
        is_time = argument.endswith("_time")  # whose length and names `time_names` checks
        if not isinstance(given, Collection) or not (
            is_time or all(isinstance(name, str) for name in given)
        ):
            words = "a (min, max) pair of names" if is_time else "a sequence of names"
            none = "" if is_time else "; () means none"
            raise ConditionError(
                f"{argument} must be a column name or {words}{none}; found {given!r}"
            )


def check_options(options: object) -> None:
    """Refuse what are no options.

    Raises
    ------
    ConditionError
    """
    if not isinstance(options, CorrelateOptions):
        raise ConditionError(f"options must be CorrelateOptions(...); found {options!r}")


def names_of(columns: str | Sequence[str]) -> list[str]:
    """Column names as a list; one name may stand alone."""
    return [columns] if isinstance(columns, str) else list(columns)


def declared_lengths(options: CorrelateOptions, tick: Tick) -> tuple[int | None, int | None]:
    """The declared longest lengths of both sides, in ticks."""
    left, right = (
        None if length is None else tick.count(length)
        for length in (options.left_longest, options.right_longest)
    )
    for name, length in (("left_longest", left), ("right_longest", right)):
        if length is not None and length < 0:
            raise ConditionError(f"{name} is a length and cannot be negative; found {length} ticks")
    return left, right
