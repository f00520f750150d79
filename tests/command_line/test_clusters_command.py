"""`coincide clusters`: files in, the table of `clusters` out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from coincide import CausalityCondition, CorrelateOptions, Spatial, Sphere, Temporal, clusters
from coincide.command_line import run

SOURCES = pa.table(
    {
        "id": ["a", "b", "c", "d", "e", "f"],
        "seen": [0.00, 0.10, 0.20, 0.20, 3.00, None],
        "lat": [45.0, 45.01, 45.02, 46.0, 45.02, 45.0],
        "lon": [7.0, 7.01, 7.02, 8.0, 7.02, 7.0],
        "key": ["k", "k", "K", "k", "k", "k"],
    }
)
NEAR = CausalityCondition([Temporal(0, "150ms"), Spatial(3)], Sphere())
WORDS = (
    "--time", "seen", "--unit", "s", "--tick", "ms", "--place", "lat,lon", "--lat-lon",
    "--delta", "0s", "150ms", "--radius", "3km",
)  # fmt: skip


@pytest.fixture(params=["sources.parquet", "sources.csv"])
def source(request: Any, tmp_path: Path) -> str:
    path = tmp_path / request.param
    write: Any = pq.write_table if path.suffix == ".parquet" else csv.write_csv
    write(SOURCES, path)
    return str(path)


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), {}),
        (("--by", "key", "--columns", "*"), {"by": "key", "columns": "*"}),
        (("--by", "key", "--columns", "id,lat"),
         {"by": "key", "columns": ("id", "lat")}),
        (("--where", "cause_id <> 'b' and delta_ms > 50"),
         {"where": "cause_id <> 'b' and delta_ms > 50"}),
    ],
)  # fmt: skip
def test_the_table_is_that_of_clusters(
    source: str, tmp_path: Path, words: Any, asked: dict[str, Any]
) -> None:
    words = ("--where", asked["where"]) if "where" in asked else words
    options = CorrelateOptions(unit="s", tick="ms")
    wanted = clusters(SOURCES, NEAR, time="seen", place=("lat", "lon"), options=options, **asked)
    output = tmp_path / "flashes.parquet"
    assert run(["clusters", source, "-o", str(output), *WORDS, *words]) == 0
    assert pq.read_table(output).to_pydict() == wanted.to_pydict()


def test_what_it_says(source: str, tmp_path: Path, capsys: Any) -> None:
    output = tmp_path / "flashes.csv"
    assert run(["clusters", source, "-o", str(output), *WORDS]) == 0
    told = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert told["events"] == "6 rows; 1 without time, place or key"
    assert told["clusters"] == "1 of two events or more, the largest of 3"
    assert (told["alone"], told["rows"]) == ("2", "6")
    assert csv.read_csv(output)["cluster"].to_pylist() == [0, 0, 0, 3, 4, None]
    assert run(["clusters", source, "-o", str(output), *WORDS, "--overwrite", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["clusters"], told["largest"], told["alone"], told["tick"]) == (1, 3, 2, "ms")
    assert run(["clusters", source, "-o", str(output), *WORDS]) == 2
    assert "--overwrite" in capsys.readouterr().err


def test_places_of_another_space_are_a_line(source: str, capsys: Any) -> None:
    words = [*WORDS[:8], "--delta", "0s", "150ms", "--radius", "3"]
    assert run(["clusters", source, "-o", "-", *words]) == 0
    told = capsys.readouterr()
    assert told.out.splitlines()[:2] == ["id,cluster", "a,0"]
    assert (
        "coincide: distances are measured in degrees (found the places 'lat' and 'lon'" in told.err
    )


def test_help_teaches(capsys: Any) -> None:
    assert run(["clusters", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for words in ("EVENTS", "chain of pairs", "--place", "--ellipsoid", "Exit codes"):
        assert words in told
