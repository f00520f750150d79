"""`coincide clocks`: files in, the table of `clock_error_tables` out; and joins on clocks put right."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest

from bench.clocks import SECOND, Truth, made
from coincide import (
    CorrelateOptions,
    UnmatchableRowsWarning,
    clock_error_tables,
    corrected_clock,
    correlate_tables,
    overlapping,
    spans,
)
from coincide.command_line import run
from coincide.command_line.clocks import _words
from coincide.engine.events.ticks import length_words
from coincide.model.clocks.errors import ClockEstimate, Line, Segment
from coincide.model.units import Tick

CASE = made(np.random.default_rng(1), 60, 100, 100, Truth(7.5, 60e-6, 0.002, 8000.0))
LEFT, RIGHT = (
    pa.table({"device": ["a"] * 100, "time": times / SECOND}) for times in (CASE.left, CASE.right)
)
WORDS = ("--unit", "s", "--tick", "us", "--max-offset", "60s", "--by", "device")


@pytest.fixture(params=["parquet", "csv"])
def sources(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    write: Any = pq.write_table if request.param == "parquet" else csv.write_csv
    paths = [tmp_path / f"{side}.{request.param}" for side in ("left", "right")]
    for path, table in zip(paths, (LEFT, RIGHT), strict=True):
        write(table, path)
    return [str(path) for path in paths]


def test_the_table_is_that_of_clock_errors(
    sources: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "errors.parquet"
    assert run(["clocks", *sources, "-o", str(output), *WORDS, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["clocks"], told["segments"], told["left"]["rows"]) == ({"found": 1}, 1, 100)
    options = CorrelateOptions(unit="s", tick="us")
    wanted = clock_error_tables(LEFT, RIGHT, max_offset="60s", by="device", options=options)
    assert pq.read_table(output).equals(wanted)
    (error,) = told["errors"]
    assert (error["clock"], error["status"]) == ("device a", "found")
    (segment,) = error["segments"]
    assert float(segment["offset"].removesuffix(" s")) == pytest.approx(7.5, abs=0.5)
    assert segment["drift"] == wanted["drift"][0].as_py()


def test_people_read_how_many_are_found(
    sources: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = str(tmp_path / "errors.csv")
    words = (*WORDS, "--no-jumps", "--chance", "0.01", "--max-drift", "100ppm")
    assert run(["clocks", *sources, "-o", output, *words]) == 0
    told = capsys.readouterr().out
    assert re.search(r"clocks +1 found\ndevice a +offset 7\.\d+ s \(± ", told)
    assert csv.read_csv(output)["status"].to_pylist() == ["found"]


def test_numbers_have_no_exponent() -> None:
    tick = Tick("us")
    assert [length_words(each, tick, 2) for each in (234.6, 0.0001, 9.96e8, 1.5e9 * 86_400)] == [
        "230 us", "100 ps", "17 min", "1500 d",
    ]  # fmt: skip
    segment = Segment(0, 1, Line(0.0, 7e6, 0.00123456), 234.6, 3e-11, 0.4, -1, 1, 5.0, 0.0)
    assert _words(ClockEstimate("found", [segment]), tick) == (
        "offset 7 s (± 230 us), drift 1235 ppm (± 0.00003), spread 400 ns, 5 pairs"
    )


def test_a_join_takes_the_errors(
    sources: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = str(tmp_path / f"errors{Path(sources[0]).suffix}")
    output = str(tmp_path / "pairs.parquet")
    assert run(["clocks", *sources, "-o", errors, *WORDS]) == 0
    join = ["join", *sources, "-o", output, "--unit", "s", "--tick", "us", "--by", "device",
            "--left-columns", "time", "--right-columns", "time", "--left-time", "time",
            "--right-time", "time", "--mutual-deadline", "8ms", "--confidence", "0.5"]  # fmt: skip
    assert run([*join, "--left-clock", errors, "--left-clock-by", "device"]) == 0
    assert pq.read_table(output).num_rows >= 58
    capsys.readouterr()
    for words, message in (
        (("--left-clock-by", "device"), "--left-clock-by needs --left-clock"),
        (("--left-clock", "nothing.parquet"), "--left-clock: "),
        (("--left-clock", errors, "--left-around", "1ms"), "--left-around and --left-clock"),
        (("--left-clock-around", "fitted"), "--left-clock-around needs --left-clock"),
        (
            ("--left-clock", errors, "--left-clock-around", "soon"),
            "--left-clock-around: cannot read",
        ),
        (
            ("--left-clock", errors, "--left-clock-around=-1ms"),
            "--left-clock-around must not be neg",
        ),
    ):
        assert run([*join, "--overwrite", *words]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("around", ["fitted", "3ms"])
def test_a_join_takes_the_width_of_what_is_put_right(
    around: str, sources: list[str], tmp_path: Path
) -> None:
    errors = str(tmp_path / f"errors{Path(sources[0]).suffix}")
    output = str(tmp_path / "pairs.parquet")
    assert run(["clocks", *sources, "-o", errors, *WORDS]) == 0
    words = ["join", *sources, "-o", output, "--engine", "local", "--unit", "s", "--tick", "us", "--by",
             "device", "--left-columns", "time", "--right-columns", "time", "--left-time", "time",
             "--right-time", "time", "--mutual-deadline", "4ms", "--confidence", "0.2", "--probability",
             "--left-clock", errors, "--left-clock-by", "device"]  # fmt: skip
    assert run([*words, "--left-clock-around", around]) == 0
    clock = corrected_clock("time", errors, by="device", around=around)
    wanted = correlate_tables(
        LEFT, RIGHT, within="4ms", confidence=0.2, probability=True, by="device", left_time=clock,
        right_time="time", left_columns="time", right_columns="time",
        options=CorrelateOptions(unit="s", tick="us"),
    )  # fmt: skip
    assert pq.read_table(output).equals(wanted)
    assert 0.2 <= min(wanted["probability"].to_pylist()) < 1


@pytest.mark.parametrize("relation", [(), ("--relation", "overlapping", "--gap", "9us")])
def test_one_stream_has_one_clock(relation: tuple[str, ...], tmp_path: Path) -> None:
    one, errors, output = (str(tmp_path / f"{name}.parquet") for name in ("one", "errors", "pairs"))
    pq.write_table(pa.table({"id": [1, 2, 3], "t": [10, 20, 30], "e": [11, 20, 38]}), one)
    line = {"start": [0], "end": [25], "offset": [5.0], "drift": [0.0]}
    pq.write_table(pa.table({"status": ["found"], **line}), errors)
    times = (
        ("--left-time", "t,e")
        if relation
        else ("--left-time", "t", "--within", "0us", "12us", "--confidence", "0.5")
    )
    words = ["join", one, "-o", output, "--engine", "local", "--unit", "us", *relation, *times]
    assert run([*words, "--left-clock", errors]) == 0
    found = pq.read_table(output)
    assert (found["left_id"].to_pylist(), found["right_id"].to_pylist()) == ([1], [2])


@pytest.mark.parametrize("more", [(), ("--left-around", "2us"), ("--left-clock-around", "2us")])
def test_spans_take_the_errors(more: tuple[str, ...], tmp_path: Path) -> None:
    line = {"start": [0], "end": [900], "offset": [40.0], "drift": [0.0]}
    stays = {
        "id": [1, 2, 3],
        "unit": ["a", "a", "b"],
        "begin": [0, 100, 200],
        "until": [50, 120, 230],
    }
    named = {"device": ["a"], "status": ["found"], **line}
    left, right, errors, output = (
        str(tmp_path / f"{name}.parquet") for name in ("left", "right", "errors", "pairs")
    )
    for path, table in ((left, stays), (right, stays), (errors, named)):
        pq.write_table(pa.table(table), path)
    wide = ("--confidence", "0.5") if more else ()
    words = ["join", left, right, "-o", output, "--engine", "local", "--unit", "us", "--relation",
             "overlapping", "--left-time", "begin,until", "--right-time", "begin,until", *wide]  # fmt: skip
    assert run([*words, "--left-clock", errors, "--left-clock-by", "unit=device", *more]) == 0
    start, end = (
        corrected_clock(name, named, by=[("unit", "device")]) for name in ("begin", "until")
    )
    around = 2 if more else None
    with pytest.warns(UnmatchableRowsWarning):
        wanted = correlate_tables(
            stays, stays, condition=overlapping(), left_time=spans(start, end, around=around),
            right_time=spans("begin", "until"), confidence=0.5 if more else None,
            options=CorrelateOptions(unit="us"),
        )  # fmt: skip
    assert pq.read_table(output).equals(wanted)
    assert wanted["left_id"].to_pylist() == [1]  # as they are, 2 overlaps itself, too


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--left-time", "a,b"), "--left-time takes one column of exact times"),
        (("--max-offset", "soon"), "--max-offset: cannot read the duration 'soon'"),
        (("--max-drift", "200"), "--max-drift is a fraction .* write 0.0002"),
        (("--max-drift", "fast"), "--max-drift takes parts per million, such as 50ppm"),
        (("--match", "a=b=c"), "--match takes names, or LEFT=RIGHT"),
    ],
)
def test_bad_words(
    sources: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, str],
    message: str,
) -> None:
    assert run(["clocks", *sources, "-o", str(tmp_path / "o.parquet"), *WORDS, *words]) == 2
    assert re.search(message, capsys.readouterr().err)


def test_the_largest_offset_must_be_given(
    sources: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["clocks", *sources, "-o", str(tmp_path / "o.parquet")]) == 2
    assert "--max-offset" in capsys.readouterr().err


def test_the_page_shows_what_was_found(
    sources: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, page = str(tmp_path / "errors.parquet"), tmp_path / "clocks.html"
    words = ["clocks", *sources, "-o", output, "--page", str(page), *WORDS]
    assert run(words) == 0
    text = page.read_text(encoding="utf-8")
    for name in ("offsets0", "residuals0", "template0"):
        assert f'id="{name}"' in text
    assert "device a: found. From" in text
    assert f"--unit s --tick us --max-offset 60s --by device --page {page}" in text
    capsys.readouterr()
    Path(output).unlink()
    for more, message in (
        ((), "clocks.html exists already"),
        (("--page", output), "--page must end in .html"),
        (("--page", "p.html", "-o", "p.html"), "--page and -o are the same file"),
    ):
        assert run([*words, *(("--overwrite",) if more else ()), *more]) == 2
        assert message in capsys.readouterr().err


def test_errors_of_timestamps_go_by_csv(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """CSV has no durations: offsets are texts, and several clocks need their key."""
    paths = []
    for side, times in (("left", CASE.left), ("right", CASE.right)):
        whole = np.round(times / SECOND * 1e6).astype(np.int64)
        stamps = pa.array(np.tile(whole, 2)).view(pa.timestamp("us"))
        devices = np.repeat(["a", "b"], whole.size)
        paths.append(str(tmp_path / f"{side}.parquet"))
        pq.write_table(
            pa.table({"id": range(2 * whole.size), "device": devices, "time": stamps}), paths[-1]
        )
    pairs = []
    for suffix in ("parquet", "csv"):
        errors, output = (str(tmp_path / f"{name}.{suffix}") for name in ("errors", "pairs"))
        assert run(["clocks", *paths, "-o", errors, "--max-offset", "60s", "--by", "device"]) == 0
        join = ["join", *paths, "-o", output, "--by", "device", "--mutual-deadline", "8ms",
                "--confidence", "0.5", "--left-time", "time", "--right-time", "time",
                "--left-clock", errors]  # fmt: skip
        capsys.readouterr()
        assert run(join) == 2
        said = capsys.readouterr().err
        assert "several clocks" in said
        assert "--left-clock-by device" in said
        assert run([*join, "--left-clock-by", "device"]) == 0
        read: Any = pq.read_table if suffix == "parquet" else csv.read_csv
        pairs.append(read(output).num_rows)
    assert re.fullmatch(r"-?\d+us", csv.read_csv(tmp_path / "errors.csv")["offset"][0].as_py())
    assert pairs[0] == pairs[1] >= 116
