"""The worker half: joins of Arrow data in one process, without a JVM."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from coincide.condition import TimingCondition
from coincide.errors import ConditionError, SchemaError
from coincide.options import Backend, CorrelateOptions, Emit, How, Invalid, check_choice
from coincide.sides import SIDES
from coincide.units import Tick
from spark_plugin.worker.arrow.sides import Side
from spark_plugin.worker.arrow.tables import (
    SideCounts,
    arrow_time_column,
    can_be_key,
    check_keys,
    read_side,
    type_of,
)
from spark_plugin.worker.arrow.time_columns import TimeScale, resolve_tick, scale_of, time_names
from spark_plugin.worker.backends.choice import check_backend
from spark_plugin.worker.backends.devices import load_task_backend
from spark_plugin.worker.emission import (
    Emission,
    JoinSpec,
    check_emission,
    hands_out_partners,
    output_schema,
)
from spark_plugin.worker.reports.emptiness import NoPairs, evidence_of, explain_emptiness
from spark_plugin.worker.reports.key_overlap import key_overlap
from spark_plugin.worker.reports.reports import JoinReport, JoinSummary, check_report, tell

_BATCH_PAIRS = 1_000_000


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
    report: JoinReport | None = None,
) -> pa.Table:
    """Join two tables of events by satisfaction probability, in this process.

    The same join as `coincide.correlate`, with the same arguments, on Arrow tables.

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
        Columns to hand out, as ``left_<name>`` and ``right_<name>``. `right_columns` have no meaning,
        and need not exist, with ``how="semi"``, ``how="anti"`` and ``emit="counts"``, which hand out
        nothing of a partner.
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
    report : JoinReport, optional
        Is told what the rows were and what was found.

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

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, NoPairsWarning
    """
    check_report(report)
    job = TableJoin(
        left, right, condition, left_time=left_time, right_time=right_time, by=by,
        left_columns=left_columns, right_columns=right_columns, how=how, emit=emit,
        probability=probability, backend=backend, options=options,
    )  # fmt: skip
    found = pa.Table.from_batches(job.batches(), schema=job.schema)
    assert job.summary is not None
    tell(job.summary, report)
    return found


class TableJoin:
    """A join of two tables, batch by batch. Arguments as `correlate_tables`.

    Everything that can be known without the rows is checked when it is made.
    """

    def __init__(
        self, left: pa.Table, right: pa.Table, condition: TimingCondition, **arguments: Any
    ) -> None:
        remedy = "pyarrow.Table.from_pandas makes one of pandas, .to_arrow() of Polars, .toArrow() of Spark"
        check_sides(left, right, pa.Table, "a pyarrow.Table", remedy)
        self._tables = left, right
        self._plan = plan_tables(left.schema, right.schema, condition, **arguments)
        self.schema = self._plan.schema
        self.summary: JoinSummary | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the join. `summary` stands when the last batch was taken.

        Raises
        ------
        DataError
            If rows are invalid and ``options.invalid`` is ``"raise"``.
        """
        started, plan = time.perf_counter(), self._plan
        (left, left_counts), (right, right_counts) = (
            plan.read(side, table) for side, table in enumerate(self._tables)
        )
        emission = plan.join(left, right)
        yield from emission
        seconds = time.perf_counter() - started
        counters = emission.counters
        no_pairs = None if counters.pairs else plan.no_pairs(left, right)
        self.summary = JoinSummary(
            left_counts, right_counts, counters, seconds, "in memory", plan.tick, no_pairs
        )


