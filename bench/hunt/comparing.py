"""Whether an answer is the right one: rows as a multiset, probabilities to what floats guarantee."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pyarrow as pa

from bench.hunt.aggregates import wrong_aggregate, wrong_expected
from bench.hunt.data import DataSet
from bench.hunt.jobs import Job
from bench.hunt.meaning import Event, Meaning
from bench.hunt.oracle import Match, Oracle, reference_matches, reference_row
from cpu_fallback.reference.aggregates import Aggregate
from cpu_fallback.reference.join import BEST_TOLERANCE, best_of_matches_is_acceptable

PROBABILITY_TOLERANCE = Fraction(3e-16)
UNIT = Fraction(1, 2**52)
HISTOGRAM_STEP = Fraction(1, 2**40)
HUGE_TOLERANCE = Fraction(1, 2**51)
"""Where lengths need more than 53 bits, so that turning them into floats rounds, too."""

Values = tuple[Any, ...]


@dataclass(frozen=True)
class Counts:
    """What a way says of the rows of a side."""

    rows: int
    unmatchable: int
    invalid: Mapping[str, int]


@dataclass(frozen=True)
class Found:
    """What a way has found; counts are None where it does not say."""

    table: pa.Table
    left: Counts | None = None
    right: Counts | None = None


def counts_of(given: Any) -> Counts | None:
    """`SideCounts`, or a dict of its fields, or None."""
    if given is None:
        return None
    fields = given if isinstance(given, Mapping) else vars(given)
    invalid = {reason: n for reason, n in fields["invalid"].items() if n}
    return Counts(fields["rows"], fields["unmatchable"], invalid)


def compare(found: Found, data: DataSet, job: Job, oracle: Oracle) -> str | None:
    """What is wrong with an answer; None: nothing."""
    for side, counts, meaning in zip(
        ("left", "right"), (found.left, found.right), oracle.sides, strict=True
    ):
        wrong = _compare_counts(side, counts, meaning)
        if wrong:
            return wrong
    found.table.validate(full=True)
    wanted = _columns(data, job)
    if found.table.column_names != wanted:
        return f"columns {found.table.column_names}, expected {wanted}"
    table = found.table
    if job.is_of_right:
        table, data, job, oracle = _swapped(table, data, job, oracle)
    return _Comparison(data, job, oracle).of(table.to_pylist())


def _swapped(
    table: pa.Table, data: DataSet, job: Job, oracle: Oracle
) -> tuple[pa.Table, DataSet, Job, Oracle]:
    """The same question of swapped sides, and the answer with the columns of sides in their places."""
    keys = len(data.names.keys)
    own, others = (keys + 1 + extra for extra in job.has_extra)
    names, right = table.column_names, own + others - keys
    if job.emit == "best":
        table = table.select([*names[:keys], *names[own:right], *names[keys:own], *names[right:]])
    data = replace(data, left=data.right, right=data.left, lo=-data.hi, hi=-data.lo)
    job = replace(job, how="left", has_extra=job.has_extra[::-1], is_swapped=True)
    return table, data, job, oracle.swapped(data)


def _compare_counts(side: str, counts: Counts | None, meaning: Meaning) -> str | None:
    if counts is None:
        return None
    expected = Counts(meaning.rows, meaning.unmatchable, dict(meaning.invalid))
    return None if counts == expected else f"counts of {side} {counts}, expected {expected}"


def _columns(data: DataSet, job: Job) -> list[str]:
    names = [*data.names.keys, "left_id", *["left_extra"] * job.has_extra[0]]
    if job.per_event:
        return names
    if job.emit == "counts":
        return [*names, "matches"]
    if job.emit == "aggregates":
        if job.is_of_right:
            names = [*data.names.keys, "right_id", *["right_extra"] * job.has_extra[1]]
        return [*names, *job.aggregates]
    match = ["right_id", *["right_extra"] * job.has_extra[1]]
    return [*names, *match, *["probability"] * job.probability]


class _Comparison:
    """The rows of one job's answer."""

    def __init__(self, data: DataSet, job: Job, oracle: Oracle) -> None:
        self._data, self._job, self._oracle = data, job, oracle
        self._tolerance = _tolerance(data, [*oracle.sides[0].events, *oracle.sides[1].events])

    def of(self, rows: list[dict[str, Any]]) -> str | None:
        if self._job.per_event:
            return self._heads(rows)
        return {
            "pairs": self._pairs,
            "lists": self._lists,
            "counts": self._counts,
            "best": self._best,
            "aggregates": self._aggregates,
        }[self._job.emit](rows)

    def _events(self) -> Iterable[tuple[Event, list[Match]]]:
        """Left events that the answer must tell of, with their matches."""
        for event, matches in zip(self._oracle.sides[0].events, self._oracle.matches, strict=True):
            is_met = bool(matches) or bool(self._before(event))
            is_wanted = not is_met if self._job.how == "anti" else is_met
            if is_wanted or self._job.how in ("left", "full"):
                yield event, matches

    def _before(self, event: Event) -> list[Event]:
        """The events before the window of which one counts, if that was asked for."""
        return self._oracle.before_window(event) if self._job.has_previous else []

    def _rights_alone(self) -> Iterable[Event]:
        """Right events without a match that the answer must tell of."""
        if self._job.how not in ("right", "full"):
            return
        taken = {id(other) for matches in self._oracle.matches for _, other in matches}
        for event in self._oracle.sides[1].events:
            if id(event) not in taken:
                yield event

    def _nobody(self, right: Event) -> Values:
        """The head of a row without a left event."""
        return plain((*right.row.keys, None, *[None] * self._job.has_extra[0]))

    def _head(self, event: Event) -> Values:
        extra = (event.row.extra,) if self._job.has_extra[0] else ()
        return plain((*event.row.keys, event.row.number, *extra))

    def _match(self, event: Event) -> Values:
        extra = (event.row.extra,) if self._job.has_extra[1] else ()
        return plain((event.row.number, *extra))

    @property
    def _width(self) -> int:
        return len(self._data.names.keys) + 1 + self._job.has_extra[0]

    def _split(self, row: dict[str, Any]) -> tuple[Values, Values, Any]:
        """Head, match and probability of a row found."""
        values = list(row.values())
        probability = values.pop() if self._job.probability else None
        return plain(values[: self._width]), tuple(values[self._width :]), probability

    def _heads(self, rows: list[dict[str, Any]]) -> str | None:
        found = Counter(plain(row.values()) for row in rows)
        return differing(found, Counter(self._head(event) for event, _ in self._events()))

    def _counts(self, rows: list[dict[str, Any]]) -> str | None:
        found = Counter(plain(row.values()) for row in rows)
        wanted = Counter((*self._head(e), len(matches)) for e, matches in self._events())
        return differing(found, wanted)

    def _aggregates(self, rows: list[dict[str, Any]]) -> str | None:
        by_head = {self._head(event): (event, matches) for event, matches in self._events()}
        split = [self._split(row) for row in rows]
        wanted = Counter(self._head(event) for event, _ in self._events())
        if wrong := differing(Counter(head for head, _, _ in split), wanted):
            return wrong
        for head, values, _ in split:
            event, matches = by_head[head]
            before = [[(Fraction(1), other)] for other in self._before(event)] or [[]]
            wrong = [self._wrong_values(event, [*own, *matches], values) for own in before]
            if all(wrong):
                return f"{head} has {wrong[-1]}"
        return None

    def _wrong_values(
        self, event: Event, matches: list[Match], values: tuple[Any, ...]
    ) -> str | None:
        for (name, asking), value in zip(self._job.aggregates.items(), values, strict=True):
            if wrong := self._aggregate(event, matches, asking, value):
                return f"{name} = {asking} of {value!r}, {wrong}"
        return None

    def _aggregate(
        self, event: Event, matches: list[Match], asking: Aggregate, value: Any
    ) -> str | None:
        if self._job.has_weights:
            return wrong_expected(value, matches, asking, Fraction(self._tolerance))
        others = [other for _, other in matches]
        return wrong_aggregate(value, event, others, asking, -1 if self._job.is_swapped else 1)

    def _pairs(self, rows: list[dict[str, Any]]) -> str | None:
        nothing = (None,) * (1 + self._job.has_extra[1])
        exact: dict[Values, Fraction | None] = {}
        wanted: Counter[Values] = Counter()
        for event, matches in self._events():
            head = self._head(event)
            if not matches:
                wanted[*head, *nothing] += 1
                exact[*head, *nothing] = None
            for p, other in matches:
                pair = (*head, *self._match(other))
                wanted[pair] += 1
                exact[pair] = p
        for other in self._rights_alone():
            alone = (*self._nobody(other), *self._match(other))
            wanted[alone] += 1
            exact[alone] = None
        split = [self._split(row) for row in rows]
        found = [((*head, *plain(match)), p) for head, match, p in split]
        return differing(Counter(pair for pair, _ in found), wanted) or self._probabilities(
            (exact[pair], p) for pair, p in found
        )

    def _lists(self, rows: list[dict[str, Any]]) -> str | None:
        wanted: Counter[Values] = Counter()
        exact: dict[Values, Fraction] = {}
        for event, matches in self._events():
            head = self._head(event)
            pairs = [self._match(other) for _, other in matches]
            wanted[*head, _multiset(pairs)] += 1
            exact |= {(*head, *pair): p for (p, _), pair in zip(matches, pairs, strict=True)}
        found: Counter[Values] = Counter()
        near: list[tuple[Fraction | None, float | None]] = []
        for row in rows:
            head, columns, probabilities = self._split(row)
            if any(column is None for column in columns):
                return f"a null in the place of a list: {row}"
            if (
                len(
                    {
                        *map(len, columns),
                        len(columns[0] if probabilities is None else probabilities),
                    }
                )
                > 1
            ):
                return f"lists of several lengths: {row}"
            pairs = [plain(pair) for pair in zip(*columns, strict=True)]
            found[*head, _multiset(pairs)] += 1
            if probabilities is not None:
                near += [
                    (exact.get((*head, *pair)), p)
                    for pair, p in zip(pairs, probabilities, strict=True)
                ]
        return differing(found, wanted) or self._probabilities(near)

    def _best(self, rows: list[dict[str, Any]]) -> str | None:
        """Each left event once, with a match that the reference accepts."""
        by_head = {self._head(event): (event, matches) for event, matches in self._events()}
        wanted = Counter(self._head(event) for event, _ in self._events())
        split = [self._split(row) for row in rows]
        wrong = differing(Counter(head for head, _, _ in split), wanted)
        if wrong:
            return wrong
        data, near = self._data, []
        # Probabilities of histograms are compared as multiples of this.
        rounding = (HISTOGRAM_STEP, HISTOGRAM_STEP) if data.has_histograms else (BEST_TOLERANCE,)
        for head, match, p in split:
            event, matches = by_head[head]
            chosen = [q for q, other in matches if self._match(other) == plain(match)]
            candidates = reference_matches(matches)
            if not chosen if matches else match[0] is not None:
                return f"{head} has the best match {match}, which is none of its matches"
            given = reference_row(event), candidates, match[0], data.lo, data.hi
            if not best_of_matches_is_acceptable(*given, *rounding):
                return f"{head} has the best match {match}, but another is better"
            if self._job.probability:
                near.append((chosen[0] if chosen else None, p))
        return self._probabilities(near)

    def _probabilities(self, pairs: Iterable[tuple[Fraction | None, float | None]]) -> str | None:
        if not self._job.probability:
            return None
        for exact, found in pairs:
            if (exact is None) != (found is None):
                return f"probability {found}, expected {exact}"
            if exact is None or found is None:
                continue
            if not abs(Fraction(found) - exact) <= self._tolerance:
                return f"probability {found!r}, exactly {float(exact)!r}"
        return None


