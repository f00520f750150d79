"""The one tree of errors, and the one of warnings."""

from __future__ import annotations


class CoincideError(Exception):
    """Base of every error that Coincide raises on purpose."""


class SchemaError(CoincideError, TypeError):
    """A column is missing, or has a type that cannot mean what was asked of it."""


class ConditionError(CoincideError, ValueError):
    """A predicate, threshold, duration or option that makes no sense."""


class DataError(CoincideError, ValueError):
    """Rows that cannot be joined: min > max, NaN, a time out of range."""


class BackendError(CoincideError, RuntimeError):
    """The asked-for backend is not here."""


class MemoryBudgetError(CoincideError, MemoryError):
    """The work does not fit the memory that the options allow."""


_LONGEST_SHOWN = 60


def brief(value: object) -> str:
    """As `repr`, cut where it is long: a value that someone else made up may be of any length.

    An int of more digits than Python writes down has no `repr` at all.
    """
    if isinstance(value, int) and value.bit_length() > 4 * _LONGEST_SHOWN:
        return f"an int of {value.bit_length():,} bits"
    try:
        text = repr(value)
    except ValueError:  # of a number that holds such an int
        text = f"a {type(value).__name__} of too many digits"
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 3]}..."


def percent(confidence: float) -> str:
    """What else to say of a confidence that is too large to be one."""
    return f", and {confidence:g} % is {confidence / 100:g}" if 1 < confidence <= 100 else ""


def found_instead(value: object) -> str:
    """What stands where something else should, in one short line: its `repr`, or its type."""
    text = brief(value)
    if "\n" not in text and "..." not in text:
        return text
    package, name = type(value).__module__.split(".")[0], type(value).__name__
    return name if package == "builtins" else f"{package}.{name}"


def first_line(error: BaseException) -> str:
    """The first line of an error's message, or its type where it has none."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


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


def several(count: int, thing: str) -> str:
    """``0 rows``, ``1 row``, ``1,200 rows``."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
