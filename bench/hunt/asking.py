"""What a case asks of a join, next to its shape: clocks, keys, conditions on pairs, which matches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bench.hunt.cases import Case
from bench.hunt.chance import Chance
from bench.hunt.jobs import SHAPES
from bench.hunt.oracle import Oracle
from coincide import CorrelateOptions, around, resolution
from cpu_fallback.reference.join import Row, others

_MOST_ROWS = 16
_LIMIT = 2**59
"""Times and windows stay far from the limits, which other ways go to."""
_KEYS = ("a", "b", "É", "ß")
_AMOUNTS = (0, 1, 2, 3, None)
_SUM = pc.field("left_amount") + pc.field("right_amount")
_Admits = Callable[[Row, Row], bool]


def _of_amounts(test: Callable[[int, int], bool]) -> _Admits:
    """Null counts as no."""

    def admits(left: Row, right: Row) -> bool:
        amounts = left["amount"], right["amount"]
        return None not in amounts and test(*amounts)

    return admits


WHERES: list[tuple[Any, _Admits]] = [
    ("left_amount = right_amount", _of_amounts(lambda a, b: a == b)),
    ("NOT left_amount = right_amount", _of_amounts(lambda a, b: a != b)),
    ("left_amount < right_amount AND left_amount > 0", _of_amounts(lambda a, b: 0 < a < b)),
    ("left_amount IS NULL OR right_amount IN (1, 2)",
     lambda left, right: left["amount"] is None or right["amount"] in (1, 2)),
    (_SUM > 3, _of_amounts(lambda a, b: a + b > 3)),
    ("left_id <> right_id", lambda left, right: left["id"] != right["id"]),
    ("1 = 2", lambda left, right: False),
]  # fmt: skip


@dataclass(frozen=True)
class Asking:
    """One join, as its arguments and as the reference takes it."""

    # As the reference takes them, ids being their numbers; of one stream `right` is the same.
    left: list[Row]
    right: list[Row]
    tables: tuple[pa.Table, pa.Table | None]
    given: dict[str, Any]  # arguments of `correlate_tables`, but for the condition
    # Which ordered pairs may meet: by keys, by `where`, and of one stream not an event with itself.
    admits: _Admits
    lo: int  # ends of the window; `closed` says whether they belong to it
    hi: int
    closed: str
    shifts: list[int]

    @property
    def is_one(self) -> bool:
        """Whether both sides are one stream."""
        return self.tables[1] is None

    @property
    def window(self) -> tuple[int, int]:
        """The first and the last tick of the window."""
        return self.lo + (self.closed in ("right", "neither")), self.hi - (
            self.closed in ("left", "neither")
        )

    def swapped(self) -> Asking:
        """The same pairs of swapped sides, with left ones that have no match."""
        ends = {"left": "right", "right": "left"}
        return replace(
            self, left=self.right, right=self.left, lo=-self.hi, hi=-self.lo,
            closed=ends.get(self.closed, self.closed), given={**self.given, "how": "left"},
            admits=lambda right, left: self.admits(left, right),
        )  # fmt: skip


def draw_asking(case: Case) -> Asking:
    """A join of the events of a case."""
    chance = case.chance("asked")
    is_one, keys = chance.happens(30), chance.choice((0, 0, 1, 2))
    clocks = [_draw_clock(chance) for _ in range(2)]
    if is_one:
        clocks[1] = clocks[0]
    sides = [_rows(case.oracle, side, clocks[side]) for side in (0, 0 if is_one else 1)]
    renamed = not is_one and chance.happens(50)
    names = [
        [f"key{i}" for i in range(keys)],
        [f"of{i}" if renamed else f"key{i}" for i in range(keys)],
    ]
    tables = [_table(*each) for each in zip(sides, clocks, names, strict=True)]
    shape = _draw_shape(chance, is_one)
    # Which takes no condition that holds in one order of a pair alone.
    is_alike = is_one and "matching" in shape
    any_pair: tuple[str | None, Any] = (None, lambda left, right: True)
    where, met = chance.choice(WHERES) if chance.happens(50) and not is_alike else any_pair
    given = {
        "by": list(zip(*names, strict=True)),
        "where": where,
        "left_time": clocks[0].given,
        "options": CorrelateOptions(
            threads=chance.choice((1, 2)), batch_pairs=chance.choice((None, 1, 7, 50)),
            classes=chance.choice((None, 1, 3)),
        ),
        **shape,
    }  # fmt: skip
    if not is_one:
        given["right_time"] = clocks[1].given

    def admits(left: Row, right: Row) -> bool:
        pairs = list(zip(_keys(left, keys), _keys(right, keys), strict=True))
        alike = all(a is not None and a == b for a, b in pairs)
        return alike and met(left, right)

    lo, hi = (max(-_LIMIT, min(_LIMIT, end)) for end in (case.data.lo, case.data.hi))
    if is_alike:
        lo, hi = -max(abs(lo), abs(hi)), max(abs(lo), abs(hi))
    lengths = [max((r["max_time"] - r["min_time"] for r in s if r["max_time"] is not None), default=0)
               for s in sides]  # fmt: skip
    least = (2 * max(abs(lo), abs(hi)) if is_one else hi - lo) + 2 * sum(lengths) + 1
    can_shift = not (is_one and given.get("emit", "pairs") == "pairs") and case.job.how == "inner"
    can_shift &= "aggregates" not in given
    can_shift &= least < _LIMIT
    shifts = [least, -least - 1] if can_shift and chance.happens(25) else []
    return Asking(
        sides[0], sides[1], (tables[0], None if is_one else tables[1]), given,
        others(admits) if is_one else admits, lo, hi,
        chance.choice(("both", "neither") if is_alike else ("both", "both", "left", "right", "neither")),
        shifts,
    )  # fmt: skip


def _draw_shape(chance: Chance, is_one: bool) -> dict[str, Any]:
    """The shape of the result, and which matches it has."""
    if chance.happens(20 if is_one else 30):
        matchings = ("mutual", "unambiguous") if is_one else ("mutual", "optimal", "unambiguous")
        matching = chance.choice(matchings)
        prefers = {"optimal": ("probability", "nearest"), "unambiguous": ("probability",)}
        any_of = prefers["optimal"] if is_one else _PREFERENCES
        prefer = chance.choice(prefers.get(matching, any_of))
        return {"matching": matching, "prefer": prefer, "probability": True}
    of_one = [shape for shape in SHAPES if shape[0] not in ("right", "full")]
    how, emit, probability = chance.choice(of_one if is_one else SHAPES)
    found: dict[str, Any] = {"how": how, "emit": emit, "probability": probability}
    if emit == "best":
        found |= {"prefer": chance.choice(_PREFERENCES), "k": chance.choice((1, 1, 2, 5))}
    if emit == "aggregates":
        found["aggregates"] = _AGGREGATES
    return found


_AGGREGATES = {"n": "count", "latest": ("id", "max")} | {
    name: ("amount", name) for name in ("sum", "mean", "std", "min", "first", "last", "count")
}
_PREFERENCES = ("probability", "nearest", "first", "last", "amount", "-amount")


@dataclass(frozen=True)
class _Clock:
    """How a side says what it knows of times."""

    kind: str
    before: int = 0
    after: int = 0

    @property
    def given(self) -> Any:
        if self.kind == "around":
            return around("t", before=self.before, after=self.after)
        if self.kind == "resolution":
            return resolution("t", self.after)
        if self.kind == "by row":
            return around("t", column=("before", "after"))
        return "min_time", "max_time"

    def ends(self, low: int, high: int) -> tuple[int, int]:
        """What an event of these ends is by this clock."""
        if self.kind in ("around", "resolution"):
            return low - self.before, low + self.after
        return low, high

    def columns(self, rows: list[Row]) -> dict[str, list[int | None]]:
        ends = [(row["min_time"], row["max_time"]) for row in rows]
        if self.kind in ("around", "resolution"):
            return {"t": [None if a is None else a + self.before for a, _ in ends]}
        if self.kind == "interval":
            return {"min_time": [a for a, _ in ends], "max_time": [b for _, b in ends]}
        halves = [None if a is None else (b - a) // 2 for a, b in ends]
        both = list(zip(ends, halves, strict=True))
        return {
            "t": [None if a is None else a + half for (a, _), half in both],
            "before": halves,
            "after": [None if a is None else b - a - half for (a, b), half in both],
        }


def _draw_clock(chance: Chance) -> _Clock:
    kind = chance.choice(("interval", "interval", "around", "resolution", "by row"))
    before = chance.integer(0, 20) if kind == "around" else 0
    return _Clock(kind, before, chance.integer(1, 30))


def _rows(oracle: Oracle, side: int, clock: _Clock) -> list[Row]:
    """Some events of a side, by a clock; what else they have depends on their columns alone."""
    found: list[Row] = []
    for event in oracle.sides[side].events:
        if max(abs(event.low), abs(event.high)) > _LIMIT or len(found) == _MOST_ROWS:
            continue
        low, high = clock.ends(event.low, event.high) if event.matchable else (None, None)
        mark = event.row.number
        found.append(
            {
                "min_time": low, "max_time": high, "id": len(found), "mark": mark,
                "amount": _AMOUNTS[mark % 5],
            }
        )  # fmt: skip
    return found


def _key(row: Row, i: int) -> str | None:
    """The key of a row, in some case."""
    mark = row["mark"] // (3 + 4 * i)
    if mark % 11 == 10:
        return None
    text = _KEYS[mark % (2 + 2 * i)]
    # The letter ß has no capital.
    return text.upper() if mark % 2 and text != "ß" else text.lower() if mark % 3 else text


def _keys(row: Row, count: int) -> list[str | None]:
    return [_key(row, i) for i in range(count)]


def _table(rows: list[Row], clock: _Clock, names: list[str]) -> pa.Table:
    columns = {name: pa.array(each, pa.int64()) for name, each in clock.columns(rows).items()}
    for name in ("id", "amount"):
        columns[name] = pa.array([row[name] for row in rows], pa.int64())
    for i, name in enumerate(names):
        columns[name] = pa.array([_key(row, i) for row in rows], pa.string())
    return pa.table(columns)
