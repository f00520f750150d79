"""`coincide join --relation`: events that last, from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coincide.command_line import run

RUNS = "id,start,end\n1,0,40\n2,60,90\n"
SHIFTS = "id,start,end\n7,0,30\n8,30,75\n9,90,95\n"
TIMES = ["--left-time", "start,end", "--right-time", "start,end"]


@pytest.fixture
def join(tmp_path: Path, capfd: Any) -> Any:
    (tmp_path / "runs.csv").write_text(RUNS)
    (tmp_path / "shifts.csv").write_text(SHIFTS)

    def joined(*options: str, times: list[str] = TIMES) -> tuple[int, str, str]:
        files = [str(tmp_path / name) for name in ("runs.csv", "shifts.csv")]
        code = run(["join", *files, "-o", "-", *times, *options])
        return code, *capfd.readouterr()

    return joined


ASKED: dict[str, tuple[list[str], list[str]]] = {
    "half open": (["overlapping", "--closed", "left"], ["1,7", "1,8", "2,8"]),
    "how long": (["overlapping", "--pair-columns", "overlap"], ["1,7,30", "1,8,10", "2,8,15", "2,9,0"]),
    "in common": (["overlapping", "--min-overlap", "15"], ["1,7", "2,8"]),
    "a share": (["overlapping", "--share", "0.7,0"], ["1,7"]),
    "shares": (["overlapping", "--share", "0.3"], ["1,7", "2,8"]),
    "an exact third": (["overlapping", "--share", "1/3"], ["1,7", "2,8"]),
    "a gap": (["overlapping", "--gap", "20"], ["1,7", "1,8", "2,8", "2,9"]),
    "containing": (["containing"], ["1,7"]),
    "inside": (["inside"], []),
    "inside, nearly": (["inside", "--slack", "15"], ["1,7", "2,8"]),
    "following": (["following", "--gap", "50"], ["1,9", "2,9"]),
    "Allen's": (["meets"], ["2,9"]),
    "uncertain": (["overlapping", "--left-around", "5", "--confidence", "0.9"], ["1,7", "1,8", "2,8"]),
    "uncertain ends": (
        ["overlapping", "--left-around", "0,5", "--confidence", "0.5", "--probability"],
        ["1,7,1", "1,8,1", "2,8,1", "2,9,0.5"],
    ),
    "before": (["before", "--gap", "50"], ["1,9"]),
    "the next": (["before", "--emit", "best", "--prefer", "nearest"], ["1,9"]),
    "the next ones": (
        ["overlapping", "--emit", "best", "--prefer", "last", "--ties", "all", "--k", "2"],
        ["1,7,2", "1,8,1", "2,8,2", "2,9,1"],
    ),
    "the last": (["after", "--emit", "best", "--prefer", "nearest"], ["2,7"]),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_relations(join: Any, name: str) -> None:
    options, rows = ASKED[name]
    code, said, told = join("--relation", *options)
    assert code == 0, told
    assert sorted(said.splitlines()[1:]) == rows


OPEN = "id,start,end,ms\n1,0,,\n2,60,90,30000\n"


def test_events_that_go_on_or_have_a_duration(tmp_path: Path, capfd: Any) -> None:
    (tmp_path / "runs.csv").write_text(OPEN)
    (tmp_path / "shifts.csv").write_text(SHIFTS)
    files = [str(tmp_path / name) for name in ("runs.csv", "shifts.csv")]
    asked = ["join", *files, "-o", "-", "--relation", "overlapping", "--pair-columns", "overlap"]
    for times in (
        ["--left-time", "start,end"],
        [
            "--left-time",
            "start",
            "--left-duration",
            "ms",
            "--left-duration-unit",
            "ms",
            "--tick",
            "s",
        ],
    ):
        unit = ["--unit", "s", "--right-time", "start,end", "--open-ends"]
        code = run([*asked, *times, *unit])
        said, told = capfd.readouterr()
        is_refused = "--tick" in times
        assert code == 2 * is_refused, told
        if is_refused:
            assert "left.ms counts ms, which ticks of 1 s would round. Use --tick ms" in told
            code = run([*asked, *times[:-1], "ms", *unit])
            said, told = capfd.readouterr()
        scale = "000" if is_refused else ""
        rows = [f"1,7,30{scale}", f"1,8,45{scale}", f"1,9,5{scale}", f"2,8,15{scale}", "2,9,0"]
        assert sorted(said.splitlines()[1:]) == rows
    code = run(["join", files[0], "-o", "-", "--relation", "meets", "--left-time", "start", "--open-ends",
                "--left-duration", "end"])  # fmt: skip
    said, told = capfd.readouterr()
    assert code == 0, told
    assert "pairs found" in told or "no pair" in told


def test_spans_without_a_time_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those without an end with the option by which they go on, and those that no clock tells."""
    (tmp_path / "own.csv").write_text("id,start,end\n1,10,20\n2,30,\n3,9000,9001\n")
    (tmp_path / "others.csv").write_text("id,start,end\n9,0,50\n")
    (tmp_path / "errors.csv").write_text("status,start,end,offset,drift\nfound,0,5000,1.5,0.0\n")
    files = [str(tmp_path / f"{side}.csv") for side in ("own", "others")]
    asked = ["join", *files, "-o", "-", "--relation", "overlapping", *TIMES]
    assert run(asked) == 0
    said = capsys.readouterr().err
    assert "3 rows; 1 without time or key (1 without an end, which go on with --open-ends)" in said
    clock = ["--open-ends", "--left-clock", str(tmp_path / "errors.csv"), "--json"]
    assert run([*asked, *clock]) == 0
    told = json.loads(capsys.readouterr().err.splitlines()[-1])
    assert told["left"] == {
        "rows": 3, "unmatchable": 1, "invalid": {}, "lacking": {"no_segment": 1}
    }  # fmt: skip


