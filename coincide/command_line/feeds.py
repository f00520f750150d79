"""What `coincide stream` reads and writes: topics of Kafka, and folders of Parquet files that grow."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from coincide.command_line.problems import Problem
from coincide.engine.files.credentials import NOT_FOR_SPARK, check_encoded, holds_settings
from coincide.engine.files.finding import find_files, local_path

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

KAFKA = "kafka://"
SKIPPED = "skipped"
"""What the observed count of records without a value, or with a wrong one, is called."""
_SERVER = re.compile(r"[^\s/@,:]+:\d+|\[[0-9A-Fa-f:.]+\]:\d+")
_TOPIC = re.compile(r"[\w.-]+", re.ASCII)
_COLUMNS = re.compile(r"\s*(`[^`]+`|\w+)(\s*:\s*|\s+)[A-Za-z]\w*.*", re.DOTALL)
"""How columns of SQL begin, such as ``id BIGINT, time TIMESTAMP``."""
_FEED = "kafka://HOST:PORT/TOPIC, or a folder of Parquet files"
_BROKEN = "_broken"
_MICROSECONDS = "yyyy-MM-dd'T'HH:mm:ss.SSSSSS"
"""Spark's own format of JSON cuts times to milliseconds."""
_CONNECTOR = "spark-sql-kafka-0-10_2.13"
_PACKAGES = {"Kafka": (_CONNECTOR,), "Avro": (_CONNECTOR, "spark-avro_2.13")}
_LACKING = {"Kafka": "data source: kafka", "Avro": "AVRO_NOT_LOADED"}
"""By package what Spark says where it is not there."""


@dataclass(frozen=True)
class Topic:
    """A topic of Kafka, and settings of clients: ``security.protocol`` and so on."""

    text: str
    servers: str
    name: str
    settings: Mapping[str, str]

    @property
    def options(self) -> dict[str, str]:
        """For Spark's readers and writers."""
        return {
            "kafka.bootstrap.servers": self.servers,
            **{f"kafka.{key}": value for key, value in self.settings.items()},
        }


@dataclass(frozen=True)
class TopicFeed:
    """Events that a topic holds as JSON, with columns that are said, or as Avro, with a schema."""

    topic: Topic
    columns: str = ""
    avro: str = ""
    begin: str = "earliest"
    most: int | None = None

    def frame(self, spark: SparkSession, side: str, drop: bool) -> DataFrame:
        """Its events; a record without a value is dropped and counted, and a wrong one, or an error."""
        from pyspark.sql import Column
        from pyspark.sql import functions as F

        most = {} if self.most is None else {"maxOffsetsPerTrigger": str(self.most)}
        reader = spark.readStream.format("kafka").options(
            **{"kafka.isolation.level": "read_committed"} | self.topic.options | most,
            subscribe=self.topic.name, startingOffsets=self.begin,
        )  # fmt: skip
        with _packages():
            found = reader.load().select("value", self._decoded().alias("event"))
        fields = [F.col(f"event.`{name}`") for name in found.select("event.*").columns]
        # Spark makes a record of nulls of Avro that it cannot read.
        nothing = reduce(Column.__and__, (field.isNull() for field in fields))
        is_broken = nothing if self.avro else fields[-1].isNotNull()
        is_none = F.col("value").isNull()
        is_skipped = is_none | is_broken if drop else is_none
        found = found.observe(f"{side}_{SKIPPED}", F.count_if(is_skipped).alias(SKIPPED))
        found = found.where(~is_skipped)
        if not drop:
            shown = F.substring(F.col("value").cast("string"), 1, 80)
            words = f"{side}: a record of {self.topic.text} is not {self._words} (found "
            cure = "). Mend the producer, or use --invalid drop."
            refused = F.raise_error(F.concat(F.lit(words), shown, F.lit(cure))).cast("boolean")
            found = found.where(F.when(is_broken, refused).otherwise(F.lit(True)))
        return found.select("event.*").drop(_BROKEN)

    @property
    def _words(self) -> str:
        return "Avro of the schema" if self.avro else f"JSON with the columns {self.columns}"

    def _decoded(self) -> Column:
        """The event of ``value``; in JSON the last field is the text of a bad record."""
        from pyspark.sql import functions as F

        if not self.avro:
            columns = f"{self.columns}, {_BROKEN} STRING"
            options = {"columnNameOfCorruptRecord": _BROKEN}
            return F.from_json(F.col("value").cast("string"), columns, options)
        from pyspark.sql.avro.functions import from_avro

        return from_avro("value", self.avro, {"mode": "PERMISSIVE"})


