"""Joins of Arrow tables in this process, without a JVM: `correlate_tables`, and what all joins share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice
from typing import Any, ClassVar, Protocol, Self, TypeVar

import pyarrow as pa

from coincide.engine.events.frames import TABLES, arrow_table, kind_of, needed_names, offers_arrow
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.keys import Keys
from coincide.engine.events.row_numbers import ID, with_row_numbers
from coincide.engine.events.schemas import (
    can_be_key,
    check_keys,
    check_present_keys,
    decoded,
    type_of,
    with_like_keys,
    with_types_when_empty,
)
from coincide.engine.events.sides import Side, like_width, read_side
from coincide.engine.events.time_columns import TimeColumn
from coincide.engine.events.timestamp_names import GivenTimes, arrow_clocks
from coincide.engine.events.timestamps import TimestampColumns, longest_matches
from coincide.engine.join.aggregate_types import check_aggregates
from coincide.engine.join.arguments import JoinArguments, MirroredArguments
from coincide.engine.join.chosen_pairs import emission_of
from coincide.engine.join.derived_joins import ROW_NUMBERS
from coincide.engine.join.emission import check_preferred
from coincide.engine.join.pair_arguments import (
    GivenWindow,
    PairArguments,
    check_second,
    condition_of,
)
from coincide.engine.join.pair_filter import GivenWhere, PairFilter, Where
from coincide.engine.join.spec import AnySpec, output_schema, swapped_sides, unmatched_right
from coincide.engine.join.timing import JoinSpec
from coincide.engine.reports.emptiness import (
    KeyOverlap,
    NearestMiss,
    NoPairs,
    evidence_of,
    explain_emptiness,
    instants_of,
    key_overlap,
    nearest_miss,
)
from coincide.engine.reports.join_report import JoinReport, JoinSummary
from coincide.engine.room import Expected, PairLimit
from coincide.model.aggregates import Aggregates, Including, Weights
from coincide.model.condition import Confidence, TimingCondition
from coincide.model.counters import JoinCounters
from coincide.model.errors import SchemaError
from coincide.model.options import (
    LARGEST_GROUP,
    Backend,
    CorrelateOptions,
    Emit,
    How,
    Invalid,
    MatchChoice,
    Matching,
    Prefer,
    Ties,
)
from coincide.model.relations import SpanRelation
from coincide.model.sides import SIDES
from coincide.model.threads import all_cores
from coincide.model.units import Tick

_BATCH_PAIRS = 1_000_000
A = TypeVar("A")
P = TypeVar("P", bound=PairArguments)


@dataclass(frozen=True)
class TablePlan:
    """A join of tables of two schemas: everything but the rows, resolved and checked."""

    by: tuple[list[str], list[str]]
    payload: tuple[list[str], list[str]]
    times: tuple[TimestampColumns, TimestampColumns]
    invalid: Invalid
    spec: AnySpec
    schema: pa.Schema
    tested: tuple[list[str], list[str]] = ([], [])

    @property
    def timing(self) -> JoinSpec:
        """The spec of a join by timing alone."""
        assert isinstance(self.spec, JoinSpec)
        return self.spec

    @property
    def by_rows(self) -> Self:
        """The same in which the order of rows decides among equal matches."""
        return replace(self, spec=self.spec.but(ties_by_rows=True))

    @property
    def in_order(self) -> Self:
        """The same whose rows come in the order of left ones, if the output has them all."""
        if self.spec.how != "left":
            return self
        return replace(self, spec=self.spec.but(in_order=True))

    @property
    def keeping_right(self) -> Self:
        """The same after whose pairs come right events that are in none."""
        return replace(self, spec=self.spec.but(keeps_right=True))

    def with_columns(self, columns: list[pa.Field]) -> TablePlan:
        """A plain plan of the same join, whose rows have these columns."""
        given = {each.name: getattr(self, each.name) for each in fields(TablePlan)}
        return TablePlan(**given | {"schema": pa.schema(columns)})

    @property
    def tick(self) -> Tick:
        """In what times are counted."""
        return self.times[0].scales[0].tick

    @property
    def explained(self) -> TablePlan:
        """The plan that says to users why there is no pair."""
        return self

    def as_asked(self, both: Sequence[A]) -> Sequence[A]:
        """Something of both sides, that of the left one as it was asked for first."""
        return both

    def no_pairs(self, left: Side, right: Side) -> NoPairs:
        """Why a join of these events finds nothing."""
        return explain_emptiness(
            evidence_of(left, self.times[0].scales[0]),
            evidence_of(right, self.times[1].scales[0]),
            self.spec,
            None if self.spec.is_one_stream else self.key_overlap(left, right),
            self.nearest(left, right),
        )

    def nearest(self, left: Side, right: Side, is_all: bool = True) -> NearestMiss | None:
        """The pair of these events that is nearest to the window, of exact times."""
        instants = instants_of(left, right)
        if instants is None:
            return None
        others = None if self.spec.is_one_stream else instants[1]
        return nearest_miss(instants[0], others, self.spec.widest, is_all=is_all)

    def key_overlap(self, left: Side, right: Side, is_all: bool = True) -> KeyOverlap | None:
        """How many keys these events share."""
        return key_overlap(left, right, self.by[0], is_all=is_all)

    def columns(self, side: int) -> list[str]:
        """The columns that are needed of the left (0) or right (1) table."""
        names = *self.times[side].columns, *self.by[side], *self.payload[side], *self.tested[side]
        return list(dict.fromkeys(names))

    def read(self, side: int, table: pa.Table) -> tuple[Side, SideCounts]:
        """The events of the left (0) or right (1) table."""
        numbers = [name for name in ROW_NUMBERS if name in table.column_names]
        parts = self.payload[side], self.tested[side], numbers
        events, counts = self._read(side, table, parts)
        payload, tested, identity = _split(events.payload, parts)
        return replace(events, payload=payload, tested=tested, identity=identity), counts

    def read_stream(self, table: pa.Table) -> tuple[Side, Side, SideCounts]:
        """The events of one table as both sides; raises as `read`."""
        numbers = [name for name in ROW_NUMBERS if name in table.column_names]
        parts = *self.payload, *self.tested, numbers
        events, counts = self._read(0, table, parts)
        own, others, left, right, identity = _split(events.payload, parts)
        return (
            replace(events, payload=own, tested=left, identity=identity),
            replace(events, payload=others, tested=right, identity=identity),
            counts,
        )

    def _read(
        self, side: int, table: pa.Table, parts: Sequence[list[str]]
    ) -> tuple[Side, SideCounts]:
        names = [name for part in parts for name in part]
        longest = self._longest_matches[side]
        return read_side(table, self.times[side], self.by[side], names, self.invalid, longest)

    @property
    def _longest_matches(self) -> tuple[int | None, int | None]:
        return longest_matches(self.spec.widest, self.times)

    def join(self, left: Side, right: Side) -> Joined:
        """The output batches of a join of these events."""
        return emission_of(left, right, self.spec, self.schema)


def _split(columns: list[pa.Array], parts: Sequence[list[str]]) -> Iterator[list[pa.Array]]:
    """Columns in parts of as many as there are names."""
    rest = iter(columns)
    return (list(islice(rest, len(part))) for part in parts)


def with_known_columns(tables: Sequence[pa.Table], arguments: P) -> tuple[P, list[pa.Table]]:
    """The arguments of a join once its columns are known, and the tables, times and keys of like types."""
    keys = arguments.keys, arguments.right_keys
    clocks = (list(names.clocks) for names in arguments.times)
    typed = [own + by for own, by in zip(clocks, keys, strict=True)]
    tables = with_types_when_empty(tables, typed)
    arguments = arguments.settled(tables[0].schema, tables[-1].schema)
    schemas = with_like_keys([table.schema for table in tables], *keys)
    return arguments, [as_schema(*each) for each in zip(tables, schemas, keys, strict=False)]


def as_schema(table: pa.Table, schema: pa.Schema, names: list[str]) -> pa.Table:
    """A table, some of its columns cast as the schema has them."""
    for name in names:
        i = schema.get_field_index(name)
        if i >= 0:
            column = decoded(table.column(i), schema.field(i).type)
            table = table.set_column(i, schema.field(i), column)
    return table


@dataclass(frozen=True)
class AlonePlan(TablePlan):
    """A join that finds right events without a match: here they are left, and it is an anti join."""

    measures: int = 0

    def join(self, left: Side, right: Side) -> Joined:
        """Their rows, in the columns of pairs."""
        return _Reshaped(self.bare.join(left, right), self.schema, self._among_pairs)

    def _among_pairs(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Keys and right columns, with nulls in the place of all other columns of a pair."""
        nulls = [pa.nulls(batch.num_rows, kind) for kind in self.schema.types]
        return unmatched_right(batch.columns, nulls, len(self.by[0]), self.measures)

    @property
    def bare(self) -> TablePlan:
        """The same whose rows have no more than their own columns."""
        last = len(self.schema) - self.measures
        own = *range(len(self.by[0])), *range(last - len(self.payload[0]), last)
        return self.with_columns([self.schema.field(i) for i in own])


