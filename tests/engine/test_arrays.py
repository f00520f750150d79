"""`correlate_arrays` in the host's memory: the reference's pairs, and what arrays may be."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from coincide import (
    ArrayMatches,
    CoincideError,
    ConditionError,
    CorrelateOptions,
    DataError,
    EventArrays,
    JoinReport,
    MemoryBudgetError,
    NoPairsWarning,
    SchemaError,
    correlate_arrays,
    correlate_tables,
    overlapping,
)
from cpu_fallback.reference.decision import (
    decision_is_clear,
    qualifies,
    satisfaction_probability,
)
from tests.helpers.comparison import PROBABILITY_TOLERANCE, probability_is_right

Window = tuple[int, int]


def drawn(rng: np.random.Generator, n: int, *, is_exact: bool, has_key: bool) -> EventArrays:
    """Events on few ticks, so that many times and keys are equal; some keys match nothing."""
    low = rng.integers(-30, 30, n)
    low = np.sort(low) if rng.random() < 0.4 else low
    high = None if is_exact else low + rng.choice([0, 1, 4, 15], n)
    return EventArrays(low, high, rng.integers(-1, 3, n) if has_key else None)


def probabilities(left: EventArrays, right: EventArrays, window: Window) -> dict[Any, Fraction]:
    """The probability of each pair of rows whose keys are equal, from the reference."""

    def event(side: EventArrays, row: int) -> tuple[int, int]:
        low = int(side.min_time[row])
        return low, low if side.max_time is None else int(side.max_time[row])

    def may_meet(i: int, j: int) -> bool:
        return left.key is None or (left.key[i] == right.key[j] and left.key[i] >= 0)

    rows = itertools.product(range(len(left.min_time)), range(len(right.min_time)))
    return {
        (i, j): satisfaction_probability(*event(left, i), *event(right, j), *window)
        for i, j in rows
        if may_meet(i, j)
    }


def pairs_of(found: ArrayMatches, emit: str) -> list[tuple[int, int]]:
    if emit == "pairs":
        return list(zip(found.left.tolist(), found.right.tolist(), strict=True))
    counts = np.diff(found.offsets)
    return list(
        zip(np.repeat(np.arange(counts.size), counts).tolist(), found.right.tolist(), strict=True)
    )


@pytest.mark.parametrize("is_exact", [True, False], ids=["exact", "uncertain"])
@pytest.mark.parametrize("has_key", [False, True], ids=["no key", "key"])
def test_pairs_lists_counts_and_best_are_the_references(is_exact: bool, has_key: bool) -> None:
    found_some = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, is_exact, has_key])
        left, right = (
            drawn(rng, int(n), is_exact=is_exact, has_key=has_key) for n in rng.integers(0, 25, 2)
        )
        lo = int(rng.integers(-12, 8))
        window, confidence = (
            (lo, lo + int(rng.integers(0, 15))),
            float(rng.choice([0.2, 0.53, 0.97])),
        )
        exact = probabilities(left, right, window)
        if not all(decision_is_clear(p, confidence) for p in exact.values()):
            continue
        expected = sorted(rows for rows, p in exact.items() if qualifies(p, confidence))
        found_some += len(expected)
        options = CorrelateOptions(threads=int(rng.integers(1, 3)), classes=int(rng.integers(1, 4)))
        given: dict[str, Any] = {"within": window, "confidence": confidence, "options": options}
        for emit, order, rows in itertools.product(
            ("pairs", "lists"), ("any", "left"), ("auto", "int32")
        ):
            found = correlate_arrays(
                left,
                right,
                emit=emit,
                order=order,
                rows=rows,
                probability=True,
                delta=True,
                **given,
            )
            pairs = pairs_of(found, emit)
            assert sorted(pairs) == expected
            assert found.right.dtype == (np.int32 if rows == "int32" else np.int64)
            assert emit == "lists" or order == "any" or np.all(np.diff(found.left) >= 0)
            check_measures(found, pairs, exact, left, right)
        counts = correlate_arrays(left, right, emit="counts", **given).counts
        assert counts.tolist() == [
            sum(i == row for i, _ in expected) for row in range(len(left.min_time))
        ]
        best = correlate_arrays(left, right, emit="best", probability=True, delta=True, **given)
        check_best(best, expected, exact, left, right)
    assert found_some > 150


def check_measures(
    found: ArrayMatches,
    pairs: list[tuple[int, int]],
    exact: dict[Any, Fraction],
    left: EventArrays,
    right: EventArrays,
) -> None:
    for pair, p, delta in zip(pairs, found.probability, found.delta, strict=True):
        assert probability_is_right(p, exact[pair], PROBABILITY_TOLERANCE)
        assert delta == delta_of(left, right, pair)


def delta_of(left: EventArrays, right: EventArrays, pair: tuple[int, int]) -> int:
    """Between midpoints, half a tick left off."""

    def doubled(side: EventArrays, row: int) -> int:
        high = side.min_time if side.max_time is None else side.max_time
        return int(side.min_time[row]) + int(high[row])

    apart = Fraction(doubled(right, pair[1]) - doubled(left, pair[0]), 2)
    return int(apart)  # towards 0


def check_best(
    found: ArrayMatches,
    expected: list[tuple[int, int]],
    exact: dict[Any, Fraction],
    left: EventArrays,
    right: EventArrays,
) -> None:
    for row, match in enumerate(found.right.tolist()):
        own = [pair for pair in expected if pair[0] == row]
        if match < 0:
            assert not own
            assert np.isnan(found.probability[row])
            assert np.isnat(found.delta[row : row + 1].view("timedelta64[us]")[0])
            continue
        assert (row, match) in own
        highest = max(exact[pair] for pair in own)
        assert exact[row, match] >= highest - Fraction(1, 10**15)
        assert found.delta[row] == delta_of(left, right, (row, match))


@pytest.mark.parametrize("is_exact", [True, False], ids=["exact", "uncertain"])
def test_one_stream_gives_what_tables_give(is_exact: bool) -> None:
    found_some = 0
    for seed in range(40):
        rng = np.random.default_rng([seed, is_exact])
        events = drawn(rng, int(rng.integers(0, 30)), is_exact=is_exact, has_key=False)
        named = {"a": events.min_time, "b": events.min_time if is_exact else events.max_time}
        times: Any = "a" if is_exact else ("a", "b")
        window = (int(rng.integers(-9, 1)), int(rng.integers(0, 9)))
        given: dict[str, Any] = {"within": window, "confidence": 0.6}
        for emit in ("pairs", "lists", "counts", "best"):
            table = correlate_tables(
                named,
                left_time=times,
                how="left" if emit != "pairs" else "inner",
                emit=emit,
                **given,
            )
            found = correlate_arrays(events, emit=emit, **given)
            if emit == "pairs":
                expected = sorted(
                    zip(*(table[c].to_pylist() for c in ("left_id", "right_id")), strict=True)
                )
                assert sorted(pairs_of(found, emit)) == expected
                found_some += len(expected)
            elif emit == "counts":
                assert found.counts.tolist() == table["matches"].to_pylist()
            elif emit == "best":
                assert found.right.tolist() == [
                    -1 if r is None else r for r in table["right_id"].to_pylist()
                ]
            else:
                lists = np.split(found.right, found.offsets[1:-1]) if len(events.min_time) else []
                assert [sorted(each.tolist()) for each in lists] == [
                    sorted(each) for each in table["right_id"].to_pylist()
                ]
    assert found_some > 100


def test_order_any_is_that_of_times_and_left_that_of_rows() -> None:
    left, right = np.array([30, 10, 20]), np.array([31, 21, 12, 11])
    found = correlate_arrays(left, right, within=(0, 2))
    assert (found.left.tolist(), found.right.tolist()) == ([1, 1, 2, 0], [3, 2, 1, 0])
    found = correlate_arrays(left, right, within=(0, 2), order="left")
    assert (found.left.tolist(), found.right.tolist()) == ([0, 1, 1, 2], [0, 3, 2, 1])


ARRAYS: dict[str, Any] = {
    "numpy": np.asarray,
    "int32": lambda a: np.asarray(a, np.int32),
    "uint8": lambda a: np.asarray(a, np.uint8),
    "big-endian": lambda a: np.asarray(a, ">i8"),
    "strided": lambda a: np.repeat(a, 2)[::2],
    "read-only": lambda a: np.frombuffer(np.asarray(a, np.int64).tobytes(), np.int64),
    "list": list,
    "arrow": pa.array,
    "chunked": lambda a: pa.chunked_array([a[:1], a[1:]]),
    "pandas": pd.Series,
    "pandas index": pd.Index,
    "polars": pl.Series,
    "datetime64[ns]": lambda a: np.asarray(a).astype("datetime64[ns]"),
    "timedelta64[ns]": lambda a: np.asarray(a).astype("timedelta64[ns]"),
    "pandas times": lambda a: pd.Series(np.asarray(a).astype("datetime64[ns]")),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays_of_many_kinds(kind: str) -> None:
    make = ARRAYS[kind]
    left, right = make([3, 10, 40, 99]), make([5, 11, 12, 60])
    found = correlate_arrays(
        left, right, within=("-2ns", "2ns"), options=CorrelateOptions(unit="ns")
    )
    assert (found.left.tolist(), found.right.tolist()) == ([0, 1, 1], [0, 1, 2])
    assert isinstance(found.left, np.ndarray)


def test_times_count_in_the_finest_unit_of_both_sides() -> None:
    left = np.array(["2026-01-01", "2026-01-02"], "datetime64[D]")
    right = np.array(["2026-01-01T00:00:00.000000007"], "datetime64[ns]")
    found = correlate_arrays(left, right, within=("0ns", "7ns"), delta=True)
    assert found.delta.dtype == "m8[ns]"
    assert found.delta.view(np.int64).tolist() == [7]
    assert correlate_arrays(left, right, within=("0ns", "6ns"), emit="counts").counts.tolist() == [
        0,
        0,
    ]
    hours = correlate_arrays(left.astype("M8[h]"), left.astype("M8[m]"), within="12h", delta=True)
    assert (hours.left.tolist(), hours.delta.view(np.int64).tolist()) == ([0, 1], [0, 0])
    seconds = np.array([0, 9], "M8[s]"), np.array([4, 20], "M8[ms]").astype("M8[s]") + 5
    found = correlate_arrays(*seconds, within="9s", delta=True)
    assert np.array_equal(seconds[0][found.left] + found.delta, seconds[1][found.right])
    tens = np.array([1, 2]).astype("M8[10ns]")
    assert correlate_arrays(tens, tens, within=("0ns", "5ns")).left.tolist() == [0, 1]
    floats = correlate_arrays(np.array([0.5]), np.array([0.75]), within="250ms", delta=True,
                              options=CorrelateOptions(unit="s"))  # fmt: skip
    assert floats.delta.tolist() == [250_000_000]


KINDS = [*(f"M8[{unit}]" for unit in ("ns", "us", "ms", "s", "m", "h", "D", "7s", "30ms", "250ns"))]
WHOLE = ["i8", "i4", "u4", "i2", "u8"]


def in_kind(rng: np.random.Generator, kind: str) -> np.ndarray:
    """Times of about two days, in whole ticks of a kind."""
    if kind not in KINDS:
        return rng.integers(0, 90, 40).astype(kind)
    found = rng.integers(0, 2 * 86_400_000, 40).astype("M8[ms]")
    return found.astype("M8[us]").astype(kind) if kind != "D" else found.astype(kind)


@pytest.mark.parametrize("seed", range(40))
def test_arrays_and_tables_read_the_same_times(seed: int) -> None:
    """Arrays, dicts of arrays, and Arrow tables where it has the type, against whole nanoseconds."""
    rng = np.random.default_rng(seed)
    kinds = rng.choice(KINDS if seed % 4 else WHOLE, 2)
    left, right = (in_kind(rng, str(kind)) for kind in kinds)
    reach, window = (3, (-3, 3)) if not seed % 4 else (2 * 3600 * 10**9, ("-2h", "2h"))
    ticks = [
        each.astype("M8[ns]").astype(np.int64) if seed % 4 else each.astype(np.int64)
        for each in (left, right)
    ]
    apart = ticks[1] - ticks[0][:, np.newaxis]
    expected = sorted(
        zip(*(rows.tolist() for rows in np.nonzero(abs(apart) <= reach)), strict=True)
    )
    found = correlate_arrays(left, right, within=window, delta=True)
    assert sorted(pairs_of(found, "pairs")) == expected
    apart = apart[found.left, found.right]
    deltas = found.delta.astype("m8[ns]").astype(np.int64) if seed % 4 else found.delta
    assert deltas.tolist() == apart.tolist()
    options = CorrelateOptions(unit="ns") if "ns" in "".join(kinds) else CorrelateOptions()
    table = correlate_tables({"t": left}, {"t": right}, within=window, left_time="t", right_time="t",
                             options=options)  # fmt: skip
    rows = (table[name].to_pylist() for name in ("left_id", "right_id"))
    assert sorted(zip(*rows, strict=True)) == expected


def test_aggregates_of_arrays() -> None:
    left, right = np.array([0, 100, 200]), np.array([1, 2, 101, 900])
    amp, flag = np.array([0.1, 0.2, 5.0, 9.0]), np.array([3, -4, 7, 8], np.int32)
    when = right.astype("datetime64[s]")
    found = correlate_arrays(
        left, right, within=5, emit="aggregates",
        aggregates={
            "n": "count", "sum": (amp, "sum"), "low": (flag, "min"), "mean": (flag, "mean"),
            "last": (when, "last"), "late": ("delta", "max"),
        },
    )  # fmt: skip
    assert found.counts.tolist() == [2, 1, 0]
    assert found.aggregates is not None
    assert list(found.aggregates) == ["n", "sum", "low", "mean", "last", "late"]
    assert found.aggregates["n"].tolist() == [2, 1, 0]
    assert found.aggregates["sum"].tolist()[:2] == [0.1 + 0.2, 5.0]
    assert np.isnan(found.aggregates["sum"][2])
    assert found.aggregates["low"].tolist() == [-4, 7, 0]
    assert found.aggregates["low"].dtype == np.int32
    assert found.aggregates["mean"].tolist()[:2] == [-0.5, 7.0]
    assert found.aggregates["last"].tolist()[:2] == when[1:3].tolist()
    assert np.isnat(found.aggregates["last"][2])
    assert found.aggregates["late"].tolist() == [2, 1, 0]


def test_aggregates_of_one_stream_and_of_keys() -> None:
    events = EventArrays(np.array([0, 3, 4, 50]), key=np.array([1, 1, -1, 1]))
    found = correlate_arrays(events, within=10, emit="aggregates",
                             aggregates={"total": (np.array([1, 10, 100, 1000]), "sum")})  # fmt: skip
    assert found.aggregates is not None
    assert found.aggregates["total"].tolist() == [10, 1, 0, 0]
    assert found.counts.tolist() == [1, 1, 0, 0]


def test_aggregates_without_a_value_are_told_by_their_count() -> None:
    left, right = np.array([0, 100]), np.array([1, 101])
    values = pd.Series([1, None], dtype="Int64")
    asked = {"key": (values, "max"), "min_time": (values, "count")}
    found = correlate_arrays(left, right, within=5, emit="aggregates", aggregates=asked)
    assert found.aggregates is not None
    assert found.counts.tolist() == [1, 1]
    assert found.aggregates["key"].tolist() == [1, 0]
    assert found.aggregates["min_time"].tolist() == [1, 0]


@pytest.mark.parametrize("empty", [[], np.array([]), np.empty(0, np.int32)], ids=["a", "b", "c"])
def test_no_events_of_whatever_type(empty: Any) -> None:
    assert correlate_arrays(empty, np.array([1, 2]), within=5).left.size == 0
    assert correlate_arrays(np.array([1, 2]), empty, within=5, emit="counts").counts.tolist() == [
        0,
        0,
    ]


@pytest.mark.parametrize("emit", ["pairs", "lists", "counts", "best"])
@pytest.mark.parametrize("sizes", [(0, 0), (0, 3), (3, 0)])
def test_empty_sides(emit: Any, sizes: tuple[int, int]) -> None:
    left, right = (np.arange(n) for n in sizes)
    found = correlate_arrays(left, right, within=(0, 5), emit=emit, delta=emit != "counts")
    if emit == "counts":
        assert found.counts.tolist() == [0] * sizes[0]
    elif emit == "best":
        assert found.right.tolist() == [-1] * sizes[0]
    else:
        assert found.right.size == found.delta.size == 0
    assert emit != "lists" or found.offsets.tolist() == [0] * (sizes[0] + 1)


def test_dense_and_large_counts_are_cut_among_threads() -> None:
    rng = np.random.default_rng(5)
    left, right = rng.integers(0, 10**6, 40_000), rng.integers(0, 10**6, 30_000)
    key = rng.integers(0, 3, 40_000)
    for given in (
        ((left,), (right,)),
        ((left, None, key), (right, None, key[:30_000])),
        ((left, left + 5), (right, right + 9)),
    ):
        one, two = (
            correlate_arrays(*given, within=(-900, 900), confidence=0.5, order=order,
                             options=CorrelateOptions(threads=threads))
            for order, threads in (("left", 1), ("any", 2))
        )  # fmt: skip
        places = np.lexsort((two.right, two.left))
        again = np.lexsort((one.right, one.left))
        assert np.array_equal(one.left[again], two.left[places])
        assert np.array_equal(one.right[again], two.right[places])
        assert one.left.size > 500_000


def test_a_report_and_the_most_pairs() -> None:
    left, right = np.arange(10), np.arange(10)
    report = JoinReport()
    correlate_arrays(left, right, within=(0, 2), report=report)
    summary = report.summary()
    assert summary.counters is not None
    assert summary.counters.pairs == 27
    with pytest.raises(MemoryBudgetError, match="found 27"):
        correlate_arrays(left, right, within=(0, 2), options=CorrelateOptions(max_pairs=26))
    with pytest.warns(NoPairsWarning, match="no pair"):
        correlate_arrays(left, right + 1000, within=(0, 2))


ONE = np.array([1, 2])
REFUSED: dict[str, tuple[type[CoincideError], str, dict[str, Any]]] = {
    "min above max": (DataError, "left: .*min_time and max_time in row 1 .found min_time=2, max_time=1",
                      {"left": (ONE, np.array([2, 1])), "confidence": 0.5}),
    "out of range": (DataError, "row 0", {"left": np.array([2**62, 1])}),
    "huge unsigned": (DataError, "row 1", {"left": np.array([2, 2**64 - 1], np.uint64)}),
    "NaT": (DataError, r"left.min_time has 1 missing \(found the first in row 1\)",
            {"left": np.array([1, "NaT"], "M8[ns]"), "right": ONE.astype("M8[ns]")}),
    "null": (DataError, "right.min_time has 1 missing", {"right": pa.array([None, 2])}),
    "null key": (DataError, "left.key has 1 missing.*Fill them with -1",
                 {"left": EventArrays(ONE, key=pa.array([1, None])), "right": EventArrays(ONE, key=ONE)}),
    "text": (SchemaError, "left", {"left": np.array(["a", "b"])}),
    "two dimensions": (SchemaError, "one dimension", {"left": np.zeros((2, 2), int)}),
    "objects": (SchemaError, "left.min_time", {"left": np.array([1, object()])}),
    "a number": (SchemaError, "left.min_time", {"left": 5}),
    "lengths": (SchemaError, "differ in length", {"left": (ONE, np.arange(3)), "confidence": 0.5}),
    "tuple of four": (SchemaError, "tuple of 4", {"left": (ONE,) * 4}),
    "one key": (SchemaError, "found none of right", {"left": EventArrays(ONE, key=ONE)}),
    "text key": (SchemaError, "left.key must be whole numbers",
                 {"left": EventArrays(ONE, key=np.array(["a", "b"])), "right": EventArrays(ONE, key=ONE)}),
    "times and numbers": (SchemaError, "left.min_time has times, and right.min_time numbers",
                          {"left": ONE.astype("M8[ns]")}),
    "months": (SchemaError, r"datetime64 of s to ns .found datetime64\[M\]", {"left": ONE.astype("M8[M]")}),
    "a table": (SchemaError, "one of its columns", {"left": pa.table({"t": ONE})}),
    "a dict": (SchemaError, "Give its arrays", {"left": {"t": ONE}}),
    "nothing": (SchemaError, "Give its arrays", {"left": None}),
    "far times": (DataError, "coarser unit", {"left": np.array(["2045-01-01", "2045-01-02"], "M8[ns]"),
                                              "right": ONE.astype("M8[ns]"), "within": "1s"}),
    "hours that wrap": (DataError, "row 0", {"left": np.array([2**60 + 1, 0]).view("M8[h]"),
                                             "right": ONE.astype("M8[s]"), "within": "1s"}),
    "days that wrap": (CoincideError, "left", {"left": np.array([2**32 + 1, 0]).view("M8[D]"),
                                               "right": ONE.astype("M8[D]"), "within": "1s"}),
    "a huge number": (SchemaError, "left.min_time", {"left": [2**70, 1]}),
    "no condition": (ConditionError, "condition", {"within": None}),
    "no confidence": (ConditionError, "found max_time of left.*has keys", {"left": (ONE, ONE + 1)}),
    "emit": (ConditionError, "emit", {"emit": "all"}),
    "order": (ConditionError, "order", {"order": "right"}),
    "rows": (ConditionError, "rows", {"rows": "int16"}),
    "delta of counts": (ConditionError, "no pairs", {"emit": "counts", "delta": True}),
    "probability": (ConditionError, "probability", {"probability": "yes"}),
    "drop": (ConditionError, "numbers are the answer", {"options": CorrelateOptions(invalid="drop")}),
    "no aggregates": (ConditionError, "go together", {"emit": "aggregates"}),
    "aggregates of pairs": (ConditionError, "go together", {"aggregates": {"n": "count"}}),
    "aggregates as a list": (ConditionError, "must be a dict with entries",
                             {"emit": "aggregates", "aggregates": ["n"]}),
    "no function": (ConditionError, "an array of right values and a function",
                    {"emit": "aggregates", "aggregates": {"s": ONE}}),
    "no array": (ConditionError, "an array of right values and a function",
                 {"emit": "aggregates", "aggregates": {"s": ("amp", "sum")}}),
    "nothing to aggregate": (ConditionError, "with entries", {"emit": "aggregates", "aggregates": {}}),
    "short values": (SchemaError, "1 values",
                     {"emit": "aggregates", "aggregates": {"s": (ONE[:1], "sum")}}),
    "unknown function": (CoincideError, "median",
                         {"emit": "aggregates", "aggregates": {"s": (ONE, "median")}}),
    "backend": (ConditionError, "backend", {"backend": "tpu"}),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    error, words, changed = REFUSED[name]
    given = {"left": ONE, "right": ONE, "within": (0, 1), **changed}
    with pytest.raises(error, match=words):
        correlate_arrays(given.pop("left"), given.pop("right"), **given)


def test_the_condition_may_not_come_second() -> None:
    from coincide import TimingCondition, within

    with pytest.raises(ConditionError, match="found a condition"):
        correlate_arrays(ONE, TimingCondition(within(0, 1), 1.0))


def test_a_relation_names_no_argument_that_arrays_lack() -> None:
    uncertain = EventArrays(np.array([1, 5]), np.array([2, 9]))
    with pytest.raises(ConditionError, match=r"overlapping\(\) takes events that last") as refused:
        correlate_arrays(uncertain, uncertain, overlapping())
    assert "found max_time of left and right" in str(refused.value)
    assert "left_time" not in str(refused.value)
    exact = np.array([1, 5])
    assert correlate_arrays(exact, exact, overlapping()).left.tolist() == [0, 1]
