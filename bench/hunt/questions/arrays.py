"""Events in arrays: row numbers, counts, lists, best matches and aggregates, held against the reference."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bench.hunt.comparing import PROBABILITY_TOLERANCE
from coincide import ArrayMatches, CorrelateOptions, EventArrays, correlate_arrays
from coincide.model.sides import SIDES
from cpu_fallback.reference.decision import decision_is_clear, satisfaction_probability
from cpu_fallback.reference.join import Row, best_is_acceptable, correlate, correlate_stream

_NUMBERS = ("int64", "int64", "int32", "uint16", "int8")
_NANOSECONDS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
_EMITS = ("pairs", "pairs", "lists", "counts", "best", "aggregates")
_MOST_ROWS = 14


class _OfDevice:
    """Times in a GPU's memory, which CuPy has no type for."""

    def __init__(self, array: np.ndarray) -> None:
        import cupy

        self._held = cupy.asarray(array.view(np.int64))
        self.__cuda_array_interface__ = {
            **self._held.__cuda_array_interface__, "typestr": array.dtype.str,
        }  # fmt: skip


@dataclass(frozen=True)
class _Drawn:
    """A join of arrays, and the same events as the reference takes them, in ticks."""

    arrays: list[EventArrays]
    rows: list[list[Row]]
    lo: int  # ends of the window, ticks
    hi: int
    tick: str  # what the window counts, if that is a unit
    confidence: float | None  # None for exact times
    given: dict[str, Any]
    in_device: bool

    @property
    def condition(self) -> tuple[int, int, float]:
        """As the reference takes it."""
        return self.lo, self.hi, 1.0 if self.confidence is None else self.confidence

    @property
    def by(self) -> list[str]:
        """The name of the key, if there is one."""
        return [] if self.arrays[0].key is None else ["key"]

    @property
    def is_one(self) -> bool:
        """Whether the events are one stream."""
        return len(self.arrays) == 1

    def answer(self) -> ArrayMatches:
        """What the join finds, in the host's memory."""
        sides: list[Any] = self.arrays
        given = dict(self.given)
        if self.in_device:
            sides = [EventArrays(*map(_sent, side)) for side in sides]
            asked = given.get("aggregates", {})
            if asked:
                given["aggregates"] = {
                    name: each if isinstance(each, str) else (_sent(each[0]), each[1])
                    for name, each in asked.items()
                }
        ends = [f"{end}{self.tick}" if self.tick else end for end in (self.lo, self.hi)]
        found = correlate_arrays(*sides, within=tuple(ends), confidence=self.confidence, **given)
        return ArrayMatches(*map(_fetched, found))

    def wrong(self, found: ArrayMatches) -> str | None:
        """What is wrong with an answer."""
        emit = self.given["emit"]
        if emit == "counts":
            return _differing("counts", found.counts.tolist(), self._counts())
        if emit == "aggregates":
            return self._aggregates(found)
        kind = self.given["rows"]
        if kind == "auto":
            kind = "int32" if self.in_device else "int64"
        if any(rows is not None and rows.dtype != kind for rows in (found.left, found.right)):
            return f"rows of {found.right.dtype}, not {kind}"
        if emit == "best":
            return self._best(found)
        left = found.left
        if emit == "lists":
            wrong = _differing("lists", np.diff(found.offsets).tolist(), self._counts())
            if wrong or found.offsets[0] != 0:
                return wrong or f"lists begin at {found.offsets[0]}"
            left = np.repeat(np.arange(len(self.rows[0])), np.diff(found.offsets))
        elif self.given["order"] == "left" and np.any(np.diff(left) < 0):
            return f"left rows {left.tolist()} are out of order"
        pairs = list(zip(left.tolist(), found.right.tolist(), strict=True))
        return _differing("pairs", Counter(pairs), Counter(self._pairs())) or self._of_pairs(
            pairs, found
        )

    def _pairs(self) -> list[tuple[int, int]]:
        """Those that there are: of one stream each once, but for lists."""
        is_once = self.is_one and self.given["emit"] == "pairs"
        joined: Any = correlate_stream if is_once else correlate
        sides = self.rows[:1] if is_once else (self.rows[0], self.rows[-1])
        more = {} if is_once else {"admits": self._admits}
        rows = joined(*sides, *self.condition, by=self.by, **more)
        return [(row["left_id"], row["right_id"]) for row in rows]

    def _admits(self, left: Row, right: Row) -> bool:
        return not self.is_one or bool(left["id"] != right["id"])

    def _counts(self) -> list[int]:
        rows = correlate(
            self.rows[0], self.rows[-1], *self.condition, how="left", emit="counts", by=self.by,
            admits=self._admits,
        )  # fmt: skip
        return [row["matches"] for row in rows]

    def _best(self, found: ArrayMatches) -> str | None:
        for own, chosen in zip(self.rows[0], found.right.tolist(), strict=True):
            others = [row for row in self.rows[-1] if self._admits(own, row)]
            right = None if chosen < 0 else chosen
            if not best_is_acceptable(own, others, right, *self.condition, by=self.by):
                return f"{chosen} is the best of {own}"
        return self._of_pairs(list(enumerate(found.right.tolist())), found)

    def _of_pairs(self, pairs: list[tuple[int, int]], found: ArrayMatches) -> str | None:
        """What is wrong with probabilities and deltas."""
        for at, (left, right) in enumerate(pairs):
            if right < 0:
                is_there = found.probability is not None and not np.isnan(found.probability[at])
                is_there |= found.delta is not None and _ticks(found.delta)[at] != _NO_DELTA
                if is_there:
                    return f"left row {left} has no match, but a probability or a delta"
                continue
            ends = self._ends(left, right)
            exact = satisfaction_probability(*ends, self.lo, self.hi)
            if found.probability is not None:
                apart = abs(float(found.probability[at]) - exact)
                if not apart <= PROBABILITY_TOLERANCE:
                    return f"probability of {left, right} is {found.probability[at]}, not {exact}"
            doubled = ends[2] + ends[3] - ends[0] - ends[1]
            delta = abs(doubled) // 2 * (1 if doubled > 0 else -1)
            if found.delta is not None and _ticks(found.delta)[at] != delta:
                return f"delta of {left, right} is {found.delta[at]}, not {delta}"
        return None

    def _ends(self, left: int, right: int) -> tuple[int, int, int, int]:
        one, other = self.rows[0][left], self.rows[-1][right]
        return one["min_time"], one["max_time"], other["min_time"], other["max_time"]

    def _aggregates(self, found: ArrayMatches) -> str | None:
        values = self.given["aggregates"]["total"][0].tolist()
        own: list[list[int]] = [[] for _ in self.rows[0]]
        for left, right in self._pairs():
            own[left].append(values[right])
        asked = found.aggregates or {}
        return (
            _differing("counts", found.counts.tolist(), [len(each) for each in own])
            or _differing("n", asked["n"].tolist(), [len(each) for each in own])
            or _differing("total", asked["total"].tolist(), [sum(each) for each in own])
            or _differing("least", asked["least"].tolist(), [min(each, default=0) for each in own])
        )

    @property
    def is_clear(self) -> bool:
        """Whether float64 decides each pair as exact arithmetic does."""
        return all(
            decision_is_clear(
                satisfaction_probability(*self._ends(i, j), self.lo, self.hi), self.condition[2]
            )
            for i in range(len(self.rows[0]))
            for j in range(len(self.rows[-1]))
        )


