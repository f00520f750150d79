"""What is asked of two inputs, by whoever reads them."""

from __future__ import annotations

from typing import Protocol

from coincide.options import CorrelateOptions
from coincide.units import Tick


class Asked(Protocol):
    """What it takes to read two inputs as a join needs them; requests of the command line are such."""

    @property
    def engine(self) -> str:
        """``"spark"`` where Spark alone may know the inputs."""

    @property
    def columns(self) -> tuple[list[str], list[str]]:
        """The columns that are needed, of both sides."""

    @property
    def keys(self) -> list[tuple[str, str]]:
        """The columns that must be equal, of both sides."""

    @property
    def clocks(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """The columns of the earlier and the later time, of both sides."""

    @property
    def options(self) -> CorrelateOptions:
        """How times are counted, and more."""

    def check_tick(self, tick: Tick) -> None:
        """Refuse a tick in which durations cannot be counted.

        Raises
        ------
        ConditionError
        """
