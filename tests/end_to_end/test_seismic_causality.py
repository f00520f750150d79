"""A day of earthquakes and picks: counts known from a plain double loop, and the catalogue's own links."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from bench.gpu.picks import FOLDER
from coincide import CausalityCondition, Plane, Spatial, SpeedRange, causality_tables
from coincide.command_line import run
from tests.conftest import SeismicPicks
from tests.helpers.places import ROOT

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


def day_of_the_page() -> str:
    page = (ROOT / "docs" / "causality.md").read_text(encoding="utf-8")
    return page.partition("## A day of earthquakes")[2]


def test_the_day_of_the_page(
    seismic: SeismicPicks, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pairs, links of the catalogue, chance by shifts, travel times: as the page prints them."""
    day = day_of_the_page()
    code, output = (
        re.findall(rf"```{kind}\n(.*?)```", day, re.DOTALL)[0] for kind in ("python", "text")
    )
    monkeypatch.chdir(FOLDER)
    exec(compile(code, "docs/causality.md", "exec"), {})
    assert capsys.readouterr().out == output


def test_the_command_of_the_page(
    seismic: SeismicPicks, capsys: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (command,) = re.findall(
        r"```sh\n(coincide causality events_real.*?)```", day_of_the_page(), re.DOTALL
    )
    words = shlex.split(command.replace("\\\n", " "))
    picks = seismic.stalta.filter(pc.equal(seismic.stalta["phase"], "P"))
    pq.write_table(picks, tmp_path / "p_picks.parquet")
    pq.write_table(pq.read_table(FOLDER / "events_real.parquet"), tmp_path / "events_real.parquet")
    monkeypatch.chdir(tmp_path)
    assert run(words[1:]) == 0
    told = capsys.readouterr().out
    assert re.search(r"^pairs +9,942$", told, re.MULTILINE)
    assert re.search(
        r"^accidental +811\.5 ± 88\.2 expected by chance; by shift 7min: 754, -7min: 751", told,
        re.MULTILINE,
    )  # fmt: skip
