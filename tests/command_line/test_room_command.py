"""A command counts pairs first, shows how many there will be, and refuses what has no room."""

from __future__ import annotations

import json
import shutil
from collections import namedtuple
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide.command_line import outputs, progress
from coincide.command_line.progress import Progress
from coincide.engine.files import result_rows
from tests.helpers.workplace import Workplace

ENGINES = ["local", pytest.param("spark", marks=pytest.mark.spark)]
WIDE = ("--within", "-1000", "1000", "--confidence", "1")
SIDE = 100
PAIRS = SIDE * SIDE
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def work(tmp_path, capsys):
    work = Workplace(tmp_path, capsys)
    t = list(range(SIDE))
    for path in (work.left, work.right):
        pq.write_table(pa.table({"id": t, "min_time": t, "max_time": t}), path)
    return work


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(10**9, 10**9 - 300, 300))


@pytest.mark.parametrize("name", ["out.parquet", "out.csv", "out.arrow"])
def test_what_the_disk_cannot_hold_is_refused(work, full_disk, name, monkeypatch):
    monkeypatch.setattr(result_rows, "_ROWS_IN_GROUP", 1000)
    work.output = work.output.with_name(name)
    said = work.refused(*WIDE, "--batch-pairs", "1000")
    assert "the 10,000 pairs of this join would take about" in said
    assert "kB of disk space (found " in said
    assert "or allow them by --max-pairs 10000." in said
    assert list(work.output.parent.iterdir()) == []
    code, _, _ = work.join(*WIDE, "--batch-pairs", "1000", "--max-pairs", str(PAIRS))
    assert code == 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("way", ["files", "exchange"])
def test_more_pairs_than_are_allowed_are_refused(work, request, engine, way):
    if engine == "spark":
        request.getfixturevalue("command_spark")
    elif way == "exchange":
        pytest.skip("there is none in one process")
    words = [*WIDE, "--way", way]
    if engine == "spark":
        words += ["--slices", "4"]
    said = work.refused(*words, "--max-pairs", str(PAIRS - 1), engine=engine)
    assert "the join has more pairs than --max-pairs 9999 allows (found 10,000)" in said
    assert not work.output.exists()
    code, out, _ = work.join(*words, "--max-pairs", str(PAIRS), "--json", engine=engine)
    assert code == 0
    assert json.loads(out)["pairs"] == PAIRS


def test_the_progress_is_that_of_all_rows(work, monkeypatch):
    shown: list[Any] = []
    monkeypatch.setattr(Progress, "show", lambda self, *given: shown.append(given))
    assert work.join(*WIDE, "--batch-pairs", "1000")[0] == 0
    last = shown[-1]
    assert last == ("joining: 10,000 of 10,000 rows written", PAIRS, PAIRS)
    assert ("joining: 1,000 of 10,000 rows written", 1000, PAIRS) in shown


@pytest.mark.parametrize("most", [PAIRS, PAIRS + 1])
def test_a_great_many_rows_are_announced(work, monkeypatch, most):
    monkeypatch.setattr(progress, "_MANY_ROWS", most)
    code, _, err = work.join(*WIDE, "--batch-pairs", "1000")
    assert code == 0
    said = "coincide: 10,000 rows will be written. Ctrl-C ends it without an output"
    assert err.count(said) == (most == PAIRS)


def test_a_disk_that_cannot_be_looked_at_refuses_nothing(work, monkeypatch):
    def gone(path: str) -> Any:
        raise OSError("no such place")

    monkeypatch.setattr(outputs.shutil, "disk_usage", gone)
    assert work.join(*WIDE)[0] == 0
