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
"""The reference is asked once for so many cases."""


@dataclass(frozen=True)
class Verdict:
    """What came of a case.

    Parameters
    ----------
    kind : {"right", "refused", "closed", "wrong", "accepted", "error"}
        The right answer; the error that was due; a way that does not take such files; a wrong answer; an
        answer where an error was due; an error where an answer was due, or another one than was due.
    text : str
    """

    kind: str
    text: str = ""

    @property
    def is_difference(self) -> bool:
        """Whether it should not be so."""
        return self.kind in ("wrong", "accepted", "error")


RIGHT = Verdict("right")


@dataclass(frozen=True)
class Way:
    """A way of joining.

    Parameters
    ----------
    name : str
    judge : callable
        Runs a case in a folder of its own.
    options : callable
        Draws options that this way takes besides those of all.
    suits : callable
        Whether it takes a data set.
    weight : int
        How often it is drawn.
    """

    name: str
    judge: Callable[[Case, Path], Verdict]
    options: Callable[[Chance], dict[str, Any]] = field(default=lambda chance: {})
    suits: Callable[[DataSet], bool] = field(default=lambda data: True)
    weight: int = 10


@dataclass(frozen=True)
class Case:
    """One join of one data set by one way.

    Parameters
    ----------
    seed, number : int
        From which all of it was drawn.
    way : Way
    data : DataSet
    job : Job
    shared : Oracle or None
        Of all cases of the data set that declare no lengths.
    """

    seed: int
    number: int
    way: Way
    data: DataSet
    job: Job
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
