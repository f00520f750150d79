"""README is true: its lines run as they are written, and print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from tests.helpers.places import ROOT
from tests.helpers.readme import (
    BORDERS,
    CAUSES,
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


def test_blocks_that_need_no_spark() -> None:
    found = ran(FIRST, "import coincide", STREAMS, BORDERS, CAUSES)
    assert rows(found["missed"]) == [["b", 1]]
    assert rows(found["crossings"]) == [
        ["hot", "oven", "I", 60, 120],
        ["hot", "oven", "O", 120, 180],
    ]
    assert "# in between 60 and 120, out between 120 and 180" in BORDERS
    assert rows(found["effects"]) == [[0, 0, 6_000, 30.0]]


@pytest.mark.spark
def test_the_block_of_spark(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    ran(FIRST, ON_SPARK)
    assert "|    Ann|    hall|" in capsys.readouterr().out


def test_the_demo_and_the_command_find_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (
        line for line in COMMANDS if "demo --engine local --keep" in line or "join" in line
    )
    answer = command(*shlex.split(first)[1:], COLUMNS="100")
    assert MARKED in answer.stdout
    assert command(*shlex.split(second)[1:]).returncode == 0
    found, _, wrong = (int(word.replace(",", "")) for word in MARKED.split()[-3:])
    assert pq.read_metadata("opened.parquet").num_rows == found + wrong
    assert pq.read_schema("opened.parquet").names == ["door", "left_id", "right_id"]
