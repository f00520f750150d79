"""Which matches of an event a join returns, where it has several."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import ClassVar, Literal, get_args

from coincide.model.errors import ConditionError, argument
from coincide.model.options import check_choice, check_count

PreferWord = Literal["probability", "nearest", "first", "last"]
Prefer = PreferWord | str
"""What makes a match the best one: a word, or a column of it."""
PreferEffectWord = Literal["probability", "nearest", "first", "last", "distance"]
PreferEffect = PreferEffectWord | str
"""What makes an effect the best one: also where it is."""
Matching = Literal["mutual", "optimal", "unambiguous"]
"""How events are matched one to one."""

MOST_MATCHES = 10_000
"""Of `k`: that many are kept at hand for each event."""
LARGEST_GROUP = 2_000
"""Events of a connected group, unless said otherwise: assigned in a second or two."""
MOST_IN_GROUP = 20_000
"""Its table of pairs takes up to 0.8 GB."""


@dataclass(frozen=True)
class Preferred:
    """A column of a match by which the best one is chosen, and whether the largest value is best."""

    column: str
    is_descending: bool = False


@dataclass(frozen=True)
class MatchChoice:
    """Which matches of an event a join returns."""

    prefer: PreferEffect = "probability"
    k: int = 1  # How many matches of each left event, the best first
    matching: Matching | None = None
    largest_group: int = LARGEST_GROUP

    preferences: ClassVar[tuple[str, ...]] = get_args(PreferWord)

    def __post_init__(self) -> None:
        self._check_prefer()
        if self.k is None:
            raise ConditionError(f"{argument('k')} must be an int of at least 1 (found None).")
        check_count("k", self.k, most=MOST_MATCHES)
        if self.largest_group is None:
            raise ConditionError(
                f"{argument('largest_group')} must be an int of at least 2 (found None)."
            )
        check_count("largest_group", self.largest_group, 2, MOST_IN_GROUP)
        if self.matching != "optimal" and self.largest_group != LARGEST_GROUP:
            raise ConditionError(
                f"{argument('largest_group')} applies to {argument('matching', 'optimal')} alone,"
                " which assigns whole groups. Remove it."
            )
        if self.matching is None:
            return
        check_choice("matching", self.matching, get_args(Matching))
        if self.k != 1:
            raise ConditionError(
                f"{argument('matching', self.matching)} gives an event at most one match. Remove"
                f" {argument('k', self.k)}."
            )
        if self.matching == "unambiguous" and self.prefer != "probability":
            raise ConditionError(
                f"{argument('matching', 'unambiguous')} takes pairs whose events have no other"
                f" match, so there is no choice to make. Remove {argument('prefer', self.prefer)}."
            )
        if self.matching == "optimal" and self.prefer not in ("probability", "nearest"):
            raise ConditionError(
                f"{argument('matching', 'optimal')} optimizes a sum, so it takes"
                f" {argument('prefer', 'probability')} or 'nearest' (found"
                f" {argument('prefer', self.prefer)}). Use one of these, or"
                f" {argument('matching', 'mutual')}."
            )

    def _check_prefer(self) -> None:
        words, given = self.preferences, self.prefer
        if isinstance(given, str) and given.strip("+-") and not self._is_slip:
            return
        found = f"(found {given!r})."
        if self._is_slip:
            found += f" If a column has this name, write '+{given}'."
        raise ConditionError(
            f"{argument('prefer')} must be one of {', '.join(words)}, or a column: 'snr' prefers"
            f" its least value, '-snr' its largest {found}"
        )

    @property
    def _is_slip(self) -> bool:
        """Whether it looks like a word that was meant."""
        given = self.prefer
        if not isinstance(given, str) or given in self.preferences or given[:1] in "+-":
            return False
        near = get_close_matches(given, self.preferences, 1, 0.8)
        return any(abs(len(word) - len(given)) < 2 for word in near)

    @property
    def preferred(self) -> Preferred | None:
        """The column by which the best match is chosen; None where a word says it."""
        if self.prefer in self.preferences:
            return None
        sign = self.prefer[:1]
        return Preferred(self.prefer[1:] if sign in "+-" else self.prefer, sign == "-")

    @property
    def is_most_probable(self) -> bool:
        """Whether the best match is asked for, and it is the most probable one."""
        return self.prefer == "probability" and self.k == 1

    def check_emission(self, how: str, emit: str) -> None:
        """Refuse what has no meaning for an answer of such a shape."""
        if self.matching is not None:
            is_one_sided = how not in ("inner", "left")
            if is_one_sided or emit not in ("pairs", "best"):
                shape = argument("how", how) if is_one_sided else argument("emit", emit)
                if how == "right":
                    shape += ", or swap the sides and mirror the window"
                raise ConditionError(
                    f"{argument('matching', self.matching)} gives one pair a row, and with"
                    f" {argument('how', 'left')} also left events without a pair. Remove {shape}."
                )
            return
        if emit == "best" or (self.prefer == "probability" and self.k == 1):
            return
        is_k = self.prefer == "probability"
        said = argument("k", self.k) if is_k else argument("prefer", self.prefer)
        raise ConditionError(
            f"{said} chooses among matches, but {argument('emit', emit)} returns all matches or"
            f" none. Add {argument('emit', 'best')}, or remove {said}."
        )


@dataclass(frozen=True)
class EffectChoice(MatchChoice):
    """Which effects of a cause a join returns: as `MatchChoice`, also by their distance in space."""

    preferences: ClassVar[tuple[str, ...]] = get_args(PreferEffectWord)


MOST_PROBABLE = MatchChoice()
"""What is handed out where nothing else is asked for."""
