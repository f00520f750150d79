"""Accidental pairs: by which time shifts they are asked for, the joins that count them, and the counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from coincide.engine.events.sides import Side
from coincide.engine.events.ticks import length_words
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.pair_arguments import (
    PairArguments,
)
from coincide.engine.join.spec import AnySpec
from coincide.engine.reports.lines import Line, Told
from coincide.engine.reports.warnings import warn
from coincide.model.errors import ConditionError, ShortShiftsWarning, argument, brief, said_of
from coincide.model.options import MatchingWord
from coincide.model.units import TIME_LIMIT, UNBOUNDED, Duration, Tick, plain, size_of

Shifts = Collection[Duration]
_EXAMPLE = "('30s', '-30s', '47s')"


@dataclass(frozen=True)
class AccidentalPairs(Told):
    """Pairs that qualify when the times of the right side are moved, where no pair is a true one.

    Parameters
    ----------
    shifts : tuple of int and str
        As they were given.
    counts : tuple of int
        Qualifying pairs by each shift.
    """

    shifts: tuple[Duration, ...]
    counts: tuple[int, ...]

    @property
    def expected(self) -> float:
        """Accidental pairs to expect in the answer: the mean of the counts."""
        return fmean(self.counts)

    @property
    def spread(self) -> float | None:
        """Standard deviation of the counts (n - 1); None of one shift, which does not tell it."""
        return stdev(self.counts) if len(self.counts) > 1 else None

    @property
    def lines(self) -> list[Line]:
        """The numbers, for people."""
        return [("accidental", self._words)]

    @property
    def _words(self) -> str:
        spread = "" if self.spread is None else f" ± {self.spread:,.1f}"
        shifts = ", ".join(f"{s}: {n:,}" for s, n in zip(self.shifts, self.counts, strict=True))
        return f"{self.expected:,.1f}{spread} expected by chance; by shift {shifts}"

    def as_dict(self) -> dict[str, object]:
        """Plain values, for JSON."""
        spread = None if self.spread is None else round(self.spread, 3)
        return {
            "accidental_pairs": round(self.expected, 3),
            "accidental_spread": spread,
            "accidental_by_shift": dict(zip(map(str, self.shifts), self.counts, strict=True)),
        }


def check_shifts(given: object) -> None:
    """Refuse what are no shifts."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Collection):
        raise ConditionError(
            f"{argument('shifts')} must be a sequence of durations, such as {_EXAMPLE} (found"
            f" {brief(given)})."
        )
    if len(given) == 0:
        raise ConditionError(f"{argument('shifts')} is empty. Give some, such as {_EXAMPLE}.")
    with said_of("shifts"):
        for each in given:
            size_of(each)


@dataclass(frozen=True)
class AccidentalArguments:
    """The arguments of `coincide.accidental_pairs`: a join, and by what its right times are moved."""

    join: PairArguments
    shifts: Shifts

    def __post_init__(self) -> None:
        check_shifts(self.shifts)
        join = self.join
        if isinstance(join, JoinArguments) and join.is_of_spans:
            raise ConditionError(
                f"{argument('shifts')} moves uncertain instants, but {join.condition} relates spans."
                f" Give {argument('within')} for one time of each span, such as its start."
            )
        if isinstance(join, JoinArguments) and join.has_open_window:
            raise _unbounded()
        object.__setattr__(self, "join", join.counting)

    def plan(self, spec: AnySpec, tick: Tick) -> ShiftPlan:
        """The joins that count, of the join of a spec."""
        return ShiftPlan.of(self.shifts, spec, tick)


def _unbounded() -> ConditionError:
    return ConditionError(
        f"{argument('shifts')} move times, but the condition does not bound times on both sides."
        " Give its window both ends."
    )


