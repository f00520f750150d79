"""The inputs of a join, of which one stream is both sides."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from spark_plugin.command_line.arguments import JoinRequest
from spark_plugin.worker.inputs.arrow_inputs import ArrowInput
from spark_plugin.worker.inputs.csv_keys import with_text_keys


def both(inputs: Iterable[ArrowInput]) -> list[ArrowInput]:
    """Left and right; of one stream both are the same."""
    found = list(inputs)
    return [found[0], found[-1]]


def joined_tables(
    request: JoinRequest, inputs: Sequence[ArrowInput], tables: Sequence[pa.Table]
) -> list[pa.Table]:
    """What is joined: one table, or two whose keys can be compared."""
    left, right = with_text_keys(inputs, [tables[0], tables[-1]], request.keys)
    return [left] if request.right is None else [left, right]
