"""The first hour of a new user: the wheel in an empty environment, six tasks, each of few words.

Each task is one command or at most ten lines; the answers are known, since the events are made of them.
"""

from __future__ import annotations

import csv
import tomllib
from pathlib import Path

import pytest

from tests.helpers import readme
from tests.helpers.places import ROOT
from tests.helpers.wheels import WHERE, build, empty_environment, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
MOST_LINES = 10
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


class Desk:
    """A folder away from the sources, and the commands of an environment that has the wheel alone."""

    def __init__(self, commands: Path, folder: Path) -> None:
        self._commands, self.folder = commands, folder
        folder.mkdir()

    def lines(self, code: str) -> str:
        """What some lines of Python print."""
        code = code.strip()
        assert len(code.splitlines()) <= MOST_LINES
        return run(str(self._commands / "python"), "-c", code, cwd=self.folder)

    def command(self, words: str) -> str:
        """What one command prints."""
        first, *others = words.split()
        return run(str(self._commands / first), *others, cwd=self.folder)

    def csv(self, name: str, header: str, rows: list[tuple[object, ...]], mark: str = ",") -> None:
        """Write a file."""
        lines = [mark.join(header.split()), *(mark.join(map(str, row)) for row in rows)]
        (self.folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def rows(self, name: str) -> list[dict[str, str]]:
        """Read one."""
        with (self.folder / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those of the wheel, installed where a variable names a checkout, as Spark leaves it.

    Nothing of that checkout is imported.
    """
    folder = tmp_path_factory.mktemp("first-hour")
    checkout = folder / "checkout"
    metadata = checkout / "coincide.egg-info" / "PKG-INFO"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Metadata-Version: 2.4\nName: coincide\nVersion: {VERSION}\n")
    (checkout / "coincide.py").write_text("raise AssertionError('the checkout is imported')")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(checkout))
        return empty_environment(folder / "environment", build(folder).wheel)


@pytest.fixture
def desk(commands: Path, tmp_path: Path) -> Desk:
    return Desk(commands, tmp_path / "desk")


def test_the_wheel_runs_away_from_its_sources(
    desk: Desk, commands: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(commands.parent.parent / "checkout"))
    where, version, spark = desk.lines(WHERE).split()
    assert Path(where).is_relative_to(commands.parent)
    assert (version, spark) == (VERSION, "False")
    assert "backend cpu     joined two events" in desk.command("coincide doctor")


def test_clocks_that_are_ten_milliseconds_off(desk: Desk) -> None:
    """Raw CSV, its delimiter a semicolon: cars at a gate, and a camera 50 ms behind it."""
    at = "2026-03-01T08:00:{:06.3f}"
    gate = [(f"g{i}", f"0{i % 3}", at.format(i)) for i in range(30)]
    camera = [(f"c{i}", f"0{i % 3}", at.format(i + 0.05)) for i in range(30) if i % 10 != 7]
    camera += [("late", "01", at.format(40.4))]
    desk.csv("gate.csv", "id lane seen", gate, ";")
    desk.csv("camera.csv", "id lane seen", camera, ";")
    said = desk.command(
        "coincide join gate.csv camera.csv -o pairs.csv --csv-delimiter ; --by lane --within 20ms 80ms"
        " --confidence 0.9 --left-time seen --left-around 10ms --right-time seen --right-around 10ms"
    )
    pairs = {(row["lane"], row["left_id"], row["right_id"]) for row in desk.rows("pairs.csv")}
    assert pairs == {(f"0{i % 3}", f"g{i}", f"c{i}") for i in range(30) if i % 10 != 7}
    assert "pairs       27\n" in said


def test_the_first_s_pick_after_each_p_pick(desk: Desk) -> None:
    p = [(f"p{i}", "ABC"[i % 3], 100 * i) for i in range(9)]
    s = [(f"s{i}-{k}", "ABC"[i % 3], 100 * i + 4 + 7 * k) for i in range(9) for k in range(3)]
    desk.csv("p.csv", "id station t", p)
    desk.csv("s.csv", "id station t", s)
    found = desk.lines(
        """
from pyarrow.csv import read_csv
from coincide import CorrelateOptions, around, correlate_tables
found = correlate_tables(
    read_csv("p.csv"), read_csv("s.csv"), within=("0s", "30s"), confidence=0.9, by="station",
    left_time=around("t", "100ms"), right_time=around("t", "200ms"), emit="best", prefer="first",
    options=CorrelateOptions(unit="s", tick="ms"),
)
print(sorted(zip(found["left_id"].to_pylist(), found["right_id"].to_pylist())))
"""
    )
    assert found.strip() == str([(f"p{i}", f"s{i}-0") for i in range(9)])


def test_pairs_within_one_stream(desk: Desk) -> None:
    desk.csv("alarms.csv", "id site t", [(i, "NS"[i % 2], 20 * (i // 2)) for i in range(10)])
    desk.command(
        "coincide join alarms.csv -o near.csv --unit s --by site --within 0s 30s --confidence 0.9"
        " --left-time t --left-around 500ms --tick ms"
    )
    near = sorted((int(row["left_id"]), int(row["right_id"])) for row in desk.rows("near.csv"))
    assert near == [(i, i + 2) for i in range(8)]


def test_missed_deadlines_by_key(desk: Desk) -> None:
    orders = [(f"o{i:02}", f"00{i % 4}", 60 * i) for i in range(20)]
    answers = [(i, f"00{i % 4}", 60 * i + (2 if i % 5 else 9)) for i in range(20)]
    desk.csv("orders.csv", "id customer at", orders)
    desk.csv("answers.csv", "id customer at", answers)
    desk.command(
        "coincide join orders.csv answers.csv -o missed.csv --unit s --tick ms --by customer"
        " --within 0s 5s --confidence 0.5 --left-time at --right-time at --how anti"
    )
    missed = {(row["customer"], row["left_id"]) for row in desk.rows("missed.csv")}
    assert missed == {(f"00{i % 4}", f"o{i:02}") for i in range(0, 20, 5)}


def test_a_stream_by_key(desk: Desk) -> None:
    desk.csv("sent.csv", "id phone t", [(i, i % 7, 10 * i) for i in range(70)])
    desk.csv("read.csv", "id phone t", [(i, i % 7, 10 * i + i % 9) for i in range(70)])
    found = desk.lines(
        """
from pyarrow.csv import read_csv
from coincide import CorrelateOptions, TimingCondition, stream_tables, within
stream = stream_tables(TimingCondition(within("0s", "5s"), 0.9), by="phone", left_time="t", right_time="t",
    left_delay="60s", right_delay="60s", options=CorrelateOptions(unit="s", tick="ms"))
sent, read, found = read_csv("sent.csv"), read_csv("read.csv"), []
for i in range(0, 70, 5):
    found += stream.push("left", sent[i : i + 5]).to_pylist()
    found += stream.push("right", read[i : i + 5]).to_pylist()
found += stream.flush().to_pylist(); print(sorted((row["left_id"], row["right_id"]) for row in found))
"""
    )
    assert found.strip() == str([(i, i) for i in range(70) if i % 9 <= 5])


def test_looking_before_choosing_a_confidence(desk: Desk) -> None:
    desk.csv("left.csv", "t", [(100 * i,) for i in range(50)])
    desk.csv("right.csv", "t", [(100 * i + i % 10,) for i in range(50)])
    told = desk.command(
        "coincide explore left.csv right.csv --unit s --tick ms --within 0s 5s -o page.html"
        " --left-time t --left-around 2s --right-time t --right-around 2s"
    )
    # P > 0 as long as the right one is less than 9 s after the left one.
    assert "candidates  45 pairs" in told
    page = (desk.folder / "page.html").read_text(encoding="utf-8")
    assert "vega" in page
    assert "Pairs by confidence" in page


@pytest.mark.spark
def test_all_that_readme_shows(commands: Path, tmp_path: Path) -> None:
    """Its blocks one after the other in one interpreter, in an empty folder.

    `test_readme` runs its commands, and the tasks above other commands of the wheel.
    """
    blocks = readme.blocks("python")
    assert len(blocks) == 4
    code = "\n".join([*blocks, "print(missed.num_rows, found.left.tolist())"])
    said = run(str(commands / "python"), "-c", code, cwd=tmp_path, commands=commands)
    assert readme.PRINTED in said
    assert "|    Ann|    hall|" in said
    assert said.splitlines()[-1] == "1 [0, 2]"
    assert list(tmp_path.iterdir()) == []
