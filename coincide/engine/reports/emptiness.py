"""Why a join finds nothing: what is known of both sides, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.invalid_rows import readable
from coincide.engine.events.rows import is_string
from coincide.engine.events.sides import Side, grouped_events
from coincide.engine.events.span_ends import OPEN_END
from coincide.engine.events.spans import SpanModel
from coincide.engine.events.ticks import length_words, time_words
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.events.timestamps import Bounds, SideModel
from coincide.engine.join.spec import AnySpec
from coincide.model.condition import Window
from coincide.model.errors import Words, argument
from coincide.model.probability import DECISION_SLACK, highest_probability
from coincide.model.sides import SIDES
from coincide.model.timestamps import HistogramEvents, HistogramPairs, IntervalPairs
from coincide.model.units import Tick
from cpu_fallback import event_probabilities

_LIKENESS: tuple[tuple[str, Callable[[pa.Array], pa.Array]], ...] = (
    ("blanks around it", pc.utf8_trim_whitespace),
    ("case", pc.utf8_lower),
    ("- or _", lambda texts: pc.replace_substring_regex(texts, "[-_]", "")),
)
"""What texts may differ in and still mean the same, and what makes them equal."""


@dataclass(frozen=True)
class KeyOverlap:
    """Distinct keys of two sides."""

    names: tuple[str, ...]
    left: int
    right: int
    shared: int
    is_all: bool
    examples: tuple[str, str] | None = None
    alike: tuple[str, str, str] | None = None

    def describe(self) -> str:
        """In words."""
        of = " and ".join(self.names)
        looked_at = "" if self.is_all else " in the sampled rows"
        text = (
            f"the sides share {self.shared or 'no'} key{'s' if self.shared > 1 else ''} ({of}):"
            f" left has {self.left:,}, right {self.right:,}{looked_at}"
        )
        if self.examples:
            text += f", such as {self.examples[0]} and {self.examples[1]}"
        if self.alike:
            text += ". {} and {} differ only in {}. Write both alike".format(*self.alike)
        return text


def key_overlap(
    left: Side,
    right: Side,
    names: Sequence[str],
    *,
    is_all: bool = True,
) -> KeyOverlap | None:
    """Compare the keys of two sides; None without keys."""
    if not names:
        return None
    events = grouped_events(left, right)
    codes, rows = zip(*(np.unique(_known(e.group), return_index=True) for e in events), strict=True)
    codes, rows = zip(
        *(_without_null(*each) for each in zip(codes, rows, strict=True)), strict=True
    )
    own = [np.isin(codes[i], codes[1 - i], invert=True) for i in (0, 1)]
    examples = None
    if all(each.any() for each in own):
        left_row, right_row = (int(rows[i][np.argmax(own[i])]) for i in (0, 1))
        examples = _words(left, left_row), _words(right, right_row)
    return KeyOverlap(
        tuple(names), codes[0].size, codes[1].size, int((~own[0]).sum()), is_all, examples,
        next((a for a in map(_alike, left.keys, right.keys) if a), None),
    )  # fmt: skip


def _known(group: np.ndarray | None) -> np.ndarray:
    assert group is not None  # sides with keys have groups
    return group


def _without_null(codes: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes of keys, without the one of events that match nothing."""
    return codes[codes >= 0], rows[codes >= 0]


def _words(side: Side, row: int) -> str:
    return " ".join(repr(readable(key[row])) for key in side.keys)


def _alike(left: pa.Array, right: pa.Array) -> tuple[str, str, str] | None:
    """Texts of two columns that no row of the other has, but for blanks, case or dashes."""
    if not is_string(left.type):
        return None
    left, right = (pc.unique(column).drop_null() for column in (left, right))
    left, right = (
        mine.filter(pc.invert(pc.is_in(mine, theirs)))
        for mine, theirs in ((left, right), (right, left))
    )
    plain = [left, right]
    for reached, (_, made_equal) in enumerate(_LIKENESS, 1):
        plain = [made_equal(texts) for texts in plain]
        places = pc.index_in(plain[0], plain[1])
        if places.null_count < len(places):
            row = int(np.argmax(places.is_valid().to_numpy(zero_copy_only=False)))
            pair = pa.array([left[row].as_py(), right[places[row].as_py()].as_py()], left.type)
            return repr(pair[0].as_py()), repr(pair[1].as_py()), _differences(pair, reached)
    return None


