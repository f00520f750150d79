"""The stage of a plan in which Python workers join, and what it asks of Spark."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer
from typing import Any

from pyspark.resource import ResourceProfile
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.backends import RESOURCE
from coincide.engine.events.invalid_rows import SideCounts
from coincide.engine.events.time_columns import LACKING
from coincide.engine.reports.metrics import merged, of_all, of_one_run
from coincide.model.errors import BackendError, ConditionError
from spark_plugin.frames.columns import arrow_schema
from spark_plugin.frames.events import EventFrame
from spark_plugin.tasks.counting import CountingTask, TellingTask

_log = logging.getLogger("coincide")
_SEEN = {
    "seen_given": "count_if({metrics} IS NULL)",
    "seen_told": "sum({metrics}[{count}])",
    "seen_tasks": "count_if(size({metrics}) = {count} + 1)",
    "seen_ends": "count_if(size({metrics}) = {count} + 2)",
    "seen_first": "min(CASE WHEN size({metrics}) = {count} + 2 THEN spark_partition_id() END)",
    "seen_last": "max(CASE WHEN size({metrics}) = {count} + 2 THEN spark_partition_id() END)",
}
"""What else is observed: rows of results, and how many tasks gave that came to their end; these tasks;
and the two partitions around them; Spark leaves one of these out where it takes some rows alone.
Their names are unlike those of what tasks count."""
_PATIENCE = 3.0
"""Seconds in which numbers may come before a user wonders."""
_WAITS = (
    "report.summary() is waiting for an action on the result. If none is running, press Ctrl-C,"
    " run one (for example df.write), and call summary() again."
)
NO_EVENT = -1
"""In place of a row's number where no row is meant."""


@dataclass(frozen=True)
class Stage:
    """What the stage is given in addition to its rows."""

    raise_invalid: bool
    profile: ResourceProfile | None
    metrics: str | None
    observation: Observation | None
    apart: Observation | None = None

    def run(
        self, rows: DataFrame, task: CountingTask, schema: T.StructType, *, is_joined: bool = False
    ) -> DataFrame:
        """What a task makes of rows on the wire, in the columns of the schema."""
        if self.metrics is None or self.observation is None:
            return rows.mapInArrow(task, schema, profile=self.profile)
        counters = T.StructField(self.metrics, T.ArrayType(T.LongType()))
        wide = T.StructType([*schema.fields, counters])
        # Tasks tell their counters in rows of their own.
        telling = TellingTask(task, tuple(arrow_schema(wide).types))
        found = rows.mapInArrow(telling, wide, profile=self.profile)
        found = _with_ends(found, self.metrics, self.observation, task.counted)
        if not is_joined:
            return found.where(f"{self.metrics} IS NULL").drop(self.metrics)
        # Adaptive execution takes a join with nothing out of the plan, and what was observed with it.
        first, *others = schema.names
        return found.selectExpr(f"coalesce({first}, {NO_EVENT}L) AS {first}", *others)


def _with_ends(
    found: DataFrame, metrics: str, observation: Observation, names: Sequence[str]
) -> DataFrame:
    """The same with the rows that tell, and with one of zeros before and one after all others."""
    zeros = F.array_repeat(F.lit(0).cast("long"), len(names) + 2)
    nothing = F.lit(None)
    values = [
        (zeros if kind.name == metrics else nothing.cast(kind.dataType)).alias(kind.name)
        for kind in found.schema
    ]
    end = found.sparkSession.range(0, 1, 1, 1).select(*values)
    return end.unionAll(found).unionAll(end).observe(observation, *_totals(metrics, names))


@dataclass(frozen=True)
class Counted:
    """What the tasks of a stage have counted."""

    numbers: dict[str, int]
    runs: int


def counted_by_tasks(observation: Observation, *others: Observation) -> Counted | None:
    """What tasks have counted, of several stages together; None if some were stopped or failed."""
    if others:
        each = [counted_by_tasks(one) for one in (observation, *others)]
        known = [one for one in each if one is not None]
        if len(known) < len(each):
            return None
        return Counted(of_all([one.numbers for one in known]), max(one.runs for one in known))
    found = observed_numbers(observation) or {}
    seen = {name: int(found.pop(name, None) or 0) for name in _SEEN}
    runs, odd = divmod(seen["seen_ends"], 2)
    tasks = runs * (
        seen["seen_last"] - seen["seen_first"] - 1
    )  # where partitions are brought together, fewer
    if not runs or odd or seen["seen_given"] != seen["seen_told"] or seen["seen_tasks"] < tasks:
        return None
    numbers = of_one_run(found, runs)
    return None if numbers is None else Counted(numbers, runs)


def observed_numbers(observation: Observation) -> dict[str, Any] | None:
    """What was observed, once an action has ended, None if nothing; the log says of a wait."""
    try:
        with _wait_logged():
            return dict(observation.get)
    except Exception as error:  # Spark has no error of its own for it: an assertion of the JVM
        _log.debug("nothing observed: %s", error)
        return None


def counted_rows(events: EventFrame) -> SideCounts | None:
    """What the rows of a side were, as counted while they were used; None if that is not known."""
    observation = events.observation
    if not isinstance(observation, Observation):  # a name is for the progress of a stream
        return None
    found = observed_numbers(observation)
    if found is None:
        return None
    too_long = found.get("too_long") or 0
    return SideCounts(
        found["rows"], found["unmatchable"], {}, found["rounded"] or 0.0,
        too_long, (events.longest_match or 0) if too_long else 0,
        {why: count for why in LACKING if (count := found.get(why))},
    )  # fmt: skip


@contextmanager
def _wait_logged() -> Iterator[None]:
    timer = Timer(_PATIENCE, _log.warning, [_WAITS])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _totals(metrics: str, names: Sequence[str]) -> list[Column]:
    numbers = {name: merged(name, f"{metrics}[{i}]") for i, name in enumerate(names)}
    seen = {name: text.format(metrics=metrics, count=len(names)) for name, text in _SEEN.items()}
    return [F.expr(text).alias(name) for name, text in {**numbers, **seen}.items()]


WORKERS_SETTING = "spark.coincide.gpu.workers"
"""Spark setting of ours: correlate tasks at once on one GPU."""

_EXECUTOR_AMOUNT = f"spark.executor.resource.{RESOURCE}.amount"
_TASK_AMOUNT = f"spark.task.resource.{RESOURCE}.amount"
_CLUSTERS = ("spark://", "local-cluster", "yarn", "k8s://")
"""Masters that schedule a stage's own resources: standalone, YARN, Kubernetes."""


def gpu_profile(spark: SparkSession, backend: str) -> ResourceProfile | None:
    """The resource profile of a stage with ``backend="gpu"``; None where tasks have a share anyway."""
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
            f"{WORKERS_SETTING} lets Spark schedule GPUs, but master {master!r} cannot. Use a"
            " standalone, YARN or Kubernetes cluster, or remove the setting."
        )
    if gpus is None:
        raise BackendError(
            f"{WORKERS_SETTING} needs executors with GPUs, but they have none. Start the session"
            f" with {_EXECUTOR_AMOUNT}=1 (docs/gpu-cluster.md)."
        )
    from pyspark.resource import ResourceProfileBuilder, TaskResourceRequests

    share = TaskResourceRequests().resource(RESOURCE, 1 / workers)
    return ResourceProfileBuilder().require(share).build


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise ConditionError(
            f"{WORKERS_SETTING} must be an integer of at least 1 (found {text!r})."
        )
    return int(text)
