"""The one tree of warnings: what a join says of its answer without refusing to give it."""


class CoincideWarning(UserWarning):
    """Base of every warning that Coincide gives on purpose."""


class DroppedRowsWarning(CoincideWarning):
    """Invalid rows were left out, as ``invalid="drop"`` asks."""


class LateRowsWarning(CoincideWarning):
    """Rows came later than a delay allows, or most of them are of a time again: they were left out."""


class ToldTwiceWarning(CoincideWarning):
    """Events are told as crossed and as stayed, since the confidence is no more than 0.5."""


class UnmatchableRowsWarning(CoincideWarning):
    """Rows have a null time or key, and so match nothing."""


class RoundedTimesWarning(CoincideWarning):
    """Float times were changed by rounding them to ticks."""


class ShortShiftsWarning(CoincideWarning):
    """Shifts are so short that true pairs may be counted as accidental ones."""


class DistanceUnitWarning(CoincideWarning):
    """Places or a radius look like they were meant in another unit, such as degrees for metres."""


class CopiedRowsWarning(CoincideWarning):
    """A join on Spark sends rows to many more slices than ``max_replication`` asks for."""


class NoPairsWarning(CoincideWarning):
    """A join, or a search for crossings, finds nothing; the text says why."""
