"""Rows by key and time on their way to the tasks of an operator, and what these find on its way back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T

from coincide.engine.events.frames import kind_of
from coincide.engine.events.time_columns import TimeScale
from coincide.engine.reports.lines import Told
from coincide.engine.reports.warnings import LaterReport
from coincide.model.errors import ConditionError, SchemaError
from spark_plugin.cluster.rapids import is_accelerated
from spark_plugin.frames.columns import (
    arrow_type,
    check_key,
    encode,
    field_of,
    quoted,
    rounding,
    spark_time_column,
)
from spark_plugin.frames.float_ticks import with_ticks
from spark_plugin.frames.output_columns import OutputColumn, decoded, metrics_name, wire_schema
from spark_plugin.frames.stage import Stage, counted_by_tasks, gpu_profile
from spark_plugin.frames.statistics import example
from spark_plugin.tasks.counting import EXAMPLE, ROUNDED, CountingTask

S = TypeVar("S", bound=Told)
"""What an operator tells: its summary."""
_ACCELERATED = (
    "the RAPIDS Accelerator fails plans that are observed. To get the numbers, compute the result"
    " once more in a session with spark.rapids.sql.enabled=false."
)


def must_be_frame(given: object, called: str, tables: str) -> None:
    """Refuse what is no DataFrame; `tables` says what takes tables."""
    if not isinstance(given, DataFrame):
        raise SchemaError(
            f"{called} must be a Spark DataFrame (found {kind_of(given)}). Use spark.createDataFrame to"
            f" make one of a table, or {tables}, which takes tables as they are."
        )


def check_frame(given: Any, called: str, tables: str, streams: str) -> None:
    """Refuse what is no DataFrame, or streaming; `tables` and `streams` say what to do then."""
    must_be_frame(given, called, tables)
    if given.isStreaming:
        verb = "are" if called == "events" else "is"
        raise ConditionError(f"{called} {verb} a streaming DataFrame, {streams}")


@dataclass(frozen=True)
class KeyedRows:
    """A DataFrame of which some columns are needed; `keys`, which may be none, bring rows together."""

    source: DataFrame
    fields: dict[str, T.StructField]
    keys: tuple[str, ...]

    @classmethod
    def of(
        cls,
        source: DataFrame,
        side: str,
        names: Sequence[str],
        keys: Sequence[str],
        clocks: Sequence[str],
    ) -> KeyedRows:
        """The columns of some names, checked."""
        fields = {name: field_of(source, side, name) for name in names}
        for name in keys:
            check_key(side, fields[name])
        for name in clocks:
            spark_time_column(side, fields[name])
        return cls(source, fields, tuple(keys))

    @property
    def schema(self) -> pa.Schema:
        """The schema of the needed columns, in types of Arrow."""
        return pa.schema([(name, arrow_type(f.dataType)) for name, f in self.fields.items()])

    def kind(self, name: str) -> T.DataType:
        """The type of a column."""
        return self.fields[name].dataType

    def given(self, name: str) -> str:
        """What a column is called in `ticks`: as no other one can be."""
        return f"given{list(self.fields).index(name)}"

    def ticks(self, scales: Mapping[str, TimeScale]) -> DataFrame:
        """The needed columns, times in ticks under the names of scales, and the change by rounding."""
        given = [f"{quoted(name)} AS {self.given(name)}" for name in self.fields]
        changes = [f"({rounding(scale)})" for scale in scales.values()]
        if has_floats(scales):
            change = changes[0] if len(changes) == 1 else f"greatest({', '.join(changes)})"
            given.append(f"{change} AS change")
        own = {wire: scale.of(self.given(scale.column.name)) for wire, scale in scales.items()}
        return with_ticks(self.source.selectExpr(*given), own)

    def on_the_wire(
        self,
        rows: DataFrame,
        keys: Sequence[str],
        columns: Sequence[str],
        *,
        refused: str | None,
        rounds: bool,
    ) -> DataFrame:
        """Rows of `ticks` on the wire; `rounds`: times are floats."""
        # Rows that are to be refused have no key, so that they meet in one partition and come first.
        values = [encode(self.given(name), self.kind(name)) for name in self.keys]
        values += ["0L"] * (len(keys) - len(values))
        if refused:
            values = [f"CASE WHEN {refused} THEN NULL ELSE {value} END" for value in values]
        told = [f"change AS {ROUNDED}"] if rounds else []
        if refused:
            words = example([(self.given(name), field) for name, field in self.fields.items()])
            told.append(f"CASE WHEN {refused} THEN {words} END AS {EXAMPLE}")
        named = (f"{value} AS {name}" for name, value in zip(keys, values, strict=True))
        return rows.selectExpr(*named, *columns, *told)


def has_floats(scales: Mapping[str, TimeScale]) -> bool:
    """Whether some times are floats, which are rounded, and may be NaN."""
    return any(scale.column.family == "float" for scale in scales.values())


def exchanged(rows: DataFrame, keys: Iterable[str], order: Sequence[str]) -> DataFrame:
    """Rows on the wire, each key in one partition, in order."""
    return rows.repartition(*keys).sortWithinPartitions(*keys, *map(F.expr, order))


@dataclass(frozen=True)
class OperatorPlan(Generic[S]):
    """A planned search; `told` makes a summary of what its tasks have counted."""

    dataframe: DataFrame
    observation: Observation | None
    is_observable: bool
    told: Callable[[Mapping[str, int]], S]
    why: str = ""

    @classmethod
    def of(
        cls,
        rows: DataFrame,
        task: CountingTask,
        columns: Sequence[tuple[str, T.DataType]],
        words: Mapping[str, Sequence[str]],
        told: Callable[[Mapping[str, int]], S],
        *,
        observe: bool,
        backend: str = "cpu",
        why: str = "",
    ) -> OperatorPlan[S]:
        """What a task finds in rows on the wire, in columns of some names, types and, of numbers, words."""
        spark = rows.sparkSession
        is_observable = not is_accelerated(spark)
        observation = Observation() if observe and is_observable else None
        made = [OutputColumn(name, kind, words=words.get(name, ())) for name, kind in columns]
        schema = wire_schema(made)
        metrics = None if observation is None else metrics_name(schema.names)
        sent: Any = replace(task, names=tuple(schema.names), metrics=metrics)  # type: ignore[type-var]
        stage = Stage(True, gpu_profile(spark, backend), metrics, observation)
        found = decoded(stage.run(rows, sent, schema), made)
        return cls(found, observation, is_observable, told, why)

    def summary(self) -> S:
        """What was found; waits for an action."""
        found = None if self.observation is None else counted_by_tasks(self.observation)
        if found is None:
            early = "Spark left the stage out, or stopped it early."
            raise ConditionError(
                f"the report has no numbers: {early if self.is_observable else _ACCELERATED}"
            )
        return self.told(found.numbers)

    def reported_to(self, report: LaterReport[S] | None) -> DataFrame:
        """The result; its summary can be asked of the report once it was computed."""
        if report is not None:
            report.take(None, self.summary)
        return self.dataframe
