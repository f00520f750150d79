"""What border crossings tell of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from coincide.units import Tick
from coincide.warnings import NoPairsWarning
from spark_plugin.worker.borders.arguments import READINGS
from spark_plugin.worker.borders.readings import REASONS
from spark_plugin.worker.reports.lateness import warn_of_repeated
from spark_plugin.worker.reports.later import LaterReport
from spark_plugin.worker.reports.losses import Loss, losses, warn_of_losses
from spark_plugin.worker.reports.metrics import of_bits
from spark_plugin.worker.reports.warn import warn


@dataclass(frozen=True)
class BorderSummary:
    """What became of readings, and what was found.

    Parameters
    ----------
    readings : int
        Rows in.
    dropped : dict of str to int
        Invalid rows left out, by reason: ``"null"`` (no stream or no time), ``"not_finite"`` and
        ``"range"`` (of times), ``"infinite"`` (of values).
    gaps : int
        With a value that is null or NaN: their stream is taken to be where it was.
    repeated, late : int
        Of a time that their stream has had, or that it is past: left out.
    waiting : int
        Readings that a monitor keeps until they are as old as its delay.
    queries, empty : int
        Live queries, and those of them whose range holds nothing.
    entered, left : int
        I and O events.
    retrieved : int
        Queries that were taken out of the index for them. The paper's processing efficiency is what was
        found over this.
    rounded : float
        Largest change of a time by rounding it to ticks, in ticks.
    tick : Tick or None
        In what times are counted; None before the first reading.
    why_none : tuple of str
        Where no crossing was found, what speaks against any, the most telling first.
    """

    readings: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    gaps: int = 0
    repeated: int = 0
    late: int = 0
    waiting: int = 0
    queries: int = 0
    empty: int = 0
    entered: int = 0
    left: int = 0
    retrieved: int = 0
    rounded: float = 0.0
    tick: Tick | None = None
    why_none: tuple[str, ...] = ()

    @property
    def events(self) -> int:
        """All crossings."""
        return self.entered + self.left

    def with_counts(self, counts: Mapping[str, int]) -> BorderSummary:
        """The same, and what tasks have counted: the numbers of `COUNTED`."""
        dropped = {reason: counts[reason] for reason in REASONS if counts[reason]}
        own: dict[str, Any] = {
            name: n for name, n in counts.items() if name not in (*REASONS, "rounded")
        }
        return replace(self, dropped=dropped, rounded=of_bits(counts["rounded"]), **own)


COUNTED = (
    "readings", *REASONS, "gaps", "repeated", "late", "entered", "left", "retrieved", "rounded",
)  # fmt: skip
"""What tasks count, by name; `rounded` as `as_bits` has it."""


ONE_STREAM_AGAIN = (
    "Say by stream= what tells streams apart, or give times that are fine enough to differ"
)
"""What to do where most readings are of a time again."""


class BorderReport(LaterReport[BorderSummary]):
    """Takes what `border_crossings` tells: give one as ``report=``, then ask its `summary`."""

    operator = "border_crossings"

    @staticmethod
    def warn_of(summary: BorderSummary) -> None:
        """Warn of readings that were left out, of rounded times, and where nothing was found."""
        warn_of_losses(READINGS, summary.readings, losses_of(summary))
        warn_of_repeated(READINGS, summary.readings, summary.repeated, ONE_STREAM_AGAIN)
        if summary.why_none:
            warn(f"no crossing is found: {'; '.join(summary.why_none)}", NoPairsWarning)


def losses_of(summary: BorderSummary) -> list[Loss]:
    """What is lost, in words, with the category of each."""
    words = {why: f"with {what}" for why, what in REASONS.items()}
    return losses(summary.dropped, words, summary.rounded, summary.tick)
