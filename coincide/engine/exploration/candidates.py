"""All pairs that could qualify, with their probabilities: by confidence, by partners, by time of day."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from coincide.engine.events.sides import Side
from coincide.engine.events.ticks import time_words
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.in_order import in_order
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.emission import Emission, MakeBatch
from coincide.engine.join.emissions import emission_of
from coincide.engine.join.one_stream import of_stream
from coincide.engine.join.pair_arguments import EVENT
from coincide.engine.join.spec import JoinSpec
from coincide.model.condition import TimingCondition, Window
from coincide.model.errors import ConditionError, brief
from coincide.model.probability import DECISION_SLACK
from coincide.model.sides import SIDES
from coincide.model.units import NANOSECONDS_PER_UNIT, Tick

_SEED = 1


class Pairs(NamedTuple):
    """A run of candidates."""

    left: np.ndarray
    right: np.ndarray
    probability: np.ndarray


class Candidates(Emission):
    """The pairs of two sides whose probability is not as good as none."""

    def __init__(self, left: Side, right: Side, spec: JoinSpec, backend: ModuleType) -> None:
        spec = at_confidence(spec, LEAST_CONFIDENCE)
        super().__init__(*of_stream(left, right, spec), pa.schema([]), backend)

    @property
    def number(self) -> int:
        """How many there are."""
        return int(self.join.offsets[-1])

    def tallied(
        self, tally: Callable[[Pairs], np.ndarray], say: Callable[[int], None] = lambda pairs: None
    ) -> np.ndarray | None:
        """What a function counts in each run of pairs, added up; None of no pair.

        Memory is taken for a few runs at a time.
        """
        total, seen = None, 0

        def tallied(run: tuple[int, int]) -> list[tuple[int, np.ndarray]]:
            pairs = self._pairs(*run)
            return [(pairs.left.size, tally(pairs))]

        for size, counts in in_order(tallied, self._filled(), self._spec.threads):
            total = counts if total is None else total + counts
            seen += size
            say(seen)
        return total

    def _filled(self) -> Iterator[tuple[int, int]]:
        offsets = self.join.offsets
        return (run for run in self._runs() if offsets[run[0]] < offsets[run[1]])

    def _pairs(self, start: int, stop: int) -> Pairs:
        join = self.join
        left, right = join.pairs(start, stop, join.left_order, join.right_order)
        probability = self._probabilities(left, right)
        if self._spec.pairs_once:
            # A pair is there from the confidence on that either order reaches.
            of_other_order = self._probabilities_swapped(right, left)
            if (where := self._spec.where) is not None:
                of_other_order *= where.between(self._right, self._left)(right, left)
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


LEAST_CONFIDENCE = 1e-9
"""A pair of a lower probability is no candidate."""

_MOST_CONFIDENCES = 6
"""Bars that still fit beside each other."""


@dataclass(frozen=True)
class ExploreArguments:
    """What is asked of `coincide.explore_tables`."""

    join: JoinArguments
    confidences: Sequence[float] = (0.1, 0.5, 0.9)
    most_pairs: int = 20_000_000

    def __post_init__(self) -> None:
        if isinstance(self.confidences, str) or not isinstance(self.confidences, Collection):
            raise ConditionError(
                "confidences must be a sequence of numbers, such as (0.1, 0.5, 0.9); found"
                f" {brief(self.confidences)}"
            )
        for each in self.confidences:
            TimingCondition(self.join.condition.predicate, each)
        chosen = tuple(sorted({float(each) for each in self.confidences}))
        if not 1 <= len(chosen) <= _MOST_CONFIDENCES:
            raise ConditionError(
                f"confidences takes 1 to {_MOST_CONFIDENCES} numbers; found {len(chosen)}"
            )
        object.__setattr__(self, "confidences", chosen)
        if isinstance(self.most_pairs, bool) or not (
            isinstance(self.most_pairs, int) and self.most_pairs >= 1
        ):
            raise ConditionError(
                f"most_pairs must be a whole number of at least 1; found {brief(self.most_pairs)}"
            )


STEPS = 100
CONFIDENCES = np.array([i / STEPS for i in range(STEPS + 1)])
"""Of the curve; the first stands for all candidates."""
_LIMITS = np.concatenate([[LEAST_CONFIDENCE], CONFIDENCES[1:]]) - DECISION_SLACK
_BARS = 50


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
    """The widest range of confidences between which the number of pairs changes by at most `tolerance`.

    None where no range is 0.1 wide, or there are no pairs.
    """
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


_LEAST = np.array([0, 1, 2, 3, 4, 5, 6, 11, 101, 1001])
LABELS = ("0", "1", "2", "3", "4", "5", "6–10", "11–100", "101–1000", "> 1000")
"""Numbers of partners, in groups."""


def partner_table(
    left: Side, right: Side, spec: JoinSpec, confidences: Sequence[float], backend: ModuleType
) -> pa.Table:
    """Events by the number of their partners. Nothing but numbers of pairs is computed."""
    rows: list[dict[str, Any]] = []
    for side, partners in _ways(left, right, spec, backend):
        for confidence in confidences:
            counts = partners(confidence)
            groups = np.searchsorted(_LEAST, counts, side="right") - 1
            events = np.bincount(groups, minlength=_LEAST.size).tolist()
            rows += [
                {"side": side, "confidence": confidence, "partners": label, "events": number}
                for label, number in zip(LABELS, events, strict=True)
            ]
    kinds = [pa.string(), pa.float64(), pa.string(), pa.int64()]
    names = ("side", "confidence", "partners", "events")
    return pa.Table.from_pylist(rows, pa.schema(list(zip(names, kinds, strict=True))))


def _ways(
    left: Side, right: Side, spec: JoinSpec, backend: ModuleType
) -> list[tuple[str, Callable[[float], np.ndarray]]]:
    """For each side what counts the partners of its events at a confidence."""

    def join_of(own: Side, other: Side, spec: JoinSpec, confidence: float) -> Any:
        each = at_confidence(spec, confidence)
        return emission_of(own, other, each, pa.schema([]), backend).join

    if spec.is_one_stream:
        others = spec.but(pairs_once=False)
        return [(EVENT, lambda ct: join_of(left, right, others, ct).counts)]
    if spec.where is not None:
        # The condition knows which side is left.
        return [
            (SIDES[0], lambda ct: join_of(left, right, spec, ct).counts),
            (SIDES[1], lambda ct: _of_right(join_of(left, right, spec, ct), spec.batch_pairs)),
        ]
    return [
        (SIDES[0], lambda ct: join_of(left, right, spec, ct).counts),
        (SIDES[1], lambda ct: join_of(right, left, mirrored(spec), ct).counts),
    ]


def _of_right(join: Any, batch_pairs: int) -> np.ndarray:
    """Partners of each right event, in order of their positions: int64 array, shape (n_right,)."""
    positions = np.arange(join.right_order.size)
    found = np.zeros(positions.size, np.int64)
    for start, stop in join.chunks(batch_pairs):
        right = join.partners(start, stop, positions)
        if right.size:
            first = int(right.min())
            counts = np.bincount(right - first)
            found[first : first + counts.size] += counts
    return found


def mirrored(spec: JoinSpec) -> JoinSpec:
    """The join seen from the right side."""
    return spec.but(window=spec.window.mirrored(), models=spec.models[::-1])


PARTS = 24
_MOST_BINS = 50
_SHORTEST_DAY = 6
"""Hours; a shorter recording has too few hours of the day to compare."""


@dataclass(frozen=True)
class DayParts:
    """Into which of 24 parts a left event falls."""

    size: int
    origin: int
    is_hours: bool

    @classmethod
    def of(cls, side: Side, tick: Tick) -> DayParts:
        """Hours of the day, or of times without a unit or of few hours parts of their range."""
        middles = _middles(side)
        first, last = (int(middles.min()), int(middles.max())) if middles.size else (0, 0)
        hour = tick.nanoseconds and NANOSECONDS_PER_UNIT["h"] / tick.nanoseconds
        if hour and hour == int(hour) and last - first >= _SHORTEST_DAY * hour:
            return cls(int(hour), 0, True)
        return cls((last - first) // PARTS + 1, first, False)

    def parts(self, side: Side) -> np.ndarray:
        """The part of each event: int64 array, shape (n,)."""
        parts = (_all_middles(side) - self.origin) // self.size
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
        if spec.has_histograms or window.confidence < 0.5:
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

    def counts(self, pairs: Pairs) -> np.ndarray:
        """Pairs in each part of the day and bin, and last those of which the delay is in none."""
        enough = pairs.probability >= self.least
        left, right = pairs.left[enough], pairs.right[enough]
        bins = _bin(self.right[right] - self.left[left], self.step) - self.first
        cells = self.parts[left] * self.bins + bins
        outside = PARTS * self.bins
        cells[(bins < 0) | (bins >= self.bins)] = outside
        return np.bincount(cells, minlength=outside + 1)

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


def _all_middles(side: Side) -> np.ndarray:
    return _doubled(side) >> 1


def _middles(side: Side) -> np.ndarray:
    """Of the events that can match."""
    middles = _all_middles(side)
    return middles if side.matchable is None else middles[side.matchable]