@dataclass(frozen=True)
class MirroredPlan(TablePlan):
    """A join with its sides swapped, which tells of the left matches of right events.

    Its left events are the right ones that were given. Columns of pairs are in the places that
    were asked for.
    """

    from_left: TablePlan | None = None

    @property
    def explained(self) -> TablePlan:
        """As in `TablePlan`: from left to right."""
        assert self.from_left is not None
        return self.from_left

    def as_asked(self, both: Sequence[A]) -> Sequence[A]:
        """As in `TablePlan`."""
        return both[::-1]

    def no_pairs(self, left: Side, right: Side) -> NoPairs:
        """As in `TablePlan`."""
        return self.explained.no_pairs(right, left)

    def join(self, left: Side, right: Side) -> Joined:
        """Their rows, as they were asked for."""
        if not self.spec.outputs_matches:
            return super().join(left, right)
        return _Reshaped(self.bare.join(left, right), self.schema, self._put_back)

    def _put_back(self, batch: pa.RecordBatch) -> list[pa.Array]:
        """Columns of a join with its sides swapped, as they were asked for."""
        return swapped_sides(batch.columns, len(self.by[0]), *map(len, self.payload))

    @property
    def bare(self) -> TablePlan:
        """The same whose rows have the columns of its own left side first."""
        own, others = map(len, self.payload) if self.spec.outputs_matches else (0, 0)
        return self.with_columns(swapped_sides([*self.schema], len(self.by[0]), others, own))


