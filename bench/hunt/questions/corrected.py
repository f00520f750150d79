"""Clocks that were put right: times with a width, and spans of which a start or an end is put right."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from bench.hunt.clock_lines import Clocks
from coincide import (
    CoincideWarning,
    CorrelateOptions,
    corrected_clock,
    correlate_tables,
    overlapping,
    spans,
)

BY = [("unit", "device")]
KINDS = (pa.int64(), pa.timestamp("us"), pa.timestamp("us", "UTC"))
AROUND: tuple[Any, ...] = ("fitted", "fitted", 0, 7, 40, None)
_LEFT, _RIGHT = 60, 80
_WIDE = 9
Join = Callable[..., pa.Table]


def in_kind(values: list[int | None], kind: pa.DataType) -> pa.Array:
    """Ticks as numbers or timestamps of a microsecond."""
    return pa.array(values, pa.int64()).view(kind)


def errors_in(clocks: Clocks, kind: pa.DataType) -> pa.Table:
    """The errors of numbers or of timestamps; of the latter lengths are texts, as CSV has them."""
    table = clocks.table
    if kind == pa.int64():
        return table
    for name in ("start", "end"):
        table = _with(table, name, in_kind(table[name].to_pylist(), kind))
    for name in ("offset", "spread"):
        texts = [f"{each * 1000:.0f}ns" for each in table[name].to_pylist()]
        table = _with(table, name, pa.array(texts))
    return table


def _with(table: pa.Table, name: str, values: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, values)


def drawn_stamps(random: np.random.Generator, size: int) -> list[int | None]:
    """In segments, between them, before the first and after the last; some are null."""
    return [None if x < 0 else int(x) for x in random.integers(-100, 4100, size)]


def wrong(random: np.random.Generator, join: Join = correlate_tables) -> str | None:
    """What differs from a join of intervals whose ends are computed in exact numbers."""
    clocks, kind = Clocks.drawn(random), KINDS[random.integers(3)]
    around = AROUND[random.integers(len(AROUND))]
    units, stamps = random.choice(list("abcx"), _LEFT).tolist(), drawn_stamps(random, _LEFT)
    ends = [clocks.ends(*each, around) for each in zip(units, stamps, strict=True)]
    own = pa.table({
        "id": range(_LEFT), "unit": units, "t": in_kind(stamps, kind),
        "low": in_kind([low for low, _ in ends], kind), "high": in_kind([high for _, high in ends], kind),
    })  # fmt: skip
    others = pa.table({
        "id": range(_RIGHT), "s": in_kind(drawn_stamps(random, _RIGHT), kind)
    })  # fmt: skip
    clock = corrected_clock("t", errors_in(clocks, kind), by=BY, around=_said(around, kind))
    asked: dict[str, Any] = {
        "within": tuple(_said(each, kind) for each in (-30, 45)), "probability": True,
        "confidence": float(random.choice([0.05, 0.2, 0.5, 0.9])),
        "how": str(random.choice(["inner", "left"])),
    }  # fmt: skip
    is_left = bool(random.integers(2))
    sides, times = ((own, others), ("left_time", "right_time")) if is_left else (
        (others, own), ("right_time", "left_time")
    )  # fmt: skip
    differ = _differences(join, sides, asked, [
        {times[0]: time, times[1]: "s"} for time in (clock, ("low", "high"))
    ])  # fmt: skip
    return differ and f"{differ}: around {around!r} of {kind}, {asked}, {clocks.lines}"


def _said(size: Any, kind: pa.DataType) -> Any:
    """A duration as it is given with numbers, or with timestamps."""
    return f"{size}us" if kind != pa.int64() and isinstance(size, int) else size


def _differences(
    join: Join, sides: tuple[pa.Table, pa.Table], asked: dict[str, Any], times: list[dict[str, Any]]
) -> str | None:
    """What a join by the first times finds, and not one in this process by the second, or vice versa."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoincideWarning)
        found, due = (
            _rows(each(*sides, **asked, **own))
            for each, own in zip((join, correlate_tables), times, strict=True)
        )
    if found == due:
        return None
    more, missing = (sorted(set(a) - set(b), key=str) for a, b in ((found, due), (due, found)))
    return f"found {more}, and not {missing}"


