"""The keys of a join: columns that must be equal, which may be called otherwise on the right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from coincide.errors import ConditionError

Key = str | tuple[str, str]
Keys = str | Sequence[Key]


def key_pairs(given: object) -> list[tuple[str, str]]:
    """Left and right name of each key.

    Raises
    ------
    ConditionError
        If it is no name and no collection of names and pairs of names.
    """
    if isinstance(given, str):
        return [(given, given)]
    if isinstance(given, Mapping):
        raise ConditionError(
            f"by takes pairs of names, left and right, and no mapping: say by={list(given.items())!r}"
        )
    if isinstance(given, Sequence | Set):
        pairs = [(each, each) if isinstance(each, str) else each for each in given]
        if all(map(_is_pair, pairs)):
            return [(left, right) for left, right in pairs]
    raise ConditionError(
        "by must be a column name or a sequence of names, where (left, right) is a key that is called"
        f" otherwise on the right; () means none; found {given!r}"
    )


def _is_pair(given: object) -> bool:
    return (
        isinstance(given, (tuple, list))
        and len(given) == 2
        and all(isinstance(name, str) for name in given)
    )