@dataclass(frozen=True)
class _Reshaped:
    """Batches of a join whose columns are changed as they come."""

    joined: Joined
    schema: pa.Schema
    reshape: Callable[[pa.RecordBatch], list[pa.Array]]

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self.joined:
            yield pa.RecordBatch.from_arrays(self.reshape(batch), schema=self.schema)

    @property
    def counters(self) -> JoinCounters:
        return self.joined.counters

    @property
    def expected(self) -> Expected | None:
        return self.joined.expected


def plan_alone(
    left: pa.Schema, right: pa.Schema, arguments: PairArguments, plan: TablePlan
) -> AlonePlan | None:
    """The plan that finds right events without a match; None if nothing asks for them."""
    alone = arguments.alone
    if alone is None:
        return None
    found = plan_tables(right, left, alone, AlonePlan)
    assert isinstance(found, AlonePlan)
    return replace(found, schema=plan.schema, measures=len(plan.spec.measures))


class TableJoin:
    """A join of two tables, or of one with itself, batch by batch.

    Everything that can be known without the rows is checked when it is made.
    """

    plan_kind: ClassVar[type[TablePlan]] = TablePlan
    """What reads and joins the tables."""

    def __init__(self, left: pa.Table, right: pa.Table | None, arguments: PairArguments) -> None:
        given = [left] if right is None else [left, right]
        arguments, self._tables = with_known_columns(given, arguments)
        self.sides, self.matchless = arguments.sides, arguments.matchless
        if isinstance(arguments, JoinArguments) and arguments.mirrored is not None:
            arguments, self._tables = arguments.mirrored, self._tables[::-1]
        schemas = self._tables[0].schema, self._tables[-1].schema
        self.plan = plan_tables(*schemas, arguments, self.plan_kind)
        self.plan = self.plan.by_rows.in_order
        if arguments.keeps_right:
            self.plan = self.plan.keeping_right
        self.schema = self.plan.schema
        self.limit = PairLimit(arguments.options.max_pairs)
        self.summary: JoinSummary | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Run the join. `summary` is there when the last batch was taken."""
        started, plan = time.perf_counter(), self.plan
        left, right, counts = self.read()
        emission = plan.join(left, right)
        self.limit.expect(emission.expected, is_last=True)
        yield from emission
        seconds = time.perf_counter() - started
        self.summary = self.summarized(emission.counters, (left, right), counts, seconds)

    def summarized(
        self,
        counters: JoinCounters,
        sides: tuple[Side, Side],
        counts: tuple[SideCounts, SideCounts | None],
        seconds: float,
    ) -> JoinSummary:
        """What the join of these events did."""
        no_pairs = None if counters.pairs else self._no_pairs(*sides)
        own, others = self.plan.as_asked(counts)
        return JoinSummary(
            own, others, counters, seconds, "in memory", self.plan.tick, no_pairs,
            sides=self.sides, matchless=self.matchless,
        )  # fmt: skip

    def _no_pairs(self, left: Side, right: Side) -> NoPairs:
        return self.plan.no_pairs(left, right)

    def read(self) -> tuple[Side, Side, tuple[SideCounts, SideCounts | None]]:
        """Both sides, and what their rows were; of one stream no one counts the second."""
        if self.plan.spec.is_one_stream:
            left, right, counts = self.plan.read_stream(self._tables[0])
            return left, right, (counts, None)
        (left, own), (right, others) = (
            self.plan.read(side, table) for side, table in enumerate(self._tables)
        )
        return left, right, (own, others)


class Joined(Protocol):
    """The output batches of a join, and what it looked at once they were taken."""

    def __iter__(self) -> Iterator[pa.RecordBatch]: ...

    @property
    def counters(self) -> JoinCounters:
        """What the join looked at and found."""

    @property
    def expected(self) -> Expected | None:
        """As in an emission: `coincide.engine.join.emission.Emission.expected`."""


def plan_tables(
    left: pa.Schema, right: pa.Schema, arguments: PairArguments, kind: type[TablePlan] = TablePlan
) -> TablePlan:
    """Resolve the arguments of a join against two schemas."""
    spec, times = resolved(left, right, arguments)
    if spec.aggregates:
        kinds = {each.name: each.type for each in right}
        check_aggregates(spec.aggregates, arguments.sides[1], kinds)
    by = arguments.keys, arguments.right_keys
    keys, own, others = _fields((left, right), arguments, arguments.payload)
    rest = arguments.tested
    given = by, arguments.payload, times, arguments.options.invalid, spec
    if isinstance(arguments, MirroredArguments) and arguments.is_answer:
        keys = [each.with_name(name) for each, name in zip(keys, by[1], strict=True)]
        from_left = plan_tables(right, left, arguments.from_left)
        sides = (others, own) if spec.outputs_matches else (own, others)
        return MirroredPlan(*given, output_schema(spec, keys, *sides), rest, from_left)
    return kind(*given, output_schema(spec, keys, own, others), rest)


def resolved(
    left: pa.Schema, right: pa.Schema, arguments: PairArguments
) -> tuple[AnySpec, tuple[TimestampColumns, TimestampColumns]]:
    """What is computed of tables of two schemas, and what their timestamps are."""
    schemas = left, right
    _check_key_types(schemas, arguments)
    times = arguments.resolved_times(_clocks(schemas, arguments))
    spec = arguments.spec(times, all_cores(), _BATCH_PAIRS)
    own, others = _kinds_tested(schemas, arguments)
    if count := len(arguments.choice.columns):
        named = arguments.sides[1], arguments.tested[1][-count:], others[-count:]
        check_preferred(*named, in_tasks=False)
        del others[-count:]
    if isinstance(arguments.where, Where):
        spec = spec.but(where=PairFilter(arguments.where, (own, others)))
    return spec, times


def check_preferred_in_tasks(choice: MatchChoice, side: str, right: pa.Schema) -> None:
    """Refuse columns by which tasks of Spark cannot order matches, whatever the way."""
    names = [each.column for each in choice.columns]
    check_preferred(side, names, [type_of(right, side, name) for name in names], in_tasks=True)


def _check_key_types(schemas: tuple[pa.Schema, pa.Schema], arguments: PairArguments) -> None:
    by = arguments.keys, arguments.right_keys
    check_present_keys(arguments.sides, by, [schema.names for schema in schemas])
    kinds = [
        [type_of(schema, side, name) for name in names]
        for schema, side, names in zip(schemas, arguments.sides, by, strict=True)
    ]
    own, others = ([(str(kind), can_be_key(kind)) for kind in side] for side in kinds)
    check_keys(by[0], own, others, arguments.said_where)


def _kinds_tested(
    schemas: tuple[pa.Schema, pa.Schema], arguments: PairArguments
) -> tuple[list[pa.DataType], list[pa.DataType]]:
    own, others = (
        [type_of(schema, side, name) for name in names]
        for schema, side, names in zip(schemas, arguments.sides, arguments.tested, strict=True)
    )
    return own, others


def _clocks(schemas: tuple[pa.Schema, pa.Schema], arguments: PairArguments) -> list[TimeColumn]:
    return [
        clock
        for side, names, schema in zip(arguments.sides, arguments.times, schemas, strict=True)
        for clock in arrow_clocks(side, names, schema)
    ]


def _fields(
    schemas: tuple[pa.Schema, pa.Schema],
    arguments: PairArguments,
    payload: tuple[list[str], list[str]],
) -> list[list[pa.Field]]:
    sides, prefixes = arguments.sides, arguments.prefixes
    by = zip(arguments.keys, arguments.right_keys, strict=True)
    keys = []
    for names_of_key in by:
        each = zip(schemas, sides, names_of_key, strict=True)
        kinds = [type_of(*one) for one in each]
        kind = like_width(*kinds) if arguments.outputs_either_key else kinds[0]
        keys.append(pa.field(names_of_key[0], kind))
    columns = [
        [pa.field(f"{prefix}_{name}", type_of(schema, side, name)) for name in names]
        for schema, side, prefix, names in zip(schemas, sides, prefixes, payload, strict=True)
    ]
    return [keys, *columns]


_TO_ARROW = "Use .collect() of a LazyFrame, or .toArrow() of a Spark DataFrame."


def correlate_tables(
    left: Any,
    right: Any = None,
    condition: TimingCondition | SpanRelation | None = None,
    *,
    within: GivenWindow | None = None,
    confidence: Confidence | None = None,
    left_time: GivenTimes = ("min_time", "max_time"),
    right_time: GivenTimes = ("min_time", "max_time"),
    by: Keys = (),
    left_columns: str | Sequence[str] = ("id",),
    right_columns: str | Sequence[str] = ("id",),
    how: How = "inner",
    emit: Emit = "pairs",
    probability: bool = False,
    pair_columns: str | Sequence[str] = (),
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    report: JoinReport | None = None,
    where: GivenWhere = None,
    prefer: Prefer = "probability",
    k: int = 1,
    matching: Matching | None = None,
    largest_group: int = LARGEST_GROUP,
    ties: Ties = "order",
    aggregates: Aggregates | None = None,
    weights: Weights | None = None,
    including: Including | None = None,
) -> pa.Table:
    """Join two tables of events by satisfaction probability, in this process.

    A pair qualifies when P(lo <= T_right - T_left <= hi) reaches the confidence threshold, each
    timestamp being uniform on its interval, or distributed as its template histogram, independently of
    the other. `coincide.correlate` is the same join of DataFrames of Spark.

    Parameters
    ----------
    left, right : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        Tables of pandas, Polars, DuckDB and others; a stream that can be read but once is read once.
        Events: time columns (timestamps, integers or floats), key columns, output columns. Without
        `right` the stream `left` is joined with itself: left is every event, right every other one.
        ``emit="pairs"`` gives each unordered pair once; if both orders qualify, the event whose timestamp
        ends earlier is left, of equal timestamps the one in the lower row. All else looks at all other
        events.
    condition : TimingCondition or SpanRelation
        The window on T_right - T_left and the confidence that it must reach. For events that last a
        relation, made by `overlapping`, `containing`, `inside`, `following` or `relation`.
    within, confidence
        The same in place of `condition`: ``within=("0s", "30s"), confidence=0.9``. Exact times, of one
        column a side, need no confidence. One duration,
        ``within="250ms"``, is the window from -250 ms to 250 ms. A relation takes a `confidence` where
        starts and ends are uncertain: ``spans("start", "end", around="10ms")``.
    left_time, right_time : str, (str, str), Around, Histograms or Spans
        The min and max column of the interval timestamps; one name for exact instants;
        ``around("t", "10ms")``, ``resolution("t", "1ms")``;
        ``histograms("seen_at", template="device", templates=table)``; or ``spans("start", "end")`` of
        events that last, with a relation.
    by : str or sequence of str and (str, str)
        Columns that must be equal on both sides, ``("station", "sta")`` for a key with another name on the
        right: the output has the left one. A null equals nothing; integers of any width are equal by
        value.
    left_columns, right_columns : str or sequence of str
        Columns for the output, as ``left_<name>`` and ``right_<name>``; ``"*"`` is all but keys. Where a
        side has no column ``"id"``, the number of the row is its id: int64, from 0.
        `right_columns` have no effect, and need not exist, with ``how="semi"``, ``how="anti"`` and
        ``emit="counts"``, whose output has no column of a match.
    how : {"inner", "left", "right", "full", "semi", "anti"}
        ``left`` keeps left events without a match, ``right`` right ones, ``full`` both; ``semi`` and
        ``anti`` give one row per left event that has, or lacks, a match.
    emit : {"pairs", "lists", "counts", "best", "aggregates"}
        One row a pair; or one row per left event with arrays (in no particular order), with the number
        of its ``matches``, with its most probable match, or with `aggregates` of its matches. The
        output has no events without a match with ``how="inner"``. With ``how="left"`` they have empty
        arrays, 0, or nulls. With ``how="right"`` a row of ``best`` and ``aggregates`` belongs to a right
        event, and tells of its left matches.
    probability : bool
        Add the satisfaction probability (float64), a column or an array.
    pair_columns : str or sequence of str
        Columns about the pair: ``"delta"`` is T_right - T_left (int64) between the stamps as given. For
        intervals it is between their midpoints, less half a tick if need be. The column's name says what
        it counts: ``delta_us`` microseconds, ``delta_ms`` milliseconds, and ``delta`` what the time columns
        count, where no unit is known. For spans ``"overlap"`` is the time in common, below 0 the gap, and
        ``"overlap_start"`` and ``"overlap_end"`` are when it begins and ends, as left starts are. They are
        null where nothing is in common. Where numbers count different units they are floats in that of
        left.
    backend : {"auto", "cpu", "gpu"}
        ``"auto"`` takes a GPU where there is one. The answer is the same.
    options : CorrelateOptions
        What numbers in time columns count, what becomes of invalid rows, and how the join runs.
    report : JoinReport, optional
        Receives what the rows were and what was found.
    where : str or pyarrow.compute.Expression, optional
        What pairs must also meet, over the columns ``left_<name>`` and ``right_<name>`` of both sides, in
        the output or not: ``"left_amount = right_amount"`` in a subset of SQL, or
        ``pc.field("left_amount") == pc.field("right_amount")``. It may name delta, ``"delta_us <= 5000"``.
        A pair for which it is null or false does not count, and is never a best match.
    prefer : {"probability", "nearest", "first", "last"}, str, or (str, str)
        With ``emit="best"`` or `matching`, which match is the best one. A word: the most probable, the
        one whose midpoint is nearest to that of the event, or the earliest or latest by its midpoint. Or
        a column of `right`, with ``how="right"`` of `left`: ``"snr"`` prefers its least value, ``"-snr"``
        its greatest. Missing values are last, before them NaN; ``"+last"`` is a column of such a name. In
        ``["last", "-seq"]`` a column decides among equals in the first, on Spark one of numbers or times.
        Then the probability decides, then what docs/meaning.md says. At the end ``"last"`` takes the later
        row of the table, all others take the earlier one; on Spark, where rows have no order, output
        columns decide.
    k : int
        With ``emit="best"``, the most matches of each left event. With more than one a row has its
        ``rank``, from 1 for the best.
    matching : {"mutual", "optimal", "unambiguous"}, optional
        Pairs one to one. ``"mutual"``: each event is the best match of the other. ``"optimal"``: the
        assignment with the greatest sum of probabilities; with ``prefer="nearest"`` the most pairs, then
        the least sum of distances. ``"unambiguous"``: neither event has another match.
        ``how="left"`` adds the left events without a pair.
    largest_group : int
        Most events, of both sides, that an optimal assignment takes together.
    ties : {"order", "all"}
        With ``emit="best"``, what becomes of matches that are equal in what `prefer` names. ``"order"``:
        each left event has at most `k`, and docs/meaning.md says which. ``"all"``: those equal to the last
        of the `k` are there, too, and equal ones have one ``rank``. Spans are equal that have as much time
        in common, or none and one gap.
    aggregates : dict, optional
        With ``emit="aggregates"``, columns of the output by name: ``"count"``, or a column of right and a
        function of its values in the matches of an event, ``{"n": "count", "energy": ("amp", "sum")}``.
        Functions are count, sum, mean, std, min, max, first, last and any. Missing values do not count.
        ``"delta"``, ``"probability"`` and for spans ``"overlap"`` are what pairs have. docs/aggregates.md
        says what each gives: sums are exact.
    weights : {"probability"}, optional
        With ``emit="aggregates"``, expected numbers: each match counts by its probability in count, sum and
        mean, which are floats then. No confidence is needed. With one, pairs below it are left out.
    including : {"previous"}, optional
        With ``emit="aggregates"`` and exact times, the last right event before the window counts too,
        unless one is there as the window begins: a price holds until the next one.

    Returns
    -------
    pa.Table
        Columns `by`, ``left_...``, ``right_...`` (or ``matches``), delta, ``probability``, ``rank``. With
        ``how="left"`` rows come in the order of left.

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
    JoinReport.check(report)
    check_second(right)
    times = (left_time, left_time if right is None else right_time)
    arguments = JoinArguments(
        condition_of(condition, within, confidence, times, weights), left_time=left_time,
        right_time=right_time, weights=weights, including=including,
        by=by, left_columns=left_columns, right_columns=right_columns,
        how=how, emit=emit, probability=probability,
        pair_columns=pair_columns, backend=backend,
        options=options, is_one_stream=right is None, where=where, prefer=prefer, k=k,
        matching=matching, largest_group=largest_group, ties=ties, aggregates=aggregates,
    )  # fmt: skip
    return joined(TableJoin, left, right, arguments, report)


