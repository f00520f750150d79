"""The timestamps of a side, whatever their model, and the model of a pair of sides."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Protocol

import numpy as np
import pyarrow as pa

from coincide.engine.events.places import Coordinates
from coincide.engine.events.span_ends import AnyTicks
from coincide.engine.events.time_columns import INVALID_REASONS, TimeScale, range_hint
from coincide.model.bands import longest_match, longest_useful
from coincide.model.classes import ShapeClasses
from coincide.model.condition import Window
from coincide.model.errors import ConditionError, option, several
from coincide.model.templates.template import TemplateTable
from coincide.model.timestamps import HistogramEvents, IntervalEvents, pairs_model
from coincide.model.timestamps.protocol import Events, PairModel


class SideModel(Protocol):
    """The timestamps of one side; it travels with every task.

    An event is its max_time and its shape, and its support is [max_time - length, max_time].
    """

    def __hash__(self) -> int: ...

    @property
    def shape_is_length(self) -> bool:
        """Whether the shape of an event is the length of its support, ticks: 0 of an exact instant."""

    @property
    def is_symmetric(self) -> bool:
        """Whether a density is even about the middle of its support, and never rises on the way out."""

    @property
    def is_uniform(self) -> bool:
        """Whether the formulas of intervals hold. If not, merits are rounded, as `Rule.merit` says."""

    def pairs(self, window: Window, left: SideModel, right: SideModel) -> Pairs | None:
        """The model of two sides, one of which this is; None if it does not know the other's kind."""

    def longest(self, largest: int | None) -> int | None:
        """The longest support of events up to a shape, ticks; None where that shape matters and is None."""

    def largest_useful(self, window: Window) -> int:
        """The largest shape that an event of a pair can have."""

    def lengths(self, shapes: np.ndarray) -> np.ndarray:
        """Lengths of the supports of events: int64 array, shape (n,), ticks."""

    def leans(self, shapes: np.ndarray) -> np.ndarray:
        """How far keys are below doubled max_times, as `Rule.lean`: int64 array, shape (n,)."""

    def before_ends(self, shapes: np.ndarray) -> np.ndarray:
        """How far stamps, or midpoints, are before max_times: int64 array, shape (n,), half ticks."""

    def events(
        self, max_time: np.ndarray, shapes: np.ndarray, group: np.ndarray | None, groups: int
    ) -> Events:
        """Events for a join; parameters as in `coincide.model.timestamps.IntervalEvents`."""


