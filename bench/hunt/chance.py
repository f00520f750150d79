"""A seeded source of chance: what it gives depends on its numbers alone."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Chance:
    """Chance of one case, from the seed, the number of the case, and what is drawn."""

    def __init__(self, *numbers: int | str) -> None:
        self._random = random.Random("/".join(map(str, numbers)))

    def integer(self, low: int, high: int) -> int:
        """A whole number from low to high, both inclusive."""
        return self._random.randint(low, high)

    def choice(self, options: Sequence[T]) -> T:
        """One of the options."""
        return self._random.choice(options)

    def weighted(self, options: dict[T, int]) -> T:
        """One of the options, by their weights."""
        return self._random.choices(list(options), list(options.values()))[0]

    def happens(self, percent: float) -> bool:
        """True in about `percent` of 100 calls."""
        return self._random.random() * 100 < percent

    def fraction(self) -> float:
        """A number from 0 to 1."""
        return self._random.random()

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """The values in any order."""
        return self._random.sample(list(values), len(values))
