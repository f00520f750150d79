"""Histograms of delays: the reference's counts and masses, whatever the way, the threads and the input."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import coincide as c
from coincide import CorrelateOptions, correlate_tables, delay_histogram, histograms
from cpu_fallback.correlograms import counting
from cpu_fallback.reference.delay_histogram import Counted, Event
from cpu_fallback.reference.delay_histogram import delay_histogram as reference

EXACT: dict[str, Any] = {"left_time": "t", "right_time": "t"}
CLOSE = 1e-14
"""The error of a mass, of a pair; docs/delay-histograms.md says it."""

Row = tuple[Any, int | None, int]
keys = st.sampled_from(["a", "b", "c", None])
rows = st.lists(
    st.tuples(keys, st.one_of(st.none(), st.integers(-20, 20)), st.integers(0, 9)), max_size=12
)
some_edges = st.lists(st.integers(-30, 30), min_size=2, max_size=9, unique=True).map(sorted)


def table_of(events: Sequence[Row]) -> pa.Table:
    """Events: a key, the earliest time, and how much later they may be."""
    earliest = [t for _, t, _ in events]
    latest = [None if t is None else t + length for _, t, length in events]
    names = pa.array([key for key, *_ in events], pa.string())
    times = [pa.array(each, pa.int64()) for each in (earliest, latest)]
    return pa.table([names, *times], ["key", "min_time", "max_time"])


def events_of(events: Sequence[Row], has_keys: bool) -> list[Event]:
    """The same for the reference."""
    return [
        Event((key or None) if has_keys else 1, [(t, t + length, 1.0)])
        for key, t, length in events
        if t is not None
    ]


def check(found: pa.Table, wanted: dict[Any, Counted], edges: Sequence[int]) -> None:
    """Compare a table with the reference's answer, keys in its order."""
    lower, upper = (
        found.column_names[-4:-2]
        if "expected" in found.column_names
        else (found.column_names[-3:-1])
    )
    buckets = list(pairwise(edges)) * len(wanted)
    assert list(zip(found[lower].to_pylist(), found[upper].to_pylist(), strict=True)) == buckets
    assert found["pairs"].to_pylist() == [n for each in wanted.values() for n in each.pairs]
    if "key" in found.column_names:
        assert found["key"].to_pylist() == [key for key in wanted for _ in pairwise(edges)]


@settings(max_examples=150)
@given(rows, rows, some_edges, st.booleans(), st.booleans())
@example([(None, 0, 0)], [("a", 3, 0)], [0, 3], False, False)
@example([("a", 0, 0), ("a", 0, 0)], [], [-1, 0, 1], True, True)
def test_pairs_and_masses_are_the_reference_s(
    left: list[Row], right: list[Row], edges: list[int], has_keys: bool, is_one_stream: bool
) -> None:
    by = "key" if has_keys else ()
    others = None if is_one_stream else table_of(right)
    found = delay_histogram(table_of(left), others, edges=edges, by=by)
    own, theirs = events_of(left, has_keys), events_of(right, has_keys)
    wanted = reference(own, None if is_one_stream else theirs, edges)
    if not has_keys:  # without keys there is one histogram, also of nothing
        none = Counted([0] * (len(edges) - 1), [Fraction(0)] * (len(edges) - 1))
        wanted = wanted or {1: none}
    check(found, wanted, edges)
    masses = [float(mass) for each in wanted.values() for mass in each.expected]
    limit = CLOSE * (len(left) + 1) * (len(left if is_one_stream else right) + 1)
    assert found["expected"].to_numpy() == pytest.approx(masses, abs=limit, rel=0)


