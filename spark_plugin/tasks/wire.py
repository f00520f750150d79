"""How events cross from the JVM to the Python worker and pairs cross back: int64 wherever possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.schemas import narrow_type, one_array, plain_type
from coincide.engine.events.sides import Side
from coincide.engine.events.timestamps import SideModel
from coincide.model.errors import DataError

TIME, CODED = "max_time", "coded"
LABEL = "label"
"""Column of the label of a slice: which partition it goes to follows from its hash."""
KEY_HASH, SALT = "key_hash", "salt"
"""Columns of rows that are yet to be cut into slices: what says which bucket of keys, and which part."""
IDENTITY = ("identity0", "identity1")
"""Hashes that say which event of a stream it is, on both sides of a join of one with itself."""
METRICS = "coincide_metrics"
"""Name of the extra output column that carries a task's counters in one last row, if asked for."""

UNMATCHED = -(2**63)
"""Coded shape of an event that matches nothing: its time or a key is null. Right ones come alone."""


@dataclass(frozen=True)
class WireLayout:
    """Names of the columns on the wire."""

    keys: tuple[str, ...]
    left: tuple[str, ...]
    right: tuple[str, ...]
    places: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    left_tested: tuple[str, ...] = ()
    right_tested: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """All columns in wire order."""
        common = (TIME, CODED, *self.keys, *self.places, *self.identity)
        tested = *self.left_tested, *self.right_tested
        return tuple(dict.fromkeys((*common, *self.left, *self.right, *tested)))

    def payload(self, side: str) -> tuple[str, ...]:
        """Wire columns of one side's output columns."""
        return self.left if side == "left" else self.right

    def tested(self, side: str) -> tuple[str, ...]:
        """Wire columns of what a condition on pairs needs of one side."""
        return self.left_tested if side == "left" else self.right_tested

    def only(self, side: str) -> WireLayout:
        """The layout where events of one side travel alone."""
        left, right = (self.payload(each) if each == side else () for each in ("left", "right"))
        own, others = (self.tested(each) if each == side else () for each in ("left", "right"))
        return replace(self, left=left, right=right, left_tested=own, right_tested=others)


def place_names(coordinates: int) -> tuple[str, ...]:
    """Wire columns of this many coordinates."""
    return tuple(f"place{i}" for i in range(coordinates))


def wire_layout(
    keys: int,
    left: Sequence[bool],
    right: Sequence[bool],
    *,
    coordinates: int = 0,
    identity: bool = False,
    tested: tuple[Sequence[bool], Sequence[bool]] = ((), ()),
) -> WireLayout:
    """Assign wire columns."""
    return WireLayout(
        tuple(f"key{i}" for i in range(keys)), _slots("left", left), _slots("right", right),
        place_names(coordinates), IDENTITY if identity else (),
        _slots("left_tested", tested[0], "tested"), _slots("right_tested", tested[1], "tested"),
    )  # fmt: skip


def _slots(side: str, shareable: Sequence[bool], slot: str = "slot") -> tuple[str, ...]:
    names, shared = [], 0
    for i, can_share in enumerate(shareable):
        names.append(f"{slot}{shared}" if can_share else f"{side}{i}")
        shared += can_share
    return tuple(names)


_LONGEST_DECIMAL = 38


def carried_type(kind: pa.DataType) -> pa.DataType:
    """The type of Arrow in which Spark takes a column over."""
    kind = plain_type(kind)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_date(kind):
        return pa.date32()
    if pa.types.is_decimal(kind) and kind.precision <= _LONGEST_DECIMAL:
        return pa.decimal128(kind.precision, kind.scale)
    wider = {pa.uint8(): pa.int16(), pa.uint16(): pa.int32(), pa.uint32(): pa.int64()}
    return wider.get(kind, pa.int64() if kind == pa.uint64() else kind)


