"""DataFrames on Spark: `correlate` by exchange and by broadcast, also of sources that change."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from bench.hunt.cases import Case, Verdict, Way
from bench.hunt.chance import Chance
from bench.hunt.comparing import Found, counts_of
from bench.hunt.data import DataSet
from bench.hunt.jobs import arguments
from bench.hunt.judging import errors_due, judge_error, judge_join
from bench.hunt.layouts import in_folders, write_filtered, write_folders
from bench.hunt.oracle import Oracle
from bench.hunt.sessions import Sessions
from bench.hunt.ways.asked import judge_on_spark
from bench.hunt.ways.changing import judge_either, moved
from bench.hunt.ways.files import slicing
from coincide import correlate
from coincide.engine.join.arguments import JoinArguments
from spark_plugin.frames.columns import quoted
from spark_plugin.ways.correlation import plan_correlation

WAYS = {
    "exchange": "exchange", "broadcast left": "broadcast-left", "broadcast right": "broadcast-right",
    "broadcast smaller": "broadcast", "correlate": "auto",
}  # fmt: skip
"""Names of ways, and the option that asks for each."""

SLICE_ROWS = (10, 30, 100)
"""Fewer rows would make thousands of tasks of a join."""


def frame_ways(sessions: Sessions) -> list[Way]:
    """Ways of DataFrames in the sessions of a hunt."""
    ways = [
        Way(name, partial(_judge, sessions), partial(_options, way), takes, weight=10)
        for name, way in WAYS.items()
    ]
    changing = partial(_judge_changing, sessions)
    any_way = partial(_options, "")
    ways.append(
        Way("asked of DataFrames", partial(_judge_asked, sessions), suits=_is_bare, weight=12)
    )
    return [*ways, Way("changing DataFrames", changing, any_way, takes, weight=6)]


def _is_bare(data: DataSet) -> bool:
    return not data.has_histograms


def _judge_asked(sessions: Sessions, case: Case, folder: Path) -> Verdict:
    ways = ("auto", "broadcast-both", "exchange", "broadcast-left", "broadcast-right")
    return judge_on_spark(sessions.of(case), case, case.chance("way").choice(ways))


def takes(data: DataSet) -> bool:
    """Whether DataFrames have the types of the times."""
    return all(
        kind.step in (None, "us", "d") and not kind.name.startswith("uint")
        for side in data.sides
        for kind in side.types
    )


def _options(way: str, chance: Chance) -> dict[str, Any]:
    found = slicing(chance, SLICE_ROWS) if chance.happens(60) else {}
    found["way"] = way or chance.choice(tuple(WAYS.values()))
    if chance.happens(30):
        found["broadcast_bytes"] = chance.choice((0, 100, 1000))
    return found


def _judge(sessions: Sessions, case: Case, folder: Path) -> Verdict:
    return judge_join(case, lambda: _joined(sessions.of(case), case, folder), set())


def _joined(spark: SparkSession, case: Case, folder: Path) -> Found:
    chance = case.chance("frames")
    condition, given = arguments(case.data, case.job)
    left, right = (
        _source_of(spark, case.data.table(side), folder / f"side{side}", chance) for side in (0, 1)
    )
    if chance.happens(30):
        return Found(correlate(left, right, condition, **given).toArrow())
    plan = plan_correlation(left, right, JoinArguments(condition, **given))
    try:
        return Found(plan.dataframe.toArrow(), counts_of(plan.left), counts_of(plan.right))
    finally:
        plan.close()


def _source_of(spark: SparkSession, table: pa.Table, folder: Path, chance: Chance) -> DataFrame:
    """A table as a DataFrame of a program, or as one that only reads Parquet files in no order."""
    frame = frame_of(spark, table)
    if chance.happens(50):
        return spread(frame, chance)
    table = _decoded(table)
    told = in_folders(table) if table.num_rows and chance.happens(40) else []
    folder.mkdir()
    if told:
        return _read_of_folders(spark, table, frame, folder, chance.choice(told), chance)
    edge = chance.integer(0, table.num_rows)
    for i, part in enumerate((table.slice(0, edge), table.slice(edge))):
        pq.write_table(part, folder / f"{i}.parquet", row_group_size=chance.choice((1, 3, 50)))
    stored = spark.read.parquet(str(folder))
    # Durations come back as plain numbers.
    return stored if stored.schema == frame.schema else frame


def _read_of_folders(
    spark: SparkSession, table: pa.Table, frame: DataFrame, folder: Path, name: str, chance: Chance
) -> DataFrame:
    """A read of files whose folders tell a column, or two: one that only a filter names."""
    condition = None
    if chance.happens(50):
        condition = write_filtered(folder, table, name, chance)
    else:
        write_folders(folder, table, name, chance)
    inferred = spark.read.parquet(str(folder)).schema
    # What Spark infers may be narrower than the column was.
    schema = StructType([frame.schema[f.name] if f.name == name else f for f in inferred.fields])
    stored = spark.read.schema(schema).parquet(str(folder))
    stored = stored if condition is None else stored.where(condition)
    stored = stored.select(*map(quoted, frame.columns))
    return stored if stored.schema == frame.schema else frame


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A table as a DataFrame; times without a zone are wall clocks and stay so."""
    table = _decoded(table)
    return spark.createDataFrame(table, from_arrow_schema(table.schema, prefer_timestamp_ntz=True))