@settings(max_examples=60)
@given(st.data(), st.sampled_from([(0, 10), (10, 0), (10, 10)]), some_edges)
def test_histograms_may_have_moments(data: Any, kinds: Any, edges: list[int]) -> None:
    templates = {
        "x": ([-5, -5, -2, 0], [0.25, 0.5, 0.25]),
        "y": ([0, 0], [1.0]),
        "z": ([-13, -7, -7, 0, 0], [0.25, 0.25, 0.0, 0.5]),
    }
    rows_of_template = [
        {"template": name, "lower": low, "upper": high, "mass": mass}
        for name, (ends, masses) in templates.items()
        for (low, high), mass in zip(pairwise(ends), masses, strict=True)
    ]
    sides, events = [], []
    for is_histogram in kinds:
        drawn = data.draw(
            st.lists(st.tuples(st.sampled_from("xyz"), st.integers(-9, 9)), max_size=6)
        )
        names, times = [name for name, _ in drawn], [time for _, time in drawn]
        sides.append(
            pa.table({"d": pa.array(names, pa.string()), "t": pa.array(times, pa.int64())})
        )
        events.append([
            Event(1, [
                (time + low, time + high, mass)
                for (low, high), mass in zip(pairwise(templates[name][0]), templates[name][1], strict=True)
            ] if is_histogram else [(time, time, 1.0)])
            for name, time in drawn
        ])  # fmt: skip
    of_templates = histograms("t", template="d", templates=pa.Table.from_pylist(rows_of_template))
    named = zip(("left_time", "right_time"), kinds, strict=True)
    found = delay_histogram(
        *sides, edges=edges, **{name: of_templates if kind else "t" for name, kind in named}
    )
    none = Counted([0] * (len(edges) - 1), [Fraction(0)] * (len(edges) - 1))
    wanted = reference(*events, edges).get(1, none)
    assert found["pairs"].to_pylist() == wanted.pairs
    masses = [float(mass) for mass in wanted.expected]
    assert found["expected"].to_numpy() == pytest.approx(masses, abs=1e-12, rel=0)


def test_many_keys_are_cut_into_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_CELLS", 12)  # four keys
    rng = np.random.default_rng(9)
    columns = [
        {"key": rng.choice(list("abcdefghij"), n), "min_time": rng.integers(0, 90, n)}
        for n in (50, 60)
    ]
    sides = [pa.table({**each, "max_time": each["min_time"] + 7}) for each in columns]
    edges = [-9, -2, 5, 30]
    given: Any = {"edges": edges, "by": "key", "chance": "rates"}
    found = delay_histogram(*sides, **given).drop_columns("chance")
    events = [
        [Event(row["key"], [(row["min_time"], row["max_time"], 1.0)]) for row in side.to_pylist()]
        for side in sides
    ]
    wanted = reference(events[0], events[1], edges)
    check(found, wanted, edges)
    masses = [float(mass) for each in wanted.values() for mass in each.expected]
    assert found["expected"].to_numpy() == pytest.approx(masses, abs=1e-12)
    whole = delay_histogram(*sides, **given)
    monkeypatch.undo()
    assert delay_histogram(*sides, **given).equals(whole)


def brute(left: np.ndarray, right: np.ndarray, edges: Sequence[int]) -> list[int]:
    """Exact delays, counted by NumPy."""
    delays = (right[None, :] - left[:, None]).ravel()
    counts: list[int] = np.histogram(delays, np.array(edges))[0].tolist()
    return counts


EDGES = {
    "equal": list(range(-300, 301, 20)),
    "by the tick": list(range(-40, 41)),
    "growing": sorted({int(x) for x in np.geomspace(1, 900, 60)}),
    "crowded": [0, 1, 2, 3, 4, 5, 6, 7, 8, 10**6],
    "two": [-3, 900],
}


@pytest.mark.parametrize("edges", EDGES.values(), ids=EDGES)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("pair_steps", [0, 3, 10**9], ids=["one by one", "mixed", "by edges"])
def test_both_ways_count_alike(
    monkeypatch: pytest.MonkeyPatch, edges: list[int], threads: int, pair_steps: int
) -> None:
    monkeypatch.setattr(counting, "_STEPS_OF_A_PAIR", pair_steps)
    rng = np.random.default_rng(5)
    # Two keys, one of them dense; blocks are cut within a key.
    monkeypatch.setattr("coincide.model.threads._SMALLEST_BLOCK", 100)
    left, right = rng.integers(0, 5000, 900), rng.integers(0, 5000, 1100)
    own, other = left % 7 == 0, right % 7 == 0
    options = CorrelateOptions(threads=threads)
    found = delay_histogram(
        {"t": left, "k": own},
        {"t": right, "k": other},
        edges=edges,
        by="k",
        options=options,
        **EXACT,
    )
    wanted = {
        k: brute(left[own == k], right[other == k], edges) for k in dict.fromkeys(own.tolist())
    }
    assert found["k"].to_pylist() == [k for k in wanted for _ in edges[1:]]
    assert found["pairs"].to_pylist() == [n for each in wanted.values() for n in each]
    one = delay_histogram({"t": left}, edges=edges, left_time="t", options=options)
    itself = np.histogram([0], edges)[0] * left.size
    assert (one["pairs"].to_numpy() == np.array(brute(left, left, edges)) - itself).all()


