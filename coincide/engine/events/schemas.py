"""Columns of a side by name and type; wide ones and ids as whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events import rows as row_sizes
from coincide.engine.events.rows import (
    Gather,
    cuts,
    ends,
    is_listing,
    is_string,
    is_text,
    row_bytes,
    total_bytes,
)
from coincide.engine.events.time_columns import TimeColumn
from coincide.engine.events.views import (
    plain_values,
    with_inner_types,
    without_runs,
    without_views,
)
from coincide.model.errors import CoincideError, MemoryBudgetError, SchemaError, argument
from coincide.model.units import NANOSECONDS_PER_UNIT, Tick

_TIMES = ("min_time", "max_time", "time")
_ARGUMENTS = {
    **{"query_id": "query", "stream_id": "stream", "event": "event", "value": "values"},
    **dict.fromkeys(_TIMES, "time"),
}
"""For operators that join no two sides: the arguments whose default a column's name is."""
_SIDES = ("left", "right", "cause", "effect")
_COLUMN_ARGUMENTS = {
    **{
        side: f". Name another one with {argument(f'{side}_columns')}, or use"
        f" {argument(f'{side}_columns', '*')} for all"
        for side in _SIDES
    },
    "event": f". Name the output columns, or use {argument('left_columns', '*')} and"
    f" {argument('right_columns', '*')} for all (in causality {argument('cause_columns')} and"
    f" {argument('effect_columns')})",
}
"""How a user gets other output columns than id, by side."""
_INTEGERS = {"tinyint", "smallint", "int", "bigint"} | {
    f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)
}
"""Types of whole numbers in words, Spark's and Arrow's: all are compared by value."""
_TEXTS = {pa.string(), pa.large_string()}


def column_of(table: pa.Table, side: str, name: str) -> pa.ChunkedArray:
    """A column by name, as plain values: a null of a dictionary is a null, and a date is its midnight."""
    check_name(side, name, table.column_names)
    column = table.column(name)
    column = decoded(column, plain_type(column.type))
    # Arrow lets a date64 hold a time of day.
    return pc.floor_temporal(column, unit="day") if pa.types.is_date64(column.type) else column


def type_of(schema: pa.Schema, side: str, name: str) -> pa.DataType:
    """The plain type of a column."""
    check_name(side, name, schema.names)
    return plain_type(schema.field(name).type)


def check_name(side: str, name: str, names: Sequence[str], cure: str = "") -> None:
    """Refuse a column that is missing, for which there may be a cure, or is there twice."""
    found = list(names).count(name)
    if found == 0:
        # Quoted, so that blanks show, and headers that were split at the wrong character.
        has = ", ".join(map(repr, names)) or "none"
        raise SchemaError(
            f"{side} has no column {name!r} (found {has}){cure or _hint(side, name)}."
        )
    if found > 1:
        raise SchemaError(f"{side} has {found} columns called {name!r}. Rename all but one.")


def _hint(side: str, name: str) -> str:
    """Which argument names another column than the one that is looked for if nothing is said."""
    if name == "id":
        return _COLUMN_ARGUMENTS.get(side, "")
    own = dict.fromkeys(_TIMES, f"{side}_time") if side in _SIDES else _ARGUMENTS
    if name not in own:
        return ""
    one = f", or use {argument('stream', None)} if all rows belong to one stream" * (
        name == "stream_id"
    )
    return f". Name another one with {argument(own[name])}{one}"


def arrow_time_column(side: str, name: str, kind: pa.DataType) -> TimeColumn:
    """What a column of an Arrow type means as a time."""
    if pa.types.is_timestamp(kind):
        family = "timestamp" if kind.tz is not None else "timestamp_ntz"
        step = NANOSECONDS_PER_UNIT[kind.unit]
        return TimeColumn(side, name, family, step, zone=kind.tz)  # type: ignore[arg-type]
    if pa.types.is_date(kind):  # date64 counts milliseconds
        unit = "d" if pa.types.is_date32(kind) else "ms"
        return TimeColumn(side, name, "timestamp_ntz", NANOSECONDS_PER_UNIT[unit])
    if pa.types.is_duration(kind):
        return TimeColumn(side, name, "duration", NANOSECONDS_PER_UNIT[kind.unit])
    if pa.types.is_integer(kind):
        return TimeColumn(side, name, "integer")
    if pa.types.is_floating(kind) and not pa.types.is_float16(kind):
        return TimeColumn(side, name, "float", is_single=pa.types.is_float32(kind))
    if pa.types.is_decimal(kind):
        return TimeColumn(side, name, "float", is_decimal=True)
    raise SchemaError(
        f"{side}.{name} must be a timestamp, a date, a duration, an integer, a float or a"
        f" decimal, as it is a time column (found {kind}). Cast it where the data"
        " are written. For texts use pandas.to_datetime, or strptime of pyarrow.compute."
    )