def on_the_wire(name: str, column: pa.Array, wire: pa.DataType) -> pa.Array:
    """A column of Arrow in the type in which it crosses, as those of DataFrames do."""
    if pa.types.is_timestamp(column.type) or pa.types.is_duration(column.type):
        try:
            return column.cast(carried_type(column.type)).view(pa.int64())
        except pa.ArrowInvalid as error:
            if column.type.unit in ("s", "ms"):
                raise DataError(
                    f"the column {name!r} has times beyond those that microseconds count in 64 bits, as"
                    " Spark does. Remove such rows."
                ) from error
            raise DataError(
                f"the column {name!r} has times finer than Spark's microseconds. Round them."
            ) from error
    if pa.types.is_date(column.type):
        column = column.cast(pa.date32()).view(pa.int32())
    # Wide ones go as they are: each output batch is cast to what Spark takes.
    return column if narrow_type(column.type) == wire else column.cast(wire)


def is_left(coded: np.ndarray) -> np.ndarray:
    """Which coded shapes belong to left events: those >= 0, and `UNMATCHED`."""
    return (coded >= 0) | (coded == UNMATCHED)


def shapes_of(
    column: pa.Array | pa.ChunkedArray, side: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """From coded shapes those of events of a side, and which of these can match, unless all can."""
    coded = column.to_numpy()
    shapes = coded if side == "left" else -1 - coded
    if not coded.size or coded.min() != UNMATCHED:
        return shapes, None
    matchable = coded != UNMATCHED
    return np.where(matchable, shapes, 0), matchable


def read_side(
    table: pa.Table,
    layout: WireLayout,
    side: str,
    model: SideModel,
    rows: np.ndarray | None = None,
) -> Side:
    """The events of one side."""
    picked = None if rows is None else pa.array(rows)

    def column(name: str) -> pa.Array:
        whole = one_array(table.column(name))
        return whole if picked is None else whole.take(picked)

    shapes, matchable = shapes_of(column(CODED), side)
    return Side(
        column(TIME).to_numpy(),
        shapes,
        model,
        matchable,
        [column(name) for name in layout.keys],
        [column(name) for name in layout.payload(side)],
        [column(name) for name in layout.places],
        [column(name) for name in layout.identity],
        tested=[column(name) for name in layout.tested(side)],
    )


@dataclass(frozen=True)
class Shipment:
    """A table on its way to the workers: `spark_plugin.frames.queries.ship` sends it."""

    content: Any

    def close(self) -> None:
        """Let go of it: it can be joined with no longer."""
        if hasattr(self.content, "destroy"):
            self.content.destroy()

    def table(self) -> pa.Table:
        """The table, where it has arrived; no copy is made."""
        content = getattr(self.content, "value", self.content)
        return pa.ipc.open_stream(pa.py_buffer(content)).read_all()


def as_stream(table: pa.Table) -> bytes:
    """A table as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def chunks(batches: Iterable[pa.RecordBatch], rows: int, size: int) -> Iterator[pa.Table]:
    """Gather batches until they have the given rows or bytes."""
    gathered: list[pa.RecordBatch] = []
    count = held = 0
    for batch in batches:
        gathered.append(batch)
        count += batch.num_rows
        held += batch.nbytes
        if count >= rows or held >= size:
            yield pa.Table.from_batches(gathered)
            gathered, count, held = [], 0, 0
    if gathered:
        yield pa.Table.from_batches(gathered)


class Runs:
    """Numbers keys chunk by chunk from 1; 0 is the key with which the chunk before ended."""

    def __init__(self) -> None:
        self._last: list[pa.Scalar] | None = None

    def numbered(self, keys: Sequence[pa.Array]) -> np.ndarray:
        """The numbers of rows."""
        is_new = begins(keys)
        first = [key[0] for key in keys]
        is_new[0] = self._last is None or not all(map(pa.Scalar.equals, first, self._last))
        self._last = [key[-1] for key in keys]
        return np.cumsum(is_new)


def begins(keys: Sequence[pa.Array]) -> np.ndarray:
    """Which rows begin a key, the first one among them: bool array, shape (n,), n > 0."""
    found = np.zeros(len(keys[0]), np.bool_)
    found[0] = True
    for key in keys:
        found[1:] |= _differ(key)
    return found


def _differ(key: pa.Array) -> np.ndarray:
    """Which values differ from the one before them: bool array, shape (n - 1,)."""
    if pa.types.is_int64(key.type):
        values = key.to_numpy()
        return values[1:] != values[:-1]
    differ = pc.not_equal(key.slice(1), key.slice(0, len(key) - 1))
    return np.asarray(differ.to_numpy(zero_copy_only=False))
