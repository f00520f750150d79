"""GPUs as Spark schedules them, on machines that have none: a cluster of its own, told of made-up GPUs."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from coincide import (
    BackendError,
    ConditionError,
    CorrelateOptions,
    TimingCondition,
    correlate_tables,
    within,
)
from coincide.engine import backends as devices
from spark_plugin.frames.stage import WORKERS_SETTING, gpu_profile
from spark_plugin.tasks.exchange import SliceTask
from tests.helpers.places import ROOT
from tests.helpers.rows import tuples
from tests.helpers.spark_process import spark_environment

CONDITION = TimingCondition(within(-40, 60), 0.5)
FOLDER = "COINCIDE_TEST_FOLDER"
MASTER = "local-cluster[1,4,1024]"
GPUS = (3, 5)


def stream(seed: int, n: int = 2000) -> pa.Table:
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 40_000, n)
    return pa.table({"min_time": low, "max_time": low + rng.integers(0, 90, n), "id": range(n)})


class OnMadeUpGpu(SliceTask):
    """As its base, but the GPU kernels are the CPU's, and note the device that they get."""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        package, device = ModuleType("gpu_kernels"), ModuleType("gpu_kernels.device.usable")
        cpu = importlib.import_module("cpu_fallback")
        vars(package).update({name: getattr(cpu, name) for name in cpu.__all__})
        device.use_device = lambda number: note("correlate", number)
        device.problem, device.release = lambda: None, lambda: note("released", "")
        sys.modules |= {"gpu_kernels": package, "gpu_kernels.device.usable": device}
        devices.load_backend = lambda name: package
        yield from super().__call__(batches)


def note(kind: str, number: object) -> None:
    Path(os.environ[FOLDER], f"{kind}-{uuid.uuid4()}").write_text(str(number))


