"""A bare integer next to timestamps or durations is refused; next to numbers it counts ticks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import coincide as c
from coincide import ConditionError, CorrelateOptions

LATITUDES = {"x": [0.0, 1.0, 2.0]}
KINDS = {
    "timestamp": pa.timestamp("us", "UTC"),
    "wall clock": pa.timestamp("ms"),
    "duration": pa.duration("us"),
}


def events(kind: pa.DataType) -> pa.Table:
    times = pa.array([0, 3_000_000, 9_000_000], pa.int64())
    if pa.types.is_timestamp(kind) and kind.unit == "ms":
        times = pa.array([0, 3_000, 9_000])
    later = pa.array([value.as_py() + 1000 for value in times]).cast(kind)
    return pa.table({"id": range(3), "t": times.cast(kind), "u": later, **LATITUDES})


AT: Any = {"left_time": "t", "right_time": "t"}
SPANS: Any = {"left_time": c.spans("t", "u"), "right_time": c.spans("t", "u")}


def _join(table: pa.Table, window: Any = ("0s", "5s"), **asked: Any) -> Any:
    return c.correlate_tables(table, table, within=window, confidence=0.5, **{**AT, **asked})


def _lasting(table: pa.Table, relation: Any, **asked: Any) -> Any:
    return c.correlate_tables(table, table, relation, **{**SPANS, **asked})


def _caused(table: pa.Table, *predicates: Any, **asked: Any) -> Any:
    condition = c.CausalityCondition([c.Temporal("-1d", "1d"), *predicates])
    given: Any = {"cause_time": "t", "effect_time": "t", "cause_place": "x", **asked}
    return c.causality_tables(table, table, condition, **given)


def _window(table: pa.Table) -> Any:
    condition = c.CausalityCondition([c.Temporal("0s", "5s")])
    options = c.WindowOptions(window=10, policy="fcfo", max_stay=3000)
    return c.WindowedCausality(
        condition, time="t", arrival="t", place="x", home=0.0, options=options
    ).push(table)


def _live(table: pa.Table) -> Any:
    live = c.stream_tables(
        within=("0s", "5s"), confidence=0.5, left_delay=3000, right_delay="1s", **AT
    )
    live.push("left", table)
    return live.push("right", table)


def _crossings(table: pa.Table) -> Any:
    readings = pa.table({"stream_id": ["a"] * 3, "time": table["t"], "value": [0.0, 5.0, 0.0]})
    queries = pa.table({"query_id": ["q"], "lower": [1.0], "upper": [9.0]})
    return c.BorderMonitor(queries, delay=3000).push(readings)


def _moves(table: pa.Table) -> Any:
    kinds = {"query_id": ["q"] * 3, "stream_id": ["a"] * 3, "event": ["I", "O", "I"]}
    return c.transition_tables(pa.table({**kinds, "t": table["t"]}), time="t", within=3000)


ASKED: dict[str, Callable[[pa.Table], Any]] = {
    "a window": lambda t: _join(t, (0, 3000)),
    "a window for both ends": lambda t: _join(t, 3000),
    "a width": lambda t: _join(t, left_time=c.around("t", 3000)),
    "a width after": lambda t: _join(t, left_time=c.around("t", before="1s", after=3000)),
    "a resolution": lambda t: _join(t, right_time=c.resolution("t", 3000)),
    "a shift": lambda t: c.accidental_pair_tables(
        t, t, within=("0s", "5s"), shifts=("20s", 3000), **AT
    ),
    "a longest length": lambda t: _join(t, options=CorrelateOptions(right_longest=3000)),
    "a gap": lambda t: _lasting(t, c.overlapping(gap=3000)),
    "an overlap": lambda t: _lasting(t, c.overlapping(min_overlap=3000)),
    "what follows": lambda t: _lasting(t, c.following(3000)),
    "ends of spans": lambda t: _lasting(
        t, c.overlapping(), left_time=c.spans("t", "u", around=3000), confidence=0.5
    ),
    "a union": lambda t: c.merged(t, 3000, time=c.spans("t", "u")),
    "a cause": lambda t: _caused(t, c.Temporal(0, 3000)),
    "a propagation": lambda t: _caused(t, c.Propagation(3000, speed=2.0)),
    "a speed's slack": lambda t: _caused(t, c.SpeedRange(1.0, 2.0, 3000)),
    "an ellipsoid": lambda t: _caused(t, c.Ellipsoidal(5.0, 3000)),
    "a stay": _window,
    "a delay": _live,
    "a delay of readings": _crossings,
    "a transition": _moves,
    "an offset": lambda t: c.clock_error_tables(t, t, max_offset=3000, **AT),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ASKED)
def test_it_is_refused_with_the_words_that_may_be_meant(name: str, kind: str) -> None:
    words = "Write '3000ms'.*'3000us'"
    with pytest.raises(
        ConditionError, match=f"3000 has no unit.* timestamps or durations.*{words}"
    ):
        ASKED[name](events(KINDS[kind]))


def test_next_to_numbers_it_counts_ticks() -> None:
    """Or what the unit says."""
    table = events(pa.int64())
    for unit in (None, "us"):
        asked: Any = {"left_time": c.around("t", 3000), "options": CorrelateOptions(unit=unit)}
        assert _join(table, (5000, 3_003_000), **asked)["right_id"].to_pylist() == [1]
        asked |= {"within": (5000, 3_003_000), "confidence": 0.5, "right_time": "t"}
        assert c.accidental_pair_tables(table, table, shifts=(9_000_001,), **asked).counts == (1,)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_nothing_in_any_unit(kind: str) -> None:
    table = events(KINDS[kind])
    found = _join(table, (0, "5s"), left_time=c.around("t", before="1ms", after=0))
    assert found.num_rows == 3 + 1
    assert _lasting(table, c.overlapping(gap=0)).num_rows == 3
