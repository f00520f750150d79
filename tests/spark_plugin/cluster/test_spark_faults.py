"""A Python worker dies in the middle of its task: the task runs again and the answer stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import (
    BorderOptions,
    BorderReport,
    CorrelateOptions,
    TimingCondition,
    border_crossing_tables,
    border_crossings,
    correlate_tables,
    transition_tables,
    transitions,
    within,
)
from spark_plugin.tasks.borders import CrossingTask
from spark_plugin.tasks.broadcast import BroadcastTask, PartialTask
from spark_plugin.tasks.exchange import SliceTask
from spark_plugin.tasks.file_slices import FileTask, SliceReport
from spark_plugin.tasks.packed_borders import PackedCrossingTask
from spark_plugin.tasks.packed_keys import KeyPackTask
from spark_plugin.tasks.packed_transitions import PackedTransitionTask
from spark_plugin.tasks.packing import PackTask
from spark_plugin.tasks.transitions import TransitionTask
from tests.helpers.border_tables import NAMES, least_last, random_queries, random_readings
from tests.helpers.histogram_tables import by_device, events, random_templates
from tests.helpers.joins import join_files
from tests.helpers.rows import in_order, tuples
from tests.helpers.spark_process import spark_environment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONDITION = TimingCondition(within(-40, 60), 0.5)
EXCHANGE = CorrelateOptions(slices=4, batch_pairs=50)
READINGS = random_readings(3, 400, pa.array(["a", "b", "c"]), pa.int64())
QUERIES = random_queries(4, pa.array(range(20)))
BORDERS: dict[str, Any] = {**NAMES, "values": "x"}
DWELL: dict[str, Any] = {
    "within": 3000, "confidence": 0.6, "query": "query", "stream": "stream",
}  # fmt: skip
TEMPLATES: dict[str, Any] = {
    "left_time": by_device(random_templates(1)), "right_time": by_device(random_templates(2)),
}  # fmt: skip
MARKER = "COINCIDE_TEST_MARKER"
CLUSTER, LOCAL = "local-cluster[2,1,1024]", "local[2,4]"


def stream(seed: int, n: int = 2000) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 40_000, n)
    return pa.table({"min_time": low, "max_time": low + rng.integers(0, 90, n), "id": range(n)})


class Dying:
    """A task as its base, but the first worker that has returned a batch is killed."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        marker = Path(os.environ[MARKER] + f"-{type(self).__name__}")
        for batch in super().__call__(batches):  # type: ignore[misc]
            yield batch
            try:
                marker.touch(exist_ok=False)
            except FileExistsError:
                continue
            marker.write_text(str(os.getpid()))
            os.kill(os.getpid(), signal.SIGKILL)


class DyingSliceTask(Dying, SliceTask):
    """The task of an exchange, on a worker that dies."""


class DyingPackTask(Dying, PackTask):
    """Before an exchange."""


class DyingCellTask(Dying, SliceTask):
    """The task of an exchange without a planning job, on a worker that dies."""


class DyingCellPackTask(Dying, PackTask):
    """Before that."""


class DyingHistogramTask(Dying, SliceTask):
    """The task of an exchange of events with templates, on a worker that dies."""


class DyingBroadcastTask(Dying, BroadcastTask):
    """The task of a broadcast, on a worker that dies."""


class DyingPartialTask(Dying, PartialTask):
    """The task of a broadcast in two steps, on a worker that dies."""


class DyingCrossingTask(Dying, CrossingTask):
    """The task of border crossings, on a worker that dies."""


class DyingTransitionTask(Dying, TransitionTask):
    """The task of region transitions, on a worker that dies."""


class DyingKeyPackTask(Dying, KeyPackTask):
    """What packs rows of files by key, on a worker that dies."""


class DyingPackedCrossingTask(Dying, PackedCrossingTask):
    """The task of border crossings of packs, on a worker that dies."""


class DyingPackedTransitionTask(Dying, PackedTransitionTask):
    """The task of region transitions of packs, on a worker that dies."""


class DiesAfterWriting(FileTask):
    """As its base, but the first worker that has written a file is killed before it can say so."""

    def write(self, number: int) -> SliceReport:
        report = super().write(number)
        marker = Path(os.environ[MARKER] + "-file")
        if not marker.exists():
            marker.write_text(report.path)
            os.kill(os.getpid(), signal.SIGKILL)
        return report


def pairs_of(table: pa.Table) -> list[list[int]]:
    """Rows in order."""
    return sorted(map(list, zip(*(table[n].to_pylist() for n in table.column_names), strict=True)))


