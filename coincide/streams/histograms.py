"""Streams of template histograms: Mok, Woo & Lee (2006), Theorems 3 and 4, for any window."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coincide.shape_classes import MOST_CLASSES, ShapeClasses
from coincide.streams.template_intake import TemplateIntake
from coincide.timestamps.histograms import HistogramPairs

if TYPE_CHECKING:
    from coincide.streams.options import SideLimits


@dataclass(frozen=True)
class HistogramStreams(HistogramPairs):
    """Streams of templates on both sides: `coincide.streams.model.StreamModel`.

    Parameters
    ----------
    window : Window
        The timing condition, ticks.
    left, right : TemplateTable
    """

    def intake(self, limits: tuple[SideLimits, SideLimits]) -> TemplateIntake:
        """As `StreamModel`, like all that follow."""
        return TemplateIntake((self.left, self.right), self.rule)

    def base_bins(self, side: int, limits: SideLimits) -> ShapeClasses:
        """A bin for each template: the partition of Theorem 3 is of the base event's template."""
        return ShapeClasses.even(limits.shortest, limits.longest, MOST_CLASSES)
