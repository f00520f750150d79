"""A query whose driver is killed goes on from its checkpoint: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import CorrelateOptions, correlate_tables
from tests.helpers import watched_streams
from tests.helpers.places import ROOT
from tests.helpers.spark_process import spark_environment
from tests.helpers.spark_streams import MANY, arriving, multiset, write_files

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
BATCHES = 5


def started(folder: Path, *more: str, driver: str = "stream_driver") -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", f"tests.helpers.{driver}", str(folder), *more]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            command, cwd=ROOT, stdout=log, stderr=log, start_new_session=True,
            env=spark_environment(),
        )  # fmt: skip


def killed(driver: subprocess.Popen[bytes], checkpoint: Path, batches: int, seconds: float) -> None:
    """Kill a driver, and its JVM, some time after a number of micro-batches were written."""
    while driver.poll() is None and not (checkpoint / "commits" / str(batches)).exists():
        time.sleep(0.02)
    time.sleep(seconds)
    if driver.poll() is None:
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def written(folder: Path) -> pa.Table:
    """The rows of files that the sink's log names, which alone are written once."""
    names: set[str] = set()
    for log in (folder / "_spark_metadata").iterdir():
        if not log.name.startswith("."):
            lines = log.read_text("utf-8").splitlines()[1:]
            names |= {json.loads(line)["path"].removeprefix("file://") for line in lines}
    return pa.concat_tables([pq.read_table(name, partitioning=None) for name in sorted(names)])


def said(folder: Path) -> str:
    """What the drivers have written to their log."""
    return (folder / "log").read_text("utf-8")


def add_a_file(folder: Path, like: int, number: int) -> None:
    """A copy of a file, as a further one: without new rows a query that starts again runs no batch.

    So what the last rows closed may come out only then, if the driver was killed right after these.
    """
    last = folder / f"{number:03}.parquet"
    shutil.copy(folder / f"{like:03}.parquet", last)
    os.utime(last, (1_600_000_000 + number,) * 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 3 + MANY // 12))
def test_a_driver_goes_on_after_two_kills(tmp_path: Path, java_home: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    files = [arriving(random, 400, 500, BATCHES, late=0.0) for _ in range(2)]
    for i, tables in enumerate(files):
        write_files(tmp_path / str(i), tables)
    for _ in range(2):
        batches, seconds = int(random.integers(0, BATCHES)), float(random.random())
        killed(started(tmp_path), tmp_path / "checkpoint", batches, seconds)
    add_a_file(tmp_path / "0", BATCHES, BATCHES + 1)
    assert started(tmp_path).wait() == 0, said(tmp_path)
    found = written(tmp_path / "found").to_pylist()
    left, right = (pa.concat_tables(tables[:-1]) for tables in files)
    expected = correlate_tables(
        left, right, within=(-200, 200), confidence=0.5, how="full", by="key",
        left_time=("min_time", "seen_at"), right_time=("min_time", "seen_at"),
        options=CorrelateOptions(unit="ms"),
    ).to_pylist()  # fmt: skip
    assert multiset(found) == multiset(expected)
    add_a_file(tmp_path / "0", 0, BATCHES + 2)
    assert started(tmp_path, "0.75").wait() != 0
    assert "confidence was 0.5 and is 0.75" in said(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 2 + MANY // 12))
def test_monitors_go_on_after_a_kill(tmp_path: Path, java_home: str, seed: int) -> None:
    random, driver = np.random.default_rng(seed), "watched_streams"
    table = watched_streams.rows(random, 400)
    cuts = np.linspace(0, table.num_rows, BATCHES + 1).astype(int).tolist()
    files = [table.slice(a, b - a) for a, b in itertools.pairwise(cuts)]
    write_files(tmp_path / "0", [*files, watched_streams.last_row()])
    name = str(random.choice(list(watched_streams.OPERATORS)))
    running = started(tmp_path, driver=driver)
    killed(running, tmp_path / "checkpoint" / name, int(random.integers(0, BATCHES)), 0.3)
    add_a_file(tmp_path / "0", BATCHES, BATCHES + 1)
    assert started(tmp_path, driver=driver).wait() == 0, said(tmp_path)
    for name, wanted in watched_streams.expected(table).items():
        assert len(wanted) > 50
        assert multiset(written(tmp_path / "found" / name).to_pylist()) == multiset(wanted), name
    add_a_file(tmp_path / "0", 0, BATCHES + 2)
    assert started(tmp_path, "changed", driver=driver).wait() == len(watched_streams.OPERATORS)
    for words in ("queries was ", "within was 400 and is 500", "window was 30 and is 20"):
        assert words in said(tmp_path)
