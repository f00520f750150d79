"""Random border crossings of all that can be in a table: what the oracle says, and each way to it."""

from __future__ import annotations

import datetime as dt
import json
import math
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from coincide import (
    BorderMonitor,
    BorderOptions,
    BorderReport,
    BorderSummary,
    border_crossing_tables,
)
from cpu_fallback.reference.borders import BorderReference
from spark_plugin.command_line import run

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
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class WaysCase:
    """Readings in order of arrival, queries, and what is asked."""

    readings: pa.Table
    queries: pa.Table
    values: tuple[str, ...]
    options: BorderOptions

    @property
    def arguments(self) -> dict[str, Any]:
        """Of `border_crossing_tables`."""
        return {**NAMES, "values": self.values, "options": self.options}

    @property
    def words(self) -> list[str]:
        """Of `coincide borders`."""
        options = self.options
        margins = (
            options.hysteresis if isinstance(options.hysteresis, tuple) else (options.hysteresis,)
        )
        words = ["--hysteresis", ",".join(map(str, margins)), "--values", ",".join(self.values)]
        given = {**NAMES, "first": options.first, "processing": options.processing,
                 "invalid": options.invalid, "unit": options.unit, "tick": options.tick}  # fmt: skip
        for name, word in given.items():
            words += [] if word is None else [f"--{name}", word]
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
        **units,  # type: ignore[arg-type]
    )
    streams, ids = (IDS[kinds[random.integers(len(kinds))]] for _ in range(2))
    readings = _readings(random, int(random.integers(1, 120)), streams, kind, values)
    return WaysCase(readings, _queries(random, ids, values), values, options)


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
    columns: dict[str, Any] = {"area": ids.take(pa.array(random.permutation(8)))}
    for name in values:
        ends = np.sort(random.integers(-7, 8, (8, 2)), axis=1).astype(float)
        ends[random.random(8) < 0.1, 1] = math.inf
        for k, end in enumerate(("lower", "upper")):
            columns[f"{end}_{name}"] = pa.array(ends[:, k], mask=random.random(8) < 0.15)
    return pa.table(columns)


def expected(case: WaysCase, *, as_they_come: bool = False) -> tuple[Rows, dict[str, Any]]:
    """The oracle's rows, sorted, and counters; readings as they come, or in order of time."""
    options, counts = case.options, _Counts()
    oracle = BorderReference(
        from_outside=options.first == "outside",
        pass_through=options.pass_through,
        margin=options.hysteresis,
    )
    for row in case.queries.to_pylist():
        sides = [(row[f"lower_{n}"], row[f"upper_{n}"]) for n in case.values]
        lower = tuple(-math.inf if a is None else a for a, _ in sides)
        upper = tuple(math.inf if b is None else b for _, b in sides)
        counts.empty += any(a == b for a, b in zip(lower, upper, strict=True))
        oracle.add(row["area"], lower, upper)
    readings = [
        (s, round(t), point) for s, t, point in _ticks_and_points(case) if counts.takes(s, t, point)
    ]
    if not as_they_come:
        readings.sort(key=lambda each: (each[1], () if _is_gap(each[2]) else each[2]))
    found: Rows = []
    for stream, time, point in readings:
        counts.see(stream, time, point)
        found += [tuple(c) for c in oracle.read(stream, time, point)]
    if not options.interpolate:
        found = [row[:-1] for row in found]
    told = {
        "readings": case.readings.num_rows, "dropped": counts.dropped, "gaps": counts.gaps,
        "repeated": counts.repeated, "late": counts.late, "queries": 8, "empty": counts.empty,
        "entered": sum(row[2] == "I" for row in found), "left": sum(row[2] == "O" for row in found),
        "rounded": counts.rounded,
    }  # fmt: skip
    return sorted(found, key=repr), told