class LengthModel:
    """What a `SideModel` is whose shape is the length, and whose key the doubled midpoint."""

    shape_is_length = is_uniform = True

    def longest(self, largest: int | None) -> int | None:  # noqa: D102
        return largest

    def lengths(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return shapes

    def leans(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return shapes

    def before_ends(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return shapes

    def events(  # noqa: D102
        self, max_time: np.ndarray, shapes: np.ndarray, group: np.ndarray | None, groups: int
    ) -> IntervalEvents:
        # Exact times need no second array.
        min_time = max_time - shapes if shapes.any() else max_time
        return IntervalEvents(min_time, max_time, group, groups)


@dataclass(frozen=True)
class IntervalModel(LengthModel):
    """Uniform on intervals."""

    after: int | None = None
    is_symmetric = True

    def pairs(self, window: Window, left: SideModel, right: SideModel) -> Pairs | None:  # noqa: D102
        return _known_pairs(window, left, right)

    def largest_useful(self, window: Window) -> int:  # noqa: D102
        return longest_useful(window)

    def before_ends(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return shapes if self.after is None else np.full(shapes.size, 2 * self.after)


INTERVALS = IntervalModel()


@dataclass(frozen=True)
class TemplateModel:
    """Template histograms: the shape is the number of the template."""

    table: TemplateTable
    shape_is_length = is_symmetric = is_uniform = False

    def pairs(self, window: Window, left: SideModel, right: SideModel) -> Pairs | None:  # noqa: D102
        return _known_pairs(window, left, right)

    def longest(self, largest: int | None) -> int | None:  # noqa: D102
        return int(self.table.lengths.max(initial=0))

    def largest_useful(self, window: Window) -> int:  # noqa: D102
        return len(self.table) - 1

    def lengths(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return self.table.lengths[shapes]

    def leans(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return self.table.leans[shapes]

    def before_ends(self, shapes: np.ndarray) -> np.ndarray:  # noqa: D102
        return 2 * self.table.offsets[shapes]

    def events(  # noqa: D102
        self, max_time: np.ndarray, shapes: np.ndarray, group: np.ndarray | None, groups: int
    ) -> HistogramEvents:
        return HistogramEvents(max_time, shapes, self.table, group, groups)


def table_of(model: SideModel) -> TemplateTable | None:
    """The templates of a side of histograms; None of intervals."""
    if isinstance(model, (IntervalModel, TemplateModel)):
        return model.table if isinstance(model, TemplateModel) else None
    raise ConditionError(
        f"timestamps must be intervals or histograms here (found {type(model).__name__}). Use"
        " correlate, which takes any model."
    )


def _known_pairs(window: Window, left: SideModel, right: SideModel) -> Pairs | None:
    """The model of two sides of intervals or histograms; None where one has another kind."""
    if not all(isinstance(each, (IntervalModel, TemplateModel)) for each in (left, right)):
        return None
    return pairs_model(window, table_of(left), table_of(right))


class Bounds(Protocol):
    """How far apart the timestamps of a pair can be."""

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """Bounds on the difference of keys; the outer ones hold for all events."""


class Pairs(Bounds, Protocol):
    """The timestamps of two sides and the condition on them, before events are known.

    As `coincide.model.timestamps.protocol.PairModel`, which it is a part of.
    """

    def for_events(self, left: Events, right: Events) -> tuple[PairModel, Events, Events]:
        """The model for given events, and the events in the shapes that it knows."""

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:
        """Least and largest max_time of a target less that of a base event, if a pair can qualify."""


@lru_cache(maxsize=1)  # a solved table may be large
def pair_model(window: Window, left: SideModel, right: SideModel) -> Pairs:
    """The model of two sides and the condition on them."""
    # The last one is kept: what it has solved serves all slices and tasks of a process.
    for model in (left, right):
        if (found := model.pairs(window, left, right)) is not None:
            return found
    raise ConditionError(
        f"no join of {type(left).__name__} (left) with {type(right).__name__} (right) is known."
        " Let pairs() of one of them return a model of both."
    )


Faults = Iterator[tuple[str, np.ndarray]]
Lacking = Sequence[tuple[str, np.ndarray]]


def nothing_lacks() -> Lacking:
    """Nothing is missing: every row whose times are there has such timestamps."""
    return ()


@dataclass(frozen=True, eq=False)
class ReadTimes:
    """Timestamps of the rows of a table.

    Parameters
    ----------
    max_time, shapes : np.ndarray
        Int64, shape (n,), ticks; of rows that are not valid anything.
    columns : sequence of AnyTicks
        The times that they are made of.
    are_valid : bool
        Whether every row is valid and has a time: mostly so, and then no masks are needed.
    faults : callable
        Gives reasons of `INVALID_REASONS`, in the order in which they are asked, and for each a bool array,
        shape (n,). Rows that are `excused` may be among them.
    lost : np.ndarray or None
        Rows that match nothing although their times are there: bool, shape (n,).
    lacking : callable
        Gives reasons of `LACKING` why rows are `null` that have a stamp or a start, and which: bool arrays.
    """

    max_time: np.ndarray
    shapes: np.ndarray
    columns: Sequence[AnyTicks]
    are_valid: bool
    faults: Callable[[], Faults]
    lost: np.ndarray | None = None
    lacking: Callable[[], Lacking] = nothing_lacks

    @property
    def excused(self) -> np.ndarray:
        """Rows of which no fault counts, for want of a time: bool array, shape (n,)."""
        return np.logical_or.reduce([column.null for column in self.columns])

    @property
    def null(self) -> np.ndarray:
        """Rows that match nothing, for want of a time or of what `lost` says: bool array, shape (n,)."""
        return self.excused if self.lost is None else self.excused | self.lost

    def placed(self, coordinates: Sequence[np.ndarray], limits: Sequence[float]) -> ReadTimes:
        """The same of rows that also need a place, whose coordinates are within limits."""
        # NaN is missing, no more. A missing coordinate excuses no impossible time.
        impossible = [np.abs(c) > limit for c, limit in zip(coordinates, limits, strict=False)]
        missing = np.logical_or.reduce([np.isnan(column) for column in coordinates])

        def faults() -> Faults:
            yield from self.faults()
            for mask in impossible:
                yield "place", mask

        is_wrong = missing.any() or any(mask.any() for mask in impossible)
        lost = missing if self.lost is None else self.lost | missing
        return replace(self, are_valid=self.are_valid and not is_wrong, faults=faults, lost=lost)

    def rounded(self, valid: np.ndarray | None) -> float:
        """The largest change of a time in the valid rows, or in all."""
        return most_rounded(self.columns, valid)


@dataclass(frozen=True, eq=False)
class TimestampColumns(ABC):
    """A kind of timestamps: the columns that make those of a side, and how.

    Parameters
    ----------
    scales : (TimeScale, TimeScale)
        How the columns of the earliest and of the latest time become ticks.
    longest : int or None
        Longest length of a valid event that has to be looked for in its row, ticks; None: none.
    coordinates : Coordinates
        Where events are. A row without a place is as one without a time, and one of an impossible place is
        invalid.
    """

    scales: tuple[TimeScale, TimeScale]
    longest: int | None = None
    coordinates: Coordinates = field(default=Coordinates(), kw_only=True)

    @property
    def scale(self) -> TimeScale:
        """How the column of stamps becomes ticks, or that of the earliest time."""
        return self.scales[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of times and of what makes timestamps of them."""
        return tuple(dict.fromkeys(scale.column.name for scale in self.scales))

    @property
    def columns(self) -> list[str]:
        """All columns, those of coordinates too, each once."""
        return list(dict.fromkeys((*self.names, *self.coordinates.names)))

    @property
    @abstractmethod
    def model(self) -> SideModel:
        """What shapes of events mean."""

    @property
    @abstractmethod
    def declared(self) -> tuple[int, int] | None:
        """Smallest and largest shape, where that is known without the rows."""

    @property
    @abstractmethod
    def beyond(self) -> tuple[int, int] | None:
        """What to add to the earliest and to the latest time of rows to bound their events, ticks."""
        # None where the times alone do not bound them.

    def blamed(self, reason: str) -> tuple[str, ...]:
        """The columns of `names` that hold what makes a row invalid for a reason."""
        return self.names

    @abstractmethod
    def read(self, table: pa.Table) -> ReadTimes:
        """The timestamps of a table's rows, wherever these are."""


def words_of_blamed(columns: TimestampColumns, reason: str) -> str:
    """The columns that hold what makes a row invalid for a reason."""
    is_place = reason == "place"
    return " and ".join(map(str, columns.coordinates.given if is_place else columns.blamed(reason)))


def longest_matches(
    window: Window, columns: Sequence[TimestampColumns]
) -> tuple[int | None, int | None]:
    """How long a left and a right event of a pair can be, ticks; None where no length is too long."""
    # Told alike by every way: by what is known before rows are looked at.
    left, right = (
        _longest_match(window, own, other) for own, other in (columns, tuple(columns)[::-1])
    )
    return left, right


def _longest_match(window: Window, own: TimestampColumns, other: TimestampColumns) -> int | None:
    if not isinstance(own.model, IntervalModel):
        return None
    are_intervals = isinstance(other.model, IntervalModel)
    shortest = other.declared[0] if are_intervals and other.declared is not None else 0
    longest = longest_match(window, shortest)
    lengths = own.declared
    if lengths is None and len(own.names) == 1:  # exact times
        lengths = 0, 0
    is_enough = lengths is not None and longest is not None and lengths[1] <= longest
    return None if is_enough else longest


def most_rounded(columns: Sequence[AnyTicks], valid: np.ndarray | None) -> float:
    """The largest change of a time in the valid rows, or in all."""
    changes = [column.rounding for column in columns if column.rounding is not None]
    return max(
        (float((each if valid is None else each[valid]).max(initial=0.0)) for each in changes),
        default=0.0,
    )


def describe_invalid(columns: TimestampColumns, reason: str, count: int, example: object) -> str:
    """The message for invalid rows: the column, the count, one example, and what to do."""
    scales, names = columns.scales, words_of_blamed(columns, reason)
    words = f"{scales[0].column.side}: {INVALID_REASONS[reason]} {names}"
    hint = range_hint(scales[0].tick, scales) if reason == "range" else ""
    return (
        f"{words} in {several(count, 'row')} (found {example}). {hint and f'Here {hint}. '}Fix"
        f" the data, or skip such rows with {option('invalid', 'drop')}."
    )
