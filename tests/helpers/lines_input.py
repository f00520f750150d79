"""A format that the product does not have: JSON, an object a line."""

from __future__ import annotations

import json

import pyarrow as pa

from coincide.engine.files.arrow_inputs import ArrowInput


class Reader(ArrowInput):
    """An input of JSON lines."""

    def file_schema(self, file: str) -> pa.Schema:
        """The schema of all rows."""
        return self._table(file).schema

    def whole_table(self, schema: pa.Schema) -> pa.Table:
        """File by file."""
        own = self.own(schema)
        return pa.concat_tables(
            self.named(self._table(file).select(own.names), file, schema)
            for file in self.source.found.paths
        )

    def _table(self, file: str) -> pa.Table:
        with self.source.found.filesystem.open_input_stream(file) as stream:
            return pa.Table.from_pylist([json.loads(line) for line in stream.read().splitlines()])
