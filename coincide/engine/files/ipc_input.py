"""Arrow IPC: files and streams."""

from __future__ import annotations

import pyarrow as pa

from coincide.engine.events.schemas import with_types
from coincide.engine.files.arrow_inputs import ArrowInput

_FILE_MAGIC = b"ARROW1"


class Reader(ArrowInput):
    """An input of Arrow IPC."""

    def file_schema(self, file: str) -> pa.Schema:
        """As it is told at the beginning."""
        with self._open(file) as reader:
            return reader.schema

    def whole_table(self, schema: pa.Schema) -> pa.Table:
        """The columns of a schema in the files' types, but for those of which they tell none."""
        own = self.own(schema)
        return pa.concat_tables(
            self.named(self._table(file, own), file, schema) for file in self.source.found.paths
        )

    def _table(self, file: str, schema: pa.Schema) -> pa.Table:
        with self._open(file) as reader:
            table = reader.read_all().select(schema.names)
        unknown = [field.name for field in table.schema if pa.types.is_null(field.type)]
        return table.cast(
            with_types(table.schema, {name: schema.field(name).type for name in unknown})
        )

    def _open(self, file: str) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
        handle = self.source.found.filesystem.open_input_file(file)
        if handle.read(len(_FILE_MAGIC)) == _FILE_MAGIC:
            return pa.ipc.open_file(handle, options=None)
        handle.seek(0)
        return pa.ipc.open_stream(handle)
