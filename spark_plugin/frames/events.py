"""One side of a Spark join: the user's DataFrame and the column expressions that make events of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.events.time_columns import INVALID_REASONS
from coincide.engine.events.timestamps import TimestampColumns
from coincide.model.options import SideName
from coincide.model.remembered import remembered
from coincide.model.units import TIME_LIMIT, Tick
from spark_plugin.cluster.connect import context_of
from spark_plugin.cluster.spark_errors import SPARK_ERRORS
from spark_plugin.frames.columns import (
    field_of,
    literal,
    quoted,
    rounding,
)
from spark_plugin.frames.plain_reads import NO_MORE_ROWS, is_made_of, plan_of
from spark_plugin.frames.timestamps import TimestampSql, read_scales, side_sql
from spark_plugin.tasks.wire import IDENTITY

REASONS = ("ok", "null", *INVALID_REASONS)
"""What a row can be; its index is the value of `EventFrame.reason`."""

LAST_SECOND = 253_402_300_799
"""The end of the year 9999: no later time is shown."""


def latest_time(time: str, tick: Tick) -> str:
    """SQL of the latest of some times in ticks, as Spark's progress shows it."""
    seconds, most = (
        f"max({time}) * {float((tick.nanoseconds or 0) / 10**9)!r}D",
        f"{float(LAST_SECOND)!r}D",
    )
    # `least` passes over the null of no times.
    return f"timestamp_seconds(CASE WHEN {seconds} > {most} THEN {most} ELSE {seconds} END)"


