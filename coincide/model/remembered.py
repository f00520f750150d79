"""A property that is computed when it is first asked for, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as remembered  # noqa: TID251
else:

    class remembered:
        """As `functools.cached_property` from Python 3.12 on: threads may compute a value twice.

        Before, it holds one lock for all objects of a class. A process that is forked meanwhile has
        no thread to let go of it, and waits for ever.
        """

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute, self.__doc__ = compute, compute.__doc__

        def __set_name__(self, _: type, name: str) -> None:
            self._name = name

        def __get__(self, owner: Any, _: type | None = None) -> Any:
            if owner is None:
                return self
            # Found in the object's own dictionary from then on; the first of several threads wins.
            return owner.__dict__.setdefault(self._name, self._compute(owner))


__all__ = ["remembered"]