def test_the_sum_is_the_number_of_pairs_of_a_join() -> None:
    rng = np.random.default_rng(2)
    left, right = ({"t": rng.integers(0, 10**6, 2000)} for _ in range(2))
    found = delay_histogram(left, right, within=(-700, 900), bins=33, **EXACT)
    columns = {"left_columns": "t", "right_columns": "t"}
    pairs = correlate_tables(left, right, within=(-700, 900), **EXACT, **columns)
    assert sum(found["pairs"].to_pylist()) == len(pairs) > 1000
    assert found["lower"].to_pylist()[:2] == [-700, -700 + 1600 // 33]
    assert found["upper"].to_pylist()[-1] == 900


def test_bits_depend_on_no_thread_and_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    stamps_of = [rng.integers(0, 40_000, 3000) for _ in range(2)]
    lengths = [rng.integers(1, 900, 3000) ** rng.integers(0, 2, 3000) for _ in range(2)]
    sides = [
        pa.table({"min_time": t, "max_time": t + length})
        for t, length in zip(stamps_of, lengths, strict=True)
    ]
    given = {"within": (-100, 130), "bins": 23}
    found = delay_histogram(*sides, **given, options=CorrelateOptions(threads=1))
    monkeypatch.setattr(counting, "_MOST_PAIRS", 50_000)
    monkeypatch.setattr("coincide.model.threads._SMALLEST_BLOCK", 500)
    turned = [side.take(pa.array(rng.permutation(3000))) for side in sides]
    again = delay_histogram(*turned, **given, options=CorrelateOptions(threads=3))
    assert again.equals(found)
    # Swapped sides and mirrored buckets have the same masses, up to the error of each.
    mirrored = delay_histogram(*sides[::-1], within=(-130, 100), bins=23)
    expected, others = (each["expected"].to_numpy() for each in (found, mirrored))
    assert expected == pytest.approx(others[::-1], rel=1e-12)


FAR = 2**61 - 1


def test_times_and_edges_may_be_as_large_as_they_can() -> None:
    left, right = {"t": [-FAR, 0, FAR]}, {"t": [-FAR, -1, FAR]}
    for edges in ([-FAR, 0, FAR], [-FAR, -1, 0, 1, FAR]):
        delays = [r - l for l in left["t"] for r in right["t"]]  # noqa: E741
        wanted = [
            sum(low <= d < high or (high == FAR and d == high) for d in delays)
            for low, high in pairwise(edges)
        ]
        assert delay_histogram(left, right, edges=edges, **EXACT)["pairs"].to_pylist() == wanted
        many = {"t": left["t"] * 500}, {"t": right["t"] * 500}  # by edges
        found = delay_histogram(*many, edges=edges, **EXACT)["pairs"].to_pylist()
        assert found == [250_000 * n for n in wanted]
    long = {"min_time": [-FAR], "max_time": [0]}
    found = delay_histogram(long, {"t": [0]}, edges=(0, FAR // 2, FAR), right_time="t")
    assert found["expected"].to_pylist() == pytest.approx([0.5, 0.5])
    with pytest.raises(c.DataError, match=r"longer than 2\^62"):
        delay_histogram({"min_time": [-FAR], "max_time": [FAR]}, edges=(0, 1))


def test_chance_by_rates_is_that_of_events_at_any_time() -> None:
    rng = np.random.default_rng(4)
    left, right = rng.integers(0, 10**9, 4000), rng.integers(5 * 10**8, 2 * 10**9, 5000)
    found = delay_histogram(
        {"t": left}, {"t": right}, within=(-(10**9), 10**9), bins=5, chance="rates", **EXACT
    )
    span = [(int(each.min()), int(each.max())) for each in (left, right)]
    one, other = (Event(1, [(*each, 1.0)]) for each in span)
    edges = [-(10**9) + 4 * 10**8 * k for k in range(6)]
    shares = reference([one], [other], edges)[1].expected
    assert found["chance"].to_pylist() == pytest.approx([float(2 * 10**7 * p) for p in shares])
    assert found["pairs"].to_numpy() == pytest.approx(found["chance"].to_numpy(), rel=0.2)


def test_chance_by_shifts_is_the_mean_of_moved_histograms() -> None:
    rng = np.random.default_rng(6)
    left, right = rng.integers(0, 10**5, 900), rng.integers(0, 10**5, 900)
    given: Any = {"edges": (-50, 0, 20, 70), **EXACT}
    found = delay_histogram({"t": left}, {"t": right}, chance=(500, -700), **given)
    moved = [
        delay_histogram({"t": left}, {"t": right + shift}, **given)["pairs"].to_numpy()
        for shift in (500, -700)
    ]
    assert found["chance"].to_pylist() == (sum(moved) / 2).tolist()
    alone = delay_histogram({"t": left}, edges=(-50, 50), left_time="t", chance=(500,))
    others = delay_histogram({"t": left}, {"t": left + 500}, edges=(-50, 50), **EXACT)
    assert alone["chance"].to_pylist() == others["pairs"].to_pylist()


def test_units_name_the_bounds_and_bad_rows_are_told() -> None:
    times = pa.array([0, 1500, None], pa.timestamp("ms"))
    report = c.JoinReport()
    found = delay_histogram(
        {"t": times}, {"t": times}, edges=("-2s", "0s", "1500ms"), report=report, **EXACT
    )
    assert found.to_pylist() == [
        {"lower_us": -2_000_000, "upper_us": 0, "pairs": 1},
        {"lower_us": 0, "upper_us": 1_500_000, "pairs": 3},
    ]
    assert report.summary().left.unmatchable == 1
    seconds = CorrelateOptions(unit="s")
    assert delay_histogram({"t": [1]}, edges=(0, 1), left_time="t", options=seconds).column_names == [
        "lower_s", "upper_s", "pairs",
    ]  # fmt: skip
    wrong = {"min_time": [5, 0], "max_time": [4, 1]}
    with pytest.raises(c.DataError, match="min above max"):
        delay_histogram(wrong, edges=(0, 1))
    dropped = delay_histogram(wrong, wrong, edges=(0, 1), options=CorrelateOptions(invalid="drop"))
    assert dropped["expected"].to_pylist() == [0.5]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "edges"),
        ({"edges": (0, 1), "within": (0, 1)}, "found both"),
        ({"edges": (0, 1), "bins": 3}, "bins belongs"),
        ({"edges": (1,)}, "at least two"),
        ({"edges": (0, 2, 2)}, "ascend"),
        ({"edges": ("0s", "2s", "1s")}, "ascend"),
        ({"edges": "0s"}, "edges must be a sequence"),
        ({"edges": (0, 1.5)}, "edges: a duration"),
        ({"edges": (0, 2**61)}, r"2\^61"),
        ({"within": (0, 9), "bins": 10}, "at most 9"),
        ({"within": (0, 9), "bins": 0}, "bins must be"),
        ({"within": (0, None)}, "two ends"),
        ({"within": (0, 9), "bins": 3, "chance": "luck"}, "chance must be 'rates'"),
        ({"within": (0, 9), "bins": 3, "chance": (9,)}, "chance: the shift"),
        ({"within": (0, 9), "bins": 3, "chance": ()}, "chance: shifts is empty"),
        ({"within": (0, 9), "bins": 3, "by": "pairs"}, "pairs"),
        ({"within": (0, 9), "bins": 3, "left_time": c.spans("t", "t")}, "no spans"),
        ({"within": (0, 9), "bins": 3, "options": CorrelateOptions(max_pairs=3)}, "max_pairs"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_an_error(given: dict[str, Any], words: str) -> None:
    side = {"t": [1, 2], "pairs": [1, 1]}
    with pytest.raises(c.CoincideError, match=words):
        delay_histogram(side, side, **{**EXACT, **given})


def test_too_many_rows_are_refused() -> None:
    side = {"t": np.arange(200), "k": np.arange(200)}
    with pytest.raises(c.ConditionError, match="200 keys with 1,000,000 buckets"):
        delay_histogram(side, side, within=(0, 10**6), bins=10**6, by="k", **EXACT)