def _decoded(table: pa.Table) -> pa.Table:
    """Without dictionaries, which Spark does not take."""
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields))


def spread(frame: DataFrame, chance: Chance) -> DataFrame:
    """The same rows in other partitions, empty ones among them."""
    kind = chance.choice(("as it is", "as it is", "one", "several", "by id"))
    if kind == "one":
        return frame.coalesce(1)
    if kind == "several":
        return frame.repartition(chance.choice((2, 3, 5, 2, 3, 20)))
    return frame.repartition(3, "id") if kind == "by id" else frame


def _judge_changing(sessions: Sessions, case: Case, folder: Path) -> Verdict:
    """Sources whose rows are others once the plan is made, or each time they are read."""
    if case.job.how in ("right", "full") and not case.job.is_of_right:
        return Verdict("closed", "right events without a match are read a second time")
    chance = case.chance("changing")
    later = moved(case.data, chance)
    turning = chance.happens(40)
    sources = [_Source(folder / str(side), (case.data, later), side, turning) for side in (0, 1)]
    try:
        condition, given = arguments(case.data, case.job)
        left, right = (spread(source.frame(sessions.of(case)), chance) for source in sources)
        planned = correlate(left, right, condition, **given)
        for source in sources:
            source.change()
        found = Found(planned.toArrow())
    except Exception as error:
        return _judge_changed_error(case, later, error)
    allowed = [
        replace(case.data, left=left.left, right=right.right)
        for left, right in itertools.product((case.data, later), repeat=2)
    ]
    return judge_either(case, allowed, found, "turning" if turning else "changed")


def _judge_changed_error(case: Case, later: DataSet, error: Exception) -> Verdict:
    due = {"DataError"}
    for data in (case.data, later):
        due |= errors_due(data, case.job, Oracle(data, case.job.longest))
    return judge_error(error, due)


class _Source:
    """Rows of one side that are read anew each time the DataFrame is computed."""

    def __init__(
        self, folder: Path, states: tuple[DataSet, DataSet], side: int, turning: bool
    ) -> None:
        folder.mkdir()
        tables = [_decoded(state.table(side)) for state in states]
        self._schema, self._folder, self._turning = tables[0].schema, folder, turning
        for i, table in enumerate(tables):
            with pa.ipc.new_file(folder / f"{i}.arrow", table.schema) as writer:
                writer.write_table(table)
        (folder / "turn").write_text("0")

    def frame(self, spark: SparkSession) -> DataFrame:
        """A DataFrame of one partition."""
        schema = from_arrow_schema(self._schema, prefer_timestamp_ntz=True)
        return spark.range(0, 1, 1, 1).mapInArrow(_reader(str(self._folder), self._turning), schema)

    def change(self) -> None:
        """From now on, the later rows."""
        if not self._turning:
            (self._folder / "turn").write_text("1")


def _reader(folder: str, turning: bool) -> Callable[[Iterator[Any]], Iterator[pa.RecordBatch]]:
    """A function for Spark's workers, which may not find this module."""

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        from pathlib import Path

        import pyarrow as pa

        for _ in batches:
            turn = Path(folder, "turn")
            number = int(turn.read_text())
            if turning:
                turn.write_text(str(1 - number))
            with pa.ipc.open_file(Path(folder, f"{number}.arrow")) as file:
                yield from file.read_all().to_batches()

    return read
