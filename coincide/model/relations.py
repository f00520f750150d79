"""Relations of spans, events that last from a start to an end: what takes the place of a timing condition.

A relation bounds the four differences between an end of the right span and one of the left span. Allen's
thirteen relations (1983) are such bounds, and so are overlap, containment and nearness.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, isfinite
from numbers import Real
from typing import Any, Literal, get_args

from coincide.model.condition import ANY_CHANCE, Closed, Window, checked_confidence
from coincide.model.errors import ConditionError, argument, brief, call, percent, said_of
from coincide.model.options import check_choice
from coincide.model.span_bounds import FAR, MOST_PARTS, SpanBounds
from coincide.model.uncertain_ends import UncertainEnds, Widths
from coincide.model.units import Duration, Tick, plain, size_of

Allen = Literal[
    "before", "meets", "overlaps", "starts", "during", "finishes", "equals",
    "after", "met-by", "overlapped-by", "started-by", "contains", "finished-by",
]  # fmt: skip
"""What the left span is to the right one."""

RELATIONS = {
    **{name: f"{name}()" for name in ("overlapping", "containing", "inside")},
    "following": "following('1h')",
}
"""Functions that make a relation, but for Allen's, and how they are called."""

UNBOUNDED_ALONE = ("before", "after")
"""Relations that bound no time by themselves."""
_SIMPLE = 10**6
"""Fractions of smaller denominators are further from each other than a float is from what it means."""
_NO_SHARES = Fraction(0), Fraction(0)

_MORE, _LESS, _SAME, _ANY = (1, FAR), (-FAR, -1), (0, 0), (-FAR, FAR)
_MIRRORED = {
    "overlapping": "overlapping", "containing": "inside", "following": "followed", "equals": "equals",
    "before": "after", "meets": "met-by", "overlaps": "overlapped-by", "starts": "started-by",
    "during": "contains", "finishes": "finished-by",
}  # fmt: skip
_MIRRORED |= {other: own for own, other in _MIRRORED.items()}
_ALLEN = {
    "before": {"after": _MORE},
    "meets": {"after": _SAME, "starts": _MORE, "ends": _MORE},
    "overlaps": {"after": _LESS, "starts": _MORE, "ends": _MORE},
    "starts": {"starts": _SAME, "ends": _MORE},
    "during": {"starts": _LESS, "ends": _MORE},
    "finishes": {"starts": _LESS, "ends": _SAME},
    "equals": {"starts": _SAME, "ends": _SAME},
}
"""Bounds on right's end less left's, as in `SpanBounds`; what is not said is not bounded."""


@dataclass(frozen=True)
class SpanWindow(Window):
    """A relation of spans in ticks. As a `Window` it says how far apart spans of a pair can be."""

    # Right begins no later than `hi` after left's end, and ends no earlier than `lo` after left's
    # start: two uncertain instants with these ends can be of a pair just then.
    kind: str
    amount: int | None = None  # Ticks: the least overlap, or less than 0 the largest gap
    shares: tuple[Fraction, Fraction] = _NO_SHARES
    ends: UncertainEnds | None = None  # None: both are known

    @classmethod
    def of(
        cls,
        kind: str,
        amount: int | None,
        shares: tuple[Fraction, Fraction] = _NO_SHARES,
        ends: UncertainEnds | None = None,
    ) -> SpanWindow:
        """The window of a relation."""
        bounds = _bounds(kind, amount, ("both", "both"))
        reach = (bounds if ends is None else ends.possible(bounds)).reach
        return cls(*reach, ANY_CHANCE, kind, amount, shares, ends)

    @property
    def is_unbounded(self) -> bool:
        """Whether spans of a pair may be any time apart."""
        return self.kind in UNBOUNDED_ALONE and self.amount is None

    @property
    def is_even(self) -> bool:
        """Whether each pair qualifies in both orders or in none."""
        return _MIRRORED[self.kind] == self.kind and self.shares[0] == self.shares[1]

    def mirrored(self) -> SpanWindow:
        """The relation seen from the right side."""
        ends = None if self.ends is None else self.ends.mirrored()
        return SpanWindow.of(_MIRRORED[self.kind], self.amount, self.shares[::-1], ends)

    def bounds(self, closed: tuple[Closed, Closed]) -> SpanBounds:
        """What qualifies two spans of which these ends belong to them."""
        # A span without both ends holds no time if its length is 0.
        least = max(self.amount or 0, 0)
        left, right = (max(least, int(each != "both")) for each in closed)
        own, other = self.shares
        found = _bounds(self.kind, self.amount, closed)
        if self.ends is not None:
            found = self.ends.where_known(found, _bounds(self.kind, self.amount, ("both", "both")))
        return found._replace(
            left_shortest=left, right_shortest=right,
            left_share=own.numerator, left_parts=own.denominator,
            right_share=other.numerator, right_parts=other.denominator,
        )  # fmt: skip


