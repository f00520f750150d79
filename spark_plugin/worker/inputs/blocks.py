"""Inputs of CSV and of Arrow IPC block by block: memory is that of a block, whatever a file holds."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from spark_plugin.worker.arrow.schemas import check_name
from spark_plugin.worker.inputs.arrow_inputs import ArrowInput
from spark_plugin.worker.inputs.csv_numbers import WrittenNumbers, with_texts
from spark_plugin.worker.inputs.source import reading


def blocks(given: ArrowInput, file: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Some columns of a file, as they are there.

    Parameters
    ----------
    given : ArrowInput
        Of CSV or Arrow IPC.
    file : str
        One of its paths.
    schema : pa.Schema
        Names, and of CSV the types to read by.

    Raises
    ------
    DataError
        If it cannot be read.
    """
    with reading(given.source):
        if given.source.file_format == "csv":
            yield from given.csv_file(file).blocks(schema)
            return
        with given.open_ipc(file) as reader:
            for batch in _batches(reader):
                for name in schema.names:
                    check_name(given.source.side, name, batch.schema.names)
                yield batch.select(schema.names)


def as_written(given: ArrowInput, schema: pa.Schema) -> tuple[pa.Schema, int, int]:
    """The types of columns as all rows of all files have them; the rows, and their bytes in memory.

    Parameters
    ----------
    given : ArrowInput
        Of CSV or Arrow IPC.
    schema : pa.Schema
        As `ArrowInput.typed` gives it: of CSV numbers where the beginning has such.

    Raises
    ------
    DataError
        If a file cannot be read, or a cell does not fit its column.
    """
    read, seen = schema, {}
    if given.source.file_format == "csv":
        read = with_texts(schema, given.as_told)
        changed = [field for field in schema if field.type != read.field(field.name).type]
        seen = {f.name: WrittenNumbers(f.type, given.source.csv.decimal) for f in changed}
    rows = size = 0
    for file in given.source.found.paths:
        for batch in blocks(given, file, read):
            rows, size = rows + len(batch), size + batch.nbytes
            for name, numbers in seen.items():
                numbers.numbers(batch.column(name))
    plain = {name for name, numbers in seen.items() if numbers.are_plain}
    found = pa.schema([f if f.name in plain else read.field(f.name) for f in schema])
    return found, rows, size


def _batches(
    reader: pa.RecordBatchFileReader | pa.RecordBatchStreamReader,
) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.RecordBatchFileReader):
        return map(reader.get_batch, range(reader.num_record_batches))
    return iter(reader)
