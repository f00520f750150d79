"""`coincide demo`: a sample with known truth, joined and marked."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from coincide.command_line.join import JoinRequest
from coincide.command_line.problems import Problem
from coincide.command_line.requests import ENGINES
from coincide.command_line.runs import run as answered
from coincide.command_line.summary import Summary
from coincide.engine.join.arguments import JoinArguments
from coincide.engine.join.tables import correlate_tables
from coincide.model.condition import TimingCondition, within
from coincide.model.errors import brief
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
    """Badge and door events, their true times, and the pairs that belong together.

    A pair is a code: id of the badge * number of badges + id of the door.
    """

    badges: pa.Table
    doors: pa.Table
    badge_times: np.ndarray
    door_times: np.ndarray
    planted: np.ndarray


def make_sample(rows: int, seed: int) -> Sample:
    """Make a sample with so many events a side.

    Badge readers stamp an event with a clock known to within +-e; a polled door sensor only says
    that the door opened since it was last asked. Most badges open a door; other openings are
    unrelated.
    """
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
    badge_ids = np.argsort(badge_order)[np.flatnonzero(opened)]
    planted = badge_ids * rows + np.argsort(door_order)[: badge_ids.size]
    badge_times, badge_door = badge_times[badge_order], badge_door[badge_order]
    door_times, door_door = door_times[door_order], door_door[door_order]
    return Sample(
        _table(badge_door, *_drifting(badge_times, badge_door, rng)),
        _table(door_door, *_polled(door_times, door_door)),
        badge_times, door_times, planted,
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


_ASKED = 0.1
_SHOWN = (0.1, 0.5, 0.9)
_TICKS_PER_SECOND = 1_000_000
_LO, _HI = (f"{seconds}s" for seconds in WINDOW_SECONDS)


@dataclass(frozen=True, eq=False)
class Marked:
    """The pairs of each join as codes of a `Sample`: by the true times, by middles, and ours."""

    right: np.ndarray
    plain: np.ndarray
    found: np.ndarray
    probability: np.ndarray


def run(rows: int, seed: int, keep: bool, engine: str, debug: bool) -> None:
    """Make the sample, join it, and print what was found."""
    check_choice("--engine", engine, ENGINES)
    if seed < 0:
        raise Problem(f"--seed must not be negative; found {brief(seed)}")
    console = Console(highlight=False)
    sample = make_sample(rows, seed)
    with _folder(keep) as folder:
        paths = [os.path.join(folder, f"{name}.parquet") for name in ("badges", "doors")]
        for path, table in zip(paths, (sample.badges, sample.doors), strict=True):
            pq.write_table(table, path)
        console.print(
            f"[b]The sample[/b]: {rows:,} badge events, stamped by clocks that are off by up to"
            f" 1.2 s, and {rows:,} door openings, seen by sensors that are asked every 0.25 to 4 s."
            f" Which door opened within {WINDOW_SECONDS[1]} s of which badge?\n"
        )
        # Joins of exact instants, which also compile what the workers will load.
        right = _exact_pairs(sample, sample.badge_times, sample.door_times)
        plain = _exact_pairs(sample, _middles(sample.badges), _middles(sample.doors))
        output = os.path.join(folder, "pairs.parquet")
        summary = answered(_request(paths, output, engine, debug))
        found = ds.dataset(output, format="parquet").to_table()
        marked = Marked(right, plain, _codes(found, rows), found["probability"].to_numpy())
        _print_speed(console, rows, summary)
        _print_marks(console, sample, marked)
        _print_examples(console, sample, marked)
        _print_next(console, paths, output, keep)


def _request(paths: list[str], output: str, engine: str, debug: bool) -> JoinRequest:
    condition = TimingCondition(within(_LO, _HI), _ASKED)
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


def _print_speed(console: Console, rows: int, summary: Summary) -> None:
    where = "Spark, local\\[*]" if summary.engine == "spark" else "one process"
    started = (
        ""
        if summary.start_seconds is None
        else f", just after Spark had started, which took {summary.start_seconds:.1f} s"
    )
    counted = summary.counted.values  # only an accelerated session does not count, and ours is not
    console.print(
        f"[b]The join[/b] on {where}: {counted['pairs']:,} pairs in {summary.seconds:.1f} s,"
        f" {2 * rows / summary.seconds:,.0f} events a second{started}."
        f" Of {counted['candidates']:,} candidates {counted['probed']:,} were probed.\n"
    )


def _print_marks(console: Console, sample: Sample, marked: Marked) -> None:
    table = Table(title="What each join found", title_justify="left")
    table.add_column("join")
    for name in ("pairs", "planted found", "right pairs missed", "wrong pairs"):
        table.add_column(name, justify="right")
    table.add_row("plain, on the middles of the timestamps", *_marks(sample, marked, marked.plain))
    table.add_section()
    for confidence in _SHOWN:
        found = marked.found[marked.probability >= confidence - 2.0**-50]
        table.add_row(f"coincide, confidence {confidence}", *_marks(sample, marked, found))
    console.print(table)
    console.print(
        "A wrong pair is one whose true times, which no join saw, do not meet the condition. The"
        " plain join has one answer, close to ours at 0.5. With a confidence you say whether to"
        " miss little or to be sure.\n"
    )


def _marks(sample: Sample, marked: Marked, found: np.ndarray) -> list[str]:
    planted = np.isin(sample.planted, found, assume_unique=True).mean()
    right = int(np.isin(found, marked.right, assume_unique=True).sum())
    wrong = found.size - right
    return [
        f"{found.size:,}",
        f"{planted:.1%}",
        f"{marked.right.size - right:,}",
        f"{wrong:,} ({wrong / max(1, found.size):.1%})",
    ]


def _print_examples(console: Console, sample: Sample, marked: Marked) -> None:
    in_plain = np.isin(marked.found, marked.plain)
    is_right = np.isin(marked.found, marked.right)
    kinds = {
        "missed by the plain join": ~in_plain & is_right,
        "wrong, in the plain join": in_plain & ~is_right,
        "found by both": in_plain & is_right & (marked.probability > 0.9),
    }
    table = Table(title="Some pairs", title_justify="left")
    for name in ("door", "badge between", "door opened between", "probability", "truly after", ""):
        table.add_column(
            name, justify="right" if name in ("probability", "truly after") else "left"
        )
    for kind, mask in kinds.items():
        rows = np.flatnonzero(mask)
        for row in rows[:: max(1, rows.size // 2)][:2]:
            table.add_row(*_example(sample, marked, int(row)), kind)
    console.print(table)


def _example(sample: Sample, marked: Marked, row: int) -> list[str]:
    badge, door = divmod(int(marked.found[row]), len(sample.badge_times))
    after = (sample.door_times[door] - sample.badge_times[badge]) / _TICKS_PER_SECOND
    return [
        sample.badges["door"][badge].as_py(),
        _interval(sample.badges, badge),
        _interval(sample.doors, door),
        f"{marked.probability[row]:.2f}",
        f"{after:.2f} s",
    ]


def _interval(side: pa.Table, row: int) -> str:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    ends = [
        epoch + timedelta(microseconds=side[name][row].cast(pa.int64()).as_py())
        for name in ("min_time", "max_time")
    ]
    return " – ".join(f"{end:%H:%M:%S}.{end.microsecond // 10_000:02d}" for end in ends)


def _print_next(console: Console, paths: list[str], output: str, keep: bool) -> None:
    left, right, out = (paths[0], paths[1], output) if keep else ("LEFT", "RIGHT", "OUT")
    intro = "The same from the command line" if keep else "On your own files"
    again = " --overwrite" if keep else ""
    by = "door" if keep else "KEY"
    print(
        f"\n{intro}:\n  coincide join {left} {right} -o {out} --by {by} --within {_LO} {_HI}"
        f" --confidence {_ASKED} --probability{again}"
    )
    if not keep:
        print("coincide join --help explains it; coincide demo --keep leaves this sample to try.")


@contextmanager
def _folder(keep: bool) -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="coincide-demo-")
    try:
        yield folder
    except BaseException:
        keep = False
        raise
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)
