"""Inputs of CSV and of Arrow IPC block by block: memory is that of a block, whatever a file holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from coincide.engine.events.schemas import check_name, with_types
from coincide.engine.files.arrow_inputs import ArrowInput
from coincide.engine.files.csv_times import (
    WrittenNumbers,
    WrittenTimes,
    floats_of,
    read_as_texts,
    with_texts,
)
from coincide.engine.files.source import reading


class Written(NamedTuple):
    """What all rows of an input say."""

    schema: pa.Schema
    wholes: frozenset[str]
    empty: frozenset[str]
    rows: int
    bytes: int


def blocks(given: ArrowInput, file: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """Some columns of a file, as they are there."""
    with reading(given.source):
        if given.source.file_format == "csv":
            for block in given.csv_file(file).blocks(given.own(schema)):
                yield given.named(block, file, schema)
            return
        with given.open_ipc(file) as reader:
            for batch in _batches(reader):
                own = given.own(schema).names
                for name in own:
                    check_name(given.source.side, name, batch.schema.names)
                yield given.named(pa.Table.from_batches([batch.select(own)]), file, schema)


def as_written(given: ArrowInput, schema: pa.Schema) -> Written:
    """What all rows of all files say of columns."""
    read, seen = schema, {}
    times: dict[str, WrittenTimes] = {}
    if given.source.file_format == "csv":
        told, decimal = with_texts(schema, given.as_told), given.source.csv.decimal
        times = {name: WrittenTimes(decimal) for name in floats_of(told, given.decimals)}
        read = read_as_texts(told, times)
        seen = {
            name: WrittenNumbers(schema.field(name).type, decimal) for name in given.guessed(schema)
        }
    rows = size = 0
    filled: set[str] = set()
    for file in given.source.found.paths:
        for block in blocks(given, file, read):
            rows, size = rows + len(block), size + block.nbytes
            try:
                for name, written in times.items():
                    written.look_at(block.column(name))
            except pa.ArrowInvalid:
                deque(blocks(given, file, told), 0)  # says where the text is that is no number
                raise
            for name, numbers in seen.items():
                numbers.numbers(block.column(name))
                if block.column(name).null_count < len(block):
                    filled.add(name)
    plain = {name for name, numbers in seen.items() if numbers.are_plain}
    found = pa.schema([f if f.name in plain else read.field(f.name) for f in schema])
    found = with_types(found, {name: written.kind for name, written in times.items()})
    wholes = frozenset(name for name in plain if seen[name].are_whole)
    empty = frozenset(name for name in seen if name not in filled)
    return Written(found, wholes, empty, rows, size)


def _batches(
    reader: pa.RecordBatchFileReader | pa.RecordBatchStreamReader,
) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.RecordBatchFileReader):
        return map(reader.get_batch, range(reader.num_record_batches))
    return iter(reader)