def _differences(pair: pa.Array, reached: int) -> str:
    """What differs in two texts that some steps make equal."""
    found = []
    for what, made_equal in _LIKENESS[:reached]:
        before, pair = pair, made_equal(pair)
        if not pair.equals(before):
            found.append(what)
    return " and ".join(found)


_NEAR = Fraction(1, 10)
"""Two numbers are about the same if they differ by no more than this share."""
_FACTORS = (10**3, 10**6, 10**9)


@dataclass(frozen=True)
class Evidence:
    """What is known of the events of one side."""

    scale: TimeScale
    events: int
    shortest: int = 0
    first: int = 0
    last: int = 0
    is_all: bool = True
    typical: int | None = None
    empty: int | None = None  # Spans that hold no moment; None where that is not known

    @property
    def words(self) -> str:
        """Its side and times, for a reader."""
        first, last = self.words_of_times
        return f"{self.scale.column.side} {first} to {last}"

    @property
    def words_of_times(self) -> tuple[str, str]:
        """When it begins and ends."""
        last = "no end" if self.last == OPEN_END else time_words(self.last, self.scale)
        return time_words(self.first, self.scale), last

    def words_of_empty(self, model: SideModel) -> str | None:
        """What there is to say of spans that hold no moment."""
        if not (self.empty and isinstance(model, SpanModel)):
            return None
        side = self.scale.column.side
        many = "all" if self.empty == self.events else f"{self.empty:,} of"
        return (
            f"{many} {self.events:,} spans of {side} end where they begin, and with"
            f" {argument('closed', model.closed)} such a span holds no moment: it matches nothing. Use"
            f" {argument('closed', 'both')}, or give them a length"
        )


def evidence_of(side: Side, scale: TimeScale) -> Evidence:
    """What the events of a side in memory tell."""
    high, lengths = side.max_time, side.lengths
    if side.matchable is not None:
        high, lengths = high[side.matchable], lengths[side.matchable]
    if not high.size:
        return Evidence(scale, 0)
    low = high - lengths
    middle = lengths.size // 2
    return Evidence(
        scale, low.size, int(lengths.min()), int(low.min()), int(high.max()),
        typical=int(np.partition(lengths, middle)[middle]),
        empty=int((lengths == 0).sum()) if holds_no_instant(side.model) else None,
    )  # fmt: skip


def holds_no_instant(model: SideModel) -> bool:
    """Whether an event of no length holds no moment: a span without one of its ends."""
    return isinstance(model, SpanModel) and model.closed != "both"


@dataclass(frozen=True)
class NoPairs:
    """Why a join finds nothing."""

    reasons: tuple[str, ...]
    hints: tuple[str, ...]
    highest_probability: float | None = None
    left_times: tuple[str, str] | None = None
    right_times: tuple[str, str] | None = None
    keys: KeyOverlap | None = None
    is_asked_for: bool = False
    nearest_delta: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "reasons", tuple(map(Words, self.reasons)))
        object.__setattr__(self, "hints", tuple(map(Words, self.hints)))

    @property
    def lines(self) -> tuple[str, ...]:
        """All that there is to say, the most telling first."""
        return (*self.reasons, *self.hints)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        values = {**asdict(self), "is_asked_for": self.is_asked_for or None}
        return {name: value for name, value in values.items() if value is not None}


