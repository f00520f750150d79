"""Counters that wrap: true times come back, but for whole turns that both sides share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from coincide import unwrapped

_MODULI = (4, 5, 7, 64, 100, 2**16, 2**32, 10**9, 2**40)


def wrong(random: np.random.Generator) -> str | None:
    """What differs from two walks of true times, each step of which is allowed."""
    modulus, in_order = int(random.choice(_MODULI)), bool(random.integers(2))
    begin = int(random.integers(-3 * modulus, 3 * modulus))
    apart = int(random.integers(-(modulus // 4), modulus // 4, endpoint=True))
    true = [_walk(random, modulus, at, in_order) for at in (begin, begin + apart)]
    counted = [_table([_wrapped(t, modulus) for t in side]) for side in true]
    found = [
        side["t"].to_pylist()
        for side in unwrapped(*counted, modulus=modulus, left_time="t", in_order=in_order)
    ]
    told = f"modulus {modulus}, in order {in_order}: {true} came back as {found}"
    pairs = [pair for sides in zip(found, true, strict=True) for pair in zip(*sides, strict=True)]
    if any((got is None) != (want is None) for got, want in pairs):
        return f"nulls differ, {told}"
    shifts = {got - want for got, want in pairs if got is not None and want is not None}
    if len(shifts) > 1 or any(shift % modulus for shift in shifts):
        return f"shifts {sorted(shifts)}, {told}"
    return None


def _walk(
    random: np.random.Generator, modulus: int, begin: int, in_order: bool
) -> list[int | None]:
    """True times with nulls; plain Python, without a remainder."""
    found: list[int | None] = []
    now = begin
    for _ in range(int(random.integers(0, 30))):
        most = modulus - 1 if in_order else modulus // 4
        least = 0 if in_order else -(modulus // 4)
        step = int(random.choice([0, 1, least, most, random.integers(least, most, endpoint=True)]))
        is_null = bool(found) and random.random() < 0.1
        if found and not is_null:
            now += step
        found.append(None if is_null else now)
    return found


def _wrapped(time: int | None, modulus: int) -> int | None:
    """The counter at a time, as it counts: it is set back until it fits."""
    if time is None:
        return None
    turns = 0
    while not 0 <= time - turns * modulus < modulus:
        turns += 1 if time - turns * modulus > 0 else -1
    return time - turns * modulus


def _table(times: list[int | None]) -> pa.Table:
    return pa.table({"id": range(len(times)), "t": pa.array(times, pa.int64())})
