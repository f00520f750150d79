"""The last results of a function, of which large ones are not kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

Result = TypeVar("Result")


class KeptResults(Generic[Result]):
    """A function that remembers: threads may call it at once.

    Parameters
    ----------
    solve : callable
        Its arguments must be hashable.
    most : int
        Results to keep: those that were asked for last.
    is_kept : callable
        Whether a result is small enough.
    """

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