def result_time(kind: pa.DataType, tick: Tick) -> pa.DataType:
    """The type of times in the output, from a column's type, for `as_times`."""
    if pa.types.is_date(kind):
        return kind
    if pa.types.is_duration(kind):
        return pa.duration(tick.unit)
    return pa.timestamp(tick.unit, kind.tz) if pa.types.is_timestamp(kind) else pa.int64()


def computed_time(kind: pa.DataType, tick: Tick) -> pa.DataType:
    """As `result_time`, of times that no row has: timestamps for dates, as they are no midnights."""
    return result_time(pa.timestamp(tick.unit) if pa.types.is_date(kind) else kind, tick)


def as_times(ticks: pa.Array, kind: pa.DataType, tick: Tick) -> pa.Array:
    """Ticks as times of a `result_time`."""
    return (
        ticks.view(pa.timestamp(tick.unit)).cast(kind)
        if pa.types.is_date(kind)
        else ticks.view(kind)
    )


def check_present_keys(
    called: Sequence[str], keys: Sequence[Sequence[str]], names: Sequence[Sequence[str]]
) -> None:
    """Refuse keys that a side lacks, or has twice."""
    are_two = called[0] != called[1]
    cure = (
        f". If {called[1]} has another name for a key, use {argument('by', [('LEFT', 'RIGHT')])}"
        * are_two
    )
    for side, own, columns in zip(called, keys, names, strict=True):
        for name in own:
            check_name(side, name, columns, cure)


def check_keys(
    by: Sequence[str],
    left: Sequence[tuple[str, bool]],
    right: Sequence[tuple[str, bool]],
    where: Sequence[str] = ("on the left", "on the right"),
) -> None:
    """Refuse keys that cannot be compared exactly."""
    for name, (left_kind, left_able), (right_kind, right_able) in zip(by, left, right, strict=True):
        if left_kind != right_kind and not {left_kind, right_kind} <= _INTEGERS:
            raise SchemaError(
                f"the key {name!r} is {left_kind} {where[0]} and {right_kind} {where[1]}. Cast one so"
                " that both are the same."
            )
        if not (left_able and right_able):
            raise SchemaError(
                f"the key {name!r} has a type that cannot be compared exactly (found"
                f" {left_kind}). Cast it to a string or an integer."
            )


def can_be_key(kind: pa.DataType) -> bool:
    """Whether equality on an Arrow type is exact."""
    return not (pa.types.is_floating(kind) or pa.types.is_nested(kind) or pa.types.is_null(kind))


def id_type(schema: pa.Schema, side: str, name: str) -> pa.DataType:
    """The plain type of a column of ids; refused are those that cannot be compared exactly."""
    kind = type_of(schema, side, name)
    if not can_be_key(kind):
        raise SchemaError(
            f"{side}.{name} has a type that cannot be compared exactly (found {kind}). Cast it to"
            " a string or an integer."
        )
    return kind


def can_be_label(kind: pa.DataType) -> bool:
    """Whether values of an Arrow type name things: texts, and whole numbers as their digits."""
    return is_string(kind) or pa.types.is_integer(kind)


def check_label(side: str, name: str, kind: str, able: bool) -> None:
    """Refuse a column that cannot name templates."""
    if not able:
        raise SchemaError(
            f"{side}.{name} must hold ids of templates, texts or whole numbers (found {kind})."
            " Cast it."
        )


