"""What the correlate stage asks of Spark's scheduler: a share of a GPU, and no other stage does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coincide.errors import BackendError, ConditionError
from spark_plugin.worker.backends.devices import RESOURCE

if TYPE_CHECKING:
    from pyspark.resource import ResourceProfile
    from pyspark.sql import SparkSession

WORKERS_SETTING = "spark.coincide.gpu.workers"
"""Spark setting of ours: correlate tasks at once on one GPU."""

_EXECUTOR_AMOUNT = f"spark.executor.resource.{RESOURCE}.amount"
_TASK_AMOUNT = f"spark.task.resource.{RESOURCE}.amount"
_CLUSTERS = ("spark://", "local-cluster", "yarn", "k8s://")
"""Masters that schedule a stage's own resources: standalone, YARN, Kubernetes."""


def gpu_profile(spark: SparkSession, backend: str) -> ResourceProfile | None:
    """The resource profile of the correlate stage.

    None unless ``backend="gpu"`` and either `WORKERS_SETTING` says how many tasks share a GPU, or
    executors have GPUs for which no task asks: then one task a GPU. Where every task asks for a
    share of a GPU anyway (``spark.task.resource.gpu.amount``, as the RAPIDS Accelerator wants it) the
    stage needs nothing of its own.

    Raises
    ------
    BackendError
        If the master cannot schedule a stage's own resources, or executors have no GPU.
    ConditionError
        If the setting is no positive integer.
    """
    if backend != "gpu":
        return None
    master = spark.conf.get("spark.master", None) or ""
    gpus = spark.conf.get(_EXECUTOR_AMOUNT, None)
    told = spark.conf.get(WORKERS_SETTING, None)
    if told is None:
        unclaimed = gpus is not None and spark.conf.get(_TASK_AMOUNT, None) is None
        if not unclaimed or not master.startswith(_CLUSTERS):
            return None
    workers = _positive(told or "1")
    if not master.startswith(_CLUSTERS):
        raise BackendError(
            f"{WORKERS_SETTING} asks Spark to schedule GPUs, which master {master!r} cannot; use a"
            " standalone, YARN or Kubernetes cluster, or leave the setting out"
        )
    if gpus is None:
        raise BackendError(
            f"{WORKERS_SETTING} asks for GPUs, but the executors have none; start the session with"
            f" {_EXECUTOR_AMOUNT}=1 (docs/gpu-cluster.md)"
        )
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    share = TaskResourceRequests().resource(RESOURCE, 1 / workers)
    return ResourceProfileBuilder().require(share).build


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ConditionError(f"{WORKERS_SETTING} must be an integer of at least 1; found {text!r}")
    return int(text)
