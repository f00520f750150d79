"""Windowed causality of Arrow tables: the paper's examples, pushes, bad input, recall and its estimate."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import coincide
from coincide import (
    CausalityCondition,
    ConditionError,
    DataError,
    DroppedRowsWarning,
    SchemaError,
    Spatial,
    SpeedRange,
    Temporal,
    UnmatchableRowsWarning,
    WindowedCausality,
    WindowOptions,
    causality_tables,
    window_recall,
)
from coincide.engine.windowed_causality.arguments import WindowArguments
from coincide.model.units import Tick
from tests.helpers.rows import tuples

HOME = (0.5, 0.5)
ON_A_LINE: Any = {"place": "x", "arrival": None, "home": ()}
NEAR = CausalityCondition([Temporal(0, 400_000, strict=True), Spatial(0.3, strict=True)])


def sensor_stream(seed: int, sensors: int = 40, each: int = 150) -> pa.Table:
    """Sensors in the unit square whose readings travel some hops, each of exponential delay."""
    random = np.random.default_rng(seed)
    x, y = random.random((2, sensors))
    time = np.cumsum(random.exponential(300_000, (sensors, each)), axis=1)
    hops = np.ceil(np.hypot(x - 0.5, y - 0.5) / 0.1).astype(int)
    arrival = time + random.gamma(np.repeat(hops[:, None], each, axis=1), 100_000)
    order = np.argsort(arrival.ravel(), kind="stable")
    columns = (time, arrival, np.repeat(x, each), np.repeat(y, each))
    time, arrival, x, y = (np.ravel(each)[order] for each in columns)
    return pa.table(
        {
            "id": np.arange(order.size),
            "time": np.rint(time).astype(np.int64),
            "arrival": np.rint(arrival).astype(np.int64),
            "x": x,
            "y": y,
        }
    )


def window_of(policy: str, window: int = 50, **given: Any) -> WindowedCausality:
    arguments = {"place": ("x", "y"), "arrival": "arrival", "home": HOME, **given}
    condition = arguments.pop("condition", NEAR)
    options = WindowOptions(window, policy, **arguments.pop("options", {}))  # type: ignore[arg-type]
    return WindowedCausality(condition, options=options, **arguments)


def ids(found: pa.Table) -> list[tuple[Any, Any]]:
    return tuples(found, "cause_id", "effect_id")


def in_order(names: str, times: list[int], places: list[float]) -> pa.Table:
    return pa.table({"id": names.split(), "time": times, "x": places})


def test_times_alone() -> None:
    table = pa.table({"id": [1, 2, 3], "time": [0, 5, 9]})
    window = WindowedCausality(CausalityCondition([Temporal(0, 5)]), options=WindowOptions(2))
    found = window.push(table)
    assert found.column_names == ["cause_id", "effect_id", "delta"]
    assert tuples(found) == [(1, 2, 5), (2, 3, 4)]


def test_fifo_loses_what_fhfo_keeps():
    # Figure 4: p2 happened before p3 and arrives after it; p7 is the effect of p3.
    stream = in_order("p1 p3 p2 p4 p5 p6 p7", [1, 30, 2, 40, 41, 42, 130], [0, 9, 0, 0, 0, 0, 9.0])
    condition = CausalityCondition([Temporal(90, 110), Spatial(1)])
    found = {
        policy: ids(window_of(policy, 4, condition=condition, **ON_A_LINE).push(stream))
        for policy in ("fifo", "fhfo")
    }  # fmt: skip
    assert found == {"fifo": [], "fhfo": [("p3", "p7")]}


def test_a_cause_that_arrives_late_meets_its_effect_while_that_is_kept():
    # Figure 3: (c5, e4) is found; e2 has gone when its cause c4 comes, and c2 when e6 comes.
    names, times = "c2 e2 c1 c5 e4 c4 e6", [5, 20, 8, 30, 31, 19, 6]
    stream = in_order(names, times, [1, 2, 3, 4, 4, 2, 1.0])
    condition = CausalityCondition([Temporal(1, 1), Spatial(0)])
    small, large = (
        window_of("fifo", n, condition=condition, place="x", arrival=None, home=()) for n in (3, 6)
    )
    assert ids(small.push(stream)) == [("c5", "e4")]
    assert ids(large.push(stream)) == [("c5", "e4"), ("c4", "e2"), ("c2", "e6")]


@pytest.mark.parametrize(
    ("policy", "stay", "match"), [("fcfo", None, "p1"), ("fcfo", 3, "p2"), ("fhcfo", None, "p1")]
)
def test_the_closest_goes_unless_one_has_stayed_too_long(policy, stay, match):
    # Figures 5 and 6: p3 is nearest to the window, then p2; p1 has been there longest.
    stream = pa.table(
        {"id": ["p1", "p2", "p3", "p4", "p5", "p6"], "time": [1, 2, 3, 4, 5, 6],
         "arrival": [1, 2, 3, 4, 5, 6], "x": [9.0, 2.0, 1.0, 8.0, 7.0, 9.0 if match == "p1" else 2.0]}
    )  # fmt: skip
    condition = CausalityCondition([Temporal(1, 9), Spatial(0)])
    window = window_of(
        policy, 4, condition=condition, place="x", home=0.0,
        options={} if stay is None else {"max_stay": stay},
    )  # fmt: skip
    assert ids(window.push(stream)) == [(match, "p6")]


def test_fhcfo_lets_the_expired_go_first():
    # p1 could cause p4 no more, as delta would be 10; by the sign that the paper prints it always could.
    stream = in_order("p1 p2 p3 p4 p5", [0, 8, 9, 10, 11], [9.0, 1.0, 2.0, 3.0, 1.0])
    condition = CausalityCondition([Temporal(1, 9), Spatial(0)])
    window = window_of("fhcfo", 3, condition=condition, place="x", arrival=None, home=0.0)
    assert ids(window.push(stream)) == [("p2", "p5")]


def test_with_speeds_expiry_is_radius_over_the_least_speed_and_slack():
    condition = CausalityCondition([Spatial(10), SpeedRange(2, 5, slack=3, per=None)])
    arguments = WindowArguments(condition, place=("x", "y"))
    hi = arguments.terms(arguments.model(Tick()), Tick()).hi
    assert 10 / 2 + 3 <= hi <= 10 / 2 + 3 + 1


@pytest.mark.parametrize("policy", ["fifo", "fhfo", "fcfo", "fhcfo", "expected"])
def test_pushes_and_pickles_change_nothing(policy):
    stream = sensor_stream(1, each=40)
    whole = window_of(policy).push(stream)
    assert whole.num_rows > 0
    parts, window = [], window_of(policy)
    for start in range(0, stream.num_rows, 333):
        parts.append(window.push(stream.slice(start, 333)))
        window = pickle.loads(pickle.dumps(window))
    assert pa.concat_tables(parts).equals(whole.combine_chunks())
    counts = window.summary().counts
    assert counts.arrived == stream.num_rows == counts.kept + counts.evicted
    assert counts.kept == 50
    assert window.summary().pairs == whole.num_rows


def test_a_window_of_everything_finds_everything():
    stream = sensor_stream(2, each=30)
    arguments: Any = {"cause_place": ("x", "y"), "effect_place": ("x", "y")}
    exact = causality_tables(stream, stream, NEAR, **arguments)
    found = window_of("fifo", stream.num_rows).push(stream)
    assert sorted(ids(found)) == sorted(ids(exact))
    by = [("cause_id", "ascending"), ("effect_id", "ascending")]
    assert found.sort_by(by).equals(exact.sort_by(by).cast(found.schema))


@pytest.mark.parametrize(("lo", "hi"), [(-300_000, 100_000), (-400_000, -1), (-100_000, 300_000)])
def test_a_pair_is_found_if_either_order_qualifies(lo: int, hi: int) -> None:
    """In one stream, as `causality_tables` has it; if both orders do, the earlier is the cause."""
    stream = sensor_stream(6, each=20)
    condition = CausalityCondition([Temporal(lo, hi), Spatial(0.3)])
    expected = causality_tables(stream, None, condition, cause_place=("x", "y"))
    given = {"place": ("x", "y"), "arrival": "arrival", "home": HOME}
    for policy in ("fifo", "expected"):
        found = window_of(policy, stream.num_rows, condition=condition).push(stream)
        assert sorted(found.to_pylist(), key=str) == sorted(expected.to_pylist(), key=str)
    recall = window_recall(stream, condition, windows=[stream.num_rows], **given).to_pylist()[0]
    assert (recall["pairs"], recall["exact"]) == (expected.num_rows, expected.num_rows)


def test_roles():
    stream = sensor_stream(3, each=30)
    words = np.where(np.arange(stream.num_rows) % 3 == 0, "cause", "effect")
    roles = pa.array(words, mask=np.arange(stream.num_rows) % 50 == 7)
    table = stream.append_column("role", roles)
    causes, effects = (table.filter(pa.compute.equal(roles, word)) for word in ("cause", "effect"))
    condition = CausalityCondition([Temporal(-100_000, 300_000), Spatial(0.3)])
    places: Any = {"cause_place": ("x", "y"), "effect_place": ("x", "y")}
    exact = causality_tables(causes, effects, condition, **places)
    window = window_of("fhfo", stream.num_rows, condition=condition, role="role")
    with pytest.warns(UnmatchableRowsWarning, match="24 without time, place or role"):
        found = window.push(table)
    assert sorted(ids(found)) == sorted(ids(exact))
    with pytest.raises(DataError, match=r"1 row hold others .found 'both'"):
        window.push(table.set_column(5, "role", pa.array(["both", *words[1:]])))


def test_a_row_that_lacks_both_is_counted_once():
    stream = in_order("a b", [1, 2], [0.0, 0.0])
    stream = stream.set_column(1, "time", pa.array([1, None]))
    stream = stream.append_column("role", pa.array(["cause", None]))
    window = window_of("fifo", 1, condition=NEAR, place="x", arrival=None, home=(), role="role")
    with pytest.warns(UnmatchableRowsWarning, match="2 rows: 1 without time, place or role"):
        window.push(stream)


def test_rows_without_a_place_take_none_in_the_window():
    stream = in_order("a b c d e", [1, 2, 3, 4, 5], [0.0, 0.0, float("nan"), 0.0, 0.0])
    stream = stream.set_column(1, "time", pa.array([1, None, 3, 4, 5]))
    window = window_of("fifo", 1, condition=NEAR, place="x", arrival=None, home=())
    with pytest.warns(UnmatchableRowsWarning, match="5 rows: 2 without time, place or role"):
        assert ids(window.push(stream)) == [("a", "d"), ("d", "e")]
    assert window.summary().rows.unmatchable == 2
    assert window.summary().counts.arrived == 3


def test_flush_empties_the_window():
    stream = in_order("a b", [1, 2], [0.0, 0.0])
    window = window_of("fhcfo", 5, place="x", arrival=None, home=0.0)
    assert window.flush().num_rows == 0
    assert window.push(stream).num_rows == 1
    assert window.flush().schema.names == ["cause_id", "effect_id", "delta", "distance"]
    assert window.push(stream.slice(1)).num_rows == 0
    assert window.summary().counts.arrived == 3
    assert window.summary().counts.kept == 1


def test_bad_rows_are_refused_or_counted():
    stream = in_order("a b c", [1, 2, 3], [0.0, float("inf"), 0.0])
    given: Any = {"place": "x", "arrival": None, "home": ()}
    with pytest.raises(
        DataError, match=r"infinite coordinates.* in x in 1 row.*id=b.*WindowOptions\(invalid"
    ):
        window_of("fifo", 5, **given).push(stream)
    window = window_of("fifo", 5, options={"invalid": "drop"}, **given)
    with pytest.warns(DroppedRowsWarning, match="skipped 1 invalid row"):
        assert ids(window.push(stream)) == [("a", "c")]


def test_arrivals_do_not_go_back():
    stream = in_order("a b c", [1, 2, 3], [0.0] * 3).append_column("arrival", [[5, 4, 5]])
    given: Any = {"place": "x", "home": ()}
    window = window_of("fifo", 5, **given)
    with pytest.raises(DataError, match=r"goes back in 1 row \(found row 1 of the push\)"):
        window.push(stream)
    window.push(stream.slice(0, 1))
    with pytest.raises(DataError, match="goes back"):
        window.push(stream.slice(1, 1))
    dropping = window_of("fifo", 5, options={"invalid": "drop"}, **given)
    with pytest.warns(DroppedRowsWarning, match="1 that arrived before"):
        assert ids(dropping.push(stream)) == [("a", "c")]
    assert dropping.summary().backwards == 1


@pytest.mark.parametrize(
    ("make", "error", "match"),
    [
        (lambda: WindowOptions(0), ConditionError, "window must be an int of at least 1 .found 0"),
        (lambda: WindowOptions(policy="lru"), ConditionError, "one of fifo, fhfo"),  # type: ignore[arg-type]
        (lambda: WindowOptions(policy="fcfo", max_stay=0), ConditionError, "max_stay must be above 0"),
        (lambda: WindowOptions(policy="fcfo", max_stay="-1s"), ConditionError, "max_stay must be above"),
        (lambda: WindowOptions(max_stay=5), ConditionError, "found 'expected'"),
        (lambda: WindowOptions(sample=0), ConditionError, "sample must be at least 1"),
        (lambda: window_of("fhcfo", home=()), ConditionError, "needs the distance of tuples from the"),
        (lambda: window_of("fhcfo", home=(1.0,)), ConditionError, "home has 1 coordinates, and place"),
        (lambda: window_of("fifo", home=(1.0, "a")), ConditionError, "home must be numbers"),
        (lambda: window_of("fifo", place=()), ConditionError, "depends on distances"),
        (lambda: window_of("fifo", time=("a", "b")), ConditionError, "column of exact instants"),
        (lambda: window_of("fcfo", arrival=None, options={"max_stay": 5}), ConditionError, "with arrival"),
        (lambda: window_of("fifo").push([1]), SchemaError, "Arrow's C stream"),
        (lambda: window_of("fifo").push(pa.table({"id": [1]})), SchemaError, "time"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(make, error, match):
    with pytest.raises(error, match=match):
        make()


def test_units_that_are_missing_are_options_of_windows():
    stream = in_order("a", [1], [0.0])
    given: Any = {"place": "x", "arrival": None, "home": ()}
    with pytest.raises(ConditionError, match=r"options=WindowOptions\(unit='us'\)"):
        window_of("fifo", condition=CausalityCondition(Temporal(0, "1s")), **given).push(stream)
    seconds = stream.set_column(1, "time", [[1.5]])
    with pytest.raises(
        SchemaError, match=r"unit .found none for event\.time.*WindowOptions\(unit='s'\)"
    ):
        window_of("fifo", condition=NEAR, **given).push(seconds)


def test_recall_is_found_estimated_and_bounded():
    stream = sensor_stream(4)
    later = CausalityCondition([Temporal(300_000, 600_000, strict=True), Spatial(0.3, strict=True)])
    found = window_recall(
        stream, later, windows=(60, 120), place=("x", "y"), arrival="arrival", home=HOME
    )
    recalls = {(r["policy"], r["window"]): r["recall"] for r in found.to_pylist()}
    assert len(recalls) == 12
    for window in (60, 120):
        own = {policy: recalls[policy, window] for policy in ("fifo", "fhfo", "fcfo", "fhcfo")}
        assert 0.15 < own["fifo"] < 0.95
        assert max(own.values()) < recalls["expected", window] < recalls["bound", window] <= 1
    for policy in ("fifo", "expected"):
        one = window_of(policy, 60, condition=later)
        pairs = one.push(stream).num_rows
        exact = found["exact"][0].as_py()
        assert pairs == round(recalls[policy, 60] * exact)
        summary = one.summary()
        assert summary.recall is not None
        assert summary.recall_error is not None
        assert summary.recall_error < 0.03
        assert abs(summary.recall - pairs / exact) < 4 * summary.recall_error
        assert summary.counts.cut < summary.counts.followed


def test_every_name_is_public():
    for name in ("WindowedCausality", "WindowOptions", "WindowSummary", "window_recall"):
        assert name in coincide.__all__


def test_fhcfo_lets_nobody_go_who_may_cause_the_new_one_by_a_tick_too_much() -> None:
    condition = CausalityCondition([Spatial(1), SpeedRange(1, 1, per=None)])
    rows = pa.table({"id": [0, 1, 2, 3], "time": [0, 1, 2, 2], "x": [9.0, 0.0, 5.0, 1.0]})
    options = WindowOptions(window=2, policy="fhcfo")
    window = WindowedCausality(condition, place="x", home=0.0, options=options)
    # Nothing is due after 1 tick: at time 2 the first of all goes, not the one nearest to home.
    assert window.push(rows).select(["cause_id", "effect_id"]).to_pylist() == [
        {"cause_id": 1, "effect_id": 3}
    ]
