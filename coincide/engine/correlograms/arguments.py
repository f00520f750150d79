"""The arguments of a histogram of delays, checked once; and its edges in ticks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from coincide.engine.accidental.pairs import ShiftPlan, Shifts, check_shifts
from coincide.engine.events.keys import Keys
from coincide.engine.events.spans import check_no_spans
from coincide.engine.events.ticks import length_words
from coincide.engine.events.timestamp_names import GivenTimes
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.delta import in_unit
from coincide.engine.join.pair_arguments import GivenWindow, are_exact, window_of
from coincide.engine.join.spec import AnySpec
from coincide.model.condition import TimingCondition, within
from coincide.model.errors import ConditionError, argument, brief, said_of, several
from coincide.model.options import CorrelateOptions, check_count, check_no_most, check_one_device
from coincide.model.units import Duration, Tick, plain, size_of

RATES: Literal["rates"] = "rates"
BINS = 100
GivenChance = Literal["rates"] | Shifts | None
ANY = 1e-9
"""A confidence: no pair is left out for want of it."""
_EXAMPLE = "('-500ms', '-100ms', '0s')"


@dataclass(frozen=True)
class HistogramArguments:
    """The arguments of `coincide.delay_histogram`: the sides of a join, buckets, and chance."""

    join: JoinArguments
    edges: tuple[int | str, ...] | None
    bins: int
    chance: Literal["rates"] | tuple[Duration, ...] | None

    @classmethod
    def of(
        cls,
        edges: Sequence[Duration] | None,
        window: GivenWindow | None,
        bins: int,
        chance: GivenChance,
        *,
        left_time: GivenTimes,
        right_time: GivenTimes,
        by: Keys,
        options: CorrelateOptions,
        is_one_stream: bool,
    ) -> HistogramArguments:
        """The arguments as they were given."""
        check_no_spans(
            "delay_histogram", "Name one column of each side, such as the start.",
            window, left_time, right_time,
        )  # fmt: skip
        check_one_of(edges, window)
        check_count("bins", bins)
        given = None if edges is None else _checked_edges(edges)
        if given is not None:
            if bins != BINS:
                raise ConditionError(
                    f"{argument('bins')} belongs to {argument('within')}, and {argument('edges')}"
                    f" say all buckets (found {bins:,}). Remove {argument('bins')}."
                )
            predicate = within(given[0], given[-1])
        else:
            assert window is not None
            with said_of("within"):
                predicate = window_of(window)
        if predicate.is_open:
            raise ConditionError(
                f"{argument('within')} has two ends here (found {predicate}). Give both, such as"
                f" {argument('within', ('-1h', '0s'))}."
            )
        check_one_device(options, "a histogram is counted by the CPU")
        join = JoinArguments(
            TimingCondition(predicate, ANY), left_time=left_time, right_time=right_time, by=by,
            left_columns=(), right_columns=(), probability=True,  # some column of a pair
            options=options, is_one_stream=is_one_stream,
        )  # fmt: skip
        check_no_most(options, "a histogram counts them")
        return cls(join, given, bins, _checked_chance(chance))

    def but(self, join: JoinArguments) -> HistogramArguments:
        """The same of a join once its columns are known."""
        return replace(self, join=join)

    @property
    def is_uncertain(self) -> bool:
        """Whether a side has times that are not exact."""
        return not are_exact((self.join.left_time, self.join.right_time))

    def bounds(self, tick: Tick) -> tuple[str, str]:
        """The columns of the edges of a bucket."""
        return in_unit("lower", tick), in_unit("upper", tick)

    def in_ticks(self, tick: Tick) -> list[int]:
        """The edges, ascending."""
        if self.edges is not None:
            with said_of("edges"):
                found = [tick.count(edge) for edge in self.edges]
                _check_order(found, self.edges)
            return found
        assert isinstance(self.join.condition, TimingCondition)
        with said_of("within"):
            window = self.join.condition.window(tick)
        if self.bins > window.width:
            raise ConditionError(
                f"{argument('within')} is {length_words(window.width, tick)} wide, so it has no"
                f" {several(self.bins, 'bucket')} of a tick or more (found"
                f" {argument('bins', self.bins)}). Give at most {max(window.width, 1):,}, or a"
                " wider window."
            )
        return [window.lo + window.width * k // self.bins for k in range(self.bins + 1)]

    def shifts(self, spec: AnySpec, tick: Tick) -> list[int]:
        """By what right times are moved, ticks; none where chance is not counted so."""
        if self.chance is None or isinstance(self.chance, str):
            return []
        with said_of("chance"):
            ShiftPlan.of(self.chance, spec, tick)
            return [tick.count(each) for each in self.chance]


def check_one_of(edges: object, window: object) -> None:
    """Refuse buckets that are given twice, or not at all."""
    if (edges is None) == (window is None):
        found = "neither" if edges is None else "both"
        raise ConditionError(
            f"a histogram has either {argument('edges')} or {argument('within')} with"
            f" {argument('bins')} (found {found}). Give one, such as"
            f" {argument('within', ('-1s', '1s'))}."
        )


def _checked_edges(given: object) -> tuple[int | str, ...]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Collection):
        raise ConditionError(
            f"{argument('edges')} must be a sequence of durations, such as {_EXAMPLE} (found"
            f" {brief(given)})."
        )
    with said_of("edges"):
        edges = tuple(plain(each) for each in given)
        if len(edges) < 2:
            raise ConditionError(
                f"a histogram has at least two edges (found {len(edges)}). Give more, such as"
                f" {_EXAMPLE}."
            )
        sizes = [size_of(each) for each in edges]
        if len({type(edge) for edge in edges if edge}) < 2:
            _check_order(sizes, edges)
    return edges


def _check_order(sizes: Sequence[Any], edges: Sequence[int | str]) -> None:
    for (size, edge), (next_size, next_edge) in pairwise(zip(sizes, edges, strict=True)):
        if size >= next_size:
            raise ConditionError(
                f"edges must ascend (found {edge!r} before {next_edge!r}). Sort them, and"
                " remove those that are there twice."
            )


def _checked_chance(given: object) -> Any:
    if given is None or (isinstance(given, str) and given == RATES):
        return given
    if isinstance(given, (str, bytes)) or not isinstance(given, Collection):
        raise ConditionError(
            f"{argument('chance')} must be {RATES!r}, or a sequence of shifts, such as"
            f" ('30s', '-30s') (found {brief(given)})."
        )
    with said_of("chance"):
        check_shifts(given)
    return tuple(given)
