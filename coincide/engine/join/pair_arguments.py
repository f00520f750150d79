"""The arguments that all joins of pairs share, and their conditions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self, get_args

import pyarrow as pa

from coincide.engine.backends import check_backend
from coincide.engine.events.frames import Numbers
from coincide.engine.events.keys import (
    Keys,
    check_all_or_names,
    is_all_columns,
    key_pairs,
    names_of,
)
from coincide.engine.events.row_numbers import ID, are_default
from coincide.engine.events.spans import Spans
from coincide.engine.events.time_columns import TimeColumn, resolve_tick, scale_of
from coincide.engine.events.timestamp_names import (
    GivenTimes,
    TimestampNames,
    timestamp_names,
)
from coincide.engine.events.timestamps import TimestampColumns
from coincide.engine.join.pair_columns import SIDES_ALONE, PairColumns
from coincide.engine.join.pair_filter import GivenWhere, Where, check_where, where_of
from coincide.engine.join.spec import AnySpec
from coincide.model.aggregates import OPTION as AGGREGATES
from coincide.model.aggregates import (
    Aggregate,
    Aggregates,
    Including,
    Weights,
    aggregates_of,
    columns_of,
)
from coincide.model.condition import (
    ANY_CHANCE,
    Confidence,
    TimingCondition,
    Within,
    checked_confidence,
    mutual_deadline,
    within,
)
from coincide.model.errors import ConditionError, argument, brief, said_of
from coincide.model.options import (
    LARGEST_GROUP,
    MATCHINGS,
    MOST_PROBABLE,
    OUTPUT_ROWS,
    Backend,
    CorrelateOptions,
    Emit,
    How,
    MatchChoice,
    Matching,
    MatchingWord,
    Output,
    PreferEffect,
    Ties,
    check_choice,
    check_devices,
    check_one_device,
    check_options,
    preferences_of,
    words_of,
)
from coincide.model.relations import RELATIONS, SpanRelation
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT, RIGHT, SIDES
from coincide.model.units import Duration, Tick

EVENT = "event"
"""What messages call the rows of one stream."""


class OneStreamError(ConditionError):
    """The question is about two streams, and there is one."""


@dataclass(frozen=True, kw_only=True)
class PairArguments(Output, ABC):
    """The question of a join of two sides, or of one stream with itself, whatever the condition.

    Its output columns are ``<prefix>_columns`` of both `prefixes`.
    """

    prefixes: ClassVar[tuple[str, str]] = SIDES
    matchless: ClassVar[str] = "time or key"
    """What rows lack that match nothing."""
    kind_of_choice: ClassVar[type[MatchChoice]] = MatchChoice
    is_in_time: ClassVar[bool] = False
    """Whether it is a join in time, which several GPUs can share."""

    by: Keys = ()
    how: How = "inner"
    emit: Emit = "pairs"
    probability: bool = False
    backend: Backend = "auto"
    options: CorrelateOptions = CorrelateOptions()
    is_one_stream: bool = False
    where: GivenWhere | Where = None
    prefer: PreferEffect = "probability"
    k: int = 1
    matching: Matching | None = None
    largest_group: int = LARGEST_GROUP
    ties: Ties = "order"
    aggregates: Aggregates | None = None
    weights: Weights | None = None
    including: Including | None = None

    def check_pairs(self) -> None:
        """Refuse what makes no sense of any join."""
        check_choice("how", self.how, get_args(How))
        check_choice("emit", self.emit, get_args(Emit))
        key_pairs(self.by)
        for name, given in zip(self._names_of_columns, self.given_columns, strict=True):
            check_all_or_names(name, given)
        check_options(self.options, CorrelateOptions)
        check_where(self.where, self.where_columns)
        self._check_emission()
        self._check_aggregates()
        self.choice.check_output(self)
        check_backend(self.backend)
        if not self.is_in_time:
            check_one_device(self.options, "this is none")
        check_devices(self.options, self.backend)
        if self.is_one_stream and self.keys != self.right_keys:
            raise OneStreamError(
                "both sides of one stream have the same keys. Name each once in"
                f" {argument('by')}, or give the events a second time as"
                f" {argument('right' if self.prefixes == SIDES else f'{self.prefixes[1]}s')}."
            )
        if self.is_one_stream and self.choice.one_to_one is not None:
            self._check_one_stream(self.choice.one_to_one)

    def _check_emission(self) -> None:
        """Refuse combinations that have no meaning."""
        is_of_right = self.side_of_matches == LEFT
        if self.kept.right_alone and not (self.row.is_a_pair or is_of_right):
            of_right = "swap the sides and mirror the window"
            if self.row.may_be_of_right:
                of_right = f"use {argument('how', 'right')}"
            raise ConditionError(
                f"{argument('how', self.how)} adds right events without a match to pairs, but"
                f" {self.row.said} gives a row for each left event. Remove one. For"
                f" a row for each right event {of_right}."
            )
        if self.one_row_per_event and not self.row.is_a_pair:
            raise ConditionError(
                f"{argument('how', self.how)} gives one row per left event. Remove {self.row.said}."
            )
        if self.probability and not self.outputs_matches:
            raise ConditionError(
                f"{self._said_output} gives no pairs, so there is no probability. Remove"
                f" {argument('probability', True)}."
            )

    def _check_aggregates(self) -> None:
        """Refuse aggregates for rows that have none, and rows of aggregates without any."""
        if self.aggregates is None and self.row.is_aggregated:
            raise ConditionError(
                f"{self.row.said} needs {argument(AGGREGATES)} (found none). Give a name, a"
                " function and a column for each."
            )
        if self.aggregates is not None and not self.row.is_aggregated:
            raise ConditionError(
                f"{argument(AGGREGATES)} applies to {OUTPUT_ROWS['aggregates'].said} alone (found"
                f" {self.row.said}). Use that, or remove {argument(AGGREGATES)}."
            )
        if self.weights is not None:
            self._check_weights()
        _ = self.asked_aggregates

    def _check_weights(self) -> None:
        """Refuse weights where nothing is weighed, or where pairs have none."""
        check_choice("weights", self.weights, get_args(Weights))
        said = argument("weights", self.weights)
        if not self.row.is_aggregated:
            raise ConditionError(
                f"{said} applies to {OUTPUT_ROWS['aggregates'].said} alone (found {self.row.said})."
                f" Use that, or remove {argument('weights')}."
            )
        if self.weights not in self.pair_values:
            raise ConditionError(
                f"{said} needs uncertain times, but a pair of these holds or not. Remove"
                f" {argument('weights')}."
            )

    def _check_likely(self, confidence: float | None) -> None:
        """Refuse a confidence that leaves weights nothing to weigh."""
        if confidence == 1:
            raise ConditionError(
                f"{argument('weights', self.weights)} counts pairs that are not certain, but the"
                " condition takes no others (found a confidence of 1). Give it a small one, such as"
                " 0.001."
            )

    @remembered
    def asked_aggregates(self) -> tuple[Aggregate, ...]:
        """The aggregates that are asked for, in their order."""
        return aggregates_of(self.aggregates, self.pair_values, self.weights)

    @property
    def pair_values(self) -> tuple[str, ...]:
        """What pairs have that can be aggregated."""
        return ("delta", "probability")

    @property
    def _said_output(self) -> str:
        """What messages call that which decides that rows have no pairs."""
        return argument("how", self.how) if self.one_row_per_event else self.row.said

    def _check_one_stream(self, matching: MatchingWord) -> None:
        """In one stream, what both orders of a pair have alike leaves each event in one pair at most."""
        if not matching.takes_one_stream:
            first, *others = (each for each in MATCHINGS.values() if each.takes_one_stream)
            these = " or ".join([first.said, *(repr(each.word) for each in others)])
            raise OneStreamError(
                f"{matching.said} assigns right events to left ones, but every event of one stream"
                f" is both (found no second stream). Use {these}."
            )
        if self.where is not None:
            raise OneStreamError(
                f"matching of one stream takes no {argument('where')}, which may hold in only one"
                f" order of a pair (found both). Remove {argument('where')}, or name in"
                f" {argument('by')} what both events have in common."
            )
        if self.choice.then or not self.choice.word.is_alike:
            alike = words_of(lambda word: word.is_alike)
            raise OneStreamError(
                f"matching of one stream takes {alike}, which is the same for both events of a"
                f" pair (found {self.choice.asked!r}). Choose one of these."
            )

    def check_symmetric(self, is_symmetric: bool) -> None:
        """Refuse a matching of one stream if a pair may qualify in one of its orders alone."""
        if self.is_one_stream and self.choice.one_to_one is not None and not is_symmetric:
            raise OneStreamError(
                "matching of one stream needs a condition that reaches as far before as after"
                f" (found another one). Give one duration, such as {argument('within', '5s')}, or"
                f" remove {MatchingWord.option}."
            )

    @remembered
    def choice(self) -> MatchChoice:
        """Which matches of an event are in the output."""
        prefer, then = preferences_of(self.prefer)
        choice = self.k, self.matching, self.largest_group, self.ties, then
        return self.kind_of_choice(prefer, *choice)

    @property
    def _without_column(self) -> dict[str, Any]:
        """What chooses by no column of a match, for a join whose matches have other columns."""
        choice = MOST_PROBABLE if self.choice.is_by_column else self.choice
        return {"prefer": choice.prefer}

    @property
    @abstractmethod
    def times(self) -> tuple[TimestampNames, TimestampNames]:
        """The timestamps of both sides."""

    def resolved_times(
        self, clocks: Sequence[TimeColumn]
    ) -> tuple[TimestampColumns, TimestampColumns]:
        """The timestamps of both sides, in one tick, from what the two clocks of each side mean."""
        tick = resolve_tick(clocks, self.options)
        scales = [scale_of(column, tick, self.options) for column in clocks]
        longest, (left, right) = self.longest(tick), self.times
        return (
            left.resolve((scales[0], scales[1]), longest[0]),
            right.resolve((scales[2], scales[3]), longest[1]),
        )

    def longest(self, tick: Tick) -> tuple[int | None, int | None]:
        """The declared longest lengths of both sides, in ticks."""
        given = self._longest[:1] * 2 if self.is_one_stream else self._longest
        left, right = (
            _length(f"{side}_longest", length, tick)
            for side, length in zip(SIDES, given, strict=True)
        )
        return left, right

    @property
    def _longest(self) -> tuple[Duration | None, Duration | None]:
        return self.options.left_longest, self.options.right_longest

    @abstractmethod
    def check_tick(self, tick: Tick) -> None:
        """Refuse a tick in which durations cannot be counted."""

    @abstractmethod
    def spec(self, times: Sequence[TimestampColumns], threads: int, batch_pairs: int) -> AnySpec:
        """What is computed, in ticks; the numbers are for what the options leave open."""

    def _of_spec(
        self, times: Sequence[TimestampColumns], threads: int, batch_pairs: int
    ) -> dict[str, Any]:
        """What every spec has of the arguments."""
        names = "probability", "backend", "is_one_stream", "is_mirrored", "pairs_once", "choice"
        own, others = times
        return {name: getattr(self, name) for name in names} | {
            "aggregates": self.asked_aggregates,
            "emit": self.emit if self.choice.one_to_one is None else "pairs",
            "threads": self.options.threads or threads,
            "batch_pairs": self.options.batch_pairs or batch_pairs,
            "max_pairs": self.options.max_pairs,
            "devices": self.options.devices,
            "models": (own.model, others.model),
        }

    @property
    def sides(self) -> tuple[str, str]:
        """What messages call the sides."""
        return (EVENT, EVENT) if self.is_one_stream else self.prefixes

    @property
    def said_where(self) -> tuple[str, str]:
        """How messages say of which side something holds."""
        return "on the left", "on the right"

    @property
    def pairs_once(self) -> bool:
        """Whether of one stream each pair is given in one order only."""
        is_of_pairs = self.row.is_a_pair and not self.one_row_per_event
        return self.is_one_stream and is_of_pairs and self.choice.one_to_one is None

    @property
    def where_columns(self) -> PairColumns:
        """What `where` may be on."""
        return SIDES_ALONE

    def where_columns_of(self, left: pa.Schema, right: pa.Schema) -> PairColumns:
        """The same, for sides of these columns."""
        return self.where_columns

    @property
    def places(self) -> tuple[tuple[str | float, ...], tuple[str | float, ...]]:
        """Coordinates of both sides: columns, and numbers that hold for all."""
        return (), ()

    @property
    def coordinates(self) -> tuple[list[str], list[str]]:
        """The columns among the coordinates of both sides, each once."""
        own, others = (
            list(dict.fromkeys(p for p in place if isinstance(p, str))) for place in self.places
        )
        return own, others

    @property
    def given_columns(self) -> tuple[Sequence[str], Sequence[str]]:
        """The output columns, as they were asked for."""
        own, others = (getattr(self, name) for name in self._names_of_columns)
        return own, others

    @property
    def _names_of_columns(self) -> list[str]:
        return [f"{prefix}_columns" for prefix in self.prefixes]

    @property
    def _names_of_output(self) -> list[str]:
        """All arguments that name columns of the output."""
        return self._names_of_columns

    @property
    def clocks(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Names of the earlier and later time columns of both sides."""
        own, others = (names.clocks for names in self.times)
        return own, others

    @property
    def time_columns(self) -> tuple[list[str], list[str]]:
        """The time columns of both sides, each once: an instant has but one."""
        own, others = (list(dict.fromkeys(clocks)) for clocks in self.clocks)
        return own, others

    @property
    def numbers(self) -> tuple[Numbers, Numbers]:
        """Columns of both sides that are times or coordinates, however CSV writes their numbers."""
        own, others = map(Numbers, self.time_columns, self.coordinates)
        return own, others

    @property
    def numbered(self) -> tuple[bool, bool]:
        """Whether rows of both sides, in this process, have their numbers as ids where they have none."""
        # As long as nothing but the output needs that column.
        own, others = (
            are_default(output) and ID in needed and ID not in {*times, *keys}
            for output, needed, times, keys in zip(
                self.given_columns, self.columns, self.timestamp_columns,
                (self.keys, self.right_keys), strict=True,
            )
        )  # fmt: skip
        return (own or others,) * 2 if self.is_one_stream else (own, others)

    @property
    def timestamp_columns(self) -> tuple[list[str], list[str]]:
        """All columns that the timestamps, and places, of both sides are made of."""
        own, others = (
            list(dict.fromkeys([*times.columns, *names]))
            for times, names in zip(self.times, self.coordinates, strict=True)
        )
        return own, others

    @remembered
    def key_names(self) -> list[tuple[str, str]]:
        """The columns of left that must be equal to those of right, and these."""
        return key_pairs(self.by)

    @property
    def keys(self) -> list[str]:
        """The columns of left that must be equal to those of right."""
        return [left for left, _ in self.key_names]

    @property
    def right_keys(self) -> list[str]:
        """Those of right, in the same order."""
        return [right for _, right in self.key_names]

    @property
    def payload(self) -> tuple[list[str], list[str]]:
        """The output columns, left and right; none of matches for semi, anti and counts."""
        given = list(self.given_columns)
        if not self.outputs_matches:
            given[self.side_of_matches] = columns_of(self.asked_aggregates)
        own, others = (() if is_all_columns(each) else each for each in given)
        return names_of(own), names_of(others)

    @property
    def tested(self) -> tuple[list[str], list[str]]:
        """The columns that `where` needs, left and right, once `settled`; then those of `prefer`."""
        where = self.where
        left, right = (where.left, where.right) if isinstance(where, Where) else ((), ())
        found = [*left], [*right]
        found[self.side_of_matches].extend(each.column for each in self.choice.columns)
        return found

    @property
    def is_mirrored(self) -> bool:
        """Whether its first side is the right one that was given."""
        return False

    @property
    def side_of_matches(self) -> int:
        """The side of the matches among which `choice` chooses."""
        return RIGHT

    @property
    def alone(self) -> PairArguments | None:
        """The join that finds right events without a match; None if nothing asks for them."""
        return None

    @property
    def keeps_right(self) -> bool:
        """Whether right events without a match are in the output."""
        return False

    @property
    def output_keys(self) -> list[str]:
        """What keys are called in the output."""
        return self.keys

    @property
    def outputs_either_key(self) -> bool:
        """Whether keys of right events are in the output, too, in the columns of left ones."""
        return self.kept.right_alone

    @property
    def is_open(self) -> bool:
        """Whether it takes the columns of both sides to know which are needed."""
        is_all = any(map(is_all_columns, self.given_columns))
        return is_all or not (self.where is None or isinstance(self.where, Where))

    @property
    def words_of_needed(self) -> str | None:
        """Words in which the needed columns that are not named are; None if all are needed."""
        return None if any(map(is_all_columns, self.given_columns)) else str(self.where)

    def settled(self, left: pa.Schema, right: pa.Schema) -> Self:
        """The same for sides of these columns: it is known then which are needed."""
        if not self.is_open:
            return self
        keys, schemas = (self.keys, self.right_keys), (left, right)
        found = [
            [name for name in dict.fromkeys(schema.names) if name not in own]
            if is_all_columns(given)
            else given
            for given, schema, own in zip(self.given_columns, schemas, keys, strict=True)
        ]
        where = self.where
        if where is not None and not isinstance(where, Where):
            pair = self.where_columns_of(left, right)
            where = where_of(where, schemas, pair, self.time_columns)
            if where is not None and self.pairs_once:
                where = where.of_either_order
        changes: dict[str, Any] = dict(zip(self._names_of_columns, found, strict=True))
        return replace(self, **changes, where=where)

    @property
    def counting(self) -> Self:
        """The join whose pairs are counted: those of two sides are there, whatever becomes of them."""
        if self.choice.one_to_one is not None or self.is_one_stream:
            return self
        none: dict[str, Any] = dict.fromkeys(self._names_of_output, ())
        return replace(
            self, how="inner", emit="counts", probability=False, prefer="probability", k=1,
            ties="order", aggregates=None, weights=None, including=None, **none,
        )  # fmt: skip

    def of_times(self) -> Self:
        """The same without keys and a condition on pairs; the output columns are those of timestamps."""
        columns = self.timestamp_columns
        changes: dict[str, Any] = dict(zip(self._names_of_columns, columns, strict=True))
        return replace(self, by=(), where=None, **changes)

    @property
    def columns(self) -> tuple[list[str], list[str]]:
        """All columns that are needed of the left and of the right side."""
        left, right = (
            list(dict.fromkeys([*times, *keys, *output, *tested]))
            for times, keys, output, tested in zip(
                self.timestamp_columns, (self.keys, self.right_keys), self.payload, self.tested,
                strict=True,
            )
        )  # fmt: skip
        if self.is_one_stream:
            left = right = list(dict.fromkeys([*left, *right]))
        return left, right


