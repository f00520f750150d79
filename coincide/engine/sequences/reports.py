"""What sequences and coincidences tell of themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.reports.join_report import side_warnings, side_words
from coincide.engine.reports.lines import Line, Told, under
from coincide.engine.reports.warnings import LaterReport, warn, warn_of_losses
from coincide.model.errors import NoPairsWarning, Words, argument, call, marked
from coincide.model.units import Tick


@dataclass(frozen=True)
class SequenceSummary(Told):
    """What a finished search for sequences or coincidences did.

    Parameters
    ----------
    streams : mapping of str to SideCounts
        What the rows of each stream were.
    links : mapping of str to int
        Pairs of two streams that reach the confidence, by their names: ``"click to cart"``.
    tried : int or None
        Tuples that these links make. None here and below where Spark has computed none yet.
    doubted : int or None
        Those of them that exact numbers decided, as floats could not.
    found : int or None
        Tuples that qualify.
    seconds : float or None
        None where Spark computed it.
    tick : Tick
        In what times were counted.
    may_be_none : bool
        Whether finding no sequence is no news, as events without one were asked for.
    has_total : bool
        Whether there is a window on the whole.
    has_condition : bool
        Whether tuples also had to meet a condition on their columns.
    way : str
        How events met on Spark: ``"files"``, ``"broadcast"`` or ``"exchange"``; nothing in one process.
    why : str
        Why this way was taken.
    """

    streams: Mapping[str, SideCounts]
    links: Mapping[str, int]
    tried: int | None
    doubted: int | None
    found: int | None
    seconds: float | None
    tick: Tick = field(repr=False)
    may_be_none: bool = False
    has_condition: bool = False
    has_total: bool = False
    way: str = ""
    why: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "why", Words(self.why))

    @property
    def lines(self) -> list[Line]:
        """Names and what there is to say, for people."""
        rows = [
            (name, "; ".join([f"{counts.rows:,} rows", *side_words(counts, self.tick)]))
            for name, counts in self.streams.items()
        ]
        links = [(name, f"{count:,} links") for name, count in self.links.items()]
        if self.way:
            rows.append(("way", f"{self.way}: {marked(self.why)}"))
        if self.found is None:
            return rows
        tried = f"{self.tried:,}"
        if self.doubted:
            tried += f", {self.doubted:,} decided by exact numbers"
        why = under("none found:", [self.why_none] if self.why_none else [])
        return [*rows, *links, ("tried", tried), ("found", f"{self.found:,}"), *why]

    @property
    def why_none(self) -> str:
        """Why nothing is found, though all streams have rows; else nothing."""
        if (
            self.may_be_none
            or self.found != 0
            or not all(counts.rows for counts in self.streams.values())
        ):
            return ""
        lacking = [name for name, count in self.links.items() if not count]
        if not lacking:
            if self.has_condition and self.tried:
                return Words(
                    "the links that there are do not meet with this confidence, or none of these tuples"
                    f" meets {argument('where')}"
                )
            return Words("the links that there are do not meet, or not with this confidence")
        left = f", nor what {argument('total')} leaves of it" if self.has_total else ""
        return Words(
            f"no two events from {lacking[0]} meet the window of that step{left}. Join these two by"
            f" {call('correlate_tables')} to see why"
        )


class SequenceReport(LaterReport[SequenceSummary]):
    """Takes what `sequence_tables` tells: give one as ``report=``, then ask its `summary`."""

    operator = "sequence_tables"

    @staticmethod
    def warn_of(summary: SequenceSummary) -> None:
        """Warn of rows that were left out, times that were rounded, and of an answer that is empty."""
        for name, counts in summary.streams.items():
            warn_of_losses(name, counts.rows, side_warnings(counts, summary.tick))
        if summary.why_none:
            warn(f"nothing is found: {marked(summary.why_none)}.", NoPairsWarning)
