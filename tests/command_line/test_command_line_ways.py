"""`coincide join` takes the direct way where it can, and says which way and why."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tests.helpers.rows import in_order
from tests.helpers.workplace import WINDOW, Workplace
from tests.spark_plugin.ways.files.test_direct_join import stream

_CLOSED = "coincide: the files cannot be joined slice by slice, so another way is taken:"


def summary(work: Workplace, *options: str, engine: str = "local") -> dict:
    code, out, err = work.join(*WINDOW, *options, "--json", engine=engine)
    assert code == 0, err
    return json.loads(out)


def as_logs(work: Workplace) -> None:
    """Both inputs as folders of several files in time order."""
    for seed, side in enumerate(("left", "right")):
        table, folder = stream(6000, seed), work.folder / side
        folder.mkdir()
        for i in range(3):
            part = table.slice(2000 * i, 2000)
            pq.write_table(part, folder / f"{i}.parquet", row_group_size=250)
        setattr(work, side, folder)


def test_ordered_parquet_goes_directly(work):
    as_logs(work)
    told = summary(work)
    assert told["way"] == "files"
    assert told["why"].startswith("1 slice of row groups, each row read 1.00 times")
    assert in_order(work.result()) == in_order(work.expected())
    assert told["left"]["rows"] == told["right"]["rows"] == 6000
    found = work.result()
    other = summary(work, "--way", "exchange", "--overwrite")
    assert (other["way"], other["why"]) == ("in memory", "as asked")
    assert in_order(work.result()) == in_order(found)
    assert told["pairs"] == other["pairs"] == found.num_rows


@pytest.mark.spark
def test_on_spark_too(work, spark):
    as_logs(work)
    told = summary(work, "--slices", "4", engine="spark")
    assert (told["way"], told["slices"]) == ("files", 4)
    assert in_order(work.result()) == in_order(work.expected())
    assert (work.output / "_SUCCESS").exists()
    assert len(list(work.output.glob("*.parquet"))) == 4
    other = summary(work, "--way", "exchange", "--overwrite", engine="spark")
    assert (other["way"], other["why"], other["pairs"]) == ("exchange", "as asked", told["pairs"])
    assert in_order(work.result()) == in_order(work.expected())


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_bad_rows_end_a_direct_join_without_output(work, engine, request):
    if engine == "spark":
        request.getfixturevalue("spark")
    as_logs(work)
    bad = pa.table({"id": [1], "min_time": [10**7], "max_time": [0]})
    pq.write_table(bad, work.right / "9.parquet")
    assert "right: min above max" in work.refused(*WINDOW, engine=engine)
    told = summary(work, "--invalid", "drop", engine=engine)
    assert told["right"]["invalid"] == {"order": 1}
    assert told["way"] == "files"


def test_disorder_and_other_formats_are_read_whole(work):
    random = np.random.default_rng(0)
    for side in ("left", "right"):
        table = stream(3000, len(side)).take(random.permutation(3000))
        pq.write_table(table, getattr(work, side), row_group_size=20, write_statistics=False)
    code, out, err = work.join(*WINDOW, "--json")
    assert code == 0
    told = json.loads(out)
    assert told["way"] == "in memory"
    assert "has no statistics of min_time and max_time" in told["why"]
    assert (
        err
        == f"coincide: the files cannot be joined slice by slice, so another way is taken: {told['why']}\n"
    )
    assert work.join(*WINDOW, "--way", "exchange", "--overwrite", "--json")[2] == ""
    assert "--way files is not possible: left: " in work.refused(
        *WINDOW, "--way", "files", "--overwrite"
    )
    work.right = work.folder / "right.csv"
    pyarrow.csv.write_csv(stream(100, 1), work.right)
    code, out, err = work.join(*WINDOW, "--overwrite", "--json")
    assert (code, json.loads(out)["why"], err) == (0, "right is not Parquet.", "")


def test_types_that_differ_between_files_are_left_to_the_other_way(work):
    as_logs(work)
    table = stream(10, 5)
    narrow = table.set_column(1, "min_time", table["min_time"].cast("int32"))
    pq.write_table(narrow, work.left / "1.parquet")
    told = summary(work)
    assert told["way"] == "in memory"
    assert "the column 'min_time' must have one type in all files (found int32 in" in told["why"]


@pytest.mark.parametrize("way", ["auto", "files", "broadcast", "exchange"])
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("lacking", ["0.parquet", "2.parquet"])
def test_a_column_missing_in_one_file_is_an_error_on_every_way(work, engine, way, lacking):
    """Its rows would be taken for nulls, which match nothing."""
    if (engine, way) == ("local", "broadcast"):
        return
    as_logs(work)
    path = work.left / lacking
    pq.write_table(pq.read_table(path).drop(["max_time"]), path)
    words = f"left: {path} has no column 'max_time', which other files have"
    assert words in work.refused(*WINDOW, "--way", way, engine=engine)


def test_a_wrong_way(work):
    assert "--way" in work.refused(*WINDOW, "--way", "fast")


@pytest.mark.spark
def test_small_sides_are_collected(work, spark):
    """Row groups without statistics, so not by files; small, so without an exchange or a second read."""
    expected = in_order(work.expected())
    for side in ("left", "right"):
        path = getattr(work, side)
        pq.write_table(pq.read_table(path), path, row_group_size=20, write_statistics=False)
    told = json.loads(work.join(*WINDOW, "--json", engine="spark")[1])
    assert told["way"] == "broadcast-both"
    assert re.match(
        r"both sides collected, [\d,]+ bytes to 1 task; not by files: .* no stat", told["why"]
    )
    assert "slices" not in told
    assert in_order(work.result()) == expected
    assert told["pairs"] == work.result().num_rows
    forced = summary(work, "--way", "broadcast", "--overwrite", engine="spark")
    assert forced["why"] == "right to every worker, the smaller side, as you chose"
    assert in_order(work.result()) == expected


def test_there_is_nothing_to_broadcast_in_one_process(work):
    code, _, err = work.join(*WINDOW, "--way", "broadcast")
    assert code == 2
    assert "--way broadcast has no effect with --engine local" in err


def test_why_not_directly_names_options_of_the_command_line(work):
    """In the line on stderr, in the summary for people, and in that for programs."""
    for side in ("left", "right"):
        table = stream(3000, len(side))
        half = pa.array([9] * table.num_rows)
        pq.write_table(table.append_column("half", half), getattr(work, side), row_group_size=20)
    by_row = "--right-time", "min_time", "--right-around-column", "half"
    code, out, err = work.join(*WINDOW, *by_row, "--json")
    assert code == 0
    told = json.loads(out)["why"]
    assert "Declare the longest length, --right-longest" in told
    assert (
        err
        == f"coincide: the files cannot be joined slice by slice, so another way is taken: {told}\n"
    )
    _, out, _ = work.join(*WINDOW, *by_row, "--overwrite")
    assert "--right-longest" in out
    assert "right_longest" not in out


@pytest.mark.spark
def test_spark_warns_of_disorder_before_it_exchanges(work, spark):
    random = np.random.default_rng(0)
    for side in ("left", "right"):
        table = stream(3000, len(side)).take(random.permutation(3000))
        pq.write_table(table, getattr(work, side), row_group_size=20)
    code, out, err = work.join(*WINDOW, "--slices", "20", "--json", engine="spark")
    assert code == 0
    assert json.loads(out)["way"] == "exchange"
    assert f"{_CLOSED} the files are not in order of" in err


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_shifts_are_counted_of_rows_in_memory_or_by_spark(work, engine, request):
    if engine == "spark":
        request.getfixturevalue("spark")
    as_logs(work)
    told = summary(work, "--shifts", "400,-500", engine=engine)
    plain = summary(work, "--overwrite", engine=engine)
    assert plain["way"] == "files" != told["way"]
    assert "accidental_pairs" not in plain
    assert told["pairs"] == plain["pairs"]
    counts = told["accidental_by_shift"]
    assert list(counts) == ["400", "-500"]
    assert told["accidental_pairs"] == sum(counts.values()) / 2 > 5
    code, _, err = work.join(
        *WINDOW, "--shifts", "400", "--way", "files", "--overwrite", engine=engine
    )
    assert code == 2
    assert "shifts count the pairs of all slices again" in err
