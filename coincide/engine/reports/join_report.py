"""What a join tells of itself: numbers for who asks, warnings for who does not."""

from __future__ import annotations

from dataclasses import dataclass, replace

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.ticks import length_words
from coincide.engine.events.time_columns import INVALID_REASONS, LACKING, range_hint
from coincide.engine.reports.emptiness import NoPairs
from coincide.engine.reports.lines import Line, Told, under
from coincide.engine.reports.warnings import LaterReport, Loss, losses, warn, warn_of_losses
from coincide.model.counters import JoinCounters, Sums
from coincide.model.errors import NoPairsWarning, UnmatchableRowsWarning, Words, argument, marked
from coincide.model.sides import SIDES
from coincide.model.units import Tick

_SHORT_REASONS = {
    "not_finite": "with NaN or infinity",
    "range": "out of range",
    "order": "whose min is above max",
    "ends": "that end or may end before they start",
    "width": "with a missing, negative or infinite half-width",
    "length": "longer than declared",
    "template": "with an unknown template",
    "place": "in impossible places",
}
assert list(_SHORT_REASONS) == list(INVALID_REASONS)


@dataclass(frozen=True)
class StepSeconds(Sums):
    """Seconds that tasks spent on each step, summed over tasks."""

    reading: float = 0.0
    correlating: float = 0.0
    writing: float = 0.0


@dataclass(frozen=True)
class JoinSummary(Told):
    """What a finished join did.

    Parameters
    ----------
    left, right : SideCounts or None
        What the rows were; None if they were not counted.
    counters : JoinCounters or None
        None if pairs were not counted.
    seconds : float or None
        None of a DataFrame, which others compute.
    way : {"in memory", "files", "broadcast", "broadcast-both", "exchange"}
        How rows got to the kernels.
    tick : Tick
        In what times were counted.
    no_pairs : NoPairs or None
        Why it found nothing, if so.
    rows, size : int or None
        Rows of files that were written, and bytes, where they are known.
    slices : int or None
        None where a side went to every worker, and in one process.
    replication : float or None
        Copies of a right event, on average, where they were counted.
    why : str
        Why this way was taken.
    steps : StepSeconds or None
        Seconds inside the tasks of the direct way, summed over them.
    sides : (str, str)
        What `left` and `right` are called in warnings.
    matchless : str
        What the rows have not that match nothing.
    more : tuple of (type, str)
        What else to warn of.
    """

    left: SideCounts | None
    right: SideCounts | None
    counters: JoinCounters | None
    seconds: float | None
    way: str
    tick: Tick
    no_pairs: NoPairs | None = None
    rows: int | None = None
    size: int | None = None
    slices: int | None = None
    replication: float | None = None
    why: str = ""
    steps: StepSeconds | None = None
    sides: tuple[str, str] = SIDES
    matchless: str = "time or key"
    more: tuple[Loss, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "why", Words(self.why))

    @property
    def counts(self) -> list[tuple[str, SideCounts | None]]:
        """What the rows were, by side; of one stream once."""
        names = self.sides if self.sides == SIDES else [f"{side}s" for side in self.sides]
        found = list(zip(names, (self.left, self.right), strict=True))
        return found[:1] if names[0] == names[1] else found

    @property
    def lines(self) -> list[Line]:
        """Names and what there is to say, for people."""
        lines = [(name, self._words(counts)) for name, counts in self.counts]
        if self.counters is not None:
            counters = self.counters
            numbers = (counters.candidates, counters.probed, counters.pairs)
            names = ("candidates", "probed", "pairs")
            lines += [(name, f"{count:,}") for name, count in zip(names, numbers, strict=True)]
        elif self.way != "in memory":  # where what makes no pairs has none to count
            lines.append(("pairs", "not counted"))
        if self.no_pairs is not None:
            lines += under("no pairs:", self.no_pairs.lines)
        if self.slices is not None:
            row = f"{self.sides[1]} row" if self.sides == SIDES else self.sides[1]
            copies = (
                "" if self.replication is None else f", {self.replication:.3g} copies of a {row}"
            )
            lines.append(("slices", f"{self.slices:,}{copies}"))
        if self.way:
            lines.append(("way", f"{self.way}: {marked(self.why)}" if self.why else self.way))
        return lines

    def _words(self, counts: SideCounts | None) -> str:
        if counts is None:
            return "not counted"
        words = side_words(counts, self.tick, self.matchless)
        return "; ".join([f"{counts.rows:,} rows", *words])