def _tolerance(data: DataSet, events: Sequence[Event]) -> Fraction:
    """How far a probability may be from the exact one.

    For histograms it is 1 - (a + b), with tails a and b. `relative_error` bounds either: n + 2 m + 16 units
    of itself, with n and m edges. They sum to 1 at most, and the last two operations add a unit.
    """
    if data.has_histograms:
        edges = 1 + max((len(event.buckets) for event in events), default=1)
        return (3 * edges + 17) * UNIT
    longest = max((event.high - event.low for event in events), default=0)
    return HUGE_TOLERANCE if longest > 2**53 else PROBABILITY_TOLERANCE


def _multiset(pairs: Sequence[Values]) -> Values:
    return tuple(sorted(pairs, key=repr))


def plain(values: Iterable[Any]) -> Values:
    """Values that can be counted: NaN equals NaN, lists are tuples."""
    return tuple(_plain(value) for value in values)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return "NaN"
    if isinstance(value, list):
        return plain(value)
    if isinstance(value, dict):
        return plain(value.values())
    return bytes(value) if isinstance(value, bytearray) else value


def differing(found: Counter[Values], wanted: Counter[Values]) -> str | None:
    """Which rows are missing, and which are too many; None: none."""
    missing, more = wanted - found, found - wanted
    if not missing and not more:
        return None
    words = [f"{found.total()} rows, expected {wanted.total()}"]
    for what, rows in (("missing", missing), ("too many", more)):
        if rows:
            shown = ", ".join(map(repr, list(rows.elements())[:3]))
            words.append(f"{rows.total()} {what}, such as {shown}")
    return "; ".join(words)
