"""How a join is run. Nothing here changes which pairs it finds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from coincide.model.errors import ConditionError, argument, brief
from coincide.model.sides import unit_option
from coincide.model.units import Duration, name_units

MAX_CLASSES = 16
"""More would save hardly a probe: lengths that differ little have nearly the same bands."""

How = Literal["inner", "left", "right", "full", "semi", "anti"]
Emit = Literal["pairs", "lists", "counts", "best"]
Invalid = Literal["raise", "drop"]
Backend = Literal["auto", "cpu", "gpu"]
SideName = Literal["left", "right"]
Way = Literal[
    "auto", "files", "broadcast", "broadcast-left", "broadcast-right", "broadcast-both", "exchange"
]
"""How the events of two sides meet."""

MOST_SLICES = 1_000_000
"""Each is a task of Spark, whose driver keeps a record of every one."""
_LARGEST = 2**63 - 1


@dataclass(frozen=True)
class CorrelateOptions:
    """Options of `correlate` and `correlate_tables`.

    Parameters
    ----------
    unit : str or None
        What a number in the time columns counts: ``"ns"``, ``"us"``, ``"ms"``, ``"s"``, ... Needed
        for float columns, and for integer columns when durations are given as strings. Timestamps need
        none, but ``"ns"`` where they are finer than 1 us; durations have their own.
    left_unit, right_unit : str or None
        The same for one side, where the sides differ; None: `unit`.
    tick : str or None
        The unit in which times are counted. None: us for timestamps, ns for floats, and for integers
        the finer unit of the two sides. Only floats are rounded; other times that a tick would round
        are an error.
    invalid : {"raise", "drop"}
        What to do with rows whose time is invalid (min > max, NaN, infinity, out of range, longer
        than a declared longest length): raise an error, or skip and count them.
    left_longest, right_longest : int, str or None
        Declared longest length of a timestamp (the papers' pi) of each side. A longer one is invalid.
    slices : int or None
        Number of time slices, and so of Spark tasks, at most 1,000,000. None: chosen from the data and
        the cluster.
    slice_rows, slice_bytes : int
        Rows, and bytes of rows, that a slice should hold without `slices`. They bound the memory of a
        worker, which takes two to three times the bytes. Where two small sides are collected, a task
        may hold this many rows of each.
    way : {"auto", "files", "broadcast", "broadcast-left", "broadcast-right", "broadcast-both", "exchange"}
        How events meet on Spark. ``"files"``: tasks read their own parts of Parquet files, which must
        lie nearly in time order. ``"broadcast"``: the smaller side, or the one that is named, goes to
        every worker, so that the other need not be shuffled; or both do. ``"exchange"``: both sides are
        shuffled.
        ``"auto"`` takes the first of these that fits. Files, if you give files that allow it. A
        broadcast of both sides, if Spark takes both for small. An exchange without a planning job, if
        Spark knows that both sides are large, and the condition says how far pairs reach. A broadcast
        of a side of at most `broadcast_bytes`, if you give no `slices` and an exchange would cost more.
        Else an exchange. Any other value holds whatever the sizes.
    broadcast_bytes : int
        Most bytes, on the way to the workers, of one side that is broadcast, or of both sides that are
        collected.
    batch_pairs : int or None
        Pairs in one output batch; None: 65,536 in a Spark worker, 1,000,000 elsewhere. A batch exceeds
        it only by the matches of one event.
    classes : int or None
        Length classes a side (K); None: chosen from the data. 1 is the papers' lazy algorithm.
    threads : int or None
        Threads of one process; None: every core in a single process, one in a Spark worker.
    """

    unit: str | None = None
    left_unit: str | None = None
    right_unit: str | None = None
    tick: str | None = None
    invalid: Invalid = "raise"
    left_longest: Duration | None = None
    right_longest: Duration | None = None
    slices: int | None = None
    slice_rows: int = 1_000_000
    slice_bytes: int = 256 << 20
    way: Way = "auto"
    broadcast_bytes: int = 64 << 20
    batch_pairs: int | None = None
    classes: int | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        name_units(self, "unit", "left_unit", "right_unit", "tick")
        check_choice("invalid", self.invalid, get_args(Invalid))
        check_way("way", self.way)
        for name in ("slice_rows", "slice_bytes", "batch_pairs", "threads"):
            check_count(name, getattr(self, name))
        check_count("broadcast_bytes", self.broadcast_bytes, 0)
        check_count("slices", self.slices, most=MOST_SLICES)
        check_count("classes", self.classes, most=MAX_CLASSES)

    @property
    def small_side(self) -> SideName | None:
        """The side that `way` names to go to every worker."""
        sides: dict[str, SideName] = {"broadcast-left": "left", "broadcast-right": "right"}
        return sides.get(self.way)

    def unit_of(self, side: str) -> str | None:
        """What a number in the time columns of a side counts: `coincide.model.sides.unit_option`."""
        given: str | None = getattr(self, unit_option(side))
        return given or self.unit


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse a value that is none of the choices."""
    if value not in choices:
        raise ConditionError(
            f"{argument(name)} must be one of {', '.join(choices)} (found {brief(value)})."
        )


_FORMER_WAYS = {"direct": "files", "collect": "broadcast-both"}


def check_way(name: str, value: object, choices: tuple[str, ...] = get_args(Way)) -> None:
    """Refuse a way that is none of the choices; of a former name it says the one of today."""
    today = _FORMER_WAYS.get(str(value))
    if today in choices:
        raise ConditionError(
            f"{argument(name, value)} has a new name. Use {argument(name, today)}."
        )
    check_choice(name, value, choices)


def check_options(given: object, kind: type) -> None:
    """Refuse what are no options of a kind."""
    if not isinstance(given, kind):
        raise ConditionError(
            f"{argument('options')} must be {kind.__name__}(...) (found {brief(given)})."
        )


def check_count(name: str, value: int | None, least: int = 1, most: int = _LARGEST) -> None:
    """Refuse what is not a whole number from `least` to `most`; None is left to be chosen."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConditionError(
            f"{argument(name)} must be an int of at least {least} (found {brief(value)})."
        )
    if value > most:
        raise ConditionError(f"{argument(name)} must be at most {most:,} (found {brief(value)}).")
