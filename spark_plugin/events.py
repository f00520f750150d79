"""One side of a Spark join: the user's DataFrame and the column expressions that make events of it."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame

from event_model.options import SideName
from event_model.units import TIME_LIMIT
from spark_plugin.dataframes import field_of, literal, quoted, ticks, wire_bytes
from spark_plugin.time_columns import INVALID_REASONS, NOT_FINITE, TimeScale

REASONS = ("ok", "null", *INVALID_REASONS)
"""What a row can be; its index is the value of `EventFrame.reason`."""

_TIME_BYTES = 16


@dataclass(frozen=True)
class EventFrame:
    """A side as events.

    Parameters
    ----------
    side : str
        ``"left"`` or ``"right"``.
    source : DataFrame
        As the user gave it.
    scales : (TimeScale, TimeScale)
        Of the min and the max column.
    by, payload : lists of str
        Key columns and columns to hand out.
    longest : int or None
        Declared longest length, ticks.
    """

    side: SideName
    source: DataFrame
    scales: tuple[TimeScale, TimeScale]
    by: list[str]
    payload: list[str]
    longest: int | None

    @property
    def columns(self) -> list[str]:
        """What other expressions refer to, as select expressions over the source.

        ``low`` and ``high``: min_time and max_time in ticks, bigint, null for a null, out of range for
        what is no time. ``null_key``: whether a key is null, boolean. ``key_hash``: bigint, 0 without
        keys.
        """
        names = [quoted(name) for name in self.by]
        null_key = " OR ".join(f"{name} IS NULL" for name in names) or "false"
        key_hash = f"xxhash64({', '.join(names)})" if names else "0L"
        return [
            f"{ticks(self.scales[0])} AS low",
            f"{ticks(self.scales[1])} AS high",
            f"({null_key}) AS null_key",
            f"{key_hash} AS key_hash",
        ]

    @property
    def row_bytes(self) -> tuple[int, str | None] | None:
        """Bytes of a row on the wire: of all rows alike, and SQL of what is each row's own, if any.

        None where it cannot be told, as of nested columns.
        """
        alike, own = _TIME_BYTES, []
        for name in (*self.by, *self.payload):
            kind = field_of(self.source, self.side, name).dataType
            size = wire_bytes(quoted(name), kind)
            if size is None:
                return None
            if isinstance(size, int):
                alike += size
            else:
                own.append(size)
        return alike, " + ".join(own) or None

    @property
    def is_ok(self) -> str:
        """Whether a row is an event that can match: boolean, null counts as no."""
        # Of ordered ends only the outer sides can be out of range.
        ok = f"low <= high AND low > {literal(-TIME_LIMIT)} AND high < {literal(TIME_LIMIT)}"
        if self.by:
            ok += " AND NOT null_key"
        return ok if self.longest is None else f"{ok} AND high - low <= {literal(self.longest)}"

    @property
    def reason(self) -> str:
        """Index in `REASONS`: int, never null."""
        index = {reason: i for i, reason in enumerate(REASONS)}
        too_long = "false" if self.longest is None else f"high - low > {literal(self.longest)}"
        not_finite = literal(NOT_FINITE)
        # A null key comes last: it does not excuse an invalid time.
        return (
            f"CASE WHEN {self.is_ok} THEN {index['ok']}"
            f" WHEN low IS NULL OR high IS NULL THEN {index['null']}"
            # Not IN: the RAPIDS Accelerator has it for lists of literals only.
            f" WHEN low = {not_finite} OR high = {not_finite} THEN {index[self._finiteness]}"
            f" WHEN NOT ({_in_range('low')} AND {_in_range('high')}) THEN {index['range']}"
            f" WHEN low > high THEN {index['order']}"
            f" WHEN {too_long} THEN {index['length']}"
            f" ELSE {index['null']} END"
        )

    def rows_of(self, reason: str) -> DataFrame:
        """The source's rows of one of the `REASONS`, as text: Python has no date for every time."""
        found = self.source.selectExpr("struct(*) AS source_row", *self.columns)
        return found.where(f"{self.reason} = {REASONS.index(reason)}").selectExpr(
            *(
                f"CAST(source_row.{quoted(name)} AS STRING) AS {quoted(name)}"
                for name in dict.fromkeys([*self._time_names, *self.by, *self.payload])
            )
        )

    @property
    def _time_names(self) -> list[str]:
        return [scale.column.name for scale in self.scales]

    @property
    def _finiteness(self) -> str:
        floats = any(scale.column.family == "float" for scale in self.scales)
        return "not_finite" if floats else "range"


def _in_range(name: str) -> str:
    return f"{name} > {literal(-TIME_LIMIT)} AND {name} < {literal(TIME_LIMIT)}"