def can_be_width(kind: pa.DataType) -> bool:
    """Whether an Arrow type holds numbers, such as half-widths."""
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def check_width(side: str, name: str, kind: str, able: bool) -> None:
    """Refuse a column that cannot hold half-widths."""
    if not able:
        raise SchemaError(
            f"{side}.{name} must hold half-widths, which are numbers (found {kind}). Cast it to"
            " float64, and give the unit."
        )


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Dictionaries, runs and views are encodings, not types that results should depend on."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_run_end_encoded(kind):
        return plain_type(kind.value_type)
    return without_views(kind)


def with_first_types(table: pa.Table, first: pa.Schema | None) -> pa.Table:
    """A table whose empty columns without a type have those of an earlier one."""
    for i, field in enumerate(table.schema):
        if first is not None and pa.types.is_null(field.type) and field.name in first.names:
            found = pa.chunked_array([pa.nulls(table.num_rows, first.field(field.name).type)])
            table = table.set_column(i, field.name, found)
    return table


def with_types_when_empty(
    tables: Sequence[pa.Table], columns: Sequence[Sequence[str]]
) -> list[pa.Table]:
    """The tables, those without rows with types: the types of the others in the same place, or int64."""
    found = list(tables)
    for names in zip(*columns, strict=True):
        pair = names[: len(found)]
        kinds = [_type_in(table, name) for table, name in zip(tables, pair, strict=True)]
        known = next((kind for kind in kinds if kind not in (None, pa.null())), pa.int64())
        for i, (name, kind) in enumerate(zip(pair, kinds, strict=True)):
            if kind == pa.null() and not tables[i].num_rows:
                place = found[i].schema.get_field_index(name)
                found[i] = found[i].set_column(place, name, pa.chunked_array([], known))
    return found


def _type_in(table: pa.Table, name: str) -> pa.DataType | None:
    place = table.schema.get_field_index(name)  # none of a name that two columns have
    return table.schema.field(place).type if place >= 0 else None


def other_types(
    side: str, first: pa.Schema | None, found: pa.Schema, fits: Callable[[pa.Schema], bool]
) -> str:
    """The message for a push whose columns have other types than in the first one."""
    assert first is not None
    kinds = [(old, found.field(old.name).type) for old in first]
    other = [(old, new) for old, new in kinds if plain_type(old.type) != plain_type(new)]
    hinder = [
        (old, new) for old, new in other if not _fits(with_types(first, {old.name: new}), fits)
    ]
    told = hinder or other
    words = "; ".join(f"{old.name} is {new} and was {old.type}" for old, new in told)
    cure = of_dicts([(old.type, new) for old, new in told])
    return f"{side} has other column types than in the first push: {words}. Cast them{cure}."


def _fits(schema: pa.Schema, fits: Callable[[pa.Schema], bool]) -> bool:
    try:
        return fits(schema)
    except CoincideError:
        return False


def of_dicts(changes: Sequence[tuple[pa.DataType, pa.DataType]]) -> str:
    """What to do with dicts whose whole numbers come first and floats later; of pairs of types."""
    if not any(pa.types.is_integer(old) and pa.types.is_floating(new) for old, new in changes):
        return ""
    return ", push tables of one schema, or give floats in a list of dicts from the first push on"


def with_types(schema: pa.Schema, types: Mapping[str, pa.DataType]) -> pa.Schema:
    """A schema with other types for some of its columns."""
    return pa.schema(
        [field.with_type(types.get(field.name, field.type)) for field in schema],
        metadata=schema.metadata,
    )


def holds_codes(kind: pa.DataType) -> bool:
    """Whether there are dictionaries within lists, structs or maps."""
    if not pa.types.is_nested(kind):
        return False
    inner = [kind.field(i).type for i in range(kind.num_fields)]
    return any(pa.types.is_dictionary(each) or holds_codes(each) for each in inner)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """A schema without encodings."""
    return pa.schema([(field.name, plain_type(field.type)) for field in schema])


