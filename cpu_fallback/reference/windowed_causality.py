"""The oracle of causality through a bounded window: one list, looked through for everything.

Follows Kwon & Li (2009), section 3.2 and Definitions 2-4, and states what they leave open. Tuples arrive one
after the other. Each first meets all tuples in the window, in either role: a cause that arrives late meets its
effects. Then, if the window is full, one tuple goes. Then the new one is kept. Of equals the one that
arrived first goes. (The policy "expected" is ours: the new tuple is kept before one goes, and may go at
once.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

from cpu_fallback.reference.causality import Place, Predicate

BINS, CLASSES, ONE = 128, 128, 2**20


class Tuple(NamedTuple):
    """One that arrives: valid time, clock at arrival, place, and whether it may be cause and effect."""

    time: int
    clock: int
    place: Place
    is_cause: bool = True
    is_effect: bool = True


class Settings(NamedTuple):
    """What is asked.

    `size`: tuples in the window. `own`: the earlier of two is the cause, of simultaneous ones the one that
    arrived first. `hi`: the largest delta of a pair. `max_stay`: of FCFO, by the clock; None: `size`
    arrivals. `home`: where the window is. `side`: of the cells of "expected". `sample`, `ghosts`, `renewal`,
    `memory`, `weight`: how it learns.
    """

    size: int
    own: bool
    hi: int
    max_stay: int | None = None
    home: Place = ()
    side: Any = 1
    sample: int = 16
    ghosts: int = 256
    renewal: int = 256
    memory: int = 1 << 14
    weight: int = 8


class Seen(NamedTuple):
    """Pairs (cause, effect) by number of arrival; of followed tuples the matches, and those of them found."""

    pairs: list[tuple[int, int]]
    matches: int
    found: int


def windowed_causality(
    tuples: Sequence[Tuple],
    predicates: Sequence[Predicate],
    distance2: Callable[[Place, Place], Any],
    policy: str,
    settings: Settings,
) -> Seen:
    """All pairs that a window of tuples shows, in the order in which it shows them."""
    window: list[int] = []
    ghosts: list[int] = []
    lessons = _Lessons(tuples, settings)
    pairs, matches, found = [], 0, 0

    def is_pair(a: int, b: int) -> bool:
        cause, effect = tuples[a], tuples[b]
        if not (cause.is_cause and effect.is_effect):
            return False
        if settings.own and (cause.time, a) > (effect.time, b):
            return False
        squared = distance2(cause.place, effect.place)
        return all(each(effect.time - cause.time, squared) for each in predicates)

    def home_distance(a: int) -> Any:
        return distance2(tuples[a].place, settings.home)

    def leaving(new: int) -> int:
        first = min(window, key=lambda a: (tuples[a].time, a))
        if policy == "fifo":
            return min(window)
        if policy == "fhfo":
            return first
        if policy == "expected":
            return lessons.least(window, new)
        oldest, closest = min(window), min(window, key=lambda a: (home_distance(a), a))
        if policy == "fcfo":
            if settings.max_stay is None:
                outstayed = new - oldest > settings.size
            else:
                outstayed = tuples[new].clock - tuples[oldest].clock > settings.max_stay
            return oldest if outstayed else closest
        assert policy == "fhcfo"
        is_over = tuples[new].time - tuples[first].time > settings.hi
        return first if is_over else closest

    def go(a: int) -> None:
        window.remove(a)
        if lessons.follows(a):
            ghosts.append(a)
            del ghosts[: max(0, len(ghosts) - settings.ghosts)]

    for new in range(len(tuples)):
        for other in [*window, *ghosts]:
            for pair in ((other, new), (new, other)):
                if is_pair(*pair):
                    if lessons.follows(other):
                        matches += 1
                        found += other in window
                        lessons.match(other, new)
                    if other in window:
                        pairs.append(pair)
        if policy != "expected" and len(window) == settings.size:
            go(leaving(new))
        window.append(new)
        lessons.arrive(new)
        if len(window) > settings.size:
            go(leaving(new))
    return Seen(pairs, matches, found)


class _Lessons:
    """What "expected" learns: matches of followed tuples by class and age."""

    def __init__(self, tuples: Sequence[Tuple], settings: Settings) -> None:
        self._tuples, self._s = tuples, settings
        self._classes: dict[Any, int] = {}
        self._matches: dict[tuple[int, int], int] = {}
        self._members: dict[int, int] = {}
        self._known, self._renewed, self._shift = 0, 0, 0
        while settings.hi >> self._shift >= BINS // 2 and settings.hi < 2**61:
            self._shift += 1
        self._scores: dict[tuple[int, int], int] = {}
        self._is_new = True

    def follows(self, a: int) -> bool:
        return self._s.sample > 0 and a * 2654435761 % 2**32 * self._s.sample < 2**32

    def arrive(self, a: int) -> None:
        key = self._key(a)
        if key not in self._classes and len(self._classes) < CLASSES - 1:
            self._classes[key] = len(self._classes)
        if self.follows(a):
            self._members[self._class(a)] = self._members.get(self._class(a), 0) + 1
            self._known += 1
        if self._is_due():
            self._renew()

    def match(self, a: int, new: int) -> None:
        while self._bin(a, new) >= BINS:
            halved: dict[tuple[int, int], int] = {}
            for (own, b), n in self._matches.items():
                halved[own, b // 2] = halved.get((own, b // 2), 0) + n
            self._matches, self._shift, self._renewed = halved, self._shift + 1, -1
        own, b = self._class(a), self._bin(a, new)
        self._matches[own, b] = self._matches.get((own, b), 0) + 1

    def least(self, window: Sequence[int], new: int) -> int:
        """Of the first and the last one of each class by valid time, the one that promises least."""
        ends = set()
        for own in {self._class(a) for a in window}:
            kin = sorted((self._tuples[a].time, a) for a in window if self._class(a) == own)
            ends |= {kin[0], kin[-1]}
        return min(ends, key=lambda end: (self._score(end[1], new), *end))[1]

    def _key(self, a: int) -> Any:
        one = self._tuples[a]
        cell = tuple(Fraction(x) // Fraction(self._s.side) for x in one.place)
        return cell, one.is_cause, one.is_effect

    def _class(self, a: int) -> int:
        return self._classes.get(self._key(a), CLASSES - 1)

    def _bin(self, a: int, new: int) -> int:
        now = max(self._tuples[b].clock for b in range(new + 1))
        return int(max(0, now - self._tuples[a].time) >> self._shift)

    def _score(self, a: int, new: int) -> int:
        own, b = self._class(a), min(self._bin(a, new), BINS - 1)
        return self._scores.get((own, b), self._scores.get((CLASSES - 1, b), 0))

    def _is_due(self) -> bool:
        last = self._renewed
        return last < 0 or self._known >= last + min(max(last, 1), self._s.renewal)

    def _renew(self) -> None:
        if self._known >= self._s.memory:
            self._known //= 2
            self._members = {own: n // 2 for own, n in self._members.items()}
            self._matches = {at: n // 2 for at, n in self._matches.items()}
        self._renewed = self._known
        last = min(max(self._s.hi, 0) >> self._shift, BINS - 1) + 1
        shared = [
            (
                sum(n for (_, k), n in self._matches.items() if k < b) * ONE
                + min(b, last) * ONE // last
            )
            // (self._known + 1)
            for b in range(BINS + 1)
        ]
        self._scores = {}
        for own in {*self._classes.values(), CLASSES - 1}:
            members = self._members.get(own, 0) + self._s.weight
            mine = [0] * (BINS + 1)
            for (other, b), n in self._matches.items():
                if other == own:
                    mine[b + 1 :] = [before + n for before in mine[b + 1 :]]
            means = [
                (m * ONE + self._s.weight * s) // members for m, s in zip(mine, shared, strict=True)
            ]
            for b in range(BINS):
                slopes = ((means[e] - means[b]) // (e - b) for e in range(b + 1, BINS + 1))
                self._scores[own, b] = max(slopes)


def best_of_all(pairs: Sequence[tuple[int, int]], tuples: int, size: int) -> int:
    """The most pairs that a window can show, by trying all that it can hold after each arrival."""
    worth: dict[frozenset[int], int] = {frozenset(): 0}
    for new in range(tuples):
        after: dict[frozenset[int], int] = {}
        for window, found in worth.items():
            total = found + sum(((a, new) in pairs) + ((new, a) in pairs) for a in window)
            held = [*window, new]
            for keep in combinations(held, min(size, len(held))):
                key = frozenset(keep)
                after[key] = max(after.get(key, 0), total)
        worth = after
    return max(worth.values())
