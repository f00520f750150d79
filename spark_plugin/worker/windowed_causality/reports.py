"""What a window tells of itself."""

from __future__ import annotations

from dataclasses import dataclass

from coincide.units import Tick
from coincide.warnings import DroppedRowsWarning
from coincide.windowed_causality.results import WindowCounts
from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.reports.losses import warn_of_losses
from spark_plugin.worker.reports.reports import side_warnings
from spark_plugin.worker.reports.warn import warn
from spark_plugin.worker.windowed_causality.arguments import EVENT


@dataclass(frozen=True)
class WindowSummary:
    """What became of all that was pushed.

    Parameters
    ----------
    rows : SideCounts
        Rows pushed, those without time, place or role, and those left out.
    backwards : int
        Rows left out since they arrived before the one before them.
    counts : WindowCounts
        What became of the others, and what is known of the pairs that were missed.
    pairs : int
        Pairs found.
    tick : Tick or None
        In what times were counted; None before the first push.
    """

    rows: SideCounts = SideCounts()
    backwards: int = 0
    counts: WindowCounts = WindowCounts()
    pairs: int = 0
    tick: Tick | None = None

    @property
    def recall(self) -> float | None:
        """The estimated share of all pairs that was found; None while nothing is known."""
        return self.counts.recall

    @property
    def recall_error(self) -> float | None:
        """Standard error of `recall`."""
        return self.counts.recall_error


def tell(rows: SideCounts, backwards: int, tick: Tick) -> None:
    """Warn of what is lost."""
    warn_of_losses(EVENT, rows.rows, side_warnings(rows, tick, "time, place or role"))
    if backwards:
        warn(
            f"{EVENT}, {rows.rows:,} rows: {backwards:,} that arrived before the one before, left out",
            DroppedRowsWarning,
        )