class JoinReport(LaterReport[JoinSummary]):
    """Takes what a join tells of itself: give one as ``report=``, then ask it.

    A DataFrame is computed later, so `summary` waits for its first action. After one that fails, or that
    needs a part of the result, like ``limit(5)``, it tells no more than was known before.

    Examples
    --------
    >>> report = JoinReport()
    >>> pairs = correlate(left, right, condition, report=report)
    >>> pairs.write.parquet("pairs")
    >>> report.summary().left.dropped
    >>> print(report)
    """

    operator = "correlate"

    @property
    def left(self) -> SideCounts | None:
        """What the left rows were, as far as that is known without waiting."""
        return self._so_far.left

    @property
    def right(self) -> SideCounts | None:
        """What the right rows were, as far as that is known without waiting."""
        return self._so_far.right

    @staticmethod
    def warn_of(summary: JoinSummary) -> None:
        """Warn of rows that were left out, times that were rounded, and of an answer that is empty."""
        no_pairs = summary.no_pairs
        is_explained = no_pairs is not None and not no_pairs.is_asked_for
        for side, counts in zip(summary.sides, (summary.left, summary.right), strict=True):
            if counts is not None:
                counts = replace(counts, too_long=0) if is_explained else counts
                lost = side_warnings(counts, summary.tick, summary.matchless)
                warn_of_losses(side, counts.rows, lost)
        has_rows = all(counts is None or counts.rows for counts in (summary.left, summary.right))
        if no_pairs is not None and not no_pairs.is_asked_for and has_rows:
            warn(f"no pair is found: {'; '.join(no_pairs.lines)}.", NoPairsWarning)
        for kind, words in summary.more:
            warn(words, kind)

    @staticmethod
    def news(summary: JoinSummary, planned: JoinSummary | None) -> JoinSummary:
        """What was not known when the join was planned."""
        assert planned is not None
        return replace(
            summary,
            left=None if planned.left else summary.left,
            right=None if planned.right else summary.right,
            no_pairs=None if planned.no_pairs else summary.no_pairs,
        )


def side_warnings(counts: SideCounts, tick: Tick, matchless: str = "time or key") -> list[Loss]:
    """What the user of a side should know, in words, with the category of each."""
    found: list[Loss] = []
    if counts.unmatchable:
        found.append((UnmatchableRowsWarning, _unmatchable_words(counts, matchless)))
    if counts.too_long:
        found.append((UnmatchableRowsWarning, too_long_words(counts, tick)))
    hint = range_hint(tick) if counts.invalid.get("range") else ""
    return found + losses(counts.invalid, _SHORT_REASONS, counts.rounded, tick, hint)


def _unmatchable_words(counts: SideCounts, matchless: str) -> str:
    """How many rows have no time or key, and why not where their columns hold one."""
    words = {
        "no_segment": "at times that no segment of their clock covers",
        "no_end": f"without an end, which go on with {argument('open_ends', True)}",
    }
    reasons = "; ".join(
        f"{counts.lacking[why]:,} {words[why]}" for why in LACKING if counts.lacking.get(why)
    )
    return f"{counts.unmatchable:,} without {matchless}{reasons and f' ({reasons})'}"


def too_long_words(counts: SideCounts, tick: Tick) -> str:
    """How many events of a side are longer than any match can be, and what to do."""
    share = f"{100 * counts.too_long / counts.rows:.3g} %"
    return (
        f"{counts.too_long:,} ({share}) longer than any match can be with this window and confidence"
        f" (longest that can match: {length_words(counts.longest_match, tick, digits=3)}). Lower the"
        " confidence, or widen the window"
    )


def side_words(counts: SideCounts, tick: Tick, matchless: str = "time or key") -> list[str]:
    """What the user of a side should know, in words."""
    return [words for _, words in side_warnings(counts, tick, matchless)]
