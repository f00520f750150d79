"""The columns that must be equal, and columns by their names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence, Set

from coincide.model.errors import ConditionError, argument, brief

Key = str | tuple[str, str]
Keys = str | Sequence[Key]


def key_pairs(given: object) -> list[tuple[str, str]]:
    """Left and right name of each key."""
    if isinstance(given, str):
        return [(given, given)]
    if isinstance(given, Mapping):
        raise ConditionError(
            f"{argument('by')} takes pairs of names, left and right (found a mapping). Write"
            f" {argument('by', list(given.items()))}."
        )
    if isinstance(given, Sequence | Set):
        pairs = [(each, each) if isinstance(each, str) else each for each in given]
        if all(map(_is_pair, pairs)):
            return [(left, right) for left, right in pairs]
    raise ConditionError(
        f"{argument('by')} must be a column name or a sequence of names (found {given!r}). Write"
        " (left, right) for a key with another name on the right, and () for no key."
    )


def _is_pair(given: object) -> bool:
    return (
        isinstance(given, (tuple, list))
        and len(given) == 2
        and all(isinstance(name, str) for name in given)
    )


_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_WHOLE_NAME = re.compile(rf"(?:^|(?<=[,=(]))\s*{_QUOTED.pattern}\s*(?=[,=)]|$)")


def parted(text: str, mark: str) -> list[str]:
    """The parts of a text between marks; a mark in a quoted name does not count."""
    hidden = _WHOLE_NAME.sub(lambda name: " " * len(name[0]), text)
    ends = [found.start() for found in re.finditer(re.escape(mark), hidden)]
    return [text[a + 1 : b] for a, b in zip([-1, *ends], [*ends, len(text)], strict=True)]


def plain(name: str) -> str:
    """A name without its quotes and the blanks around them; quotes within it are doubled."""
    found = _QUOTED.fullmatch(name.strip())
    return found[1].replace('""', '"') if found else name.strip()


Names = str | Sequence[str]
ALL = "*"
"""All columns of a side but its keys."""


def is_all_columns(columns: Names) -> bool:
    """Whether all columns are asked for."""
    return names_of(columns) == [ALL]


def names_of(columns: Names) -> list[str]:
    """Column names as a list; one name may stand alone."""
    return [columns] if isinstance(columns, str) else list(columns)


def check_all_or_names(name: str, given: Names) -> None:
    """Refuse what is neither `ALL` nor names of some columns."""
    check_names(name, given)
    if ALL in names_of(given) and not is_all_columns(given):
        raise ConditionError(
            f"{argument(name)} takes '*' for all columns, or names of some (found both). Remove"
            " one of them."
        )


def check_column(name: str, given: object, *, may_lack: bool = False, what: str = "") -> None:
    """Refuse what is not the name of one column."""
    if not isinstance(given, str) and not (may_lack and given is None):
        raise ConditionError(
            f"{argument(name)} must be the name of a column{what}{' or None' * may_lack} (found"
            f" {brief(given)})."
        )


def check_names(name: str, given: object) -> None:
    """Refuse what is no name and no collection of names."""
    if isinstance(given, str):
        return
    if not isinstance(given, Collection) or not all(isinstance(each, str) for each in given):
        raise ConditionError(
            f"{argument(name)} must be a column name or a sequence of names, () for none (found"
            f" {given!r})."
        )
