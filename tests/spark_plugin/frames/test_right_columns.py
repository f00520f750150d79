"""Semi, anti and counts return no column of the match: its columns may be missing, on any way."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from coincide import (
    CorrelateOptions,
    TimingCondition,
    correlate,
    correlate_tables,
    within,
)
from coincide.model.errors import SchemaError
from tests.helpers.joins import join_files
from tests.helpers.rows import in_order
from tests.helpers.workplace import WINDOW, Workplace, events

SHAPES = [{"how": "semi"}, {"how": "anti"}, {"emit": "counts"}]
CONDITION = TimingCondition(within(-3, 5), 0.5)
LEFT = events()
RIGHT = events(min_time=[1, 11, 21, 90], max_time=[5, 15, 25, 94])
BARE = RIGHT.drop("id")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tables(shape: dict[str, str]) -> None:
    want = correlate_tables(LEFT, RIGHT, CONDITION, **shape)
    assert in_order(correlate_tables(LEFT, BARE, CONDITION, **shape)) == in_order(want)
    assert correlate_tables(LEFT, BARE, CONDITION, right_columns=["no"], **shape).equals(want)
    with pytest.raises(SchemaError, match="right has no column 'no'"):
        correlate_tables(LEFT, BARE, CONDITION, right_columns=["no"])


@pytest.mark.parametrize("name", ["right.parquet", "right.csv", "right.arrow"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_command_line_in_one_process(work: Workplace, shape: dict[str, str], name: str) -> None:
    check_command_line(work, shape, name, "local")


def check_command_line(work: Workplace, shape: dict[str, str], name: str, engine: str) -> None:
    work.right = work.folder / name
    if name.endswith("csv"):
        pa.csv.write_csv(BARE, work.right)
    elif name.endswith("arrow"):
        with pa.ipc.new_file(work.right, BARE.schema) as file:
            file.write_table(BARE)
    else:
        pq.write_table(BARE, work.right)
    words = [word for key, value in shape.items() for word in (f"--{key}", value)]
    code, _, err = work.join(*WINDOW, *words, "--overwrite", engine=engine)
    assert code == 0, err
    assert in_order(work.result()) == in_order(correlate_tables(LEFT, RIGHT, CONDITION, **shape))
    assert "has no column 'no'" in work.refused(*WINDOW, "--right-columns", "no", "--overwrite")


@pytest.mark.spark
@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_spark(spark, work: Workplace, is_whole: bool) -> None:
    """Each way once, or with each shape."""
    from spark_plugin.ways.files.source import CoincideSource

    spark.dataSource.register(CoincideSource)
    paths = [str(work.write(f"bare {i}.parquet", t)) for i, t in enumerate((LEFT, BARE))]
    frames = [spark.createDataFrame(table) for table in (LEFT, BARE)]
    given = {"left": paths[0], "right": paths[1], "within": "-3,5", "confidence": "0.5"}

    def by_frames(way, shape):
        return correlate(*frames, CONDITION, options=CorrelateOptions(way=way), **shape)

    ways = [
        *(partial(by_frames, way) for way in ("broadcast-left", "broadcast-right", "exchange")),
        lambda shape: join_files(spark, *paths, CONDITION, way="files", **shape),
        lambda shape: join_files(spark, *paths, CONDITION, way="exchange", **shape),
        lambda shape: spark.read.format("coincide").options(**given, **shape).load(),
    ]
    for i, shape in enumerate(SHAPES):
        want = in_order(correlate_tables(LEFT, RIGHT, CONDITION, **shape))
        for way in ways if is_whole else ways[i :: len(SHAPES)]:
            assert in_order(way(shape).toArrow()) == want
    with pytest.raises(SchemaError, match="right has no column 'id'"):
        correlate(*frames, CONDITION)
