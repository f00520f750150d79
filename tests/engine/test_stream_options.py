"""Streams of tables take what joins of tables take: matches, conditions on columns, one stream."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from coincide import (
    ConditionError,
    CorrelateOptions,
    SchemaError,
    StreamJoin,
    correlate_tables,
    histograms,
    mutual_deadline,
    stream_tables,
)
from coincide.engine.streams import live
from tests.helpers.rows import in_order, tuples
from tests.helpers.strategies import JoinCase, random_cases
from tests.helpers.stream_tables import (
    all_of,
    as_arriving,
    cut,
    late_ids,
    pushed,
    spoilt,
    stream_sides,
    table_of,
)

MUTUAL: dict[str, Any] = {"matching": "mutual"}
OF_TWO: dict[str, dict[str, Any]] = {
    "mutual": {**MUTUAL, "probability": True},
    "mutual left": {**MUTUAL, "how": "left"},
    "mutual first": {**MUTUAL, "prefer": "first", "how": "left"},
    "mutual where": {**MUTUAL, "where": "left_id < right_id", "how": "left"},
    "unambiguous": {"matching": "unambiguous", "how": "left", "probability": True},
    "last ids": {"emit": "best", "prefer": "-id", "how": "left"},
    "two nearest": {"emit": "best", "prefer": "nearest", "k": 2, "how": "left"},
    "where": {"where": "left_id < right_id AND left_max_time <> right_min_time", "how": "left"},
    "expression": {"where": pc.field("left_id") < pc.field("right_id")},
    "all columns": {"left_columns": "*", "right_columns": "*", "probability": True},
}
OF_ONE: dict[str, dict[str, Any]] = {
    "pairs": {"probability": True},
    "left": {"how": "left"},
    "anti": {"how": "anti"},
    "counts": {"emit": "counts", "how": "left"},
    "best": {"emit": "best", "prefer": "last", "k": 2},
    "where": {"where": "left_id < right_id", "left_columns": "*"},
}
LENIENT = CorrelateOptions(invalid="drop", threads=1)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events go as soon as they may, so that one that is still needed would be missed."""
    monkeypatch.setattr(live, "_LEAST_DEAD", 1)
    monkeypatch.setattr(live, "_MOST_DEAD", 10**9)


def asked_of(case: JoinCase, asked: dict[str, Any]) -> dict[str, Any]:
    window = {"within": (case.lo, case.hi), "confidence": case.confidence}
    return {"by": case.by, "backend": "cpu", "options": LENIENT, **window, **asked}


def check_two(case: JoinCase, seed: Any, asked: dict[str, Any]) -> int:
    """Pushes of both sides in any order against the join of all that was in time."""
    rng = np.random.default_rng(seed)
    sides, delays = stream_sides(case, rng)
    sides = [spoilt(rows, rng) for rows in sides]
    late = [late_ids(rows, delay) for rows, delay in zip(sides, delays, strict=True)]
    asked = asked_of(case, asked)
    stream = stream_tables(left_delay=delays[0], right_delay=delays[1], **asked)
    found = pushed(stream, sides, rng)
    kept = [
        table_of([row for row in rows if row["id"] not in gone])
        for rows, gone in zip(sides, late, strict=True)
    ]
    want = correlate_tables(*kept, **asked)
    assert found.schema == want.schema
    assert in_order(found) == in_order(want)
    assert stream.summary().late == tuple(map(len, late))
    assert stream.summary().live == (0, 0)
    return want.num_rows


def check_one(case: JoinCase, seed: Any, asked: dict[str, Any]) -> int:
    """The same of one stream."""
    rng = np.random.default_rng(seed)
    sides, delays = stream_sides(case, rng)
    rows, asked = spoilt(sides[0], rng), asked_of(case, asked)
    gone = late_ids(rows, delays[0])
    stream = stream_tables(left_delay=delays[0], **asked)
    found = all_of([*(stream.push(table_of(part)) for part in cut(rows, rng)), stream.flush()])
    want = correlate_tables(table_of([row for row in rows if row["id"] not in gone]), **asked)
    assert found.schema == want.schema
    assert in_order(found) == in_order(want)
    assert set(stream.take_late()["id"].to_pylist()) == gone
    summary = stream.summary()
    assert (summary.late, summary.live) == ((len(gone), 0), (0, 0))
    assert (summary.left.rows, summary.right) == (len(rows), None)
    return want.num_rows


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("name", OF_TWO)
def test_two_streams(name: str) -> None:
    cases = enumerate(random_cases(18, 70, max_size=20))
    assert sum(check_two(case, [5, i], OF_TWO[name]) for i, case in cases) > 50


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("name", OF_ONE)
def test_one_stream(name: str) -> None:
    cases = enumerate(random_cases(19, 40, max_size=20))
    assert sum(check_one(case, [5, i], OF_ONE[name]) for i, case in cases) > 50


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("name", [*OF_TWO, *(f"one {name}" for name in OF_ONE)])
def test_many(name: str) -> None:
    check, asked = (check_two, OF_TWO[name]) if name in OF_TWO else (check_one, OF_ONE[name[4:]])
    for i, case in enumerate(random_cases(20, 80, max_size=30)):
        check(case, [6, i], asked)


