"""What a join would find at any confidence: all pairs that could qualify, counted in one pass.

By probability, by confidence, by the number of matches, and by delay and time of day.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.keys import Keys
from coincide.engine.events.sides import Side
from coincide.engine.events.spans import check_no_spans
from coincide.engine.events.ticks import time_words
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.events.timestamp_names import GivenTimes
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.emission import Emission, MakeBatch
from coincide.engine.join.join import (
    correlate_tables,
    given_tables,
    plan_tables,
    with_known_columns,
)
from coincide.engine.join.pair_arguments import EVENT, GivenWindow, window_of
from coincide.engine.join.pair_filter import GivenWhere
from coincide.engine.join.shifts import ShiftPlan, check_shifted
from coincide.engine.join.timing import JoinSpec, TimingPairing
from coincide.engine.reports.emptiness import (
    Evidence,
    KeyOverlap,
    evidence_of,
    explain_emptiness,
    highest,
)
from coincide.engine.reports.join_report import side_warnings
from coincide.engine.reports.warnings import warn, warn_of_losses
from coincide.model.condition import (
    Confidence,
    TimingCondition,
    Window,
    checked_confidence,
    of_percent,
)
from coincide.model.docstrings import documented
from coincide.model.errors import ConditionError, NoPairsWarning, argument, brief, marked
from coincide.model.options import Backend, CorrelateOptions, check_count
from coincide.model.probability import DECISION_SLACK
from coincide.model.sides import SIDES
from coincide.model.threads import in_order
from coincide.model.units import NANOSECONDS_PER_UNIT, Tick

if TYPE_CHECKING:
    import altair as alt

LEAST_CONFIDENCE = 1e-9
"""A pair of a lower probability is no candidate."""

STEPS = 100
CONFIDENCES = np.arange(STEPS + 1) / STEPS
"""Of the curve; the first stands for all candidates."""
_LIMITS = np.concatenate([[LEAST_CONFIDENCE], CONFIDENCES[1:]]) - DECISION_SLACK
_BARS = 50
_MOST_CONFIDENCES = 6
"""Bars that still fit beside each other."""
_SEED = 1
LABELS = ("0", "1", "2", "3", "4", "5", "6–10", "11–100", "101–1000", "> 1000")
"""Numbers of matches, in groups."""
_LEAST = np.array([0, 1, 2, 3, 4, 5, 6, 11, 101, 1001])
PARTS = 24
_MOST_BINS = 50
_SHORTEST_DAY = 6
"""Hours; a shorter recording has too few hours of the day to compare."""
_DWARFED = 3
"""A bar as many times as high as any other has a scale of its own."""

Say = Callable[[str], None]


class Pairs(NamedTuple):
    """A run of candidates."""

    left: np.ndarray
    right: np.ndarray
    probability: np.ndarray


class Candidates(Emission):
    """The pairs of two sides whose probability is not as good as none."""

    pairing: TimingPairing

    def __init__(self, left: Side, right: Side, spec: JoinSpec) -> None:
        pairing = at_confidence(spec, LEAST_CONFIDENCE).pairing(left, right)
        super().__init__(pairing, pa.schema([]))

    @property
    def number(self) -> int:
        """How many there are."""
        return int(self.join.offsets[-1])

    def tallied(self, tally: Callable[[Pairs], np.ndarray], size: int, say: Say) -> np.ndarray:
        """What a function counts in each run of pairs, added up: int64 array, shape (size,)."""
        # Memory is taken for a few runs at a time.
        total, seen = np.zeros(size, np.int64), 0

        def tallied(run: tuple[int, int]) -> list[tuple[int, np.ndarray]]:
            pairs = self._pairs(*run)
            return [(pairs.left.size, tally(pairs))]

        offsets = self.join.offsets
        runs = (run for run in self._runs() if offsets[run[0]] < offsets[run[1]])
        for pairs, counts in in_order(tallied, runs, self._spec.threads):
            total += counts
            seen += pairs
            say(f"checking candidates: {seen:,} of {self.number:,}")
        return total

    def _pairs(self, start: int, stop: int) -> Pairs:
        join = self.join
        left, right = join.pairs(start, stop, join.left_order, join.right_order)
        probability = self.pairing.probabilities(left, right)
        if self._spec.pairs_once:
            # A pair is there from the confidence on that either order reaches.
            of_other_order = self.pairing.probabilities_swapped(right, left)
            if (where := self._spec.where) is not None:
                meets = where.between(self._right, self._left, self.pairing.of_condition_swapped)
                of_other_order *= meets(right, left)
            probability = np.maximum(probability, of_other_order)
        return Pairs(left, right, probability)

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        return iter(())  # nothing is handed out


def at_confidence(spec: JoinSpec, confidence: float) -> JoinSpec:
    """The join at another confidence, of which only pairs are counted."""
    window = Window(spec.window.lo, spec.window.hi, confidence)
    return spec.but(window=window, how="inner", emit="counts", probability=False)


@dataclass(frozen=True)
class Sample:
    """Which left events were looked at."""

    events: int
    of: int

    @property
    def factor(self) -> float:
        """By which what is counted in the sample is to be multiplied."""
        return self.of / self.events if self.events else 1.0

    @property
    def is_all(self) -> bool:
        """Whether nothing was left out."""
        return self.events == self.of

    def scaled(self, counts: np.ndarray) -> np.ndarray:
        """Counts of all from counts of the sample: int64 array of the same shape."""
        if self.is_all:
            return counts
        return np.rint(counts * self.factor).astype(np.int64)


def sampled(left: Side, pairs: int, most: int) -> tuple[Side, Sample]:
    """So many left events that they have about `most` of all pairs; always the same ones."""
    if pairs <= most:
        return left, Sample(len(left), len(left))
    events = max(1, len(left) * most // pairs)
    rows = np.random.default_rng(_SEED).choice(len(left), events, replace=False)
    rows.sort()
    return left.rows(rows), Sample(events, len(left))


def steps_of(pairs: Pairs) -> np.ndarray:
    """Candidates by the highest of `CONFIDENCES` that they reach: int64 array, shape (101,)."""
    reached = np.searchsorted(_LIMITS, pairs.probability, side="right") - 1
    # What the table of satisfaction times lets through may lie below by a rounding error.
    return np.bincount(np.maximum(reached, 0), minlength=_LIMITS.size)


def histogram_table(steps: np.ndarray) -> pa.Table:
    """The histogram of P over candidates."""
    per_bar = STEPS // _BARS
    lower = CONFIDENCES[::per_bar]
    upper = np.append(lower[1:], 1.0)
    pairs = np.append(steps[:-1].reshape(_BARS, per_bar).sum(axis=1), steps[-1])
    return pa.table({"lower": lower, "upper": upper, "pairs": pairs})


def curve_table(steps: np.ndarray, accidental: Sequence[np.ndarray]) -> pa.Table:
    """Pairs by confidence."""
    columns = {"confidence": pa.array(CONFIDENCES), "pairs": pa.array(_at_least(steps))}
    if accidental:
        by_shift = np.array([_at_least(each) for each in accidental], float).T.tolist()
        several = len(accidental) > 1
        spread = [stdev(each) if several else None for each in by_shift]
        columns["accidental_pairs"] = pa.array(map(fmean, by_shift), pa.float64())
        columns["accidental_spread"] = pa.array(spread, pa.float64())
    return pa.table(columns)


def _at_least(steps: np.ndarray) -> np.ndarray:
    return np.cumsum(steps[::-1])[::-1].copy()


def flat_stretch(curve: pa.Table, tolerance: float = 0.01) -> tuple[float, float] | None:
    """The widest range of confidences between which the number of pairs changes by at most `tolerance`."""
    # None where no range is 0.1 wide, or there are no pairs.
    pairs = curve["pairs"].to_numpy()[1:]
    if not pairs[0]:
        return None
    # The number never rises: the last confidence with so many is found by bisection.
    least = np.ceil(pairs * (1 - tolerance)).astype(np.int64)
    stops = np.searchsorted(-pairs, -np.maximum(least, 1), side="right") - 1
    widths = stops - np.arange(stops.size)
    start = int(np.argmax(widths))
    if widths[start] < STEPS // 10:
        return None
    return float(CONFIDENCES[1 + start]), float(CONFIDENCES[1 + stops[start]])


def match_table(left: Side, right: Side, spec: JoinSpec, confidences: Sequence[float]) -> pa.Table:
    """Events by the number of their matches. Nothing but numbers of pairs is computed."""
    rows: dict[str, list[tuple[str, float, str, int]]] = {}
    for confidence in confidences:
        for side, counts in _matches(left, right, at_confidence(spec, confidence)):
            groups = np.searchsorted(_LEAST, counts, side="right") - 1
            events = np.bincount(groups, minlength=_LEAST.size).tolist()
            told = zip(LABELS, events, strict=True)
            rows.setdefault(side, []).extend((side, confidence, *each) for each in told)
    columns = zip(*chain.from_iterable(rows.values()), strict=True)
    kinds = [pa.string(), pa.float64(), pa.string(), pa.int64()]
    return pa.table(
        [pa.array(*each) for each in zip(columns, kinds, strict=True)],
        ["side", "confidence", "matches", "events"],
    )


def _matches(left: Side, right: Side, spec: JoinSpec) -> Iterator[tuple[str, np.ndarray]]:
    """For each side the number of matches of each of its events: int64 array, shape (n,)."""
    if spec.is_one_stream:
        yield EVENT, spec.but(pairs_once=False).pairing(left, right).join.counts
        return
    join = spec.pairing(left, right).join
    yield SIDES[0], join.counts
    if spec.where is None:
        mirrored = spec.but(window=spec.window.mirrored(), models=spec.models[::-1])
        yield SIDES[1], mirrored.pairing(right, left).join.counts
        return
    # The condition knows which side is left.
    positions = np.arange(join.right_order.size)
    counts = np.zeros(positions.size, np.int64)
    for start, stop in join.chunks(spec.batch_pairs):
        np.add.at(counts, join.matches(start, stop, positions), 1)
    yield SIDES[1], counts


@dataclass(frozen=True)
class DayParts:
    """Into which of 24 parts a left event falls."""

    size: int
    origin: int
    is_hours: bool

    @classmethod
    def of(cls, side: Side, tick: Tick) -> DayParts:
        """Hours of the day, or of times without a unit or of few hours parts of their range."""
        middles = _doubled(side) >> 1
        if side.matchable is not None:
            middles = middles[side.matchable]
        first, last = (int(middles.min()), int(middles.max())) if middles.size else (0, 0)
        hour = tick.nanoseconds and NANOSECONDS_PER_UNIT["h"] / tick.nanoseconds
        if hour and hour == int(hour) and last - first >= _SHORTEST_DAY * hour:
            return cls(int(hour), 0, True)
        return cls((last - first) // PARTS + 1, first, False)

    def parts(self, side: Side) -> np.ndarray:
        """The part of each event: int64 array, shape (n,)."""
        parts = ((_doubled(side) >> 1) - self.origin) // self.size
        return parts % PARTS if self.is_hours else np.clip(parts, 0, PARTS - 1)

    def begin(self, part: int, scale: TimeScale) -> str:
        """Where a part begins, in words."""
        if self.is_hours:
            return f"{part:02}:00"
        words = time_words(self.origin + part * self.size, scale)
        is_date = scale.column.family.startswith("timestamp")
        if is_date and self.size >= scale.tick.count("1s"):
            whole, point, _ = words.partition(".")
            return whole + "Z" * (bool(point) and words.endswith("Z"))
        return words

    def title(self, scale: TimeScale, own: str = "left") -> str:
        """What the parts are, for an axis; `own` is what the left event is called."""
        if not self.is_hours:
            return f"time of the {own} event, in 24 equal parts"
        zone = {"timestamp": "UTC", "timestamp_ntz": "as its clock shows it"}
        return (
            f"hour of the day of the {own} event, {zone.get(scale.column.family, 'counted from 0')}"
        )


@dataclass(frozen=True)
class DelayGrid:
    """Bins of delays, and what is needed to put pairs into them."""

    step: int
    first: int
    last: int
    least: float
    parts: np.ndarray
    left: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, left: Side, right: Side, spec: JoinSpec, parts: np.ndarray) -> DelayGrid:
        """Bins for the window, and for as much beyond it as midpoints of such pairs may lie."""
        window = spec.window
        beyond = 0
        if not spec.are_symmetric or window.confidence < 0.5:
            longest = [int(side.lengths.max(initial=0)) for side in (left, right)]
            beyond = (sum(longest) + 1) // 2
            beyond = min(beyond, window.width) if window.width else beyond
        lo, hi = window.lo - beyond, window.hi + beyond
        step = _round_up(max(1, -((lo - hi) // (_MOST_BINS - 1))))
        return cls(
            step, _bin(2 * lo, step), _bin(2 * hi, step), window.confidence - DECISION_SLACK, parts,
            _doubled(left), _doubled(right),
        )  # fmt: skip

    @property
    def bins(self) -> int:
        """How many there are."""
        return self.last - self.first + 1

    @property
    def cells(self) -> int:
        """Bins of all parts of the day."""
        return PARTS * self.bins

    def counts(self, pairs: Pairs) -> np.ndarray:
        """Pairs in each part of the day and bin, and last those of which the delay is in none."""
        enough = pairs.probability >= self.least
        left, right = pairs.left[enough], pairs.right[enough]
        bins = _bin(self.right[right] - self.left[left], self.step) - self.first
        cells = self.parts[left] * self.bins + bins
        cells[(bins < 0) | (bins >= self.bins)] = self.cells
        return np.bincount(cells, minlength=self.cells + 1)

    def table(self, counts: np.ndarray) -> pa.Table:
        """The cells that hold pairs."""
        cells = np.flatnonzero(counts[:-1])
        delay = (cells % self.bins + self.first) * self.step
        return pa.table({"part": cells // self.bins, "delay": delay, "pairs": counts[cells]})


def _round_up(size: int) -> int:
    """To 1, 2 or 5 times a power of ten."""
    power = 10 ** (len(str(size)) - 1)
    return next(n * power for n in (1, 2, 5, 10) if n * power >= size)


def _bin(doubled: Any, step: int) -> Any:
    """Number of the bin of a doubled delay: it reaches from half a step below a multiple to above it."""
    return (doubled + step) // (2 * step)


def _doubled(side: Side) -> np.ndarray:
    return side.max_time + side.min_time


@dataclass(frozen=True)
class ExploreArguments:
    """What is asked of `coincide.explore_tables`."""

    join: JoinArguments
    confidences: Sequence[Any] = (0.1, 0.5, 0.9)
    most_pairs: int = 20_000_000

    def __post_init__(self) -> None:
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
        check_count("most_pairs", self.most_pairs)


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

    probabilities: pa.Table
    curve: pa.Table
    matches: pa.Table
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
        """Whether so few pairs have P < 1 that they would not show on one scale with the others."""
        *others, certain = self.probabilities["pairs"].to_pylist()
        return 0 < _DWARFED * max(others) < certain

    def pairs_at(self, confidence: Confidence) -> int:
        """Pairs that qualify at a confidence of whole hundredths, as `curve` has them.

        Raises
        ------
        ConditionError
            If the curve has no such confidence.
        """
        confidence, steps = of_percent(confidence), self.curve["confidence"].to_pylist()
        if confidence not in steps:
            raise ConditionError(
                "the curve has the confidences 0.01, 0.02, ... 1, and 0 for all candidates (found"
                f" {brief(confidence)}). Use one of these."
            )
        return int(self.curve["pairs"][steps.index(confidence)].as_py())

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
        self._spec = at_confidence(self._plan.spec, LEAST_CONFIDENCE)
        self._shifts = ShiftPlan.of(join.shifts, self._spec, self._plan.tick)

    def explore(self, say: Say = lambda text: None) -> Exploration:
        """Look at all candidates."""
        plan = self._plan
        left, right, rows = self._read()
        if self._shifts is not None:
            check_shifted(self._shifts, self._spec, left, right)
        say("counting candidates")
        candidates = Candidates(left, right, plan.spec)
        number = candidates.number
        some, sample = sampled(left, number, self._arguments.most_pairs)
        if not sample.is_all:
            candidates = Candidates(some, right, plan.spec)
        parts = DayParts.of(some, plan.tick)
        grid = DelayGrid.of(some, right, plan.spec, parts.parts(some))

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
            match_table(left, right, plan.spec, confidences),
            grid.table(delays), int(delays[-1]), number, sample, rows, parts=parts,
            delay_step=grid.step, spec=plan.spec, confidences=confidences,
            shifts=() if shifts is None else tuple(map(str, shifts.given)),
            **self._evidence(left, right, number),
        )  # fmt: skip

    def _read(self) -> tuple[Side, Side, tuple[SideCounts, ...]]:
        """Both sides, and what the rows of each table were."""
        if self._plan.spec.is_one_stream:
            left, right, counts = self._plan.read_stream(self._tables[0])
            # Of a sample of the stream, too, it is known who is the earlier one.
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
            best = highest(plan.spec.pairs, own, other, plan.spec.window)[0]
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
    case_fold: bool = False,
    where: GivenWhere = None,
    confidence: Confidence = 0.5,
    confidences: Sequence[Confidence] = (0.1, 0.5, 0.9),
    shifts: Sequence[int | str] | None = None,
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
    left_time, right_time, by, case_fold, where, backend, options
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
    join = JoinArguments(
        TimingCondition(window_of(within), checked_confidence(confidence)),
        left_time=left_time, right_time=right_time,
        by=by, case_fold=case_fold, left_columns=(), right_columns=(), probability=True,
        backend=backend, options=options, shifts=shifts, where=where, is_one_stream=right is None,
    )  # fmt: skip
    arguments = ExploreArguments(join, confidences, most_pairs)
    found = TableExploration(given_tables(left, right, join), arguments).explore()
    _warn_of(found)
    return found


def _warn_of(found: Exploration) -> None:
    """Warn as a join of rows that were left out, and of no candidate."""
    for side, counts, evidence in zip(found.sides, found.rows, found.evidence, strict=True):
        warn_of_losses(side, counts.rows, side_warnings(counts, evidence.scale.tick))
    if found.why_none and all(counts.rows for counts in found.rows):
        warn(f"no pair could qualify: {'; '.join(map(marked, found.why_none))}.", NoPairsWarning)
