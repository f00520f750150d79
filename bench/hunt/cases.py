"""A case: a data set, a job and a way, all drawn from the seed and the number of the case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from bench.hunt.chance import Chance
from bench.hunt.comparing import Found
from bench.hunt.data import DataSet
from bench.hunt.jobs import Job
from bench.hunt.oracle import Oracle

CASES_PER_DATA_SET = 8
"""The reference is asked once for this many cases."""


@dataclass(frozen=True)
class Verdict:
    """What came of a case."""

    # Right, refused (an error was due), closed; wrong, accepted (an error was due), error.
    kind: str
    text: str = ""

    @property
    def is_difference(self) -> bool:
        """Whether it should not be so."""
        return self.kind in ("wrong", "accepted", "error")


RIGHT = Verdict("right")


@dataclass(frozen=True)
class Way:
    """A way of joining."""

    name: str
    judge: Callable[[Case, Path], Verdict]  # runs a case in a folder of its own
    # Draws options that only this way takes.
    options: Callable[[Chance], dict[str, Any]] = field(default=lambda chance: {})
    # Whether it takes a data set.
    suits: Callable[[DataSet], bool] = field(default=lambda data: True)
    weight: int = 10  # how often it is drawn


@dataclass(frozen=True)
class Case:
    """One join of one data set by one way, all drawn from the seed and the number."""

    seed: int
    number: int
    way: Way
    data: DataSet
    job: Job
    # From all cases of the data set that declare no lengths.
    shared: Oracle | None = field(default=None, repr=False)

    @cached_property
    def oracle(self) -> Oracle:
        """The right answer."""
        if self.shared is not None and self.shared.serves(self.data, self.job.longest):
            return self.shared
        return Oracle(self.data, self.job.longest)

    def chance(self, what: str) -> Chance:
        """Chance for what the way itself draws: layouts, orders, faults."""
        return Chance(self.seed, self.number, what)


Attempt = Callable[[], Found]
