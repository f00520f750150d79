"""Coincidences of tables against the oracle: all sets, and volumes by counting simplices."""

from __future__ import annotations

import random
from itertools import combinations
from typing import Any

import pyarrow as pa
import pytest

from coincide import (
    ConditionError,
    CorrelateOptions,
    MemoryBudgetError,
    SequenceReport,
    around,
    coincidence_tables,
)
from coincide.engine import room
from cpu_fallback.reference.sequences import coincidences, within
from tests.helpers.sequence_cases import drawn_case, kinds_of


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("seed", range(120))
def test_tables_give_the_sets_of_the_oracle(seed: int) -> None:
    rng = random.Random(seed)
    case = drawn_case(rng, most_rows=4, is_apart=True, kinds=kinds_of(seed))
    confidence, width = rng.choice([0.1, 0.25, 0.5, 0.75, 1.0]), rng.randint(0, 4)
    at_least = rng.randint(2, len(case.names))
    windows = within(len(case.names), width)
    given_windows: Any = width
    if len(case.names) < 4 and rng.random() < 0.4:
        windows = {pair: ((lo := rng.randint(-4, 1)), lo + rng.randint(2, 6)) for pair in windows}
        given_windows = {
            tuple(case.names[each] for each in pair): window for pair, window in windows.items()
        }
        if rng.random() < 0.5:
            given_windows = {(b, a): (-hi, -lo) for (a, b), (lo, hi) in given_windows.items()}
    expected = coincidences(case.rows, windows, confidence, at_least, case.by)
    asked: dict[str, Any] = {
        "names": case.names, "time": case.times, "by": case.by, "at_least": at_least,
        "options": CorrelateOptions(threads=rng.choice([1, 3]), batch_pairs=rng.choice([1, 3, None])),
    }  # fmt: skip
    given = case.tables, given_windows, confidence
    found = coincidence_tables(*given, **asked, probability=True)
    columns = [found[f"{name}_id"].to_pylist() for name in case.names]
    chances = dict(zip(zip(*columns, strict=True), found["probability"].to_pylist(), strict=True))
    assert found.num_rows == len(chances)
    wanted = {
        tuple(None if row is None else 10 * row for row in rows): chance
        for rows, chance in expected
    }
    assert set(chances) == set(wanted)
    for rows, chance in wanted.items():
        assert chances[rows] == pytest.approx(float(chance), abs=1e-13)
        if case.by:
            own = next(k for k, row in enumerate(rows) if row is not None)
            at = list(chances).index(rows)
            assert found["k"][at].as_py() == case.rows[own][rows[own] // 10]["k"]
    assert found["streams"].to_pylist() == [
        sum(row is not None for row in rows) for rows in chances
    ]
    bare = coincidence_tables(*given, **asked)
    rows = zip(*(bare[f"{name}_id"].to_pylist() for name in case.names), strict=True)
    assert set(rows) == set(chances)
    assert bare.num_rows == len(chances)


STATIONS = {"N": {"t": [10, 500]}, "E": {"t": [40]}, "S": {"t": [35, 520]}}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"at_least": 1}, "from 2 to 3"),
        ({"at_least": 4}, "from 2 to 3"),
        ({"at_least": True}, "from 2 to 3"),
        ({"within": (0, 5)}, "one duration"),
        ({"within": -5}, "within"),
        ({"within": {5: 5}}, "one window for each two"),
        ({"within": {("N", "E"): 5}}, "one window for each two"),
        ({"within": {("N", "E"): 5, ("N", "S"): 5, ("E", "X"): 5}}, "one window for each two"),
        ({"within": {("N", "E"): 5, ("N", "S"): 5, ("E", "S"): (0, None)}}, "needs both ends"),
        ({"tables": [STATIONS["N"], STATIONS["N"]]}, "different streams"),
        ({"tables": [{"t": [0]} for _ in range(13)], "at_least": 3}, "12 streams at most"),
        ({"probability": "yes"}, "probability"),
        ({"confidence": 0}, "confidence"),
    ],
)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], words: str) -> None:
    asked: dict[str, Any] = {"tables": STATIONS, "within": 30, "time": "t"} | change
    with pytest.raises(ConditionError, match=words):
        coincidence_tables(**asked)


def test_sets_of_most_streams_come_first_and_their_parts_are_not_told() -> None:
    report = SequenceReport()
    found = coincidence_tables(STATIONS, 30, at_least=2, time="t", report=report)
    assert found.to_pylist() == [
        {"N_id": 0, "E_id": 0, "S_id": 0, "streams": 3},
        {"N_id": 1, "E_id": None, "S_id": 1, "streams": 2},
    ]
    assert report.summary().links == {"N to E": 1, "N to S": 2, "E to S": 1}
    assert coincidence_tables(STATIONS, 30, time="t").num_rows == 1


def test_the_order_of_streams_does_not_matter() -> None:
    rng = random.Random(5)
    times = {name: [rng.randint(0, 200) for _ in range(30)] for name in "abcd"}
    streams = {
        name: {"min_time": own, "max_time": [time + 4 for time in own]}
        for name, own in times.items()
    }
    turned = dict(reversed(streams.items()))
    names = [f"{name}_id" for name in streams]
    order = [(name, "ascending") for name in names]
    one, two = (
        coincidence_tables(given, 12, 0.7, at_least=3).select(names).sort_by(order)
        for given in (streams, turned)
    )
    assert one.num_rows > 5
    assert one.equals(two)


def test_keys_of_any_width_come_from_whatever_streams_a_set_has() -> None:
    streams = [
        pa.table({"k": pa.array([1], pa.int8()), "t": [0]}),
        pa.table({"k": pa.array([1, 2**40], pa.int64()), "t": [1, 5]}),
        pa.table({"k": pa.array([2**40], pa.uint64()), "t": [6]}),
    ]
    found = coincidence_tables(streams, 3, at_least=2, by="k", time="t")
    assert found.select(["k", "a_id", "b_id", "c_id"]).to_pylist() == [
        {"k": 1, "a_id": 0, "b_id": 0, "c_id": None},
        {"k": 2**40, "a_id": None, "b_id": 1, "c_id": 0},
    ]


def test_windows_that_differ_take_three_uncertain_streams_and_any_number_of_exact_ones() -> None:
    times = {"a": [0, 50], "b": [3], "c": [6], "d": [9]}
    windows = {(a, b): (0, 4 * (ord(b) - ord(a))) for a, b in combinations("abcd", 2)}
    exact = {name: {"t": own} for name, own in times.items()}
    assert coincidence_tables(exact, windows, time="t").num_rows == 1
    with pytest.raises(ConditionError, match="three streams of uncertain times"):
        coincidence_tables(exact, windows, 0.5, time=around("t", 1))


def test_links_that_are_written_the_other_way_need_room(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = {"a": {"t": [0] * 300}, "b": {"t": [0] * 300}, "c": {"t": [5]}}
    windows = {("a", "b"): (0, 0), ("a", "c"): (-1, 1), ("b", "c"): (0, 5)}
    asked: dict[str, Any] = {"time": "t", "at_least": 2, "backend": "cpu"}
    assert coincidence_tables(streams, windows, **asked).num_rows == 300 * 300 + 300
    monkeypatch.setattr(room, "_SMALL", 0)
    monkeypatch.setattr(room, "free_memory", lambda: 1 << 20)
    with pytest.raises(MemoryBudgetError, match="90,000 pairs of two streams"):
        coincidence_tables(streams, windows, **asked)
