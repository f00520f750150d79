"""How many length classes to use: scanning a class costs time, and so does probing a wide shell."""

from __future__ import annotations

import numpy as np

from event_model.bands import INNER_HI, INNER_LO, OUTER_HI, OUTER_LO, band_table
from event_model.condition import Window
from event_model.length_classes import LengthClasses, length_classes, length_sample
from event_model.timestamps import IntervalEvents

LEFT_CHOICES = (1, 2, 4, 8)
RIGHT_CHOICES = (1, 2, 4, 8, 16)
_SAMPLE = 512
_TARGETS = 1 << 16

# Measured with `python -m bench run classes`: nanoseconds on one core.
_SCAN_COST = 15.0
"""Placing one base event among the targets of one class."""
_STEP_COST = 2.8
"""One step of one cursor over one target."""
_MOST_STEPS = 8.0
"""Steps for one base event and class beyond which a search is cheaper."""
_PROBE_COST = 6.0
"""Evaluating one candidate."""
_OPEN_COST = 3.0
"""Setting the cursors of one pair of classes at the start of a group."""


def choose_classes(
    left: IntervalEvents,
    right: IntervalEvents,
    left_order: np.ndarray,
    right_order: np.ndarray,
    window: Window,
    classes: int | None,
) -> tuple[LengthClasses, LengthClasses]:
    """Length classes of both sides; the cheapest by estimate if `classes` is None.

    Parameters
    ----------
    left, right : IntervalEvents
    left_order, right_order : int64 arrays
        Rows by midpoint.
    window : Window
    classes : int or None
        K of both sides; None: chosen.
    """
    lengths = left.lengths, right.lengths
    if classes is not None or not len(left) or not len(right):
        return length_classes(lengths[0], classes or 1), length_classes(lengths[1], classes or 1)
    samples = length_sample(lengths[0]), length_sample(lengths[1])
    lefts = _distinct(length_classes(samples[0], k) for k in LEFT_CHOICES)
    rights = _distinct(length_classes(samples[1], k) for k in RIGHT_CHOICES)
    reach = window.width + int(samples[0].max()) + int(samples[1].max()) + 1
    density = _targets_per_half_tick(left, right, left_order, right_order, window, reach)
    per_base = len(right) / len(left)

    def cost(k1: LengthClasses, k2: LengthClasses) -> float:
        table = band_table(k1, k2, window).astype(np.float64)
        outer = table[:, :, OUTER_HI] - table[:, :, OUTER_LO]
        shell = outer - (table[:, :, INNER_HI] - table[:, :, INNER_LO])
        probes = density * float(k1.share @ shell @ k2.share)
        return (
            _SCAN_COST * k2.count
            + _STEP_COST * 4 * min(k1.count * per_base, _MOST_STEPS * k2.count)
            + _PROBE_COST * probes
            + _OPEN_COST * k1.count * k2.count * left.groups / len(left)
        )

    k1, k2 = min(((k1, k2) for k1 in lefts for k2 in rights), key=lambda pair: cost(*pair))
    return length_classes(lengths[0], k1.count), length_classes(lengths[1], k2.count)


def _distinct(choices) -> list[LengthClasses]:  # type: ignore[no-untyped-def]
    """One choice per number of classes: few distinct lengths give the same classes again."""
    return list({choice.count: choice for choice in choices}.values())


def _targets_per_half_tick(
    left: IntervalEvents,
    right: IntervalEvents,
    left_order: np.ndarray,
    right_order: np.ndarray,
    window: Window,
    reach: int,
) -> float:
    """Mean density of partners around a base event, per unit of D, from a sample of base events."""
    rows = left_order[:: max(1, left_order.size // _SAMPLE)]
    base = _midpoints(left, rows) + (window.lo + window.hi)
    # Every so many targets, in order, stand for all: enough for a mean.
    stride = max(1, right_order.size // _TARGETS)
    targets = _midpoints(right, right_order[::stride])
    near = stride * (
        np.searchsorted(targets, base + reach) - np.searchsorted(targets, base - reach)
    )
    return float(near.mean()) / (2.0 * reach) * _same_group_share(left, right)


def _midpoints(events: IntervalEvents, rows: np.ndarray) -> np.ndarray:
    """Doubled midpoints as float64: sums with a window cannot overflow."""
    return events.min_time[rows].astype(np.float64) + events.max_time[rows]


def _same_group_share(left: IntervalEvents, right: IntervalEvents) -> float:
    """Chance that a left and a right event are of the same group."""
    if left.group is None or right.group is None:
        return 1.0
    shares = [
        np.bincount(side.group[side.group >= 0], minlength=side.groups) / len(side)
        for side in (left, right)
        if side.group is not None
    ]
    return float(shares[0] @ shares[1])
