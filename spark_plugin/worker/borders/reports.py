"""What border crossings tell of themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from coincide.errors import ConditionError, brief
from coincide.units import Tick
from coincide.warnings import CoincideWarning, DroppedRowsWarning, RoundedTimesWarning
from spark_plugin.worker.arrow.time_words import length_words
from spark_plugin.worker.borders.arguments import READINGS
from spark_plugin.worker.borders.readings import REASONS
from spark_plugin.worker.reports.metrics import of_bits
from spark_plugin.worker.reports.reports import warn


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
    """

    readings: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    gaps: int = 0
    repeated: int = 0
    late: int = 0
    queries: int = 0
    empty: int = 0
    entered: int = 0
    left: int = 0
    retrieved: int = 0
    rounded: float = 0.0
    tick: Tick | None = None

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


class BorderReport:
    """Takes what `border_crossings` tells: give one as ``report=``, then ask its `summary`."""

    def __init__(self) -> None:
        self._known: BorderSummary | None = None
        self._finish: Callable[[], BorderSummary] | None = None

    def summary(self) -> BorderSummary:
        """What was found.

        Of a DataFrame, which is computed later, this waits for its first action; what that read is
        counted. Warnings are given then.

        Raises
        ------
        ConditionError
            If nothing has reported here yet, or Spark has not counted.
        """
        if self._finish is not None:
            self._known, self._finish = self._finish(), None
            warn_of(self._known)
        if self._known is None:
            raise ConditionError(
                "nothing has reported here; give this report to border_crossings(..., report=report), and"
                " use its result first"
            )
        return self._known

    def take(
        self, known: BorderSummary | None, finish: Callable[[], BorderSummary] | None = None
    ) -> None:
        """What is known, or how to ask for it once a result was computed."""
        self._known, self._finish = known, finish


def check_report(report: object) -> None:
    """Refuse what is no report.

    Raises
    ------
    ConditionError
    """
    if report is not None and not isinstance(report, BorderReport):
        raise ConditionError(f"report must be a BorderReport(); found {brief(report)}")


def tell(summary: BorderSummary, report: BorderReport | None) -> None:
    """Hand a summary to the report, if there is one, and warn of what is lost."""
    if report is not None:
        report.take(summary)
    warn_of(summary)


def warn_of(summary: BorderSummary) -> None:
    """Warn of readings that were left out, and of times that were rounded."""
    for words, kind in warning_words(summary):
        warn(f"{READINGS}, {summary.readings:,} rows: {words}", kind)


def warning_words(summary: BorderSummary) -> list[tuple[str, type[CoincideWarning]]]:
    """What is lost, in words, with the category of each."""
    found: list[tuple[str, type[CoincideWarning]]] = []
    if summary.dropped:
        listed = ", ".join(f"{n:,} with {REASONS[why]}" for why, n in summary.dropped.items())
        words = f"{sum(summary.dropped.values()):,} invalid, left out ({listed})"
        found.append((words, DroppedRowsWarning))
    if summary.rounded and summary.tick is not None:
        change = length_words(summary.rounded, summary.tick, digits=3)
        found.append((f"times rounded by up to {change}", RoundedTimesWarning))
    return found
