"""Views of texts, binaries and lists, which Arrow takes no rows from: as what they hold, at any depth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def without_views(kind: pa.DataType) -> pa.DataType:
    """A type whose texts, binaries and lists are no views, at any depth; the same if none are."""
    if pa.types.is_dictionary(kind):
        found = pa.dictionary(kind.index_type, without_views(kind.value_type), kind.ordered)
        return kind if found == kind else found
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    return with_inner_types(kind, without_views)


def with_inner_types(
    kind: pa.DataType, change: Callable[[pa.DataType], pa.DataType]
) -> pa.DataType:
    """A nested type with other types inside, list views as lists; the same if nothing changes."""
    types, found = pa.types, kind

    def inner(field: pa.Field) -> pa.Field:
        return field.with_type(change(field.type))

    if types.is_list(kind) or types.is_list_view(kind):
        found = pa.list_(inner(kind.value_field))
    elif types.is_large_list(kind) or types.is_large_list_view(kind):
        found = pa.large_list(inner(kind.value_field))
    elif types.is_fixed_size_list(kind):
        found = pa.list_(inner(kind.value_field), kind.list_size)
    elif types.is_struct(kind):
        found = pa.struct([inner(field) for field in kind])
    elif types.is_map(kind):
        found = pa.map_(inner(kind.key_field), inner(kind.item_field), kind.keys_sorted)
    return kind if found == kind else found


def plain_values(values: pa.Array) -> pa.Array:
    """Values of any type in that which `without_views` gives."""
    # Not by a cast: Arrow loses the entries of list views that are cut, or inside other lists.
    kind, types = without_views(values.type), pa.types
    if kind == values.type:
        return values
    nulls = values.is_null()
    if types.is_list(kind) or types.is_large_list(kind):
        entries = plain_values(values.flatten())
        lengths = pc.list_value_length(values).fill_null(0).to_numpy()
        ends = np.concatenate([[0], np.cumsum(lengths)])
        is_large = types.is_large_list(kind)
        made = pa.LargeListArray if is_large else pa.ListArray
        offsets = pa.array(ends, pa.int64() if is_large else pa.int32())
        return made.from_arrays(offsets, entries, type=kind, mask=nulls)
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        entries = values.values.slice(values.offset * size, len(values) * size)
        return pa.FixedSizeListArray.from_arrays(plain_values(entries), type=kind, mask=nulls)
    if types.is_struct(kind):
        fields = [plain_values(values.field(i)) for i in range(kind.num_fields)]
        return pa.StructArray.from_arrays(fields, type=kind, mask=nulls)
    if types.is_map(kind):
        ends = values.offsets.to_numpy()
        begin, size = int(ends[0]), int(ends[-1] - ends[0])
        keys, items = (
            plain_values(each.slice(begin, size)) for each in (values.keys, values.items)
        )
        offsets = pa.array(ends - begin, pa.int32())
        return pa.MapArray.from_arrays(offsets, keys, items, kind, mask=nulls)
    if types.is_dictionary(kind):
        words = plain_values(values.dictionary)
        return pa.DictionaryArray.from_arrays(values.indices, words, ordered=kind.ordered)
    return values.cast(kind)


def without_runs(values: pa.Array) -> pa.Array:
    """Values whose equal neighbours are stored once, each by itself; no views."""
    plain = plain_values(values.values)
    runs = pa.RunEndEncodedArray.from_arrays(values.run_ends, pa.array(np.arange(len(plain))))
    return plain.take(pc.run_end_decode(runs.slice(values.offset, len(values))))
