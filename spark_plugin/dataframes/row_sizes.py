"""How many bytes the rows of a side have on the wire."""

from __future__ import annotations

from spark_plugin.dataframes.columns import quoted, wire_bytes
from spark_plugin.dataframes.events import EventFrame
from spark_plugin.dataframes.named_fields import field_of

_TIME_BYTES = 16
_NARROW = 1 << 10


def row_bytes(side: EventFrame) -> tuple[int, str | None] | None:
    """Bytes of all rows alike, and SQL of what is each row's own, if any.

    None where it cannot be told, as of nested columns.
    """
    alike, own = _fixed_bytes(side), []
    for name in (*side.by, *side.payload, *side.tested):
        kind = field_of(side.source, side.called, name).dataType
        size = wire_bytes(quoted(name), kind)
        if size is None:
            return None
        if isinstance(size, int):
            alike += size
        else:
            own.append(size)
    return alike, " + ".join(own) or None


def are_narrow(sides: tuple[EventFrame, EventFrame]) -> bool:
    """Whether all rows are so short that a bound on their number is one on their bytes."""
    told = [row_bytes(side) for side in sides]
    return all(size is not None and size[1] is None and size[0] <= _NARROW for size in told)


def about_bytes(side: EventFrame) -> tuple[int, str | None]:
    """As `row_bytes`, nested columns as long as their text would be."""
    told = row_bytes(side)
    if told is not None:
        return told
    names = ", ".join(quoted(name) for name in (*side.by, *side.payload, *side.tested))
    return _fixed_bytes(side), f"octet_length(to_json(struct({names})))"


def _fixed_bytes(side: EventFrame) -> int:
    return _TIME_BYTES + 8 * (side.coordinates + 2 * bool(side.identity))
