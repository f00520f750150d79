"""Files on Spark: `correlate_files` by all ways, the data source, and the command line."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from bench.hunt.cases import Case, Verdict, Way
from bench.hunt.chance import Chance
from bench.hunt.comparing import Found, counts_of
from bench.hunt.data import DataSet
from bench.hunt.jobs import arguments
from bench.hunt.judging import judge_join
from bench.hunt.layouts import can_be_parquet
from bench.hunt.sessions import Sessions
from bench.hunt.ways.changing import KINDS, change_files, judge_changed, judge_either
from bench.hunt.ways.command import joined
from bench.hunt.ways.files import of_slices, slicing, write_sides
from bench.hunt.ways.spark_frames import SLICE_ROWS
from bench.hunt.wording import source_options
from coincide import correlate_files
from coincide.engine.reports.join_report import JoinSummary

_standard_streams = threading.Lock()


_slicing = partial(slicing, slice_rows=SLICE_ROWS)


def file_ways(sessions: Sessions) -> list[Way]:
    """Ways of files in the sessions of a hunt."""
    ways = [
        Way(f"files, {way}", partial(_judge, sessions, way), _slicing, suits, weight=weight)
        for way, suits, weight in (
            ("files", can_be_parquet, 14),
            ("auto", spark_reads, 8),
            ("broadcast", spark_reads, 4),
            ("exchange", spark_reads, 4),
        )
    ]
    return [
        *ways,
        Way(
            "changing files", partial(_judge_changing, sessions), _slicing, can_be_parquet, weight=5
        ),
        Way("source", partial(_judge_source, sessions), of_slices, can_be_parquet, weight=7),
        Way("command", partial(_judge_command, sessions), of_slices, spark_reads, weight=2),
    ]


def spark_reads(data: DataSet) -> bool:
    """Whether Spark reads the times of such files: it has no nanoseconds."""
    return can_be_parquet(data) and all(
        kind.step != "ns" and kind.family != "duration"
        for side in data.sides
        for kind in side.types
    )


def _judge(sessions: Sessions, way: str, case: Case, folder: Path) -> Verdict:
    chance = case.chance("files")
    left, right = write_sides(case.data, chance, folder)
    output = folder / "out" if chance.happens(50) else None

    def attempt() -> Found:
        condition, given = arguments(case.data, case.job)
        given["options"] = replace(given["options"], way=way)
        found = correlate_files(sessions.of(case), left, right, condition, output=output, **given)
        return _found(found, output)

    return judge_join(case, attempt, set() if way == "files" else _may(case.data))


def _may(data: DataSet) -> set[str]:
    """Spark counts microseconds: milliseconds that are too many of them, it cannot read."""
    most = (2**63 - 1) // 10**3
    for side in data.sides:
        for i, kind in enumerate(side.types):
            factor = {"s": 10**3, "ms": 1}.get(kind.step or "", 0)
            if any(abs(row[i] or 0) * factor > most for row in side.rows):
                return {"BeyondMicroseconds"}
    return set()


def _found(found: Any, output: Path | None) -> Found:
    if not isinstance(found, JoinSummary):
        return Found(found.toArrow())
    table = ds.dataset(str(output), format="parquet").to_table()
    if table.num_rows != found.rows:
        raise AssertionError(f"{found.rows} rows were reported, {table.num_rows} written")
    return Found(table, counts_of(found.left), counts_of(found.right))


def _judge_changing(sessions: Sessions, case: Case, folder: Path) -> Verdict:
    """Other files in the place of those that were planned, before the result is computed."""
    write_sides(case.data, case.chance("changing"), folder, old=False)
    kind = case.chance("kind").choice(KINDS)
    try:
        condition, given = arguments(case.data, case.job)
        left, right = str(folder / "left"), str(folder / "right")
        given["options"] = replace(given["options"], way="files")
        planned = correlate_files(sessions.of(case), left, right, condition, **given)
        later = change_files(kind, case, folder)
        table: pa.Table = planned.toArrow()
    except Exception as error:
        return judge_changed(case, error)
    return judge_either(case, [case.data, later], Found(table), kind)


def _judge_source(sessions: Sessions, case: Case, folder: Path) -> Verdict:
    left, right = write_sides(case.data, case.chance("source"), folder)

    def attempt() -> Found:
        options = {"left": left, "right": right, **source_options(case, folder)}
        # The session that it is registered in: another one neither finds it nor can register it.
        read = sessions.compiling.read
        return Found(read.format("coincide").options(**options).load().toArrow())

    return judge_join(case, attempt)


def _judge_command(sessions: Sessions, case: Case, folder: Path) -> Verdict:
    chance: Chance = case.chance("command")
    inputs = write_sides(case.data, chance, folder)
    way = chance.choice(("auto", "files", "broadcast", "exchange"))

    def attempt() -> Found:
        # The command line takes the session that is active in its thread, and standard output.
        with _standard_streams:
            sessions.of(case).createDataFrame([], "id bigint")
            return joined(case, inputs, folder, "spark", "--way", way)

    return judge_join(case, attempt, set() if way == "files" else _may(case.data))