_NOT_TAKEN = ("condition", "is_one_stream")
"""Fields of arguments that no argument of a name of its own gives."""


def check_words(tables: str, kind: type[PairArguments], words: Iterable[str]) -> None:
    """Refuse names of arguments that a join does not have."""
    known = [field.name for field in fields(kind) if field.name not in _NOT_TAKEN]
    for word in words:
        if word not in known:
            raise ConditionError(
                f"there is no argument {word!r}. Use one of {tables}'s: {', '.join(known)}."
            )


def _length(name: str, given: Duration | None, tick: Tick) -> int | None:
    if given is None:
        return None
    with said_of(name):
        length = tick.count(given)
    if length < 0:
        raise ConditionError(
            f"{argument(name)} is a length, so it cannot be negative (found {length} ticks)."
        )
    return length


GivenWindow = Duration | tuple[Duration | None, Duration | None] | Within
"""What users may say of a window: its two ends, one duration for both, or a predicate."""
_TIMES = f"{argument('left_time')} and {argument('right_time')}"
_EXAMPLE = f"{argument('within', ('0s', '30s'))}, {argument('confidence', 0.9)}"


def condition_of(
    condition: TimingCondition | SpanRelation | None,
    window: GivenWindow | None,
    confidence: Confidence | None,
    times: Sequence[GivenTimes],
    weights: Weights | None = None,
) -> TimingCondition | SpanRelation:
    """The condition that is meant: as it was given, or of a window and a confidence."""
    _check_relation(condition, window, times)
    # Exact times, which meet or do not, need no confidence.
    can_be_alone = are_exact(times)
    confidence = _least_confidence(condition, window, confidence, times, weights)
    if (
        isinstance(condition, Within)
        and window is None
        and (confidence is not None or can_be_alone)
    ):
        condition, window = None, condition
    if condition is not None:
        if window is None and confidence is None:
            return condition
        if isinstance(condition, SpanRelation) and window is None:
            return replace(condition, confidence=checked_confidence(confidence))
        given = "within" if window is not None else "confidence"
        raise ConditionError(
            f"{argument('condition')} and {argument(given)} both give the condition of pairs."
            " Remove one of them."
        )
    if window is None and confidence is None:
        raise ConditionError(
            f"the condition of pairs is missing. Give it, for example with {_EXAMPLE}, or with"
            " condition=TimingCondition(...)."
        )
    if window is not None and confidence is None and can_be_alone:
        confidence = 1.0
    if window is not None:
        with said_of("within"):
            window = window_of(window)
        if not any(isinstance(given, Spans) for given in times):
            check_open_exact(window, times)
    if window is None or confidence is None:
        lacking = "within" if window is None else "confidence"
        exact = "" if window is None else f" Exact times need none: name one column in {_TIMES}."
        raise ConditionError(
            f"{argument(lacking)} is missing. Give both, for example {_EXAMPLE}.{exact}"
        )
    return TimingCondition(window, checked_confidence(confidence))