def started(master: str) -> SparkSession:
    """A session whose workers know where they tell that they died."""
    from spark_plugin.cluster.session import local_session

    environment = {f"spark.executorEnv.{name}": os.environ[name] for name in (MARKER, "PYTHONPATH")}
    return local_session(master, "coincide-faults", **environment)


def joined(frames: list[DataFrame], **given: Any) -> dict[str, Any]:
    """Pairs of a join, and what was counted."""
    from tests.helpers.joins import plan_correlation

    planned = plan_correlation(*frames, CONDITION, observe=True, **given)
    found = planned.dataframe.where("right_id IS NOT NULL").toArrow()
    return {
        "pairs": pairs_of(found), "counted": planned.counters().pairs,
        "slices": planned.plan.count,
    }  # fmt: skip


def run_locally() -> None:
    """In a process of its own: join by an exchange, and print the pairs and the counters."""
    import spark_plugin.ways.exchange.join as exchange

    exchange.SliceTask = DyingSliceTask  # type: ignore[misc]
    spark = started(LOCAL)
    frames = [spark.createDataFrame(stream(seed)) for seed in (1, 2)]
    answer = joined(frames, options=EXCHANGE)
    answer["executors"] = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
    spark.stop()
    print("answer", json.dumps(answer))


def run() -> None:
    """In a process of its own: join in a cluster, and print the pairs and the counters."""
    import spark_plugin.ways.borders as borders
    import spark_plugin.ways.broadcast.join as broadcast
    import spark_plugin.ways.choosing as choosing
    import spark_plugin.ways.exchange.join as exchange
    import spark_plugin.ways.exchange.packed_keys as packed_keys
    import spark_plugin.ways.files.join as direct
    import spark_plugin.ways.limits as limits
    import spark_plugin.ways.transitions as dwells
    from tests.helpers.joins import plan_correlation

    exchange.SliceTask = DyingSliceTask  # type: ignore[misc]
    exchange.PackTask = DyingPackTask  # type: ignore[misc]
    broadcast.BroadcastTask = DyingBroadcastTask  # type: ignore[misc]
    broadcast.PartialTask = DyingPartialTask  # type: ignore[misc]
    borders.CrossingTask = DyingCrossingTask  # type: ignore[misc]
    dwells.TransitionTask = DyingTransitionTask  # type: ignore[misc]
    packed_keys.KeyPackTask = DyingKeyPackTask  # type: ignore[misc]
    borders.PackedCrossingTask = DyingPackedCrossingTask  # type: ignore[misc]
    dwells.PackedTransitionTask = DyingPackedTransitionTask  # type: ignore[misc]
    direct.FileTask = DiesAfterWriting  # type: ignore[misc]
    spark = started(CLUSTER)
    frames = [spark.createDataFrame(stream(seed)) for seed in (1, 2)]
    ways = {
        "exchange": {"options": EXCHANGE},
        "broadcast": {"options": CorrelateOptions(way="broadcast-right", batch_pairs=50)},
        "two steps": {
            "options": CorrelateOptions(way="broadcast-left", batch_pairs=50),
            "how": "left",
        },
    }
    answer: dict[str, Any] = {way: joined(frames, **given) for way, given in ways.items()}
    exchange.SliceTask = DyingCellTask  # type: ignore[misc]
    exchange.PackTask = DyingCellPackTask  # type: ignore[misc]
    limits.LIMITS = limits.PlannerLimits(both_bytes=-1, small_bytes=-1, large_bytes=0)
    choosing.slices_of = lambda *_: 4  # type: ignore[assignment]
    options = CorrelateOptions(slice_rows=200, batch_pairs=50)
    planned = plan_correlation(*frames, CONDITION, observe=True, options=options)
    answer["cells"] = {
        "pairs": pairs_of(planned.dataframe.toArrow()), "counted": planned.counters().pairs,
        "slices": planned.plan.count, "plan": planned.plan.describe(),
    }  # fmt: skip
    exchange.SliceTask = DyingHistogramTask  # type: ignore[misc]
    answer["histograms"] = pairs_of(
        plan_correlation(
            *(spark.createDataFrame(events(seed, 900)) for seed in (1, 2)), CONDITION, **TEMPLATES,
            options=CorrelateOptions(way="exchange", slices=4, batch_pairs=50),
        ).dataframe.toArrow()
    )  # fmt: skip
    report = BorderReport()
    options = BorderOptions(batch_events=50)
    readings = spark.createDataFrame(READINGS)
    found = border_crossings(readings, QUERIES, options=options, report=report, **BORDERS)
    answer["crossings"] = in_order(found.toArrow()), report.summary().events
    answer["transitions"] = in_order(transitions(found, **DWELL).toArrow())
    report = BorderReport()
    pq.write_table(READINGS, "readings.parquet", row_group_size=50)
    packed = spark.read.parquet("readings.parquet")
    found = border_crossings(packed, QUERIES, options=options, report=report, **BORDERS)
    whole = found.toArrow()
    answer["packed crossings"] = in_order(whole), report.summary().events
    pq.write_table(whole, "crossings.parquet", row_group_size=50)
    found = transitions(spark.read.parquet("crossings.parquet"), **DWELL)
    answer["packed transitions"] = in_order(found.toArrow())
    answer["executors"] = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()
    paths = [Path(f"{seed}.parquet") for seed in (1, 2)]
    for seed, path in enumerate(paths, 1):
        pq.write_table(stream(seed).sort_by("min_time"), path, row_group_size=100)
    options = CorrelateOptions(slices=4)
    join_files(spark, *paths, CONDITION, options=options, output="out", way="files")
    spark.stop()
    print("answer", json.dumps(answer))