_NO_DELTA = np.iinfo(np.int64).min


def wrong(random: np.random.Generator) -> str | None:
    """What differs from the reference in a join of drawn arrays."""
    drawn = _draw(random)
    if not drawn.is_clear:
        return None
    problem = drawn.wrong(drawn.answer())
    return None if problem is None else f"{problem}: {drawn}"


def _draw(random: np.random.Generator) -> _Drawn:
    is_one = bool(random.random() < 0.25)
    in_device = bool(random.random() < 0.5) and not is_one and _has_gpu()
    are_times, has_key = random.random() < 0.5, bool(random.random() < 0.5)
    any_of = list(_NANOSECONDS) if are_times else _NUMBERS
    kinds = [str(random.choice(any_of)) for _ in SIDES[: 1 if is_one else 2]]
    tick = ("ns" if "ns" in kinds else "us") if are_times else ""
    factors = [_NANOSECONDS[each] // _NANOSECONDS[tick] if are_times else 1 for each in kinds]
    factors = [max(1, each) for each in factors]
    step, begin = max(factors), 0 if "int8" in kinds else int(random.integers(0, 5000))
    drawn = [
        _side(random, *each, step, begin, has_key) for each in zip(kinds, factors, strict=True)
    ]
    arrays, rows = [each[0] for each in drawn], [each[1] for each in drawn]
    is_exact = all(each.max_time is None for each in arrays)
    lo = int(random.integers(-30, 20)) * step + int(random.integers(0, 2))
    hi = lo + int(random.integers(0, 40)) * step
    confidence: float | None = float(random.choice([0.1, 0.3, 0.5, 0.75, 0.9, 1.0]))
    emit = str(random.choice(_EMITS))
    given: dict[str, Any] = {
        "emit": emit,
        "order": str(random.choice(["any", "left"])),
        "rows": str(random.choice(["auto", "int32", "int64"])),
        "options": CorrelateOptions(
            threads=int(random.choice([1, 2])), classes=[None, 1, 3][random.integers(3)]
        ),
    }
    if emit == "aggregates":
        values = random.integers(-50, 50, len(rows[-1]))
        given["aggregates"] = {"n": "count", "total": (values, "sum"), "least": (values, "min")}
    elif emit != "counts":
        given |= {name: bool(random.random() < 0.5) for name in ("probability", "delta")}
    if not in_device and random.random() < 0.5 and _has_gpu():
        given["backend"] = "gpu"
    return _Drawn(arrays, rows, lo, hi, tick, None if is_exact else confidence, given, in_device)


def _side(
    random: np.random.Generator, kind: str, factor: int, step: int, begin: int, has_key: bool
) -> tuple[EventArrays, list[Row]]:
    """Events of one side: arrays in which one counts `factor` ticks, and rows."""
    # Times are near `begin`, of `step` ticks, whatever a side counts.
    size, scale = int(random.integers(0, _MOST_ROWS)), step // factor
    low = (begin + random.integers(0, random.choice([3, 60]), size)) * scale
    low += random.integers(0, scale, size) * (random.random() < 0.5)
    lengths = random.choice([0, 0, 1, 7, 30], size) * scale
    is_exact = random.random() < 0.4
    high = low if is_exact else low + lengths
    key = random.integers(-1, random.choice([1, 4]), size)
    if random.random() < 0.3:
        low, high, key = (each[np.argsort(low, kind="stable")] for each in (low, high, key))
    arrays = [_typed(each, kind) for each in ([low] if is_exact else [low, high])]
    if has_key:
        arrays += [None] * is_exact + [key.astype(random.choice([np.int64, np.int8]))]
    ends = zip((low * factor).tolist(), (high * factor).tolist(), strict=True)
    rows: list[Row] = [
        {"id": i, "min_time": a, "max_time": b, "key": k if k >= 0 else None}
        for i, ((a, b), k) in enumerate(zip(ends, key.tolist(), strict=True))
    ]
    return EventArrays(*arrays), rows


def _typed(values: np.ndarray, kind: str) -> Any:
    return values.view(f"M8[{kind}]") if kind in _NANOSECONDS else values.astype(kind)


@cache
def _has_gpu() -> bool:
    from gpu_kernels.device import usable
    from gpu_kernels.kernels.simulation import SIMULATED

    return not SIMULATED and usable.problem() is None


def _sent(array: np.ndarray | None) -> Any:
    if array is None or array.dtype.kind == "M":
        return None if array is None else _OfDevice(array)
    import cupy

    return cupy.asarray(array)


def _fetched(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _fetched(each) for name, each in found.items()}
    return found if found is None or isinstance(found, np.ndarray) else found.get()


def _ticks(delta: np.ndarray) -> np.ndarray:
    return delta.view(np.int64)


def _differing(what: str, found: Any, expected: Any) -> str | None:
    return None if found == expected else f"{what} {found}, expected {expected}"