def explain_emptiness(
    left: Evidence,
    right: Evidence,
    spec: AnySpec,
    keys: KeyOverlap | None,
    nearest: NearestMiss | None = None,
) -> NoPairs:
    """What speaks against any pair."""
    window, how = spec.widest, spec.how
    without = [side.scale.column.side for side in (left, right) if not side.events]
    if without:
        reasons = tuple(f"{side} has no row that can match" for side in dict.fromkeys(without))
        return NoPairs(reasons, (), is_asked_for=how == "anti")
    best, hints_of_lengths = highest(spec.pairs, left, right, window)
    lengths = left.shortest, right.shortest, left.typical or 0, right.typical or 0
    if spec.shapes_are_lengths and not any(lengths):
        # Each pair of exact times has a probability of 1 or 0, which says nothing.
        hints_of_lengths = [each for each in hints_of_lengths if each[0]]
    empty = [
        (side.empty == side.events, words)
        for side, model in zip((left, right), spec.models, strict=True)
        if (words := side.words_of_empty(model))
    ]
    found = [
        *dict.fromkeys(empty),
        *hints_of_lengths,
        _of_times(left, right, window),
        *([(keys.is_all and not keys.shared, keys.describe())] if keys else []),
    ]
    reasons = tuple(text for is_reason, text in found if is_reason)
    hints = tuple(text for is_reason, text in found if not is_reason)
    if nearest is not None and not reasons:
        hints = (nearest.words(window, left.scale.tick, _called(left, right)), *hints)
    if getattr(spec, "where", None) is not None:
        hints += (
            f"a pair must also meet {argument('where')}, which may exclude all that meet the"
            " window",
        )
    hints += tuple(_suspicions(left, right, window))
    times = left.words_of_times, right.words_of_times
    delta = None if nearest is None else nearest.delta
    return NoPairs(reasons, hints, best, *times, keys, how == "anti", delta)


_Words = list[tuple[bool, str]]


@singledispatch
def highest(
    pairs: Bounds, left: Evidence, right: Evidence, window: Window
) -> tuple[float | None, _Words]:
    """The highest probability that a pair can reach, if it is known, and what to say of it."""
    return None, []


@highest.register
def _(
    pairs: IntervalPairs, left: Evidence, right: Evidence, window: Window
) -> tuple[float | None, _Words]:
    best = highest_probability(left.shortest, right.shortest, window.width)
    return best, [of_probability(left, right, window, best)]


@highest.register
def _(
    pairs: HistogramPairs, left: Evidence, right: Evidence, window: Window
) -> tuple[float | None, _Words]:
    best = highest_of_templates(pairs)
    if best is None:
        return None, []
    is_enough = _reaches(best, window.confidence)
    words = "enough for" if is_enough else "below"
    advice = "" if is_enough else ". Widen the window, or lower the confidence"
    return best, [
        (
            not is_enough,
            f"the highest probability that these templates and this window allow is {best:.6g}, {words} the"
            f" confidence {window.confidence:g}: the window is"
            f" {length_words(window.width, left.scale.tick)} wide{advice}",
        )
    ]


def of_probability(
    left: Evidence, right: Evidence, window: Window, best: float, how_wide: str = "the window is"
) -> tuple[bool, str]:
    """Whether the highest probability of lengths and a window is too low for any pair, and the words."""
    confidence, tick = window.confidence, left.scale.tick
    is_all, is_enough = left.is_all and right.is_all, _reaches(best, confidence)
    judged = "enough for" if is_enough else "below"
    text = (
        f"the highest probability that these lengths and this window allow is {best:.6g},"
        f" {judged} the confidence {confidence:g}: the shortest"
        f" timestamps{'' if is_all else ' of the sampled rows'} are"
        f" {_both(left, right, left.shortest, right.shortest)} long, {how_wide}"
        f" {length_words(window.width, tick)} wide"
    )
    typical = _of_typical_lengths(left, right, window)
    advice = "" if is_enough and not typical else ". Widen it, or lower the confidence"
    return is_all and not is_enough, f"{text}{typical}{advice}"


def _of_typical_lengths(left: Evidence, right: Evidence, window: Window) -> str:
    """What most pairs can reach where that is too little, if the shortest do not tell it."""
    if left.typical is None or right.typical is None:
        return ""
    if (left.typical, right.typical) == (left.shortest, right.shortest):
        return ""
    reached = highest_probability(left.typical, right.typical, window.width)
    if _reaches(reached, window.confidence):
        return ""
    lengths = _both(left, right, left.typical, right.typical)
    return f", but half of the timestamps are {lengths} long or more, which allows {reached:.6g} at most"


def _reaches(probability: float, confidence: float) -> bool:
    return probability >= confidence - DECISION_SLACK


