"""Joins of files as a data source: for SQL, and for Spark's clients in other languages."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from coincide.engine.backends import release_gpu
from coincide.engine.events.schemas import narrow_type
from coincide.engine.files.credentials import Redactor
from coincide.engine.files.finding import find_files
from coincide.engine.files.planning import check_for_tasks, plan_files
from coincide.engine.files.slice_join import DirectJoin, join_slice, read_slice
from coincide.engine.files.source import FORMATS, as_parquet
from coincide.engine.join.pair_arguments import EVENT
from coincide.engine.join.text_options import (
    LISTS,
    TEXTS,
    TRUTHS,
    WHOLES,
    both_ends,
    check_of_slices,
    names,
    worded_join,
)
from coincide.model.condition import of_percent
from coincide.model.errors import (
    Argument,
    CoincideError,
    ConditionError,
    DataError,
    brief,
    worded,
)
from coincide.model.remembered import remembered
from coincide.model.sides import SIDES
from spark_plugin.cluster.worker_python import check_workers
from spark_plugin.frames.columns import arrow_schema, spark_type
from spark_plugin.tasks import IN_WORKER

_log = logging.getLogger(__name__)
_OWN = ("left", "right", "parallelism")
OPTIONS = (*_OWN, *TEXTS, *LISTS, *WHOLES, *TRUTHS, "within", "confidence")
"""Options of the source, named as those of `coincide join`, with the same defaults."""
_PARALLELISM = "8"


def register_source(spark: SparkSession) -> None:
    """Register the data source ``coincide`` in a session.

    As ``spark.dataSource.register(CoincideSource)``, but where the workers' Python cannot run it, that
    is said now and in one line.

    Parameters
    ----------
    spark : SparkSession

    Raises
    ------
    BackendError
        If Spark's Python workers lack Coincide or what it needs, or have another version.
    """
    check_workers(spark)
    spark.dataSource.register(CoincideSource)


@contextmanager
def _in_few_words() -> Iterator[None]:
    """Raise our errors alone: Spark shows all of a chain, and each function that was on the way."""
    try:
        yield
    except CoincideError as error:
        if IN_WORKER:  # which ends here: Spark tells an error of it by its words alone
            os.environ["SPARK_HIDE_TRACEBACK"] = "1"
        raise type(error)(worded(error, as_source_option)) from None


def as_source_option(argument: Argument) -> str:
    """What an argument is called here: ``unit 'us'``."""
    return f"{argument.name} '{argument.typed}'" if argument.shown else argument.name


class CoincideSource(DataSource):
    """The data source ``coincide``.

    Options: ``left`` and ``right`` (files, folders or globs, several separated by commas; without ``right``
    the events of ``left`` are joined with themselves; Parquet), ``within`` ("LO,HI") or
    ``mutual_deadline``, ``confidence``, and the other options of ``coincide join`` with ``_`` for ``-``;
    ``parallelism`` is the number of tasks to aim at (8).
    """

    @classmethod
    def name(cls) -> str:
        """What ``format`` and ``USING`` call it."""
        return "coincide"

    @remembered
    def join(self) -> DirectJoin:
        """The planned join."""
        return _planned(dict(self.options))

    @_in_few_words()
    def schema(self) -> T.StructType:
        """Columns of the result."""
        fields = [T.StructField(f.name, _kind(f)) for f in self.join.tables.schema]
        return T.StructType(fields)

    @_in_few_words()
    def reader(self, schema: T.StructType) -> DataSourceReader:
        """Reads the slices."""
        return CoincideReader(self.join, schema)


class CoincideReader(DataSourceReader):
    """Joins a slice per partition."""

    def __init__(self, join: DirectJoin, schema: T.StructType) -> None:
        self._join, self._schema = join, schema

    def partitions(self) -> list[InputPartition]:
        """The slices, those of right events without a match last."""
        alone = self._join.alone
        count = self._join.count + (0 if alone is None else alone.count)
        return [InputPartition(number) for number in range(count)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Join one slice."""
        wanted = arrow_schema(self._schema)
        join, number = self._join, partition.value
        if number >= join.count:
            assert join.alone is not None
            join, number = join.alone, number - join.count
        # No list may be longer than what Spark takes: it is refused in our words, not by the cast.
        narrow = [field.with_type(narrow_type(field.type)) for field in join.tables.schema]
        tables = replace(join.tables, schema=pa.schema(narrow))
        try:
            with _in_few_words():
                for batch in join_slice(replace(join, tables=tables), read_slice(join, number)):
                    yield _in_spark(batch, wanted)
        finally:
            release_gpu()


def _in_spark(batch: pa.RecordBatch, wanted: pa.Schema) -> pa.RecordBatch:
    """Rows in the types of Spark, whose times are microseconds."""
    for column, field in zip(batch.columns, wanted, strict=True):
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            try:
                column.cast(field.type)
            except pa.ArrowInvalid:
                raise DataError(
                    f"the column {field.name!r} has timestamps finer than Spark's microseconds."
                    " Round them, or remove it."
                ) from None
    return batch.cast(wanted)