@dataclass(frozen=True)
class FolderFeed:
    """Events in Parquet files that come into a folder; columns as said, or as in the files there."""

    text: str
    columns: str = ""
    schema: pa.Schema | None = None
    most: int | None = None

    def frame(self, spark: SparkSession, side: str, drop: bool) -> DataFrame:
        """Its events."""
        path = spark_path(self.text)
        reader = spark.readStream.schema(self.columns or spark.read.parquet(path).schema)
        if self.most is not None:
            reader = reader.option("maxFilesPerTrigger", self.most)
        return reader.parquet(path)


@contextmanager
def _packages() -> Iterator[None]:
    """Turn what Spark says of a package that it lacks into the cure."""
    from pyspark import __version__
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        name = next((name for name, sign in _LACKING.items() if sign in str(error)), None)
        if name is None:
            raise
        needed = ",".join(f"org.apache.spark:{each}:{__version__}" for each in _PACKAGES[name])
        raise Problem(
            f"Spark lacks its package for {name}. Add --conf spark.jars.packages={needed}, which"
            " fetches it, or --conf spark.jars=JAR,JAR."
        ) from error


def feed_of(
    side: str,
    text: str,
    schema: str | None,
    settings: Mapping[str, str],
    begin: str,
    most: int | None,
) -> Feed:
    """What a word of the command line names, with the schema that is said of it."""
    columns, avro = _schema(side, schema)
    if text.startswith(KAFKA):
        if schema is None:
            raise Problem(
                f"--{side}-schema is missing, which says what the records of {text} hold. Give"
                " columns, such as 'id BIGINT, time TIMESTAMP', or a file of Parquet or Avro."
            )
        return TopicFeed(topic_of(f"the {side} input", text, settings), columns, avro, begin, most)
    if avro:
        raise Problem(f"--{side}-schema is for Avro, but {text} is a folder of Parquet. Remove it.")
    check_folder(f"the {side} input", text)
    is_known = not schema and local_path(text) is not None
    return FolderFeed(text, columns, _schema_of_files(side, text) if is_known else None, most)


def topic_of(what: str, text: str, settings: Mapping[str, str]) -> Topic:
    """A topic by its name: ``kafka://HOST:PORT,HOST:PORT/TOPIC``."""
    servers, _, name = text.removeprefix(KAFKA).partition("/")
    if not all(map(_SERVER.fullmatch, servers.split(","))) or not _TOPIC.fullmatch(name):
        cure = " Give passwords with --kafka." if "@" in servers else ""
        raise Problem(
            f"{what} must be written as kafka://HOST:PORT/TOPIC (found {text}). Correct it.{cure}"
        )
    return Topic(text, servers, name, settings)


def check_folder(what: str, text: str) -> None:
    """Refuse what is no folder's name, or what Spark would not open."""
    if not text.strip():
        cure = " with -o" if what == "the output" else ""
        raise Problem(f"{what} has no name. Give {_FEED}{cure}.")
    if text == "-" or os.path.isfile(text):
        raise Problem(f"{what} must be {_FEED} (found {text}). Name one of them.")
    if local_path(text) is None:
        check_encoded(what, text)
        if holds_settings(text):
            raise Problem(f"{what} {text} {NOT_FOR_SPARK}")


