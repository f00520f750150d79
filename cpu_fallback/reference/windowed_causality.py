"""The oracle of causality through a bounded window: one list, looked through for everything.

Follows Kwon & Li (2009), section 3.2 and Definitions 2-4, and states what they leave open. Tuples
arrive one after the other. Each first meets all tuples in the window, in either role: a cause that
arrives late meets its effects. Then, if the window is full, one tuple goes. Then the new one is kept. Among
equals the one that arrived first goes. (The policy "expected" is ours: the new tuple is kept before one
goes, and may go at once.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

from cpu_fallback.reference.causality import Place, Predicate

BINS, CLASSES, ONE = 128, 128, 2**20
SHARED = -1


class Tuple(NamedTuple):
    """One that arrives: valid time, clock at arrival, place, and whether it may be cause and effect."""

    time: int
    clock: int
    place: Place
    is_cause: bool = True
    is_effect: bool = True


class Settings(NamedTuple):
    """The question.

    `size`: tuples in the window. `own`: if both orders of a pair qualify, the earlier is the cause, of
    simultaneous ones the one that arrived first. `hi`: the largest delta of a pair, of `longest_delta`.
    `max_stay`: of FCFO, by the clock; None: `size` arrivals. `home`: where the window is. `side`: of the
    cells of "expected". The others: how it learns.
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
    """Pairs (cause, effect) by number of arrival; matches of followed tuples, and those that were found."""

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
    window = _Window(tuples, predicates, distance2, policy, settings)
    for new in range(len(tuples)):
        window.meet(new)
        if policy != "expected" and len(window.kept) == settings.size:
            window.let_go(window.leaving(new), new)
        window.keep(new)
        if len(window.kept) > settings.size:
            window.let_go(window.leaving(new), new)
    return Seen(window.pairs, window.matches, window.found)


