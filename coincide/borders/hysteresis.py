"""Hysteresis: a stream enters a range as ever, and leaves it once it is beyond a margin around it.

Of a query, the crossings into its range and those out of the wider one are found apart. Between two ways
out of the wider range a stream may enter the narrow one many times: the first counts, and only a way out
that follows one counts. So of each stream and query the crossings that differ from the one before are told.
"""

from __future__ import annotations

import numpy as np

from coincide.borders.crossings import IN

_QUERY_BITS = 31
_QUERY = (1 << _QUERY_BITS) - 1
MOST_QUERIES = 1 << _QUERY_BITS
"""So many numbers of queries can be told apart."""


class OpenPairs:
    """The streams that are within queries, by which it is known what to tell: 8 bytes a pair, sorted."""

    def __init__(self) -> None:
        self.pairs = np.zeros(0, np.int64)
        self._forgotten: list[np.ndarray] = []

    @property
    def nbytes(self) -> int:
        """Bytes of the pairs."""
        return int(self.pairs.nbytes)

    def told(self, streams: np.ndarray, queries: np.ndarray, events: np.ndarray) -> np.ndarray:
        """Which crossings are told; what they leave open is kept.

        Parameters
        ----------
        streams, queries : int64 arrays, shape (n,)
        events : int8 array, shape (n,)
            In order of time, of each stream.

        Returns
        -------
        bool array, shape (n,)
        """
        self._take_out()
        pairs = streams << _QUERY_BITS | queries
        order = np.argsort(pairs, kind="stable")
        pairs, events = pairs[order], events[order]
        is_first = np.append(True, pairs[1:] != pairs[:-1])[: pairs.size]
        was_in = np.zeros(pairs.size, np.bool_)
        was_in[1:] = events[:-1] == IN
        # Both are sorted: a search for each pair that is met, and no look at the others.
        met = pairs[is_first]
        at = np.searchsorted(self.pairs, met)
        was_open = at < self.pairs.size
        was_open[was_open] = self.pairs[at[was_open]] == met[was_open]
        was_in[is_first] = was_open
        told = np.empty(pairs.size, np.bool_)
        told[order] = (events == IN) != was_in
        is_last = np.append(is_first[1:], True)[: pairs.size]
        within = pairs[is_last & (events == IN)]
        others = np.delete(self.pairs, at[was_open])
        self.pairs = np.insert(others, np.searchsorted(others, within), within)
        return told

    def enter(self, streams: np.ndarray, queries: np.ndarray) -> None:
        """Streams are within queries, without a crossing, that they were not within."""
        self._take_out()
        pairs = np.sort(streams << _QUERY_BITS | queries)
        self.pairs = np.insert(self.pairs, np.searchsorted(self.pairs, pairs), pairs)

    def streams_and_queries(self) -> tuple[np.ndarray, np.ndarray]:
        """The streams that are within queries, and the queries: two int64 arrays."""
        self._take_out()
        return self.pairs >> _QUERY_BITS, self.pairs & _QUERY

    def keep_only(self, stream: int) -> None:
        """Other streams are no more, and this one is number 0 from now on."""
        self.pairs = self.pairs[self.pairs >> _QUERY_BITS == stream] & _QUERY

    def forget_queries(self, queries: np.ndarray) -> None:
        """Queries are no more. Their pairs are taken out before others come: that looks at all pairs."""
        self._forgotten.append(queries)

    def _take_out(self) -> None:
        if self._forgotten:
            gone = np.concatenate(self._forgotten)
            self.pairs = self.pairs[~np.isin(self.pairs & _QUERY, gone)]
            self._forgotten = []
