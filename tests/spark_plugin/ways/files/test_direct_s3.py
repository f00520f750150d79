"""Parquet files on S3, by URI, from a server of its protocol in this process."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from pyspark.sql import SparkSession

from coincide import CorrelateOptions, TimingCondition, within
from coincide.command_line import run
from coincide.engine.files.footers import open_footer
from coincide.engine.files.publishing import Output
from coincide.model.errors import DataError
from spark_plugin.ways.files.source import CoincideSource
from tests.engine.test_credentials import assert_hidden as hidden
from tests.helpers.joins import join_files, local_files_join, table_join
from tests.helpers.rows import sorted_table
from tests.spark_plugin.ways.files.test_direct_join import stream

moto = pytest.importorskip("moto.server")

CONDITION = TimingCondition(within(-300, 100), 0.7)
OPTIONS = CorrelateOptions(slices=3)
KEY, SECRET = "AKIDofNobody", "N@ On's/\"S3cret?&=#%:+\\"
"""With all that a URI takes for its own marks."""
WINDOW = ["--within", "-300us", "100us", "--unit", "us", "--confidence", "0.7"]


class Bucket(NamedTuple):
    """A bucket with ``left.parquet`` and the folder ``right`` of three files."""

    query: str
    tables: tuple[pa.Table, pa.Table]

    def uri(self, path: str) -> str:
        return f"s3://{quote(KEY, safe='')}:{quote(SECRET, safe='')}@bucket/{path}{self.query}"

    def join(self) -> pa.Table:
        job = table_join(*self.tables, CONDITION)
        return sorted_table(pa.Table.from_batches(job.batches(), job.schema))


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    query = f"?scheme=http&endpoint_override={host}:{port}&region=us-east-1"
    made = Bucket(query, (stream(3000, 0), stream(3000, 1)))
    filesystem, _ = fs.FileSystem.from_uri(made.uri("") + "&allow_bucket_creation=true")
    filesystem.create_dir("bucket")
    left, right = made.tables
    parts = {f"right/day={i}/part.parquet": right.slice(1000 * i, 1000) for i in range(3)}
    for path, table in {"left.parquet": left, **parts}.items():
        pq.write_table(table, f"bucket/{path}", filesystem=filesystem, row_group_size=250)
    with filesystem.open_output_stream("bucket/bad.parquet") as bad:
        bad.write(b"PAR1 is no Parquet")
    yield made
    server.stop()


@pytest.mark.parametrize("right", ["right", "right/", "right/*/part.parquet", "right/day=*"])
def test_one_process(bucket: Bucket, right: str) -> None:
    job = local_files_join(
        bucket.uri("left.parquet"), bucket.uri(right), CONDITION, options=OPTIONS
    )
    found = pa.Table.from_batches(job.batches(), job.schema)
    assert sorted_table(found).equals(bucket.join())
    assert len(job.plan.slices) == 3


@pytest.mark.spark
def test_spark(bucket: Bucket, spark: SparkSession, tmp_path: Path) -> None:
    sides = bucket.uri("left.parquet"), bucket.uri("right")
    frame = join_files(spark, *sides, CONDITION, options=OPTIONS, way="files")
    want = bucket.join()
    assert sorted_table(frame.toArrow().cast(want.schema)).equals(want)
    assert_hidden(frame._jdf.queryExecution().toString())
    done = join_files(
        spark, *sides, CONDITION, options=OPTIONS, way="files", output=tmp_path / "out"
    )
    assert sorted_table(pq.read_table(tmp_path / "out")).equals(want)
    assert_hidden(str(done))


@pytest.mark.spark
def test_data_source(bucket: Bucket, spark: SparkSession) -> None:
    spark.dataSource.register(CoincideSource)
    options = {"left": bucket.uri("left.parquet"), "right": bucket.uri("right")}
    reader = spark.read.format("coincide").options(**options)
    frame = reader.options(within="-300us,100us", unit="us", confidence="0.7").load()
    assert frame.count() == bucket.join().num_rows
    assert_hidden(frame._jdf.queryExecution().toString())


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
@pytest.mark.parametrize("right", ["right", "right/*/*.parquet"])
def test_command(
    bucket: Bucket,
    engine: str,
    right: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    if engine == "spark":
        request.getfixturevalue("spark")
    out = tmp_path / "out.parquet"
    words = [bucket.uri("left.parquet"), bucket.uri(right), "-o", str(out), "--engine", engine]
    code = run(["join", *words, *WINDOW, "--format", "parquet", "--json"])
    said = capsys.readouterr()
    assert code == 0, said.err
    assert json.loads(said.out)["way"] == "files"
    assert_hidden(said.out + said.err)
    assert sorted_table(pq.read_table(out)).equals(bucket.join())


def test_content_that_only_the_store_tells_apart(bucket: Bucket) -> None:
    """One length and one footer, and perhaps one second: what is left is the ETag."""
    filesystem, _ = fs.FileSystem.from_uri(bucket.uri(""))

    def write(table: pa.Table) -> tuple[bytes, int]:
        pq.write_table(
            table, "bucket/same.parquet", filesystem=filesystem, compression="none",
            use_dictionary=False, write_statistics=["min_time", "max_time"],
        )  # fmt: skip
        with filesystem.open_input_file("bucket/same.parquet") as source:
            metadata, digest = open_footer(source)
            pages = source.size() - metadata.serialized_size - 8
            return source.read_at(source.size() - pages, pages), digest

    table = stream(500, 0)
    before, first = write(table)
    sides = bucket.uri("left.parquet"), bucket.uri("same.parquet")
    job = local_files_join(*sides, CONDITION, options=OPTIONS)
    after, second = write(table.set_column(0, "id", table["id"].take(pa.array(range(499, -1, -1)))))
    assert before == after
    assert first != second
    with pytest.raises(DataError, match=r"right: bucket/same\.parquet has changed since"):
        list(job.batches())


def test_output_of_one_process(bucket: Bucket, capsys: pytest.CaptureFixture[str]) -> None:
    """The one file, instead of an older one; what a killed run has left goes."""
    filesystem, _ = fs.FileSystem.from_uri(bucket.uri(""))
    with filesystem.open_output_stream(f"bucket/out/.a.parquet.coincide-{7:032x}/new") as left:
        left.write(b"PAR1")
    sides = bucket.uri("left.parquet"), bucket.uri("right")
    words = ["join", *sides, "-o", bucket.uri("out/a.parquet"), *WINDOW, "--engine", "local"]
    for more, code in (([], 0), ([], 2), (["--overwrite"], 0)):
        assert run([*words, "--format", "parquet", *more]) == code
        assert_hidden("".join(capsys.readouterr()))
        there = filesystem.get_file_info(fs.FileSelector("bucket/out"))
        assert [info.base_name for info in there] == ["a.parquet"]
    found = pq.read_table("bucket/out/a.parquet", filesystem=filesystem)
    assert sorted_table(found).equals(bucket.join())


def test_output(bucket: Bucket) -> None:
    with pytest.raises(
        DataError, match="s3://bucket/out lies where folders cannot be renamed"
    ) as e:
        Output(bucket.uri("out"), True)
    assert_hidden(str(e.value))


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ("none.parquet", "s3://bucket/none.parquet does not exist"),
        ("no*.parquet", "no file matches s3://bucket/no*.parquet"),
        ("bad.parquet", "bucket/bad.parquet as "),
        ("a?.parquet", "cannot open s3://bucket/a: Unexpected query parameter"),
    ],
)
@pytest.mark.parametrize("debug", [[], ["--debug"]])
def test_errors_name_the_file_alone(
    bucket: Bucket, left: str, words: str, debug: list[str], tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with pytest.raises(DataError) as raised:
        local_files_join(bucket.uri(left), bucket.uri("right"), CONDITION)
    assert words in str(raised.value)
    assert_hidden(str(raised.value))
    out = tmp_path / "out.parquet"
    command = ["join", bucket.uri(left), bucket.uri("right"), "-o", str(out), "--engine", "local"]
    assert run([*command, *WINDOW, "--format", "parquet", *debug]) == 2
    said = capsys.readouterr()
    assert_hidden(said.out + said.err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_spark_itself_is_given_no_credentials(
    bucket: Bucket, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sides = bucket.uri("left.parquet"), bucket.uri("right")
    with pytest.raises(
        DataError, match=r"left: s3://bucket/left\.parquet would be opened by Spark"
    ):
        join_files(spark, *sides, CONDITION, way="exchange")
    common = ["--engine", "spark", "--format", "parquet", *WINDOW]
    for words in (
        [*sides, "-o", str(tmp_path / "out"), "--way", "exchange"],
        [*sides, "-o", bucket.uri("out")],
    ):
        assert run(["join", *words, *common]) == 2
        said = capsys.readouterr()
        assert "would be opened by Spark, which takes no credentials or" in said.err
        assert_hidden(said.out + said.err)
    assert list(tmp_path.iterdir()) == []


def assert_hidden(text: str) -> None:
    for secret in (KEY, SECRET):
        hidden(text, secret, quote(secret, safe=""))
