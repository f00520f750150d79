"""Random tables of causes and effects, and what the reference makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cpu_fallback.reference import causality as reference

XY: dict[str, Any] = {"cause_place": ("x", "y"), "effect_place": ("x", "y")}


def random_events(seed: int, n: int, *, span: int = 600, prefix: str = "e") -> pa.Table:
    """Events on a coarse grid, some without time, place or key, some of them twice."""
    rng = np.random.default_rng(seed)
    times = rng.integers(0, span, n)
    places = rng.integers(-12, 13, (2, n)) / 2
    missing = rng.random((4, n)) < 0.04
    keys = rng.choice(["a", "b", "it's c"], n)
    places[0][rng.random(n) < 0.03] = np.nan
    table = pa.table(
        {
            "id": pa.array(np.arange(n)),
            "time": pa.array(times, mask=missing[0]),
            "x": places[0],
            "y": pa.array(places[1], mask=missing[1]),
            "key": pa.array(keys, mask=missing[2]),
            "name": pa.array([f"{prefix}{i % 7}" for i in range(n)], mask=missing[3]),
        }
    )
    return pa.concat_tables([table, table.slice(0, n // 10)]) if n else table


def answer(table: pa.Table) -> list[Any]:
    """Rows in an order of their own; of lists the entries, too."""
    return sorted(map(_row, table.to_pylist()), key=repr)


def _row(row: dict[str, Any]) -> tuple[Any, ...]:
    lists = [value for value in row.values() if isinstance(value, list)]
    plain = tuple(value for value in row.values() if not isinstance(value, list))
    return (*plain, sorted(zip(*lists, strict=True), key=repr)) if lists else plain


def reference_pairs(
    causes: pa.Table,
    effects: pa.Table | None,
    predicates: Sequence[reference.Predicate],
    *,
    place: Sequence[str] = ("x", "y"),
    key: str | None = None,
) -> list[tuple[int, int]]:
    """Ids of all pairs that meet the predicates, exactly; of one stream without `effects`."""
    own = _events(causes, place, key)
    if effects is None:
        ordered = reference.causality_in_one(own, predicates, reference.plane_distance2)
        rows = reference.each_once(ordered, lambda row: (own[row][0], row))
        others = causes
    else:
        others = effects
        given = own, _events(effects, place, key)
        rows = reference.causality(*given, predicates, reference.plane_distance2)
    ids = causes["id"].to_pylist(), others["id"].to_pylist()
    return sorted((ids[0][i], ids[1][j]) for i, j in rows)


def _events(table: pa.Table, place: Sequence[str], key: str | None) -> list[reference.Event]:
    columns = [table[name].to_pylist() for name in place]
    where = [
        tuple(None if each is None or each != each else each for each in row)
        for row in zip(*columns, strict=True)
    ]
    keys = [""] * table.num_rows if key is None else table[key].to_pylist()
    return list(zip(table["time"].to_pylist(), where, keys, strict=True))
