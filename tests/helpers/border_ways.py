"""Border crossings of a random case: what the oracle says, and each way to it."""

from __future__ import annotations

import datetime as dt
import json
import math
import pickle
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from coincide import (
    BorderMonitor,
    BorderReport,
    BorderSummary,
    border_crossing_tables,
)
from coincide.command_line import run
from cpu_fallback.reference.borders import BorderReference
from tests.helpers.border_way_cases import Push, WaysCase
from tests.helpers.rows import tuples

Rows = list[tuple[Any, ...]]


class Told(NamedTuple):
    """Rows, sorted; counters; and pairs of queries and streams that are inside at last."""

    rows: Rows
    counts: dict[str, Any]
    inside: set[tuple[Any, ...]]


def expected(case: WaysCase, pushes: list[Push] | None = None, *, on_spark: bool = False) -> Told:
    """What the oracle tells: of pushes, or of the whole table in order of time."""
    options, counts = case.options, _Counts()
    oracle = BorderReference(
        from_outside=options.first == "outside",
        pass_through=options.pass_through,
        margin=options.hysteresis,
    )
    _add(oracle, case, case.queries)
    changes = {} if pushes is None else {push.start: push for push in pushes}
    readings = list(enumerate(_ticks_and_points(case)))
    if pushes is None:
        # The last row of a time counts; on Spark, where rows have no order, the least values.
        readings.reverse()
        readings.sort(key=lambda each: _place_in_time(*each[1], on_spark))
    found: Rows = []
    latest: int | None = None
    for row, (stream, time, point) in readings:
        if row in changes:
            for query in changes[row].removed:
                oracle.remove(query)
            _add(oracle, case, changes[row].added)
        if counts.takes(stream, time, point):
            latest = max(round(time), round(time) if latest is None else latest)
            counts.see(stream, round(time), point)
            found += [tuple(c) for c in oracle.read(stream, round(time), point)]
    if not options.interpolate:
        found = [row[:-1] for row in found]
    told_events = [row[2] for row in found]
    if not case.has_streams:
        found = [(row[0], *row[2:]) for row in found]
    ranges = oracle.queries.values()
    told = {
        "readings": case.readings.num_rows, "dropped": counts.dropped, "gaps": counts.gaps,
        "repeated": counts.repeated, "late": counts.late, "queries": len(ranges),
        "empty": sum(each.is_empty for each in ranges),
        "entered": told_events.count("I"), "left": told_events.count("O"),
        "rounded": counts.rounded, "latest": latest,
    }  # fmt: skip
    inside = {(query, s) if case.has_streams else (query,) for s, query in oracle.inside}
    return Told(sorted(found, key=repr), told, inside)


def _add(oracle: BorderReference, case: WaysCase, queries: pa.Table) -> None:
    for row in queries.to_pylist():
        sides = [(row[f"lower_{n}"], row[f"upper_{n}"]) for n in case.values]
        lower = tuple(-math.inf if a is None else a for a, _ in sides)
        upper = tuple(math.inf if b is None else b for _, b in sides)
        word = row["ends"] if case.closed_column else None
        oracle.add(row["area"], lower, upper, word or case.options.closed)


def _place_in_time(
    stream: Any, time: Any, point: tuple[float, ...], by_values: bool
) -> tuple[Any, ...]:
    """By which rows are sorted; what is no reading comes first and is only counted."""
    if not _Counts().takes(stream, time, point):
        return (-math.inf, ())
    return round(time), point if by_values and not _is_gap(point) else ()


def _ticks_and_points(case: WaysCase) -> list[tuple[Any, Any, tuple[float, ...]]]:
    kind = case.readings["at"].type
    whole = pa.float64() if pa.types.is_floating(kind) else pa.int64()
    times = case.readings["at"].cast(whole).to_pylist()
    rows = case.readings.to_pylist()
    points = [
        tuple(math.nan if row[n] is None else float(row[n]) for n in case.values) for row in rows
    ]
    whose = [row["who"] if case.has_streams else 0 for row in rows]
    return list(zip(whose, times, points, strict=True))


def _is_gap(point: tuple[float, ...]) -> bool:
    return any(map(math.isnan, point))


class _Counts:
    """What becomes of readings."""

    def __init__(self) -> None:
        self.dropped: dict[str, int] = {}
        self.gaps = self.repeated = self.late = 0
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
    for k, name in enumerate(table.column_names):
        if name.endswith(("min_time", "max_time", "crossing_time")):
            table = table.set_column(k, name, table.column(k).cast(pa.int64()))
    return sorted(tuples(table), key=repr)


def numbers_by(summary: BorderSummary | dict[str, Any]) -> dict[str, Any]:
    """The counters of `expected`."""
    told = dict(summary if isinstance(summary, dict) else vars(summary))
    told["rounded"] = told.get("rounded") or 0.0  # a command tells none of 0
    told["latest"] = _ticks(told.get("last_reading"))
    if isinstance(summary, BorderSummary) and summary.last_reading is not None:
        told["latest"] = pa.array([summary.last_reading]).cast(pa.int64())[0].as_py()
    return {name: told[name] for name in told if name not in ("retrieved", "tick")}


def _ticks(text: str | None) -> int | None:
    """The ticks of a time as a command prints it."""
    if text is None or text.lstrip("-").isdigit():
        return None if text is None else int(text)
    when = dt.datetime.fromisoformat(text)
    when = when if when.tzinfo else when.replace(tzinfo=dt.UTC)
    return (when - dt.datetime.fromtimestamp(0, dt.UTC)) // dt.timedelta(microseconds=1)


def by_tables(case: WaysCase) -> tuple[pa.Table, BorderSummary]:
    """By `border_crossing_tables`."""
    report = BorderReport()
    found = border_crossing_tables(case.readings, case.queries, report=report, **case.arguments)
    return found, report.summary()


def by_pushes(
    case: WaysCase, pushes: list[Push]
) -> tuple[pa.Table, BorderSummary, set[tuple[Any, ...]]]:
    """By a monitor, with a pickle between each two pushes; and who is inside what at last."""
    monitor = BorderMonitor(case.queries, **case.arguments)
    found = [monitor.push(case.readings.slice(0, 0))]
    for push in pushes:
        monitor.remove(push.removed)
        monitor.add(push.added)
        found.append(monitor.push(case.readings.slice(push.start, push.stop - push.start)))
        monitor = pickle.loads(pickle.dumps(monitor))
    return pa.concat_tables(found), monitor.summary(), set(tuples(monitor.inside()))


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