@dataclass(frozen=True)
class TablePlan:
    """A join of tables of two schemas: everything but the rows, resolved and checked.

    Parameters
    ----------
    by : list of str
        Key columns.
    payload : (list of str, list of str)
        Columns to hand out, left and right.
    scales : tuple of (TimeScale, TimeScale)
        Of the min and the max column, left and right.
    longest : (int or None, int or None)
        Declared longest lengths, ticks.
    invalid : {"raise", "drop"}
    spec : JoinSpec
    schema : pa.Schema
        Of the output.
    """

    by: list[str]
    payload: tuple[list[str], list[str]]
    scales: tuple[tuple[TimeScale, TimeScale], ...]
    longest: tuple[int | None, int | None]
    invalid: Invalid
    spec: JoinSpec
    schema: pa.Schema

    @property
    def tick(self) -> Tick:
        """In what times are counted."""
        return self.scales[0][0].tick

    def no_pairs(self, left: Side, right: Side) -> NoPairs:
        """Why a join of these events finds nothing."""
        return explain_emptiness(
            evidence_of(left, self.scales[0][0]),
            evidence_of(right, self.scales[1][0]),
            self.spec.window,
            self.spec.how,
            key_overlap(left, right, self.by),
        )

    def columns(self, side: int) -> list[str]:
        """The columns that are needed of the left (0) or right (1) table."""
        times = (scale.column.name for scale in self.scales[side])
        return list(dict.fromkeys([*times, *self.by, *self.payload[side]]))

    def read(self, side: int, table: pa.Table) -> tuple[Side, SideCounts]:
        """The events of the left (0) or right (1) table.

        Raises
        ------
        DataError
            If rows are invalid and `invalid` is ``"raise"``.
        """
        return read_side(
            table, self.scales[side], self.by, self.payload[side], self.invalid, self.longest[side]
        )

    def join(self, left: Side, right: Side) -> Emission:
        """The output batches of a join of these events."""
        return Emission(left, right, self.spec, self.schema, load_task_backend(self.spec.backend))


def plan_tables(
    left: pa.Schema,
    right: pa.Schema,
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
) -> TablePlan:
    """Resolve the arguments of `correlate_tables`, which says what is raised, against two schemas."""
    check_arguments(condition, how, emit, probability, backend)
    check_names(
        left_time=left_time, right_time=right_time, by=by,
        left_columns=left_columns, right_columns=right_columns,
    )  # fmt: skip
    check_options(options)
    keys, payload = names_of(by), (names_of(left_columns), handed_out(right_columns, how, emit))
    schemas = left, right
    _check_key_types(schemas, keys)
    scales, tick = _scales(
        schemas,
        (time_names("left", left_time), time_names("right", right_time)),
        options,
    )
    spec = JoinSpec(
        condition.window(tick), how, emit, probability, backend, options.classes,
        options.threads or len(os.sched_getaffinity(0)), options.batch_pairs or _BATCH_PAIRS,
    )  # fmt: skip
    return TablePlan(
        keys, payload, scales, declared_lengths(options, tick), options.invalid, spec,
        output_schema(spec, *_fields(schemas, keys, payload)),
    )  # fmt: skip


def _check_key_types(schemas: tuple[pa.Schema, pa.Schema], by: list[str]) -> None:
    kinds = [
        [type_of(schema, side, name) for name in by]
        for schema, side in zip(schemas, SIDES, strict=True)
    ]
    check_keys(by, *([(str(kind), can_be_key(kind)) for kind in side] for side in kinds))


def _scales(
    schemas: tuple[pa.Schema, pa.Schema],
    names: tuple[tuple[str, str], tuple[str, str]],
    options: CorrelateOptions,
) -> tuple[tuple[tuple[TimeScale, TimeScale], ...], Tick]:
    columns = [
        arrow_time_column(side, name, type_of(schema, side, name))
        for schema, side, pair in zip(schemas, SIDES, names, strict=True)
        for name in pair
    ]
    tick = resolve_tick(columns, options)
    scales = [scale_of(column, tick, options) for column in columns]
    return ((scales[0], scales[1]), (scales[2], scales[3])), tick


def _fields(
    schemas: tuple[pa.Schema, pa.Schema], by: list[str], payload: tuple[list[str], list[str]]
) -> list[list[pa.Field]]:
    keys = [pa.field(name, type_of(schemas[0], "left", name)) for name in by]
    sides = [
        [pa.field(f"{side}_{name}", type_of(schema, side, name)) for name in names]
        for schema, side, names in zip(schemas, SIDES, payload, strict=True)
    ]
    return [keys, *sides]


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


def check_sides(left: object, right: object, kind: type, words: str, remedy: str) -> None:
    """Refuse what are no tables, and say what makes one.

    Raises
    ------
    SchemaError
    """
    for side, given in (("left", left), ("right", right)):
        if not isinstance(given, kind):
            package, name = type(given).__module__.split(".")[0], type(given).__name__
            found = name if package == "builtins" else f"{package}.{name}"
            raise SchemaError(f"{side} must be {words}; found {found}. {remedy}")


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


def handed_out(right_columns: str | Sequence[str], how: str, emit: str) -> list[str]:
    """The right columns of a result; none of semi, anti and counts, whatever is asked for."""
    return names_of(right_columns) if hands_out_partners(how, emit) else []


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
