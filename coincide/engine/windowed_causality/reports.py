"""What a window tells of itself."""

from __future__ import annotations

from dataclasses import dataclass

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.ticks import length_words
from coincide.engine.reports.join_report import side_warnings, side_words
from coincide.engine.reports.lines import Line, Told
from coincide.engine.reports.metrics import numbers_of
from coincide.engine.reports.warnings import LaterReport, warn, warn_of_losses
from coincide.engine.windowed_causality.arguments import EVENT
from coincide.model.errors import DroppedRowsWarning
from coincide.model.units import Tick
from coincide.model.windowed_causality import WindowCounts


@dataclass(frozen=True)
class WindowSummary(Told):
    """What became of all that was pushed.

    Parameters
    ----------
    rows : SideCounts
        Rows pushed, those without time, place or role, and those left out.
    backwards : int
        Rows skipped since they arrived before the one before them.
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
    def lines(self) -> list[Line]:
        """Names and what there is to say, for people."""
        events = [f"{self.rows.rows:,} rows"]
        if self.tick is not None:
            events += side_words(self.rows, self.tick, MATCHLESS)
        if self.backwards:
            events.append(f"skipped {self.backwards:,} that arrived before the one before them")
        recall, error = self.recall, self.recall_error
        spread = "" if error is None else f" ± {error:.3f}"
        of_all = "unknown" if recall is None else f"{recall:.3f}{spread} of all pairs, by estimate"
        return [("events", "; ".join(events)), ("pairs", f"{self.pairs:,}"), ("recall", of_all)]

    @property
    def recall(self) -> float | None:
        """The estimated share of all pairs that was found; None while nothing is known."""
        return self.counts.recall

    @property
    def recall_error(self) -> float | None:
        """Standard error of `recall`."""
        return self.counts.recall_error


MATCHLESS = "time, place or role"
"""What rows lack that match nothing."""
COUNTED = tuple(numbers_of(WindowSummary()))
"""What tasks count, by name."""


class WindowReport(LaterReport[WindowSummary]):
    """Takes what `windowed_causality` tells: give one as ``report=``, then ask its `summary`."""

    operator = "windowed_causality"

    @staticmethod
    def warn_of(summary: WindowSummary) -> None:
        """Warn of rows that were left out or matched nothing, and of times that were rounded."""
        assert summary.tick is not None
        tell(summary.rows, summary.backwards, summary.tick)


def tell(rows: SideCounts, backwards: int, tick: Tick, behind: int = 0) -> None:
    """Warn of what is lost; `behind` is by how many ticks the latest row was late, if that is known."""
    warn_of_losses(EVENT, rows.rows, side_warnings(rows, tick, MATCHLESS))
    if backwards:
        by = f" (by up to {length_words(behind, tick, digits=4)})" if behind else ""
        warn(
            f"{EVENT}, {rows.rows:,} rows: skipped {backwards:,} that arrived before the one"
            f" before{by}. Push rows in order of their arrival.",
            DroppedRowsWarning,
        )