class _Window:
    def __init__(
        self,
        tuples: Sequence[Tuple],
        predicates: Sequence[Predicate],
        distance2: Callable[[Place, Place], Any],
        policy: str,
        settings: Settings,
    ) -> None:
        self._tuples, self._predicates, self._distance2 = tuples, predicates, distance2
        self._policy, self._settings = policy, settings
        self._lessons = _Lessons(tuples, settings)
        self.kept: list[int] = []
        self._ghosts: list[int] = []
        self.pairs: list[tuple[int, int]] = []
        self.matches, self.found = 0, 0

    def meet(self, new: int) -> None:
        """Join a tuple with those that are kept; those that are followed though they have gone count."""
        for other in [*self.kept, *self._ghosts]:
            for pair in ((other, new), (new, other)):
                if not self._is_pair(*pair):
                    continue
                if self._lessons.follows(other):
                    self.matches += 1
                    self.found += other in self.kept
                    self._lessons.match(other, new)
                if other in self.kept:
                    self.pairs.append(pair)

    def keep(self, new: int) -> None:
        self.kept.append(new)
        self._lessons.arrive(new)

    def let_go(self, a: int, new: int) -> None:
        self.kept.remove(a)
        self._lessons.leave(a, new)
        if self._lessons.follows(a):
            self._ghosts.append(a)
            del self._ghosts[: max(0, len(self._ghosts) - self._settings.ghosts)]

    def leaving(self, new: int) -> int:
        """Who goes: Definitions 2 to 4."""
        oldest, first = min(self.kept), min(self.kept, key=lambda a: (self._tuples[a].time, a))
        if self._policy == "fifo":
            return oldest
        if self._policy == "fhfo":
            return first
        if self._policy == "expected":
            return self._lessons.least(self.kept, new)
        closest = min(self.kept, key=lambda a: (self._home_distance(a), a))
        if self._policy == "fcfo":
            return oldest if self._has_outstayed(oldest, new) else closest
        assert self._policy == "fhcfo"
        is_over = self._tuples[new].time - self._tuples[first].time > self._settings.hi
        return first if is_over else closest

    def _home_distance(self, a: int) -> Any:
        return self._distance2(self._tuples[a].place, self._settings.home)

    def _has_outstayed(self, a: int, new: int) -> bool:
        if self._settings.max_stay is None:
            return new - a > self._settings.size
        return self._tuples[new].clock - self._tuples[a].clock > self._settings.max_stay

    def _is_pair(self, a: int, b: int) -> bool:
        cause, effect = self._tuples[a], self._tuples[b]
        if not (cause.is_cause and effect.is_effect and self._meets(cause, effect)):
            return False
        is_back = self._settings.own and (cause.time, a) > (effect.time, b)
        return not (is_back and self._meets(effect, cause))

    def _meets(self, cause: Tuple, effect: Tuple) -> bool:
        squared = self._distance2(cause.place, effect.place)
        return all(each(effect.time - cause.time, squared) for each in self._predicates)


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
        self._means: dict[int, list[int]] = {}
        self._price, self._fetched, self._left = 0, 0, 0
        self._then_matches: dict[tuple[int, int], int] = {}
        self._then_members: dict[int, int] = {}

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
            self._fetched *= 2
        own, b = self._class(a), self._bin(a, new)
        self._matches[own, b] = self._matches.get((own, b), 0) + 1

    def least(self, window: Sequence[int], new: int) -> int:
        """The one that promises least, among the first and the last one of each class by valid time."""
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
        """What a tuple is worth beyond the price of its stay, by what was known at the last renewal."""
        own, b = self._class(a), min(self._bin(a, new), BINS - 1)
        if not self._means:
            return 0
        means = self._means_of(own)
        return max(means[e] - means[b] - (e - b) * self._price for e in range(b, BINS + 1))

    def _index(self, a: int, new: int) -> int:
        """The most matches for a bin of staying."""
        own, b = self._class(a), min(self._bin(a, new), BINS - 1)
        if not self._means:
            return 0
        means = self._means_of(own)
        return max((means[e] - means[b]) // (e - b) for e in range(b + 1, BINS + 1))

    def leave(self, a: int, new: int) -> None:
        self._fetched += self._index(a, new)
        self._left += 1

    def _means_of(self, own: int) -> list[int]:
        if own not in self._means:
            mine = self._before(lambda other: other == own)
            members = self._then_members.get(own, 0) + self._s.weight
            weighted = zip(mine, self._means[SHARED], strict=True)
            self._means[own] = [(m * ONE + self._s.weight * s) // members for m, s in weighted]
        return self._means[own]

    def _before(self, counts: Callable[[int], bool]) -> list[int]:
        """Matches before each bin, and before the end, of some classes."""
        per_bin = [0] * BINS
        for (own, b), n in self._then_matches.items():
            per_bin[b] += n if counts(own) else 0
        return [sum(per_bin[:b]) for b in range(BINS + 1)]

    def _is_due(self) -> bool:
        last = self._renewed
        return last < 0 or self._known >= last + min(max(last, 1), self._s.renewal)

    def _renew(self) -> None:
        if self._known >= self._s.memory:
            self._known //= 2
            self._members = {own: n // 2 for own, n in self._members.items()}
            self._matches = {at: n // 2 for at, n in self._matches.items()}
        self._renewed = self._known
        if self._left:
            self._price = self._fetched // self._left
            self._fetched, self._left = 0, 0
        self._then_matches, self._then_members = dict(self._matches), dict(self._members)
        last = min(max(self._s.hi, 0) >> self._shift, BINS - 1) + 1
        shared = [
            (n * ONE + min(b, last) * ONE // last) // (self._known + 1)
            for b, n in enumerate(self._before(lambda _: True))
        ]
        self._means = {SHARED: shared}


def longest_delta(
    predicates: Sequence[Predicate], deltas: range, squares: Sequence[Any]
) -> int | None:
    """The largest delta that meets all predicates at some distance; None for none."""
    found = [d for d in deltas if any(all(p(d, s) for p in predicates) for s in squares)]
    return max(found, default=None)


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
