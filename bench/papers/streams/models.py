"""What is declared of two streams, of intervals, of templates or of both, and the papers' regions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from operator import index
from typing import ClassVar, Literal, NamedTuple, Protocol, get_args

import numpy as np

from bench.papers.streams.intake import (
    Intake,
    IntervalIntake,
    LengthNumbers,
    MixedIntake,
    TemplateIntake,
    without_offsets,
)
from bench.papers.streams.state import Regions
from coincide.model.bands import OUTER_HI, OUTER_LO, band_table, guard, mirrored
from coincide.model.classes import MOST_CLASSES, ShapeClasses, length_classes
from coincide.model.condition import TimingCondition, Window, Within, within
from coincide.model.errors import ConditionError, argument
from coincide.model.options import MAX_CLASSES, check_choice
from coincide.model.sides import LEFT, RIGHT
from coincide.model.templates.template import Templates, TemplateTable, class_bands
from coincide.model.timestamps.histograms import HistogramPairs, template_ends
from coincide.model.timestamps.intervals import IntervalPairs
from coincide.model.timestamps.mixed import Around, around_keys, support_bands
from coincide.model.units import TIME_LIMIT, Tick

Emit = Literal["pairs", "counts"]


@dataclass(frozen=True)
class SideLimits:
    """What is promised about the events of one side, in ticks."""

    delay: int  # The papers' largest delay: an event arrives no later than this after its max_time
    shortest: int  # Least and largest shape of the timestamps: of intervals, the papers' rho and pi
    longest: int  # Least and largest shape of the timestamps: of intervals, the papers' rho and pi


def side_limits(side: str, delay: object, shortest: object, longest: object) -> SideLimits:
    """The limits of one side."""
    delay, shortest, longest = (
        _ticks(f"{side}_{name}", value)
        for name, value in (("delay", delay), ("shortest", shortest), ("longest", longest))
    )
    if shortest > longest:
        raise ConditionError(
            f"{side}_shortest ({shortest}) is above {side}_longest ({longest}). Swap the two."
        )
    return SideLimits(delay, shortest, longest)


def window_in_ticks(condition: Window | TimingCondition) -> Window:
    """The condition as a checked window."""
    if isinstance(condition, TimingCondition):
        _refuse_text(condition.predicate)
        return condition.window(Tick())
    if not isinstance(condition, Window):
        raise ConditionError(
            f"the condition must be a TimingCondition or a Window (found {condition!r}). Wrap a"
            " predicate as TimingCondition(predicate, confidence=...)."
        )
    _refuse_text(condition)
    lo, hi = Tick().count(condition.lo), Tick().count(condition.hi)
    if lo > hi:
        raise ConditionError(f"the window is empty: lo ({lo}) is above hi ({hi}). Swap the two.")
    return Window(lo, hi, TimingCondition(within(0, 0), condition.confidence).confidence)


def _refuse_text(ends: Window | Within) -> None:
    for end in (ends.lo, ends.hi):
        if isinstance(end, str):
            raise ConditionError(
                f"the duration {end!r} has a unit, but a stream's times are bare ticks. Give it"
                " as an int in ticks."
            )


def count_of(name: str, value: object) -> int:
    """A whole number of at least 1."""
    number = _whole(name, value)
    if number < 1:
        raise ConditionError(f"{argument(name)} must be at least 1 (found {number}).")
    return number


def _ticks(name: str, value: object) -> int:
    number = _whole(name, value)
    # Times lie within 2^61 of zero, so they can be twice as far apart.
    if not 0 <= number < 2 * TIME_LIMIT:
        raise ConditionError(
            f"{argument(name)} must be 0 or more and below 2^62 ticks (found {number})."
        )
    return number


def _whole(name: str, value: object) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        hint = (
            ". The times of a stream are bare ticks. Give an int" if isinstance(value, str) else ""
        )
        raise ConditionError(f"{argument(name)} must be an int (found {value!r}){hint}.") from None


FARTHEST = 2**63 - 1


def clamped(bound: int) -> int:
    """A bound as an int64: differences of keys are smaller than any that it is cut to."""
    return max(-FARTHEST, min(FARTHEST - 1, bound))


DEFAULT_CLASSES = 6
_MOST_BINS = 64


class StreamModel(Protocol):
    """The timestamps of two streams and the condition on them: every shape within its limits may come.

    What it shares with a `coincide.model.timestamps.protocol.PairModel` means the same there.
    """

    @property
    def shape_is_length(self) -> bool:
        """Whether shapes are lengths of intervals, uniform on both sides, as a look-up table needs."""

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """Bounds on the key of a target less that of a base event, by their classes."""

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:
        """Least and largest max_time of a target less that of a base event, if a pair can qualify."""

    def top_leans(self, side: int, classes: ShapeClasses) -> np.ndarray:
        """Largest lean of the shapes of each class, half ticks."""

    def intake(self, limits: tuple[SideLimits, SideLimits]) -> Intake:
        """What checks the events of one correlator and makes shapes of them."""

    def base_bins(self, side: int, limits: SideLimits) -> ShapeClasses:
        """Narrow ranges of all shapes of a side, to bound the `max_time_bands` of each."""

    def max_time_bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """As `bands`, on the doubled max_time of a target less the key of a base event.

        Parameters
        ----------
        base_side : int
        own : ShapeClasses
            K1 of base events.
        other : ShapeClasses
            One, of all targets.

        Returns
        -------
        int64 array, shape (K1, 4)
        """

    def stream_classes(
        self, side: int, seen: np.ndarray, most: int | None, limits: tuple[int, int]
    ) -> ShapeClasses:
        """Classes of a side, good for the shapes seen, which hold every shape within the limits.

        Parameters
        ----------
        side : int
        seen : int64 array, shape (n,)
            Shapes of the events so far; n > 0.
        most : int or None
            Upper limit on classes of shapes that were seen; None: a default.
        limits : (int, int)
            Least and largest shape of the side.
        """

    def certainty(self, left: ShapeClasses, right: ShapeClasses) -> float | None:
        """The probability from which on a look-up table may tell that a pair qualifies.

        Parameters
        ----------
        left, right : ShapeClasses
            One each, of all events.

        Returns
        -------
        float or None
            None where it tells nothing: Lee & Lee (2010), Corollary 2, speaks of intervals, where
            the shape is the length, and of one end of the window.
        """


@dataclass(frozen=True)
class StreamOptions:
    """Everything that a correlator needs to know before the first event."""

    model: StreamModel  # The timestamps', with the condition on them
    limits: tuple[SideLimits, SideLimits]  # Left and right
    block: int | None  # Re-evaluate once a side has this many unprocessed events
    every: int | None
    emit: Emit
    classes: int | None  # Length classes a side; None: a default
    response: bool  # Whether to measure response times

    def __post_init__(self) -> None:
        check_choice("emit", self.emit, get_args(Emit))
        for name in ("block", "every", "classes"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, count_of(name, value))
        if self.classes is not None and self.classes > MAX_CLASSES:
            raise ConditionError(
                f"{argument('classes')} must be at most {MAX_CLASSES} (found {self.classes})."
            )
        if self.block is None and self.every is None:
            raise ConditionError(
                "the re-evaluation condition is missing. Give block (events), every (ticks), or"
                " both."
            )

    @property
    def gives_pairs(self) -> bool:
        """Whether pairs are in the output, not their numbers alone."""
        return self.emit == "pairs"


@dataclass(frozen=True)
class IntervalStreams(IntervalPairs):
    """Streams of intervals: `bench.papers.streams.models.StreamModel`."""

    shape_is_length: ClassVar[bool] = True

    def intake(self, limits: tuple[SideLimits, SideLimits]) -> IntervalIntake:
        """As `StreamModel`, like all that follow."""
        lengths = [(side.shortest, side.longest) for side in limits]
        return IntervalIntake(np.array(lengths, np.int64), self.rule)

    def base_bins(self, side: int, limits: SideLimits) -> ShapeClasses:  # noqa: D102
        return ShapeClasses.even(limits.shortest, limits.longest, _MOST_BINS)

    def top_leans(self, side: int, classes: ShapeClasses) -> np.ndarray:  # noqa: D102
        return classes.highest

    def max_time_bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """As `coincide.model.bands`, for ranges of lengths."""
        window = self._window_from(base_side)
        shortest, longest = int(other.lowest[0]), int(other.highest[0])
        at_shortest = _moved_bounds(own, shortest, shortest, window)
        at_longest = _moved_bounds(own, longest, longest, window)
        between = _moved_bounds(own, shortest, longest, window)
        rows = []
        for row, high in enumerate(own.highest.tolist()):
            ends = [at_shortest[row], at_longest[row]]
            if window.width < high + longest:
                # The ends need not be monotone in the target's length: bounds over all lengths at once.
                ends.append(between[row])
            outer_lo, inner_lo, inner_hi, outer_hi = zip(*ends, strict=True)
            rows.append(_tidy(min(outer_lo), max(inner_lo), min(inner_hi), max(outer_hi)))
        return np.array(rows, np.int64)

    def stream_classes(  # noqa: D102
        self, side: int, seen: np.ndarray, most: int | None, limits: tuple[int, int]
    ) -> ShapeClasses:
        return covering_classes(seen, most or DEFAULT_CLASSES, *limits)

    def certainty(self, left: ShapeClasses, right: ShapeClasses) -> float | None:  # noqa: D102
        longest = int(left.highest[0]), int(right.highest[0])
        if self.window.width < sum(longest):
            return None
        # From here on no rounding can lift a larger exact probability below the threshold.
        return min(self.rule.threshold + guard(*longest), 1.0)


def covering_classes(lengths: np.ndarray, most: int, shortest: int, longest: int) -> ShapeClasses:
    """Classes that are narrow where the given lengths are many, and hold every declared length."""
    tight = length_classes(lengths, most)
    tops = set(tight.highest.tolist())
    if (tight.lowest == tight.highest).all():
        tops |= {low - 1 for low in tight.lowest.tolist() if low > shortest}
    else:
        # What lies beyond the longest length seen is rare: it joins the last class.
        tops.discard(int(tight.highest[-1]))
    ends = sorted(tops | {longest})
    lowest = [shortest, *(end + 1 for end in ends[:-1])]
    return ShapeClasses(
        np.array(lowest, np.int64), np.array(ends, np.int64), np.full(len(ends), 1 / len(ends))
    )


def _moved_bounds(
    bins: ShapeClasses, shortest: int, longest: int, window: Window
) -> list[tuple[int, int, int, int]]:
    """Bounds from one band per bin: those of the target's midpoint, moved to its max_time."""
    table = band_table(bins, ShapeClasses.one(shortest, longest), window)[:, 0]
    return [
        (
            outer_lo + shortest,
            inner_lo + longest,
            inner_hi + shortest if inner_lo <= inner_hi else inner_lo + longest - 1,
            outer_hi + longest,
        )
        for outer_lo, inner_lo, inner_hi, outer_hi in table.tolist()
    ]