@dataclass(frozen=True)
class EventFrame:
    """A side as events."""

    side: SideName
    source: DataFrame
    times: TimestampColumns
    by: list[str]
    payload: list[str]
    observation: Observation | str | None = None
    identity: list[str] = field(default_factory=list)
    tested: list[str] = field(default_factory=list)
    has_like_keys: bool = True
    given: DataFrame | None = None
    longer_than: int | None = None
    up_to: int | None = None
    longest_match: int | None = None
    memo: dict[object, Any] = field(default_factory=dict, compare=False, repr=False)
    """What has been found of the source, for all that are made of this one by `replace`."""

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.source.sparkSession

    @property
    def plain(self) -> DataFrame:
        """As the user gave it."""
        return self.source if self.given is None else self.given

    @remembered
    def optimized(self) -> Any:
        """Spark's plan of `plain`: every question would make a new one of what is cached."""
        return plan_of(self.plain)

    @remembered
    def is_computed(self) -> bool:
        """Whether rows are made of those that are read: of unknown number, and slow to compute."""
        if context_of(self.source.sparkSession) is None or self.plain.isStreaming:
            return False
        try:
            return not is_made_of(self.optimized, NO_MORE_ROWS)
        except SPARK_ERRORS:  # the ordinary way says what is wrong with the plan
            return False

    @property
    def needed(self) -> list[str]:
        """Columns of `plain` that a join reads."""
        names = (*self.times.columns, *self.by, *self.payload, *self.tested)
        return list(dict.fromkeys(names))

    def kind_of(self, name: str) -> T.DataType:
        """The type of a column."""
        return field_of(self.source, self.called, name).dataType

    @property
    def called(self) -> str:
        """What messages call the side."""
        return self.times.scales[0].column.side

    @property
    def columns(self) -> list[str]:
        """Select expressions that others refer to: ``low``, ``high``, ``null_key``, ``key_hash``, ..."""
        # Ends are out of range for what is no time: Spark may evaluate ``high - low`` of any row.
        names = [quoted(name) for name in self.by]
        null_key = " OR ".join(f"{name} IS NULL" for name in names) or "false"
        key_hash = f"xxhash64({', '.join(self._hashed_keys)})" if names else "0L"
        low, high = self._sql.low, self._sql.high
        return [
            f"{low} AS low",
            f"{high} AS high",
            *self._sql.extras,
            *(f"{value} AS {name}" for name, value in self._sql.places),
            f"({null_key}) AS null_key",
            f"{key_hash} AS key_hash",
        ]

    @property
    def _hashed_keys(self) -> list[str]:
        """SQL of what is equal where keys are: what they are called and how wide has no say."""
        fields = [field_of(self.source, self.called, name) for name in self.by]
        values = [quoted(f.name) for f in fields]
        if self.has_like_keys:
            return values
        # What the hash of a whole number is depends on its width.
        return [
            f"CAST({value} AS BIGINT)" if isinstance(f.dataType, T.IntegralType) else value
            for value, f in zip(values, fields, strict=True)
        ]

    @property
    def identities(self) -> list[str]:
        """`IDENTITY`, over the source: events of equal ones are alike in all that is asked of them."""
        # Hashes pass over nulls, so the hash must be given which they are.
        known = ", ".join([self._sql.low, self._sql.high, *self._identifying])
        return [f"xxhash64({i}L, {known}) AS {name}" for i, name in enumerate(IDENTITY)]

    @property
    def _identifying(self) -> list[str]:
        names = dict.fromkeys([*self.by, *self.identity])
        fields = [field_of(self.source, self.called, name) for name in names]
        values = [_hashable_value(f.name, f.dataType) for f in fields]
        nulls = [f"{quoted(name)} IS NULL" for name in names]
        return [*self._places, *values, *nulls]

    @property
    def _places(self) -> list[str]:
        return [value for _, value in self._sql.places]

    @property
    def counted_columns(self) -> list[str]:
        """What `counted` needs in addition to `columns`."""
        if self.observation is None:
            return []
        lacks = (f"({test}) AS {why}" for why, test in self.lacks.items())
        return [f"{self.rounding} AS rounded", *lacks]

    @property
    def lacks(self) -> dict[str, str]:
        """By each of `LACKING` that can be: SQL over the source of whether a row lacks it."""
        return dict(self._sql.lacking)

    def is_lacking(self, why: str) -> str:
        """Whether a row matches nothing for that alone, over `columns` and its own one: boolean."""
        return f"{why} AND NOT null_key AND {self.reason} = {REASONS.index('null')}"

    @property
    def is_in_part(self) -> str | None:
        """Whether a valid row goes on, over ``low`` and ``high``: boolean; None: each does."""
        tests = [
            f"high - low {sign} {literal(end)}"
            for sign, end in ((">", self.longer_than), ("<=", self.up_to))
            if end is not None
        ]
        return " AND ".join(tests) or None

    def counted(self, rows: DataFrame) -> DataFrame:
        """Rows of `columns` and `counted_columns`, counted on their way."""
        if self.observation is None:
            return rows
        totals = {
            "rows": "count(1)",
            "unmatchable": f"count_if({self.reason} = {REASONS.index('null')})",
            "rounded": f"max(CASE WHEN {self.is_ok} THEN rounded END)",
        }
        if isinstance(self.observation, str):
            totals |= self._of_progress
        if self.longest_match is not None:
            totals["too_long"] = f"count_if({self.is_ok} AND {self.is_too_long})"
        totals |= {why: f"count_if({self.is_lacking(why)})" for why in self.lacks}
        return rows.observe(
            self.observation, *(F.expr(text).alias(name) for name, text in totals.items())
        )

    @property
    def _of_progress(self) -> dict[str, str]:
        """What Spark's progress tells of a stream, too: times have a unit there."""
        return {
            "invalid": f"count_if({self.reason} > {REASONS.index('null')})",
            "latest": latest_time(
                f"CASE WHEN {self.is_ok} THEN high END", self.times.scales[0].tick
            ),
        }

    @property
    def rounding(self) -> str:
        """By how many ticks the times of a valid row are rounded: double, over the source."""
        each = list(dict.fromkeys(map(rounding, read_scales(self.times))))
        return each[0] if len(each) == 1 else f"greatest({', '.join(each)})"

    @property
    def has_floats(self) -> bool:
        """Whether times can be rounded at all."""
        return any(scale.column.family == "float" for scale in read_scales(self.times))

    @property
    def coordinates(self) -> int:
        """How many say where an event is; 0 in timing correlation."""
        return len(self._sql.places)

    @property
    def is_ok(self) -> str:
        """Whether a row is an event that can match: boolean, null counts as no."""
        return f"{self._is_time} AND NOT null_key" if self.by else self._is_time

    @property
    def is_too_long(self) -> str:
        """Whether a row that is `is_ok` is longer than any match can be: boolean."""
        longest = self.longest_match
        return "false" if longest is None else f"high - low > {literal(longest)}"

    @property
    def _is_time(self) -> str:
        # Only the outer sides of ordered ends can be out of range.
        ok = f"low <= high AND low > {literal(-TIME_LIMIT)} AND high < {literal(TIME_LIMIT)}"
        if self._sql.shortest:
            ok += f" AND high - low >= {literal(self._sql.shortest)}"
        longest = self.times.longest
        if self._sql.places:
            ok += f" AND {self._sql.is_somewhere}"
        return ok if longest is None else f"{ok} AND high - low <= {literal(longest)}"

    @property
    def is_null(self) -> str:
        """Whether a row that is not `is_ok` matches nothing, and is not invalid: boolean, never null."""
        tests, wrong = [], []
        for reason, test in self._sql.faults:
            if reason != "null":
                wrong.append(f"({test})")
            elif wrong:
                tests.append(f"(({test}) AND NOT coalesce({' OR '.join(wrong)}, false))")
            else:
                tests.append(test)
        null = " OR ".join(tests)
        # A null key does not excuse an invalid time.
        return f"{null} OR ({self._is_time})" if self.by else null

    @property
    def invalid_cases(self) -> list[tuple[str, str]]:
        """Reasons and tests: the first that a row meets which is neither `is_ok` nor `is_null`."""
        return [fault for fault in self._sql.faults if fault[0] != "null"]

    @property
    def reason(self) -> str:
        """Index in `REASONS`: int, never null."""
        index = {reason: i for i, reason in enumerate(REASONS)}
        # A null key comes last: it does not excuse an invalid time.
        cases = [("ok", self.is_ok), *self._sql.faults]
        told = " ".join(f"WHEN {test} THEN {index[reason]}" for reason, test in cases)
        return f"CASE {told} ELSE {index['null']} END"

    @property
    def longest(self) -> int | None:
        """The longest support that an event can have, ticks; None where only a planning job could say."""
        declared = self.times.declared
        return self.times.model.longest(None if declared is None else declared[1])

    @property
    def shape(self) -> str:
        """Shape of a row's timestamp, if it is valid: bigint."""
        return self._sql.shape

    @property
    def midpoint(self) -> str:
        """The key of a row's timestamp, if it is valid, by which events are near or far: bigint."""
        return self._sql.midpoint

    @remembered
    def _sql(self) -> TimestampSql:
        return side_sql(self.times)

    def rows_of(self, reason: str) -> DataFrame:
        """The source's rows of one of the `REASONS`, as text: Python has no date for every time."""
        found = self.source.selectExpr("struct(*) AS source_row", *self.columns)
        return found.where(f"{self.reason} = {REASONS.index(reason)}").selectExpr(
            *(
                f"CAST(source_row.{quoted(name)} AS STRING) AS {quoted(name)}"
                for name in dict.fromkeys([*self.times.columns, *self.by, *self.payload])
            )
        )


def _hashable_value(name: str, kind: T.DataType) -> str:
    """SQL of a value that hashes as differently as the column; the text says what inside is null."""
    nested = (T.ArrayType, T.StructType, T.MapType, T.VariantType)
    return f"to_json(struct({quoted(name)}))" if isinstance(kind, nested) else quoted(name)
