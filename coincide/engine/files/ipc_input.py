"""Arrow IPC: files and streams."""

from __future__ import annotations

import pyarrow as pa

from coincide.engine.events.schemas import in_usable_types, usable_type, with_types
from coincide.engine.files.arrow_inputs import ArrowInput
from coincide.engine.files.source import reading
from coincide.model.remembered import remembered

_FILE_MAGIC = b"ARROW1"


class Reader(ArrowInput):
    """An input of Arrow IPC."""

    def file_schema(self, file: str) -> pa.Schema:
        """The schema at the beginning."""
        with self._open(file) as reader:
            kinds = {field.name: usable_type(field.type) for field in reader.schema}
            return with_types(reader.schema, kinds)

    @remembered
    def file_schemas(self) -> list[tuple[str, pa.Schema]]:
        """Path and schema of each file."""
        with reading(self.source):
            return [(path, self.file_schema(path)) for path in self.source.found.paths]

    def whole_table(self, schema: pa.Schema) -> pa.Table:
        """The columns of a schema in the files' types, but for those of which they tell none."""
        own = self.own(schema)
        return pa.concat_tables(
            self.named(self._table(file, own), file, schema) for file in self.source.found.paths
        )

    def _table(self, file: str, schema: pa.Schema) -> pa.Table:
        with self._open(file) as reader:
            table = in_usable_types(reader.read_all().select(schema.names))
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
