"""Keys whose time or answer says that the limits of clock errors do not fit; and the warnings of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coincide.engine.events.ticks import length_words
from coincide.engine.reports.warnings import Loss
from coincide.model.clocks.errors import LEAST_SPANS, ClockEstimate, Limits
from coincide.model.counters import Sums
from coincide.model.errors import ClockLimitsWarning, argument, several
from coincide.model.units import Tick

_AT_LIMIT = 0.97
"""The share of a limit from which on an answer may lie beyond it."""


@dataclass(frozen=True)
class LimitCounts(Sums):
    """How many keys each kind has."""

    short: int = 0  # Their time is too short for the largest offset
    drifted: int = 0  # Nothing is found, and the largest drift alone goes beyond the largest offset
    drift_largest: int = 0  # By how much it moves the offset, ticks
    at_offset: int = 0  # The answer is at the largest offset
    at_drift: int = 0

    @classmethod
    def of(cls, found: ClockEstimate, limits: Limits) -> LimitCounts:
        """Those of one key."""
        ends = [s.line.at(time) for s in found.segments for time in (s.start, s.end)]
        drifts = [abs(s.line.drift) for s in found.segments]
        return cls(
            int(found.is_short),
            int(found.drifted > 0),
            round(found.drifted),
            int(any(abs(end) > _AT_LIMIT * limits.max_offset for end in ends)),
            int(any(drift > _AT_LIMIT * limits.max_drift > 0 for drift in drifts)),
        )

    def warnings(self, limits: Limits, tick: Tick, *, has_keys: bool) -> Sequence[Loss]:
        """What to say of limits that are too wide or too narrow for the data."""

        def of_keys(count: int) -> str:
            return f" in {several(count, 'key')}" if has_keys else ""

        said, widest = list[str](), length_words(limits.max_offset, tick)
        if self.short:
            said.append(
                f"both sides share less than {LEAST_SPANS} times {argument('max_offset')}"
                f"{of_keys(self.short)} (found {widest}). Give a smaller one, or more events."
            )
        if self.drifted:
            said.append(
                f"nothing was found{of_keys(self.drifted)}, and {argument('max_drift')} alone moves the"
                f" offset by more than {argument('max_offset')} within the time of the events (found"
                f" {length_words(self.drift_largest, tick)} and {widest}). Give a much smaller"
                f" {argument('max_drift')}, or a wider {argument('max_offset')}."
            )
        for name, count in (("max_offset", self.at_offset), ("max_drift", self.at_drift)):
            if count:
                said.append(
                    f"the answer is at the limit {argument(name)}{of_keys(count)}. Widen it, to see"
                    " whether it lies beyond."
                )
        return [(ClockLimitsWarning, words) for words in said]
