"""What is asked of two inputs, by whoever reads them."""

from __future__ import annotations

from coincide.options import CorrelateOptions
from coincide.units import Tick
from spark_plugin.worker.keys import key_pairs
from spark_plugin.worker.pair_arguments import PairArguments


class Asked:
    """What it takes to read two inputs as a join needs them; requests of the command line are such."""

    arguments: PairArguments
    """Of the join."""
    engine: str
    """``"spark"`` where Spark alone may know the inputs."""

    @property
    def columns(self) -> tuple[list[str], list[str]]:
        """The columns that are needed, of both sides."""
        return self.arguments.columns

    @property
    def keys(self) -> list[tuple[str, str]]:
        """The columns that must be equal, of both sides."""
        return key_pairs(self.arguments.by)

    @property
    def clocks(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """The columns of the earlier and the later time, of both sides."""
        return self.arguments.clocks

    @property
    def options(self) -> CorrelateOptions:
        """How times are counted, and more."""
        return self.arguments.options

    def check_tick(self, tick: Tick) -> None:
        """Refuse a tick in which durations cannot be counted.

        Raises
        ------
        ConditionError
        """
        self.arguments.check_tick(tick)