def answer_of(function: Callable[[], None], java_home: str, folder: Path) -> dict[str, Any]:
    """What one of the above printed."""
    given = spark_environment(JAVA_HOME=java_home, **{MARKER: str(folder / "killed")})
    name = function.__name__
    code = f"from tests.spark_plugin.cluster.test_spark_faults import {name}; {name}()"
    finished = subprocess.run(
        [sys.executable, "-c", code], env=given, cwd=folder, capture_output=True,
        text=True, timeout=240, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr[-3000:]
    told = next(line for line in finished.stdout.splitlines() if line.startswith("answer "))
    return json.loads(told.removeprefix("answer "))


@pytest.mark.spark
@pytest.mark.slow
def test_a_killed_worker_of_local_spark_changes_nothing(java_home: str, tmp_path: Path) -> None:
    """One task, since Spark runs a task again in one way: `local[2,4]` allows it four attempts.

    All other tasks die in the cluster below.
    """
    answer = answer_of(run_locally, java_home, tmp_path)
    assert int((tmp_path / "killed-DyingSliceTask").read_text()) > 0
    expected = pairs_of(correlate_tables(stream(1), stream(2), CONDITION))
    assert len(expected) > 5000
    counted = {"counted": len(expected), "slices": 4, "executors": 1}
    assert answer == {"pairs": expected, **counted}


@pytest.mark.spark
@pytest.mark.slow
def test_a_killed_worker_changes_nothing(java_home: str, tmp_path: Path) -> None:
    """Each task of each way, in a cluster of two executors."""
    answer = answer_of(run, java_home, tmp_path)
    killed = ("Slice", "Pack", "Cell", "CellPack", "Histogram", "Broadcast", "Partial", "Crossing")
    packed = "KeyPack", "PackedCrossing", "PackedTransition"
    for task in (*killed, *packed, "Transition"):
        assert int((tmp_path / f"killed-Dying{task}Task").read_text()) > 0
    expected = correlate_tables(stream(1), stream(2), CONDITION)
    pairs = sorted(tuples(expected))
    assert len(pairs) > 5000
    assert answer["cells"].pop("plan") == "4 slices of cells in time, no planning job"
    for way, slices in (("exchange", 4), ("broadcast", None), ("two steps", None), ("cells", 4)):
        assert [tuple(pair) for pair in answer[way]["pairs"]] == pairs
        assert (answer[way]["counted"], answer[way]["slices"]) == (len(pairs), slices)
    of_templates = pairs_of(
        correlate_tables(events(1, 900), events(2, 900), CONDITION, **TEMPLATES)
    )
    assert len(of_templates) > 5000
    assert answer["histograms"] == of_templates
    crossings = border_crossing_tables(least_last(READINGS), QUERIES, **BORDERS)
    assert answer["crossings"] == [in_order(crossings), crossings.num_rows]
    assert answer["transitions"] == in_order(transition_tables(crossings, **DWELL))
    assert answer["packed crossings"] == answer["crossings"]
    assert answer["packed transitions"] == answer["transitions"]
    assert answer["executors"] == 3
    given_up = Path((tmp_path / "killed-file").read_text())
    files = [path.name for path in (tmp_path / "out").glob("*.parquet")]
    assert len(files) == 4
    assert given_up.name not in files
    written = pq.read_table(tmp_path / "out")
    assert (
        sorted(zip(*(written[n].to_pylist() for n in written.column_names), strict=True)) == pairs
    )
