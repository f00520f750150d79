"""The rows of an answer: each key's segments, or one that says why it has no error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from coincide.engine.events.schemas import as_times, computed_time
from coincide.model.clocks.errors import PARTS_PER_MILLION, ClockEstimate, Segment
from coincide.model.units import Tick

_DURATIONS = ("s", "ms", "us", "ns")
_NAMES = (
    "segment", "status", "start", "end", "offset", "offset_error", "drift", "drift_error", "spread",
    "low", "high", "pairs", "accidental_pairs", "chance", "rival_offset", "left_rows", "right_rows",
)  # fmt: skip
_LENGTHS = ("offset", "spread", "low", "high", "rival_offset")
_NUMBERS = ("drift", "drift_error", "pairs", "accidental_pairs", "chance")


@dataclass(frozen=True)
class ErrorRows:
    """What the columns of an answer are."""

    keys: tuple[pa.Field, ...]
    time: pa.DataType
    tick: Tick

    @classmethod
    def of(cls, keys: Sequence[pa.Field], left_time: pa.DataType, tick: Tick) -> ErrorRows:
        """For keys, and the type of left times."""
        return cls(tuple(keys), computed_time(left_time, tick), tick)

    @property
    def _is_duration(self) -> bool:
        return not pa.types.is_integer(self.time) and self.tick.unit in _DURATIONS

    @property
    def length(self) -> pa.DataType:
        """The type of offsets: a duration, or of numbers ticks and fractions of them."""
        return pa.duration(self.tick.unit) if self._is_duration else pa.float64()

    @property
    def schema(self) -> pa.Schema:
        """All columns."""
        kinds = {
            "segment": pa.int64(), "status": pa.string(), "start": self.time, "end": self.time,
            "left_rows": pa.int64(), "right_rows": pa.int64(), **dict.fromkeys(_NUMBERS, pa.float64()),
        }  # fmt: skip
        made = [pa.field(name, kinds.get(name, self.length)) for name in _NAMES]
        return pa.schema([*self.keys, *made])

    def table(
        self, keys: Sequence[pa.Array], found: Sequence[ClockEstimate], rows: np.ndarray
    ) -> pa.Table:
        """The answer; rows: the number of events of each key, int64 array, shape (keys, 2)."""
        each = [(k, i, segment) for k, one in enumerate(found) for i, segment in _listed(one)]
        numbers = np.array([k for k, _, _ in each], np.int64)
        answers = [found[k] for k in numbers]
        segments = [segment for _, _, segment in each]
        columns = {
            **self._of_segments(segments),
            "segment": pa.array([i for _, i, _ in each], pa.int64()),
            "status": pa.array([one.status for one in answers], pa.string()),
            "chance": _floats(
                [math.exp(one.log_chance) if one.segments else None for one in answers]
            ),
            "rival_offset": self._lengths([one.rival for one in answers]),
            "left_rows": pa.array(rows[numbers, 0], pa.int64()),
            "right_rows": pa.array(rows[numbers, 1], pa.int64()),
        }
        if any(one.status == "ambiguous" for one in answers):
            columns["offset"] = self._lengths(
                [_offset(*each) for each in zip(answers, segments, strict=True)]
            )
        taken = [key.take(pa.array(numbers)) for key in keys]
        return pa.Table.from_arrays(
            [*taken, *(columns[name] for name in _NAMES)], schema=self.schema
        )

    def _of_segments(self, segments: Sequence[Segment | None]) -> dict[str, pa.Array]:
        def of(name: str) -> list[float | None]:
            return [None if s is None else getattr(s, name) for s in segments]

        lines = [None if s is None else s.line for s in segments]
        ticks = {name: pa.array(of(name), pa.int64()) for name in ("start", "end")}
        ppm = {
            "drift": [None if line is None else line.drift for line in lines],
            "drift_error": of("drift_error"),
        }
        return {
            **{name: as_times(values, self.time, self.tick) for name, values in ticks.items()},
            "offset": self._lengths([None if line is None else line.offset for line in lines]),
            "offset_error": self._lengths(of("offset_error"), is_error=True),
            **{name: self._lengths(of(name)) for name in ("spread", "low", "high")},
            **{name: _floats(values, PARTS_PER_MILLION) for name, values in ppm.items()},
            **{name: _floats(of(name)) for name in ("pairs", "accidental_pairs")},
        }

    def _lengths(self, ticks: Sequence[float | None], *, is_error: bool = False) -> pa.Array:
        """Ticks as durations, errors rounded up; or as they are."""
        known = [None if each is None or math.isnan(each) else each for each in ticks]
        if not self._is_duration:
            return pa.array(known, pa.float64())
        whole = [
            None if each is None else math.ceil(each) if is_error else round(each) for each in known
        ]
        return pa.array(whole, pa.int64()).view(self.length)


def _offset(found: ClockEstimate, segment: Segment | None) -> float | None:
    """That of a segment, or the best one where another is as good."""
    if segment is not None:
        return segment.line.offset
    return found.best.offset if found.status == "ambiguous" and found.best is not None else None


def _listed(found: ClockEstimate) -> list[tuple[int | None, Segment | None]]:
    """The segments of a key, numbered; an empty one where nothing is found."""
    return [*enumerate(found.segments)] or [(None, None)]


def _floats(values: Sequence[float | None], factor: float = 1.0) -> pa.Array:
    return pa.array([None if each is None else factor * each for each in values], pa.float64())
