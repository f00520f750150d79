"""Random region transitions of all that can be in a table: what the oracle says, and each way to it."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from coincide import (
    CorrelateOptions,
    TransitionMonitor,
    TransitionReport,
    TransitionSummary,
    transition_tables,
)
from coincide.command_line import run
from cpu_fallback.reference.transitions import Event, transitions
from tests.helpers.border_way_cases import IDS, TIMES
from tests.helpers.border_ways import Rows

NAMES = {"query": "area", "stream": "who", "event": "what"}
COLUMNS = ["area", "who", "what", "from", "to"]


@dataclass(frozen=True)
class WaysCase:
    """Events of one query and stream in order, and the question; `until` in ticks."""

    events: pa.Table
    within: int
    confidence: float
    until: int | None
    repeated: str
    units: dict[str, str]
    has_streams: bool = True

    @property
    def names(self) -> dict[str, Any]:
        """What columns are called."""
        return {**NAMES, "stream": NAMES["stream"] if self.has_streams else None}

    @property
    def window(self) -> int | str:
        """The time within which crossings follow, as users write it."""
        return self.within if self.is_number else f"{self.within}us"

    @property
    def is_number(self) -> bool:
        """Whether times are numbers."""
        return not pa.types.is_timestamp(self.events["from"].type)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of `TransitionMonitor`."""
        return {
            **self.names, "time": ("from", "to"), "within": self.window, "repeated": self.repeated,
            "confidence": self.confidence,
            "options": CorrelateOptions(invalid="drop", **self.units),  # type: ignore[arg-type]
        }  # fmt: skip

    @property
    def end(self) -> pa.Scalar | None:
        """`until` as the time columns have it."""
        if self.until is None:
            return None
        return pa.scalar(self.until, pa.int64()).cast(self.events["from"].type)

    @property
    def words(self) -> list[str]:
        """The words of `coincide transitions`."""
        window = str(self.window)
        given = {**self.names, **self.units, "time": "from,to", "within": window,
                 "invalid": "drop", "confidence": str(self.confidence),
                 "repeated": self.repeated}  # fmt: skip
        given["stream"] = given["stream"] or "-"
        if self.until is not None:
            given["until"] = (
                str(self.until) if self.is_number else str(np.datetime64(self.until, "us"))
            )
            given["until"] += "Z" if self.events["from"].type == pa.timestamp("us", "UTC") else ""
        return [word for name, value in given.items() for word in (f"--{name}", value)]


def random_case(seed: int, *, for_spark: bool = False, for_csv: bool = False) -> WaysCase:
    """A case; of types that Spark has, or that a CSV file tells."""
    random = np.random.default_rng([19, seed])
    kinds = ["text", "integer"] if for_csv else [k for k in IDS if not (for_spark and k == "uuid")]
    times = ["clock", "integer"] if for_csv else list(TIMES)
    kind, units = TIMES[times[random.integers(len(times))]]
    if kind.equals(pa.timestamp("us", "Europe/Rome")):
        kind = pa.timestamp("us", "UTC")
    ids = [IDS[kinds[random.integers(len(kinds))]] for _ in range(2)]
    until = None if random.random() < 0.5 else int(random.integers(0, 200))
    has_streams = bool(random.random() < 0.8)
    events = _events(random, ids, kind, 2 if has_streams else 1)
    return WaysCase(
        events if has_streams else events.drop(["who"]), int(random.integers(0, 30)),
        float(random.choice([0.2, 0.5, 0.75, 0.9, 1.0])), until,
        str(random.choice(["first", "last"])), units, has_streams,
    )  # fmt: skip


def _events(
    random: np.random.Generator, ids: list[pa.Array], kind: pa.DataType, streams: int
) -> pa.Table:
    """No two of a query and stream at one midpoint, so that their order is known without rows' order."""
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for query, stream in np.ndindex(3, streams):
        n = int(random.integers(0, 9))
        midpoints, margins = np.cumsum(random.integers(2, 30, n)) - 20, random.integers(0, 12, n)
        words = np.array(["I", "O"] * 5)[random.integers(2) :][:n]
        words[random.random(n) < 0.15] = "I"
        columns["area"] += [ids[0][query]] * n
        columns["who"] += [ids[1][stream]] * n
        columns["what"] += words.tolist()
        columns["from"] += (midpoints - margins).tolist()
        columns["to"] += (midpoints + margins).tolist()
    n = len(columns["what"])
    bad = random.random((5, n)) < 0.02
    made: dict[str, pa.Array] = {}
    for k, name in enumerate(COLUMNS):
        of = [ids[0].type, ids[1].type, pa.string(), pa.int64(), pa.int64()][k]
        values = [v.as_py() if isinstance(v, pa.Scalar) else v for v in columns[name]]
        made[name] = pa.array(values, of) if not bad[k].any() else _holed(values, bad[k], of)
    for name in ("from", "to"):
        if pa.types.is_floating(kind):
            whole = made[name].cast(kind).to_numpy(zero_copy_only=False).copy()
            whole += random.choice([0, 0.25, -0.25], n)
            whole[random.random(n) < 0.03] = random.choice([math.inf, 1e30])
            made[name] = pa.array(whole, mask=bad[3])
        else:
            made[name] = (
                made[name].cast(pa.int32() if kind == pa.int32() else pa.int64()).cast(kind)
            )
    wrong = random.random(n) < 0.03
    made["what"] = pa.array(
        ["i" if w else v for w, v in zip(wrong, made["what"].to_pylist(), strict=True)], pa.string()
    )
    swap = random.random(n) < 0.02
    low, high = made["from"], made["to"]
    made["from"] = pc.if_else(pa.array(swap), high, low)
    made["to"] = pc.if_else(pa.array(swap), low, high)
    return pa.table(made)