def test_one_column_is_an_instant(join: Any) -> None:
    times = ["--left-time", "start,end", "--right-time", "start"]
    _, said, _ = join("--relation", "containing", times=times)
    assert sorted(said.splitlines()[1:]) == ["1,7", "1,8", "2,9"]


REFUSED = {
    "a window": (["overlapping", "--within", "0", "3"], "--within applies to instants"),
    "a confidence": (
        ["overlapping", "--confidence", "0.5"],
        "Remove --confidence, or say by how much",
    ),
    "no confidence": (["overlapping", "--left-around", "3"], "Give --confidence 0.5 for pairs"),
    "three widths": (["overlapping", "--left-around", "3,4,5"], "takes a duration, or START,END"),
    "a clock": (["overlapping", "--left-resolution", "3"], "--left-resolution applies to instants"),
    "a unit alone": (
        ["overlapping", "--left-duration-unit", "ms"],
        "--left-duration-unit needs --left-duration",
    ),
    "an end and a duration": (
        ["overlapping", "--left-duration", "end"],
        "--left-time takes the one column of their starts (found 'start,end')",
    ),
    "no bound of before": (["before"], "Give --gap 1h, the most time between the two, or ask"),
    "no bound": (["following"], "needs a bound. Add --gap D"),
    "a bound": (["meets", "--gap", "3"], "--relation meets takes no bound. Remove --gap"),
    "slack of others": (["meets", "--slack", "3"], "--slack belongs to --relation containing and"),
    "a share of Allen's": (
        ["meets", "--share", "0.5"],
        "--share belongs to --relation overlapping",
    ),
    "a share of nothing": (["overlapping", "--share", "1/0"], "--share takes numbers"),
    "a share beyond floats": (["overlapping", "--share", f"{10**400}/1"], "--share takes numbers"),
    "no relation": (["near"], "--relation must be one of overlapping, containing"),
    "three columns": (
        ["inside", "--right-time", "a,b,c"],
        "--right-time takes the columns START,END",
    ),
    "a negative gap": (["overlapping", "--gap", "-3"], "--gap must not be negative"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_use_is_one_line(join: Any, name: str) -> None:
    options, message = REFUSED[name]
    code, said, told = join("--relation", *options)
    assert (code, said) == (2, "")
    assert message in told
    assert told.count("\n") == 1


@pytest.mark.parametrize("relation", ["overlapping", "following", "before"])
def test_a_gap_is_named_as_it_was_typed(relation: str, tmp_path: Path, capfd: Any) -> None:
    path = tmp_path / "stops.csv"
    path.write_text("id,start,end\n1,2026-03-02T09:00:00Z,2026-03-02T09:20:00Z\n")
    files = [str(path), str(path), "-o", "-", *TIMES]
    assert run(["join", *files, "--relation", relation, "--gap", "60"]) == 2
    assert "--gap: the duration 60 has no unit" in capfd.readouterr().err


def test_amounts_need_a_relation(join: Any) -> None:
    code, _, told = join("--within", "0", "3", "--gap", "3")
    assert code == 2
    assert "--gap applies to spans. Add --relation overlapping" in told
