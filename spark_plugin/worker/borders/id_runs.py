"""Runs of the ids of queries: what numbers they have, and which of them are live."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_plugin.worker.arrow.gather import Gather
from spark_plugin.worker.arrow.wide_columns import of_one_type, one_array

_INTERVAL = pa.month_day_nano_interval()
Numbers = range | np.ndarray
"""Ascending numbers, int64, that follow one another or have gaps."""


class IdRun:
    """Ids in the order of their numbers.

    Parameters
    ----------
    numbers : range, or int64 array, shape (n,)
        Ascending.
    ids : pa.Array
        As they are stored; wide where 32-bit offsets would not do.
    kind : pa.DataType
        As they are stored when they are handed out.
    is_live : bool array, shape (n,)
        Of which queries have not been removed.
    """

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
        """The number of the live query of each id: int64 array, -1 where there is none."""
        if not len(self):
            return np.full(len(values), -1, np.int64)
        values, (ids, rows) = _ordered(values), self._sorted
        if ids.type != values.type:
            ids, values = of_one_type([ids, values]).chunks
        at = _last_up_to(ids, values)
        is_here = pc.equal(ids.take(pa.array(np.maximum(at, 0))), values)
        # Of one id, the latest number is the only one that may be live.
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

    @cached_property
    def _gather(self) -> Gather:
        return Gather(self.ids, self.kind)

    @cached_property
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
    """Of a null, which is no id, none is true."""
    if answers.null_count:
        answers = answers.fill_null(False)
    return np.asarray(answers.to_numpy(zero_copy_only=False))


def _ordered(ids: pa.Array) -> pa.Array:
    """Ids of a type that PyArrow puts in some order."""
    return ids.view(pa.binary(16)) if ids.type == _INTERVAL else ids
