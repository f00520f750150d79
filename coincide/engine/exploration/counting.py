"""What a join would find at any confidence: all pairs that could qualify, counted in one pass.

By probability, by confidence, by the number of matches, and by delay and time of day.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.sides import Side
from coincide.engine.events.ticks import time_words
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.join.emission import Emission, MakeBatch
from coincide.engine.join.pair_arguments import EVENT
from coincide.engine.join.timing import JoinSpec, TimingPairing
from coincide.engine.reports.emptiness import (
    Evidence,
    KeyOverlap,
)
from coincide.model.condition import (
    Confidence,
    Window,
    of_percent,
)
from coincide.model.errors import ConditionError, brief
from coincide.model.probability import DECISION_SLACK
from coincide.model.sides import SIDES
from coincide.model.threads import in_order
from coincide.model.units import NANOSECONDS_PER_UNIT, Tick

LEAST_CONFIDENCE = 1e-9
"""A pair of a lower probability is no candidate."""

STEPS = 100
CONFIDENCES = np.arange(STEPS + 1) / STEPS
"""The confidences of the curve; the first stands for all candidates."""
_LIMITS = np.concatenate([[LEAST_CONFIDENCE], CONFIDENCES[1:]]) - DECISION_SLACK
_BARS = 50
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
        return iter(())  # there is no output


def at_confidence(spec: JoinSpec, confidence: float) -> JoinSpec:
    """The join at another confidence, where only pairs are counted."""
    window = Window(spec.window.lo, spec.window.hi, confidence)
    return spec.counted.but(window=window, how="inner", probability=False)


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
    """Left events that have about `most` of all pairs; always the same ones."""
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
    # The number never rises: the last confidence with this many is found by bisection.
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


@dataclass(frozen=True, eq=False, repr=False)
class ExplorationCounts:
    """What was counted, as tables and numbers; `Exploration` says of each what it is, and draws it."""

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
