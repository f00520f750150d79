"""The workers of files that are read directly: a slice in, Arrow batches or a file out."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import ClassVar

import pyarrow as pa
from pyarrow import fs

from coincide.engine.backends import release_gpu
from coincide.engine.events.sides import Side
from coincide.engine.files.result_rows import ParquetRows
from coincide.engine.files.slice_join import DirectJoin, SliceRows, join_slice, read_slice
from coincide.engine.join.spec import output_schema
from coincide.engine.reports.join_report import StepSeconds
from coincide.engine.reports.metrics import TALLY, JoinTally, numbers_of, with_numbers
from coincide.model.errors import CoincideError, marked
from spark_plugin.tasks.connection import begin_task
from spark_plugin.tasks.counting import Answer, CountingTask
from spark_plugin.tasks.wire import on_the_wire

Columns = tuple[tuple[str, pa.DataType], ...]
"""Columns by name, with the types in which they cross."""


@dataclass(frozen=True)
class BatchTask(CountingTask):
    """Joins the slices whose numbers come in, and yields the matches in wire types."""

    counted: ClassVar[tuple[str, ...]] = TALLY

    join: DirectJoin
    by: Columns
    left: Columns
    right: Columns
    names: tuple[str, ...]
    metrics: str | None = None

    def answers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Answer]:
        """The output columns of all slices of one partition."""
        tables = replace(self.join.tables, schema=self._schema())
        join, tally = replace(self.join, tables=tables), JoinTally()
        for number in _numbers(batches):
            rows = read_slice(join, number)
            rows = replace(rows, left=self._side(rows, 0), right=self._side(rows, 1))
            emission = join_slice(join, rows)
            for batch in emission:
                yield batch.columns, None
            tally += JoinTally(*rows.counts, emission.counters)
        yield [pa.nulls(1, field.type) for field in tables.schema], numbers_of(tally)

    def _schema(self) -> pa.Schema:
        groups = [
            [pa.field(f"{prefix}{i}", kind) for i, (_, kind) in enumerate(columns)]
            for prefix, columns in (("by", self.by), ("left", self.left), ("right", self.right))
        ]
        return output_schema(self.join.tables.spec.on_the_wire, *groups)

    def _side(self, rows: SliceRows, side: int) -> Side:
        given, payload = ((rows.left, self.left), (rows.right, self.right))[side]
        # Those of right are looked at, no more: whole numbers may be of another width there.
        keys = [
            key if side and pa.types.is_integer(key.type) else on_the_wire(name, key, kind)
            for key, (name, kind) in zip(given.keys, self.by, strict=True)
        ]
        return replace(
            given,
            keys=keys,
            payload=_encoded(given.payload, payload),
        )


def _encoded(columns: list[pa.Array], kinds: Columns) -> list[pa.Array]:
    pairs = zip(columns, kinds, strict=True)
    return [on_the_wire(name, column, kind) for column, (name, kind) in pairs]


@dataclass(frozen=True)
class SliceReport:
    """What became of one slice."""

    number: int
    path: str = ""
    rows: int = 0
    size: int = 0
    tally: JoinTally = field(default_factory=JoinTally)
    steps: StepSeconds = field(default_factory=StepSeconds)
    error: str = ""
    text: str = ""

    def to_json(self) -> str:
        """As text, which every Spark carries."""
        return json.dumps(asdict(self) | {"tally": numbers_of(self.tally)})

    @classmethod
    def from_json(cls, text: str) -> SliceReport:
        """Back from text."""
        values = json.loads(text)
        tally = with_numbers(JoinTally(), values["tally"])
        return cls(**(values | {"tally": tally, "steps": StepSeconds(**values["steps"])}))


@dataclass(frozen=True)
class FileTask:
    """Joins slices, writes each to a file of a name of its own, and yields reports: only those count."""

    join: DirectJoin
    filesystem: fs.FileSystem
    folder: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Join and write the slices of one partition."""
        batches = begin_task(batches)
        for number in _numbers(batches):
            try:
                report = self.write(number)
            except CoincideError as error:
                # Told as a result: a failed task would be tried again, and end as a trace.
                report = SliceReport(number, error=type(error).__name__, text=marked(error))
            finally:
                release_gpu()
            yield pa.RecordBatch.from_pydict({"report": [report.to_json()]})

    def write(self, number: int) -> SliceReport:
        """Join one slice and write its matches."""
        begun = time.perf_counter()
        rows = read_slice(self.join, number)
        read = written = time.perf_counter()
        correlating = 0.0
        emission = join_slice(self.join, rows)
        path = f"{self.folder}/part-{number:05d}-{uuid.uuid4().hex}.parquet"
        opened = partial(self.filesystem.open_output_stream, path)
        with ParquetRows(path, opened, self.join.tables.schema) as output:
            for batch in emission:
                correlating += time.perf_counter() - written
                output.write(batch)
                written = time.perf_counter()
            correlating += time.perf_counter() - written
        writing = time.perf_counter() - read - correlating
        size = self.filesystem.get_file_info(path).size
        return SliceReport(
            number, path, output.rows, size, JoinTally(*rows.counts, emission.counters),
            steps=StepSeconds(read - begun, correlating, writing),
        )  # fmt: skip


def _numbers(batches: Iterable[pa.RecordBatch]) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()
