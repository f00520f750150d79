"""What a join computes, what it makes of two sides, and the columns of its output."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import pyarrow as pa

from coincide.engine.events.sides import Side, row_ranks, tie_ranks
from coincide.engine.events.span_ends import OPEN_END
from coincide.engine.events.timestamps import INTERVALS, Bounds, SideModel
from coincide.engine.join.aggregate_types import aggregate_fields
from coincide.engine.join.delta import DELTA, DELTA_NAMES
from coincide.engine.join.pair_filter import PairFilter
from coincide.engine.pairs.best import BestMatches
from coincide.engine.pairs.source import MeasuredSource, PairSource, RangedSource, Rows
from coincide.model.aggregates import Aggregate, columns_of
from coincide.model.condition import Window
from coincide.model.errors import ConditionError
from coincide.model.options import MOST_PROBABLE, Emit, How, MatchChoice, Output
from coincide.model.relations import SpanWindow
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT, RIGHT, SIDES

C = TypeVar("C")

NO_NUMBER = int(np.iinfo(np.int64).min)
"""What a column of pairs holds where its value is null."""
OVERLAP = "overlap"
OVERLAP_ENDS = "overlap_start", "overlap_end"


@dataclass(frozen=True, kw_only=True)
class AnySpec(Output, ABC):
    """What a join computes, resolved to ticks, whatever its condition: everything but the data."""

    prefixes: ClassVar[tuple[str, str]] = SIDES  # before the columns of the two sides

    how: How = "inner"
    emit: Emit = "pairs"
    aggregates: tuple[Aggregate, ...] = ()
    probability: bool = False
    delta_name: str | None = None  # the column of delta; None: the output has none
    overlap_name: str | None = None  # the column of the time in common, likewise
    overlap_ends: tuple[str, ...] = ()  # the columns of when it begins and ends
    overlap_kind: pa.DataType = field(default_factory=pa.int64)  # the type of these
    overlap_scale: Fraction = Fraction(1)  # ticks of one, if they are numbers
    backend: str = "auto"
    threads: int = 1
    batch_pairs: int = 1_000_000
    max_pairs: int | None = None  # for a task, or for a join in one process
    devices: str = "one"  # GPUs of this process; tasks of Spark have one
    models: tuple[SideModel, SideModel] = (INTERVALS, INTERVALS)
    coordinates: int = 0  # an event's; 0 where it does not matter where events are
    is_one_stream: bool = False  # the sides are parts of one stream, whose events have an identity
    is_mirrored: bool = False  # delta counts from the right side, which was given as left
    pairs_once: bool = False  # in one stream each pair counts in one order: that of `emit="pairs"`
    shift: int = 0  # ticks by which right times are moved, to count accidental pairs
    where: PairFilter | None = None
    choice: MatchChoice = MOST_PROBABLE
    merits: bool = False  # pairs have columns that tell by what the best match was chosen
    are_states: bool = False  # aggregates are yet to be put together with those of other tasks
    in_order: bool = False  # rows come in the order of left rows
    keeps_right: bool = False  # after all pairs come right events that are in none
    ties_by_rows: bool = False  # rows decide among equal matches, else their output columns

    @property
    @abstractmethod
    def widest(self) -> Window:
        """Widest window on delta, and the confidence that is asked for."""

    @property
    def widest_of_rows(self) -> Window:
        """`widest`, on delta of the times that rows have, where right ones are taken to be moved."""
        return self.widest

    @property
    @abstractmethod
    def pairs(self) -> Bounds:
        """The condition on the timestamps of both sides."""

    @abstractmethod
    def pairing(self, left: Side, right: Side) -> Pairing:
        """What the condition makes of two sides."""

    @property
    def are_uniform(self) -> bool:
        """Whether the formulas of intervals hold: `SideModel.is_uniform` of both sides."""
        return all(model.is_uniform for model in self.models)

    @property
    def are_symmetric(self) -> bool:
        """Whether a pair is the less probable the further its midpoints are from the window's middle."""
        return all(model.is_symmetric for model in self.models)

    @property
    def shapes_are_lengths(self) -> bool:
        """Whether shapes of events are lengths of supports, ticks, on both sides."""
        return all(model.shape_is_length for model in self.models)

    @property
    def largest_useful(self) -> tuple[int, int]:
        """The largest shapes that a left and a right event of a pair can have."""
        left, right = (model.largest_useful(self.widest) for model in self.models)
        return left, right

    @property
    def measures(self) -> dict[str, pa.DataType]:
        """Columns of the pair itself, in their order."""
        # Merits tell by what the best match was chosen, after the probability: half ticks and
        # ticks.
        told, of_both = self.merits, self.merits and self.choice.one_to_one is not None
        asked = {
            self.delta_name or DELTA: self.delta_name is not None,
            self.overlap_name or OVERLAP: self.overlap_name is not None,
            **{name: name in self.overlap_ends for name in OVERLAP_ENDS},
            "distance": self.coordinates > 0,
            "probability": self.probability or told,
            "preferred": of_both or (told and not self.choice.word.is_merit),
            "then": told and self.choice.then is not None,
            "from_middle": told,
            "max_of_left": of_both,
            "min_of_left": of_both,
            "max_of_right": told,
            "min_of_right": told,
            "rank": self.k > 1 and not told,
        }
        kinds = dict.fromkeys(("distance", "probability"), pa.float64())
        kinds |= dict.fromkeys(OVERLAP_ENDS, self.overlap_kind)
        return {name: kinds.get(name, pa.int64()) for name, is_asked in asked.items() if is_asked}

    @property
    def on_the_wire(self) -> Self:
        """The same whose columns of pairs have types that cross to Spark as they are."""
        is_number = self.overlap_kind == pa.float64()
        return self if is_number else self.but(overlap_kind=pa.int64())

    @property
    def adds_up(self) -> bool:
        """Whether tasks may each tell of some matches of a left event, to be put together."""
        return True

    @property
    def k(self) -> int:
        """How many of the best matches of an event are in the output."""
        return self.choice.k

    def prefers_latest(self, side: int) -> bool:
        """Whether the last row is the best, among matches of a side with equal merit."""
        # A right event takes left matches in mirrored time: its `first` is the latest of them.
        later, earlier = ("last", "after"), ("first", "before")
        word, kind = (later, earlier)[side == LEFT]
        delay, window = self.choice.word.delay, self.widest
        is_last_before = isinstance(window, SpanWindow) and window.kind == kind
        return delay == word or (delay == "nearest" and is_last_before)

    @property
    def prefers_by_gap(self) -> bool:
        """Whether spans that have as much time in common are preferred by how far they are apart."""
        return self.choice.word.is_merit and isinstance(self.widest, SpanWindow)

    @property
    def compares_tasks(self) -> bool:
        """Whether pairs are chosen by what several tasks tell of their events."""
        return self.choice.one_to_one is not None and not self.needs_groups

    @property
    def needs_groups(self) -> bool:
        """Whether a task must see whole connected groups of events, to match them one to one."""
        is_whole = self.is_one_stream or self.choice.is_of_groups
        return self.choice.one_to_one is not None and is_whole

    def moved(self, ticks: int) -> Self:
        """The join when right times are moved by some ticks: its pairs are counted once they are chosen."""
        is_matched = self.choice.one_to_one is not None
        return self.but(
            shift=ticks, how="inner", emit="pairs" if is_matched else "counts",
            choice=self.choice if is_matched else MOST_PROBABLE, probability=False,
            delta_name=None, overlap_name=None, overlap_ends=(),
        )  # fmt: skip

    @property
    def keeps_unmatched(self) -> bool:
        """Whether left events without a match appear in the output."""
        return self.kept.left_alone

    @property
    def counted(self) -> Self:
        """The join whose left events have the number of their matches, and nothing else of them."""
        return self.but(emit="counts")

    def but(self, **changes: Any) -> Self:
        """The same with some attributes changed."""
        return replace(self, **changes)


