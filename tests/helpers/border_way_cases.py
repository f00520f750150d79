"""Random readings, queries and options of border crossings, of all that can be in a table."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from coincide import BorderOptions
from coincide.model.borders.index import CLOSED

IDS: dict[str, pa.Array] = {
    "text": pa.array(["a", "n/a?", "it's", "é", "B", "a a", "007", "x,y"]),
    "integer": pa.array([-3, 0, 7, 8, 127, 2, 3, 4], pa.int16()),
    "day": pa.array([dt.date(2024, 1, 1 + k) for k in range(8)]),
    "bytes": pa.array([bytes([k, 0]) for k in range(8)]),
    "uuid": pa.array([bytes([k] * 16) for k in range(8)], pa.uuid()),
}
TIMES: dict[str, tuple[pa.DataType, dict[str, str]]] = {
    "instant": (pa.timestamp("us", "Europe/Rome"), {}),
    "clock": (pa.timestamp("us"), {}),
    "integer": (pa.int32(), {}),
    "of a unit": (pa.int64(), {"unit": "ms", "tick": "ms"}),
    "float": (pa.float64(), {"unit": "s", "tick": "s"}),
}
NAMES = {"stream": "who", "time": "at", "query": "area"}


@dataclass(frozen=True)
class WaysCase:
    """Readings in order of arrival, queries, and the question."""

    readings: pa.Table
    queries: pa.Table
    values: tuple[str, ...]
    options: BorderOptions
    closed_column: str | None = None
    has_streams: bool = True

    @property
    def names(self) -> dict[str, Any]:
        """What columns are called."""
        stream = NAMES["stream"] if self.has_streams else None
        return {**NAMES, "stream": stream, "closed_column": self.closed_column}

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `border_crossing_tables`."""
        return {**self.names, "values": self.values, "options": self.options}

    @property
    def words(self) -> list[str]:
        """The words of `coincide borders`."""
        options = self.options
        margins = (
            options.hysteresis if isinstance(options.hysteresis, tuple) else (options.hysteresis,)
        )
        words = ["--hysteresis", ",".join(map(str, margins)), "--values", ",".join(self.values)]
        given = {**self.names, "first": options.first, "processing": options.processing,
                 "invalid": options.invalid, "unit": options.unit, "tick": options.tick,
                 "closed": options.closed, "stream": self.names["stream"] or "-"}  # fmt: skip
        for name, word in given.items():
            words += [] if word is None else [f"--{name.replace('_', '-')}", word]
        flags = {"--pass-through": options.pass_through, "--interpolate": options.interpolate}
        return words + [name for name, is_set in flags.items() if is_set]


def random_case(seed: int, *, for_spark: bool = False, for_csv: bool = False) -> WaysCase:
    """A case; of types that Spark has, or that a CSV file tells."""
    random = np.random.default_rng([17, seed])
    kinds = ["text", "integer"] if for_csv else [k for k in IDS if not (for_spark and k == "uuid")]
    times = ["clock", "integer"] if for_csv else list(TIMES)
    kind, units = TIMES[times[random.integers(len(times))]]
    values = ("x", "y", "z")[: random.integers(1, 4)]
    margin = float(random.choice([0, 0, 0.5, 2]))
    each = tuple(float(m) for m in random.choice([0, 1.5], len(values)))
    options = BorderOptions(
        first=str(random.choice(["ignore", "outside"])),  # type: ignore[arg-type]
        pass_through=bool(random.random() < 0.5) and not margin,
        interpolate=bool(random.random() < 0.7),
        hysteresis=each if margin == 2 else margin,
        processing=str(random.choice(["auto", "traversal", "three-sided"])),  # type: ignore[arg-type]
        invalid="drop",
        batch_events=int(random.choice([1, 5, 1000])),
        threads=1,
        closed=str(random.choice(CLOSED)),  # type: ignore[arg-type]
        **units,  # type: ignore[arg-type]
    )
    streams, ids = (IDS[kinds[random.integers(len(kinds))]] for _ in range(2))
    readings = _readings(random, int(random.integers(1, 120)), streams, kind, values)
    closed_column = "ends" if random.random() < 0.5 else None
    has_streams = bool(random.random() < 0.8)
    readings = readings if has_streams else readings.drop(["who"])
    queries = _queries(random, ids, values)
    return WaysCase(readings, queries, values, options, closed_column, has_streams)


def _readings(
    random: np.random.Generator,
    n: int,
    streams: pa.Array,
    kind: pa.DataType,
    values: tuple[str, ...],
) -> pa.Table:
    when = random.integers(-20, 60, n).astype(float)
    if random.random() < 0.5:
        when = np.sort(when)
    columns: dict[str, Any] = {
        "who": streams.take(pa.array(random.integers(0, 4, n), mask=random.random(n) < 0.03)),
    }
    if pa.types.is_floating(kind):
        when += random.choice([0, 0, 0.25, -0.25], n)
        when[random.random(n) < 0.05] = random.choice([math.nan, math.inf, 1e30])
        columns["at"] = pa.array(when, mask=random.random(n) < 0.03)
    else:
        columns["at"] = pa.array(when.astype(np.int64), mask=random.random(n) < 0.03).cast(kind)
    for name in values:
        found = random.integers(-6, 7, n).astype(float)
        is_null = random.random(n) < 0.04
        if random.random() < 0.3:
            columns[name] = pa.array(found.astype(np.int32), mask=is_null)
            continue
        found += random.choice([0, 0, 0.5, 0.1], n)
        found[random.random(n) < 0.04] = math.nan
        found[random.random(n) < 0.03] = random.choice([math.inf, -math.inf])
        columns[name] = pa.array(found, mask=is_null)
    return pa.table(columns)


def _queries(random: np.random.Generator, ids: pa.Array, values: tuple[str, ...]) -> pa.Table:
    words = [str(word) for word in random.choice([*CLOSED, ""], 8)]
    columns: dict[str, Any] = {
        "area": ids.take(pa.array(random.permutation(8))),
        "ends": pa.array([word or None for word in words], pa.string()),
    }
    for name in values:
        ends = np.sort(random.integers(-7, 8, (8, 2)), axis=1).astype(float)
        ends[random.random(8) < 0.1, 1] = math.inf
        for k, end in enumerate(("lower", "upper")):
            columns[f"{end}_{name}"] = pa.array(ends[:, k], mask=random.random(8) < 0.15)
    return pa.table(columns)


class Push(NamedTuple):
    """Readings of a case from one row to another; before them queries go and come."""

    start: int
    stop: int
    removed: list[Any]
    added: pa.Table


def random_pushes(case: WaysCase, seed: int) -> list[Push]:
    """All readings as they come, in pushes of any size; now and then other ranges for some ids."""
    random = np.random.default_rng([18, seed])
    live, pushes, start = set(case.queries["area"].to_pylist()), [], 0
    while start < case.readings.num_rows:
        stop = min(start + int(random.choice([1, 2, 7, 40])), case.readings.num_rows)
        others = _queries(random, case.queries["area"].combine_chunks(), case.values)
        changed = others.slice(0, random.choice([0, 0, 1, 3]))
        changes = changed["area"].to_pylist()
        removed = [each for each in changes if each in live]
        added = changed.slice(0, 1) if random.random() < 0.2 else changed
        live = (live - set(removed)) | set(added["area"].to_pylist())
        pushes.append(Push(start, stop, removed, added))
        start = stop
    return pushes
