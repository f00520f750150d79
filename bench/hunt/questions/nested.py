"""Output columns of lists, structs and maps with views at any depth: the values are Python's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from coincide import correlate_tables
from coincide.engine.events.schemas import decoded, plain_type, usable_type

_TEXTS, _BINARIES = pa.string_view(), pa.binary_view()
_SIZE = 7


def wrong(random: np.random.Generator) -> str | None:
    """What differs from Python's values, of columns in chunks that are cut anywhere."""
    kind = _type(random, int(random.integers(1, 4)))
    values = [_value(random, kind) for _ in range(_SIZE)]
    cut, first = sorted(random.integers(0, _SIZE + 1, 2))
    column = pa.chunked_array([pa.array(values[:cut], kind), pa.array(values[cut:], kind)], kind)
    plain, told = plain_type(kind), f"{kind}: {values} from {first} on"
    if "view" in str(plain) or usable_type(kind) != plain:
        return f"{told} is used as {plain}"
    if decoded(column.slice(first), plain).to_pylist() != values[first:]:
        return f"{told} is decoded otherwise"
    times = list(range(0, 10 * _SIZE, 10))
    table = pa.table({"t": times, "id": range(_SIZE), "x": column}).slice(first)
    found = correlate_tables(
        table, table, within=(0, 5), left_time="t", right_time="t", left_columns=["id", "x"]
    )
    got = found.sort_by("left_id")["left_x"].to_pylist()
    return None if got == values[first:] else f"{told} came out as {got}"


def _type(random: np.random.Generator, depth: int) -> pa.DataType:
    if depth == 0:
        kinds = [_TEXTS, _BINARIES, pa.string(), pa.int64()]
        return kinds[random.integers(len(kinds))]
    inner = _type(random, depth - 1)
    made = [
        pa.list_(inner), pa.large_list(inner), pa.list_view(inner), pa.large_list_view(inner),
        pa.list_(inner, 2), pa.struct([("x", inner), ("y", _TEXTS)]), pa.map_(_TEXTS, inner),
    ]  # fmt: skip
    return made[random.integers(len(made))]


def _value(random: np.random.Generator, kind: pa.DataType) -> Any:
    if random.random() < 0.2:
        return None
    types, word = pa.types, "w" * int(random.choice([0, 1, 5, 20]))
    if types.is_struct(kind):
        return {field.name: _value(random, field.type) for field in kind}
    if types.is_map(kind):
        return [(f"{i}{word}", _value(random, kind.item_type)) for i in range(random.integers(3))]
    if kind.num_fields:
        size = 2 if types.is_fixed_size_list(kind) else random.integers(4)
        return [_value(random, kind.value_type) for _ in range(size)]
    if kind == pa.int64():
        return int(random.integers(9))
    return word.encode() if kind == _BINARIES else word