def _tidy(outer_lo: int, inner_lo: int, inner_hi: int, outer_hi: int) -> list[int]:
    """Four ordered bounds; an empty inner range goes to the outer low end."""
    if inner_lo > inner_hi:
        inner_lo, inner_hi = outer_lo, outer_lo - 1
    return [clamped(end) for end in (outer_lo, inner_lo, inner_hi, outer_hi)]


@dataclass(frozen=True)
class HistogramStreams(HistogramPairs):
    """Streams of templates on both sides: `bench.papers.streams.models.StreamModel`."""

    shape_is_length: ClassVar[bool] = False

    def intake(self, limits: tuple[SideLimits, SideLimits]) -> TemplateIntake:
        """As `StreamModel`, like all that follow."""
        return TemplateIntake((self.left, self.right), self.rule)

    def base_bins(self, side: int, limits: SideLimits) -> ShapeClasses:
        """A bin for each template: the partition of Theorem 3 belongs to the base event's template."""
        return ShapeClasses.even(limits.shortest, limits.longest, MOST_CLASSES)

    def top_leans(self, side: int, classes: ShapeClasses) -> np.ndarray:  # noqa: D102
        return classes.largest(self._table(side).leans)

    def max_time_bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:
        """Theorem 3, for any window."""
        leans = [self.left.leans, self.right.leans]
        leans[1 - base_side] = np.zeros_like(leans[1 - base_side])
        left, right = (own, other) if base_side == LEFT else (other, own)
        table = class_bands(self.table, left, right, *leans)
        return (table if base_side == LEFT else mirrored(table))[:, 0]

    def stream_classes(  # noqa: D102
        self, side: int, seen: np.ndarray, most: int | None, limits: tuple[int, int]
    ) -> ShapeClasses:
        ends = template_ends(seen, self._table(side), most or DEFAULT_CLASSES)
        ends = np.append(ends[(ends >= limits[0]) & (ends < limits[1])], limits[1])
        lowest = np.concatenate([[limits[0]], ends[:-1] + 1])
        return ShapeClasses(lowest, ends, np.full(ends.size, 1.0 / ends.size))

    def certainty(self, left: ShapeClasses, right: ShapeClasses) -> float | None:  # noqa: D102
        return None

    def _table(self, side: int) -> TemplateTable:
        return self.left if side == LEFT else self.right


