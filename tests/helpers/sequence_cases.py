"""Random streams for sequences and coincidences, as tables and as rows of the oracle."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from coincide import histograms
from cpu_fallback.reference.sequences import Row

KINDS = ("instants", "intervals", "histograms")
TEMPLATES = {
    "sharp": ([-2, 0, 1], [0.25, 0.75]),
    "gap": ([-3, -2, -1, 0], [0.5, 0.0, 0.5]),
    "at once": ([-1, -1, 0], [0.5, 0.5]),
    "exact": ([0, 0], [1.0]),
}


def kinds_of(seed: int) -> Sequence[str]:
    """Kinds of times to draw: exact ones alone in a third of all cases, where links share events."""
    return KINDS if seed % 3 else ("instants",)


@dataclass
class Case:
    """Some streams, which may be one object at several places, and what each is made of."""

    tables: list[pa.Table]
    rows: list[list[Row]]
    times: dict[str, Any]
    names: tuple[str, ...]
    by: tuple[str, ...] = ()
    windows: list[tuple[int, int]] = field(default_factory=list)


def drawn_case(
    rng: random.Random,
    most_rows: int = 5,
    *,
    n: int | None = None,
    is_apart: bool = False,
    until: int = 6,
    kinds: Sequence[str] = KINDS,
) -> Case:
    """Streams of few events at few times, so that ties, exact times and equal chances are common."""
    n = n or rng.choice([2, 3, 3, 3, 4])
    longest = 4 if n == 3 else 2
    by = ("k",) if rng.random() < 0.4 else ()
    names = tuple("abcdefgh"[:n])
    tables: list[pa.Table] = []
    rows: list[list[Row]] = []
    times: dict[str, Any] = {}
    for i, name in enumerate(names):
        if i and not is_apart and rng.random() < 0.25:
            place = rng.randrange(i)
            tables.append(tables[place])
            rows.append(rows[place])
            times[name] = times[names[place]]
            continue
        kind = rng.choice(kinds)
        table, own = _stream(
            rng,
            kind,
            rng.randint(2, most_rows) if rng.random() < 0.9 else rng.randint(0, 1),
            longest,
            by,
            until,
        )
        tables.append(table)
        rows.append(own)
        times[name] = _time(kind)
    windows = []
    for _ in range(n - 1):
        lo = rng.randint(-4, 0)
        windows.append((lo, lo + rng.choice([0, 2, 4, 6, 8])))
    return Case(tables, rows, times, names, by, windows)


def _time(kind: str) -> Any:
    if kind == "histograms":
        return histograms("stamp", template="template", templates=TEMPLATES)
    return "stamp" if kind == "instants" else ("min_time", "max_time")


def _stream(
    rng: random.Random, kind: str, size: int, longest: int, by: tuple[str, ...], until: int
) -> tuple[pa.Table, list[Row]]:
    made: list[dict[str, Any]] = []
    rows: list[Row] = []
    for number in range(size):
        at = rng.randint(0, until)
        key = rng.choice([1, 2, None]) if by else 1
        is_null = rng.random() < 0.05
        if kind == "histograms":
            name = rng.choice(list(TEMPLATES))
            edges, masses = TEMPLATES[name]
            shift = at - edges[-1]
            law = [
                (low + shift, high + shift, mass)
                for low, high, mass in zip(edges, edges[1:], masses, strict=False)
            ]
            own: dict[str, Any] = {"stamp": at, "template": name}
        else:
            length = 0 if kind == "instants" else rng.randint(0, longest)
            law = [(at, at + length, 1.0)]
            own = {"stamp": at} if kind == "instants" else {"min_time": at, "max_time": at + length}
        if is_null:
            own |= {name: None for name in own if name != "template"}
        made.append({"id": 10 * number, "k": key, **own})
        rows.append({"law": None if is_null else law, "k": key})
    columns = {"instants": ["stamp"], "intervals": ["min_time", "max_time"]}
    kinds = [("id", pa.int64()), ("k", pa.int64())]
    kinds += [(name, pa.int64()) for name in columns.get(kind, ["stamp"])]
    if kind == "histograms":
        kinds.append(("template", pa.string()))
    return pa.Table.from_pylist(made, schema=pa.schema(kinds)), rows