def _holed(values: list[Any], bad: np.ndarray, kind: pa.DataType) -> pa.Array:
    return pa.array([None if b else v for b, v in zip(bad, values, strict=True)], kind)


def expected(case: WaysCase) -> tuple[Rows, dict[str, Any]]:
    """The oracle's rows, sorted, and counters."""
    valid: list[Event] = []
    dropped: dict[str, int] = {}
    rounded = 0.0
    kind = case.events["from"].type
    ticks = pa.float64() if pa.types.is_floating(kind) else pa.int64()
    whose = case.events if case.has_streams else case.events.append_column(
        "who", pa.array([0] * case.events.num_rows)
    )  # fmt: skip
    columns = [whose[name].to_pylist() for name in COLUMNS[:3]]
    columns += [case.events[name].cast(ticks).to_pylist() for name in COLUMNS[3:]]
    for query, stream, word, low, high in zip(*columns, strict=True):
        why = _fault(query, stream, word, low, high)
        if why is None:
            rounded = max(rounded, abs(low - round(low)), abs(high - round(high)))
            valid.append((query, stream, word, round(low), round(high)))
        else:
            dropped[why] = dropped.get(why, 0) + 1
    rows, undecided = transitions(valid, case.within, case.confidence, case.until, case.repeated)
    words = [row[2] for row in rows]
    crossed = {row[:2] + row[3:5] for row in rows if "!" not in row[2]}
    stayed = {row[:2] + row[3:5] for row in rows if "!" in row[2]}
    told_rows = rows if case.has_streams else [(row[0], *row[2:]) for row in rows]
    told = {
        "events": case.events.num_rows, "dropped": dropped, "undecided": undecided, "rounded": rounded,
        "found": {word: words.count(word) for word in ("I>O", "O>I", "I>!O", "O>!I")},
        "repeated": _repeats(valid), "both": len(crossed & stayed),
    }  # fmt: skip
    return sorted(told_rows, key=repr), told


def _fault(query: Any, stream: Any, word: Any, low: Any, high: Any) -> str | None:
    if None in (query, stream, word, low, high):
        return "null"
    if word not in ("I", "O"):
        return "event"
    if not (math.isfinite(low) and math.isfinite(high)):
        return "not_finite"
    if max(abs(low), abs(high)) >= 2**61:
        return "range"
    return "order" if round(low) > round(high) else None  # ticks are compared


def _repeats(events: list[Event]) -> int:
    last: dict[Any, str] = {}
    repeats = 0
    for query, stream, word, *_ in sorted(events, key=lambda each: each[3] + each[4]):
        repeats += last.get((query, stream)) == word
        last[query, stream] = word
    return repeats


def numbers_by(summary: TransitionSummary | dict[str, Any]) -> dict[str, Any]:
    """The counters of `expected`."""
    told = summary if isinstance(summary, dict) else {**vars(summary), **vars(summary.counts)}
    return {**told, "rounded": told.get("rounded") or 0.0}


def by_tables(case: WaysCase, seed: int) -> tuple[pa.Table, TransitionSummary]:
    """By `transition_tables`, of rows in any order."""
    report = TransitionReport()
    order = np.random.default_rng([20, seed]).permutation(case.events.num_rows)
    found = transition_tables(
        case.events.take(pa.array(order)), until=case.end, report=report, **case.arguments
    )
    return found, report.summary()


def by_pushes(case: WaysCase, seed: int) -> tuple[pa.Table, TransitionSummary]:
    """By a monitor: batches of any size, with a pickle between each two."""
    random = np.random.default_rng([21, seed])
    monitor = TransitionMonitor(**case.arguments)
    found, start = [monitor.push(case.events.slice(0, 0))], 0
    while start < case.events.num_rows:
        size = int(random.choice([1, 2, 7, 20]))
        found.append(monitor.push(case.events.slice(start, size)))
        monitor = pickle.loads(pickle.dumps(monitor))
        start += size
    found.append(monitor.flush(case.end))
    return pa.concat_tables(found), monitor.summary()


def by_command(
    case: WaysCase, place: Path, ending: str, engine: str, capsys: Any
) -> tuple[pa.Table, dict[str, Any]]:
    """By `coincide transitions`, of a Parquet or a CSV file."""
    path, out = str(place / f"events.{ending}"), str(place / "found.parquet")
    (csv.write_csv if ending == "csv" else pq.write_table)(case.events, path)
    words = ["transitions", path, "-o", out, "--engine", engine, "--json", "--overwrite"]
    assert run([*words, *case.words]) == 0, capsys.readouterr().err
    told = json.loads(capsys.readouterr().out)
    return ds.dataset(out, format="parquet").to_table(), told
