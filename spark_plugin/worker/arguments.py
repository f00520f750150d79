"""The arguments of a join, checked once; what planning makes of them needs no second look."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from coincide.condition import TimingCondition
from coincide.errors import ConditionError, SchemaError
from coincide.options import Backend, CorrelateOptions, Emit, How, check_choice
from coincide.partners import LARGEST_GROUP, Matching, Partners, Prefer
from coincide.sides import SIDES
from coincide.units import Tick
from spark_plugin.worker.arrow.time_columns import TimeColumn, resolve_tick, scale_of
from spark_plugin.worker.backends.choice import check_backend
from spark_plugin.worker.emission.spec import JoinSpec, check_emission, hands_out_partners
from spark_plugin.worker.shifts import Shifts, check_shifts
from spark_plugin.worker.timestamps.columns import TimestampColumns
from spark_plugin.worker.timestamps.names import (
    GivenTimes,
    TimestampNames,
    all_columns,
    timestamp_names,
)

Names = str | Sequence[str]


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
    by: Names = ()
    left_columns: Names = ("id",)
    right_columns: Names = ("id",)
    how: How = "inner"
    emit: Emit = "pairs"
    probability: bool = False
    backend: Backend = "auto"
    options: CorrelateOptions = CorrelateOptions()
    shifts: Shifts = None
    prefer: Prefer = "probability"
    k: int = 1
    matching: Matching | None = None
    largest_group: int = LARGEST_GROUP

    def __post_init__(self) -> None:
        if not isinstance(self.condition, TimingCondition):
            raise SchemaError(
                "condition must be a TimingCondition(predicate, confidence); found"
                f" {self.condition!r}"
            )
        check_choice("how", self.how, ("inner", "left", "semi", "anti"))
        check_choice("emit", self.emit, ("pairs", "lists", "counts", "best"))
        check_emission(self.how, self.emit, self.probability)
        self.partners.check_emission(self.how, self.emit)
        check_backend(self.backend)
        for name in ("by", "left_columns", "right_columns"):
            check_names(name, getattr(self, name))
        if not isinstance(self.options, CorrelateOptions):
            raise ConditionError(f"options must be CorrelateOptions(...); found {self.options!r}")
        check_shifts(self.shifts)
        given = self.options.left_longest, self.options.right_longest
        for side, names, longest in zip(SIDES, self.times, given, strict=True):
            if longest is not None:
                names.check_longest(f"{side}_longest")

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
        """The columns that must be equal."""
        return names_of(self.by)

    @property
    def payload(self) -> tuple[list[str], list[str]]:
        """The columns to hand out, left and right; none of right for semi, anti and counts."""
        right = self.right_columns if hands_out_partners(self.how, self.emit) else ()
        return names_of(self.left_columns), names_of(right)

    @property
    def columns(self) -> tuple[list[str], list[str]]:
        """All columns that are needed of the left and of the right side."""
        left, right = (
            list(dict.fromkeys([*all_columns(times), *self.keys, *handed_out]))
            for times, handed_out in zip(self.times, self.payload, strict=True)
        )
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
            self.options.batch_pairs or batch_pairs, (left.model, right.model), self.partners,
        )  # fmt: skip


def names_of(columns: Names) -> list[str]:
    """Column names as a list; one name may stand alone."""
    return [columns] if isinstance(columns, str) else list(columns)


def check_names(argument: str, given: object) -> None:
    """Refuse what is no name and no collection of names.

    Raises
    ------
    ConditionError
    """
    if isinstance(given, str):
        return
    if not isinstance(given, Collection) or not all(isinstance(name, str) for name in given):
        raise ConditionError(
            f"{argument} must be a column name or a sequence of names; () means none; found {given!r}"
        )