def with_like_keys(
    schemas: Sequence[pa.Schema], by: Sequence[str], right: Sequence[str] | None = None
) -> list[pa.Schema]:
    """Both schemas, text keys of one type: writers differ in how they store strings, not in what."""
    found = list(schemas)
    for pair in zip(by, by if right is None else right, strict=True):
        names = pair[: len(found)]
        each = list(zip(found, names, strict=True))
        if any(schema.names.count(name) != 1 for schema, name in each):
            continue
        if {plain_type(schema.field(name).type) for schema, name in each} == _TEXTS:
            found = [
                schema.set(schema.get_field_index(name), pa.field(name, pa.large_string()))
                for schema, name in each
            ]
    return found


def wide_type(kind: pa.DataType) -> pa.DataType:
    """A type with offsets of 64 bits instead of 32; maps have no such type, their texts do."""
    return _retyped(kind, {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}, True)


def narrow_type(kind: pa.DataType) -> pa.DataType:
    """A type with offsets of 32 bits instead of 64."""
    return _retyped(kind, {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}, False)


def _retyped(kind: pa.DataType, texts: dict[pa.DataType, pa.DataType], wide: bool) -> pa.DataType:
    types = pa.types
    if types.is_list(kind) or types.is_large_list(kind):
        field = kind.value_field
        own = field.with_type(_retyped(field.type, texts, wide))
        return (pa.large_list if wide else pa.list_)(own)
    return texts.get(kind, with_inner_types(kind, lambda inner: _retyped(inner, texts, wide)))


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """A column as one contiguous array, of its `wide_type` where 32 bits cannot count it."""
    if column.num_chunks == 1:
        return column.chunk(0)
    if column.num_chunks == 0:
        return pa.array([], column.type)
    if _largest_extent(column.chunks) > row_sizes.ARRAY_BYTES:
        column = column.cast(wide_type(column.type))
    try:
        return pa.concat_arrays(column.chunks)
    except pa.ArrowInvalid as error:
        raise MemoryBudgetError(
            f"a column of {column.type} holds more entries than one array can hold. Join fewer"
            f" rows at once (a smaller {argument('slice_rows')}), or remove the column."
        ) from error


def of_one_type(arrays: Sequence[pa.Array]) -> pa.ChunkedArray:
    """Arrays of one column, some of which may be wide, as one column."""
    if len({array.type for array in arrays}) > 1:
        arrays = [array.cast(wide_type(array.type)) for array in arrays]
    return pa.chunked_array(arrays)


