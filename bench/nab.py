"""The NAB series and the windows of their anomalies."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "nab"
"""Next to the repository, which does not hold the series."""


def read_series() -> pa.Table:
    """Columns series, timestamp, value; a FileNotFoundError if they are not here."""
    return pq.read_table(FOLDER / "series.parquet")


def read_windows() -> pa.Table:
    """Columns series, min_time, max_time: when something was wrong."""
    return pq.read_table(FOLDER / "windows.parquet")
