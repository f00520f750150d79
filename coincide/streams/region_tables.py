"""The regions of the papers, by class of the base event and class of targets, as correlators keep them.

For one base event the papers' L_H, L_L, R_L, R_H bound where targets lie. Finding them takes a search;
so it is done once, for narrow ranges of the base event's shape, whose bounds hold for every shape in
the range.
"""

from __future__ import annotations

import numpy as np

from coincide.bands import OUTER_HI, OUTER_LO
from coincide.shape_classes import ShapeClasses
from coincide.sides import LEFT, RIGHT
from coincide.streams.keys import FARTHEST, clamped
from coincide.streams.options import SideLimits, StreamOptions
from coincide.streams.shared import Regions


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
    return Regions(bands, _tops(bins), _tops(wholes), keep)


def key_regions(options: StreamOptions, classes: tuple[ShapeClasses, ShapeClasses]) -> Regions:
    """Regions on the keys of targets, of intervals doubled midpoints, per class.

    Parameters
    ----------
    options : StreamOptions
    classes : (ShapeClasses, ShapeClasses)
        Of the left and of the right side.
    """
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
    tops = _tops(classes)
    return Regions(bands, tops, tops, keep)


def impossible_regions(options: StreamOptions) -> Regions:
    """No regions: a target is obsolete only when no base event to come can reach it at all."""
    keep = [[keep_while_possible(options, base)] for base in (LEFT, RIGHT)]
    nothing = np.zeros((2, 1, 1, 4), np.int64)
    tops = _tops((one_class(options.limits[LEFT]), one_class(options.limits[RIGHT])))
    return Regions(nothing, tops, tops, np.array(keep, np.int64))


def keep_while_possible(options: StreamOptions, base: int) -> int:
    """`Regions.keep` on the max_time axis where nothing but zero probability rules a target out."""
    own, other = (one_class(options.limits[side]) for side in (base, 1 - base))
    return clamped(2 * options.model.reach(base, own, other)[0])


def _tops(classes: tuple[ShapeClasses, ...]) -> np.ndarray:
    """Largest shapes by side and class; where a side has fewer classes, no shape is too large."""
    tops = np.full((2, max(each.count for each in classes)), FARTHEST, np.int64)
    for side, each in enumerate(classes):
        tops[side, : each.count] = each.highest
    return tops


def _keep(bands: np.ndarray, leans: np.ndarray) -> int:
    """Smallest outer low end, from twice the max_time of a base event of each class that has partners.

    Theorem 4 of Mok, Woo & Lee (2006), with the satisfaction times of templates in `bands`.
    """
    possible = bands[:, OUTER_LO] <= bands[:, OUTER_HI]
    ends = zip(bands[possible, OUTER_LO].tolist(), leans[possible].tolist(), strict=True)
    return clamped(min((low - lean for low, lean in ends), default=FARTHEST))