def _kind(field: pa.Field) -> T.DataType:
    if pa.types.is_list(field.type):
        return T.ArrayType(spark_type(field.name, field.type.value_type))
    return spark_type(field.name, field.type)


def _planned(options: dict[str, str]) -> DirectJoin:
    """The join that options ask for."""
    given = {name.lower(): value for name, value in options.items()}
    with _hidden(given):
        _check_options(given)
        arguments = worded_join(_words(given))
        parallelism = _number("parallelism", given.get("parallelism", _PARALLELISM), int)
        left, right = (
            names(f"the option {side}", [given[side]]) if side in given else None for side in SIDES
        )
        assert left is not None
        with _naming_other_inputs(left, right):
            join = plan_files(left, right, arguments, parallelism=parallelism)
            check_for_tasks(join)
    if join.tables.invalid == "drop":
        _log.warning(
            "coincide: the data source skips invalid rows without counting them. To learn how"
            " many, use correlate_files with report=JoinReport(), or coincide join."
        )
    return join.with_spec(threads=arguments.options.threads or 1)


def _check_options(given: dict[str, str]) -> None:
    check_of_slices(given)
    unknown = sorted(set(given) - set(OPTIONS))
    if unknown and (unknown[0] == "format" or "csv" in unknown[0]):
        raise ConditionError(
            f"the data source reads Parquet only, so there is no option {unknown[0]!r}."
            f" {as_parquet(given.get('left', 'a.csv'))}"
        )
    if unknown:
        raise ConditionError(
            f"there is no option {unknown[0]!r}. Use one of {', '.join(sorted(OPTIONS))}."
        )
    if "left" not in given:
        raise ConditionError("the option 'left' is missing. Give files, a folder or a glob.")


def _words(given: dict[str, str]) -> dict[str, Any]:
    """The options as `worded_join` takes them."""
    words = {name: _read(name, text) for name, text in given.items() if name not in _OWN}
    return {**words, "right": given.get("right"), "way": "files"}


def _read(name: str, text: str) -> Any:
    if name in LISTS:
        return [text]
    if name in WHOLES:
        return _number(name, text, int)
    if name == "confidence":
        return _number(name, of_percent(text), float)
    if name in TRUTHS:
        return _truth(name, text)
    return _two(text) if name == "within" else text


@contextmanager
def _hidden(given: dict[str, str]) -> Iterator[None]:
    """Errors without the secrets of the options: Spark shows their text, and all of a chain."""
    hide = Redactor.of(given.values())
    try:
        yield
    except CoincideError as error:
        raise type(error)(hide(error)) from None


def _number(name: str, text: str, kind: type[int] | type[float]) -> Any:
    try:
        return kind(text)
    except ValueError:
        raise ConditionError(
            f"the option {name!r} must be a number (found {brief(text)})."
        ) from None


def _truth(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ConditionError(f"the option {name!r} must be true or false (found {text!r}).")
    return text.lower() == "true"


def _two(text: str) -> tuple[str, str]:
    ends = names("the option within", [text])
    if len(ends) == 1:
        return both_ends(ends[0])
    if len(ends) != 2:
        raise ConditionError(
            "the option 'within' takes LO,HI, such as '-250ms,250ms', or one duration (found"
            f" {text!r})."
        )
    return ends[0], ends[1]


_PARQUET = FORMATS["parquet"]
_TABLE = re.compile(r"`?\w+`?(\.`?\w+`?){0,2}")
_NO_TABLES = (
    "It does not name a file, and Spark does not give tables and views to a data source. In"
    " Python, correlate(spark.table('{}'), ...).createOrReplaceTempView('pairs') joins one for"
    " SQL."
)


@contextmanager
def _naming_other_inputs(left: list[str], right: list[str] | None) -> Iterator[None]:
    """A file that never was Parquet is not corrupt, and a table is no file: say what takes it."""
    try:
        yield
    except DataError as error:
        inputs = [(EVENT, left)] if right is None else zip(SIDES, (left, right), strict=True)
        for side, given in inputs:
            for word in filter(_TABLE.fullmatch, given):
                if str(error) == f"{side}: {word} does not exist. Check its name.":
                    raise DataError(f"{error}; {_NO_TABLES.format(word)}") from None
            if (path := _no_parquet(side, given, str(error))) is not None:
                raise DataError(
                    f"{side}: the data source reads Parquet only (found another format in"
                    f" {path}). {as_parquet(path)}"
                ) from None
        raise


def _no_parquet(side: str, given: list[str], told: str) -> str | None:
    """The file that could not be read, if it does not even look like Parquet."""
    begin = f"{side}: cannot read "
    if not told.startswith(begin):
        return None
    files = find_files(side, given)
    failed = (path for path in files.paths if told.startswith(f"{begin}{path} as Parquet"))
    return next((path for path in failed if not _is_parquet(files.filesystem, path)), None)


def _is_parquet(filesystem: fs.FileSystem, path: str) -> bool:
    """By its name, or else by its first bytes."""
    if path.lower().endswith(_PARQUET.endings):
        return True
    try:
        with filesystem.open_input_file(path) as file:
            return bytes(file.read(4)).startswith(_PARQUET.magic)
    except (pa.ArrowException, OSError):
        return True
