"""Clocks that columns of any type name: the answer is that of clocks with letters for names."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from coincide import CoincideWarning, corrected_clock, correlate_tables

_MOMENT = 1_700_000_000_000_000
KINDS: dict[str, tuple[pa.DataType, list[Any], pa.DataType]] = {
    "texts": (pa.string(), ["a", "b", "c", "x"], pa.large_string()),
    "categories": (pa.dictionary(pa.int8(), pa.string()), ["a", "b", "c", "x"], pa.string()),
    "views": (pa.string_view(), ["a", "b", "c", "x"], pa.string()),
    "digits": (pa.int16(), [1, 2, 3, 4], pa.string()),
    "unsigned": (pa.uint64(), [2**63, 2**64 - 1, 0, 7], pa.uint64()),
    "booleans": (pa.bool_(), [True, False, None, None], pa.bool_()),
    "bytes": (pa.binary(), [b"\xff\x00", b"\xfe", b"", b"a"], pa.large_binary()),
    "fixed bytes": (pa.binary(2), [b"\xff\x00", b"ab", b"cd", b"ef"], pa.binary(2)),
    "dates": (pa.date32(), [1, -2, 30_000_000, 4], pa.date32()),
    "instants": (
        pa.timestamp("us", "Europe/Berlin"), [_MOMENT, _MOMENT + 1, 0, 9], pa.timestamp("ns", "UTC")
    ),
    "local times": (pa.timestamp("us"), [_MOMENT, _MOMENT + 1, 0, 9], pa.timestamp("us")),
    "times of day": (pa.time64("us"), [1, 2, 3, 4], pa.time64("ns")),
    "durations": (pa.duration("us"), [1, 2, 3, 4], pa.duration("us")),
    "decimals": (pa.decimal128(9, 2), ["1.50", "0.00", "-7.25", "9"], pa.decimal128(20, 8)),
}  # fmt: skip
"""The type of the column that names clocks, values for a, b, c and x, and its type in errors."""


def wrong(
    random: np.random.Generator, join: Callable[..., pa.Table] = correlate_tables
) -> str | None:
    """What differs between clocks named by letters and by values of a drawn type."""
    return wrong_of(str(random.choice(list(KINDS))), random, join)


def wrong_of(
    name: str, random: np.random.Generator, join: Callable[..., pa.Table] = correlate_tables
) -> str | None:
    """The same of one type."""
    kind, values, stored = KINDS[name]
    letters = "ab" if None in values else "abcx"
    units = [*map(str, random.choice(list(letters), 300)), None]
    own = pa.table({"id": range(301), "t": random.integers(-50, 1200, 301)})
    others = pa.table({"id": range(200), "t": random.integers(0, 1200, 200)})
    errors = _errors(random, letters.replace("x", ""))
    devices = errors["device"].to_pylist()
    found = []
    for unit, device in (
        (pa.array(units, pa.string()), pa.array(devices, pa.string())),
        (_of_kind(units, values, kind), _of_kind(devices, values, kind).cast(stored)),
    ):
        clock = corrected_clock(
            "t", errors.set_column(0, "device", device), by=[("unit", "device")]
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CoincideWarning)
            pairs = join(
                own.append_column("unit", unit), others, within=(-3, 6), confidence=0.3,
                left_time=clock, right_time="t",
            )  # fmt: skip
        found.append(sorted(map(tuple, map(dict.values, pairs.to_pylist()))))
    if len(found[0]) < 20:
        return f"only {len(found[0])} pairs of {name}"
    return None if found[0] == found[1] else f"{name}: {set(found[0]) ^ set(found[1])} differ"


def _errors(random: np.random.Generator, letters: str) -> pa.Table:
    """One segment a clock, over all times."""
    size = len(letters)
    return pa.table({
        "device": list(letters), "status": ["found"] * size, "start": [-100] * size,
        "end": [1300] * size, "offset": random.integers(-50, 50, size).astype(float),
        "drift": random.integers(-9, 9, size) * 64.0,
    })  # fmt: skip


def _of_kind(names: list[str | None], values: list[Any], kind: pa.DataType) -> pa.Array:
    """Clocks a, b, c and x by other names."""
    found = [None if name is None else values["abcx".index(name)] for name in names]
    if pa.types.is_decimal(kind):
        found = [None if each is None else Decimal(each) for each in found]
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    made = pa.array(found, plain)
    return made if plain is kind else made.dictionary_encode().cast(kind)
