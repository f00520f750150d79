"""Times of Parquet files that Spark cannot count, as far as statistics tell of them."""

from __future__ import annotations

from collections.abc import Sequence

from coincide.engine.files.finding import ParquetFiles
from coincide.engine.files.footers import Footer
from coincide.model.units import NANOSECONDS_PER_UNIT
from spark_plugin.cluster.spark_errors import SPARK_COUNTS, BeyondMicroseconds

_MOST_MILLISECONDS = (2**63 - 1) // 1000


def refuse_beyond_microseconds(
    files: ParquetFiles, footers: Sequence[Footer], names: Sequence[str], instead: str
) -> None:
    """Refuse milliseconds that Spark fails to turn into microseconds, as far as statistics tell of them."""
    for path, footer in zip(files.paths, footers, strict=True):
        for name in names:
            stored, ranges = footer.ranges[name]
            if stored is None or stored.nanoseconds != NANOSECONDS_PER_UNIT["ms"]:
                continue
            if any(is_beyond_microseconds(end) for ends in ranges for end in ends or ()):
                raise BeyondMicroseconds(
                    f"{files.side}: the column {name!r} holds times in milliseconds beyond"
                    f" ±{_MOST_MILLISECONDS:,} in {path}, and {SPARK_COUNTS}. Remove such rows"
                    f" from the file, or {instead}."
                )


def is_beyond_microseconds(milliseconds: int | float | None) -> bool:
    """Whether a time in milliseconds has no value in microseconds; infinity stands for no value."""
    return isinstance(milliseconds, int) and abs(milliseconds) > _MOST_MILLISECONDS
