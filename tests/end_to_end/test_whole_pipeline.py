"""Readings, their border crossings, events of two instruments, causes and effects: in one Spark job."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from coincide import (
    CausalityCondition,
    Spatial,
    SpeedRange,
    TimingCondition,
    border_crossing_tables,
    border_crossings,
    causality,
    causality_tables,
    correlate,
    correlate_tables,
    within,
)
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.spark

START = dt.datetime(2026, 5, 1, 4, tzinfo=dt.UTC)
LOUD = pa.table({"query_id": ["loud"], "lower": [5.0], "upper": [None]})
APART = 12
"""From a station to the next."""
SPEED = 3

STREAM: Any = {"stream": "station", "values": "level"}
BOTH: Any = {
    "condition": TimingCondition(within(0, "2s"), 0.5), "by": "station",
    "left_columns": ("min_time", "max_time"), "right_columns": (),
}  # fmt: skip
CAUSES: Any = {
    "condition": CausalityCondition([Spatial(15), SpeedRange(2, 5)], confidence=0.3),
    "cause_time": ("left_min_time", "left_max_time"),
    "cause_place": "x",
    "cause_columns": "station",
    "effect_columns": "station",
}


def readings(arrivals: dict[str, list[float]], late: float, spurious: dict[str, float]) -> pa.Table:
    """One a second of each station, in any order: loud for two seconds after something has come."""
    rng = np.random.default_rng(5)
    rows = []
    for name, times in arrivals.items():
        begins = [*(t + late for t in times), *([spurious[name]] if name in spurious else [])]
        for k in range(400):
            is_loud = any(begin <= k < begin + 2 for begin in begins)
            rows.append((name, START + dt.timedelta(seconds=k), 9.0 if is_loud else 0.2))
    names, times, levels = zip(*(rows[i] for i in rng.permutation(len(rows))), strict=True)
    return pa.table({"station": names, "time": times, "level": levels})


def test_what_travels_along_a_valley(spark: SparkSession) -> None:
    """Three times something passes all stations; at one of them geophone and sound disagree once."""
    names = [f"s{i}" for i in range(6)]
    arrivals = {
        name: [begin + 0.3 + i * APART / SPEED for begin in (20, 120, 300)]
        for i, name in enumerate(names)
    }
    shaking = readings(arrivals, 0.0, {"s2": 200.3})
    sound = readings(arrivals, 0.9, {"s2": 230.3})
    places = pa.table({"station": names, "x": [float(APART * i) for i in range(len(names))]})

    rises = [border_crossing_tables(each, LOUD, **STREAM) for each in (shaking, sound)]
    rises = [each.filter(pc.equal(each["event"], "I")) for each in rises]
    assert [each.num_rows for each in rises] == [19, 19]
    events = correlate_tables(*rises, **BOTH)
    assert events.num_rows == 18
    wanted = causality_tables(events.join(places, "station"), None, **CAUSES)

    found = [
        border_crossings(frame(spark, each), LOUD, **STREAM).where("event = 'I'")
        for each in (shaking, sound)
    ]
    met = correlate(*found, **BOTH).join(frame(spark, places), "station")
    pairs = causality(met, None, **CAUSES).toArrow()

    rows = [sorted(each.to_pylist(), key=str) for each in (wanted, pairs)]
    assert rows[0] == rows[1]
    steps = zip(
        *(wanted[name].to_pylist() for name in ("cause_station", "effect_station")), strict=True
    )
    assert sorted(steps) == sorted([step for step in pairwise(names) for _ in range(3)])
