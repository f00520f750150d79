"""CSV whose times are those of clocks: a Z that means nothing, and the hour that comes twice."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coincide import DataError
from coincide.command_line import run
from coincide.engine.files.arrow_inputs import arrow_input
from coincide.engine.files.csv_rules import csv_rules
from coincide.engine.files.source import find_source

BERLIN = ["t=timestamp@Europe/Berlin"]


def times(path: Path, texts: list[str], **words: Any) -> list[datetime | None]:
    path.write_text("\n".join(["t,id", *(f"{text},1" for text in texts)]) + "\n", encoding="utf-8")
    rules = csv_rules({f"csv_{name}": value for name, value in words.items()})
    found = arrow_input(find_source("left", str(path), "csv", rules), times=("t",)).table(["t"])
    return found["t"].cast(pa.timestamp("us", "UTC")).to_pylist()


def utc(*words: str) -> list[datetime]:
    return [datetime.fromisoformat(f"2026-{word}").replace(tzinfo=UTC) for word in words]


AUTUMN = [
    "2026-10-25 01:50",
    "2026-10-25 02:10",
    "2026-10-25 02:40",
    "2026-10-25 02:20",
    "2026-10-25 03:10",
]
FIRST = utc("10-24 23:50", "10-25 00:10", "10-25 00:40", "10-25 00:20", "10-25 02:10")
SECOND = utc("10-24 23:50", "10-25 01:10", "10-25 01:40", "10-25 01:20", "10-25 02:10")
IN_ORDER = utc("10-24 23:50", "10-25 00:10", "10-25 00:40", "10-25 01:20", "10-25 02:10")


@pytest.mark.parametrize(
    ("said", "expected"), [("first", FIRST), ("second", SECOND), ("order", IN_ORDER)]
)
def test_the_hour_that_comes_twice(tmp_path: Path, said: str, expected: list[datetime]) -> None:
    assert times(tmp_path / "a.csv", AUTUMN, type=BERLIN, repeated_hour=said) == expected
    own = [f"{each[8:10]}.10.2026 {each[11:]}" for each in AUTUMN]
    words = {"type": BERLIN, "repeated_hour": said, "time_format": "%d.%m.%Y %H:%M"}
    assert times(tmp_path / "a.csv", own, **words) == expected


def test_it_is_an_error_where_nothing_is_said(tmp_path: Path) -> None:
    words = r"line 3, column 't': clocks of Europe/Berlin showed 2026-10-25 02:10:00 twice\. Say which one"
    with pytest.raises(DataError, match=f"{words} with --repeated-hour first or second, or order"):
        times(tmp_path / "a.csv", AUTUMN, type=BERLIN)


@pytest.mark.parametrize("said", ["", "first", "second", "order"])
def test_a_time_that_never_was_is_always_an_error(tmp_path: Path, said: str) -> None:
    words = {"type": BERLIN} | ({"repeated_hour": said} if said else {})
    with pytest.raises(
        DataError, match=r"line 3, .* never showed 2026-03-29 02:30:00, as they were set"
    ):
        times(
            tmp_path / "a.csv",
            ["2026-10-25 02:10", "2026-03-29 02:30"],
            **words,
        )


def test_order_starts_again_for_each_day_and_device(tmp_path: Path) -> None:
    texts = ["2026-10-25 02:50", "2026-10-25 02:10", "", "2026-10-25 02:10", "2026-10-25 03:00"]
    again = ["2026-10-25 02:20", "2027-10-31 02:30", "2027-10-31 02:20"]
    found = times(tmp_path / "a.csv", texts + again, type=BERLIN, repeated_hour="order")
    expected: list[datetime | None] = [
        *utc("10-25 00:50", "10-25 01:10"), None, *utc("10-25 01:10", "10-25 02:00", "10-25 00:20"),
        datetime(2027, 10, 31, 0, 30, tzinfo=UTC), datetime(2027, 10, 31, 1, 20, tzinfo=UTC),
    ]  # fmt: skip
    assert found == expected


def test_lines_that_step_back_twice_have_no_order(tmp_path: Path) -> None:
    texts = [f"2026-10-25 02:{minute}" for minute in (50, 10, 40, 30)]
    with pytest.raises(
        DataError, match=r"line 5, .* 02:30:00 twice, and the lines are not in order"
    ):
        times(tmp_path / "a.csv", texts, type=BERLIN, repeated_hour="order")


@given(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
    st.integers(2001, 2030),
    st.lists(st.integers(0, 200), min_size=1, max_size=30),
)
def test_clocks_of_a_log_that_runs_on(
    tmp_path_factory: pytest.TempPathFactory, zone: str, year: int, minutes: list[int]
) -> None:
    """A log with a line every half hour at least: its clock tells when each line was written."""
    clock = ZoneInfo(zone)
    instant, written = datetime(year, 1, 1, tzinfo=UTC), []
    moves = [
        day for day in (instant + timedelta(hours=h) for h in range(0, 366 * 24))
        if (day + timedelta(hours=1)).astimezone(clock).utcoffset() < day.astimezone(clock).utcoffset()
    ]  # fmt: skip
    instant = (moves[0] if moves else instant) - timedelta(hours=2)
    for step in minutes:
        written.append(instant)
        instant += timedelta(minutes=step % 26)
    shown = [each.astimezone(clock).replace(tzinfo=None).isoformat(" ") for each in written]
    path = tmp_path_factory.mktemp("log") / "a.csv"
    kind = [f"t=timestamp@{zone}"]
    assert times(path, shown, type=kind, repeated_hour="order") == written
    for said, fold in (("first", 0), ("second", 1)):
        expected = [datetime.fromisoformat(each).replace(tzinfo=clock, fold=fold) for each in shown]
        found = times(path, shown, type=kind, repeated_hour=said)
        assert found == [each.astimezone(UTC) for each in expected]


def joined(tmp_path: Path, left: str, right: str, *options: str) -> tuple[int, list[str]]:
    paths = [tmp_path / "l.csv", tmp_path / "r.csv"]
    for path, text in zip(paths, (left, right), strict=True):
        path.write_text(text, encoding="utf-8")
    out = tmp_path / "out.csv"
    words = [
        "join",
        *map(str, paths),
        "-o",
        str(out),
        "--overwrite",
        "--engine",
        "local",
        "--within",
        "5s",
    ]
    code = run([*words, "--left-time", "t", "--right-time", "t", *options])
    return code, out.read_text(encoding="utf-8").splitlines()[1:] if code == 0 else []


UTC_TIMES = "t,id\n2026-04-09T16:45:40Z,5\n"


@pytest.mark.parametrize(
    "text", ["2026-04-09T09:45:39Z", "2026-04-09 09:45:39.250Z", "2026-04-09T09:45Z"]
)
def test_a_z_that_means_nothing(tmp_path: Path, capsys: Any, text: str) -> None:
    """The message names what is true of the file, and what it says to write finds the pair."""
    left, local = f"t,id\n{text},1\n", "type=t=timestamp@America/Los_Angeles"
    options = ["--within", "1min"]
    assert joined(tmp_path, left, UTC_TIMES, "--left-csv", local, *options)[0] == 2
    said = capsys.readouterr().err
    assert "other times here" not in said
    assert "--csv-type t=timestamp@America/Los_Angeles is of times without one" in said
    assert "--csv-type t=timestamp if the offset is right" in said
    words = shlex.split(said[said.index("--time-format") : said.index(" if the Z is wrong")])
    own = f"{local} time-format={shlex.quote(words[1])}"
    assert joined(tmp_path, left, UTC_TIMES, "--left-csv", own, *options) == (0, ["1,5"])


def test_offsets_that_are_right_or_missing(tmp_path: Path, capsys: Any) -> None:
    right = ["--right-csv", "type=t=timestamp_ntz"]
    assert joined(tmp_path, UTC_TIMES, UTC_TIMES.replace("Z", "+02:00"), *right)[0] == 2
    said = capsys.readouterr().err
    assert (
        "--csv-type t=timestamp_ntz is of times without one. Use --csv-type t=timestamp if" in said
    )
    assert "--time-format" not in said
    plain = UTC_TIMES.replace("Z", "")
    assert joined(tmp_path, UTC_TIMES, plain, "--right-csv", "type=t=timestamp")[0] == 2
    said = capsys.readouterr().err
    assert (
        "has no zone offset, and --csv-type t=timestamp is of times with one. Use t=timestamp_ntz"
        in said
    )
    mixed = UTC_TIMES + "2026-04-09T16:45:40,6\n"
    assert joined(tmp_path, UTC_TIMES, mixed)[0] == 2
    assert "has no zone offset, and other times here have one" in capsys.readouterr().err


def test_times_of_a_format_of_their_own_hear_of_formats(tmp_path: Path, capsys: Any) -> None:
    odd = UTC_TIMES + "9.4.2026 16:45,6\n"
    assert joined(tmp_path, UTC_TIMES, odd)[0] == 2
    assert "give the format of the column with --time-format" in capsys.readouterr().err


def test_it_needs_clocks_of_a_zone(tmp_path: Path, capsys: Any) -> None:
    assert joined(tmp_path, UTC_TIMES, UTC_TIMES, "--repeated-hour", "first")[0] == 2
    assert "--repeated-hour applies to times of clocks of a zone" in capsys.readouterr().err
    assert joined(tmp_path, UTC_TIMES, UTC_TIMES, "--left-csv", "repeated-hour=third")[0] == 2
    assert "--repeated-hour must be one of first, second, order" in capsys.readouterr().err
    text = "t,id\n2026-10-25 02:10,1\n"
    right = "t,id\n2026-10-25T01:10:01Z,5\n"
    own = "type=t=timestamp@Europe/Berlin repeated-hour=second"
    assert joined(tmp_path, text, right, "--left-csv", own) == (0, ["1,5"])
    general = ["--left-csv", "type=t=timestamp@Europe/Berlin", "--repeated-hour", "second"]
    assert joined(tmp_path, text, right, *general) == (0, ["1,5"])