def spark_path(text: str) -> str:
    """A folder as Spark names it: without a scheme on this machine, whatever its own file system is."""
    path = local_path(text)
    return text if path is None else f"file://{path}"


def _schema(side: str, given: str | None) -> tuple[str, str]:
    """Columns of SQL, or a schema of Avro, that a word says or a file holds."""
    if given is None:
        return "", ""
    option = f"--{side}-schema"
    if given.lower().endswith(".avsc"):
        try:
            return "", Path(given).read_text(encoding="utf-8")
        except (OSError, UnicodeError) as error:
            raise Problem(f"{option}: cannot read {given}: {error}. Name another file.") from error
    if os.path.exists(given):
        return _columns_of_files(option, given), ""
    if not _COLUMNS.fullmatch(given):
        raise Problem(
            f"{option} must be columns, such as 'id BIGINT, time TIMESTAMP', or a file of Parquet"
            f" or Avro (found {given!r}). Correct it."
        )
    return given, ""


def _columns_of_files(option: str, given: str) -> str:
    """The columns of Parquet, as SQL writes them."""
    from pyspark.sql.pandas.types import from_arrow_schema

    kinds = from_arrow_schema(_schema_of_files(option, given), prefer_timestamp_ntz=True)
    return ", ".join(f"`{each.name}` {each.dataType.simpleString()}" for each in kinds)


def _schema_of_files(what: str, given: str) -> pa.Schema:
    """As the first file has it."""
    files = find_files(what, given)
    with files.reading(files.paths[0]):
        return pq.read_schema(files.paths[0]).remove_metadata()


Feed = TopicFeed | FolderFeed


@dataclass(frozen=True)
class TopicSink:
    """A topic that gets a JSON record a row. Records may come twice if a run is killed."""

    topic: Topic

    def writer(self, frame: DataFrame, keys: Sequence[str]) -> DataStreamWriter:
        """What writes the rows of a DataFrame there, under keys that some of its columns make."""
        value = _json([f"`{name}`" for name in frame.columns])
        key = [_json([f"`{name}`" for name in keys]).alias("key")] if keys else []
        records = frame.select(*key, value.alias("value"))
        return records.writeStream.format("kafka").options(
            **self.topic.options, topic=self.topic.name
        )


@dataclass(frozen=True)
class FolderSink:
    """A folder of Parquet files; its log names those that count, each row once."""

    text: str

    def writer(self, frame: DataFrame, keys: Sequence[str]) -> DataStreamWriter:
        """What writes the rows of a DataFrame there."""
        path = spark_path(self.text)
        return frame.writeStream.format("parquet").option("path", path)


Sink = TopicSink | FolderSink


def sink_of(text: str, settings: Mapping[str, str], checkpoint: str) -> Sink:
    """What --output names; the checkpoint tells whether it may hold rows already."""
    if not checkpoint.strip():
        raise Problem("--checkpoint is empty. Name a folder that is kept from run to run.")
    if text.startswith(KAFKA):
        return TopicSink(topic_of("the output", text, settings))
    check_folder("the output", text)
    folder, kept = local_path(text), local_path(checkpoint)
    # Spark would skip the first batches of a new run: the log of the folder has their numbers.
    if folder and kept and _holds_files(folder) and not _holds_files(kept):
        raise Problem(
            f"the output {text} holds files, but the checkpoint {checkpoint} holds no run that"
            " wrote them. Name another output, or the checkpoint of that run."
        )
    return FolderSink(text)


def _holds_files(folder: str) -> bool:
    return os.path.isdir(folder) and bool(os.listdir(folder))


def _json(columns: Sequence[str]) -> Column:
    from pyspark.sql import functions as F

    options = {
        "ignoreNullFields": "false",
        "timestampFormat": f"{_MICROSECONDS}XXX",
        "timestampNTZFormat": _MICROSECONDS,
    }
    return F.to_json(F.struct(*columns), options)
