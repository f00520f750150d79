"""The ids of queries that come and go: a number for each, found again without a look at all of them."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pyarrow as pa

from spark_plugin.worker.arrow.wide_columns import stored
from spark_plugin.worker.borders.id_runs import IdRun

_SHARE_TO_MERGE = 16


class QueryIds:
    """Ids of one type, and the numbers of their queries, which may be removed.

    An id may come again once its query was removed, and has a new number then. Ids lie in a large run and
    after it ever smaller ones, so that a few more cost what they are. Those of removed queries are taken
    out of a run once they are more than half of it.

    Parameters
    ----------
    kind : pa.DataType
        What to hand out.

    Attributes
    ----------
    runs : list of IdRun
        The large one first.
    """

    def __init__(self, kind: pa.DataType) -> None:
        self.kind = kind
        self.runs: list[IdRun] = []

    def __len__(self) -> int:
        """How many ids are kept, some of them of removed queries."""
        return sum(map(len, self.runs))

    def runs_with(self, ids: pa.Array, start: int) -> list[IdRun]:
        """The runs to have, once there are more ids, of live queries.

        Parameters
        ----------
        ids : pa.Array
        start : int
            The number of the first one, above all before it; those of the others follow.
        """
        if not len(ids):
            return self.runs
        numbers, is_live = range(start, start + len(ids)), np.ones(len(ids), np.bool_)
        runs = [*self.runs, IdRun(numbers, stored(ids), _stored_kind(self.kind), is_live)]
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
        """The numbers of live queries with some ids: int64 array, -1 where there is none.

        O(log N) for each id.
        """
        found = np.full(len(ids), -1, np.int64)
        values = stored(ids)
        for run in self.runs:
            found = np.maximum(found, run.live(values))
        return found

    def of(self, numbers: np.ndarray) -> pa.Array:
        """The ids of live numbers."""
        if not numbers.size:
            return self._wrapped(pa.array([], _stored_kind(self.kind)))
        first, last = self._runs_of(np.array([numbers.min(), numbers.max()])).tolist()
        if first == last:
            return self._wrapped(self.runs[first].of(numbers))
        # Sorted by counting, as such small integers are.
        whose = self._runs_of(numbers).astype(np.int16)
        order = np.argsort(whose, kind="stable")
        ends = np.searchsorted(whose[order], np.arange(len(self.runs) + 1))
        parts = [run.of(numbers[order[ends[k] : ends[k + 1]]]) for k, run in enumerate(self.runs)]
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        return self._wrapped(pa.concat_arrays(parts).take(pa.array(place)))

    def _runs_of(self, numbers: np.ndarray) -> np.ndarray:
        starts = [run.numbers[0] for run in self.runs]
        return np.searchsorted(np.array(starts, np.int64), numbers, side="right") - 1

    def _wrapped(self, ids: pa.Array) -> pa.Array:
        is_extension = isinstance(self.kind, pa.BaseExtensionType)
        return self.kind.wrap_array(ids) if is_extension else ids


def _stored_kind(kind: pa.DataType) -> pa.DataType:
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
