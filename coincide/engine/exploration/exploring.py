"""`explore_tables`: what a join would find at any confidence, and pages and pictures of it."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from coincide.engine.accidental.pairs import ShiftPlan, Shifts, check_shifted, check_shifts
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.keys import Keys
from coincide.engine.events.sides import Side
from coincide.engine.events.spans import check_no_spans
from coincide.engine.events.timestamp_names import GivenTimes
from coincide.engine.exploration.counting import (
    CONFIDENCES,
    LEAST_CONFIDENCE,
    Candidates,
    DayParts,
    DelayGrid,
    ExplorationCounts,
    Pairs,
    Say,
    at_confidence,
    curve_table,
    histogram_table,
    match_table,
    sampled,
    steps_of,
)
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import (
    correlate_tables,
    given_tables,
    plan_tables,
    with_known_columns,
)
from coincide.engine.join.pair_arguments import GivenWindow, window_of
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.join.timing import JoinSpec
from coincide.engine.reports.emptiness import (
    evidence_of,
    explain_emptiness,
    highest,
)
from coincide.engine.reports.join_report import side_warnings
from coincide.engine.reports.warnings import warn, warn_of_losses
from coincide.model.condition import (
    Confidence,
    TimingCondition,
    Within,
    checked_confidence,
)
from coincide.model.docstrings import documented
from coincide.model.errors import ConditionError, NoPairsWarning, argument, brief, marked
from coincide.model.options import Backend, CorrelateOptions, check_count, check_no_most

if TYPE_CHECKING:
    import altair as alt

_MOST_CONFIDENCES = 6
"""Bars that still fit next to each other."""


@dataclass(frozen=True)
class ExploreArguments:
    """The arguments of `coincide.explore_tables`."""

    join: JoinArguments
    confidences: Sequence[Any] = (0.1, 0.5, 0.9)
    most_pairs: int = 20_000_000
    shifts: Shifts | None = None

    def __post_init__(self) -> None:
        if self.shifts is not None:
            check_shifts(self.shifts)
        if isinstance(self.confidences, str) or not isinstance(self.confidences, Collection):
            raise ConditionError(
                f"{argument('confidences')} must be a sequence of numbers, such as (0.1, 0.5,"
                f" 0.9) (found {brief(self.confidences)})."
            )
        chosen = tuple(sorted({*map(checked_confidence, self.confidences)}))
        if not 1 <= len(chosen) <= _MOST_CONFIDENCES:
            raise ConditionError(
                f"{argument('confidences')} takes 1 to {_MOST_CONFIDENCES} numbers (found"
                f" {len(chosen)})."
            )
        object.__setattr__(self, "confidences", chosen)
        check_no_most(self.join.options, "an exploration counts them. See most_pairs")
        check_count("most_pairs", self.most_pairs)


@dataclass(frozen=True, eq=False, repr=False)
class Exploration(ExplorationCounts):
    """What a join finds at any confidence. Made by `coincide.explore_tables`.

    Parameters
    ----------
    probabilities : pa.Table
        Candidates by probability: ``lower``, ``upper`` and ``pairs``. The last row are those with P = 1.
    curve : pa.Table
        ``confidence``, ``pairs`` that qualify there; with shifts ``accidental_pairs`` and
        ``accidental_spread``. The first row, of confidence 0, are all candidates.
    matches : pa.Table
        ``side`` (of one stream ``event``), ``confidence``, ``matches`` (a number, or a range of them),
        and ``events`` with this number. It counts all events, also if the rest is a sample.
    delays : pa.Table
        For pairs at `confidence`: ``part`` of the day, ``delay`` of the midpoints in ticks, ``pairs``.
    far_delays : int
        Pairs whose delay is beyond all that is shown.
    candidates : int
        Pairs whose probability is at least 1e-9, over all events.
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
        The confidences of `matches`.
    highest_probability : float or None
        No pair of such lengths and such a window reaches more; None where that is not known.
    why_none : tuple of str
        Why there is no candidate, if so.
    shifts : tuple of str
        By which right times were moved to count accidental pairs.
    """

    @property
    def charts(self) -> Mapping[str, alt.Chart]:
        """Altair charts by name: ``probabilities``, ``curve``, ``matches``, ``delays``.

        None where there is no candidate.
        """
        from coincide.engine.exploration.drawing import charts_of

        return charts_of(self)

    def to_html(self, command: str | None = None) -> str:
        """A page with all charts, which needs no network and no other file.

        Parameters
        ----------
        command : str, optional
            The command that made it, for the page.
        """
        from coincide.engine.exploration.drawing import page_of

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
            The command that made it, for the page.

        Raises
        ------
        DataError
            If something is there already, or cannot be written.
        """
        from coincide.engine.exploration.drawing import save

        save(self, os.fspath(path), overwrite, command)