@pytest.mark.filterwarnings("ignore::coincide.CoincideWarning")
@pytest.mark.parametrize("asked", [{}, {"emit": "best"}, MUTUAL], ids=["pairs", "best", "mutual"])
def test_keys_of_other_names_by_their_marks(asked: dict[str, Any]) -> None:
    """Texts of two types, and integers of two widths, looked for by their marks."""
    rows = 0
    for seed in range(3):
        rng = np.random.default_rng(seed)
        ends = [np.sort(rng.integers(0, 2000, 300)) for _ in range(2)]
        sides = [
            as_arriving(
                [{"id": i, "min_time": int(end) - 8, "max_time": int(end),
                  "station": str(rng.choice(["aqu", "Aqu", "é"])), "channel": int(rng.integers(3))}
                 for i, end in enumerate(each)],
                40, rng,
            )
            for each in ends
        ]  # fmt: skip
        limits = [_needed_delay(rows) for rows in sides]
        given = {
            "within": (-20, 60), "confidence": 0.6,
            "by": [("station", "sta"), ("channel", "cha")], **asked,
        }  # fmt: skip
        stream = stream_tables(left_delay=limits[0], right_delay=limits[1], **given)
        found = pushed(stream, sides, rng, _renamed)
        tables = [_renamed(n, table_of(each)) for n, each in enumerate(sides)]
        want = correlate_tables(*tables, **given)
        assert stream.summary().late == (0, 0)
        assert in_order(found) == in_order(want)
        rows += want.num_rows
    assert rows > 250


def _needed_delay(rows: list[dict[str, Any]]) -> int:
    ends = np.array([row["max_time"] for row in rows])
    return int((np.maximum.accumulate(ends) - ends).max())


def _renamed(number: int, table: pa.Table) -> pa.Table:
    if number == 0:
        return table
    keys = {"station": "sta", "channel": "cha"}
    table = table.rename_columns([keys.get(name, name) for name in table.column_names])
    narrow = table["cha"].cast(pa.int8())
    table = table.set_column(table.column_names.index("cha"), "cha", narrow)
    wide = table["sta"].cast(pa.large_string())
    return table.set_column(table.column_names.index("sta"), "sta", wide)


def at(ids: str, times: list[int]) -> pa.Table:
    return pa.table({"id": list(ids), "t": times})


def test_a_mutual_pair_goes_out_when_neither_can_find_a_better_one() -> None:
    instants = {"left_time": "t", "right_time": "t"}
    limits = {"left_delay": 0, "right_delay": 0}
    stream = stream_tables(
        within=(0, 10), confidence=1.0, prefer="nearest", how="left", **MUTUAL, **instants, **limits
    )
    steps = [
        ("left", at("a", [0]), []),
        ("right", at("x", [4]), []),
        ("left", at("b", [3]), []),  # x has a better one now; what of a? its best may come yet
        ("left", at("c", [20]), []),  # no better one of x can come, and one of b may
        ("right", at("y", [12]), [("a", None)]),  # a's best is x for good, whose best is b
        ("right", at("z", [15]), [("b", "x")]),
        ("right", at("w", [40]), [("c", None)]),
    ]
    for side, table, want in steps:
        found = stream.push(side, table)
        assert tuples(found) == want, (side, table)
    assert stream.flush().num_rows == 0
    assert stream.summary().counters.pairs == 3  # a and b with x, b with y