def _bounds(kind: str, amount: int | None, closed: tuple[Closed, Closed]) -> SpanBounds:
    """Bounds of the ends alone."""
    if kind not in (*_ALLEN, "overlapping", "containing", "following"):
        return _bounds(_MIRRORED[kind], amount, closed[::-1]).mirrored()
    (starts, stops), (others_start, others_stop) = map(_ends_in, closed)
    if kind == "overlapping":
        least = amount or 0
        # At a common end spans overlap if it belongs to both.
        first, last = (
            least + int(least == 0 and amount is None and not is_common)
            for is_common in (stops and others_start, starts and others_stop)
        )
        return SpanBounds.of(after=(-FAR, -first), before=(last, FAR))
    if kind == "containing" and amount is not None:
        return SpanBounds.of(starts=(amount, FAR), ends=(-FAR, -amount))
    if kind == "containing":
        return SpanBounds.of(
            starts=(0 if starts or not others_start else 1, FAR),
            ends=(-FAR, 0 if stops or not others_stop else -1),
        )
    if kind == "following":
        return SpanBounds.of(after=(0, -(amount or 0)))
    given = dict(_ALLEN[kind])
    if kind == "before":
        given["after"] = (1, FAR if amount is None else -amount)
    return SpanBounds.of(**given)


def _ends_in(closed: Closed) -> tuple[bool, bool]:
    """Whether the start and the end of a span belong to it."""
    return closed in ("both", "left"), closed in ("both", "right")


@dataclass(frozen=True, repr=False)
class SpanRelation:
    """What two spans must be to each other to be a pair.

    Made by `overlapping`, `containing`, `inside`, `following` and `relation`, for ``condition`` of
    `coincide.correlate`. Both times are then `spans`, or single columns of exact times.
    """

    kind: str
    min_overlap: Duration | None = None
    gap: Duration | None = None
    share: tuple[float, float] = (0.0, 0.0)
    confidence: float | None = None  # for spans whose ends are uncertain
    called: str = field(default="gap", compare=False)  # what the user calls `gap`

    def __post_init__(self) -> None:
        if self.confidence is not None:
            object.__setattr__(self, "confidence", checked_confidence(self.confidence))

    @property
    def is_unbounded(self) -> bool:
        """Whether spans of a pair may be any time apart."""
        return self.kind in UNBOUNDED_ALONE and self.gap is None

    @property
    def couples_ends(self) -> bool:
        """Whether uncertain ends decide together, or must be equal: no product of chances tells."""
        is_bound = self.kind in ("overlapping", "containing", "inside", "following", "followed")
        least = 0 if self.min_overlap is None else size_of(self.min_overlap)
        return not is_bound or least > 0 or any(self.share)

    def window(self, tick: Tick, widths: Widths | None = None) -> SpanWindow:
        """The relation in ticks, and of uncertain ends what they are off by.

        Raises
        ------
        ConditionError
            If a duration is no whole number of ticks.
        """
        amount = None
        if self.min_overlap is not None:
            with said_of("min_overlap"):
                amount = tick.count(self.min_overlap)
        elif self.gap is not None:
            with said_of(self.called):
                amount = -tick.count(self.gap)
        ends = None
        if self.confidence is not None:
            ends = UncertainEnds(widths or Widths(), self.confidence)
        own, other = map(_meant, self.share)
        return SpanWindow.of(self.kind, amount, (own, other), ends)

    def mirrored(self) -> SpanRelation:
        """The same relation with the two sides swapped."""
        return replace(self, kind=_MIRRORED[self.kind], share=self.share[::-1])

    def __repr__(self) -> str:
        given = {"min_overlap": self.min_overlap, self.called: self.gap}
        said = [repr(self.kind)] * (self.kind in get_args(Allen))
        said += [f"{name}={value!r}" for name, value in given.items() if value is not None]
        said += [f"share={self.share}"] if any(self.share) else []
        sure = "" if self.confidence is None else f" at confidence {self.confidence:g}"
        name = "relation" if self.kind in get_args(Allen) else self.kind
        return f"{name}({', '.join(said)}){sure}"


def overlapping(
    *,
    min_overlap: Duration | None = None,
    share: float | tuple[float, float] | None = None,
    gap: Duration | None = None,
) -> SpanRelation:
    """Spans that have time in common, or are near each other.

    Parameters
    ----------
    min_overlap : int, str or timedelta, optional
        The least time that they have in common. 0: touching is enough, whatever ends belong to them.
    share : float or (float, float), optional
        The least share of both spans that the common time is, of the left and of the right one, 0 to 1,
        and 0 asks for nothing of that span. A float counts as the fraction that it is nearest to, such as
        1/3, of a denominator up to a million. Another one counts as a decimal of nine places, rounded up.
    gap : int, str or timedelta, optional
        The most time between them, if they have none in common.

    Returns
    -------
    SpanRelation

    Raises
    ------
    ConditionError
        If a duration is negative, a share is not between 0 and 1, or a gap goes with one of them.

    Examples
    --------
    >>> print(overlapping(min_overlap="5min"))
    overlapping(min_overlap='5min')
    """
    if gap is not None and not (min_overlap is None and share is None):
        raise ConditionError(
            f"{argument('gap')} lets spans be apart, so they cannot also be asked to overlap (found"
            " both). Remove one of them."
        )
    shares = (share, share) if isinstance(share, Real) or share is None else share
    if not isinstance(shares, (tuple, list)) or len(shares) != 2:
        raise _wrong_share(share)
    return SpanRelation(
        "overlapping", _length("min_overlap", min_overlap), _length("gap", gap),
        (_share(shares[0]), _share(shares[1])),
    )  # fmt: skip


