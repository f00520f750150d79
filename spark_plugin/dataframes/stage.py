"""The stage of a plan in which Python workers join."""

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

from coincide.errors import ConditionError
from spark_plugin.cluster.accelerator import is_accelerated
from spark_plugin.dataframes.stage_resources import gpu_profile
from spark_plugin.worker.reports.metrics import merged
from spark_plugin.worker.wire.columns import METRICS
from spark_plugin.worker.wire.counting import CountingTask

_log = logging.getLogger("coincide")
_GIVEN, _TOLD = "given", "told"
"""How many rows of results were seen, and how many tasks gave that came to their end, where they tell."""
_PATIENCE = 3.0
"""Seconds for which nobody wonders why numbers do not come."""
_WAITS = (
    "a report waits for an action on the result to end, which its numbers come from: if none runs,"
    " interrupt it, and ask after one, such as write"
)
NOBODY = -1
"""In place of a row's number where nobody is meant."""
_ACCELERATED = (
    "the RAPIDS Accelerator fails plans that are observed; for the numbers, compute the result once more in"
    " a session with spark.rapids.sql.enabled=false"
)


@dataclass(frozen=True)
class Stage:
    """What the stage is given besides its rows.

    Parameters
    ----------
    raise_invalid : bool
        Whether invalid rows on the way to it fail the job: what a look has found may have changed.
    profile : ResourceProfile or None
        What its tasks ask of the scheduler.
    metrics : str or None
        Name of a column for the counters of tasks, that no other column has; None: not counted.
    observation : Observation or None
        Collects their sums.
    """

    raise_invalid: bool
    profile: ResourceProfile | None
    metrics: str | None
    observation: Observation | None

    def run(
        self, rows: DataFrame, task: CountingTask, schema: T.StructType, *, is_joined: bool = False
    ) -> DataFrame:
        """What a task makes of rows on the wire, in the columns of the schema.

        Parameters
        ----------
        rows : DataFrame
        task : CountingTask
        schema : StructType
        is_joined : bool
            Whether the result is only joined, by a number in its first column. Rows with `NOBODY`
            may be in it then.
        """
        if self.metrics is None or self.observation is None:
            return rows.mapInArrow(task, schema, profile=self.profile)
        counters = T.StructField(self.metrics, T.ArrayType(T.LongType()))
        wide = T.StructType([*schema.fields, counters])
        # Tasks tell their counters in rows of their own.
        found = rows.mapInArrow(task, wide, profile=self.profile)
        if not is_joined:
            return observed(found, self.metrics, self.observation, task.counted)
        # Adaptive execution takes what finds nothing out of the plan, and what was observed with it.
        nothing = [F.lit(None).cast(field.dataType) for field in schema]
        zeros = F.array_repeat(F.lit(0).cast("long"), len(task.counted) + 1)
        none = rows.sparkSession.range(1).select(*nothing, zeros)
        first, *others = schema.names
        found = found.unionAll(none).observe(self.observation, *_totals(self.metrics, task.counted))
        return found.selectExpr(f"coalesce({first}, {NOBODY}L) AS {first}", *others)


@dataclass(frozen=True)
class CountedStage:
    """The one stage of an operator whose tasks count everything that is told of it.

    Parameters
    ----------
    stage : Stage
    is_observable : bool
        Whether it can be counted: the RAPIDS Accelerator fails plans that are observed.
    """

    stage: Stage
    is_observable: bool

    @classmethod
    def of(cls, spark: SparkSession, backend: str, observe: bool) -> CountedStage:
        """A stage on a session, for a backend, that is counted if asked for and possible.

        Raises
        ------
        BackendError, ConditionError
            As `gpu_profile`.
        """
        can = not is_accelerated(spark)
        observation = Observation("coincide") if observe and can else None
        metrics = None if observation is None else METRICS
        return cls(Stage(True, gpu_profile(spark, backend), metrics, observation), can)

    @property
    def metrics(self) -> str | None:
        """Name of the column for the counters of tasks."""
        return self.stage.metrics

    def run(self, rows: DataFrame, task: CountingTask, schema: T.StructType) -> DataFrame:
        """What a task makes of rows on the wire; no column of the schema is called `METRICS`."""
        return self.stage.run(rows, task, schema)

    def counts(self) -> dict[str, int]:
        """What tasks have counted, by name. Waits for an action.

        Raises
        ------
        ConditionError
            If nothing was counted.
        """
        found = None
        if self.stage.observation is not None:
            found = observed_numbers(self.stage.observation)
        if found is None:
            why = (
                "Spark has left the stage out, or stopped it early"
                if self.is_observable
                else _ACCELERATED
            )
            raise ConditionError(f"nothing was counted: {why}")
        return {name: int(number or 0) for name, number in found.items()}


def observed(
    found: DataFrame, metrics: str, observation: Observation, names: Sequence[str]
) -> DataFrame:
    """Rows of results, those that tell what tasks counted taken out and added up.

    Parameters
    ----------
    found : DataFrame
    metrics : str
        The column of the numbers, null in rows of results.
    observation : Observation
        Takes their sums, under their names.
    names : sequence of str
    """
    found = found.observe(observation, *_totals(metrics, names))
    return found.where(f"{metrics} IS NULL").drop(metrics)


def observed_numbers(observation: Observation) -> dict[str, Any] | None:
    """What was observed, once an action has ended; a wait of seconds for it is told in the log.

    None if Spark has left out what was to be, or has stopped tasks, as for ``limit``, before they told.
    """
    try:
        with _told_of_waiting():
            found = dict(observation.get)
    except Exception as error:  # Spark has no error of its own for it: an assertion of the JVM
        _log.debug("nothing observed: %s", error)
        return None
    given, told = (found.pop(name, None) or 0 for name in (_GIVEN, _TOLD))
    return found if given == told else None


@contextmanager
def _told_of_waiting() -> Iterator[None]:
    timer = Timer(_PATIENCE, _log.warning, [_WAITS])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _totals(metrics: str, names: Sequence[str]) -> list[Column]:
    numbers = [F.expr(merged(name, f"{metrics}[{i}]")) for i, name in enumerate(names)]
    rows = f"count_if({metrics} IS NULL)", f"sum({metrics}[{len(names)}])"
    return [
        *(number.alias(name) for number, name in zip(numbers, names, strict=True)),
        *(F.expr(number).alias(name) for number, name in zip(rows, (_GIVEN, _TOLD), strict=True)),
    ]
