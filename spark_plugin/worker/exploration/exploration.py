"""An exploration of two sides: the numbers first, charts and a page of them when they are asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from coincide.errors import ConditionError, brief
from coincide.sides import SIDES
from spark_plugin.worker.arrow.counts import SideCounts
from spark_plugin.worker.emission.spec import JoinSpec
from spark_plugin.worker.exploration.candidates import Sample
from spark_plugin.worker.exploration.curve import flat_stretch
from spark_plugin.worker.exploration.delays import DayParts
from spark_plugin.worker.pair_arguments import EVENT
from spark_plugin.worker.reports.emptiness import Evidence
from spark_plugin.worker.reports.key_overlap import KeyOverlap

if TYPE_CHECKING:
    import altair as alt

CHARTS = ("probabilities", "curve", "partners", "delays")
"""Their names, in the order of the page."""


_DWARFED = 3
"""A bar as many times as high as any other has a scale of its own."""


@dataclass(frozen=True, eq=False, repr=False)
class Exploration:
    """What a join finds at any confidence. Made by `coincide.explore_tables`.

    Parameters
    ----------
    probabilities : pa.Table
        Candidates by probability: ``lower``, ``upper`` and ``pairs``. The last row are those with P = 1.
    curve : pa.Table
        ``confidence``, ``pairs`` that qualify there; with shifts ``accidental_pairs`` and
        ``accidental_spread``. The first row, of confidence 0, are all candidates.
    partners : pa.Table
        ``side`` (of one stream ``event``), ``confidence``, ``partners`` (a number, or a range of them),
        and ``events`` that have so many. Of all events, also where the rest is a sample.
    delays : pa.Table
        Of pairs at `confidence`: ``part`` of the day, ``delay`` of the midpoints in ticks, ``pairs``.
    far_delays : int
        Pairs whose delay is beyond all that is shown.
    candidates : int
        Pairs whose probability is at least 1e-9; of all events.
    sample : Sample
        The left events of which pairs were looked at; numbers of pairs are multiplied by `Sample.factor`.
    rows : (SideCounts, SideCounts) or (SideCounts,)
        What the rows of both sides were, or those of one stream.
    evidence : as many of Evidence
        Their lengths and times.
    keys : KeyOverlap or None
        None without keys, and of one stream.
    spec : JoinSpec
        What was explored, in ticks.
    parts : DayParts
    delay_step : int
        Width of a bin of delays, ticks.
    confidences : tuple of float
        Of `partners`.
    highest_probability : float or None
        No pair of such lengths and such a window reaches more; None where that is not known.
    why_none : tuple of str
        Why there is no candidate, if so.
    shifts : tuple of str
        By which right times were moved to count accidental pairs.
    """

    probabilities: pa.Table
    curve: pa.Table
    partners: pa.Table
    delays: pa.Table
    far_delays: int
    candidates: int
    sample: Sample
    rows: tuple[SideCounts, ...]
    evidence: tuple[Evidence, ...]
    keys: KeyOverlap | None
    spec: JoinSpec
    parts: DayParts
    delay_step: int
    confidences: tuple[float, ...]
    highest_probability: float | None = None
    why_none: tuple[str, ...] = ()
    shifts: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Exploration({self.candidates:,} candidates, {self.pairs_at(0.5):,} pairs at 0.5)"

    @property
    def sides(self) -> tuple[str, ...]:
        """What was explored: left and right, or events of one stream."""
        return (EVENT,) if self.spec.is_one_stream else SIDES

    @property
    def confidence(self) -> float:
        """At which delays are shown."""
        return self.spec.window.confidence

    @property
    def flat(self) -> tuple[float, float] | None:
        """The widest range of confidences that gives the same pairs within 1 %; None of less than 0.1."""
        return flat_stretch(self.curve)

    @property
    def certain_stand_apart(self) -> bool:
        """Whether so many pairs have P = 1 that beside them nobody could see the others."""
        *others, certain = self.probabilities["pairs"].to_pylist()
        return 0 < _DWARFED * max(others) < certain

    def pairs_at(self, confidence: float) -> int:
        """Pairs that qualify at a confidence of whole hundredths, as `curve` has them.

        Raises
        ------
        ConditionError
            If the curve has no such confidence.
        """
        steps = self.curve["confidence"].to_pylist()
        if confidence not in steps:
            raise ConditionError(
                f"the curve has the confidences 0.01, 0.02, ... 1, and 0 for all candidates; found"
                f" {brief(confidence)}"
            )
        return int(self.curve["pairs"][steps.index(confidence)].as_py())

    @property
    def charts(self) -> Mapping[str, alt.Chart]:
        """Altair charts by name: ``probabilities``, ``curve``, ``partners``, ``delays``.

        None where there is no candidate.
        """
        from spark_plugin.worker.exploration.charts import charts_of

        return charts_of(self)

    def to_html(self, command: str | None = None) -> str:
        """A page with all charts, which needs no network and no other file.

        Parameters
        ----------
        command : str, optional
            What made it, to be told on the page.
        """
        from spark_plugin.worker.exploration.page import page_of

        return page_of(self, command)

    def save(
        self, path: str | os.PathLike[str], *, overwrite: bool = False, command: str | None = None
    ) -> None:
        """Write the page, or the charts.

        Parameters
        ----------
        path : str or path
            ``page.html``; ``charts.png``, all of them in one picture; or a folder for a PNG of each.
        overwrite : bool
            Whether what is there may be replaced.
        command : str, optional
            As of `to_html`.

        Raises
        ------
        DataError
            If something is there already, or cannot be written.
        """
        from spark_plugin.worker.exploration.saving import save

        save(self, os.fspath(path), overwrite, command)