def _both(left: Evidence, right: Evidence, own: int, other: int) -> str:
    tick = left.scale.tick
    if left == right:
        return length_words(own, tick)
    names = _called(left, right)
    return f"{length_words(own, tick)} ({names[0]}) and {length_words(other, tick)} ({names[1]})"


def _of_times(left: Evidence, right: Evidence, window: Window) -> tuple[bool, str]:
    times = left.words if left == right else f"{left.words}; {right.words}"
    late, early = right.first - left.last - window.hi, left.first - right.last + window.lo
    missed = max(late, early)
    if missed <= 0:
        return False, f"times: {times}"
    by = length_words(missed, left.scale.tick)
    where = "late" if late > 0 else "early"
    is_all, called = left.is_all and right.is_all, right.scale.column.side
    return is_all, f"all {called} times are {by} or more too {where} for the window: {times}"


def _suspicions(left: Evidence, right: Evidence, window: Window) -> Iterator[str]:
    """Mistakes that such times look like."""
    if left == right:
        return
    middles = [abs(Fraction(side.first + side.last, 2)) for side in (left, right)]
    small, large = sorted(middles)
    for factor in _FACTORS:
        if small and abs(large / small / factor - 1) <= _NEAR:
            yield _of_factor(left, right, middles[0] > middles[1], factor)
            return
    later_by = right.first - left.first, right.last - left.last
    shift = Fraction(sum(later_by), 2)
    is_even = abs(later_by[1] - later_by[0]) <= _NEAR * abs(shift)
    if shift and is_even and not window.lo <= shift <= window.hi:
        about = length_words(abs(shift), left.scale.tick, digits=3)
        earlier, later = _called(left, right)[:: 1 if shift > 0 else -1]
        yield (
            f"{later} begins and ends about {about} later than {earlier}. Check clocks and time"
            " zones"
        )


def _called(left: Evidence, right: Evidence) -> tuple[str, str]:
    return left.scale.column.side, right.scale.column.side


def _of_factor(left: Evidence, right: Evidence, left_is_larger: bool, factor: int) -> str:
    called = _called(left, right)
    larger, smaller = called if left_is_larger else called[::-1]
    looks = f"{larger}'s times are about {factor:,} times {smaller}'s"
    if left.scale.column.family.startswith("timestamp"):
        return f"{looks}, counted from 1970. Check the unit of both sides"
    given = (
        f"with {argument('left_unit')} and {argument('right_unit')}"
        if called == SIDES
        else f"with {argument('left_unit')} for {called[0]} times, {argument('right_unit')} for"
        f" {called[1]} times"
    )
    return f"{looks}. If the sides count different units, give them {given}"


_MOST_POINTS = 1 << 19


def highest_of_templates(pairs: HistogramPairs) -> float | None:
    """The highest probability of any pair of templates; None if they are too many to look at."""
    # As a function of s = max_right - max_left it is a quadratic between the points at which an
    # edge of one template passes an end of the window from an edge of the other: three values tell
    # each.
    left, right, window = pairs.left, pairs.right, pairs.window
    if 2 * left.edges.size * right.edges.size > _MOST_POINTS:
        return None
    own, others = (
        np.repeat(np.arange(len(table)), np.diff(table.starts)) for table in (left, right)
    )
    apart = np.subtract.outer(left.edges, right.edges).ravel()
    pair = np.add.outer(own * len(right), others).ravel()
    places = np.concatenate([window.lo + apart, window.hi + apart])
    order = np.lexsort((places, np.tile(pair, 2)))
    pair, places = np.tile(pair, 2)[order], places[order]
    # Ends of stretches lie just inside: where a template has an instant, there is a jump.
    inside = np.flatnonzero((pair[1:] == pair[:-1]) & (places[1:] - places[:-1] >= 4))
    first, last = places[inside] + 1, places[inside + 1] - 1
    middle = first + (last - first) // 2
    points = np.concatenate([places - 1, places, places + 1, first, middle, last])
    of = np.concatenate([pair, pair, pair, *[pair[inside]] * 3])
    found = _probabilities(pairs, points, of)
    best = float(found.max(initial=0.0))
    ends = found[3 * pair.size :].reshape(3, -1)
    return min(1.0, max(best, _peak(first, middle, last, ends)))