def decoded(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column without its encoding (dictionaries, runs, views), in chunks that 32 bits can count."""
    if column.type == kind:
        return column
    if pa.types.is_run_end_encoded(column.type):
        plain = without_views(column.type.value_type)
        column = pa.chunked_array([without_runs(chunk) for chunk in column.chunks], plain)
    chunks = []
    for chunk in column.chunks:
        taken = cuts(row_bytes(chunk), len(chunk), row_sizes.ARRAY_BYTES)
        chunks += [_cast(chunk.slice(start, stop - start), kind) for start, stop in taken]
    return pa.chunked_array(chunks, kind)


def _cast(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Values in a plain type."""
    if pa.types.is_dictionary(values.type) and not pa.types.is_dictionary(kind):
        return _cast(values.dictionary, kind).take(
            values.indices
        )  # Arrow's has nulls of no type wrong
    return plain_values(values).cast(kind)


def in_usable_types(table: pa.Table) -> pa.Table:
    """A table without the encodings from which Arrow takes no rows: runs, and views inside other types."""
    for i, field in enumerate(table.schema):
        kind, column = usable_type(field.type), table.column(i)
        if _lacks_categories(column):
            table = table.set_column(i, field.name, pa.nulls(len(column)))
        elif kind != field.type:
            if pa.types.is_dictionary(kind):
                column = _with_plain_texts(column, kind)
            table = table.set_column(i, field.name, decoded(column, kind))
    return table


def _lacks_categories(column: pa.ChunkedArray) -> bool:
    """Whether all rows are nulls of a category of pandas that has none, which are floats by default."""
    kind = column.type
    if not (pa.types.is_dictionary(kind) and pa.types.is_floating(kind.value_type) and len(column)):
        return False
    return not any(len(chunk.dictionary) for chunk in column.chunks)


def usable_type(kind: pa.DataType) -> pa.DataType:
    """The type that `in_usable_types` gives a column of one."""
    if pa.types.is_run_end_encoded(kind):
        return without_views(kind.value_type)
    if pa.types.is_dictionary(kind) and pa.types.is_string_view(kind.value_type):
        return pa.dictionary(kind.index_type, pa.large_string())
    return without_views(kind) if pa.types.is_nested(kind) or pa.types.is_dictionary(kind) else kind


def _with_plain_texts(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Categories of Polars, whose dictionaries hold string views."""
    chunks = [
        pa.DictionaryArray.from_arrays(
            chunk.indices, _cast(chunk.dictionary, kind.value_type), ordered=kind.ordered
        )
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, kind)


def narrowed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table of which some columns are wide, in the types of a schema: in chunks that these can count."""
    if table.schema.types == schema.types:
        return table.cast(schema)
    sizes = total_bytes(row_bytes(one_array(column)) for column in table.columns)
    parts = cuts(sizes, table.num_rows, row_sizes.ARRAY_BYTES)
    cast = [table.slice(start, stop - start).cast(schema) for start, stop in parts]
    return pa.concat_tables([schema.empty_table(), *cast])


def _largest_extent(chunks: Sequence[pa.Array]) -> int:
    """Most bytes or elements that the offsets of one node of a column count, over its chunks."""
    return max(map(sum, zip(*map(_extents, chunks), strict=True)), default=0)


def _extents(array: pa.Array) -> list[int]:
    """Bytes or elements of each node of an array that has offsets."""
    kind, types = array.type, pa.types
    if types.is_struct(kind):
        return [each for i in range(kind.num_fields) for each in _extents(array.field(i))]
    if types.is_fixed_size_list(kind):
        size = kind.list_size
        return _extents(array.values.slice(array.offset * size, len(array) * size))
    if not (is_text(kind) or is_listing(kind)):
        return []
    first, last = ends(array)
    if is_text(kind):
        return [last - first]
    return [last - first, *_extents(array.values.slice(first, last - first))]


def stored(values: pa.Array) -> pa.Array:
    """Values as Arrow's functions take them: most take no extension types, and no short decimals."""
    values = values.storage if isinstance(values, pa.ExtensionArray) else values
    return values.cast(storage_type(values.type))


@dataclass(frozen=True, eq=False)
class Ids:
    """Distinct ids of one column, numbered in the order in which they first came."""

    kind: pa.DataType
    known: pa.Array

    @classmethod
    def none(cls, kind: pa.DataType) -> Ids:
        """No ids of a type."""
        return cls(kind, pa.array([], storage_type(kind)))

    def numbered(self, values: pa.Array) -> tuple[Ids, np.ndarray]:
        """These ids and those of more rows, with the numbers of the rows: int64 array, shape (n,)."""
        encoded = pc.dictionary_encode(stored(values))
        rows = encoded.indices.to_numpy().astype(np.int64)
        if not len(self.known):
            return Ids(self.kind, encoded.dictionary), rows
        known, distinct = of_one_type([self.known, encoded.dictionary]).chunks
        found = pc.index_in(distinct, value_set=known)
        if not found.null_count:
            return self, found.to_numpy().astype(np.int64)[rows]
        is_new = found.is_null()
        numbers = found.fill_null(0).to_numpy().astype(np.int64)
        numbers[is_new.to_numpy(zero_copy_only=False)] = len(known) + np.arange(found.null_count)
        more = one_array(of_one_type([known, distinct.filter(is_new)]))
        return Ids(self.kind, more), numbers[rows]

    def of(self, numbers: np.ndarray) -> pa.Array:
        """The ids of numbers."""
        return as_given(Gather(self.known, storage_type(self.kind))(numbers), self.kind)


def storage_type(kind: pa.DataType) -> pa.DataType:
    """The type in which `stored` gives values of one."""
    kind = kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
    is_short = pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind)
    return pa.decimal128(kind.precision, kind.scale) if is_short else kind


def as_given(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """What `stored` gave, as values of the type that they had."""
    if not isinstance(kind, pa.BaseExtensionType):
        return values.cast(kind)
    return kind.wrap_array(values.cast(kind.storage_type))
