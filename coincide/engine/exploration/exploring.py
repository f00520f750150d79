"""Exploring two tables: read them, look at all candidates once, count the rest."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from coincide.engine.backends import load_task_backend
from coincide.engine.events.schemas import with_like_keys
from coincide.engine.events.sides import Side, SideCounts
from coincide.engine.exploration.candidates import (
    LEAST_CONFIDENCE,
    PARTS,
    STEPS,
    Candidates,
    DayParts,
    DelayGrid,
    ExploreArguments,
    Pairs,
    Sample,
    at_confidence,
    curve_table,
    flat_stretch,
    histogram_table,
    partner_table,
    sampled,
    steps_of,
)
from coincide.engine.join.join import TablePlan, as_schema, plan_tables
from coincide.engine.join.pair_arguments import EVENT
from coincide.engine.join.shifts import ShiftPlan, check_shifted
from coincide.engine.join.spec import JoinSpec
from coincide.engine.reports.emptiness import Evidence, evidence_of, explain_emptiness, highest
from coincide.engine.reports.key_overlap import KeyOverlap
from coincide.model.errors import ConditionError, brief
from coincide.model.sides import SIDES

if TYPE_CHECKING:
    import altair as alt


Say = Callable[[str], None]


class TableExploration:
    """An exploration of two tables, or of one that is joined with itself.

    Everything that can be known without the rows is checked when it is made.
    """

    def __init__(self, tables: Sequence[pa.Table], arguments: ExploreArguments) -> None:
        join = arguments.join.settled(tables[0].schema, tables[-1].schema)
        keys = join.keys, join.right_keys
        schemas = with_like_keys([table.schema for table in tables], *keys)
        self._tables = [as_schema(*each) for each in zip(tables, schemas, keys, strict=False)]
        self._arguments = arguments
        self._plan = plan_tables(schemas[0], schemas[-1], join)
        self._spec = at_confidence(self._plan.spec, LEAST_CONFIDENCE)
        self._shifts = ShiftPlan.of(join.shifts, self._spec, self._plan.tick)

    def explore(self, say: Say = lambda text: None) -> Exploration:
        """Look at all candidates."""
        plan = self._plan
        left, right, rows = self._read()
        if self._shifts is not None:
            check_shifted(self._shifts, self._spec, left, right)
        backend = load_task_backend(plan.spec.backend)
        say("counting candidates")
        candidates = Candidates(left, right, plan.spec, backend)
        number = candidates.number
        some, sample = sampled(left, number, self._arguments.most_pairs)
        if not sample.is_all:
            candidates = Candidates(some, right, plan.spec, backend)
        seen = _looked_at(candidates, some, right, plan, say)
        accidental = [
            sample.scaled(_steps(Candidates(some, right, spec, backend), say))
            for spec in _moved(self._shifts, say)
        ]
        say("counting partners")
        partners = partner_table(left, right, plan.spec, self._arguments.confidences, backend)
        steps = sample.scaled(seen.steps)
        delays = sample.scaled(seen.delays)
        return Exploration(
            histogram_table(steps), curve_table(steps, accidental), partners,
            seen.grid.table(delays), int(delays[-1]), number, sample, rows,
            parts=seen.parts, delay_step=seen.grid.step, spec=plan.spec,
            confidences=tuple(self._arguments.confidences),
            shifts=() if self._shifts is None else tuple(map(str, self._shifts.given)),
            **self._evidence(left, right, number),
        )  # fmt: skip

    def _read(self) -> tuple[Side, Side, tuple[SideCounts, ...]]:
        """Both sides, and what the rows of each table were."""
        if self._plan.spec.is_one_stream:
            left, right, counts = self._plan.read_stream(self._tables[0])
            # Of a sample of the stream, too, it is known who is the earlier one.
            ranks = np.arange(len(left))
            return replace(left, ranks=ranks), replace(right, ranks=ranks), (counts,)
        read = [self._plan.read(side, table) for side, table in enumerate(self._tables)]
        return read[0][0], read[1][0], tuple(counts for _, counts in read)

    def _evidence(self, left: Side, right: Side, number: int) -> dict[str, Any]:
        """What is known of the sides, and why there is no candidate, if so."""
        plan = self._plan
        scales = [times.scales[0] for times in plan.times]
        own, other = evidence_of(left, scales[0]), evidence_of(right, scales[1])
        is_one = plan.spec.is_one_stream
        keys = None if is_one else plan.key_overlap(left, right)
        best = None
        if own.events and other.events:
            best = highest(plan.spec.pairs, own, other, plan.spec.window)[0]
        why = () if number else explain_emptiness(own, other, self._spec, keys).lines
        return {
            "evidence": (own,) if is_one else (own, other), "keys": keys,
            "highest_probability": best, "why_none": why,
        }  # fmt: skip


@dataclass(frozen=True)
class _Seen:
    """What all candidates have been counted into."""

    parts: DayParts
    grid: DelayGrid
    steps: np.ndarray
    delays: np.ndarray


def _looked_at(candidates: Candidates, left: Side, right: Side, plan: TablePlan, say: Say) -> _Seen:
    parts = DayParts.of(left, plan.tick)
    grid = DelayGrid.of(left, right, plan.spec, parts.parts(left))

    def tally(pairs: Pairs) -> np.ndarray:
        return np.concatenate([steps_of(pairs), grid.counts(pairs)])

    counts = candidates.tallied(tally, _telling(candidates, say))
    if counts is None:
        counts = np.zeros(STEPS + 1 + PARTS * grid.bins + 1, np.int64)
    return _Seen(parts, grid, counts[: STEPS + 1], counts[STEPS + 1 :])


def _telling(candidates: Candidates, say: Say) -> Callable[[int], None]:
    return lambda seen: say(f"looking at candidates: {seen:,} of {candidates.number:,}")


def _steps(candidates: Candidates, say: Say) -> np.ndarray:
    counts = candidates.tallied(steps_of, _telling(candidates, say))
    return np.zeros(STEPS + 1, np.int64) if counts is None else counts


def _moved(shifts: ShiftPlan | None, say: Say) -> Sequence[Any]:
    if shifts is None:
        return ()
    say("counting accidental pairs")
    return shifts.specs


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
        from coincide.engine.exploration.charts import charts_of

        return charts_of(self)

    def to_html(self, command: str | None = None) -> str:
        """A page with all charts, which needs no network and no other file.

        Parameters
        ----------
        command : str, optional
            What made it, to be told on the page.
        """
        from coincide.engine.exploration.charts import page_of

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
        from coincide.engine.exploration.charts import save

        save(self, os.fspath(path), overwrite, command)