def _at_any_confidence(counts: SideCounts) -> SideCounts:
    """Counts without those that depend on one."""
    return replace(counts, too_long=0, longest_match=0)


class TableExploration:
    """An exploration of two tables, or of one that is joined with itself.

    Everything that can be known without the rows is checked when it is made.
    """

    def __init__(self, tables: Sequence[pa.Table], arguments: ExploreArguments) -> None:
        join, self._tables = with_known_columns(tables, arguments.join)
        self._arguments = arguments
        self._plan = plan_tables(self._tables[0].schema, self._tables[-1].schema, join)
        self._spec = at_confidence(self._plan.timing, LEAST_CONFIDENCE)
        self._shifts: ShiftPlan | None = None
        if arguments.shifts is not None:
            self._shifts = ShiftPlan.of(arguments.shifts, self._spec, self._plan.tick)

    def explore(self, say: Say = lambda text: None) -> Exploration:
        """Look at all candidates."""
        plan = self._plan
        left, right, rows = self._read()
        if self._shifts is not None:
            check_shifted(self._shifts, self._spec, left, right)
        say("counting candidates")
        candidates = Candidates(left, right, plan.timing)
        number = candidates.number
        some, sample = sampled(left, number, self._arguments.most_pairs)
        if not sample.is_all:
            candidates = Candidates(some, right, plan.timing)
        parts = DayParts.of(some, plan.tick)
        grid = DelayGrid.of(some, right, plan.timing, parts.parts(some))

        def tally(pairs: Pairs) -> np.ndarray:
            return np.concatenate([steps_of(pairs), grid.counts(pairs)])

        counts = candidates.tallied(tally, CONFIDENCES.size + grid.cells + 1, say)
        steps, delays = np.split(sample.scaled(counts), [CONFIDENCES.size])
        shifts = self._shifts
        accidental = []
        for spec in () if shifts is None else shifts.specs:
            say("counting accidental pairs")
            assert isinstance(spec, JoinSpec)
            moved = Candidates(some, right, spec)
            accidental.append(sample.scaled(moved.tallied(steps_of, CONFIDENCES.size, say)))
        say("counting matches")
        confidences = tuple(self._arguments.confidences)
        return Exploration(
            histogram_table(steps), curve_table(steps, accidental),
            match_table(left, right, plan.timing, confidences),
            grid.table(delays), int(delays[-1]), number, sample, rows, parts=parts,
            delay_step=grid.step, spec=plan.timing, confidences=confidences,
            shifts=() if shifts is None else tuple(map(str, shifts.given)),
            **self._evidence(left, right, number),
        )  # fmt: skip

    def _read(self) -> tuple[Side, Side, tuple[SideCounts, ...]]:
        """Both sides, and what the rows of each table were."""
        if self._plan.spec.is_one_stream:
            left, right, counts = self._plan.read_stream(self._tables[0])
            # A sample of the stream, too, knows who is the earlier one.
            ranks = np.arange(len(left))
            rows = (_at_any_confidence(counts),)
            return replace(left, ranks=ranks), replace(right, ranks=ranks), rows
        read = [self._plan.read(side, table) for side, table in enumerate(self._tables)]
        return read[0][0], read[1][0], tuple(_at_any_confidence(counts) for _, counts in read)

    def _evidence(self, left: Side, right: Side, number: int) -> dict[str, Any]:
        """What is known of the sides, and why there is no candidate, if so."""
        plan = self._plan
        scales = [times.scales[0] for times in plan.times]
        own, other = evidence_of(left, scales[0]), evidence_of(right, scales[1])
        is_one = plan.spec.is_one_stream
        keys = None if is_one else plan.key_overlap(left, right)
        best = None
        if own.events and other.events:
            best = highest(plan.spec.pairs, own, other, plan.timing.window)[0]
        why = () if number else explain_emptiness(own, other, self._spec, keys).lines
        return {
            "evidence": (own,) if is_one else (own, other), "keys": keys,
            "highest_probability": best, "why_none": why,
        }  # fmt: skip


