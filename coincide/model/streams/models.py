"""Streams of intervals, of templates, and of both: the papers' regions, by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol, get_args

import numpy as np

from coincide.model.bands import OUTER_HI, OUTER_LO, band_table, guard
from coincide.model.classes import MOST_CLASSES, ShapeClasses, length_classes
from coincide.model.condition import Window
from coincide.model.errors import ConditionError, argument
from coincide.model.options import MAX_CLASSES, check_choice
from coincide.model.sides import LEFT, RIGHT
from coincide.model.streams.intake import (
    Intake,
    IntervalIntake,
    LengthNumbers,
    MixedIntake,
    TemplateIntake,
)
from coincide.model.streams.options import FARTHEST, Emit, SideLimits, clamped, count_of
from coincide.model.streams.state import Regions
from coincide.model.templates.template import TemplateTable
from coincide.model.timestamps.histograms import HistogramPairs
from coincide.model.timestamps.intervals import IntervalPairs
from coincide.model.timestamps.mixed import Around, around_keys, support_bands

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
            None where it tells nothing: Lee & Lee (2010), Corollary 2, speaks of intervals, of which
            the shape is the length, and of one end of the window.
        """


@dataclass(frozen=True)
class StreamOptions:
    """Everything that a correlator needs to know before the first event."""

    model: StreamModel  # Of the timestamps, with the condition on them
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


@dataclass(frozen=True)
class IntervalStreams(IntervalPairs):
    """Streams of intervals: `coincide.model.streams.models.StreamModel`."""

    shape_is_length: ClassVar[bool] = True

    def intake(self, limits: tuple[SideLimits, SideLimits]) -> IntervalIntake:
        """As `StreamModel`, like all that follow."""
        lengths = [(side.shortest, side.longest) for side in limits]
        return IntervalIntake(np.array(lengths, np.int64), self.rule)

    def base_bins(self, side: int, limits: SideLimits) -> ShapeClasses:  # noqa: D102
        return ShapeClasses.even(limits.shortest, limits.longest, _MOST_BINS)

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
    """Streams of templates on both sides: `coincide.model.streams.models.StreamModel`."""

    shape_is_length: ClassVar[bool] = False

    def intake(self, limits: tuple[SideLimits, SideLimits]) -> TemplateIntake:
        """As `StreamModel`, like all that follow."""
        return TemplateIntake((self.left, self.right), self.rule)

    def base_bins(self, side: int, limits: SideLimits) -> ShapeClasses:
        """A bin for each template: the partition of Theorem 3 is of the base event's template."""
        return ShapeClasses.even(limits.shortest, limits.longest, MOST_CLASSES)


@dataclass(frozen=True, eq=False)
class MixedStreams:
    """Intervals on one side, templates on the other: `coincide.model.streams.models.StreamModel`.

    An interval is a template of one bucket, and its shape the number of its length, in the order in
    which lengths come: its `Intake` has the table. So regions are bounded over all declared lengths: from
    outside by what supports can reach, from inside by where the longest are within the window for sure.
    """

    window: Window  # The timing condition, ticks
    interval_side: int
    lengths: tuple[int, int]  # Shortest and longest interval that is declared, ticks
    table: TemplateTable  # Of the other side
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
