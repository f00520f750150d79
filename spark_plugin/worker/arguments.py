"""The arguments of a join, checked once; what planning makes of them needs no second look."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from coincide.condition import TimingCondition
from coincide.errors import ConditionError, SchemaError, found_instead
from coincide.options import Backend, CorrelateOptions, Emit, How, check_choice
from coincide.partners import LARGEST_GROUP, Matching, Partners, Prefer
from coincide.sides import SIDES
from coincide.units import Tick
from spark_plugin.worker.arrow.time_columns import TimeColumn, resolve_tick, scale_of
from spark_plugin.worker.backends.choice import check_backend
from spark_plugin.worker.column_names import ALL, Names, check_names, is_all_columns, names_of
from spark_plugin.worker.emission.spec import JoinSpec, check_emission, hands_out_partners
from spark_plugin.worker.keys import Keys, key_pairs
from spark_plugin.worker.shifts import Shifts, check_shifts
from spark_plugin.worker.timestamps.columns import TimestampColumns
from spark_plugin.worker.timestamps.names import (
    GivenTimes,
    TimestampNames,
    all_columns,
    timestamp_names,
)
from spark_plugin.worker.where.pair_filter import GivenWhere, Where, check_where, where_of

EVENT = "event"
"""What messages call the rows of one stream."""
_TIMES = ("min_time", "max_time")


class OneStreamError(ConditionError):
    """What is asked is of two streams, and there is one."""


@dataclass(frozen=True)
class JoinArguments:
    """What is asked of a join, whatever its sides are: the arguments of `coincide.correlate`.

    Raises
    ------
    SchemaError
        If the condition is none.
    ConditionError
        If an argument makes no sense.
    BackendError
        If there is no such backend.
    """

    condition: TimingCondition
    left_time: GivenTimes = ("min_time", "max_time")
    right_time: GivenTimes = ("min_time", "max_time")
    by: Keys = ()
    left_columns: Names = ("id",)
    right_columns: Names = ("id",)
    how: How = "inner"
    emit: Emit = "pairs"
    probability: bool = False
    backend: Backend = "auto"
    options: CorrelateOptions = CorrelateOptions()
    shifts: Shifts = None
    is_one_stream: bool = False
    case_fold: bool = False
    where: GivenWhere | Where = None
    prefer: Prefer = "probability"
    k: int = 1
    matching: Matching | None = None
    largest_group: int = LARGEST_GROUP

    def __post_init__(self) -> None:
        if not isinstance(self.condition, TimingCondition):
            raise SchemaError(
                "condition, the third argument, must be a TimingCondition(predicate, confidence), such as"
                f" TimingCondition(within('0s', '3s'), 0.9); found {found_instead(self.condition)}"
            )
        check_choice("how", self.how, ("inner", "left", "semi", "anti"))
        check_choice("emit", self.emit, ("pairs", "lists", "counts", "best"))
        check_emission(self.how, self.emit, self.probability)
        self.partners.check_emission(self.how, self.emit)
        check_backend(self.backend)
        key_pairs(self.by)
        if self.case_fold and not self.keys:
            raise ConditionError("case_fold is of keys: name them in by, or leave it out")
        for name in ("left_columns", "right_columns"):
            check_names(name, getattr(self, name))
            if ALL in names_of(getattr(self, name)) and not is_all_columns(getattr(self, name)):
                raise ConditionError(f"{name} is '*', all columns, or names of some; found both")
        if not isinstance(self.options, CorrelateOptions):
            raise ConditionError(f"options must be CorrelateOptions(...); found {self.options!r}")
        check_where(self.where)
        check_shifts(self.shifts)
        if self.is_one_stream:
            self._take_from_left()
        given = self.options.left_longest, self.options.right_longest
        for side, names, longest in zip(SIDES, self.times, given, strict=True):
            if longest is not None:
                names.check_longest(f"{side}_longest")

    def _take_from_left(self) -> None:
        """Of one stream it is said once what its times are."""
        if self.matching is not None:
            raise OneStreamError(
                "matching is of two sides, and in one stream an event may be left of one and right of"
                " another: leave matching out, or give the events a second time as right"
            )
        for name in ("right_unit", "right_longest"):
            if getattr(self.options, name) is not None:
                raise OneStreamError(
                    f"{name} is of a second stream, and there is one: say {name.replace('right', 'left')}"
                )
        given = timestamp_names("right", self.right_time)
        if given not in (timestamp_names("right", _TIMES), timestamp_names("left", self.left_time)):
            raise OneStreamError(
                "of one stream both sides have the same times: leave right_time out, or give the events a"
                " second time as right"
            )
        object.__setattr__(self, "right_time", self.left_time)
        if self.keys != self.right_keys:
            raise OneStreamError(
                "of one stream both sides have the same keys: name each once in by, or give the events a"
                " second time as right"
            )

    @property
    def sides(self) -> tuple[str, str]:
        """What messages call the sides."""
        return (EVENT, EVENT) if self.is_one_stream else SIDES

    @property
    def partners(self) -> Partners:
        """Which partners of an event are handed out."""
        return Partners(self.prefer, self.k, self.matching, self.largest_group)

    @property
    def times(self) -> tuple[TimestampNames, TimestampNames]:
        """The timestamps of the left and of the right side."""
        left, right = (
            timestamp_names(*each)
            for each in zip(SIDES, (self.left_time, self.right_time), strict=True)
        )
        return left, right

    @property
    def time_columns(self) -> tuple[list[str], list[str]]:
        """The time columns of the left and of the right side, each once: an instant has but one."""
        left, right = (list(dict.fromkeys(names.clocks)) for names in self.times)
        return left, right

    @property
    def timestamp_columns(self) -> tuple[list[str], list[str]]:
        """All columns that the timestamps of the left and of the right side are made of."""
        left, right = map(all_columns, self.times)
        return left, right

    @property
    def keys(self) -> list[str]:
        """The columns of left that must be equal to those of right."""
        return [left for left, _ in key_pairs(self.by)]

    @property
    def right_keys(self) -> list[str]:
        """Those of right, in the same order."""
        return [right for _, right in key_pairs(self.by)]

    @property
    def payload(self) -> tuple[list[str], list[str]]:
        """The columns to hand out, left and right; none of right for semi, anti and counts."""
        right = self.right_columns if hands_out_partners(self.how, self.emit) else ()
        own, others = (() if is_all_columns(each) else each for each in (self.left_columns, right))
        return names_of(own), names_of(others)

    @property
    def tested(self) -> tuple[list[str], list[str]]:
        """The columns that `where` needs, left and right, once `settled`."""
        where = self.where
        return (list(where.left), list(where.right)) if isinstance(where, Where) else ([], [])

    @property
    def is_open(self) -> bool:
        """Whether it takes the columns of both sides to know which are needed."""
        is_all = is_all_columns(self.left_columns) or is_all_columns(self.right_columns)
        return is_all or not (self.where is None or isinstance(self.where, Where))

    @property
    def words_of_needed(self) -> str | None:
        """Words in which the needed columns that are not named are; None if all are needed."""
        is_all = is_all_columns(self.left_columns) or is_all_columns(self.right_columns)
        return None if is_all else str(self.where)

    def settled(self, left: pa.Schema, right: pa.Schema) -> JoinArguments:
        """The same for sides of these columns: it is known then which are handed out and needed.

        Raises
        ------
        ConditionError, SchemaError
            If `where` makes no sense of them.
        """
        if not self.is_open:
            return self
        own, others = (
            [name for name in dict.fromkeys(schema.names) if name not in keys]
            if is_all_columns(given)
            else given
            for given, schema, keys in (
                (self.left_columns, left, self.keys), (self.right_columns, right, self.right_keys),
            )
        )  # fmt: skip
        where = self.where
        if not isinstance(where, Where):
            where = where_of(where, left, right)
        return replace(self, left_columns=own, right_columns=others, where=where)

    @property
    def columns(self) -> tuple[list[str], list[str]]:
        """All columns that are needed of the left and of the right side."""
        left, right = (
            list(dict.fromkeys([*all_columns(times), *keys, *handed_out, *tested]))
            for times, keys, handed_out, tested in zip(
                self.times, (self.keys, self.right_keys), self.payload, self.tested, strict=True
            )
        )
        if self.is_one_stream:
            left = right = list(dict.fromkeys([*left, *right]))
        return left, right

    def resolved_times(
        self, clocks: Sequence[TimeColumn]
    ) -> tuple[TimestampColumns, TimestampColumns]:
        """The timestamps of both sides, in one tick.

        Parameters
        ----------
        clocks : sequence of TimeColumn
            What the two clocks of left, then those of right, mean as times.

        Raises
        ------
        SchemaError, ConditionError
            If they do not go together, or not with what the options say.
        """
        tick = resolve_tick(clocks, self.options)
        scales = [scale_of(column, tick, self.options) for column in clocks]
        longest, (left, right) = self.longest(tick), self.times
        return (
            left.resolved((scales[0], scales[1]), longest[0]),
            right.resolved((scales[2], scales[3]), longest[1]),
        )

    def longest(self, tick: Tick) -> tuple[int | None, int | None]:
        """The declared longest lengths of both sides, in ticks.

        Raises
        ------
        ConditionError
            If one is negative.
        """
        given = self.options.left_longest, self.options.right_longest
        if self.is_one_stream:
            given = given[:1] * 2
        left, right = (None if length is None else tick.count(length) for length in given)
        for side, length in zip(SIDES, (left, right), strict=True):
            if length is not None and length < 0:
                raise ConditionError(
                    f"{side}_longest is a length and cannot be negative; found {length} ticks"
                )
        return left, right

    def spec(self, times: Sequence[TimestampColumns], threads: int, batch_pairs: int) -> JoinSpec:
        """What is computed, in ticks; the numbers are for what the options leave open."""
        left, right = times
        tick = left.scales[0].tick
        emit = self.emit if self.matching is None else "pairs"
        return JoinSpec(
            self.condition.window(tick), self.how, emit, self.probability, self.backend,
            self.options.classes, self.options.threads or threads,
            self.options.batch_pairs or batch_pairs, (left.model, right.model), self.is_one_stream,
            case_fold=self.case_fold, partners=self.partners,
        )  # fmt: skip