def _least_confidence(
    condition: TimingCondition | SpanRelation | None,
    window: GivenWindow | None,
    confidence: Confidence | None,
    times: Sequence[GivenTimes],
    weights: Weights | None,
) -> Confidence | None:
    """The confidence, with weights that of all pairs that may be where uncertain times have none."""
    if confidence is not None or weights is None:
        return confidence
    if isinstance(condition, SpanRelation):
        lasting = [each for each in times if isinstance(each, Spans)]
        has_none = condition.confidence is None and any(each.are_uncertain for each in lasting)
    else:
        has_none = (window is not None or isinstance(condition, Within)) and not are_exact(times)
    return ANY_CHANCE if has_none else None


def _check_relation(condition: object, window: object, times: Sequence[GivenTimes]) -> None:
    """Refuse spans without a relation, and a relation with a window or without its brackets."""
    name = condition if isinstance(condition, str) else getattr(condition, "__name__", None)
    if name in RELATIONS:
        raise ConditionError(
            f"a relation is a call (found {brief(condition)}). Give"
            f" {argument('condition')}={RELATIONS[name]}."
        )
    lasting = [s for s, each in zip(SIDES, times, strict=False) if isinstance(each, Spans)]
    if window is not None and isinstance(condition, SpanRelation):
        raise ConditionError(
            f"{argument('within')} applies to instants, and {condition} to spans. Remove one of them."
        )
    if lasting and (condition is None or isinstance(condition, Within)):
        found = "none" if condition is window is None else "a window between instants"
        raise ConditionError(
            f"{argument(f'{lasting[0]}_time')} says that events last, so pairs need a relation"
            f" (found {found}). Give one, such as {argument('condition')}=overlapping()."
        )


