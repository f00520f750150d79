"""How answers are compared with the reference. The one place that owns tolerances."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from coincide import CorrelateOptions, TimingCondition, Window, correlate_tables, within
from coincide.model.timestamps import IntervalEvents
from cpu_fallback.reference import decision
from cpu_fallback.reference import join as reference
from tests.helpers.strategies import JoinCase, Row

PROBABILITY_TOLERANCE = 3e-16
"""Most that a float64 satisfaction probability may differ from the exact one."""

HUGE_TOLERANCE = 2.0**-51
"""The same where lengths need more than 53 bits, so that turning them into floats rounds too."""

KEY_TYPES = {"station": pa.string(), "channel": pa.int64()}

SHAPES = [
    *((how, emit, False) for how in ("inner", "left") for emit in reference.EMITS),
    *((how, emit, True) for how in ("inner", "left") for emit in ("pairs", "lists", "best")),
    *((how, "pairs", False) for how in ("semi", "anti")),
    ("right", "pairs", False), ("right", "pairs", True), ("full", "pairs", True),
    ("right", "best", False), ("right", "best", True),
]  # fmt: skip
"""Every (how, emit, probability) that has a meaning."""
OF_ONE_STREAM = [shape for shape in SHAPES if shape[0] not in ("right", "full")]
"""And those of one stream with itself."""


def probability_is_right(found: float, exact: Fraction, tolerance: float) -> bool:
    return abs(Fraction(float(found)) - exact) <= Fraction(tolerance)


def ticks_of(rows: Sequence[Row], by: Sequence[str] = ()) -> pa.Table:
    """Rows as a table of int64 times, ids and keys."""
    kinds = {"min_time": pa.int64(), "max_time": pa.int64(), "id": pa.int64()}
    kinds |= {name: KEY_TYPES[name] for name in by}
    return pa.table({n: pa.array([row[n] for row in rows], kind) for n, kind in kinds.items()})


def condition_of(case: JoinCase) -> TimingCondition:
    return TimingCondition(within(case.lo, case.hi), case.confidence)


def window_of(case: JoinCase) -> Window:
    return Window(case.lo, case.hi, case.confidence)


def check_case(
    case: JoinCase,
    how: str = "inner",
    emit: str = "pairs",
    probability: bool = False,
    tolerance: float = PROBABILITY_TOLERANCE,
    **options: Any,
) -> None:
    """Join a case's tables and compare with the reference."""
    found = correlate_tables(
        ticks_of(case.left, case.by),
        ticks_of(case.right, case.by),
        condition_of(case),
        by=case.by,
        how=how,
        emit=emit,
        probability=probability,
        options=CorrelateOptions(**options),
    )
    found.validate(full=True)
    assert_answer(found.to_pylist(), case, how, emit, probability, tolerance)


def assert_answer(
    found: list[Row],
    case: JoinCase,
    how: str = "inner",
    emit: str = "pairs",
    probability: bool = False,
    tolerance: float = PROBABILITY_TOLERANCE,
    admits: Callable[[Mapping[str, Any], Mapping[str, Any]], bool] = lambda left, right: True,
    is_one_stream: bool = False,
    by_rows: bool = True,
) -> None:
    """Compare output rows, in any order, with the reference's; of one stream both sides are alike.

    Equal matches go by rows, or by what Spark has, their columns.
    """
    if (how, emit) == ("right", "best"):
        heads = [*case.by, "left_id", "right_id", *["probability"] * probability]
        assert all(list(row) == heads for row in found)
        swapped = case._replace(left=case.right, right=case.left, lo=-case.hi, hi=-case.lo)
        assert_answer(
            [_swapped(row) for row in found], swapped, "left", emit, probability, tolerance,
            lambda right, left: admits(left, right), is_one_stream, by_rows,
        )  # fmt: skip
        return
    if by_rows:
        sides = ([{**row, "row": i} for i, row in enumerate(side)] for side in case[:2])
        case = JoinCase(*sides, *case[2:])
    shape = how, emit, case.by, probability, admits
    if is_one_stream:
        expected = reference.correlate_stream(*case[1:5], *shape)
    else:
        expected = reference.correlate(*case[:5], *shape)
    columns = [*case.by, "left_id"]
    if how not in ("semi", "anti"):
        columns += ["matches"] if emit == "counts" else ["right_id"]
        columns += ["probability"] if probability else []
    assert all(list(row) == columns for row in found)
    if emit == "best":
        admits = reference.others(admits) if is_one_stream else admits
        _assert_best(found, expected, case, tolerance, admits)
    elif emit == "lists":
        heads = [*case.by, "left_id"]
        assert _counted(found, heads) == _counted(expected, heads)
        _assert_pairs(_exploded(found), _exploded(expected), tolerance)
    else:
        _assert_pairs(found, expected, tolerance)


