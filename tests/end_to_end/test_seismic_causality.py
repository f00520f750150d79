"""A day of earthquakes and picks: counts known from a plain double loop, and the catalogue's own links."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench.gpu.picks import FOLDER
from coincide import CausalityCondition, Plane, Spatial, SpeedRange, causality_tables
from tests.conftest import SeismicPicks

pytestmark = pytest.mark.seismic

KM_PER_DEGREE = 111.19
SPACE = Plane((KM_PER_DEGREE, KM_PER_DEGREE * np.cos(np.radians(42.8)), 1.0))
NEAR_S = 0.001
"""How far a pick is at most from the time that the catalogue's phase list gives."""

COUNTS = [
    *(("P", 4.5, 7.0, 9_942, 9_055), ("P", 5.0, 6.5, 9_673, 9_055)),
    *(("S", 2.5, 3.6, 14_777, 11_481), ("S", 2.7, 3.5, 14_436, 11_478)),
]


@pytest.fixture(scope="module")
def origins(seismic: SeismicPicks) -> pa.Table:
    return pq.read_table(FOLDER / "events_real.parquet")


@pytest.mark.parametrize(("phase", "slowest", "fastest", "pairs", "links"), COUNTS)
def test_travel_times(
    seismic: SeismicPicks, origins: pa.Table,
    phase: str, slowest: float, fastest: float, pairs: int, links: int,
) -> None:  # fmt: skip
    picks = seismic.stalta.filter(pc.equal(seismic.stalta["phase"], phase))
    condition = CausalityCondition([Spatial(80), SpeedRange(slowest, fastest, "500ms")], SPACE)
    found = causality_tables(
        origins, picks, condition,
        cause_place=("lat", "lon", "depth_km"), effect_place=("lat", "lon", 0.0),
        effect_columns=("id", "station", "t"),
    )  # fmt: skip
    assert found.num_rows == pairs
    assert pc.max(found["distance"]).as_py() <= 80
    assert found_links(found, phase) == links


def found_links(found: pa.Table, phase: str) -> int:
    """How many of the catalogue's links of a phase are among the pairs."""
    listed = pq.read_table(FOLDER / "phases_real.parquet").to_pandas()
    listed = listed[listed["phase"] == phase]
    pairs = found.to_pandas()
    both = listed.merge(
        pairs, left_on=["event_id", "station"], right_on=["cause_id", "effect_station"]
    )
    near = both[(both["effect_t"] - both["t"]).abs() <= NEAR_S]
    return len(near.drop_duplicates(["event_id", "station"]))