def are_exact(times: Sequence[GivenTimes]) -> bool:
    """Whether the times of all sides are instants: each of one column, or about it by nothing."""
    return all(map(is_exact, SIDES, times))


def is_exact(side: str, given: GivenTimes) -> bool:
    """The same of one side."""
    return timestamp_names(f"{side}_time", given).is_exact


def check_open_exact(window: Within, times: Sequence[GivenTimes]) -> None:
    """Refuse a window without an end for uncertain times, which no confidence makes right."""
    for side, given in zip(SIDES, times, strict=True) if window.is_open else ():
        if not is_exact(side, given):
            raise ConditionError(
                f"a window without an end takes exact times, but those of {side} are uncertain"
                f" (found {brief(given)}). Give both ends, such as"
                f" {argument('within', ('-1h', '0s'))}, and {argument('confidence', 0.5)}."
            )


def window_of(window: GivenWindow) -> Within:
    """The window on delta: a predicate as it is, two ends, or one duration for both."""
    if isinstance(window, Within):
        return window
    if isinstance(window, (tuple, list)):
        if len(window) != 2:
            raise ConditionError(
                f"takes (lo, hi), such as ('0s', '30s'), or one duration for both (found"
                f" {brief(window)})."
            )
        return within(*window)
    return mutual_deadline(window)


def check_second(right: object) -> None:
    """Refuse a condition where the second side belongs."""
    if isinstance(right, (TimingCondition, Within, SpanRelation)):
        raise ConditionError(
            f"{argument('right')} must be events (found a condition). To join one stream with"
            " itself, name the condition, for example correlate(events,"
            f" {argument('condition')}=within(-5, 5))."
        )