def _swapped(row: Row) -> Row:
    names = {"left_id": "right_id", "right_id": "left_id"}
    return {name: row[names.get(name, name)] for name in row}


def _counted(rows: Iterable[Row], names: Sequence[str]) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in names) for row in rows)


def _exploded(rows: Iterable[Row]) -> list[Row]:
    lists = ("right_id", "probability")
    return [
        {name: value[i] if name in lists else value for name, value in row.items()}
        for row in rows
        for i in range(len(row["right_id"]))
    ]


def _assert_pairs(found: list[Row], expected: list[Row], tolerance: float) -> None:
    names = [name for name in (found or expected or [{}])[0] if name != "probability"]
    assert _counted(found, names) == _counted(expected, names)
    # Rows of equal ids are equal rows, so their probabilities are equal too.
    right = {tuple(row[n] for n in names): row.get("probability") for row in expected}
    for row in found:
        value = right[tuple(row[n] for n in names)]
        _assert_close(row.get("probability"), value, tolerance)


def _assert_close(found: float | None, expected: float | None, tolerance: float) -> None:
    if found is None or expected is None:
        assert found is expected
    else:
        # The expected one is the nearest float, up to 2**-54 from the exact value.
        assert math.isclose(found, expected, rel_tol=0, abs_tol=tolerance + 2.0**-54)


def _assert_best(
    found: list[Row],
    expected: list[Row],
    case: JoinCase,
    tolerance: float,
    admits: Callable[[Row, Row], bool],
) -> None:
    heads = [*case.by, "left_id"]
    assert _counted(found, heads) == _counted(expected, heads)
    left = {row["id"]: row for row in case.left}
    right = {row["id"]: row for row in case.right}
    for row in found:
        base, chosen = left[row["left_id"]], row["right_id"]
        matches = [other for other in case.right if admits(base, other)]
        assert reference.best_is_acceptable(base, matches, chosen, *case[2:])
        if "probability" in row and chosen is not None:
            exact = pair_probability(base, right[chosen], case.lo, case.hi)
            assert probability_is_right(row["probability"], exact, tolerance)
        elif "probability" in row:
            assert row["probability"] is None


def pair_probability(left: Row, right: Row, lo: int, hi: int) -> Fraction:
    ends = (left["min_time"], left["max_time"], right["min_time"], right["max_time"])
    return decision.satisfaction_probability(*ends, lo, hi)


def sides_of(case: JoinCase) -> tuple[IntervalEvents, IntervalEvents]:
    """Both sides of a case as arrays; nulls in times or keys get the code of no group."""
    codes: dict[tuple[Any, ...], int] = {}
    for row in [*case.left, *case.right]:
        codes.setdefault(tuple(row[name] for name in case.by), len(codes))
    left, right = (_events(rows, case.by, codes) for rows in (case.left, case.right))
    return left, right


def _events(
    rows: Sequence[Row], by: Sequence[str], codes: dict[tuple[Any, ...], int]
) -> IntervalEvents:
    times = [[row[name] or 0 for row in rows] for name in ("min_time", "max_time")]
    group = [codes[tuple(row[n] for n in by)] if is_matchable(row, by) else -1 for row in rows]
    arrays = [np.array(values, np.int64) for values in (*times, group)]
    low, high = arrays[:2]
    unmatchable = arrays[2] < 0
    low[unmatchable] = high[unmatchable] = 0
    return IntervalEvents(low, high, arrays[2], max(1, len(codes)))


def is_matchable(row: Row, by: Sequence[str]) -> bool:
    return all(row[name] is not None for name in ("min_time", "max_time", *by))


def matching_rows(case: JoinCase) -> list[tuple[int, int]]:
    """Positions of the qualifying pairs, by the reference, in order."""
    return [
        (i, j)
        for i, left in enumerate(case.left)
        for j, right in enumerate(case.right)
        if is_matchable(left, case.by)
        and is_matchable(right, case.by)
        and all(left[name] == right[name] for name in case.by)
        and decision.qualifies(pair_probability(left, right, case.lo, case.hi), case.confidence)
    ]