def _peak(first: np.ndarray, middle: np.ndarray, last: np.ndarray, values: np.ndarray) -> float:
    """The highest value of quadratics, each by three of its values, inside of its stretch."""
    a, b = (middle - first).astype(float), (last - first).astype(float)
    at_a, at_b = values[1] - values[0], values[2] - values[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        bend = (at_b / b - at_a / a) / (b - a)
        slope = at_a / a - bend * a
        place = -slope / (2.0 * bend)
        peak = values[0] + (slope + bend * place) * place
    is_inside = (bend < 0.0) & (place > 0.0) & (place < b)
    return float(peak[is_inside].max(initial=0.0))


def _probabilities(pairs: HistogramPairs, s: np.ndarray, pair: np.ndarray) -> np.ndarray:
    number, rows = len(pairs.right), np.arange(s.size)
    left = HistogramEvents(np.zeros(s.size, np.int64), pair // number, pairs.left)
    right = HistogramEvents(s, pair % number, pairs.right)
    return event_probabilities(left, rows, right, rows, pairs)


class Instants(NamedTuple):
    """Exact times of a side that can match."""

    keys: np.ndarray
    times: np.ndarray


class NearestMiss(NamedTuple):
    """The pair of equal keys that is nearest to the window."""

    delta: int
    is_all: bool = True

    def words(self, window: Window, tick: Tick, called: tuple[str, str]) -> str:
        """What is said of it."""
        left, right = called if called[0] != called[1] else ("the other", "one event")
        late = self.delta > window.hi
        end = (
            f"ends at {_signed(window.hi, tick)}"
            if late
            else f"begins at {_signed(window.lo, tick)}"
        )
        order = "after" if self.delta >= 0 else "before"
        seen = "" if self.is_all else " of the sampled rows"
        return (
            f"in the nearest pair{seen} {right} is {length_words(abs(self.delta), tick, 9)}"
            f" {order} {left}, and the window {end}"
        )


def _signed(ticks: int, tick: Tick) -> str:
    return f"{'-' if ticks < 0 else ''}{length_words(abs(ticks), tick, 9)}"


def instants_of(left: Side, right: Side) -> tuple[Instants, Instants] | None:
    """The exact times of both sides; None if some are uncertain."""
    sides = left, right
    if not all(side.are_instants for side in sides):
        return None
    found = []
    for side, events in zip(sides, grouped_events(left, right), strict=True):
        keys = np.zeros(len(side), np.int64) if events.group is None else events.group
        found.append(Instants(keys[keys >= 0], side.max_time[keys >= 0]))
    return found[0], found[1]


def nearest_miss(
    left: Instants, right: Instants | None, window: Window, *, is_all: bool = True
) -> NearestMiss | None:
    """As `nearest_delta`; None also if that is in the window."""
    delta = nearest_delta(left, right, window.lo, window.hi)
    is_miss = delta is not None and not window.lo <= delta <= window.hi
    return NearestMiss(delta, is_all) if is_miss and delta is not None else None


def nearest_delta(left: Instants, right: Instants | None, lo: int, hi: int) -> int | None:
    """T_right - T_left, ticks, of the pair of equal keys that is nearest to a window that none meets."""
    others = left if right is None else right
    n = left.times.size
    keys = np.concatenate([left.keys, others.keys])
    times = np.concatenate([left.times + lo, others.times])
    order = np.lexsort((np.arange(keys.size) >= n, times, keys))
    keys, times, is_right = keys[order], times[order], order >= n
    rights, lefts = np.flatnonzero(is_right), np.flatnonzero(~is_right)
    following = np.cumsum(is_right)[lefts]
    deltas = []
    # In one stream the event itself may be next to it: the one behind that is then the next.
    for step in (0, -1) if right is not None else (0, 1, -1, -2):
        places = following + step
        own = lefts[(places >= 0) & (places < rights.size)]
        near = rights[places[(places >= 0) & (places < rights.size)]]
        is_pair = keys[near] == keys[own]
        if right is None:
            is_pair &= order[near] - n != order[own]
        deltas.append(times[near[is_pair]] - times[own[is_pair]] + lo)
    found = np.concatenate(deltas)
    if not found.size:
        return None
    return int(found[np.maximum(found - hi, lo - found).argmin()])
