"""The ids of queries that come and go: a number for each, found again without a look at all of them."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from spark_plugin.worker.arrow.gather import Gather
from spark_plugin.worker.arrow.wide_columns import of_one_type, one_array, stored

_SHARE_TO_MERGE = 16
_INTERVAL = pa.month_day_nano_interval()


class QueryIds:
    """Ids of one type, numbered in the order in which they came, and whether their queries are live.

    An id may come again once its query was removed, and has a new number then. Ids lie in a large run and
    after it ever smaller ones, so that a few more cost what they are.

    Parameters
    ----------
    kind : pa.DataType
        What to hand out.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self._runs: list[_Run] = []
        # With room for more; beyond `len`, False.
        self._is_live = np.zeros(0, np.bool_)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, ids: pa.Array) -> None:
        """More ids, of live queries."""
        if not len(ids):
            return
        start, self._size = self._size, self._size + len(ids)
        if self._size > self._is_live.size:
            room = np.zeros(max(self._size, 2 * self._is_live.size), np.bool_)
            room[:start] = self._is_live[:start]
            self._is_live = room
        self._is_live[start : self._size] = True
        self._runs.append(_Run(start, stored(ids), self.kind))
        while len(self._runs) > 1 and len(self._runs[-1]) * _SHARE_TO_MERGE > len(self._runs[-2]):
            self._runs[-2:] = [self._runs[-2].followed_by(self._runs[-1])]

    def remove(self, numbers: np.ndarray) -> None:
        """Queries of some numbers are no more."""
        self._is_live[numbers] = False

    def live(self, ids: pa.Array) -> np.ndarray:
        """The numbers of live queries with some ids: int64 array, -1 where there is none.

        O(log N) for each id.
        """
        found = np.full(len(ids), -1, np.int64)
        values = _ordered(stored(ids))
        for run in self._runs:
            # Of one id, the latest number is the only one that may be live.
            numbers = run.latest(values)
            found = np.where(numbers < 0, found, numbers)
        known = np.flatnonzero(found >= 0)
        found[known[~self._is_live[found[known]]]] = -1
        return found

    def of(self, numbers: np.ndarray) -> pa.Array:
        """The ids of numbers."""
        if len(self._runs) == 1:
            return self._wrapped(self._runs[0].of(numbers))
        whose = np.searchsorted([run.start for run in self._runs], numbers, side="right") - 1
        order = np.argsort(whose, kind="stable")
        ends = np.searchsorted(whose[order], np.arange(len(self._runs) + 1))
        parts = [run.of(numbers[order[ends[k] : ends[k + 1]]]) for k, run in enumerate(self._runs)]
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        together = pa.concat_arrays(parts) if parts else pa.array([], _storage_type(self.kind))
        return self._wrapped(together.take(pa.array(place)))

    def _wrapped(self, ids: pa.Array) -> pa.Array:
        is_extension = isinstance(self.kind, pa.BaseExtensionType)
        return self.kind.wrap_array(ids) if is_extension else ids


class _Run:
    """Ids with numbers that follow one another.

    Parameters
    ----------
    start : int
        The number of the first one.
    ids : pa.Array
        As they are stored; wide where 32-bit offsets would not do.
    kind : pa.DataType
        What to hand out.
    """

    def __init__(self, start: int, ids: pa.Array, kind: pa.DataType) -> None:
        self.start, self.ids, self._kind = start, ids, kind

    def __len__(self) -> int:
        return len(self.ids)

    def followed_by(self, later: _Run) -> _Run:
        """The run that this one and the next one make."""
        ids = one_array(of_one_type([self.ids, later.ids]))
        return _Run(self.start, ids, self._kind)

    def of(self, numbers: np.ndarray) -> pa.Array:
        """The ids of numbers of this run."""
        return self._gather(numbers - self.start)

    def latest(self, values: pa.Array) -> np.ndarray:
        """The largest number of each id: int64 array, -1 of those that are not here."""
        ids, rows = self._sorted
        if ids.type != values.type:
            ids, values = of_one_type([ids, values]).chunks
        at = _last_up_to(ids, values)
        is_here = pc.equal(ids.take(pa.array(np.maximum(at, 0))), values)
        is_here = (at >= 0) & _as_bools(is_here)
        return np.where(is_here, self.start + rows[at], -1)

    @cached_property
    def _gather(self) -> Gather:
        return Gather(self.ids, _storage_type(self._kind))

    @cached_property
    def _sorted(self) -> tuple[pa.Array, np.ndarray]:
        """The ids in order, equal ones as they came, and their rows: made when first asked for."""
        ids = _ordered(self.ids)
        rows = pc.sort_indices(ids)
        return ids.take(rows), rows.to_numpy().astype(np.int64)


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


def _storage_type(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