def test_a_best_match_is_kept_while_another_one_waits() -> None:
    """b is alone for good, although y, which has no other match, is decided about much later."""
    stream = stream_tables(
        within=(-10, 10), confidence=1.0, prefer="nearest", how="left", left_delay=0, right_delay=0,
        left_time="t", right_time="t", **MUTUAL,
    )  # fmt: skip
    stream.push("left", at("ab", [3, 5]))
    stream.push("right", at("xy", [3, 14]))
    found = [stream.advance(15, "left"), stream.advance(30, "right")]
    assert in_order(all_of(found)) == in_order(
        pa.table({"left_id": ["a", "b"], "right_id": ["x", None]})
    )
    assert stream.flush().num_rows == 0


def test_time_that_passes_makes_rows_final() -> None:
    """A window to 10 and a delay of 5; horizons err by a tick to the later side."""
    given: dict[str, Any] = {"within": (0, 10), "confidence": 1.0, "left_time": "t"}
    alone = stream_tables(left_delay=5, how="anti", **given)
    assert alone.push(at("ab", [0, 4])).num_rows == 0
    assert alone.advance(20).num_rows == 0
    assert alone.advance(21)["left_id"].to_pylist() == ["b"]  # a has b after it
    assert alone.push(at("c", [14])).num_rows == 0
    assert alone.take_late().to_pylist() == [{"id": "c", "t": 14}]
    pairs = stream_tables(left_delay=5, right_delay=5, right_time="t", **MUTUAL, **given)
    pairs.push("left", at("a", [0]))
    assert pairs.push("right", at("x", [4])).num_rows == 0
    assert pairs.advance(17, "right").num_rows == 0
    assert pairs.advance(17, "left")["right_id"].to_pylist() == ["x"]
    assert pairs.summary().live == (1, 1)  # rivals of what may come
    pairs.advance(60)
    assert pairs.summary().live == (0, 0)


def test_simultaneous_events_of_one_stream_count_in_order_of_arrival() -> None:
    stream = stream_tables(within=(0, 5), confidence=0.5, left_delay=3, left_time="t")
    found = [stream.push(at("ba", [7, 7])), stream.push(at("c", [7])), stream.push(at("d", [5]))]
    pairs = tuples(all_of(found))
    assert sorted(pairs) == [("a", "c"), ("b", "a"), ("b", "c"), ("d", "a"), ("d", "b"), ("d", "c")]


