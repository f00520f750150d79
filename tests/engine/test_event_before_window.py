"""The event before the window among aggregates of exact times: the reference's values."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from coincide import (
    JoinReport,
    correlate_tables,
    within,
)
from cpu_fallback.reference.aggregates import (
    Aggregate,
    aggregated,
)
from tests.helpers.aggregates import (
    CASES,
    CLOSED,
    EXACT,
    OPTIONS,
    check,
    numbered,
)
from tests.helpers.match_cases import match_cases, tables_of


@settings(max_examples=max(1, CASES // 3))
@given(data=st.data())
def test_the_event_before_the_window_is_the_references(data: st.DataObject) -> None:
    asked = data.draw(match_cases(12))
    left, right = (
        [{**row, "min_time": row["max_time"]} for row in numbered(side)] for side in asked[:2]
    )
    closed, how = data.draw(CLOSED), data.draw(st.sampled_from(["inner", "left"]))
    lo, hi = asked.lo - (closed in ("right", "neither")), asked.hi + (closed in ("left", "neither"))
    asked = asked._replace(left=left, right=right, confidence=1.0)
    aggregates: dict[str, Aggregate] = {
        "n": "count", "first": ("id", "first"), "last": ("id", "last"), "least": ("seq", "min"),
        "soonest": ("delta", "min"), "sum": ("loud", "sum"),
    }  # fmt: skip
    if data.draw(st.booleans()):  # what needs pairs
        aggregates |= {"usual": ("delta", "mean"), "farthest": ("delta", "max")}
    found = correlate_tables(
        *tables_of(asked), within(lo, hi, closed=closed), left_time="max_time", right_time="max_time",
        by=asked.by, how=how, left_columns="row", emit="aggregates", aggregates=aggregates,
        including="previous", options=data.draw(OPTIONS),
    )  # fmt: skip
    expected = aggregated(asked, aggregates, has_previous=True, opens_later=lo < asked.lo)
    check(found, expected, aggregates, how)


def test_the_event_before_a_window_that_opens_later() -> None:
    """An event a tick inside is not there as the window begins, so that the last one before it counts."""
    left, right = pa.table({"t": [100]}), pa.table({"t": [80, 91, 95]})
    asked = EXACT | {"aggregates": {"n": "count", "least": ("t", "min")}, "including": "previous"}
    for closed in ("both", "left", "right", "neither"):
        found = correlate_tables(
            left, right, **asked | {"condition": within(-10, 0, closed=closed)}
        )
        assert found.to_pylist() == [{"left_id": 0, "n": 3, "least": 80}]
    found = correlate_tables(left, right, **asked | {"condition": within(-9, 0, closed="left")})
    assert found.to_pylist() == [{"left_id": 0, "n": 2, "least": 91}]


def test_many_events_of_one_time_before_the_window() -> None:
    """One of them counts, the last row, and no pair is made of the others."""
    left, right = pa.table({"t": np.full(100_000, 50)}), pa.table({"t": np.full(100_000, 7)})
    asked = EXACT | {"aggregates": {"n": "count", "row": ("id", "last")}, "including": "previous"}
    right = right.append_column("id", pa.array(np.arange(100_000)))
    found = correlate_tables(left, right, **asked)
    assert found["n"].unique().to_pylist() == [1]
    assert found["row"].unique().to_pylist() == [99_999]


def test_the_event_before_the_window_is_told_in_the_report() -> None:
    """The only match, which no pair in the window is: there is no warning of an empty answer."""
    left, right = pa.table({"id": [1], "t": [100]}), pa.table({"t": [3, 7], "bid": [1.5, 2.5]})
    report = JoinReport()
    found = correlate_tables(
        left, right, within=(-10, 0), left_time="t", right_time="t", emit="aggregates",
        aggregates={"bid": ("bid", "last"), "n": "count"}, including="previous", report=report,
    )  # fmt: skip
    assert found.to_pylist() == [{"left_id": 1, "bid": 2.5, "n": 1}]
    assert report.summary().counters.pairs == 1
