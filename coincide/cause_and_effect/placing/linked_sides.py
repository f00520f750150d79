"""Both sides of a causality join, and how their buckets lie to each other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coincide.array_types import Int64s
from coincide.cause_and_effect.placing.buckets import Buckets
from coincide.cause_and_effect.rule import PairRule
from coincide.cause_and_effect.template_rule import TemplateRule


class Layout(NamedTuple):
    """How the buckets of causes and of effects lie to each other.

    Parameters
    ----------
    by_place : bool
        Whether buckets are places, which `starts`, `targets` and `windows` link
        (`coincide.cause_and_effect.placing.places.Links`), or cells, whose neighbours `shifts`, `widths`
        and `slabs` tell (`coincide.cause_and_effect.grid.Neighbours`).
    sure : bool
        Whether every pair within a window qualifies: nothing is tested.
    self_join : bool
        Whether causes and effects are of one stream, of which the earlier is the cause, and of
        simultaneous ones the one of the lower rank.
    most : int
        Most links of a bucket.
    gap : float
        The largest |x - y|² of a pair that can qualify.
    plain : bool
        Whether within a window this is all that is asked.
    """

    by_place: bool
    sure: bool
    self_join: bool
    most: int
    gap: float
    plain: bool
    shifts: Int64s
    widths: Int64s
    slabs: np.ndarray
    starts: Int64s
    targets: Int64s
    windows: np.ndarray


class Sides(NamedTuple):
    """Both sides of a join, as `choose_layout` lays them out."""

    base: Buckets
    targets: Buckets
    layout: Layout
    rule: PairRule | TemplateRule
