"""The arguments of a join, checked once; planning need not check what it makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from itertools import chain
from typing import Any, ClassVar, get_args

import pyarrow as pa

from coincide.engine.events.keys import Names, check_names, names_of
from coincide.engine.events.span_ends import kind_of_ends
from coincide.engine.events.spans import SpanColumns, Spans
from coincide.engine.events.ticks import length_words
from coincide.engine.events.time_columns import resolve_tick
from coincide.engine.events.timestamp_names import (
    GivenTimes,
    TimestampNames,
    arrow_clocks,
    timestamp_names,
)
from coincide.engine.events.timestamps import TimestampColumns
from coincide.engine.join.delta import DELTA, delta_columns, in_unit
from coincide.engine.join.pair_arguments import (
    OneStreamError,
    PairArguments,
    are_exact,
    check_open_exact,
    is_exact,
)
from coincide.engine.join.pair_columns import PairColumns
from coincide.engine.join.pair_filter import GivenWhere, Where
from coincide.engine.join.spec import OVERLAP, OVERLAP_ENDS
from coincide.engine.join.timing import JoinSpec
from coincide.engine.reports.warnings import delay_argument, warn
from coincide.model.aggregates import Including
from coincide.model.condition import TimingCondition, Window
from coincide.model.errors import (
    ConditionError,
    EarlyAnswersWarning,
    SchemaError,
    argument,
    brief,
    found_instead,
)
from coincide.model.options import (
    MATCHINGS,
    OUTPUT_ROWS,
    PREFERENCES,
    CorrelateOptions,
    How,
    MatchingWord,
    Way,
    check_choice,
)
from coincide.model.relations import SpanRelation
from coincide.model.remembered import remembered
from coincide.model.sides import LEFT, RIGHT, SIDES
from coincide.model.uncertain_ends import Widths
from coincide.model.units import Duration, Tick, size_of

TIMES = ("min_time", "max_time")
_OF_LEFT: dict[str, How] = {"right": "inner", "full": "left"}
"""The question about left events where the output also has right ones without a match."""
_OTHER_WAY: dict[str, Way] = {
    "broadcast-left": "broadcast-right",
    "broadcast-right": "broadcast-left",
}


@dataclass(frozen=True)
class JoinArguments(PairArguments):
    """The question of a join, whatever its sides are: the arguments of `coincide.correlate`."""

    is_in_time: ClassVar[bool] = True

    condition: TimingCondition | SpanRelation
    left_time: GivenTimes = field(default=TIMES, kw_only=True)
    right_time: GivenTimes = field(default=TIMES, kw_only=True)
    left_columns: Names = field(default=("id",), kw_only=True)
    right_columns: Names = field(default=("id",), kw_only=True)
    pair_columns: Names = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.condition, (TimingCondition, SpanRelation)):
            raise SchemaError(
                "condition, the third argument, must be a TimingCondition(predicate, confidence),"
                " such as TimingCondition(within('0s', '3s'), 0.9) (found"
                f" {found_instead(self.condition)})."
            )
        self.check_pairs()
        self._check_pair_columns()
        if self.is_one_stream:
            self._take_from_left()
        self._check_spans()
        if self.side_of_matches == LEFT:
            self._check_of_right()
        if self.has_open_window:
            self._check_open_window()
        if self.including is not None:
            self._check_including()
        for side, names, longest in zip(self.prefixes, self.times, self._longest, strict=True):
            if longest is not None:
                names.check_longest(f"{side}_longest")

    def _check_pair_columns(self) -> None:
        check_names("pair_columns", self.pair_columns)
        asked = names_of(self.pair_columns)
        known = {DELTA: "the time from the left event to the right one"}
        if self.is_of_spans:
            known = {
                OVERLAP: "the time that two spans have in common, below 0 the gap between them",
                **dict.fromkeys(OVERLAP_ENDS, "when that time begins and ends"),
            }
        if any(name not in known for name in asked):
            column, *ends = known
            also = f"; and {' and '.join(map(repr, ends))}, {known[ends[0]]}" if ends else ""
            raise ConditionError(
                f"{argument('pair_columns')} takes {column!r}, {known[column]}{also} (found"
                f" {brief(self.pair_columns)})."
            )
        if asked and not self.outputs_matches:
            raise ConditionError(
                f"{self._said_output} gives no pairs, so there is no {asked[0]}. Remove"
                f" {argument('pair_columns')}."
            )

    def _check_including(self) -> None:
        """Refuse the last event before a window for what has no such event, or does not count it."""
        check_choice("including", self.including, get_args(Including))
        times = self.left_time, self.right_time
        second = f"Give the events a second time as {argument('right')}"
        found = {
            self.row.said: (not self.row.is_aggregated, f"Use {OUTPUT_ROWS['aggregates'].said}"),
            argument("how", self.how): (self.keeps_right, "Swap the sides and mirror the window"),
            "no second stream": (self.is_one_stream, second),
            "spans": (self.is_of_spans, "Give a window between instants"),
            "uncertain times": (not are_exact(times), "Name one column of times a side"),
            "a window without an end": (self.has_open_window, "Give both ends"),
            argument("where"): (self.where is not None, "Filter the right events before the join"),
        }
        for word, (is_found, cure) in found.items():
            if is_found:
                raise ConditionError(
                    f"{argument('including', self.including)} adds the last right event before the"
                    f" window to aggregates of exact times (found {word}). {cure}, or remove"
                    f" {argument('including')}."
                )

    def _check_of_right(self) -> None:
        """Refuse what the join of swapped sides would not answer as it was asked."""
        if self.has_open_window:
            raise ConditionError(
                f"{argument('how', 'right')} with {self.row.said} does not take a window"
                " without one of its ends. Swap the sides and mirror the window."
            )

    @property
    def _opens_later(self) -> bool:
        """Whether the first end of the window does not belong to it."""
        condition = self.condition
        return isinstance(condition, TimingCondition) and not condition.predicate.holds_lo

    @property
    def has_open_window(self) -> bool:
        """Whether the window has one end only."""
        return isinstance(self.condition, TimingCondition) and self.condition.predicate.is_open

    def _check_open_window(self) -> None:
        """Refuse all pairs, however far apart, and matches that no one search finds."""
        assert isinstance(self.condition, TimingCondition)
        predicate, choice = self.condition.predicate, self.choice
        check_open_exact(predicate, (self.left_time, self.right_time))
        word, bound = ("last", predicate.hi) if predicate.lo is None else ("first", predicate.lo)
        assert bound is not None
        is_one_way = size_of(bound) <= 0 if predicate.lo is None else size_of(bound) >= 0
        delays = (word, "nearest") if is_one_way else (word,)
        is_best = self.row.is_best and choice.word.delay in delays
        is_plain = self.where is None and not self.is_one_stream
        is_plain &= choice.one_to_one is None
        if not (is_plain and (is_best or self.one_row_per_event)):
            raise ConditionError(
                f"{predicate} alone holds for most pairs, however far apart. Give both ends, such as"
                f" {argument('within', ('-1h', '0s'))}, or ask for the {word} match alone:"
                f" {OUTPUT_ROWS['best'].said}, {PREFERENCES[word].said}, of two sides and without"
                f" {argument('where')} and {MatchingWord.option}."
            )

    def _check_spans(self) -> None:
        """Refuse spans without a relation, a relation without spans, and what has no meaning of them."""
        if not self.is_of_spans:
            for name in ("left_time", "right_time"):
                if isinstance(getattr(self, name), Spans):
                    raise ConditionError(
                        f"{argument(name)} says that events last, so a window between instants does"
                        f" not apply (found {self.condition}). Give a relation, such as"
                        f" {argument('condition')}=overlapping()."
                    )
            return
        for name in ("left_time", "right_time"):
            given = getattr(self, name)
            if not isinstance(given, (Spans, str)):
                raise ConditionError(
                    f"{argument(name)} must be spans('start', 'end'), or one column of exact times,"
                    f" for {self.condition} (found {brief(given)}). Name its columns in spans()."
                )
        self._check_bounded()
        self._check_open_ends()
        self._check_uncertain_ends()
        if self.probability and self.condition.confidence is None:
            raise ConditionError(
                f"{self.condition} holds or not, so there is no probability. Remove"
                f" {argument('probability', True)}, or ask for"
                f" {argument('pair_columns', OVERLAP)}."
            )
        word = self.choice.one_to_one
        if word is not None and not word.takes_spans:
            raise ConditionError(
                f"{word.said} assigns instants to each other, but {self.condition} relates"
                f" spans. Use {MATCHINGS['mutual'].said}."
            )

    def _check_bounded(self) -> None:
        """Refuse all pairs, however far apart, where they would be most of all."""
        assert isinstance(self.condition, SpanRelation)
        is_nearest = self.row.is_best and self.choice.word.delay == "nearest"
        is_found = self.one_row_per_event or is_nearest
        if self.condition.is_unbounded and not (
            is_found and self.where is self.choice.one_to_one is None
        ):
            raise ConditionError(
                f"{self.condition} alone holds for most pairs, however far apart. Give"
                f" {argument(self.condition.called, '1h')}, the most time between the two, or ask for"
                f" the nearest alone: {OUTPUT_ROWS['best'].said}, {PREFERENCES['nearest'].said},"
                f" without {argument('where')}."
            )

    def _check_open_ends(self) -> None:
        """Refuse what no span without an end has, or what two ends that are open leave unknown."""
        assert isinstance(self.condition, SpanRelation)
        both = {"left_time": self.left_time, "right_time": self.right_time}
        are_open = [isinstance(given, Spans) and given.open_ends for given in both.values()]
        for name, is_open, share in zip(both, are_open, self.condition.share, strict=True):
            if is_open and share:
                raise ConditionError(
                    f"no time is a share of a span that goes on, but {self.condition} asks for one"
                    f" (found {argument('open_ends', True)} in {argument(name)}). Give"
                    f" {argument('share')} as a pair with 0 for this side, or use"
                    f" {argument('min_overlap')}."
                )
        widths = [given.around[1] for given in both.values() if isinstance(given, Spans)]
        if (
            all(are_open)
            and any(map(size_of, widths))
            and self.condition.kind in ("containing", "inside")
        ):
            raise ConditionError(
                f"{self.condition} compares ends, and two ends that are open are not off by some"
                f" time (found {argument('open_ends', True)} and {argument('around')} on both"
                f" sides). Give the widths of starts alone, {argument('around', ('10ms', 0))}."
            )

    def _check_uncertain_ends(self) -> None:
        """Refuse uncertain ends without a confidence, a confidence without them, and what couples them."""
        assert isinstance(self.condition, SpanRelation)
        both = {"left_time": self.left_time, "right_time": self.right_time}
        uncertain = [
            name for name, given in both.items() if isinstance(given, Spans) and given.are_uncertain
        ]
        if self.condition.confidence is None:
            if uncertain:
                raise ConditionError(
                    f"{argument(uncertain[0])} says that starts and ends may be off, so a pair needs a"
                    f" confidence (found {self.condition}). Give {argument('confidence', 0.5)} for"
                    " pairs that are more likely than not."
                )
            return
        if not uncertain:
            raise ConditionError(
                f"{self.condition.kind} of spans whose ends are known holds or not, so there is no"
                f" confidence (found {self.condition.confidence:g}). Remove {argument('confidence')},"
                " or say by how much ends may be off, as in spans('start', 'end', around='10ms'); on the"
                " command line by --left-around or --right-around."
            )
        if self.condition.couples_ends:
            raise ConditionError(
                f"{self.condition} asks for equal ends, or for an overlap of some length, which is not"
                " known of uncertain ends. Use overlapping(), overlapping(gap=), containing(),"
                " inside() or following()."
            )

    def _check_weights(self) -> None:
        """As in `PairArguments`; also a confidence that only certain pairs reach."""
        super()._check_weights()
        is_exact = not self.is_of_spans and are_exact((self.left_time, self.right_time))
        if not is_exact:
            self._check_likely(self.condition.confidence)

    def _take_from_left(self) -> None:
        """Take times from the left side, as one stream names them once."""
        if self.keeps_right:
            raise OneStreamError(
                f"{argument('how', self.how)} needs two sides, but every event of one stream is a"
                f" left one. Use {argument('how', 'left')}, or give the events a second time as"
                f" {argument('right')}."
            )
        for name in ("right_unit", "right_longest"):
            if getattr(self.options, name) is not None:
                raise OneStreamError(
                    f"{argument(name)} belongs to a second stream, and there is one. Use"
                    f" {argument(name.replace('right', 'left'))}."
                )
        names = (timestamp_names("left_time", self.left_time), timestamp_names("right_time", TIMES))
        if timestamp_names("right_time", self.right_time) not in names:
            raise OneStreamError(
                f"both sides of one stream have the same times. Remove {argument('right_time')},"
                f" or give the events a second time as {argument('right')}."
            )
        object.__setattr__(self, "right_time", self.left_time)

    @property
    def _names_of_output(self) -> list[str]:
        return [*super()._names_of_output, "pair_columns"]

    @property
    def pair_values(self) -> tuple[str, ...]:
        """As in `PairArguments`."""
        if self.including is not None:
            return (DELTA,)  # the event before the window has a probability of 0
        if not self.is_of_spans:
            return super().pair_values
        has_none = self.condition.confidence is None
        return (OVERLAP,) if has_none else (OVERLAP, "probability")

    @property
    def is_of_spans(self) -> bool:
        """Whether events last, and pairs have a relation."""
        return isinstance(self.condition, SpanRelation)

    @property
    def keeps_right(self) -> bool:
        """As in `PairArguments`."""
        return self.kept.right_alone

    @property
    def alone(self) -> MirroredArguments | None:
        """The join that finds right events without a match, where they are asked for."""
        # Where it is `settled`, so is this.
        if not self.keeps_right or self.mirrored is not None:
            return None
        return self._seen_from_right(how="anti", emit="pairs", probability=False, pair_columns=())

    @property
    def mirrored(self) -> MirroredArguments | None:
        """The join that answers this one with its sides swapped: right events are its left ones."""
        # Where it is `settled`, so is this.
        return self._seen_from_right(how="left") if self.side_of_matches == LEFT else None

    def _seen_from_right(self, **changes: Any) -> MirroredArguments:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        return MirroredArguments(**given | _turned(self.options, self.where) | changes)

    @property
    def side_of_matches(self) -> int:
        """As in `PairArguments`."""
        return LEFT if self.how == "right" and self.row.may_be_of_right else RIGHT

    @property
    def times(self) -> tuple[TimestampNames, TimestampNames]:
        """The timestamps of the left and of the right side."""
        return self._times

    @remembered
    def _times(self) -> tuple[TimestampNames, TimestampNames]:
        left, right = (self._names_of_times(name) for name in ("left_time", "right_time"))
        return left, right

    @property
    def where_columns(self) -> PairColumns:
        """As in `PairArguments`: between instants there is delta."""
        return self._pair_columns(None)

    def where_columns_of(self, left: pa.Schema, right: pa.Schema) -> PairColumns:
        """As in `PairArguments`: the tick is known then."""
        if self.is_of_spans:
            return self.where_columns
        given = zip(self.sides, self.times, (left, right), strict=True)
        clocks = [clock for each in given for clock in arrow_clocks(*each)]
        return self._pair_columns(resolve_tick(clocks, self.options))

    def _pair_columns(self, tick: Tick | None) -> PairColumns:
        return PairColumns(self.prefixes, () if self.is_of_spans else delta_columns(tick))

    def _names_of_times(self, name: str) -> TimestampNames:
        given = getattr(self, name)
        if self.is_of_spans and isinstance(given, str):
            given = Spans(given, given)  # an instant has no length
        return timestamp_names(name, given)

    def check_tick(self, tick: Tick) -> None:
        """As in `PairArguments`."""
        self._window(tick, ())
        self.longest(tick)

    def _as_given(self, times: Sequence[TimestampColumns]) -> Sequence[TimestampColumns]:
        """Timestamps of both sides, left ones first."""
        return times

    def _window(self, tick: Tick, times: Sequence[TimestampColumns]) -> Window:
        if isinstance(self.condition, TimingCondition):
            return self.condition.open_window(tick)
        widths = [width for each in times if isinstance(each, SpanColumns) for width in each.around]
        return self.condition.window(tick, Widths(*widths))

    def spec(self, times: Sequence[TimestampColumns], threads: int, batch_pairs: int) -> JoinSpec:
        """What is computed, in ticks; the numbers are for what the options leave open."""
        tick = times[0].scales[0].tick
        window = self._window(tick, times)
        self.check_symmetric(window.is_even)
        self._warn_of_early(window, times, tick)
        asked = names_of(self.pair_columns)
        column = in_unit(OVERLAP if self.is_of_spans else DELTA, tick)
        ends = tuple(name for name in OVERLAP_ENDS if name in asked)
        given = self._as_given(times)
        scales = [each.of_ends for each in given if isinstance(each, SpanColumns)]
        kind, scale = kind_of_ends(list(chain(*scales))) if ends else (pa.int64(), Fraction(1))
        has_previous = self.including is not None
        return JoinSpec(
            window, self.options.classes, how=_OF_LEFT.get(self.how, self.how), has_previous=has_previous,
            opens_later=has_previous and self._opens_later,
            delta_name=column if DELTA in asked else None,
            overlap_name=column if OVERLAP in asked else None,
            overlap_ends=ends, overlap_kind=kind, overlap_scale=scale,
            **self._of_spec(times, threads, batch_pairs),
        )  # fmt: skip

    def _warn_of_early(self, window: Window, times: Sequence[TimestampColumns], tick: Tick) -> None:
        """Warn of answers that are stamped before what they answer, and would count as missing."""
        is_asked = self.how == "anti" and self.keys and window.lo == 0 < window.hi
        if not is_asked or self.is_one_stream or self.is_of_spans:
            return
        given = zip(SIDES, (self.left_time, self.right_time), times, strict=True)
        declared = [(0, 0) if is_exact(side, own) else each.declared for side, own, each in given]
        longest = [None if each is None else each[1] for each in declared]
        if longest == [0, 0]:
            return
        found, begin = (
            "uncertain times",
            "below 0, by the longest timestamps of both sides together",
        )
        own, others = longest
        if own is not None and others is not None:
            lengths = [length_words(each, tick) for each in (own, others)]
            found = f"timestamps of up to {lengths[0]} and {lengths[1]}"
            begin = f"at {negative(delay_argument(own + others, tick))}"
        warn(
            f"{argument('how', 'anti')} reports a left event as unmatched if its match is stamped before it"
            f" (found a window from 0, and {found}). If keys tie answers to"
            f" requests, begin the window {begin}.",
            EarlyAnswersWarning,
        )


def negative(delay: str) -> str:
    """A delay as one writes it, the other way."""
    return delay.replace("'", "'-", 1) if "'" in delay else f"-{delay}"


def _turned(options: CorrelateOptions, where: GivenWhere | Where) -> dict[str, Any]:
    """What is said of sides, as it is said of them swapped."""
    way = _OTHER_WAY.get(options.way, options.way)
    mirrored = where.mirrored() if isinstance(where, Where) else where
    return {"options": replace(options, way=way), "where": mirrored}


class MirroredArguments(JoinArguments):
    """A join seen from its right side, whose events are the left ones there.

    Its first side is called right, in messages and in its output, and so are its arguments.
    """

    prefixes: ClassVar[tuple[str, str]] = (SIDES[1], SIDES[0])

    @property
    def is_mirrored(self) -> bool:
        """As in `PairArguments`."""
        return True

    @property
    def from_left(self) -> JoinArguments:
        """The same pairs from left to right, whichever of them are chosen."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        turned = _turned(self.options, self.where) | self._without_column
        if self.row.is_aggregated:
            turned |= {"emit": "counts", "aggregates": None, "weights": None, "left_columns": ()}
        return JoinArguments(**given | turned | {"how": "left"})

    @property
    def is_answer(self) -> bool:
        """Whether it is the whole answer, and not a part of one."""
        return self.row.may_be_of_right

    @property
    def output_keys(self) -> list[str]:
        """As in `PairArguments`: as they were asked for."""
        return super().keys

    @property
    def outputs_either_key(self) -> bool:
        """As in `PairArguments`."""
        return True

    @property
    def times(self) -> tuple[TimestampNames, TimestampNames]:
        """As in `JoinArguments`, right ones first, and so is all that follows."""
        return self._times[::-1]

    @property
    def keys(self) -> list[str]:  # noqa: D102
        return super().right_keys

    @property
    def right_keys(self) -> list[str]:  # noqa: D102
        return super().keys

    @property
    def _longest(self) -> tuple[Duration | None, Duration | None]:
        left, right = super()._longest
        return right, left

    def _as_given(self, times: Sequence[TimestampColumns]) -> Sequence[TimestampColumns]:
        return times[::-1]

    def _window(self, tick: Tick, times: Sequence[TimestampColumns]) -> Window:
        return super()._window(tick, self._as_given(times)).mirrored()

    def _warn_of_early(self, window: Window, times: Sequence[TimestampColumns], tick: Tick) -> None:
        """Nothing: the user has not asked for these events alone."""
