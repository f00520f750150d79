"""Sequences of tables against the oracle: all tuples, and volumes by counting simplices."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from coincide import CorrelateOptions, sequence_tables
from cpu_fallback.reference.sequences import sequences, steps
from tests.helpers.sequence_cases import Case, drawn_case

Tuples = list[tuple[tuple[int, ...], Any]]


def wanted(case: Case, confidence: float, total: tuple[int, int] | None) -> Tuples:
    """The rows of all sequences by the oracle, and their probabilities."""
    return sequences(case.rows, steps(case.windows, total), confidence, case.by)


def total_of(rng: random.Random, case: Case) -> tuple[int, int] | None:
    """A window on the whole that excludes some sequences and not all."""
    are_exact = all(time == "stamp" for time in case.times.values())
    if len(case.windows) < 2 or rng.random() < 0.5 or (len(case.windows) > 2 and not are_exact):
        return None
    least, most = (sum(each) for each in zip(*case.windows, strict=True))
    lo = rng.randint(least - 1, most)
    return lo, rng.randint(max(lo, least), most + 2)


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("seed", range(150))
def test_tables_give_the_sequences_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    case = drawn_case(rng)
    confidence = rng.choice([0.1, 0.25, 0.5, 0.75, 1.0])
    total = total_of(rng, case)
    expected = wanted(case, confidence, total)
    asked: dict[str, Any] = {
        "names": case.names, "time": case.times, "by": case.by, "total": total,
        "options": CorrelateOptions(threads=1, batch_pairs=rng.choice([1, 3, None])),
    }  # fmt: skip
    given = case.tables, case.windows, confidence
    found = sequence_tables(*given, **asked, probability=True)
    columns = [found[f"{name}_id"].to_pylist() for name in case.names]
    chances = dict(zip(zip(*columns, strict=True), found["probability"].to_pylist(), strict=True))
    assert found.num_rows == len(chances)
    assert set(chances) == {tuple(10 * row for row in rows) for rows, _ in expected}
    for rows, chance in expected:
        assert chances[tuple(10 * row for row in rows)] == pytest.approx(float(chance), abs=1e-13)
    # Without probabilities, bounds on them decide.
    bare = sequence_tables(*given, **asked)
    rows = zip(*(bare[f"{name}_id"].to_pylist() for name in case.names), strict=True)
    assert sorted(rows) == sorted(chances)
    counts = sequence_tables(*given, **asked, emit="counts")
    by_first = Counter(10 * rows[0] for rows, _ in expected)
    first = f"{case.names[0]}_id"
    found_of = zip(counts[first].to_pylist(), counts["sequences"].to_pylist(), strict=True)
    assert dict(found_of) == by_first
    alone = sequence_tables(*given, **asked, how="anti")
    assert alone[first].to_pylist() == [
        10 * row for row in range(len(case.rows[0])) if 10 * row not in by_first
    ]