def _rows(pairs: pa.Table) -> list[tuple[Any, ...]]:
    """Pairs in an order of their own, probabilities to the digits that any way has."""
    chances = pairs["probability"].to_pylist() if "probability" in pairs.column_names else []
    chances = [None if each is None else round(each, 12) for each in chances] or [None] * len(pairs)
    ids = (pairs["left_id"].to_pylist(), pairs["right_id"].to_pylist())
    return sorted(zip(*ids, chances, strict=True), key=str)


FORMS = ("both ends", "open ends", "a length", "starts alone", "ends alone", "both with a width")


def wrong_spans(
    random: np.random.Generator, join: Join = correlate_tables, form: str | None = None
) -> str | None:
    """The same of spans; an end goes on where its stamp is missing, and not where its clock has no line."""
    clocks, kind = Clocks.drawn(random), KINDS[random.integers(3)]
    form = form or str(random.choice(FORMS))
    units, starts = random.choice(list("abcx"), _LEFT).tolist(), drawn_stamps(random, _LEFT)
    lengths = [None if x < 0 else int(x) for x in random.integers(-20, 500, _LEFT)]
    stops = [_sum(*each) for each in zip(starts, lengths, strict=True)]
    low, high = (
        [clocks.instant(*each) for each in zip(units, stamps, strict=True)]
        for stamps in (starts, stops)
    )
    until = [_sum(*each) for each in zip(low, lengths, strict=True)]
    is_lost = [stop is not None and end is None for stop, end in zip(stops, high, strict=True)]
    columns = {
        "start": starts, "end": stops, "low": low, "high": high, "until": until,
        "kept": [None if lost else start for start, lost in zip(low, is_lost, strict=True)],
    }  # fmt: skip
    own = pa.table({
        "id": range(_LEFT), "unit": units, "lasts": pa.array(lengths, pa.int64()),
        **{name: in_kind(values, kind) for name, values in columns.items()},
    })  # fmt: skip
    begin = np.array([x or 0 for x in drawn_stamps(random, _RIGHT)])
    others = pa.table({
        "id": range(_RIGHT), "s": in_kind(begin.tolist(), kind),
        "e": in_kind((begin + random.integers(0, 300, _RIGHT)).tolist(), kind),
    })  # fmt: skip
    asked: dict[str, Any] = {
        "condition": overlapping(), "how": str(random.choice(["inner", "left"])),
        "options": CorrelateOptions(invalid="drop"),
    }  # fmt: skip
    if form == "both with a width":
        asked |= {"confidence": 0.4, "probability": True}
    closed = str(random.choice(["both", "left", "right", "neither"]))
    by_clock, by_hand = _spans_of(form, errors_in(clocks, kind), kind, closed)
    differ = _differences(join, (own, others), asked, [
        {"left_time": time, "right_time": spans("s", "e")} for time in (by_clock, by_hand)
    ])  # fmt: skip
    return (
        differ and f"{differ}: {form}, {closed}, {kind}, {asked}, {clocks.lines}, {own.to_pydict()}"
    )


def _spans_of(form: str, errors: pa.Table, kind: pa.DataType, closed: Any) -> tuple[Any, Any]:
    """Spans by clocks, and the same by columns that were put right by hand."""
    start, end = (corrected_clock(name, errors, by=BY) for name in ("start", "end"))
    width = _said(_WIDE, kind)
    wide = [corrected_clock(name, errors, by=BY, around=width) for name in ("start", "end")]
    unit: Any = {} if kind == pa.int64() else {"unit": "us"}
    forms: dict[str, tuple[Any, Any]] = {
        "both ends": (spans(start, end, closed=closed), spans("low", "high", closed=closed)),
        "open ends": (
            spans(start, end, closed=closed, open_ends=True),
            spans("kept", "high", closed=closed, open_ends=True),
        ),
        "a length": (
            spans(start, duration="lasts", closed=closed, **unit), spans("low", "until", closed=closed)
        ),
        "starts alone": (spans(start, "end", closed=closed), spans("low", "end", closed=closed)),
        "ends alone": (spans("start", end, closed=closed), spans("start", "high", closed=closed)),
        "both with a width": (
            spans(*wide, closed=closed), spans("low", "high", around=width, closed=closed)
        ),
    }  # fmt: skip
    return forms[form]


def _sum(start: int | None, length: int | None) -> int | None:
    return None if start is None or length is None else start + length
