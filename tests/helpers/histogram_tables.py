"""Tables of events with histogram timestamps, and the pairs of them by the definition."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from coincide import Histograms, histograms
from coincide.model.condition import Window
from cpu_fallback.reference.join import qualifies, satisfaction_probability

Bucket = tuple[int, int, float]

LENGTHS = (0, 5, 40, 90)


def events(seed: int, count: int, templates: int = 4, span: int = 3000) -> pa.Table:
    """Rows of whole times in order, each with a template that is one of the first."""
    rng = np.random.default_rng(seed)
    return pa.table({
        "id": np.arange(count),
        "device": pa.array([f"d{i}" for i in rng.integers(0, templates, count)]),
        "seen_at": np.sort(rng.integers(0, span, count)),
        "place": pa.array(rng.choice(["a", "b", "c"], count)),
    })  # fmt: skip


def one_bucket() -> pa.Table:
    """Templates that are intervals of the `LENGTHS`."""
    lower = [-length for length in LENGTHS]
    ids = [f"d{i}" for i in range(len(LENGTHS))]
    return pa.table({"template": ids, "lower": lower, "upper": [0] * 4, "mass": [1.0] * 4})


def with_ends(table: pa.Table) -> pa.Table:
    """The same events as intervals."""
    lengths = np.array([LENGTHS[int(name[1:])] for name in table["device"].to_pylist()])
    return table.append_column("min_time", pa.array(table["seen_at"].to_numpy() - lengths))


def random_templates(seed: int, templates: int = 4) -> pa.Table:
    """Delays of detection in some buckets each, with gaps, instants and empty buckets."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for i in range(templates):
        edges = np.sort(rng.integers(3, 90, rng.integers(2, 6)))
        masses = np.round(rng.dirichlet(np.ones(edges.size - 1)), 3)
        masses[0] = max(0.0, masses[0] + (1.0 - masses.sum()))  # not -1e-16
        rows += [
            {"template": f"d{i}", "delay_lower": int(a), "delay_upper": int(b), "mass": float(m)}
            for a, b, m in zip(edges, edges[1:], masses, strict=False)
        ]
    return pa.Table.from_pylist(rows)


def by_device(templates: pa.Table) -> Histograms:
    """Histograms of the columns of `events`."""
    return histograms("seen_at", template="device", templates=templates)


def histograms_of(table: pa.Table, templates: pa.Table) -> list[list[Bucket]]:
    """The buckets of each row: what was seen at t took place at t less its delay."""
    buckets: dict[str, list[tuple[int, int, float]]] = {}
    for row in templates.to_pylist():
        delays = row["delay_lower"], row["delay_upper"], row["mass"]
        buckets.setdefault(row["template"], []).append(delays)
    return [
        [
            (row["seen_at"] - high, row["seen_at"] - low, m)
            for low, high, m in buckets[row["device"]]
        ]
        for row in table.to_pylist()
    ]


def intervals_of(table: pa.Table) -> list[list[Bucket]]:
    """As `histograms_of`, of a table `with_ends`."""
    return [[(row["min_time"], row["seen_at"], 1.0)] for row in table.to_pylist()]


def pairs_by_definition(
    left: tuple[pa.Table, list[list[Bucket]]],
    right: tuple[pa.Table, list[list[Bucket]]],
    window: Window,
) -> dict[tuple[int, int], float]:
    """Ids of the pairs of one place that qualify, with their probability."""
    found = {}
    for i, (own, mine) in enumerate(zip(left[0]["place"].to_pylist(), left[1], strict=True)):
        for j, (other, theirs) in enumerate(
            zip(right[0]["place"].to_pylist(), right[1], strict=True)
        ):
            if own == other and (p := _probability(mine, theirs, window)) is not None:
                found[i, j] = p
    return found


def _probability(left: list[Bucket], right: list[Bucket], window: Window) -> float | None:
    total = Fraction(0)
    for low, high, p in left:
        for other_low, other_high, q in right:
            if other_high - low >= window.lo and other_low - high <= window.hi:
                part = satisfaction_probability(
                    low, high, other_low, other_high, window.lo, window.hi
                )
                total += Fraction(p) * Fraction(q) * part
    masses = [sum(Fraction(mass) for *_, mass in each) for each in (left, right)]
    total /= masses[0] * masses[1]
    return float(total) if total and qualifies(total, window.confidence) else None


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    """Rows, lists sorted, probabilities as far as different formulas agree."""
    rows = [{name: _plain(value) for name, value in row.items()} for row in table.to_pylist()]
    return sorted(rows, key=str)


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return sorted(map(_plain, value), key=str)
    return round(value, 9) if isinstance(value, float) else value


def spoiled(table: pa.Table) -> pa.Table:
    """The rows with, from the first: no time and no template, no template, an unknown one, a far time."""
    times, device = table["seen_at"].to_pylist(), table["device"].to_pylist()
    times[0], device[0] = None, None
    device[1], device[2], times[3] = None, "fridge", 2**61 - 1
    table = table.set_column(1, "device", pa.array(device))
    return table.set_column(2, "seen_at", pa.array(times))
