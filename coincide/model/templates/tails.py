"""How likely one template's time exceeds another's, to a known error; and what is kept of it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

import numpy as np

from coincide.model.compiled import compiled, product

UNIT = 2.0**-52


@compiled(forceinline=True)
def relative_error(x, i, y, j):
    """A bound on the relative error of `tail` for template i of x and template j of y: `Buckets`."""
    own = x.starts[i + 1] - x.starts[i]
    other = y.starts[j + 1] - y.starts[j]
    return product(UNIT, float(own + 2 * other + 16))


@compiled
def tail(x, i, y, j, z):
    """P(Y - X > z), and the density of Y - X at z."""
    k, k_end, q, q_end = x.starts[i], x.starts[i + 1] - 1, y.starts[j], y.starts[j + 1] - 1
    x_edges, x_densities, y_edges, y_densities = x.edges, x.densities, y.edges, y.densities
    masses, beyond = x.masses, y.beyond
    total = density = 0.0
    at, lowest = x_edges[k] + z, y_edges[q]
    while k < k_end and at < lowest:
        stop = x_edges[k + 1] + z
        if stop > lowest:
            total += product(x_densities[k], float(lowest - at))
            at = lowest
        else:
            total += masses[k]
            at = stop
            k += 1
    while q < q_end and y_edges[q + 1] <= at:
        q += 1
    # From here on `at` is in bucket k of X, moved by z, and in bucket q of Y.
    while k < k_end and q < q_end:
        x_stop, y_stop = x_edges[k + 1] + z, y_edges[q + 1]
        if x_stop == at:  # a bucket of length 0
            above = beyond[q + 1] + product(y_densities[q], float(y_stop - at))
            total += product(masses[k], above)
            k += 1
            continue
        stop = min(x_stop, y_stop)
        mean_rest = 0.5 * (float(y_stop - at) + float(y_stop - stop))
        above = beyond[q + 1] + product(y_densities[q], mean_rest)
        mass = product(x_densities[k], float(stop - at))
        total += product(mass, above)
        density += product(mass, y_densities[q])
        at = stop
        k += x_stop <= stop
        while q < q_end and y_edges[q + 1] <= at:
            q += 1
    return total, density


@compiled
def window_tails(x, i, y, j, lo, hi):
    """P(Y - X < lo) + P(Y - X > hi): how likely the difference is outside of a window."""
    return tail(y, j, x, i, -lo)[0] + tail(x, i, y, j, hi)[0]


@dataclass(frozen=True, eq=False)
class SatisfactionTimes:
    """Which s = max_right - max_left qualify, by pair of templates."""

    first: np.ndarray  # int64, shape (left templates, right templates)
    last: np.ndarray  # int64, shape (left templates, right templates): (1, 0) where none does
    gap_starts: np.ndarray  # int64, shape (pairs + 1,)
    gap_first: np.ndarray  # int64, shape (gaps,): what between `first` and `last` does not qualify
    gap_last: np.ndarray  # int64, shape (gaps,): what between `first` and `last` does not qualify

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(array.nbytes for array in vars(self).values())

    def ranges(self, left: int, right: int) -> list[tuple[int, int]]:
        """The ranges of a pair of templates, ascending, both ends inclusive."""
        first, last = int(self.first[left, right]), int(self.last[left, right])
        if first > last:
            return []
        gaps = slice(0)
        if self.gap_starts.size:
            pair = left * self.first.shape[1] + right
            gaps = slice(int(self.gap_starts[pair]), int(self.gap_starts[pair + 1]))
        ends = [first]
        for low, high in zip(
            self.gap_first[gaps].tolist(), self.gap_last[gaps].tolist(), strict=True
        ):
            ends += [low - 1, high + 1]
        ends.append(last)
        return list(zip(ends[::2], ends[1::2], strict=True))


Result = TypeVar("Result")


class KeptResults(Generic[Result]):
    """A function that remembers: threads may call it at once."""

    def __init__(
        self, solve: Callable[..., Result], most: int, is_kept: Callable[[Result], bool]
    ) -> None:
        self._solve, self._most, self._is_kept = solve, most, is_kept
        self._lock = Lock()
        self._results: OrderedDict[tuple[Hashable, ...], Result] = OrderedDict()

    def __call__(self, *given: Hashable) -> Result:
        """The result of some arguments."""
        with self._lock:
            if given in self._results:
                self._results.move_to_end(given)
                return self._results[given]
        result = self._solve(*given)
        if self._is_kept(result):
            with self._lock:
                self._results[given] = result
                if len(self._results) > self._most:
                    self._results.popitem(last=False)
        return result

    def clear(self) -> None:
        """Let go of all."""
        with self._lock:
            self._results.clear()
