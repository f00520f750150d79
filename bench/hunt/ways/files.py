"""Parquet files in this process, row groups slice by slice; the data source, whose tasks do likewise."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from bench.hunt.cases import Case, Verdict, Way
from bench.hunt.chance import Chance
from bench.hunt.comparing import Found
from bench.hunt.data import DataSet
from bench.hunt.jobs import arguments
from bench.hunt.judging import judge_join
from bench.hunt.layouts import can_be_int96, can_be_parquet, write_parquet
from bench.hunt.ways.tables import finished
from bench.hunt.wording import source_options
from coincide.engine.files import planning
from coincide.engine.files.planning import LocalFilesJoin
from coincide.engine.join.arguments import JoinArguments


def write_sides(data: DataSet, chance: Chance, folder: Path, *, old: bool = True) -> list[str]:
    """Both sides as Parquet, `old`: INT96 among the layouts."""
    old_times = old and can_be_int96(data) and chance.happens(10)
    return [
        str(
            write_parquet(
                folder / name, data.table(side), chance,
                order_by=data.time_names(side)[0], old_times=old_times,
            )
        )
        for side, name in enumerate(("left", "right"))
    ]  # fmt: skip


def slicing(chance: Chance, slice_rows: tuple[int, ...] = (1, 3, 10)) -> dict[str, Any]:
    """Options that decide how rows are cut into slices."""
    found: dict[str, Any] = {}
    if chance.happens(50):
        found["slices"] = chance.choice((1, 2, 3, 7, 25))
    if chance.happens(40):
        found["slice_rows"] = chance.choice(slice_rows)
    return found


def _judge(case: Case, folder: Path) -> Verdict:
    left, right = write_sides(case.data, case.chance("files"), folder)

    def attempt() -> Found:
        condition, given = arguments(case.data, case.job)
        with patch.object(planning, "MOST_READS", 100.0):
            return finished(LocalFilesJoin(left, right, JoinArguments(condition, **given)))

    return judge_join(case, attempt)


def _judge_source(case: Case, folder: Path) -> Verdict:
    left, right = write_sides(case.data, case.chance("source"), folder)
    return judge_join(case, lambda: _read_source(case, folder, left, right))


def _read_source(case: Case, folder: Path, left: str, right: str) -> Found:
    """As Spark does it: the source here, its reader in other processes."""
    from spark_plugin.frames.columns import arrow_schema
    from spark_plugin.ways.files.source import CoincideSource

    source = CoincideSource({"left": left, "right": right, **source_options(case, folder)})
    schema = source.schema()
    reader = source.reader(schema)
    batches = [
        batch
        for partition in pickle.loads(pickle.dumps(reader.partitions()))
        for batch in pickle.loads(pickle.dumps(reader)).read(partition)
    ]
    return Found(pa.Table.from_batches(batches, schema=arrow_schema(schema)))


def of_slices(chance: Chance) -> dict[str, Any]:
    """The number of slices, where that alone can be given."""
    return {"slices": chance.choice((1, 2, 3, 7, 25))} if chance.happens(50) else {}


def spark_takes(data: DataSet) -> bool:
    """Whether Spark has the types of the output."""
    return can_be_parquet(data)


WAYS = [
    Way("files", _judge, slicing, can_be_parquet, weight=22),
    Way("source", _judge_source, of_slices, spark_takes, weight=6),
]