def note_addresses(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    note("before", devices.task_addresses())
    yield from batches


def run() -> None:
    """In a process of its own: join on made-up GPUs, and print what happened."""
    import coincide.engine.join.join as worker
    import spark_plugin.operators.join as correlation
    import spark_plugin.ways.exchange.join as exchange
    from spark_plugin.cluster.session import local_session

    exchange.SliceTask = OnMadeUpGpu
    worker.check_backend = lambda name: None  # whether there are kernels is not what this is about
    script = str(ROOT / "scripts" / "discover-gpus.sh")
    settings = {
        "spark.worker.resource.gpu.amount": "2",
        "spark.worker.resource.gpu.discoveryScript": script,
        "spark.executor.resource.gpu.amount": "2",
        WORKERS_SETTING: "2",
    }
    for name in (FOLDER, "PYTHONPATH"):
        settings[f"spark.executorEnv.{name}"] = os.environ[name]
    spark = local_session(MASTER, "coincide-gpus", **settings)
    left = spark.createDataFrame(stream(1))
    joined = correlation.correlate(
        left.mapInArrow(note_addresses, left.schema),
        spark.createDataFrame(stream(2)),
        CONDITION,
        backend="gpu",
        options=CorrelateOptions(slices=4),
    )
    found = joined.toArrow()
    answer = {
        "pairs": sorted(zip(*(found[n].to_pylist() for n in found.column_names), strict=True)),
        "plan": joined._jdf.queryExecution().executedPlan().toString(),
    }
    spark.stop()
    print("answer", json.dumps(answer))


@pytest.mark.spark
@pytest.mark.slow
def test_only_the_correlate_stage_asks_for_gpus(java_home: str, tmp_path: Path) -> None:
    notes, tools = tmp_path / "notes", tmp_path / "bin"
    notes.mkdir()
    tools.mkdir()
    smi = tools / "nvidia-smi"
    smi.write_text("#!/bin/sh\n" + "".join(f"echo {gpu}\n" for gpu in GPUS))
    smi.chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    given = spark_environment(**{"JAVA_HOME": java_home, FOLDER: str(notes), "PATH": path})
    given.pop("CUDA_VISIBLE_DEVICES", None)
    finished = subprocess.run(
        [sys.executable, "-c", "from tests.spark_plugin.cluster.test_gpu_resources import run; run()"],
        env=given, cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr[-3000:]
    told = next(line for line in finished.stdout.splitlines() if line.startswith("answer "))
    answer = json.loads(told.removeprefix("answer "))
    expected = correlate_tables(stream(1), stream(2), CONDITION)
    pairs = sorted(tuples(expected))
    assert [tuple(pair) for pair in answer["pairs"]] == pairs
    used = [int(path.read_text()) for path in notes.glob("correlate-*")]
    assert len(used) == len(list(notes.glob("released-*"))) == 4
    assert set(used) == set(GPUS)
    before = {path.read_text() for path in notes.glob("before-*")}
    assert before == {"()"}
    stages = [line for line in answer["plan"].splitlines() if "MapInArrow " in line]
    names = "note_addresses", "PackTask", "OnMadeUpGpu"
    asking = {
        (next((name for name in names if name in line), line), "gpu, amount: 0.5" in line)
        for line in stages
    }
    assert asking == {("note_addresses", False), ("PackTask", False), ("OnMadeUpGpu", True)}


def session(**settings: str | None) -> Any:
    """A session that only knows its settings, `executor` and `task` being their amounts of GPUs."""
    names = {
        "executor": "spark.executor.resource.gpu.amount",
        "task": "spark.task.resource.gpu.amount",
        "master": "spark.master",
        "workers": WORKERS_SETTING,
    }
    known = {names[name]: value for name, value in settings.items()}
    return SimpleNamespace(conf=SimpleNamespace(get=lambda name, default: known.get(name, default)))


@pytest.mark.parametrize(
    ("backend", "settings"),
    [
        ("cpu", {"master": "yarn", "executor": "1", "workers": "2"}),
        ("auto", {"master": "yarn", "executor": "1", "workers": "2"}),
        ("gpu", {"master": "yarn"}),
        ("gpu", {"master": "yarn", "executor": "1", "task": "0.5"}),
        ("gpu", {"master": "local[2]", "executor": "1"}),
        ("gpu", {}),
    ],
)
def test_no_profile_where_none_is_needed(backend: str, settings: dict[str, str]) -> None:
    assert gpu_profile(session(**settings), backend) is None


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"master": "local[2]", "workers": "2"}, BackendError, r"master 'local\[2\]' cannot"),
        ({"workers": "2"}, BackendError, "standalone, YARN or Kubernetes cluster"),
        (
            {"master": "yarn", "workers": "2"},
            BackendError,
            "needs executors with GPUs, but they have none",
        ),
        ({"master": "yarn", "executor": "1", "workers": "0"}, ConditionError, "found '0'"),
        ({"master": "yarn", "executor": "1", "workers": "half"}, ConditionError, "found 'half'"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, str], error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        gpu_profile(session(**settings), "gpu")


@pytest.mark.parametrize("master", ["spark://host:7077", "yarn", "k8s://https://host", MASTER])
@pytest.mark.parametrize(
    ("settings", "share"),
    [
        ({"executor": "1"}, 1.0),
        ({"executor": "1", "workers": "4"}, 0.25),
        ({"executor": "1", "task": "0.1", "workers": "3"}, 1 / 3),
    ],
)
def test_share_of_a_gpu(master: str, settings: dict[str, str], share: float, monkeypatch) -> None:
    pytest.importorskip("pyspark")
    # As on Spark Connect: built without a JVM.
    monkeypatch.setattr("pyspark.sql.is_remote", lambda: True)
    profile = gpu_profile(session(master=master, **settings), "gpu")
    assert {name: r.amount for name, r in profile.taskResources.items()} == {"gpu": share}
    assert profile.executorResources == {}
