"""README is true: its lines run as they are written, and print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import pyarrow.parquet as pq
import pytest

import coincide
from coincide.command_line.demo import make_sample
from tests.helpers.places import ROOT
from tests.helpers.workplace import coincide as command

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

README = (ROOT / "README.md").read_text("utf-8")
LONGEST = 150


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


FIRST, ON_SPARK, STREAMS, BORDERS, CAUSES = blocks("python")
PRINTED, MARKED = blocks("text")


def ran(code: str, **names: object) -> dict[str, object]:
    names |= {"pd": pd, "coincide": coincide}
    exec(compile(code, "README.md", "exec"), names)
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


def test_streams() -> None:
    seconds = pd.Timestamp("2026-03-02") + pd.to_timedelta([0, 1, 2, 30], "s")
    requests = pd.DataFrame({"id": [1, 2, 3, 4], "order": list("abcd")})
    requests["min_time"] = requests["max_time"] = seconds
    answers = pd.DataFrame({"id": [1, 2], "order": ["a", "d"]})
    answers["min_time"] = answers["max_time"] = seconds[[1, 3]]
    assert rows(ran(STREAMS, requests=requests, answers=answers)["missed"]) == [["b", 2], ["c", 3]]


def test_borders() -> None:
    assert rows(ran(BORDERS)["crossings"]) == [
        ["hot", "oven", "I", 60, 120],
        ["hot", "oven", "O", 120, 180],
    ]
    assert "# in between 60 and 120, out between 120 and 180" in BORDERS


def test_causes() -> None:
    start = pd.Timestamp("2026-03-02")
    shocks = pd.DataFrame({"id": ["m"], "time": [start], "x": [0.0], "y": [0.0]})
    late = pd.to_timedelta([6, 20], "s")
    picks = pd.DataFrame({"id": [1, 2], "time": start + late, "x": [30.0, 0.0], "y": [0.0, 9.0]})
    effects = ran(CAUSES, shocks=shocks, picks=picks)["effects"]
    assert rows(effects) == [["m", 1, 6_000_000, 30.0]]


def test_the_demo_and_the_command_find_what_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = command("demo", "--engine", "local", "--keep", TMPDIR=str(tmp_path), COLUMNS="100")
    assert MARKED in answer.stdout
    (folder,) = (path for path in tmp_path.iterdir() if path.is_dir())
    (line,) = (each for each in blocks("sh") if each.startswith("coincide join"))
    monkeypatch.chdir(folder)
    assert command(*shlex.split(line)[1:]).returncode == 0
    found, _, wrong = (int(word.replace(",", "")) for word in MARKED.split()[-3:])
    assert pq.read_metadata("opened.parquet").num_rows == found + wrong
    assert pq.read_schema("opened.parquet").names == ["door", "left_id", "right_id"]


@pytest.mark.spark
def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    sample = make_sample(1000, 1)
    code = ON_SPARK.replace('"pairs"', f'"{tmp_path}/pairs"')
    for name, table in (("badges", sample.badges), ("doors", sample.doors)):
        pq.write_table(table, tmp_path / f"{name}.parquet")
        code = code.replace(f'"{name}.parquet"', f'"{tmp_path}/{name}.parquet"')
    ran(code, spark=spark)
    condition = {"within": ("0s", "3s"), "confidence": 0.9}
    alone = coincide.correlate_tables(sample.badges, sample.doors, **condition, by="door")
    assert pq.read_table(tmp_path / "pairs").num_rows == alone.num_rows > 0
