"""Commands that find pairs, and with --shifts count those that chance alone makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from coincide.command_line.requests import EventRequest
from coincide.engine.accidental.moved import MovedTables
from coincide.engine.accidental.pairs import AccidentalArguments, AccidentalPairs, Shifts
from coincide.engine.join.pair_arguments import PairArguments
from coincide.engine.join.text_options import duration, names
from coincide.model.units import Duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class PlannedPairs(NamedTuple):
    """A planned join on Spark, and the accidental pairs that were counted before it."""

    join: Any
    accidental: AccidentalPairs | None

    @property
    def dataframe(self) -> DataFrame:
        """The pairs."""
        found: DataFrame = self.join.dataframe
        return found


@dataclass(frozen=True, kw_only=True)
class PairRequest(EventRequest):
    """One run of a command that finds pairs, and counts accidental ones where shifts are given."""

    shifts: Shifts | None = None

    def __post_init__(self) -> None:
        self._asked(self.arguments)

    def _asked(self, arguments: PairArguments) -> AccidentalArguments | None:
        return None if self.shifts is None else AccidentalArguments(arguments, self.shifts)

    def check(self, arguments: PairArguments, tables: list[pa.Table]) -> None:  # noqa: D102
        super().check(arguments, tables)
        self.moved(arguments, tables)

    def moved(self, arguments: PairArguments, tables: list[pa.Table]) -> MovedTables | None:
        """What counts accidental pairs of tables in this process; None without shifts."""
        asked = self._asked(arguments)
        return None if asked is None else MovedTables(asked, self.job(asked.join, tables))

    def on_frames(
        self, frames: Sequence[DataFrame], arguments: PairArguments
    ) -> AccidentalPairs | None:
        """Those of one or two DataFrames; None without shifts."""
        from spark_plugin.ways.accidental import count_accidental

        asked, (left, *right) = self._asked(arguments), frames
        return (
            None if asked is None else count_accidental(left, right[0] if right else None, asked)[0]
        )


def counted_before(
    moved: MovedTables | None, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The rows of a join; accidental pairs are counted first, so that nothing is written if it fails."""
    if moved is not None:
        moved.count()
    yield from batches


def shifts(words: Sequence[str] | None) -> list[Duration] | None:
    """Durations, separated by commas or in several options; None of no option."""
    return None if words is None else [duration("shifts", word) for word in names("shifts", words)]
