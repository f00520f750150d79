"""What a join may have in addition to its shape, with tables in this process, judged by the reference."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from bench.hunt.asking import Asking, draw_asking
from bench.hunt.cases import RIGHT, Case, Verdict, Way
from bench.hunt.comparing import HUGE_TOLERANCE, PROBABILITY_TOLERANCE, differing
from bench.hunt.judging import judge_error
from coincide import TimingCondition, accidental_pair_tables, correlate_tables, within
from coincide import correlate as correlate_frames
from cpu_fallback.reference.aggregates import aggregated, is_same
from cpu_fallback.reference.decision import decision_is_clear, satisfaction_probability
from cpu_fallback.reference.join import (
    BEST_TOLERANCE,
    Asked,
    Pair,
    correlate,
    correlate_stream,
    mutual_pairs,
    optimum,
    pairs,
    place,
    unambiguous_pairs,
    value,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LARGE = 2**40
"""Ticks."""
_MOST_TRIED = 14
"""With more pairs the reference cannot try all assignments."""


@dataclass(frozen=True)
class _Judge:
    """One join, and the pairs that it has."""

    asking: Asking
    confidence: float
    by_rows: bool = True  # or by ids, as on Spark

    @property
    def asked(self) -> Asked:
        asking = self.asking
        sides = asking.left, asking.right
        also = {"admits": asking.admits, "by_rows": self.by_rows}
        return Asked(*sides, *asking.window, self.confidence, **also)

    @property
    def condition(self) -> TimingCondition:
        asking = self.asking
        return TimingCondition(within(asking.lo, asking.hi, closed=asking.closed), self.confidence)

    def answer(self) -> tuple[pa.Table, tuple[int, ...]]:
        """The pairs, and by each shift how many chance makes."""
        asking = self.asking
        given = {"left_columns": "id", "right_columns": "id", **asking.given}
        table = correlate_tables(*asking.tables, self.condition, **given)
        if not asking.shifts:
            return table, ()
        chance = accidental_pair_tables(
            *asking.tables, self.condition, shifts=asking.shifts, **given
        )
        return table, chance.counts

    def wrong(self, rows: list[dict[str, Any]]) -> str | None:
        """What is wrong with an answer."""
        given = self.asking.given
        if "matching" in given:
            return self._matching(rows)
        if given["emit"] in ("best", "aggregates") and given["how"] == "right":
            names = {"left_id": "right_id", "right_id": "left_id"}
            rows = [{names.get(name, name): row[name] for name in row} for row in rows]
            swapped = replace(self, asking=self.asking.swapped())
            return swapped._best(rows) if given["emit"] == "best" else swapped._aggregates(rows)
        if given["emit"] == "best":
            return self._best(rows)
        asked = self.asked
        if "aggregates" in given:
            return self._aggregates(rows)
        sides = (asked.left,) if self.asking.is_one else (asked.left, asked.right)
        joined = correlate_stream if self.asking.is_one else correlate
        wanted = joined(
            *sides, *asked[2:5], how=given["how"], emit=given["emit"],
            probability=given["probability"], admits=asked.admits,
        )  # fmt: skip
        plain = self._plain
        return differing(Counter(map(plain, rows)), Counter(map(plain, wanted))) or (
            self._probabilities(rows) if given["probability"] and given["emit"] == "pairs" else None
        )

    def _aggregates(self, rows: list[dict[str, Any]]) -> str | None:
        given = self.asking.given
        expected = aggregated(self.asked, given["aggregates"])
        wanted = {i: own for i, own in enumerate(expected) if own or given["how"] == "left"}
        if wrong := differing(
            Counter((row["left_id"],) for row in rows), Counter((i,) for i in wanted)
        ):
            return wrong
        for row in rows:
            for name, asking in given["aggregates"].items():
                if name in ("first", "last") and not self.by_rows:
                    continue  # either of those that have one timestamp
                function, own = asking if name == "n" else asking[1], wanted[row["left_id"]]
                want = own[name] if own else 0 if function == "count" else None
                if not is_same(row[name], want, function):
                    return f"{name} = {asking} of {row}, expected {want}"
        return None

    def _probabilities(self, rows: list[dict[str, Any]]) -> str | None:
        for row in rows:
            if row["left_id"] is None or row["right_id"] is None:
                continue
            exact = self.probability(row["left_id"], row["right_id"])
            longest = max(self._lengths(row["left_id"], row["right_id"]))
            tolerance = HUGE_TOLERANCE if longest > 2**53 else PROBABILITY_TOLERANCE
            if abs(Fraction(row["probability"]) - exact) > tolerance:
                return f"probability of {row}, exactly {float(exact)!r}"
        return None

    def _lengths(self, left: int, right: int) -> tuple[int, int]:
        rows = self.asking.left[left], self.asking.right[right]
        own, other = (row["max_time"] - row["min_time"] for row in rows)
        return own, other

    def probability(self, left: int, right: int, shift: int = 0) -> Fraction:
        one, other = self.asking.left[left], self.asking.right[right]
        lo, hi = self.asking.window
        ends = (row[name] for row in (one, other) for name in ("min_time", "max_time"))
        return satisfaction_probability(*ends, lo - shift, hi - shift)

    def _best(self, rows: list[dict[str, Any]]) -> str | None:
        """Each left event with at most k matches: no other is surely before one of them."""
        given, found = self.asking.given, pairs(self.asked)
        k, asked = given["k"], self.asked
        wanted: Counter[Any] = Counter()
        for i in range(len(self.asking.left)):
            own = sum(pair.left == i for pair in found)
            wanted[i] += min(k, own) or given["how"] == "left"
        if wrong := differing(
            Counter((r["left_id"],) for r in rows), Counter({(i,): n for i, n in wanted.items()})
        ):
            return wrong
        if k > 1:
            rows = sorted(rows, key=lambda row: (row["left_id"], row["rank"] or 0))
        else:
            rows = sorted(rows, key=lambda row: row["left_id"])
        for left, each in groupby(rows, key=lambda row: row["left_id"]):
            own = [pair for pair in found if pair.left == left]
            chosen = [row["right_id"] for row in each]
            if not own:
                if chosen != [None]:
                    return f"{left} has matches {chosen}, of none"
                continue
            by_right = {pair.right: pair for pair in own}
            if (
                None in chosen
                or not set(chosen) <= by_right.keys()
                or len(set(chosen)) < len(chosen)
            ):
                return f"{left} has matches {chosen}, of {sorted(by_right)}"
            for at, right in enumerate(chosen):
                left_over = [by_right[j] for j in by_right if j not in chosen[: at + 1]]
                better = [p for p in left_over if self._surely_before(asked, p, by_right[right])]
                if better:
                    return f"{left} has {right} at place {at}, but {better[0]} is better"
        return self._probabilities(rows) if given["probability"] else None

    def _surely_before(self, asked: Asked, one: Pair, other: Pair) -> bool:
        prefer = self.asking.given["prefer"]
        own, others = (place(asked, pair, prefer, "right") for pair in (one, other))
        if own[0] != others[0]:
            return bool(own < others)
        apart = abs(one.probability - other.probability)
        return (
            bool(own < others)
            if apart > BEST_TOLERANCE
            else self._alike(one, other) and own < others
        )

    def _alike(self, one: Pair, other: Pair) -> bool:
        """Whether floats cannot but be the same, too."""
        return {one.probability, other.probability} == {Fraction(1)}

    def _matching(self, rows: list[dict[str, Any]]) -> str | None:
        found = {(pair.left, pair.right): pair for pair in pairs(self.asked)}
        chosen = [(row["left_id"], row["right_id"]) for row in rows]
        if not set(chosen) <= found.keys():
            return f"pairs {set(chosen) - found.keys()} do not qualify"
        for side in (0, 1):
            if len({pair[side] for pair in chosen}) < len(chosen):
                return f"not one to one: {chosen}"
        given, asked = self.asking.given, self.asked
        if given["matching"] == "optimal":
            return self._optimal([found[pair] for pair in chosen], len(found))
        if self.asking.is_one:  # whose orders may have one probability
            found = {(min(pair), max(pair)): each for pair, each in found.items()}
        is_mutual = given["matching"] == "mutual"
        if (
            is_mutual
            and not is_told_apart(given["prefer"])
            and self._is_ambiguous(list(found.values()))
        ):
            return self._probabilities(rows)
        wanted = mutual_pairs(asked, given["prefer"]) if is_mutual else unambiguous_pairs(asked)
        if self.asking.is_one:
            known = set(wanted)
            wanted = [(i, j) for i, j in wanted if self._ends(i, j) or (j, i) not in known]
        return differing(Counter(map(self._twins, chosen)), Counter(map(self._twins, wanted))) or (
            self._probabilities(rows)
        )

    def _ends(self, left: int, right: int) -> bool:
        """Whether the left event of a pair of one stream is the earlier."""
        own, other = (
            (row["max_time"], row["min_time"], row["id"])
            for row in (self.asking.left[left], self.asking.right[right])
        )
        return bool(own < other)

    def _twins(self, pair: tuple[Any, ...]) -> tuple[Any, ...]:
        """A pair, of one stream without who is left of two events of one timestamp, which may be either."""
        if self.asking.is_one and len(pair) == 2 and None not in pair:
            rows = self.asking.left[pair[0]], self.asking.right[pair[1]]
            if len({(row["max_time"], row["min_time"]) for row in rows}) == 1:
                return tuple(sorted(pair))
        return pair

    def _plain(self, row: dict[str, Any]) -> tuple[Any, ...]:
        """Identities, a multiset of them, or a number; probabilities are looked at elsewhere."""
        if self.asking.given["emit"] == "pairs" and "right_id" in row:
            return self._twins((row["left_id"], row["right_id"]))
        names = [name for name in ("left_id", "right_id", "matches") if name in row]
        return tuple(tuple(sorted(row[n])) if isinstance(row[n], list) else row[n] for n in names)

    def _is_ambiguous(self, found: list[Pair]) -> bool:
        """Whether floats may put pairs into another order than their probabilities."""
        found = sorted(
            (pair for pair in found if pair.probability < 1), key=lambda p: p.probability
        )
        return any(b.probability - a.probability < BEST_TOLERANCE for a, b in pairwise(found))

    def _optimal(self, chosen: list[Pair], count: int) -> str | None:
        if count > _MOST_TRIED:
            return None
        prefer = self.asking.given["prefer"]
        own, best = value(self.asked, prefer, chosen), optimum(self.asked, prefer)
        near = len(own) == 1 and abs(own[0] - best[0]) < Fraction(1, 10**9)
        return None if own == best or near else f"an assignment of {own}, but {best} is possible"

    def accidental(self) -> list[int | None]:
        """Pairs, matched if it is asked, by each shift; None where more than one number is right."""
        return [self._moved(shift)._count() for shift in self.asking.shifts]

    def _moved(self, shift: int) -> _Judge:
        right = [
            row if row["min_time"] is None else {
                **row, "min_time": row["min_time"] + shift, "max_time": row["max_time"] + shift,
            }
            for row in self.asking.right
        ]  # fmt: skip
        return replace(self, asking=replace(self.asking, right=right))

    def _count(self) -> int | None:
        asked, found, prefer = self.asked, pairs(self.asked), self.asking.given.get("prefer", "")
        matching = self.asking.given.get("matching")
        if matching == "unambiguous":
            return len(unambiguous_pairs(asked))
        if matching == "mutual":
            is_clear = is_told_apart(prefer) or not self._is_ambiguous(found)
            return len(mutual_pairs(asked, prefer)) if is_clear else None
        if matching == "optimal":
            is_known = prefer == "nearest" and len(found) <= _MOST_TRIED
            return optimum(asked, prefer)[0] if is_known else None
        return len(found)

    @property
    def errors_that_may_come(self) -> set[str]:
        """Where the sum of distances is larger than can be added exactly."""
        given = self.asking.given
        adds = (given.get("matching"), given.get("prefer")) == ("optimal", "nearest")
        apart = [abs(place(self.asked, pair, "nearest", "right")[0]) for pair in pairs(self.asked)]
        return {"DataError"} if adds and sum(apart) > _LARGE else set()

    @property
    def is_clear(self) -> bool:
        """Whether float64 can decide each pair as exact arithmetic does."""
        return all(
            decision_is_clear(self.probability(i, j, shift), self.confidence)
            for shift in (0, *self.asking.shifts)
            for i, one in enumerate(self.asking.left)
            for j, other in enumerate(self.asking.right)
            if one["min_time"] is not None and other["min_time"] is not None
        )


def is_told_apart(prefer: str) -> bool:
    """Whether what is preferred is a whole number of its own for either event of a pair."""
    return prefer in ("nearest", "first", "last")


def judge_on_spark(spark: SparkSession, case: Case, way: str) -> Verdict:
    """The same for DataFrames by a way, without what only one process has."""
    asking = draw_asking(case)
    judge = _Judge(asking, case.data.confidence, by_rows=False)
    first, last = asking.window
    if first > last or not judge.is_clear:
        return Verdict("closed", "a probability is no clear one")
    if asking.is_one and way in ("broadcast-left", "broadcast-right"):
        way = "exchange"
    given = asking.given
    is_of_two = "matching" in given and not asking.is_one
    if is_of_two and given["matching"] == "optimal":
        return Verdict("closed", "such a matching is of one process")
    # A matching knows events again by their output columns.
    columns = ["id", "amount"] if is_of_two else "id"
    frames = [None if table is None else spark.createDataFrame(table) for table in asking.tables]
    options = replace(given["options"], way=way)
    if asking.is_one and "matching" in given and way == "broadcast-both":
        options = replace(options, way="auto")
    try:
        found = correlate_frames(
            frames[0], frames[1], judge.condition, left_columns=columns, right_columns=columns,
            **given | {"options": options},
        ).toArrow()  # fmt: skip
    except Exception as error:
        return judge_error(error, set())
    wrong = judge.wrong(found.to_pylist())
    return Verdict("wrong", f"{way}: {wrong}; asked {given}") if wrong else RIGHT


def _judge(case: Case, folder: Path) -> Verdict:
    asking = draw_asking(case)
    first, last = asking.window
    if first > last:
        due = {"ConditionError"}
    else:
        due = set()
        if not _Judge(asking, case.data.confidence).is_clear:
            return Verdict("closed", "a probability is as good as the confidence")
    judge = _Judge(asking, case.data.confidence)
    try:
        table, chance = judge.answer()
    except Exception as error:
        return judge_error(error, due or judge.errors_that_may_come)
    if due:
        return Verdict("accepted", "a window without a tick")
    wrong = judge.wrong(table.to_pylist())
    if not wrong and asking.shifts:
        counted = judge.accidental()
        if any(due not in (None, got) for due, got in zip(counted, chance, strict=True)):
            wrong = f"{chance} accidental pairs, expected {counted}"
    return Verdict("wrong", f"{wrong}; asked {asking.given}") if wrong else RIGHT


WAYS = [
    Way(
        "asked",
        _judge,
        suits=lambda data: not data.has_histograms,
        weight=24,
    )
]
