"""Seeded event streams."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

EPOCH_US = 1_767_225_600_000_000
"""2026-01-01 UTC, where streams of timestamps begin, in microseconds."""
SHORTEST_US, LONGEST_US = 20_000, 200_000
"""rho and pi of every stream, in microseconds."""
DEADLINE_US = 500_000
"""The mutual deadline of every join, in microseconds."""
CONFIDENCE = 0.8
"""The confidence threshold of every join."""
_ROW_GROUPS = 8


@dataclass(frozen=True)
class Condition:
    """What pairs must meet: |T_right - T_left| <= deadline with a confidence."""

    deadline_us: int = DEADLINE_US
    confidence: float = CONFIDENCE

    @property
    def reach_us(self) -> int:
        """No pair that meets it has max_times further apart."""
        return self.deadline_us + LONGEST_US


@dataclass(frozen=True)
class Load:
    """Two streams over the same days, and the join of them."""

    events: int  # each side's
    rate: float  # left events per second
    right_events: int | None = None  # where the right side has more or fewer

    @property
    def sizes(self) -> tuple[int, int]:
        """Events of the left side, and of the right one."""
        return self.events, self.events if self.right_events is None else self.right_events

    def tables(self, *, timestamps: bool = False) -> tuple[pa.Table, pa.Table]:
        """Left and right: ``id`` and the times, as int64 microseconds or as timestamps."""
        left, right = (
            stream(events, self.rate * events / self.events, seed)
            for seed, events in enumerate(self.sizes, 1)
        )
        return (with_timestamps(left), with_timestamps(right)) if timestamps else (left, right)

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Left and right as Parquet files of timestamps, ordered by time, in several row groups."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = folder / "left.parquet", folder / "right.parquet"
        for path, table in zip(paths, self.tables(timestamps=True), strict=True):
            rows = max(1, -(-table.num_rows // _ROW_GROUPS))
            pq.write_table(table, path, row_group_size=rows, compression="zstd")
        return paths


def stream(events: int, rate: float, seed: int) -> pa.Table:
    """A stream with uniform times and lengths: int64 ids and microseconds, ordered by ``min_time``."""
    random = np.random.default_rng(seed)
    begin = np.sort(random.integers(0, int(events / rate * 1e6), events))
    length = random.integers(SHORTEST_US, LONGEST_US, events, endpoint=True)
    return pa.table({"id": np.arange(events), "min_time": begin, "max_time": begin + length})


def with_timestamps(table: pa.Table) -> pa.Table:
    """The times as timestamps in UTC, from `EPOCH_US` on."""
    times = {
        name: pa.array(table[name].to_numpy() + EPOCH_US).cast(pa.timestamp("us", tz="UTC"))
        for name in ("min_time", "max_time")
    }
    return pa.table({"id": table["id"], **times})
