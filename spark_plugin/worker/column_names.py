"""Names of columns, as arguments give them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from coincide.errors import ConditionError

Names = str | Sequence[str]
ALL = "*"
"""All columns of a side but its keys."""


def is_all_columns(columns: Names) -> bool:
    """Whether all columns are asked for."""
    return names_of(columns) == [ALL]


def names_of(columns: Names) -> list[str]:
    """Column names as a list; one name may stand alone."""
    return [columns] if isinstance(columns, str) else list(columns)


def check_all_or_names(argument: str, given: Names) -> None:
    """Refuse what is neither `ALL` nor names of some columns.

    Raises
    ------
    ConditionError
    """
    check_names(argument, given)
    if ALL in names_of(given) and not is_all_columns(given):
        raise ConditionError(f"{argument} is '*', all columns, or names of some; found both")


def check_names(argument: str, given: object) -> None:
    """Refuse what is no name and no collection of names.

    Raises
    ------
    ConditionError
    """
    if isinstance(given, str):
        return
    if not isinstance(given, Collection) or not all(isinstance(name, str) for name in given):
        raise ConditionError(
            f"{argument} must be a column name or a sequence of names; () means none; found {given!r}"
        )
