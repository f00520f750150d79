"""The arguments of border crossings, checked once, and their numbers and ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.rows import Gather
from coincide.engine.events.schemas import check_name, column_of, of_one_type, one_array, plain_type
from coincide.engine.events.ticks import contiguous
from coincide.model.borders.index import MOST_DIMENSIONS
from coincide.model.borders.options import BorderOptions
from coincide.model.errors import ConditionError, DataError, SchemaError, brief, several
from coincide.model.options import CorrelateOptions

READINGS, QUERIES = "readings", "queries"
"""What the tables are called in messages."""


@dataclass(frozen=True)
class BorderArguments:
    """What is asked of border crossings: the arguments of `coincide.border_crossing_tables`."""

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


def check_number(side: str, name: str, kind: pa.DataType) -> None:
    """Refuse a column that floats do not hold."""
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind)):
        raise SchemaError(
            f"{side}.{name} is {kind}; it must be an integer or a float. Cast it to float64"
        )


def check_numbers(side: str, names: list[str], schema: pa.Schema) -> None:
    """Refuse columns that are missing, or that floats do not hold."""
    for name in names:
        check_name(side, name, schema.names)
        check_number(side, name, plain_type(schema.field(name).type))


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
    """What is wrong with integers that are none of float64."""
    return (
        f"{side}.{name} has integers beyond 2^53, which float64 does not tell apart, in"
        f" {several(count, 'row')}, for example {example}; subtract an offset from values and"
        " borders, or cast both to float64"
    )


_INTERVAL = pa.month_day_nano_interval()
Numbers = range | np.ndarray
"""Ascending numbers, int64, that follow one another or have gaps."""


class IdRun:
    """Ids in the order of their numbers."""

    def __init__(
        self, numbers: Numbers, ids: pa.Array, kind: pa.DataType, is_live: np.ndarray
    ) -> None:
        self.numbers, self.ids, self.kind, self.is_live = numbers, ids, kind, is_live
        self.removed = 0

    def __len__(self) -> int:
        return len(self.ids)

    def __getstate__(self) -> dict[str, Any]:
        # What is made when first asked for takes more than the ids, and is soon made again.
        return {name: each for name, each in vars(self).items() if name not in _MADE}

    def followed_by(self, later: IdRun) -> IdRun:
        """The run that this one and the next one make."""
        ids = one_array(of_one_type([self.ids, later.ids]))
        is_live = np.concatenate([self.is_live, later.is_live])
        run = IdRun(_joined(self.numbers, later.numbers), ids, self.kind, is_live)
        run.removed = self.removed + later.removed
        return run

    def remove(self, rows: np.ndarray) -> None:
        """The queries of live rows are no more; `swept` takes them out."""
        self.is_live[rows] = False
        self.removed += rows.size

    def swept(self) -> IdRun:
        """The live ones: O(n)."""
        rows = np.flatnonzero(self.is_live)
        ids = self.ids.take(pa.array(rows))
        numbers = np.asarray(_as_array(self.numbers)[rows])
        return IdRun(numbers, ids, self.kind, np.ones(rows.size, np.bool_))

    def of(self, numbers: np.ndarray) -> pa.Array:
        """The ids of numbers of this run."""
        return self._gather(self.rows_of(numbers))

    def live(self, values: pa.Array) -> np.ndarray:
        """The number of the live query of each id: int64 array, -1 where there is none."""
        if not len(self):
            return np.full(len(values), -1, np.int64)
        values, (ids, rows) = _ordered(values), self._sorted
        if ids.type != values.type:
            ids, values = of_one_type([ids, values]).chunks
        at = _last_up_to(ids, values)
        is_here = pc.equal(ids.take(pa.array(np.maximum(at, 0))), values)
        # Of one id, the latest number is the only one that may be live.
        rows = rows[at]
        is_here = (at >= 0) & _as_bools(is_here) & self.is_live[rows]
        found = np.full(len(values), -1, np.int64)
        found[is_here] = self._numbers_of(rows[is_here])
        return found

    def rows_of(self, numbers: np.ndarray) -> np.ndarray:
        """The rows of numbers of this run: int64 array."""
        if isinstance(self.numbers, range):
            return numbers - self.numbers.start
        return np.searchsorted(self.numbers, numbers)

    def _numbers_of(self, rows: np.ndarray) -> np.ndarray:
        return rows + self.numbers.start if isinstance(self.numbers, range) else self.numbers[rows]

    @cached_property
    def _gather(self) -> Gather:
        return Gather(self.ids, self.kind)

    @cached_property
    def _sorted(self) -> tuple[pa.Array, np.ndarray]:
        """The ids in order, equal ones as they came, and their rows: made when first asked for."""
        ids = _ordered(self.ids)
        rows = pc.sort_indices(ids)
        return ids.take(rows), rows.to_numpy().astype(np.int64)


_MADE = ("_gather", "_sorted")


def _joined(first: Numbers, second: Numbers) -> Numbers:
    if isinstance(first, range) and isinstance(second, range) and first.stop == second.start:
        return range(first.start, second.stop)
    return np.concatenate([_as_array(first), _as_array(second)])


def _as_array(numbers: Numbers) -> np.ndarray:
    return np.arange(numbers.start, numbers.stop) if isinstance(numbers, range) else numbers


def _last_up_to(ids: pa.Array, values: pa.Array) -> np.ndarray:
    """The last place, of ids in order, of one that is at most each value: int64 array, -1 of none."""
    at = np.full(len(values), -1, np.int64)
    for power in reversed(range(len(ids).bit_length())):
        # All values take a step of one length at once, or stay.
        further = at + (1 << power)
        probed = ids.take(pa.array(np.minimum(further, len(ids) - 1)))
        goes = (further < len(ids)) & _as_bools(pc.less_equal(probed, values))
        at = np.where(goes, further, at)
    return at


def _as_bools(answers: pa.BooleanArray) -> np.ndarray:
    """Of a null, which is no id, none is true."""
    if answers.null_count:
        answers = answers.fill_null(False)
    return np.asarray(answers.to_numpy(zero_copy_only=False))


def _ordered(ids: pa.Array) -> pa.Array:
    """Ids of a type that PyArrow puts in some order."""
    return ids.view(pa.binary(16)) if ids.type == _INTERVAL else ids
