"""`coincide demo`: a sample with known truth, joined at three confidences and by a plain join."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from coincide.command_line.engines import run as answered
from coincide.command_line.join import JoinRequest
from coincide.command_line.problems import Problem
from coincide.command_line.requests import ENGINES
from coincide.command_line.summary import Summary
from coincide.engine.exploration.exploring import explore_tables
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.join import correlate_tables
from coincide.model.condition import TimingCondition, within
from coincide.model.errors import BackendError, brief
from coincide.model.extras import SPARK, require
from coincide.model.options import check_choice

WINDOW_SECONDS = (0, 3)
"""A door that opens within 3 s of a badge was opened with it."""

_SECOND = 1_000_000
_START = 1_767_225_600 * _SECOND  # 2026-01-01T00:00:00Z
_BADGES_PER_DOOR = 2_000
_MEAN_GAP = 8 * _SECOND
_CLOCK_ERRORS = np.array([0.05, 0.4, 1.2])
_POLLING = np.array([0.25, 1.0, 4.0])
_OPENED_SHARE = 0.75
_DELAY_SECONDS = (0.2, 2.8)


@dataclass(frozen=True, eq=False)
class Sample:
    """Badge and door events, and their true times, which no join sees."""

    badges: pa.Table
    doors: pa.Table
    badge_times: np.ndarray
    door_times: np.ndarray


def make_sample(rows: int, seed: int) -> Sample:
    """Make a sample of `rows` events a side."""
    # Badge readers stamp an event with a clock known to within +-e; a polled door sensor only says
    # that the door opened since it was last asked. Most badges open a door; other openings are
    # unrelated.
    rng = np.random.default_rng(seed)
    doors = max(1, rows // _BADGES_PER_DOOR)
    badge_door = rng.integers(0, doors, rows)
    span = rows / doors * _MEAN_GAP
    badge_times = _START + (rng.random(rows) * span).astype(np.int64)
    opened = rng.random(rows) < _OPENED_SHARE
    delays = (rng.uniform(*_DELAY_SECONDS, rows) * _SECOND).astype(np.int64)
    others = int(rows - opened.sum())
    door_times = np.concatenate(
        [(badge_times + delays)[opened], _START + (rng.random(others) * span).astype(np.int64)]
    )
    door_door = np.concatenate([badge_door[opened], rng.integers(0, doors, others)])
    badge_order, door_order = np.argsort(badge_times), np.argsort(door_times)
    badge_times, badge_door = badge_times[badge_order], badge_door[badge_order]
    door_times, door_door = door_times[door_order], door_door[door_order]
    return Sample(
        _table(badge_door, *_drifting(badge_times, badge_door, rng)),
        _table(door_door, *_polled(door_times, door_door)),
        badge_times, door_times,
    )  # fmt: skip


def _drifting(
    times: np.ndarray, door: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The true time lies anywhere within the clock's error around the stamp."""
    error = (_CLOCK_ERRORS[door % _CLOCK_ERRORS.size] * _SECOND).astype(np.int64)
    stamp = times + (rng.uniform(-1, 1, times.size) * error).astype(np.int64)
    return stamp - error, stamp + error