def _ticks_and_points(case: WaysCase) -> list[tuple[Any, Any, tuple[float, ...]]]:
    kind = case.readings["at"].type
    whole = pa.float64() if pa.types.is_floating(kind) else pa.int64()
    times = case.readings["at"].cast(whole).to_pylist()
    rows = case.readings.select(["who", *case.values]).to_pylist()
    points = [
        tuple(math.nan if row[n] is None else float(row[n]) for n in case.values) for row in rows
    ]
    return [(row["who"], t, point) for row, t, point in zip(rows, times, points, strict=True)]


def _is_gap(point: tuple[float, ...]) -> bool:
    return any(map(math.isnan, point))


class _Counts:
    """What becomes of readings."""

    def __init__(self) -> None:
        self.dropped: dict[str, int] = {}
        self.gaps = self.repeated = self.late = self.empty = 0
        self.rounded, self.last = 0.0, {}

    def takes(self, stream: Any, time: Any, point: tuple[float, ...]) -> bool:
        """Whether a reading is one."""
        tests = {
            "null": stream is None or time is None,
            "not_finite": time is not None and not math.isfinite(time),
            "range": time is not None and abs(time) >= 2**61,
            "infinite": any(map(math.isinf, point)),
        }
        why = next((reason for reason, is_so in tests.items() if is_so), None)
        if why is not None:
            self.dropped[why] = self.dropped.get(why, 0) + 1
        else:
            self.rounded = max(self.rounded, abs(time - round(time)))
        return why is None

    def see(self, stream: Any, time: int, point: tuple[float, ...]) -> None:
        """Count what becomes of a reading."""
        if _is_gap(point):
            self.gaps += 1
        elif stream in self.last and time <= self.last[stream]:
            self.late += time < self.last[stream]
            self.repeated += time == self.last[stream]
        else:
            self.last[stream] = time


def rows_of(table: pa.Table) -> Rows:
    """Rows of a result, sorted, with times as ticks."""
    for k in range(3, table.num_columns):
        table = table.set_column(k, table.column_names[k], table.column(k).cast(pa.int64()))
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=repr)


def told_by(summary: BorderSummary | dict[str, Any]) -> dict[str, Any]:
    """The counters of `expected`."""
    told = dict(summary if isinstance(summary, dict) else vars(summary))
    told["rounded"] = told.get("rounded") or 0.0  # a command tells none of 0
    return {name: told[name] for name in told if name not in ("retrieved", "tick")}


def by_tables(case: WaysCase) -> tuple[pa.Table, BorderSummary]:
    """By `border_crossing_tables`."""
    report = BorderReport()
    found = border_crossing_tables(case.readings, case.queries, report=report, **case.arguments)
    return found, report.summary()


def by_pushes(case: WaysCase, seed: int) -> tuple[pa.Table, BorderSummary]:
    """By a monitor: batches of any size as they come, with a pickle between each two."""
    random = np.random.default_rng([18, seed])
    monitor = BorderMonitor(case.queries, **case.arguments)
    found, start = [monitor.push(case.readings.slice(0, 0))], 0
    while start < case.readings.num_rows:
        size = int(random.choice([1, 2, 7, 40]))
        found.append(monitor.push(case.readings.slice(start, size)))
        monitor = pickle.loads(pickle.dumps(monitor))
        start += size
    return pa.concat_tables(found), monitor.summary()


def by_command(
    case: WaysCase, place: Path, ending: str, engine: str, capsys: Any
) -> tuple[pa.Table, dict[str, Any]]:
    """By `coincide borders`, of Parquet or CSV files."""
    for name, table in (("readings", case.readings), ("queries", case.queries)):
        if ending == "csv":
            csv.write_csv(table, place / f"{name}.csv")
        else:
            pq.write_table(table, place / f"{name}.parquet", row_group_size=16)
    out = str(place / "found.parquet")
    files = [str(place / f"{name}.{ending}") for name in ("readings", "queries")]
    words = ["borders", *files, "-o", out, "--engine", engine, "--json", "--overwrite"]
    assert run([*words, *case.words]) == 0, capsys.readouterr().err
    told = json.loads(capsys.readouterr().out)
    return ds.dataset(out, format="parquet").to_table(), told
