"""Stations of a seismic day whose clocks are put off: found by their picks, and put right in a join."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from coincide import clock_error_tables, corrected_clock, correlate_tables
from tests.conftest import SeismicPicks

pytestmark = pytest.mark.seismic

SECOND = 1_000_000
STATIONS = 5


def p_picks(table: pa.Table, stations: pa.Array) -> pa.Table:
    is_wanted = pc.and_(pc.equal(table["phase"], "P"), pc.is_in(table["station"], stations))
    return table.filter(is_wanted).select(["id", "station", "time"])


def test_stations_that_are_put_off(seismic: SeismicPicks) -> None:
    counts = seismic.stalta.group_by("station").aggregate([("id", "count")])
    stations = counts.sort_by([("id_count", "descending")])["station"][:STATIONS].combine_chunks()
    right_picks, others = (p_picks(t, stations) for t in (seismic.stalta, seismic.phasenet))
    rng = np.random.default_rng(7)
    offsets, drifts = rng.uniform(-40, 40, STATIONS), rng.uniform(-1e-4, 1e-4, STATIONS)
    number = pc.index_in(right_picks["station"], stations).to_numpy()
    times = right_picks["time"].cast(pa.int64()).to_numpy()
    start = times.min()
    error = offsets[number] * SECOND + drifts[number] * (times - start)
    off = pa.array(times - np.rint(error).astype(np.int64)).view(right_picks["time"].type)
    picks = right_picks.set_column(2, "time", off)

    errors = clock_error_tables(picks, others, max_offset="60s", by="station")
    assert errors["station"].to_pylist() == sorted(stations.to_pylist())
    starts = errors["start"].cast(pa.int64()).to_pylist()
    for row, begin in zip(errors.to_pylist(), starts, strict=True):
        assert row["status"] == "found"
        k = stations.to_pylist().index(row["station"])
        at = (begin - start) / SECOND
        assert row["offset"].total_seconds() == pytest.approx(offsets[k] + drifts[k] * at, abs=0.2)

    given = {"within": "250ms", "confidence": 0.5, "by": "station", "right_time": "time"}
    wanted, found, raw = (
        correlate_tables(table, others, left_time=time, **given).num_rows
        for table, time in (
            (right_picks, "time"), (picks, corrected_clock("time", errors, by="station")), (picks, "time"),
        )
    )  # fmt: skip
    assert raw < 0.2 * wanted
    assert found > 0.95 * wanted
