"""`coincide join` and `coincide demo` on Spark."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from coincide import DataError, MemoryBudgetError
from coincide.command_line import run
from coincide.command_line.problems import explain
from tests.helpers.rows import in_order
from tests.helpers.workplace import WINDOW, coincide, events, interrupted


@pytest.mark.spark
def test_spark_writes_the_same_rows(work, command_spark):
    code, out, err = work.join(*WINDOW, "--by", "key", "--probability", "--json", engine="spark")
    assert (code, err) == (0, "")
    expected = work.expected(by="key", probability=True)
    assert work.output.is_dir()
    assert in_order(work.result()) == in_order(expected)
    summary = json.loads(out)
    assert summary["pairs"] == summary["rows"] == expected.num_rows
    assert summary["left"] == {"rows": 4, "unmatchable": 0, "invalid": {}}
    assert [path.name for path in work.output.parent.iterdir()] == ["out.parquet"]


@pytest.mark.spark
def test_spark_replaces_a_folder_and_finds_its_way_through_odd_names(work, command_spark):
    work.output = work.output.parent / "a b[c]{d},%20é"
    for overwrite in ([], ["--overwrite"]):
        assert work.join(*WINDOW, *overwrite, engine="spark")[0] == 0
    expected = work.expected().num_rows
    work.left = work.output
    work.output = work.output.parent / "second"
    options = ("--left-columns", "left_id", "--left-time", "left_id", "--right-time", "min_time")
    code, _, err = work.join("--within", "-99", "99", "--confidence", "1", *options, engine="spark")
    assert code == 0, err
    assert work.result().num_rows == 4 * expected


@pytest.mark.spark
def test_spark_writes_an_empty_result(work, command_spark):
    assert work.join("--within", "500", "600", "--confidence", "1", engine="spark")[0] == 0
    assert work.result().num_rows == 0
    assert work.result().column_names == ["left_id", "right_id"]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("changes", "options", "words"),
    [
        (
            {"min_time": [0, 99, 20, 30]},
            [],
            "left: min above max in min_time and max_time in 1 row",
        ),
        ({"max_time": [4, 14, 24, 2**61]}, [], "left: times that reach 2^61 ticks"),
        (
            {"max_time": [4.0, 14.0, float("nan"), 34.0]},
            ["--unit", "s", "--tick", "ns"],
            "left: NaN or infinity",
        ),
        (
            {"max_time": [4.0, 14.0, float("inf"), 34.0]},
            ["--unit", "s", "--tick", "ns"],
            "left: NaN or infinity",
        ),
        (
            {"max_time": [4.0, 14.0, 24.0, 34.0]},
            [],
            "float time columns need a unit (found none for left.max_time",
        ),
        ({}, ["--left-longest", "3"], "left: timestamps longer than the declared longest length"),
        ({}, ["--left-time", "key"], "left.key must be a timestamp, a date, a"),
        ({}, ["--by", "nothing"], "left has no column 'nothing'"),
        ({}, ["--unit", "ms", "--within", "-3us", "5us"], "not a whole number"),
        ({"key": [1, 2, 3, 4]}, ["--by", "key"], "the key 'key' is"),
    ],
    ids=lambda value: "",
)
def test_spark_refuses_bad_data(work, command_spark, changes, options, words):
    work.write("left.parquet", events(**changes))
    assert words in work.refused(*WINDOW, *options, engine="spark")


@pytest.mark.spark
def test_spark_finds_one_corrupt_file_among_many(work, command_spark):
    work.left = work.folder / "many"
    work.left.mkdir()
    pq.write_table(events(), work.left / "a.parquet")
    (work.left / "b.parquet").write_bytes(b"PAR1 no PAR1")
    assert "b.parquet" in work.refused(*WINDOW, engine="spark")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (DataError("left: one line"), 2, "left: one line"),
        (MemoryBudgetError("too much"), 2, "too much"),
        (KeyError("a bug"), 1, "KeyError"),
    ],
    ids=["data", "memory", "bug"],
)
def test_errors_of_workers(command_spark, error, code, words):
    def fail(batches):
        raise error

    with pytest.raises(Exception) as caught:  # noqa: PT011 - whatever Spark makes of it
        command_spark.range(1).mapInArrow(fail, "id long").collect()
    found, message = explain(caught.value)
    assert found == code
    assert message == words if code == 2 else words in message


@pytest.mark.spark
def test_spark_writes_instants_that_others_read_as_instants(work, command_spark):
    instants = pa.array([0, 10, 20, 30]).cast(pa.timestamp("us", "UTC"))
    work.write("left.parquet", events(min_time=instants, max_time=instants))
    work.write("right.parquet", events(min_time=instants, max_time=instants))
    handed = ("--left-columns", "min_time")
    assert (
        work.join("--mutual-deadline", "0s", "--confidence", "1", *handed, engine="spark")[0] == 0
    )
    assert work.result().schema.field("left_min_time").type == pa.timestamp("us", "UTC")
    assert sorted(work.result()["left_min_time"].cast(pa.int64()).to_pylist()) == [0, 10, 20, 30]


@pytest.mark.spark
def test_timestamps_may_be_written_otherwise(command_spark):
    from spark_plugin.cluster.session import local_session

    name = "spark.sql.parquet.outputTimestampType"
    other = local_session("local[2]", "coincide-tests", **{name: "INT96"})
    assert other.conf.get(name) == "INT96"
    assert local_session("local[2]", "coincide-tests").conf.get(name) == "TIMESTAMP_MICROS"


@pytest.mark.spark
def test_spark_knows_not_every_file_system(work, command_spark):
    work.left = "foo://x/l.parquet"
    assert "Spark has no file system foo://" in work.refused(*WINDOW, engine="spark")


@pytest.mark.spark
def test_spark_errors_are_not_printed_as_json(command_spark):
    from pyspark.errors import AnalysisException
    from pyspark.logger import PySparkLogger

    from coincide.command_line.spark import session

    loggers = [
        PySparkLogger.getLogger(name)
        for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
    ]
    said: list[object] = []
    for logger in loggers:
        logger.addFilter(said.append)  # whatever the handler's stream: it belongs to another test
    try:
        for debug in (False, True):
            with session(None, {}, debug) as ours, pytest.raises(AnalysisException):
                ours.range(1).selectExpr("nothing % 1000")
            assert bool(said) == debug
    finally:
        for logger in loggers:
            logger.removeFilter(said.append)
    assert not any(logger.disabled for logger in loggers)


@pytest.mark.spark
def test_spark_drops_invalid_rows(work, command_spark):
    work.write("left.parquet", events(min_time=[0, None, 99, 30]))
    code, out, _ = work.join(*WINDOW, "--invalid", "drop", "--json", engine="spark")
    assert code == 0
    assert json.loads(out)["left"] == {"rows": 4, "unmatchable": 1, "invalid": {"order": 1}}


@pytest.mark.spark
def test_spark_as_a_process_says_nothing_but_the_summary(work):
    words = [str(work.left), str(work.right), "-o", str(work.output), *WINDOW]
    answer = coincide(
        "join", *words, "--engine", "spark", "--master", "local[1]", TMPDIR=str(work.folder)
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr == ""
    assert [line.split()[0] for line in answer.stdout.splitlines()] == [
        "left", "right", "candidates", "probed", "pairs", "slices", "way", "seconds", "output"
    ]  # fmt: skip
    assert in_order(work.result()) == in_order(work.expected())
    assert not list(work.folder.glob("coincide-spark-*"))


@pytest.mark.spark
def test_spark_interrupted(work):
    many = {"id": list(range(30_000)), "min_time": [0] * 30_000, "max_time": [10] * 30_000}
    for name in ("left.parquet", "right.parquet"):
        work.write(name, pa.table(many))
    words = [
        str(work.left),
        str(work.right),
        "-o",
        str(work.output),
        *WINDOW,
        "--master",
        "local[1]",
    ]
    exit_code, err = interrupted(work, "join", *words)
    assert exit_code == 130
    assert err == "coincide: interrupted. The output was not written\n"
    assert list(work.output.parent.iterdir()) == []


@pytest.mark.spark
def test_demo_on_spark(command_spark, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    assert run(["demo", "--rows", "2000"]) == 0
    said = capsys.readouterr()
    assert "Spark, local[*]" in said.out
    assert said.err == ""


@pytest.mark.parametrize("version", ["25", None])
def test_spark_without_a_java_that_it_runs_on(work, version):
    home = work.folder / "java"
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    if version:
        answer = f"    java.home = {home}\n    java.specification.version = {version}\n"
        java.write_text(f"#!/bin/sh\ncat >&2 <<END\n{answer}END\n")
        java.chmod(0o755)
    words = [str(work.left), str(work.right), "-o", str(work.output), *WINDOW]
    words += ["--engine", "spark"]
    answer = coincide("join", *words, JAVA_HOME=str(home), COINCIDE_JVM_ROOT=str(work.folder))
    assert answer.returncode == 2
    assert len(answer.stderr.splitlines()) == 1
    assert answer.stderr.startswith("coincide: Spark needs Java 17 or 21, but JAVA_HOME=")
    assert list(work.output.parent.iterdir()) == []
