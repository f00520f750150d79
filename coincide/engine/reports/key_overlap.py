"""How many keys two sides share, and whether those that they do not share are alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from coincide.engine.events.rows import is_string
from coincide.engine.events.sides import Side, grouped_events, readable
from coincide.model.errors import argument

_LIKENESS: tuple[tuple[str, Callable[[pa.Array], pa.Array]], ...] = (
    ("blanks around it", pc.utf8_trim_whitespace),
    ("case", pc.utf8_lower),
    ("- or _", lambda texts: pc.replace_substring_regex(texts, "[-_]", "")),
)
"""What texts may differ in and still mean the same, and what makes them equal."""


@dataclass(frozen=True)
class KeyOverlap:
    """Distinct keys of two sides."""

    names: tuple[str, ...]
    left: int
    right: int
    shared: int
    is_all: bool
    examples: tuple[str, str] | None = None
    alike: tuple[str, str, str] | None = None

    def describe(self) -> str:
        """In words."""
        of = " and ".join(self.names)
        looked_at = "" if self.is_all else " in the sampled rows"
        text = (
            f"the sides share {self.shared or 'no'} key{'s' if self.shared > 1 else ''} ({of}):"
            f" left has {self.left:,}, right {self.right:,}{looked_at}"
        )
        if self.examples:
            text += f", such as {self.examples[0]} and {self.examples[1]}"
        if self.alike:
            text += ". {} and {} differ only in {}. Write both alike".format(*self.alike)
            if self.alike[-1] == "case":
                text += f", or say {argument('case_fold', True)}"
        return text


def key_overlap(
    left: Side,
    right: Side,
    names: Sequence[str],
    *,
    is_all: bool = True,
    case_fold: bool = False,
) -> KeyOverlap | None:
    """Compare the keys of two sides; None without keys."""
    if not names:
        return None
    events = grouped_events(left, right, case_fold=case_fold)
    codes, rows = zip(*(np.unique(_known(e.group), return_index=True) for e in events), strict=True)
    codes, rows = zip(
        *(_without_null(*each) for each in zip(codes, rows, strict=True)), strict=True
    )
    own = [np.isin(codes[i], codes[1 - i], invert=True) for i in (0, 1)]
    examples = None
    if all(each.any() for each in own):
        left_row, right_row = (int(rows[i][np.argmax(own[i])]) for i in (0, 1))
        examples = _words(left, left_row), _words(right, right_row)
    return KeyOverlap(
        tuple(names), codes[0].size, codes[1].size, int((~own[0]).sum()), is_all, examples,
        None if case_fold else next((a for a in map(_alike, left.keys, right.keys) if a), None),
    )  # fmt: skip


def _known(group: np.ndarray | None) -> np.ndarray:
    assert group is not None  # sides with keys have groups
    return group


def _without_null(codes: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes of keys, without the one of events that match nothing."""
    return codes[codes >= 0], rows[codes >= 0]


def _words(side: Side, row: int) -> str:
    return " ".join(repr(readable(key[row])) for key in side.keys)


def _alike(left: pa.Array, right: pa.Array) -> tuple[str, str, str] | None:
    """Texts of two columns that no row of the other has, but for blanks, case or dashes."""
    if not is_string(left.type):
        return None
    left, right = (pc.unique(column).drop_null() for column in (left, right))
    left, right = (
        mine.filter(pc.invert(pc.is_in(mine, theirs)))
        for mine, theirs in ((left, right), (right, left))
    )
    plain = [left, right]
    for reached, (_, made_equal) in enumerate(_LIKENESS, 1):
        plain = [made_equal(texts) for texts in plain]
        places = pc.index_in(plain[0], plain[1])
        if places.null_count < len(places):
            row = int(np.argmax(places.is_valid().to_numpy(zero_copy_only=False)))
            pair = pa.array([left[row].as_py(), right[places[row].as_py()].as_py()], left.type)
            return repr(pair[0].as_py()), repr(pair[1].as_py()), _differences(pair, reached)
    return None


def _differences(pair: pa.Array, reached: int) -> str:
    """In what two texts differ, which so many steps make equal."""
    found = []
    for what, made_equal in _LIKENESS[:reached]:
        before, pair = pair, made_equal(pair)
        if not pair.equals(before):
            found.append(what)
    return " and ".join(found)
