"""README is true: its lines run as they are written, and print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

import coincide
from tests.helpers.places import ROOT
from tests.helpers.readme import (
    ARRAYS,
    COMMANDS,
    FIRST,
    MARKED,
    ON_SPARK,
    PRINTED,
    README,
    STREAMS,
)
from tests.helpers.workplace import coincide as command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LONGEST = 150


def ran(*code: str) -> dict[str, object]:
    """What blocks define that run one after the other."""
    names: dict[str, object] = {}
    for each in code:
        exec(compile(each, "README.md", "exec"), names)
    return names


def rows(found: object) -> list[list[object]]:
    return [list(row.values()) for row in found.to_pylist()]


def test_it_is_short_and_its_first_screen_complete() -> None:
    assert len(README.splitlines()) <= LONGEST
    first = README.partition("\n## ")[0]
    assert all(part in first for part in ("<picture>", "pip install", FIRST, PRINTED))
    assert len(FIRST.splitlines()) == 6


def test_pictures_are_there() -> None:
    named = re.findall(r'(?:src|srcset)="([^"]+)"', README)
    assert len(named) == 2 * README.count("<picture>") > 0
    assert [name for name in named if not (ROOT / name).is_file()] == []
    assert README.count(' alt="') == README.count("<img ")  # all that an index of packages shows


def test_the_words_of_the_picture_of_speed_are_its_numbers() -> None:
    drawn = (ROOT / "docs/images/speed-light.svg").read_text("utf-8")
    (said,) = re.findall(r'speed-light.svg"[^>]* alt="([^"]*)"', README)
    assert re.findall(r"[\d.]+ s\b", said) == re.findall(r"[\d.]+ s\b", drawn)


def test_the_first_lines_print_what_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    ran(FIRST)
    assert capsys.readouterr().out == PRINTED


def test_blocks_that_need_no_spark(capsys: pytest.CaptureFixture[str]) -> None:
    found = ran(FIRST, ARRAYS, "import coincide", STREAMS)
    assert capsys.readouterr().out == f"{PRINTED}[10.61 79.5 ] [10.59 79.62]\n"
    assert [found["found"].left.tolist(), found["found"].right.tolist()] == [[0, 2], [0, 1]]
    assert "[0 2], [0 1]" in ARRAYS
    assert rows(found["missed"]) == [["b", 1]]


@pytest.mark.spark
def test_the_block_of_spark(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    ran(FIRST, ON_SPARK)
    assert "|    Ann|    hall|" in capsys.readouterr().out


def test_each_of_its_uses_names_what_does_it() -> None:
    (table,) = re.findall(r"## What it is for\n(.*?)\n\n", README, flags=re.DOTALL)
    for word in ("picks", "badges", "orders", "spikes", "fences"):
        assert (
            sum(word in line.partition("| ")[2].partition(" |")[0] for line in table.splitlines())
            == 1
        )
    names = set(re.findall(r"`(\w+)`", table))
    assert len(names) > 5
    assert names <= set(coincide.__all__)


def test_the_command_joins_csv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("orders.csv").write_text(
        "id,customer,at\n1,ann,2026-05-01 12:00\n2,bob,2026-05-01 12:05\n"
    )
    Path("payments.csv").write_text(
        "id,customer,at\nx,ann,2026-05-01 12:09:10\ny,bob,2026-05-01 13:00:00\n"
    )
    (line,) = (line for line in COMMANDS if "orders.csv" in line)
    assert command(*shlex.split(line)[1:]).returncode == 0
    assert Path("paid.csv").read_text() == "customer,left_id,right_id\nann,1,x\n"


def test_the_demo_and_the_command_find_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (
        line for line in COMMANDS if "demo --engine local --keep" in line or "join badges" in line
    )
    answer = command(*shlex.split(first)[1:], COLUMNS="100")
    assert MARKED in answer.stdout
    assert command(*shlex.split(second)[1:]).returncode == 0
    assert {path.name for path in tmp_path.iterdir()} == {
        *("badges.parquet", "doors.parquet", "pairs.parquet", "explore.html", "opened.parquet")
    }
    found, _, wrong = (int(word.replace(",", "")) for word in MARKED.split()[-3:])
    assert pq.read_metadata("opened.parquet").num_rows == found + wrong
    assert pq.read_schema("opened.parquet").names == ["door", "left_id", "right_id"]