def containing(slack: Duration | None = None) -> SpanRelation:
    """Left spans that contain all of the right one.

    Parameters
    ----------
    slack : int, str or timedelta, optional
        By how much the right span may stick out at each end: the left span, made so much longer at both,
        contains it. Starts and ends are then compared as numbers, whether they belong to the spans or not.

    Returns
    -------
    SpanRelation

    Raises
    ------
    ConditionError
        If the duration is negative.

    Examples
    --------
    >>> print(containing(), containing("5s"))
    containing() containing(slack='5s')
    """
    return SpanRelation("containing", gap=_length("slack", slack), called="slack")


def inside(slack: Duration | None = None) -> SpanRelation:
    """Left spans that are all inside the right one.

    Parameters
    ----------
    slack : int, str or timedelta, optional
        By how much the left span may stick out at each end, like the slack of `containing`.

    Returns
    -------
    SpanRelation

    Raises
    ------
    ConditionError
        If the duration is negative.

    Examples
    --------
    >>> print(inside())
    inside()
    """
    return SpanRelation("inside", gap=_length("slack", slack), called="slack")


def following(within: Duration) -> SpanRelation:
    """Right spans that begin at the end of the left one, or at most so long after it.

    Parameters
    ----------
    within : int, str or timedelta
        The most time from the end of the left span to the start of the right one.

    Returns
    -------
    SpanRelation

    Raises
    ------
    ConditionError
        If the duration is negative.

    Examples
    --------
    >>> print(following("10s"))
    following(within='10s')
    """
    return SpanRelation("following", gap=_length("within", within), called="within")


def relation(name: Allen, within: Duration | None = None) -> SpanRelation:
    """One of Allen's thirteen relations: what the left span is to the right one.

    It compares starts and ends as numbers, whether they belong to the spans or not.

    Parameters
    ----------
    name : str
        "before", "meets", "overlaps", "starts", "during", "finishes", "equals", or the opposite: "after",
        "met-by", "overlapped-by", "started-by", "contains", "finished-by".
    within : int, str or timedelta, optional
        The most time between the two, of "before" and "after". A join needs it, unless it asks for the
        nearest match alone (the best match, by ``"nearest"``), or whether there is one (``how="semi"``,
        ``"anti"``).

    Returns
    -------
    SpanRelation

    Raises
    ------
    ConditionError
        If there is no such relation, or `within` has no meaning.

    Examples
    --------
    >>> print(relation("meets"))
    relation('meets')
    """
    if name in [*RELATIONS]:  # which may be of any type
        raise ConditionError(
            f"{call('relation', name)} is not one of Allen's thirteen relations. Use"
            f" {RELATIONS[name]}."
        )
    check_choice("name", name, get_args(Allen))
    if name not in UNBOUNDED_ALONE and within is not None:
        raise ConditionError(
            f"{call('relation', name)} says how far apart spans are. Remove {argument('within')}."
        )
    return SpanRelation(name, gap=_length("within", within), called="within")


def _length(name: str, given: Duration | None) -> Duration | None:
    if given is None:
        return None
    if size_of(given) < 0:
        raise ConditionError(
            f"{argument(name)} must not be negative (found {brief(given)}). Give 0 or more."
        )
    return plain(given)


def _share(given: Any) -> float:
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    if given is None:
        return 0.0
    if not is_number or not isfinite(given) or not 0 <= given <= 1:
        raise _wrong_share(given)
    return float(given)


def _wrong_share(given: object) -> ConditionError:
    hint = percent(given) if isinstance(given, float | int) else ""
    return ConditionError(
        f"{argument('share')} must be a number between 0 and 1, or one for each side (found"
        f" {brief(given)}{hint}). Give 0.5 for half of both, or (0.5, 0) for half of the left span."
    )


def _meant(share: float) -> Fraction:
    """The fraction that a float is written for."""
    near = Fraction(share).limit_denominator(_SIMPLE)
    # One that was computed, such as 1 - 2 / 3, is an ulp or two away.
    if near and abs(near - Fraction(share)) <= Fraction(1, 2**51):
        return near
    return Fraction(ceil(Fraction(repr(share)) * MOST_PARTS), MOST_PARTS)