@documented(correlate_tables)
def explore_tables(
    left: Any,
    right: Any = None,
    *,
    within: GivenWindow,
    left_time: GivenTimes = ("min_time", "max_time"),
    right_time: GivenTimes = ("min_time", "max_time"),
    by: Keys = (),
    where: GivenWhere = None,
    confidence: Confidence = 0.5,
    confidences: Sequence[Confidence] = (0.1, 0.5, 0.9),
    shifts: Shifts | None = None,
    backend: Backend = "auto",
    options: CorrelateOptions = CorrelateOptions(),
    most_pairs: int = 20_000_000,
) -> Exploration:
    """Show what a join would find at any confidence, to choose one by.

    Looks at all candidates, the pairs of a probability of at least 1e-9, run by run: memory is taken for
    the rows and for a few runs of pairs, however many candidates there are.

    Parameters
    ----------
    left, right : pa.Table, whatever offers Arrow's C stream, dict of arrays, list of dicts, or path
        As in `coincide.correlate_tables`. Ids are not needed.
    within : (lo, hi), one duration for both, or what `coincide.within` and `coincide.mutual_deadline` make
        The window on T_right - T_left: durations.
    left_time, right_time, by, where, backend, options
        As in `coincide.correlate_tables`.
    confidence : float or str
        At which delays are shown, such as 0.9 or ``"90%"``.
    confidences : sequence of float or str
        At which matches are counted by event; at most six.
    shifts : sequence of int and str, optional
        Durations by which right times are moved, such as ``("30s", "-30s", "47s")``, to learn how many
        pairs chance alone makes, at each confidence. Each must be longer than the window.
    most_pairs : int
        With more candidates, left events are drawn at random that have about `most_pairs` of them, and
        numbers of pairs are scaled up. `Exploration.sample` tells.

    Returns
    -------
    Exploration
        Tables of counts, `Exploration.charts`, and `Exploration.save` for a page or pictures.

    Raises
    ------
    SchemaError, ConditionError, DataError, BackendError
        As `coincide.correlate_tables`.

    Warns
    -----
    DroppedRowsWarning, UnmatchableRowsWarning, RoundedTimesWarning, NoPairsWarning, ShortShiftsWarning

    Examples
    --------
    >>> explore_tables(picks, others, within=("-250ms", "250ms"), by="station").save("picks.html")
    """
    cure = "Name one column of each side, such as the start."
    check_no_spans("explore_tables", cure, within, left_time, right_time)
    window = window_of(within)
    check_both_ends(window)
    join = JoinArguments(
        TimingCondition(window, checked_confidence(confidence)),
        left_time=left_time, right_time=right_time,
        by=by, left_columns=(), right_columns=(), probability=True,
        backend=backend, options=options, where=where, is_one_stream=right is None,
    )  # fmt: skip
    arguments = ExploreArguments(join, confidences, most_pairs, shifts)
    found = TableExploration(given_tables(left, right, join), arguments).explore()
    _warn_of(found)
    return found


def check_both_ends(window: Within) -> None:
    """Refuse a window whose pairs may be any distance apart."""
    if window.is_open:
        raise ConditionError(
            f"an exploration counts all pairs of a window, which has two ends then (found {window})."
            f" Give both, such as {argument('within', ('-1h', '0s'))}."
        )


def _warn_of(found: Exploration) -> None:
    """Warn as a join of rows that were left out, and of no candidate."""
    for side, counts, evidence in zip(found.sides, found.rows, found.evidence, strict=True):
        warn_of_losses(side, counts.rows, side_warnings(counts, evidence.scale.tick))
    if found.why_none and all(counts.rows for counts in found.rows):
        warn(f"no pair could qualify: {'; '.join(map(marked, found.why_none))}.", NoPairsWarning)
