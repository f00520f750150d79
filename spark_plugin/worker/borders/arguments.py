"""The arguments of border crossings, checked once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from coincide.borders.index import MOST_DIMENSIONS
from coincide.borders.options import BorderOptions
from coincide.errors import ConditionError, brief
from coincide.options import CorrelateOptions

READINGS, QUERIES = "readings", "queries"
"""What the tables are called in messages."""


@dataclass(frozen=True)
class BorderArguments:
    """What is asked of border crossings: the arguments of `coincide.border_crossing_tables`.

    Raises
    ------
    ConditionError
        If an argument makes no sense.
    """

    stream: str | None = "stream_id"
    time: str = "time"
    values: str | Sequence[str] = ("value",)
    query: str = "query_id"
    options: BorderOptions = BorderOptions()
    closed_column: str | None = None

    def __post_init__(self) -> None:
        for argument in ("stream", "time", "query", "closed_column"):
            name, may_lack = getattr(self, argument), argument in ("stream", "closed_column")
            if not isinstance(name, str) and not (may_lack and name is None):
                raise ConditionError(
                    f"{argument} must be the name of a column{' or None' * may_lack}; found"
                    f" {brief(name)}"
                )
        names = (self.values,) if isinstance(self.values, str) else self.values
        if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
            raise ConditionError(
                f"values must be the names of the value columns; found {brief(self.values)}"
            )
        if not 1 <= len(names) <= MOST_DIMENSIONS:
            raise ConditionError(
                f"values must name one to {MOST_DIMENSIONS} columns; found {len(names)}"
            )
        object.__setattr__(self, "values", tuple(names))
        self.options.margins(self.dimensions)
        for what, columns in (("readings need", self.columns), ("the result has", self.made)):
            twice = [name for name, count in Counter(columns).items() if count > 1]
            if twice:
                raise ConditionError(
                    f"{what} two columns {twice[0]!r}: each of query, stream, time and values must be a"
                    " column of its own, and none of the names that the result has beside them,"
                    " event, min_time, max_time and crossing_time; rename one"
                )

    @property
    def dimensions(self) -> int:
        """How many value columns there are."""
        return len(self.values)

    @property
    def streams(self) -> list[str]:
        """The column of the stream; none where all readings are of one."""
        return [] if self.stream is None else [self.stream]

    @property
    def columns(self) -> list[str]:
        """The columns of readings that are needed."""
        return [*self.streams, self.time, *self.values]

    @property
    def numbers(self) -> list[str]:
        """Those of times and of what was read, however CSV writes their numbers."""
        return [self.time, *self.values]

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
        """The columns of lower and upper borders, by dimension, among those of a table of queries.

        They are called after the value columns, as lower_value and upper_value; of a single one they may
        be lower and upper.
        """
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