@dataclass(frozen=True, eq=False)
class MixedStreams:
    """Intervals on one side, templates on the other: `bench.papers.streams.models.StreamModel`.

    An interval is a template of one bucket, and its shape the number of its length, in the order in
    which lengths come: its `Intake` has the table. So regions are bounded over all declared lengths: from
    outside by what supports can reach, from inside by where the longest are within the window for sure.
    """

    window: Window  # The timing condition, ticks
    interval_side: int
    lengths: tuple[int, int]  # Shortest and longest interval that is declared, ticks
    table: TemplateTable  # The other side's
    most_lengths: int  # Different lengths that may come
    shape_is_length: ClassVar[bool] = False

    def intake(self, limits: tuple[SideLimits, SideLimits]) -> MixedIntake:
        """As `StreamModel`, like all that follow."""
        numbers = LengthNumbers(self.window, self.interval_side, self.table, self.most_lengths)
        intervals = IntervalIntake(np.array([self.lengths] * 2, np.int64))
        return MixedIntake(
            self.interval_side, intervals, TemplateIntake((self.table, self.table)), numbers
        )

    def base_bins(self, side: int, limits: SideLimits) -> ShapeClasses:  # noqa: D102
        most = 1 if side == self.interval_side else MOST_CLASSES
        return ShapeClasses.even(limits.shortest, limits.longest, most)

    def stream_classes(  # noqa: D102
        self, side: int, seen: np.ndarray, most: int | None, limits: tuple[int, int]
    ) -> ShapeClasses:
        if side == self.interval_side:
            # Lengths come in any order, so neighbours in number need not be near.
            return ShapeClasses.one(*limits)
        return covering_classes(seen, most or DEFAULT_CLASSES, *limits)

    def certainty(self, left: ShapeClasses, right: ShapeClasses) -> float | None:  # noqa: D102
        return None

    def bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:  # noqa: D102
        target = self._around_keys(1 - base_side, other)
        return support_bands(
            self._window_from(base_side), self._around_keys(base_side, own), target
        )

    def max_time_bands(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> np.ndarray:  # noqa: D102
        # The place of a target is its doubled max_time: nothing is above it.
        longest = self._longest(1 - base_side, other).astype(object)
        return support_bands(
            self._window_from(base_side),
            self._around_keys(base_side, own),
            (2 * longest, 0 * longest),
        )[:, 0]

    def reach(self, base_side: int, own: ShapeClasses, other: ShapeClasses) -> tuple[int, int]:  # noqa: D102
        window = self._window_from(base_side)
        before, after = self._longest(base_side, own), self._longest(1 - base_side, other)
        return window.lo - int(before.max()), window.hi + int(after.max())

    def top_leans(self, side: int, classes: ShapeClasses) -> np.ndarray:  # noqa: D102
        return self._around_keys(side, classes)[1].astype(np.int64)

    def _around_keys(self, side: int, classes: ShapeClasses) -> Around:
        if side == self.interval_side:
            longest = self._longest(side, classes).astype(object)
            return longest, longest
        return around_keys(self.table, classes)

    def _longest(self, side: int, classes: ShapeClasses) -> np.ndarray:
        """The longest support of each class, ticks."""
        if side == self.interval_side:
            return np.full(classes.count, self.lengths[1], np.int64)
        return classes.largest(self.table.lengths)

    def _window_from(self, base_side: int) -> Window:
        """The window on T_target - T_base."""
        return self.window if base_side == LEFT else self.window.mirrored()


def one_class(limits: SideLimits) -> ShapeClasses:
    """All declared shapes."""
    return ShapeClasses.one(limits.shortest, limits.longest)


def max_time_regions(options: StreamOptions) -> Regions:
    """Regions on the max_time of targets, the papers' axis; keys are doubled max_times."""
    model, limits = options.model, options.limits
    bins = (model.base_bins(LEFT, limits[LEFT]), model.base_bins(RIGHT, limits[RIGHT]))
    wholes = (one_class(limits[LEFT]), one_class(limits[RIGHT]))
    bands = np.zeros((2, max(each.count for each in bins), 1, 4), np.int64)
    keep = np.empty((2, 1), np.int64)
    for base in (LEFT, RIGHT):
        bounds = model.max_time_bands(base, bins[base], wholes[1 - base])
        bands[base, : len(bounds), 0] = bounds
        found = _keep(bounds, model.top_leans(base, bins[base]))
        keep[base, 0] = max(found, keep_while_possible(options, base))
    return Regions(bands, tops_of(bins), tops_of(wholes), keep)


def key_regions(options: StreamOptions, classes: tuple[ShapeClasses, ShapeClasses]) -> Regions:
    """Regions on the keys of targets, of intervals doubled midpoints, per class."""
    model = options.model
    most = max(each.count for each in classes)
    bands = np.zeros((2, most, most, 4), np.int64)
    keep = np.full((2, most), -FARTHEST, np.int64)
    for base in (LEFT, RIGHT):
        own, other = classes[base], classes[1 - base]
        table = model.bands(base, own, other)
        bands[base, : own.count, : other.count] = table
        possible, leans = keep_while_possible(options, base), model.top_leans(base, own)
        for k, lean in enumerate(model.top_leans(1 - base, other).tolist()):
            # A target's key lies its lean below its doubled max_time.
            keep[base, k] = max(_keep(table[:, k], leans), clamped(possible - lean))
    tops = tops_of(classes)
    return Regions(bands, tops, tops, keep)


def keep_while_possible(options: StreamOptions, base: int) -> int:
    """`Regions.keep` on the max_time axis where nothing but zero probability rules a target out."""
    own, other = (one_class(options.limits[side]) for side in (base, 1 - base))
    return clamped(2 * options.model.reach(base, own, other)[0])


def tops_of(classes: tuple[ShapeClasses, ...]) -> np.ndarray:
    """Largest shapes by side and class; where a side has fewer classes, no shape is too large."""
    tops = np.full((2, max(each.count for each in classes)), FARTHEST, np.int64)
    for side, each in enumerate(classes):
        tops[side, : each.count] = each.highest
    return tops


def _keep(bands: np.ndarray, leans: np.ndarray) -> int:
    """Smallest outer low end, from twice the max_time of a base event of each class that has matches."""
    # Theorem 4 of Mok, Woo & Lee (2006), with the satisfaction times of templates in `bands`.
    possible = bands[:, OUTER_LO] <= bands[:, OUTER_HI]
    ends = zip(bands[possible, OUTER_LO].tolist(), leans[possible].tolist(), strict=True)
    return clamped(min((low - lean for low, lean in ends), default=FARTHEST))


MOST_LENGTHS = 4096
"""Different lengths of intervals next to templates, unless something else is said."""


class Side(NamedTuple):
    """What is declared about one stream."""

    name: str
    delay: object  # As given; the last two of intervals only, longest None if not given
    shortest: object  # As given; the last two of intervals only, longest None if not given
    longest: object  # As given; the last two of intervals only, longest None if not given
    templates: object  # Templates, in ticks or a TemplateTable; None: the stream has intervals

    @property
    def table(self) -> TemplateTable | None:
        """The templates, checked."""
        if self.templates is None:
            return None
        if isinstance(self.templates, TemplateTable):
            # What is pushed are max_times: where they come from is no longer asked.
            return without_offsets(self.templates)
        if isinstance(self.templates, Templates):
            return without_offsets(_in_bare_ticks(self.name, self.templates))
        raise ConditionError(
            f"{self.name}_templates must be Templates or a TemplateTable (found"
            f" {type(self.templates).__name__})."
        )

    @property
    def limits(self) -> SideLimits:
        """Limits of the shapes: of numbers of templates, or of lengths."""
        if (table := self.table) is None:
            if self.longest is None:
                raise ConditionError(
                    f"the length of timestamps is missing. Give {self.name}_longest, the longest"
                    " interval of that stream in ticks. For histogram timestamps give"
                    f" {self.name}_templates."
                )
            return side_limits(self.name, self.delay, self.shortest, self.longest)
        if self.longest is not None or self.shortest != 0:
            raise ConditionError(
                f"{self.name}_longest and {self.name}_shortest apply to intervals, but"
                f" {self.name}_templates have known lengths. Remove them."
            )
        return side_limits(self.name, self.delay, 0, len(table) - 1)


def _in_bare_ticks(name: str, templates: Templates) -> TemplateTable:
    try:
        return templates.table(Tick())
    except ConditionError as error:
        if templates.unit is None and not any(
            isinstance(edge, str) for each in templates.given.values() for edge in each.edges
        ):
            raise
        raise ConditionError(
            f"the edges of {name}_templates have a unit, but the times of a stream are bare"
            f" ticks. Give the tick, for example {name}_templates=templates.table(Tick('us')). A"
            " fit has .templates."
        ) from error


def stream_options(
    condition: Window | TimingCondition,
    *,
    left_delay: int,
    right_delay: int,
    left_longest: int | None = None,
    right_longest: int | None = None,
    left_shortest: int = 0,
    right_shortest: int = 0,
    left_templates: Templates | TemplateTable | None = None,
    right_templates: Templates | TemplateTable | None = None,
    most_lengths: int = MOST_LENGTHS,
    block: int | None = 1000,
    every: int | None = None,
    emit: Emit = "pairs",
    classes: int | None = None,
    response: bool = False,
) -> StreamOptions:
    """The checked arguments of `bench.papers.streams.stream_correlator`."""
    window = window_in_ticks(condition)
    left = Side("left", left_delay, left_shortest, left_longest, left_templates)
    right = Side("right", right_delay, right_shortest, right_longest, right_templates)
    model, limits = _declared(window, left, right, count_of("most_lengths", most_lengths))
    return StreamOptions(model, limits, block, every, emit, classes, response)


def _declared(
    window: Window, left: Side, right: Side, most: int
) -> tuple[StreamModel, tuple[SideLimits, SideLimits]]:
    """The model of two streams, and the limits of their shapes."""
    sides = left.limits, right.limits
    first, second = left.table, right.table
    if first is not None and second is not None:
        return HistogramStreams(window, first, second), sides
    if first is not None:
        return _mixed(window, RIGHT, first, sides, most)
    if second is not None:
        return _mixed(window, LEFT, second, sides, most)
    return IntervalStreams(window), sides


def _mixed(
    window: Window,
    interval_side: int,
    table: TemplateTable,
    sides: tuple[SideLimits, SideLimits],
    most: int,
) -> tuple[StreamModel, tuple[SideLimits, SideLimits]]:
    intervals, templates = sides[interval_side], sides[1 - interval_side]
    lengths = intervals.shortest, intervals.longest
    numbered = replace(intervals, shortest=0, longest=most - 1)
    limits = (numbered, templates) if interval_side == LEFT else (templates, numbered)
    return MixedStreams(window, interval_side, lengths, table, most), limits
