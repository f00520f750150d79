"""The ids of border queries, by their numbers and back."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.rows import Gather
from coincide.engine.events.schemas import as_given, of_one_type, one_array, storage_type, stored
from coincide.model.remembered import remembered

_SHARE_TO_MERGE = 16


class QueryIds:
    """Ids of one type, and the numbers of their queries, which may be removed.

    An id may come again once its query was removed, and has a new number then. Ids lie in a large run and
    after it ever smaller ones, so that a few more cost what they are. Those of removed queries are taken
    out of a run once they are more than half of it.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.runs: list[IdRun] = []

    def __len__(self) -> int:
        """How many ids are kept, some of them of removed queries."""
        return sum(map(len, self.runs))

    def runs_with(self, ids: pa.Array, start: int) -> list[IdRun]:
        """The runs to have, once there are more ids, of live queries."""
        if not len(ids):
            return self.runs
        numbers, is_live = range(start, start + len(ids)), np.ones(len(ids), np.bool_)
        runs = [*self.runs, IdRun(numbers, stored(ids), storage_type(self.kind), is_live)]
        while len(runs) > 1 and len(runs[-1]) * _SHARE_TO_MERGE > len(runs[-2]):
            runs[-2:] = [runs[-2].followed_by(runs[-1])]
        return runs

    def removals(self, numbers: np.ndarray) -> list[np.ndarray]:
        """What `remove` needs, run by run, to remove live queries of some numbers, each given once."""
        whose = self._runs_of(numbers)
        return [run.rows_of(numbers[whose == k]) for k, run in enumerate(self.runs)]

    def remove(self, removals: list[np.ndarray]) -> None:
        """Queries are no more. It takes no memory, but to sweep."""
        for run, rows in zip(self.runs, removals, strict=True):
            run.remove(rows)
        # They are removed by now: where memory lacks, the next removal sweeps.
        with suppress(MemoryError):
            runs = [run.swept() if run.removed * 2 > len(run) else run for run in self.runs]
            self.runs = [run for run in runs if len(run)]

    def live(self, ids: pa.Array) -> np.ndarray:
        """The numbers of live queries with some ids: int64 array, -1 where no query has it."""
        # O(log N) for each id.
        found = np.full(len(ids), -1, np.int64)
        values = stored(ids)
        for run in self.runs:
            found = np.maximum(found, run.live(values))
        return found

    def of(self, numbers: np.ndarray) -> pa.Array:
        """The ids of live numbers."""
        if not numbers.size:
            return as_given(pa.array([], storage_type(self.kind)), self.kind)
        first, last = self._runs_of(np.array([numbers.min(), numbers.max()])).tolist()
        if first == last:
            return as_given(self.runs[first].of(numbers), self.kind)
        # Sorted by counting, as such small integers are.
        whose = self._runs_of(numbers).astype(np.int16)
        order = np.argsort(whose, kind="stable")
        ends = np.searchsorted(whose[order], np.arange(len(self.runs) + 1))
        parts = [run.of(numbers[order[ends[k] : ends[k + 1]]]) for k, run in enumerate(self.runs)]
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        return as_given(pa.concat_arrays(parts).take(pa.array(place)), self.kind)

    def _runs_of(self, numbers: np.ndarray) -> np.ndarray:
        starts = [run.numbers[0] for run in self.runs]
        return np.searchsorted(np.array(starts, np.int64), numbers, side="right") - 1


_INTERVAL = pa.month_day_nano_interval()
Numbers = range | np.ndarray
"""Ascending numbers, int64, that follow one another or have gaps."""