class InTime:
    """Right events, and their order in time."""

    def __init__(self, right: Side, spec: AnySpec) -> None:
        self.right, self.spec = right, spec

    @remembered
    def rows_in_time(self) -> np.ndarray:
        """Right rows from the earliest midpoint on, of spans from the earliest start: int64 array."""
        right, is_of_spans = self.right, isinstance(self.spec.widest, SpanWindow)
        ranks = row_ranks(right, latest_first=False) if self.spec.ties_by_rows else tie_ranks(right)
        time = 2 * right.min_time if is_of_spans else right.min_time + right.max_time
        return np.lexsort((ranks, time))

    @remembered
    def ranks_in_time(self) -> np.ndarray:
        """The place of each right row among these: int64 array."""
        ranks = np.empty(len(self.right), np.int64)
        ranks[self.rows_in_time] = np.arange(len(self.right))
        return ranks


class Pairing(InTime, ABC):
    """What a condition makes of two sides: the join that finds their pairs, and their columns.

    `join`, used like a backend's join, has the pairs that count.
    """

    join: PairSource
    measuring: MeasuredSource | None = None
    """The join, where it tells delta and distance of its pairs as it finds them."""
    ranged: RangedSource | None = None
    """The join, where it aggregates matches without making pairs."""

    def __init__(self, left: Side, right: Side, spec: AnySpec) -> None:
        super().__init__(right, spec)
        self.left = left

    def of_left_rows(self, start: int, stop: int) -> Self:
        """The same of some left rows, which are numbered from 0, and all right ones."""
        left = replace(self.left, payload=[]).rows(np.arange(start, stop))
        return type(self)(left, self.right, self.spec)

    @property
    def previous(self) -> np.ndarray | None:
        """By left row the last right row before the window, -1 for none; None where it does not count."""
        return None

    @abstractmethod
    def probabilities(self, left_rows: np.ndarray, right_rows: np.ndarray) -> np.ndarray:
        """Satisfaction probabilities of pairs: float64 array."""

    @abstractmethod
    def merits(
        self, left_rows: np.ndarray, right_rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """By what pairs are ranked: probabilities, float64, and half ticks from the middle, uint64."""

    def tie_ranks(self, side: int) -> np.ndarray:
        """Order of the events of a side among matches equal in all else: int64 array, by row."""
        events = (self.left, self.right)[side]
        if self.spec.ties_by_rows:
            return row_ranks(events, latest_first=self.spec.prefers_latest(side))
        return tie_ranks(events)

    @abstractmethod
    def best_matches(self, *, in_order: bool) -> BestMatches:
        """The most probable match of each left event; in order by left rows, else by base positions."""

    @abstractmethod
    def meet_swapped(self, right_rows: np.ndarray, left_rows: np.ndarray) -> np.ndarray:
        """Which pairs of one stream qualify whose right event is taken to be left: bool array."""

    @abstractmethod
    def meet_themselves(self) -> np.ndarray:
        """Which left events of one stream qualify with themselves: bool array, shape (n_left,)."""

    @property
    @abstractmethod
    def doubt(self) -> int:
        """When the other order of a pair of one stream is to be decided: ``NEVER`` and the like."""

    def measured(self, left_rows: np.ndarray, right_rows: np.ndarray) -> dict[str, np.ndarray]:
        """Delta of pairs and what else follows from where events are, by the name of the column."""
        spec, rows = self.spec, (left_rows, right_rows)
        found = {} if spec.delta_name is None else {spec.delta_name: self.deltas(*rows)}
        if spec.overlap_name is not None:
            found[spec.overlap_name] = self.value_of(OVERLAP, *rows)
        return found | self._ends_of_overlaps(*rows)

    def of_condition(
        self, names: Sequence[str], left_rows: np.ndarray, right_rows: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The columns of pairs of their own that a condition on pairs is on, by name."""
        rows = left_rows, right_rows
        deltas = [name for name in names if name in DELTA_NAMES]
        found = {} if len(deltas) == len(names) else self.measured(*rows)
        return found | (dict.fromkeys(deltas, self.deltas(*rows)) if deltas else {})

    def of_condition_swapped(
        self, names: Sequence[str], right_rows: np.ndarray, left_rows: np.ndarray
    ) -> dict[str, np.ndarray]:
        """The same of pairs of one stream whose right event is taken to be left."""
        found = self.of_condition(names, left_rows, right_rows)
        return {name: -each if name in DELTA_NAMES else each for name, each in found.items()}

    def _ends_of_overlaps(
        self, left_rows: np.ndarray, right_rows: np.ndarray
    ) -> dict[str, np.ndarray]:
        """When what pairs have in common begins and ends, ticks; `NO_NUMBER` where that is never."""
        if not self.spec.overlap_ends:
            return {}
        left, right = self.left, self.right
        start = np.maximum(left.min_time[left_rows], right.min_time[right_rows])
        end = np.minimum(left.max_time[left_rows], right.max_time[right_rows])
        has_none = start > end
        ends = start, np.where(end == OPEN_END, NO_NUMBER, end)
        found = dict(zip(OVERLAP_ENDS, ends, strict=True))
        return {name: np.where(has_none, NO_NUMBER, found[name]) for name in self.spec.overlap_ends}

    def _go_on(self, left_rows: np.ndarray, right_rows: np.ndarray) -> np.ndarray:
        """Whether neither span of a pair has an end: bool array."""
        left, right = self.left.max_time == OPEN_END, self.right.max_time == OPEN_END
        return left[left_rows] & right[right_rows]

    def deltas(self, left_rows: np.ndarray, right_rows: np.ndarray) -> np.ndarray:
        """Delta as it was asked for, between stamps or midpoints, half a tick left off: int64, ticks."""
        return self.deltas_to(left_rows, self.stamps[RIGHT][right_rows])

    def deltas_to(self, left_rows: np.ndarray, stamps: np.ndarray) -> np.ndarray:
        """The same of left events and right stamps, half ticks."""
        doubled = stamps - self.stamps[LEFT][left_rows] + 2 * self.not_moved
        doubled = -doubled if self.spec.is_mirrored else doubled
        return (doubled + (doubled < 0)) >> 1

    def value_of(self, name: str, left_rows: np.ndarray, right_rows: np.ndarray) -> np.ndarray:
        """One of `PAIR_VALUES` of pairs: int64 array, where `NO_NUMBER` is null, or float64 array."""
        rows = left_rows, right_rows
        if name == DELTA:
            return self.deltas(*rows)
        if name == OVERLAP:
            return np.where(self._go_on(*rows), NO_NUMBER, self.overlaps(*rows))
        return self.probabilities(*rows) if name == "probability" else self.measured(*rows)[name]

    @property
    def not_moved(self) -> int:
        """By how many ticks right times are still to be moved, of those of `AnySpec.shift`."""
        return 0

    def overlaps(self, left_rows: np.ndarray, right_rows: np.ndarray) -> np.ndarray:
        """The time that pairs of spans have in common, below 0 the gap: int64 array, ticks."""
        left, right = self.left, self.right
        ends = np.minimum(left.max_time[left_rows], right.max_time[right_rows])
        return ends - np.maximum(left.min_time[left_rows], right.min_time[right_rows])

    @remembered
    def stamps(self) -> Rows:
        """Stamps, or midpoints, of both sides: int64 arrays, half ticks."""
        left, right = (
            2 * side.max_time - side.model.before_ends(side.shapes)
            for side in (self.left, self.right)
        )
        return left, right


def swapped_sides(columns: Sequence[C], keys: int, first: int, second: int) -> list[C]:
    """Columns of an output of which those of two sides have changed places."""
    ends = keys + first, keys + first + second
    own, others = columns[keys : ends[0]], columns[ends[0] : ends[1]]
    return [*columns[:keys], *others, *own, *columns[ends[1] :]]


def unmatched_right(own: Sequence[C], nothing: Sequence[C], keys: int, measures: int) -> list[C]:
    """Columns of pairs for right events without a match: `own` keys and right columns, else `nothing`."""
    last = len(nothing) - measures
    first = last - (len(own) - keys)
    return [*own[:keys], *nothing[keys:first], *own[keys:], *nothing[last:]]


def output_schema(
    spec: AnySpec, by: list[pa.Field], left: list[pa.Field], right: list[pa.Field]
) -> pa.Schema:
    """Fields of the output: `by`, left columns, totals or right columns and those of pairs."""
    fields = [*by, *left]
    if not spec.one_row_per_event:
        fields += [pa.field(name, pa.int64(), nullable=False) for name in spec.row.totals]
    if spec.row.is_aggregated:
        named = zip(columns_of(spec.aggregates), (each.type for each in right), strict=True)
        fields += _aggregated(spec)(spec.aggregates, dict(named))
    if spec.outputs_matches:
        wrap = pa.list_ if spec.row.in_lists else lambda kind: kind
        measures = [pa.field(name, kind) for name, kind in spec.measures.items()]
        fields += [pa.field(f.name, wrap(f.type)) for f in (*right, *measures)]
    check_output_names([field.name for field in fields])
    return pa.schema(fields)


def _aggregated(spec: AnySpec) -> Callable[..., list[pa.Field]]:
    """What gives the columns of aggregates, or of their states, which only tasks of Spark tell."""
    if not spec.are_states:
        return aggregate_fields
    from coincide.engine.join.aggregate_parts import state_fields

    return state_fields


def check_output_names(names: list[str]) -> None:
    """Refuse output columns of the same name, and an output without columns."""
    if not names:
        raise ConditionError("the output would have no columns. Name at least one, such as an id.")
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ConditionError(f"two output columns would be named {', '.join(doubled)}. Rename one.")
