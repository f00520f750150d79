"""`coincide causality`: the pairs of tables, from files, on both engines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from coincide import (
    CausalityCondition,
    CorrelateOptions,
    Ellipsoidal,
    Propagation,
    Spatial,
    SpeedRange,
    Sphere,
    Temporal,
    accidental_pair_tables,
    around,
    causality_tables,
    resolution,
)
from coincide.command_line import run
from tests.helpers.causality_tables import XY, answer, random_events

CAUSES, EFFECTS = random_events(1, 80, prefix="c"), random_events(2, 90)
NEAR = CausalityCondition([Temporal(-7, 40), Spatial(3)])
OPTIONS = ["--cause-place", "x,y", "--delta", "-7", "40", "--radius", "3"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    pq.write_table(CAUSES, tmp_path / "causes.parquet")
    pq.write_table(EFFECTS, tmp_path / "effects.parquet")
    (tmp_path / "out").mkdir()
    return tmp_path


def causality(
    place: Path,
    *options: str,
    files: tuple[str, ...] = ("causes.parquet", "effects.parquet"),
    engine: str = "local",
) -> int:
    inputs = [str(place / name) for name in files]
    output = str(place / "out" / "pairs.parquet")
    return run(["causality", *inputs, "-o", output, "--engine", engine, *options])


def result(place: Path) -> pa.Table:
    return ds.dataset(str(place / "out" / "pairs.parquet"), format="parquet").to_table()


def test_the_pairs_of_tables_are_written(place: Path, capsys: Any) -> None:
    assert causality(place, *OPTIONS, "--json") == 0
    wanted = causality_tables(CAUSES, EFFECTS, NEAR, **XY)
    assert result(place).schema.equals(wanted.schema)
    assert answer(result(place)) == answer(wanted)
    told = json.loads(capsys.readouterr().out)
    assert told["pairs"] == told["rows"] == wanted.num_rows > 50
    assert told["causes"]["rows"] == CAUSES.num_rows
    assert told["effects"]["unmatchable"] > 0
    assert told["engine"] == "local"
    assert [path.name for path in (place / "out").iterdir()] == ["pairs.parquet"]


def test_the_summary_in_words(place: Path, capsys: Any) -> None:
    options = ["--by", "key", "--how", "left", "--cause-columns", "id,name", "--strict"]
    assert causality(place, *OPTIONS, *options) == 0
    strict = CausalityCondition([Temporal(-7, 40, strict=True), Spatial(3, strict=True)])
    arguments: Any = {"by": "key", "how": "left", "cause_columns": ("id", "name")}
    wanted = causality_tables(CAUSES, EFFECTS, strict, **XY, **arguments)
    assert answer(result(place)) == answer(wanted)
    told = dict(line.split("  ", 1) for line in capsys.readouterr().out.splitlines())
    told = {name.strip(): words.strip() for name, words in told.items()}
    assert told["causes"].startswith(f"{CAUSES.num_rows} rows; ")
    assert told["causes"].endswith("without time, place or key")
    assert {"effects", "pairs", "rows", "seconds", "output"} <= told.keys()


def test_one_stream(place: Path, capsys: Any) -> None:
    options = ["--cause-place", "x,y", "--ellipsoid", "4", "25", "--effect-columns", "name"]
    assert causality(place, *options, files=("causes.parquet",)) == 0
    oval = CausalityCondition(Ellipsoidal(4, 25))
    wanted = causality_tables(CAUSES, None, oval, cause_place=("x", "y"), effect_columns="name")
    assert answer(result(place)) == answer(wanted)
    assert wanted.num_rows > 20
    assert capsys.readouterr().out.startswith("events ")


def picks() -> tuple[pa.Table, pa.Table]:
    rng = np.random.default_rng(3)
    origins = pa.table(
        {
            "id": np.arange(20), "time": np.round(rng.uniform(0, 100, 20), 3),
            "lat": rng.uniform(42, 43, 20), "lon": rng.uniform(12, 13, 20),
            "depth": rng.integers(0, 12, 20), "net": [7] * 20,
        }
    )  # fmt: skip
    stations = pa.table(
        {
            "id": np.arange(60), "time": np.round(rng.uniform(0, 120, 60), 3),
            "lat": rng.uniform(42, 43, 60), "lon": rng.uniform(12, 13, 60), "net": ["7"] * 60,
        }
    )  # fmt: skip
    return origins, stations


PICKS = [
    "--cause-place", "lat,lon,depth", "--effect-place", "lat,lon,0", "--lat-lon", "--unit", "s",
    "--radius", "80", "--speed", "2.5", "7", "--slack", "500ms", "--by", "net",
]  # fmt: skip


def test_csv_of_latitudes_and_longitudes(place: Path, capsys: Any) -> None:
    """Coordinates that look whole are numbers, too; keys that are text on one side are text."""
    for name, table in zip(("a.csv", "b.csv"), picks(), strict=True):
        csv.write_csv(table, place / name)
    assert causality(place, *PICKS, files=("a.csv", "b.csv")) == 0
    condition = CausalityCondition([Spatial(80), SpeedRange(2.5, 7, "500ms")], Sphere())
    origins, stations = picks()
    origins = origins.set_column(5, "net", origins["net"].cast(pa.string()))
    wanted = causality_tables(
        origins, stations, condition, cause_place=("lat", "lon", "depth"),
        effect_place=("lat", "lon", 0.0), by="net", options=CorrelateOptions(unit="s"),
    )  # fmt: skip
    assert wanted.num_rows > 5
    assert [row[1:] for row in answer(result(place))] == [row[1:] for row in answer(wanted)]


@pytest.mark.spark
def test_on_spark(place: Path, command_spark: Any, capsys: Any) -> None:
    assert causality(place, *OPTIONS, "--slices", "5", "--json", engine="spark") == 0
    wanted = causality_tables(CAUSES, EFFECTS, NEAR, **XY)
    assert answer(result(place)) == answer(wanted)
    told = json.loads(capsys.readouterr().out)
    assert (told["pairs"], told["rows"]) == (wanted.num_rows, wanted.num_rows)
    assert (told["way"], told["slices"]) == ("exchange", 5)
    assert told["causes"]["unmatchable"] > 0
    options = ["--cause-place", "x,y", "--ellipsoid", "4", "25", "--emit", "counts", "--overwrite"]
    assert causality(place, *options, files=("causes.parquet",), engine="spark") == 0
    oval = CausalityCondition(Ellipsoidal(4, 25))
    wanted = causality_tables(CAUSES, None, oval, cause_place=("x", "y"), emit="counts")
    assert sum(result(place)["matches"].to_pylist()) == sum(wanted["matches"].to_pylist()) > 0


REFUSED: dict[str, tuple[list[str], str]] = {
    "no condition": (["--cause-place", "x,y"], "Use --delta LO HI, --radius R, --speed MIN MAX"),
    "no place": (["--radius", "3"], "coordinates are missing. Name them in --cause-place and"),
    "no column": ([*OPTIONS, "--effect-columns", "nam"], "effect has no column 'nam'"),
    "text for a place": (["--cause-place", "name", "--radius", "1"], "must be a number, as it is a"),
    "both spaces": ([*OPTIONS, "--lat-lon", "--scale", "1,2"], "--scale applies to a plane, and"),
    "no sphere": ([*OPTIONS, "--sphere-radius", "1"], "Use --lat-lon"),
    "no heights": ([*OPTIONS, "--height-scale", "1"], "--height-scale applies to a sphere"),
    "slack of nothing": ([*OPTIONS, "--slack", "1"], "--slack belongs to travel times"),
    "a unit of no speed": ([*OPTIONS, "--per", "ms"], "--per belongs to speeds"),
    "a way in one process": ([*OPTIONS, "--way", "exchange"], "no effect with --engine local"),
    "no such way": ([*OPTIONS, "--way", "files"], "--way must be one of auto, broadcast"),
    "speeds of no unit": (["--cause-place", "x,y", "--speed", "1", "2"], "speeds are per s"),
    "nothing bounded": (["--delta", "0", "any"], "limits neither the time nor the distance between cause"),
    "a latitude": (["--cause-place", "time,x", "--lat-lon", "--radius", "3"], "|latitude| > 90"),
    "three times": ([*OPTIONS, "--cause-time", "a,b,c"], "--cause-time takes the columns MIN,MAX, or one"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("engine", ["local", "spark"])
def test_bad_use_is_one_line_and_leaves_nothing(
    place: Path, case: str, engine: str, capsys: Any
) -> None:
    options, words = REFUSED[case]
    if engine == "spark" and case in ("a way in one process", "a latitude"):
        pytest.skip("Spark has ways; what rows hold it knows once it runs")
    assert causality(place, *options, engine=engine) == 2
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1
    assert list((place / "out").iterdir()) == []


def test_help_teaches(capsys: Any) -> None:
    assert run(["causality", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for words in ("CAUSES", "distance/MAX", "--cause-place", "--emit counts", "Exit codes"):
        assert words in told


def test_shifts_tell_of_chance(place: Path, capsys: Any) -> None:
    assert causality(place, *OPTIONS, "--shifts", "-60,50", "--shifts", "121", "--json") == 0
    accidental = accidental_pair_tables(CAUSES, EFFECTS, NEAR, **XY, shifts=(-60, 50, 121))
    told = json.loads(capsys.readouterr().out)
    by_shift = dict(zip(("-60", "50", "121"), accidental.counts, strict=True))
    assert told["accidental_by_shift"] == by_shift
    assert told["accidental_pairs"] == round(accidental.expected, 3) > 5
    assert told["accidental_spread"] == round(float(accidental.spread or 0), 3) > 0
    assert causality(place, *OPTIONS, "--shifts", "-60,50", "--overwrite") == 0
    lines = [x for x in capsys.readouterr().out.splitlines() if x.startswith("accidental")]
    mean = sum(accidental.counts[:2]) / 2
    assert f"{mean:,.1f} ± " in lines[0]
    assert lines[0].endswith(f"by shift -60: {by_shift['-60']}, 50: {by_shift['50']}")
    assert causality(place, *OPTIONS, "--shifts", "20", "--overwrite") == 2
    assert "the shift 20 is not longer than the window" in capsys.readouterr().err


def test_units_and_longest_lengths_of_each_side(place: Path, capsys: Any) -> None:
    rng = np.random.default_rng(4)
    seconds, millis = rng.integers(0, 90, 40), rng.integers(0, 90_000, 60)
    own = pa.table({"id": np.arange(40), "a": seconds, "b": seconds + 1})
    other = pa.table({"id": np.arange(60), "time": millis})
    pq.write_table(own, place / "own.parquet")
    pq.write_table(other, place / "other.parquet")
    options = ["--cause-time", "a,b", "--effect-time", "time", "--delta", "0s", "3s"]
    units = ["--cause-unit", "s", "--effect-unit", "ms", "--confidence", "0.5"]
    longest = ["--cause-longest", "1s", "--effect-longest", "0s"]
    files = "own.parquet", "other.parquet"
    assert causality(place, *options, *units, *longest, files=files) == 0
    wanted = causality_tables(
        own, other, CausalityCondition([Temporal("0s", "3s")], confidence=0.5),
        cause_time=("a", "b"), effect_time="time",
        options=CorrelateOptions(left_unit="s", right_unit="ms"),
    )  # fmt: skip
    assert answer(result(place)) == answer(wanted)
    assert wanted.num_rows > 20
    longest[1] = "500ms"
    assert causality(place, *options, *units, *longest, "--overwrite", files=files) == 2
    assert "longer than" in capsys.readouterr().err
    assert causality(place, *options, "--effect-unit", "ms", "--overwrite", files=files) == 2
    assert "--cause-unit" in capsys.readouterr().err
    own_units = ["--left-unit", "s", "--right-unit", "ms", "--confidence", "0.5", "--overwrite"]
    assert causality(place, *options, *own_units, files=files) == 0
    one = ["--delta", "0", "9", "--effect-unit", "s"]
    assert causality(place, *one, files=("causes.parquet",)) == 2
    assert "there is one stream. Use --cause-unit" in capsys.readouterr().err


PROPAGATIONS: list[tuple[list[str], Propagation]] = [
    (["--propagation-time", "5", "--tolerance", "9"], Propagation(9, time=5)),
    (
        ["--propagation-speed", "0.25", "--tolerance", "6", "--per", "tick", "--strict"],
        Propagation(6, speed=0.25, per=None, strict=True),
    ),
]


@pytest.mark.parametrize(("options", "predicate"), PROPAGATIONS)
def test_propagation(place: Path, options: list[str], predicate: Propagation) -> None:
    near = ["--cause-place", "x,y", "--radius", "8"]
    assert causality(place, *near, *options) == 0
    condition = CausalityCondition([Spatial(8, strict=predicate.strict), predicate])
    wanted = causality_tables(CAUSES, EFFECTS, condition, **XY)
    assert answer(result(place)) == answer(wanted)
    assert wanted.num_rows > 20


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--tolerance", "5"], "--tolerance belongs to a propagation"),
        (["--propagation-time", "5"], "--tolerance is missing, which says how much later than"),
        (
            ["--propagation-time", "5", "--propagation-speed", "2", "--tolerance", "1"],
            "exclude each other",
        ),
        (["--propagation-time", "-5", "--tolerance", "1"], "time must not be negative"),
    ],
)
def test_propagations_that_make_no_sense(
    place: Path, capsys: Any, options: list[str], words: str
) -> None:
    assert causality(place, "--cause-place", "x,y", *options) == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize("effects", [True, False])
def test_clocks_that_are_known_to_some_width(effects: bool, place: Path, capsys: Any) -> None:
    known = around("time", before=3, after=9)
    files = [str(place / "causes.parquet"), *([str(place / "effects.parquet")] * effects)]
    words = ["--cause-around", "3,9", "--effect-resolution", "4"][: 4 if effects else 2]
    output = str(place / "out" / "pairs.parquet")
    asked = ["-o", output, "--engine", "local", *OPTIONS, "--confidence", "0.3"]
    assert run(["causality", *files[:1], *files[1:], *asked, *words]) == 0, capsys.readouterr().err
    condition = CausalityCondition(NEAR.predicates, confidence=0.3)
    clocks = {"effect_time": resolution("time", 4)} if effects else {}
    places = XY if effects else {"cause_place": ("x", "y")}
    given = EFFECTS if effects else None
    want = causality_tables(CAUSES, given, condition, cause_time=known, **clocks, **places)
    assert answer(pq.read_table(output)) == answer(want)
    ends = [with_column(table, "late", 9) for table in (CAUSES, EFFECTS)]
    ends[0] = with_column(ends[0], "early", -3)
    ends[1] = with_column(EFFECTS, "late", 4)
    times = {
        "cause_time": ("early", "late"),
        **({"effect_time": ("time", "late")} if effects else {}),
    }
    by_columns = causality_tables(
        ends[0], ends[1] if effects else None, condition, **times, **places
    )
    # Delta is between the stamps, and of columns between their midpoints.
    assert answer(want.drop_columns("delta")) == answer(by_columns.drop_columns("delta"))
    assert answer(want) != answer(by_columns) or not effects
    assert want.num_rows


def with_column(table: pa.Table, name: str, offset: int) -> pa.Table:
    return table.append_column(name, pc.add(table["time"], offset))


def test_of_one_stream_a_clock_is_said_once(place: Path, capsys: Any) -> None:
    words = ["-o", str(place / "out" / "pairs.parquet"), "--engine", "local", *OPTIONS]
    assert run(["causality", str(place / "causes.parquet"), *words, "--effect-around", "3"]) == 2
    assert "Remove --effect-time" in capsys.readouterr().err


def test_effects_are_stamped_as_causes_unless_it_is_said(place: Path, capsys: Any) -> None:
    files = [str(place / "causes.parquet"), str(place / "effects.parquet")]
    output = str(place / "out" / "pairs.parquet")
    asked = ["-o", output, "--engine", "local", *OPTIONS, "--confidence", "0.3", "--overwrite"]
    condition = CausalityCondition(NEAR.predicates, confidence=0.3)
    known = around("time", before=3, after=3)
    for words, effect_time in (([], known), (["--effect-time", "time"], "time")):
        assert run(["causality", *files, *asked, "--cause-around", "3", *words]) == 0
        want = causality_tables(
            CAUSES, EFFECTS, condition, cause_time=known, effect_time=effect_time, **XY
        )
        assert answer(pq.read_table(output)) == answer(want)


def test_hints_of_a_summary_name_options_of_causality(tmp_path: Path, capsys: Any) -> None:
    paths = [str(tmp_path / f"{name}.parquet") for name in ("causes", "effects", "pairs")]
    for path, times in zip(paths, ([3000, 10_000], [3_000_000, 10_000_000]), strict=False):
        pq.write_table(pa.table({"id": [1, 2], "time": times}), path)
    assert (
        run(["causality", *paths[:2], "-o", paths[2], "--delta", "0", "9", "--engine", "local"])
        == 0
    )
    told = capsys.readouterr().out
    assert "--cause-unit" in told
    assert "--left-unit" not in told