class IdRun:
    """Ids in the order of their numbers."""

    def __init__(
        self, numbers: Numbers, ids: pa.Array, kind: pa.DataType, is_live: np.ndarray
    ) -> None:
        self.numbers, self.ids, self.kind, self.is_live = numbers, ids, kind, is_live
        self.removed = 0

    def __len__(self) -> int:
        return len(self.ids)

    def __getstate__(self) -> dict[str, Any]:
        # What is made when first asked for takes more than the ids, and is soon made again.
        return {name: each for name, each in vars(self).items() if name not in _MADE}

    def followed_by(self, later: IdRun) -> IdRun:
        """The run that this one and the next one make."""
        ids = one_array(of_one_type([self.ids, later.ids]))
        is_live = np.concatenate([self.is_live, later.is_live])
        run = IdRun(_joined(self.numbers, later.numbers), ids, self.kind, is_live)
        run.removed = self.removed + later.removed
        return run

    def remove(self, rows: np.ndarray) -> None:
        """The queries of live rows are no more; `swept` takes them out."""
        self.is_live[rows] = False
        self.removed += rows.size

    def swept(self) -> IdRun:
        """The live ones: O(n)."""
        rows = np.flatnonzero(self.is_live)
        ids = self.ids.take(pa.array(rows))
        numbers = np.asarray(_as_array(self.numbers)[rows])
        return IdRun(numbers, ids, self.kind, np.ones(rows.size, np.bool_))

    def of(self, numbers: np.ndarray) -> pa.Array:
        """The ids of numbers of this run."""
        return self._gather(self.rows_of(numbers))

    def live(self, values: pa.Array) -> np.ndarray:
        """The number of the live query of each id: int64 array, -1 where no query has it."""
        if not len(self):
            return np.full(len(values), -1, np.int64)
        values, (ids, rows) = _ordered(values), self._sorted
        if ids.type != values.type:
            ids, values = of_one_type([ids, values]).chunks
        at = _last_up_to(ids, values)
        is_here = pc.equal(ids.take(pa.array(np.maximum(at, 0))), values)
        # The latest number of an id is the only one that may be live.
        rows = rows[at]
        is_here = (at >= 0) & _as_bools(is_here) & self.is_live[rows]
        found = np.full(len(values), -1, np.int64)
        found[is_here] = self._numbers_of(rows[is_here])
        return found

    def rows_of(self, numbers: np.ndarray) -> np.ndarray:
        """The rows of numbers of this run: int64 array."""
        if isinstance(self.numbers, range):
            return numbers - self.numbers.start
        return np.searchsorted(self.numbers, numbers)

    def _numbers_of(self, rows: np.ndarray) -> np.ndarray:
        return rows + self.numbers.start if isinstance(self.numbers, range) else self.numbers[rows]

    @remembered
    def _gather(self) -> Gather:
        return Gather(self.ids, self.kind)

    @remembered
    def _sorted(self) -> tuple[pa.Array, np.ndarray]:
        """The ids in order, equal ones as they came, and their rows: made when first asked for."""
        ids = _ordered(self.ids)
        rows = pc.sort_indices(ids)
        return ids.take(rows), rows.to_numpy().astype(np.int64)


_MADE = ("_gather", "_sorted")


def _joined(first: Numbers, second: Numbers) -> Numbers:
    if isinstance(first, range) and isinstance(second, range) and first.stop == second.start:
        return range(first.start, second.stop)
    return np.concatenate([_as_array(first), _as_array(second)])


def _as_array(numbers: Numbers) -> np.ndarray:
    return np.arange(numbers.start, numbers.stop) if isinstance(numbers, range) else numbers


def _last_up_to(ids: pa.Array, values: pa.Array) -> np.ndarray:
    """The last place, of ids in order, of one that is at most each value: int64 array, -1 of none."""
    at = np.full(len(values), -1, np.int64)
    for power in reversed(range(len(ids).bit_length())):
        # All values take a step of one length at once, or stay.
        further = at + (1 << power)
        probed = ids.take(pa.array(np.minimum(further, len(ids) - 1)))
        goes = (further < len(ids)) & _as_bools(pc.less_equal(probed, values))
        at = np.where(goes, further, at)
    return at


def _as_bools(answers: pa.BooleanArray) -> np.ndarray:
    """Answers as bools; a null, which is no id, gives False."""
    if answers.null_count:
        answers = answers.fill_null(False)
    return np.asarray(answers.to_numpy(zero_copy_only=False))


def _ordered(ids: pa.Array) -> pa.Array:
    """Ids of a type that PyArrow puts in some order."""
    return ids.view(pa.binary(16)) if ids.type == _INTERVAL else ids
