"""One row per left event: the number of its partners, or that it has, or lacks, one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from spark_plugin.worker.emission.emission import Emission, MakeBatch


class Counts(Emission):
    """One row per left event, with the number of its partners."""

    def _runs(self) -> Iterable[tuple[int, int]]:
        return self._even_runs(self._spec.batch_pairs)

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        counts = self.join.counts[start:stop]
        kept = self._kept(counts)
        yield from self._rows(start + kept, [pa.array(counts[kept])])


class LeftRows(Emission):
    """One row per left event that has a partner (``semi``), or lacks one (``anti``)."""

    def _runs(self) -> Iterable[tuple[int, int]]:
        return self._even_runs(self._spec.batch_pairs)

    def _parts(self, start: int, stop: int) -> Iterator[MakeBatch]:
        is_there = self.join.counts[start:stop] > 0
        yield from self._rows(start + np.flatnonzero(is_there == (self._spec.how == "semi")), [])
