"""Pairs that chance alone would make, counted by time shifts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from coincide.engine.events.sides import Side
from coincide.engine.events.ticks import length_words
from coincide.engine.join.spec import AnySpec
from coincide.engine.reports.join_report import AccidentalPairs
from coincide.engine.reports.warnings import warn
from coincide.model.errors import ConditionError, ShortShiftsWarning, argument, brief, said_of
from coincide.model.units import TIME_LIMIT, UNBOUNDED, Duration, Tick, plain, size_of

Shifts = Sequence[Duration] | None
_EXAMPLE = "('30s', '-30s', '47s')"


def check_shifts(given: object) -> None:
    """Refuse what are no shifts; None is none."""
    if given is None:
        return
    if isinstance(given, (str, bytes)) or not isinstance(given, Collection):
        raise ConditionError(
            f"{argument('shifts')} must be a sequence of durations, such as {_EXAMPLE} (found"
            f" {brief(given)})."
        )
    if len(given) == 0:
        raise ConditionError(
            f"{argument('shifts')} is empty. Give some, such as {_EXAMPLE}, or remove it."
        )
    with said_of("shifts"):
        for each in given:
            size_of(each)


def check_report(shifts: object, report: object) -> None:
    """Refuse shifts without a report."""
    if shifts is not None and report is None:
        raise ConditionError(
            f"{argument('shifts')} needs a report. Pass report=JoinReport() to receive the counts."
        )


@dataclass(frozen=True)
class ShiftPlan:
    """The joins that count accidental pairs."""

    given: tuple[int | str, ...]
    specs: tuple[AnySpec, ...]
    tick: Tick

    @classmethod
    def of(cls, given: Shifts, spec: AnySpec, tick: Tick) -> ShiftPlan | None:
        """The joins for given shifts of the join of a spec; None without shifts."""
        if given is None:
            return None
        if spec.is_one_stream and spec.matching is not None:
            raise ConditionError(
                f"{argument('shifts')} move one side against the other, but {argument('matching')}"
                f" takes the events of one stream as either. Remove {argument('shifts')}, or give the"
                f" events a second time as {argument('right')}."
            )
        given = tuple(given)
        ticks = [tick.count(each) for each in given]
        if not _is_bounded(spec):
            raise ConditionError(
                f"{argument('shifts')} move times, but the condition does not bound times on both"
                f" sides. Add Temporal(lo, hi), or remove {argument('shifts')}."
            )
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
        """What the joins have counted."""
        return AccidentalPairs(self.given, tuple(counts))

    def check_times(self, first: int, last: int) -> None:
        """Refuse shifts by which right times, of which these are the first and last, leave their range."""
        for words in self.given:
            size = self.tick.count(words)
            if max(abs(first + size), abs(last + size)) >= TIME_LIMIT:
                raise ConditionError(
                    f"the shift {words!r} moves times beyond 2^61 ticks. Use a shorter one, or a"
                    " coarser tick."
                )

    def warn_of_short(self, spec: AnySpec, longest: tuple[int, int]) -> None:
        """Warn of shifts by which pairs of the answer may still qualify."""
        # Of a confidence above 1/2 there are none: the probabilities of two windows that have
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
