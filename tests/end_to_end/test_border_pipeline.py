"""Readings, their border crossings, and the windows that these fall into: in one Spark job."""

from __future__ import annotations

import datetime as dt
import math

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from coincide import (
    BorderOptions,
    BorderReport,
    TimingCondition,
    border_crossing_tables,
    border_crossings,
    correlate,
    correlate_tables,
    within,
)
from tests.helpers.rows import in_order
from tests.helpers.spark_cases import frame

pytestmark = pytest.mark.spark

FAR = pa.table({"query_id": ["far out"], "lower": [math.nextafter(4, 5)], "upper": [None]})
WINDOW = TimingCondition(within("-1h", "1h"), 0.5)
COLUMNS = ("query_id", "series", "event")
"""The columns of a crossing."""


def check_pipeline(spark: SparkSession, readings: pa.Table, windows: pa.Table) -> BorderReport:
    """The job finds what the functions of one process find."""
    names = {"stream": "series", "time": "timestamp", "values": "z"}
    options = BorderOptions(first="outside")
    crossings = border_crossing_tables(readings, FAR, options=options, **names)
    ends = {
        "by": "series", "left_columns": COLUMNS, "right_columns": ("min_time", "max_time"),
    }  # fmt: skip
    wanted = correlate_tables(crossings, windows, WINDOW, **ends)
    assert wanted.num_rows
    report = BorderReport()
    found = border_crossings(frame(spark, readings), FAR, options=options, report=report, **names)
    pairs = correlate(found, frame(spark, windows), WINDOW, **ends)
    assert in_order(pairs.toArrow()) == in_order(wanted)
    return report


def test_readings_to_windows(spark: SparkSession) -> None:
    start = dt.datetime(2024, 3, 30, 22, tzinfo=dt.UTC)
    rows = [
        (name, start + dt.timedelta(minutes=5 * k), 9.0 if (k + shift) % 7 == 0 else 0.5)
        for shift, name in enumerate(("machine", "traffic"))
        for k in range(60)
    ]
    series, times, z = zip(*rows, strict=True)
    begins = [start + dt.timedelta(hours=k) for k in range(4)]
    ends = [begin + dt.timedelta(minutes=10) for begin in begins]
    windows = {"series": ["machine", "traffic"] * 2, "min_time": begins, "max_time": ends}
    readings = pa.table({"series": series, "timestamp": times, "z": z})
    check_pipeline(spark, readings, pa.table(windows))


@pytest.mark.slow
@pytest.mark.nab
def test_the_nab_series_to_windows(spark: SparkSession, nab_series: pa.Table) -> None:
    """In each series |z| > 4, with the sample's standard deviation; the windows are NAB's own."""
    from bench.nab import read_windows

    table = nab_series.to_pandas()
    groups = table.groupby("series")["value"]
    table["z"] = ((table["value"] - groups.transform("mean")) / groups.transform("std")).abs()
    readings = pa.Table.from_pandas(table, preserve_index=False)
    summary = check_pipeline(spark, readings, read_windows()).summary()
    assert (summary.entered, summary.left) == (1225, 1222)
