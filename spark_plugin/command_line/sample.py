"""A sample whose truth is known: badge readers with drifting clocks and polled door sensors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

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
    """Badge and door events with their true times.

    Parameters
    ----------
    badges, doors : pa.Table
        Columns id (int64, the row's number), door (string), min_time and max_time (timestamps).
    badge_times, door_times : int64 arrays
        When it really happened, microseconds, by id. No join sees them.
    planted : int64 array, shape (n, 2)
        Ids of badge and door opening that belong together.
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
    planted = np.column_stack([np.flatnonzero(opened), np.arange(rows - others)])
    badge_order, door_order = np.argsort(badge_times), np.argsort(door_times)
    planted = np.column_stack(
        [np.argsort(badge_order)[planted[:, 0]], np.argsort(door_order)[planted[:, 1]]]
    )
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
