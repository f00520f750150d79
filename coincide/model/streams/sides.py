"""What is declared about the two streams, as a model of their timestamps and its limits."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from coincide.model.condition import TimingCondition, Window
from coincide.model.errors import ConditionError
from coincide.model.sides import LEFT, RIGHT
from coincide.model.streams.models import (
    HistogramStreams,
    IntervalStreams,
    MixedStreams,
    StreamModel,
    StreamOptions,
)
from coincide.model.streams.options import (
    Emit,
    SideLimits,
    count_of,
    side_limits,
    window_in_ticks,
)
from coincide.model.templates.template import Templates, TemplateTable, without_offsets
from coincide.model.units import Tick

MOST_LENGTHS = 4096
"""Different lengths of intervals beside templates, unless something else is said."""


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
    """The checked arguments of `coincide.stream_correlator`."""
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
