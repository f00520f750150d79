"""The arguments of border crossings, checked once, and their numbers and ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.frames import Numbers
from coincide.engine.events.keys import check_column
from coincide.engine.events.schemas import column_of, type_of
from coincide.engine.events.ticks import contiguous
from coincide.model.borders.index import MOST_DIMENSIONS
from coincide.model.borders.options import BorderOptions
from coincide.model.errors import ConditionError, DataError, SchemaError, argument, brief, several
from coincide.model.options import CorrelateOptions

READINGS, QUERIES = "readings", "queries"
"""What the tables are called in messages."""


@dataclass(frozen=True)
class BorderArguments:
    """The question about border crossings: the arguments of `coincide.border_crossing_tables`."""

    stream: str | None = "stream_id"
    time: str = "time"
    values: str | Sequence[str] = ("value",)
    query: str = "query_id"
    options: BorderOptions = BorderOptions()
    closed_column: str | None = None

    def __post_init__(self) -> None:
        for name in ("stream", "time", "query", "closed_column"):
            may_lack = name in ("stream", "closed_column")
            check_column(name, getattr(self, name), may_lack=may_lack)
        names = (self.values,) if isinstance(self.values, str) else self.values
        if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
            raise ConditionError(
                f"{argument('values')} must be the names of the value columns (found"
                f" {brief(self.values)}). Give one name, or a list of names."
            )
        if not 1 <= len(names) <= MOST_DIMENSIONS:
            raise ConditionError(
                f"{argument('values')} must name one to {MOST_DIMENSIONS} columns (found"
                f" {len(names)})."
            )
        object.__setattr__(self, "values", tuple(names))
        self.options.margins(self.dimensions)
        for what, columns in (("readings need", self.columns), ("the result has", self.made)):
            twice = [name for name, count in Counter(columns).items() if count > 1]
            if twice:
                raise ConditionError(
                    f"{what} two columns named {twice[0]!r}. Each of query, stream, time and"
                    " values needs a column of its own, and the names event, min_time, max_time"
                    " and crossing_time are taken. Rename one."
                )

    @property
    def dimensions(self) -> int:
        """How many value columns there are."""
        return len(self.values)

    @property
    def streams(self) -> list[str]:
        """The column of the stream; none where all readings belong to one."""
        return [] if self.stream is None else [self.stream]

    @property
    def columns(self) -> list[str]:
        """The columns of readings that are needed."""
        return [*self.streams, self.time, *self.values]

    @property
    def numbers(self) -> Numbers:
        """Those of times and of what was read, however CSV writes their numbers."""
        return Numbers([self.time], self.values)

    @property
    def made(self) -> list[str]:
        """The columns of the result."""
        instant = ["crossing_time"] if self.options.interpolate else []
        return [self.query, *self.streams, "event", "min_time", "max_time", *instant]

    @property
    def made_times(self) -> int:
        """How many columns of the result are times."""
        return 3 if self.options.interpolate else 2

    def border_names(self, given: Sequence[str]) -> list[tuple[str, str]]:
        """The columns of lower and upper borders, by dimension, among those of a table of queries."""
        # They are called after the value columns, as lower_value and upper_value; of a single one
        # they may be lower and upper.
        if self.dimensions == 1 and {"lower", "upper"} <= set(given):
            return [("lower", "upper")]
        return [(f"lower_{name}", f"upper_{name}") for name in self.values]

    def query_columns(self, given: Sequence[str]) -> list[str]:
        """The columns that are needed of a table of queries that has some."""
        borders = [name for pair in self.border_names(given) for name in pair]
        return [self.query, *borders, *([self.closed_column] if self.closed_column else [])]

    @property
    def time_options(self) -> CorrelateOptions:
        """How times are counted."""
        return CorrelateOptions(unit=self.options.unit, tick=self.options.tick)


def check_numbers(side: str, names: Sequence[str], schema: pa.Schema) -> None:
    """Refuse columns that are missing, or that floats do not hold."""
    for name in names:
        kind = type_of(schema, side, name)
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
            raise SchemaError(
                f"{side}.{name} must be an integer or a float (found {kind}). Cast it to float64."
            )


def floats_of(table: pa.Table, side: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """A column as floats, NaN where it is null; and where it is null."""
    column = contiguous(column_of(table, side, name))
    null = pc.is_null(column).to_numpy(zero_copy_only=False)
    try:
        values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid:
        # As integers: as a float 2^53 + 1 is 2^53.
        whole = pc.fill_null(column, 0).to_numpy()
        far = (whole > 2**53) | (whole < -(2**53))
        example = column[int(np.argmax(far))].as_py()
        raise DataError(words_of_far(side, name, int(far.sum()), str(example))) from None
    return values, null


def words_of_far(side: str, name: str, count: int, example: str) -> str:
    """What is wrong with integers that float64 has not."""
    return (
        f"{side}.{name} has integers beyond 2^53, which float64 rounds, in"
        f" {several(count, 'row')} (found {example}). Subtract an offset from values and borders,"
        " or cast both to float64."
    )