@dataclass(frozen=True)
class ShiftPlan:
    """The joins that count accidental pairs."""

    given: tuple[int | str, ...]
    specs: tuple[AnySpec, ...]
    tick: Tick

    @classmethod
    def of(cls, given: Shifts, spec: AnySpec, tick: Tick) -> ShiftPlan:
        """The joins for given shifts of the join of a spec."""
        if spec.is_one_stream and spec.choice.one_to_one is not None:
            raise ConditionError(
                f"{argument('shifts')} move one side against the other, but {MatchingWord.option}"
                f" takes the events of one stream as either. Remove {MatchingWord.option}, or give the"
                f" events a second time as {argument('right')}."
            )
        given = tuple(given)
        ticks = [tick.count(each) for each in given]
        if not _is_bounded(spec):
            raise _unbounded()
        for i, (words, size) in enumerate(zip(given, ticks, strict=True)):
            _check_shift(words, size, spec, tick)
            if size in ticks[:i]:
                first = given[ticks.index(size)]
                raise ConditionError(
                    f"{argument('shifts')} has {words!r} twice (the first is {first!r}). Remove"
                    " one."
                )
        return cls(tuple(map(plain, given)), tuple(spec.moved(size) for size in ticks), tick)

    def counted(self, counts: Sequence[int]) -> AccidentalPairs:
        """What the joins have counted, one after the other."""
        return AccidentalPairs(self.given, tuple(counts))

    def check_times(self, first: int, last: int) -> None:
        """Refuse shifts that move right times, from these first to these last ones, out of their range."""
        for words in self.given:
            size = self.tick.count(words)
            if max(abs(first + size), abs(last + size)) >= TIME_LIMIT:
                raise ConditionError(
                    f"the shift {words!r} moves times beyond 2^61 ticks. Use a shorter one, or a"
                    " coarser tick."
                )

    def warn_of_short(self, spec: AnySpec, longest: tuple[int, int]) -> None:
        """Warn of shifts by which pairs of the answer may still qualify."""
        # A confidence above 1/2 leaves no such shifts: the probabilities of two windows that have
        # nothing in common add up to no more than 1.
        if spec.widest.confidence > 0.5 or not any(longest):
            return
        enough = _least_shift(spec) + sum(longest) * (2 if spec.is_one_stream else 1)
        sizes = [abs(self.tick.count(each)) for each in self.given]
        short = [str(g) for g, size in zip(self.given, sizes, strict=True) if size <= enough]
        if short:
            warn(
                f"{argument('shifts')} {', '.join(short)} are not longer than the window and the"
                f" longest timestamps together, {length_words(enough, self.tick)}. At this"
                " confidence some pairs of the answer may count as accidental. Use longer shifts.",
                ShortShiftsWarning,
            )


def _is_bounded(spec: AnySpec) -> bool:
    window = spec.widest
    return max(-window.lo, window.hi) < UNBOUNDED


def _least_shift(spec: AnySpec) -> int:
    """By a shift that is not longer, a pair of the answer may qualify with all its probability."""
    window = spec.widest
    if not spec.is_one_stream:
        return window.width
    # Nor must a pair of the answer in its other order.
    return max(window.width, 2 * max(window.hi, -window.lo))


def _check_shift(words: Duration, size: int, spec: AnySpec, tick: Tick) -> None:
    if size == 0:
        raise ConditionError(
            f"the shift {words!r} moves nothing, so it would count the pairs of the answer."
            " Remove it."
        )
    least, window = _least_shift(spec), spec.widest
    if abs(size) <= least:
        limit = "twice the farther end of the window," if least > window.width else "the window,"
        raise ConditionError(
            f"the shift {words!r} is not longer than {limit} {length_words(least, tick)}, so"
            " pairs of the answer would count as accidental. Use a longer one."
        )
    if abs(size) + max(-window.lo, window.hi) >= TIME_LIMIT:
        raise ConditionError(
            f"the shift {words!r} moves the window beyond 2^61 ticks. Use a shorter one, or a"
            " coarser tick."
        )


def check_shifted(shifts: ShiftPlan, spec: AnySpec, left: Side, right: Side) -> None:
    """Refuse shifts that move times out of their range, and warn of short ones."""
    lengths = []
    for side in (left, right):
        rows = slice(None) if side.matchable is None else side.matchable
        lengths.append(side.lengths[rows])
    times = right.max_time[rows]
    if times.size:
        shifts.check_times(int((times - lengths[1]).min()), int(times.max()))
    shifts.warn_of_short(spec, (int(lengths[0].max(initial=0)), int(lengths[1].max(initial=0))))
