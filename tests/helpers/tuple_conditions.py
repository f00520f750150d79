"""Random conditions on tuples of events: in SQL, and in plain Python with the nulls of SQL."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from cpu_fallback.reference.sequences import Row
from tests.helpers.sequence_cases import Case

Values = Sequence["int | None"]
"""The value of each stream's event; None is null, and what a stream without an event has."""
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True)
class Said:
    """A number, or a condition, in SQL; and what the values of events make of it."""

    sql: str
    of: Callable[[Values], Any]


@dataclass(frozen=True)
class DrawnCondition:
    """A condition in SQL, and which rows of streams it admits."""

    sql: str
    of: Callable[[Values], bool | None]

    def admits(self, *rows: Row | None) -> bool:
        """Whether it is true of these events, null counting as no."""
        return self.of([None if row is None else row["v"] for row in rows]) is True


def with_values(case: Case, rng: random.Random) -> Case:
    """The same streams, whose rows have a small number or null as ``v``; one stream remains one."""
    made: dict[int, tuple[pa.Table, list[Row]]] = {}
    for table, rows in zip(case.tables, case.rows, strict=True):
        if id(table) not in made:
            values = [rng.choice([0, 1, 1, 2, 3, None]) for _ in rows]
            own = [{**row, "v": value} for row, value in zip(rows, values, strict=True)]
            made[id(table)] = table.append_column("v", pa.array(values, pa.int64())), own
    found = [made[id(table)] for table in case.tables]
    return replace(case, tables=[each[0] for each in found], rows=[each[1] for each in found])


def drawn_condition(rng: random.Random, names: Sequence[str]) -> DrawnCondition:
    """A condition on the column ``v`` of one, two or three streams of these names."""
    found = _condition(rng, names, depth=rng.choice([0, 1, 1, 2]))
    return DrawnCondition(found.sql, found.of)


def _condition(rng: random.Random, names: Sequence[str], depth: int) -> Said:
    if depth == 0:
        return _comparison(rng, names)
    one = _condition(rng, names, depth - 1)
    word = rng.choice(["AND", "OR", "NOT"])
    if word == "NOT":
        return Said(f"NOT ({one.sql})", lambda v: None if (a := one.of(v)) is None else not a)
    other = _condition(rng, names, depth - 1)
    decisive = word == "OR"  # one such value decides, whatever the other is

    def of(values: Values) -> bool | None:
        both = [one.of(values), other.of(values)]
        if decisive in both:
            return decisive
        return None if None in both else not decisive

    return Said(f"({one.sql}) {word} ({other.sql})", of)


def _comparison(rng: random.Random, names: Sequence[str]) -> Said:
    one, other = _number(rng, names), _number(rng, names)
    kind = rng.choice(["sign", "sign", "sign", "null", "in"])
    if kind == "null":
        word, is_null = rng.choice([("IS NULL", True), ("IS NOT NULL", False)])
        return Said(f"{one.sql} {word}", lambda v: (one.of(v) is None) == is_null)
    if kind == "in":
        return Said(
            f"{one.sql} IN (0, 2)", lambda v: None if (a := one.of(v)) is None else a in (0, 2)
        )
    sign = rng.choice(list(_COMPARISONS))

    def of(values: Values) -> bool | None:
        a, b = one.of(values), other.of(values)
        return None if a is None or b is None else _COMPARISONS[sign](a, b)

    return Said(f"{one.sql} {sign} {other.sql}", of)


def _number(rng: random.Random, names: Sequence[str]) -> Said:
    kind = rng.choice(["column", "column", "column", "literal", "sum", "coalesce", "abs"])
    i, j = rng.randrange(len(names)), rng.randrange(len(names))
    own, other = f"{names[i]}_v", f"{names[j]}_v"
    if kind == "literal":
        value = rng.randint(0, 2)
        return Said(str(value), lambda v: value)
    if kind == "sum":
        return Said(f"{own} + {other}", lambda v: None if None in (v[i], v[j]) else v[i] + v[j])
    if kind == "coalesce":
        return Said(f"coalesce({own}, {other}, 1)", lambda v: _first(v[i], v[j], 1))
    if kind == "abs":
        return Said(f"abs({own} - 1)", lambda v: None if v[i] is None else abs(v[i] - 1))
    return Said(own, lambda v: v[i])


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)