def _polled(times: np.ndarray, door: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The last question before the event, and the first one after it."""
    period = (_POLLING[door // _CLOCK_ERRORS.size % _POLLING.size] * _SECOND).astype(np.int64)
    before = times // period * period
    return before, before + period


def _table(door: np.ndarray, lowest: np.ndarray, highest: np.ndarray) -> pa.Table:
    instant = pa.timestamp("us", "UTC")
    names = pa.array([f"door-{number:03d}" for number in range(int(door.max()) + 1)])
    return pa.table(
        {
            "id": np.arange(door.size),
            "door": names.take(pa.array(door)),
            "min_time": pa.array(lowest).cast(instant),
            "max_time": pa.array(highest).cast(instant),
        }
    )


_INPUTS = ("badges.parquet", "doors.parquet")
_PAIRS, _PAGE = "pairs.parquet", "explore.html"
_SHOWN = (0.1, 0.5, 0.9)
_LO, _HI = (f"{seconds}s" for seconds in WINDOW_SECONDS)


def run(rows: int, seed: int, keep: str | None, engine: str, debug: bool) -> None:
    """Make the sample, join it, and print what was found."""
    check_choice("--engine", engine, ENGINES)
    if engine == "spark":
        try:
            require(SPARK, "pyspark", "pandas")
        except BackendError as error:
            raise Problem(
                f"{error} Or join in this process: coincide demo --engine local."
            ) from None
    if seed < 0:
        raise Problem(f"--seed must not be negative (found {brief(seed)}).")
    console = Console(highlight=False)
    with _folder(keep) as folder:
        sample = make_sample(rows, seed)
        *paths, output, page = (
            os.path.normpath(os.path.join(folder, name)) for name in (*_INPUTS, _PAIRS, _PAGE)
        )
        for path, table in zip(paths, (sample.badges, sample.doors), strict=True):
            pq.write_table(table, path)
        console.print(
            f"{rows:,} badge events, from clocks that are off by up to 1.2 s. {rows:,} door openings, from"
            f" sensors that are read every 0.25 to 4 s. Which door opened within {WINDOW_SECONDS[1]} s of"
            " which badge?\n"
        )
        # Joins of exact instants, which also compile what the workers will load.
        right = _exact_pairs(sample, sample.badge_times, sample.door_times)
        plain = _exact_pairs(sample, _middles(sample.badges), _middles(sample.doors))
        summary = answered(_request(paths, output, engine, debug))
        _print_marks(console, right, plain, ds.dataset(output, format="parquet").to_table(), rows)
        _print_speed(console, rows, summary)
        _print_page(console, sample, f"{folder}.html" if keep is None else page)
        _print_next(*(("LEFT", "RIGHT", "OUT") if keep is None else (*paths, output)))


def _request(paths: list[str], output: str, engine: str, debug: bool) -> JoinRequest:
    condition = TimingCondition(within(_LO, _HI), _SHOWN[0])
    arguments = JoinArguments(condition, by="door", probability=True)
    return JoinRequest(
        left=paths[0], right=paths[1], output=output, arguments=arguments, engine=engine,
        debug=debug,
    )  # fmt: skip


def _exact_pairs(sample: Sample, *times: np.ndarray) -> np.ndarray:
    """The pairs that meet the window by these times of badges and doors."""
    badges, doors = (
        side.append_column("time", pa.array(time).cast(pa.timestamp("us")))
        for side, time in zip((sample.badges, sample.doors), times, strict=True)
    )
    found = correlate_tables(
        badges,
        doors,
        TimingCondition(within(_LO, _HI), 1.0),
        left_time="time",
        right_time="time",
        by="door",
    )
    return _codes(found, len(sample.badge_times))


def _codes(pairs: pa.Table, n: int) -> np.ndarray:
    return pairs["left_id"].to_numpy() * n + pairs["right_id"].to_numpy()


def _middles(side: pa.Table) -> np.ndarray:
    lowest, highest = (side[name].cast(pa.int64()).to_numpy() for name in ("min_time", "max_time"))
    return (lowest + highest) // 2


def _print_marks(
    console: Console, right: np.ndarray, plain: np.ndarray, found: pa.Table, rows: int
) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("join")
    for name in ("found", "missed", "wrong"):
        table.add_column(name, justify="right")
    table.add_row("plain join", *_marks(right, plain))
    codes, probability = _codes(found, rows), found["probability"].to_numpy()
    for confidence in _SHOWN:
        shown = codes[probability >= confidence - 2.0**-50]
        table.add_row(f"confidence {confidence}", *_marks(right, shown))
    console.print(table)
    console.print(
        f"\n{right.size:,} pairs are right, by the true times that no join saw. A plain join, on the"
        " middles of the intervals, has one answer. With a confidence you choose: miss little, or be sure."
    )


def _marks(right: np.ndarray, found: np.ndarray) -> list[str]:
    """Right pairs that were found and missed, and wrong ones among those found."""
    hits = int(np.isin(found, right, assume_unique=True).sum())
    return [f"{number:,}" for number in (hits, right.size - hits, found.size - hits)]


def _print_speed(console: Console, rows: int, summary: Summary) -> None:
    where = "Spark, local\\[*]," if summary.engine == "spark" else "One process"
    started = (
        ""
        if summary.start_seconds is None
        else f" Spark took {summary.start_seconds:.1f} s to start before that."
    )
    console.print(
        f"{where} joined {2 * rows:,} events in {summary.seconds:.2f} s,"
        f" {2 * rows / summary.seconds:,.0f} a second.{started}"
    )


def _print_page(console: Console, sample: Sample, page: str) -> None:
    """Save the page of `coincide explore`, and say where it is."""
    try:
        explore_tables(sample.badges, sample.doors, within=(_LO, _HI), by="door").save(page)
    except BackendError as error:  # without Altair
        console.print(
            f"There is no page of coincide explore: {error}", markup=False, soft_wrap=True
        )
    else:
        print(f"How many pairs there are at each confidence: open {page}")


def _print_next(left: str, right: str, output: str) -> None:
    is_kept = left != "LEFT"
    intro = "The same from the command line" if is_kept else "On your own files"
    again = " --overwrite" if is_kept else ""
    by = "door" if is_kept else "KEY"
    print(
        f"\n{intro}:\n  coincide join {shlex.join((left, right))} -o {shlex.quote(output)} --by {by}"
        f" --within {_LO} {_HI} --confidence {_SHOWN[0]} --probability{again}"
    )
    if not is_kept:
        print("coincide join --help explains it. coincide demo --keep leaves this sample to try.")


@contextmanager
def _folder(keep: str | None) -> Iterator[str]:
    """Where the sample lies meanwhile, or is kept; what was kept of a demo that fails is removed."""
    if keep is None:
        with tempfile.TemporaryDirectory(
            prefix="coincide-demo-", ignore_cleanup_errors=True
        ) as own:
            yield own
        return
    made = [os.path.join(keep, name) for name in (*_INPUTS, _PAIRS, _PAGE)]
    there = next(filter(os.path.lexists, made), None)
    if there is not None:
        raise Problem(
            f"--keep would replace a file (found {os.path.normpath(there)}). Remove it, or name another"
            " folder, such as --keep demo."
        )
    try:
        os.makedirs(keep, exist_ok=True)
    except OSError as error:
        raise Problem(
            f"--keep cannot make its folder ({error.strerror}: {error.filename}). Name another one."
        ) from error
    try:
        yield keep
    except BaseException:
        for path in made:
            with suppress(OSError):
                shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
        raise
