"""Region bounds of the papers, tabulated by the length of the base event.

For one base event the papers' L_H, L_L, R_L, R_H bound the max_time of targets whose lengths lie
between rho and pi. Finding them takes a search; so it is done once, for some dozen narrow ranges of
the base event's length, whose bounds hold for every length in the range.
"""

from __future__ import annotations

import numpy as np

from coincide.bands import OUTER_LO, band_table
from coincide.condition import Window
from coincide.length_classes import LengthClasses
from coincide.sides import LEFT, RIGHT
from coincide.streams.options import SideLimits, StreamOptions
from coincide.streams.shared import Regions

_MOST_BINS = 64
_INT64 = 2**63 - 1


def mirrored(window: Window) -> Window:
    """The window seen from the right side."""
    return Window(-window.hi, -window.lo, window.confidence)


def windows_by_base(window: Window) -> tuple[Window, Window]:
    """The window on T_target - T_base, for base events on the left and on the right."""
    return window, mirrored(window)


def max_time_regions(options: StreamOptions) -> Regions:
    """Regions on the max_time of targets, the papers' axis; keys are doubled max_times."""
    limits = options.limits
    bins = (_even_bins(limits[LEFT]), _even_bins(limits[RIGHT]))
    all_lengths = tuple(LengthClasses.one(side.shortest, side.longest) for side in limits)
    bands = np.zeros((2, max(each.count for each in bins), 1, 4), np.int64)
    keep = np.empty((2, 1), np.int64)
    for base, window in zip((LEFT, RIGHT), windows_by_base(options.window), strict=True):
        bounds = _max_time_bounds(bins[base], limits[1 - base], window)
        bands[base, : len(bounds), 0] = bounds
        keep[base, 0] = max(_keep(bounds, bins[base]), keep_while_possible(window, limits[base]))
    return Regions(bands, _tops(bins), _tops(all_lengths), keep)


def midpoint_regions(
    options: StreamOptions, classes: tuple[LengthClasses, LengthClasses]
) -> Regions:
    """Regions on the midpoint of targets, per length class; keys are doubled midpoints.

    Parameters
    ----------
    options : StreamOptions
    classes : (LengthClasses, LengthClasses)
        Of the left and of the right side.
    """
    most = max(each.count for each in classes)
    bands = np.zeros((2, most, most, 4), np.int64)
    keep = np.full((2, most), -_INT64, np.int64)
    for base, window in zip((LEFT, RIGHT), windows_by_base(options.window), strict=True):
        own, other = classes[base], classes[1 - base]
        table = band_table(own, other, window)
        bands[base, : own.count, : other.count] = table
        possible = keep_while_possible(window, options.limits[base])
        for k, top in enumerate(other.highest.tolist()):
            # On the midpoint axis a target lies its own length below its doubled max_time.
            keep[base, k] = max(_keep(table[:, k], own), _clamped(possible - top))
    tops = _tops(classes)
    return Regions(bands, tops, tops, keep)


def impossible_regions(options: StreamOptions) -> Regions:
    """No regions: a target is obsolete only when no base event to come can reach it at all."""
    all_lengths = tuple(LengthClasses.one(side.shortest, side.longest) for side in options.limits)
    keep = [
        [keep_while_possible(window, limits)]
        for window, limits in zip(windows_by_base(options.window), options.limits, strict=True)
    ]
    nothing, tops = np.zeros((2, 1, 1, 4), np.int64), _tops(all_lengths)
    return Regions(nothing, tops, tops, np.array(keep, np.int64))


def _tops(classes: tuple[LengthClasses, ...]) -> np.ndarray:
    """Longest lengths by side and class; where a side has fewer classes, no length is too long."""
    tops = np.full((2, max(each.count for each in classes)), _INT64, np.int64)
    for side, each in enumerate(classes):
        tops[side, : each.count] = each.highest
    return tops


def keep_while_possible(window: Window, base: SideLimits) -> int:
    """`Regions.keep` on the max_time axis where nothing but zero probability rules a target out."""
    return _clamped(2 * (window.lo - base.longest))


def _even_bins(limits: SideLimits) -> LengthClasses:
    """Up to 64 equal ranges of lengths."""
    shortest, longest = limits.shortest, limits.longest
    span = longest - shortest + 1
    width = -(-span // _MOST_BINS)
    lowest = range(shortest, longest + 1, width)
    highest = [min(low + width - 1, longest) for low in lowest]
    count = len(highest)
    return LengthClasses(
        np.array(lowest, np.int64), np.array(highest, np.int64), np.full(count, 1 / count)
    )


def _max_time_bounds(bins: LengthClasses, target: SideLimits, window: Window) -> np.ndarray:
    """Bounds for each bin: int64 array, shape (bins, 4). As `coincide.regions`, for ranges."""
    shortest, longest = target.shortest, target.longest
    at_shortest = _moved_bounds(bins, shortest, shortest, window)
    at_longest = _moved_bounds(bins, longest, longest, window)
    between = _moved_bounds(bins, shortest, longest, window)
    rows = []
    for row, high in enumerate(bins.highest.tolist()):
        ends = [at_shortest[row], at_longest[row]]
        if window.width < high + longest:
            # The ends need not be monotone in the target's length: bounds over all lengths at once.
            ends.append(between[row])
        outer_lo, inner_lo, inner_hi, outer_hi = zip(*ends, strict=True)
        rows.append(_tidy(min(outer_lo), max(inner_lo), min(inner_hi), max(outer_hi)))
    return np.array(rows, np.int64)


def _moved_bounds(
    bins: LengthClasses, shortest: int, longest: int, window: Window
) -> list[tuple[int, int, int, int]]:
    """Bounds from one band per bin: those of the target's midpoint, moved to its max_time."""
    table = band_table(bins, LengthClasses.one(shortest, longest), window)[:, 0]
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
    return [_clamped(end) for end in (outer_lo, inner_lo, inner_hi, outer_hi)]


def _keep(bands: np.ndarray, classes: LengthClasses) -> int:
    """Smallest outer low end, from twice the max_time of a base event of each class."""
    lows, highest = bands[:, OUTER_LO].tolist(), classes.highest.tolist()
    return _clamped(min(low - high for low, high in zip(lows, highest, strict=True)))


def _clamped(bound: int) -> int:
    """Differences of keys are smaller than any int64 that a bound is cut to."""
    return max(-_INT64, min(_INT64 - 1, bound))
