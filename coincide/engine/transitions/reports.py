"""What region transitions tell of themselves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from coincide.engine.reports.lines import Line, Told
from coincide.engine.reports.metrics import numbers_of
from coincide.engine.reports.warnings import LaterReport, Loss, losses, warn, warn_of_losses
from coincide.engine.transitions.arguments import SIDE
from coincide.model.counters import Sums
from coincide.model.errors import AmbiguousCrossingsWarning, argument
from coincide.model.transitions import TRANSITIONS, Transitions
from coincide.model.units import Tick

REASONS = {
    "null": "with nulls",
    "event": "whose event is neither I nor O",
    "not_finite": "with NaN or infinity",
    "range": "out of range",
    "order": "whose min is above max",
    "late": "that came too late",
}
"""Why an event is left out, in the order in which it is asked, with the words for it."""


@dataclass(frozen=True)
class TransitionCounts(Sums):
    """What became of events."""

    events: int = 0
    dropped: dict[str, int] = field(default_factory=dict, metadata={"names": tuple(REASONS)})
    repeated: int = 0
    found: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(TRANSITIONS, 0), metadata={"names": TRANSITIONS}
    )
    neither: int = 0
    both: int = 0

    @classmethod
    def of(cls, found: Transitions) -> TransitionCounts:
        """The counts of what events or the clock have decided."""
        kinds = np.bincount(found.transition, minlength=len(TRANSITIONS)).tolist()
        by_word = dict(zip(TRANSITIONS, kinds, strict=True))
        return cls(found=by_word, neither=found.neither, both=found.both)


@dataclass(frozen=True)
class TransitionSummary(Told):
    """What was found of events, and what is still open.

    Parameters
    ----------
    counts : TransitionCounts
    undecided : int
        Last events of their query and stream after which too little time is known to say stay.
    rounded : float
        Largest change of a time by rounding it to ticks, in ticks.
    tick : Tick or None
        In what times were counted; None before the first event.
    way, why : str
        On Spark, how events came to the tasks, ``"files"`` or ``"exchange"``, and why.
    """

    counts: TransitionCounts = TransitionCounts()
    undecided: int = 0
    rounded: float = 0.0
    tick: Tick | None = None
    way: str = field(default="", compare=False)
    why: str = field(default="", compare=False)

    @property
    def lines(self) -> list[Line]:
        """Names and what there is to say, for people."""
        counts = self.counts
        events = [f"{counts.events:,} rows"]
        if counts.repeated:
            events.append(f"{counts.repeated:,} repeat the event before")
        events += [words for _, words in losses_of(self)]
        return [
            ("events", "; ".join(events)),
            *((word, f"{count:,}") for word, count in counts.found.items()),
            ("neither", f"{counts.neither:,}"),
            *([("both", f"{counts.both:,} {TWICE}")] if counts.both else []),
            ("undecided", f"{self.undecided:,}{self._cure}"),
            *([("way", f"{self.way}: {self.why}")] if self.way else []),
        ]

    @property
    def _cure(self) -> str:
        """What decides last events that are not decided."""
        if not self.undecided:
            return ""
        return f"; a later {argument('until')}, such as the time of the last reading, decides them"


COUNTED = tuple(numbers_of(TransitionSummary()))
"""What tasks count, by name."""


class TransitionReport(LaterReport[TransitionSummary]):
    """Takes what `transitions` tells: give one as ``report=``, then ask its `summary`."""

    operator = "transitions"

    @staticmethod
    def warn_of(summary: TransitionSummary) -> None:
        """Warn of events that were skipped or are reported twice, and of rounded times."""
        warn_of_losses(SIDE, summary.counts.events, losses_of(summary))
        warn_of_both(summary.counts)


TWICE = "reported as crossed and as stayed. Use a confidence above 0.5, such as 0.9"
"""What is wrong with events of which both reach the confidence."""


def warn_of_both(counts: TransitionCounts) -> None:
    """Warn of events that are reported as crossed and as stayed, if there are any."""
    if counts.both:
        warn(
            f"{SIDE}, {counts.events:,} rows: {counts.both:,} are {TWICE}.",
            AmbiguousCrossingsWarning,
        )


def losses_of(summary: TransitionSummary) -> list[Loss]:
    """What is lost, in words, with the category of each."""
    return losses(summary.counts.dropped, REASONS, summary.rounded, summary.tick)