def rows_of(rows: int, seed: int, keys: int = 5) -> pa.Table:
    """Some events a tick for each key, in disorder by up to 100 ticks."""
    random = np.random.default_rng(seed)
    ends = np.sort(random.integers(0, 10 * rows // keys, rows))
    order = np.argsort(ends + random.integers(0, 100, rows), kind="stable")
    return pa.table({
        "id": np.arange(rows), "t": ends[order], "key": random.integers(0, keys, rows),
        "note": [f"note {i}" for i in range(rows)],
    })  # fmt: skip


@pytest.mark.parametrize("one", [False, True], ids=["mutual", "one"])
def test_memory_is_that_of_live_events(one: bool) -> None:
    asked: dict[str, Any] = {
        "within": (0, 200), "confidence": 0.9, "by": "key", "left_time": "t",
        "left_columns": ["id", "note"], **({} if one else {**MUTUAL, "right_time": "t"}),
    }  # fmt: skip
    stream = stream_tables(left_delay=100, **({} if one else {"right_delay": 100}), **asked)
    left, right = rows_of(20_000, 1), rows_of(20_000, 2)
    found, held = [], []
    for start in range(0, left.num_rows, 500):
        parts = left.slice(start, 500), right.slice(start, 500)
        if one:
            found.append(stream.push(parts[0]))
        else:
            found += [stream.push("left", parts[0]), stream.push("right", parts[1])]
        held.append((sum(stream.summary().live), stream.summary().nbytes))
    found.append(stream.flush())
    want = correlate_tables(left, **asked) if one else correlate_tables(left, right, **asked)
    assert all_of(found).num_rows == want.num_rows > 1000
    assert set(map(str, all_of(found).to_pylist())) == set(map(str, want.to_pylist()))
    # A tick brings one event of a side in two; a pair is decided within some 700 ticks.
    events, nbytes = np.array(held[:-3]).T
    assert events.max() < 2_500, events
    assert nbytes.max() < 100 * 2_500


def streams_at_work() -> dict[str, StreamJoin]:
    shared: dict[str, Any] = {"within": (0, 50), "confidence": 0.5, "by": "key"}
    return {
        "one": stream_tables(left_delay=9, left_time="t", where="left_id <> right_id", **shared),
        "mutual": stream_tables(
            left_delay=9, right_delay=9, left_time="t", right_time="t", **MUTUAL, **shared
        ),
    }


@pytest.mark.parametrize("name", ["one", "mutual"])
def test_it_pickles_and_copies(name: str) -> None:
    stream = streams_at_work()[name]
    sides = [()] if name == "one" else [("left",), ("right",)]
    first, more = rows_of(60, 1).sort_by("t").slice(0, 30), rows_of(60, 1).sort_by("t").slice(30)
    for each in (copy.deepcopy(stream), stream):
        for side in sides:
            each.push(*side, first)
    answers = []
    for each in (stream, copy.deepcopy(stream), pickle.loads(pickle.dumps(stream))):
        found = [each.push(*side, more) for side in sides]
        answers.append(in_order(all_of([*found, each.flush()])))
    assert answers[0] == answers[1] == answers[2] != []


def test_histograms_of_one_stream() -> None:
    templates = {"slow": ([-40, -20, -10, 0], [0.1, 0.3, 0.6]), "late": ([10, 30], [1.0])}
    times = histograms("t", template="of", templates=templates)
    rng = np.random.default_rng(3)
    table = rows_of(400, 3).append_column("of", pa.array(rng.choice(list(templates), 400)))
    for how in ("inner", "anti"):
        asked: dict[str, Any] = {
            "within": mutual_deadline(30), "confidence": 0.4, "left_time": times, "how": how,
            "right_columns": () if how == "anti" else "id", "by": "key",
        }  # fmt: skip
        stream = stream_tables(left_delay=150, **asked)
        found = [stream.push(table.slice(i, 23)) for i in range(0, 400, 23)]
        want = correlate_tables(table, **asked)
        assert in_order(all_of([*found, stream.flush()])) == in_order(want)
        assert want.num_rows > (10 if how == "inner" else 0)


def one(**more: Any) -> StreamJoin:
    return stream_tables(within=(0, 5), confidence=0.5, left_delay=0, left_time="t", **more)


def test_what_is_refused_of_one_stream() -> None:
    stream = one()
    with pytest.raises(ConditionError, match=r"one stream has no sides \(found no right_delay\)"):
        stream.push("left", at("a", [1]))
    with pytest.raises(SchemaError, match=r"event events must be|stream must be a table"):
        stream.push([1])
    with pytest.raises(ConditionError, match=r"advance needs the columns of the stream"):
        stream.advance(3)
    with pytest.raises(SchemaError, match=r"event has no column 't'"):
        stream.push(pa.table({"id": [1]}))
    stream.push(at("a", [1]))
    with pytest.raises(ConditionError, match=r"one stream has no sides"):
        stream.advance(3, "right")
    with pytest.raises(ConditionError, match="right_schema names a second stream"):
        one(right_schema=at("", []).schema)
    with pytest.raises(ConditionError, match="right_delay is missing, or you match events of one"):
        one(matching="mutual")
    with pytest.raises(ConditionError, match="right_delay is missing, or else both sides of one"):
        one(right_time="seen")


def test_what_is_refused_when_it_is_made() -> None:
    limits: dict[str, Any] = {"left_delay": 0, "right_delay": 0}
    with pytest.raises(
        ConditionError, match=r"matching='optimal' must see .* Use matching='mutual'"
    ):
        stream_tables(within=(0, 5), confidence=0.5, matching="optimal", **limits)
    with pytest.raises(ConditionError, match="confidence is missing"):
        stream_tables(within=(0, 5), **limits)
    with pytest.raises(ConditionError, match=r"k=2 chooses among matches.* Add emit='best'"):
        stream_tables(within=(0, 5), confidence=0.5, k=2, **limits)
    stream = stream_tables(within=(0, 5), confidence=0.5, **limits)
    with pytest.raises(ConditionError, match=r"push takes the side of the events first"):
        stream.push(at("a", [1]))


def test_a_condition_on_columns_that_are_not_there() -> None:
    """Known when the columns of both sides are; nothing is taken then."""
    stream = stream_tables(
        within=(0, 5), confidence=0.5, left_delay=0, right_delay=0, left_time="t", right_time="t",
        where="left_size = right_size",
    )  # fmt: skip
    sized = at("a", [1]).append_column("size", pa.array([3]))
    stream.push("left", sized)
    with pytest.raises(SchemaError, match="where: a pair has no column"):
        stream.push("right", at("x", [2]))
    found = stream.push("right", sized)
    assert found.to_pylist() == [{"left_id": "a", "right_id": "a"}]