def joined(
    kind: type[TableJoin],
    left: Any,
    right: Any,
    arguments: PairArguments,
    report: JoinReport | None,
) -> pa.Table:
    """The join of two sides as users give them; of one stream the second is None."""
    tables = given_tables(left, right, arguments)
    job = kind(tables[0], None if right is None else tables[1], arguments)
    job.limit.is_collected = True
    found = pa.Table.from_batches(job.batches(), schema=job.schema)
    assert job.summary is not None
    JoinReport.tell(job.summary, report)
    return found


def given_tables(left: Any, right: Any, arguments: PairArguments) -> list[pa.Table]:
    """What was given as Arrow tables of the needed columns; one table without `right`."""
    of_sides = set(arguments.prefixes) == set(SIDES)
    tables = []
    inputs = (left,) if right is None else (left, right)
    sides = arguments.prefixes if of_sides else arguments.sides
    of_each = arguments.columns, arguments.numbers, arguments.numbered
    for side, given, names, numbers, numbered in zip(sides, inputs, *of_each, strict=False):
        if not offers_arrow(given):
            called = side if of_sides else f"{side.removesuffix('s')}s"
            raise SchemaError(f"{called} must be {TABLES} (found {kind_of(given)}). {_TO_ARROW}")
        if arguments.is_open:
            names = needed_names(given, names, arguments.words_of_needed)
        drops = arguments.options.invalid == "drop"
        may_lack = ID if numbered else None
        table = arrow_table(side, given, names, numbers, drops=drops, may_lack=may_lack)
        tables.append(with_row_numbers(table, names) if numbered else table)
    return tables
