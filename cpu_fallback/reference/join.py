"""The oracle of the join: every pair, in rational arithmetic, and the matches that each shape returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from cpu_fallback.reference.decision import check_ends, qualifies, satisfaction_probability

Row = Mapping[str, Any]
ResultRow = dict[str, Any]
Match = tuple[Fraction, Row]

# How far below the exact best a match chosen by float64 probabilities may lie.
BEST_TOLERANCE = Fraction(1, 10**15)

HOWS = ("inner", "left", "right", "full", "semi", "anti")
EMITS = ("pairs", "lists", "counts", "best")


def correlate(
    left: Sequence[Row],
    right: Sequence[Row],
    lo: int,
    hi: int,
    confidence: float,
    how: str = "inner",
    emit: str = "pairs",
    by: Sequence[str] = (),
    probability: bool = False,
    admits: Callable[[Row, Row], bool] = lambda left, right: True,
) -> list[ResultRow]:
    """Join two lists of events by trying every pair.

    A null time or a null key never matches; such a left row is still unmatched in
    ``how="left"`` and ``how="anti"``.
    """
    _check_options(lo, hi, confidence, how, emit, probability)
    emitter = _EMITTERS[how if how in ("semi", "anti") else emit]
    keep_unmatched = how in ("left", "full", "anti")
    has_match = [False] * len(right)
    result: list[ResultRow] = []
    for left_row in left:
        candidates = [row for row in right if admits(left_row, row)]
        matches = _matches(left_row, candidates, lo, hi, confidence, by)
        for number, row in enumerate(right):
            has_match[number] |= any(row is match for _, match in matches)
        if not matches and not keep_unmatched:
            continue
        head = {**{name: left_row[name] for name in by}, "left_id": left_row["id"]}
        for tail, probabilities in emitter(left_row, matches, lo, hi):
            extra = {"probability": probabilities} if probability else {}
            result.append({**head, **tail, **extra})
    if how in ("right", "full"):
        for row, is_found in zip(right, has_match, strict=True):
            if not is_found:
                alone = {**{name: row[name] for name in by}, "left_id": None, "right_id": row["id"]}
                result.append(alone | ({"probability": None} if probability else {}))
    return result


def correlate_stream(
    rows: Sequence[Row],
    lo: int,
    hi: int,
    confidence: float,
    how: str = "inner",
    emit: str = "pairs",
    by: Sequence[str] = (),
    probability: bool = False,
    admits: Callable[[Row, Row], bool] = lambda left, right: True,
) -> list[ResultRow]:
    """Join one stream with itself: left is every event, right every other one."""
    # Parameters are those of `correlate`; rows are told apart by ``id``. With ``emit="pairs"`` each
    # unordered pair is given once, and ``how="left"`` gives the events of ``how="anti"``, too.
    is_other = others(admits)
    if emit != "pairs" or how in ("semi", "anti"):
        return correlate(
            rows, rows, lo, hi, confidence, how, emit, by, probability, is_other
        )  # fmt: skip
    is_given = once(rows, lo, hi, confidence, by, admits)
    found = correlate(rows, rows, lo, hi, confidence, "inner", emit, by, probability, is_given)
    if how == "left":
        none = {"right_id": None, **({"probability": None} if probability else {})}
        alone = correlate(rows, rows, lo, hi, confidence, "anti", "pairs", by, False, is_other)
        found += [{**row, **none} for row in alone]
    return found


def others(
    admits: Callable[[Row, Row], bool] = lambda left, right: True,
) -> Callable[[Row, Row], bool]:
    """Which ordered pairs of one stream may be: those of two events."""
    return lambda left, right: left["id"] != right["id"] and admits(left, right)


def once(
    rows: Sequence[Row],
    lo: int,
    hi: int,
    confidence: float,
    by: Sequence[str] = (),
    admits: Callable[[Row, Row], bool] = lambda left, right: True,
) -> Callable[[Row, Row], bool]:
    """Which of two orders of a pair is given: the one that qualifies, of both that of the earlier event."""
    # Earlier is the event whose timestamp ends earlier, then that whose begins earlier, then the
    # lower row.
    numbers = {row["id"]: number for number, row in enumerate(rows)}

    def order(row: Row) -> tuple[Any, ...]:
        return row["max_time"], row["min_time"], numbers[row["id"]]

    def is_given(left: Row, right: Row) -> bool:
        if left["id"] == right["id"] or not admits(left, right) or not _comparable(left, right, by):
            return False
        if order(left) < order(right):
            return True
        has_other_order = admits(right, left) and _matches(right, [left], lo, hi, confidence, by)
        return not has_other_order

    return is_given


def _check_options(
    lo: int, hi: int, confidence: float, how: str, emit: str, probability: bool
) -> None:
    check_ends("window", lo, hi)
    if not 0 < confidence <= 1:
        raise ValueError(f"confidence: expected 0 < ct <= 1 (found {confidence!r})")
    if how not in HOWS:
        raise ValueError(f"how: expected one of {HOWS} (found {how!r})")
    if emit not in EMITS:
        raise ValueError(f"emit: expected one of {EMITS} (found {emit!r})")
    if how in ("right", "full") and emit != "pairs":
        raise ValueError(f"how={how!r} gives right events next to pairs and takes no emit={emit!r}")
    if how in ("semi", "anti") and emit != "pairs":
        raise ValueError(f"how={how!r} gives left events only and takes no emit={emit!r}")
    if probability and (how in ("semi", "anti") or emit == "counts"):
        raise ValueError(f"how={how!r}, emit={emit!r} has no pair to give a probability of")


def _matches(
    left_row: Row, right: Sequence[Row], lo: int, hi: int, confidence: float, by: Sequence[str]
) -> list[Match]:
    """The matches of one left event with their probabilities, in time order."""
    found = []
    for right_row in right:
        if not _comparable(left_row, right_row, by):
            continue
        p = _pair_probability(left_row, right_row, lo, hi)
        if qualifies(p, confidence):
            found.append((p, right_row))
    return sorted(found, key=lambda match: _time_order(match[1]))


def _comparable(left_row: Row, right_row: Row, by: Sequence[str]) -> bool:
    """Whether no time is null, and no key is null or differs."""
    times = ("min_time", "max_time")
    if any(row[name] is None for row in (left_row, right_row) for name in times):
        return False
    return all(left_row[name] is not None and left_row[name] == right_row[name] for name in by)


def _pair_probability(left_row: Row, right_row: Row, lo: int, hi: int) -> Fraction:
    return satisfaction_probability(
        left_row["min_time"],
        left_row["max_time"],
        right_row["min_time"],
        right_row["max_time"],
        lo,
        hi,
    )


def _time_order(right_row: Row) -> tuple[Any, ...]:
    """Sort key of a list of matches: midpoint, upper end, id."""
    doubled_midpoint = right_row["min_time"] + right_row["max_time"]
    return (doubled_midpoint, right_row["max_time"], right_row["id"])


def _tie_order(left_row: Row, right_row: Row, lo: int, hi: int) -> tuple[Any, ...]:
    """Sort key among equally probable matches: midpoint distance, right time, row, else id."""
    doubled_left = left_row["min_time"] + left_row["max_time"]
    doubled_right = right_row["min_time"] + right_row["max_time"]
    doubled_distance = abs(doubled_right - doubled_left - (lo + hi))
    row = right_row.get("row", right_row["id"])
    return (doubled_distance, right_row["max_time"], right_row["min_time"], row)


# An emitter gives (columns, value of the probability column) for each row of one left event.
_Emitted = list[tuple[ResultRow, Any]]
_Emitter = Callable[[Row, list[Match], int, int], _Emitted]


def _emit_pairs(left_row: Row, matches: list[Match], lo: int, hi: int) -> _Emitted:
    if not matches:
        return [({"right_id": None}, None)]
    return [({"right_id": row["id"]}, float(p)) for p, row in matches]


def _emit_lists(left_row: Row, matches: list[Match], lo: int, hi: int) -> _Emitted:
    return [({"right_id": [row["id"] for _, row in matches]}, [float(p) for p, _ in matches])]


def _emit_counts(left_row: Row, matches: list[Match], lo: int, hi: int) -> _Emitted:
    return [({"matches": len(matches)}, None)]


def _emit_best(left_row: Row, matches: list[Match], lo: int, hi: int) -> _Emitted:
    if not matches:
        return [({"right_id": None}, None)]
    p, row = min(matches, key=lambda match: (-match[0], *_tie_order(left_row, match[1], lo, hi)))
    return [({"right_id": row["id"]}, float(p))]


def _emit_semi(left_row: Row, matches: list[Match], lo: int, hi: int) -> _Emitted:
    return [({}, None)]


def _emit_anti(left_row: Row, matches: list[Match], lo: int, hi: int) -> _Emitted:
    return [] if matches else [({}, None)]


_EMITTERS: dict[str, _Emitter] = {
    "pairs": _emit_pairs,
    "lists": _emit_lists,
    "counts": _emit_counts,
    "best": _emit_best,
    "semi": _emit_semi,
    "anti": _emit_anti,
}


def best_is_acceptable(
    left_row: Row,
    right_rows: Sequence[Row],
    chosen_id: Any,
    lo: int,
    hi: int,
    confidence: float,
    by: Sequence[str] = (),
    tolerance: Fraction = BEST_TOLERANCE,
) -> bool:
    """Whether a match chosen by comparing float64 probabilities is a right answer."""
    # `correlate` compares exact fractions. Rounding may order nearly equal probabilities otherwise,
    # so any match within `tolerance` of the best one is accepted. The tie rule is still demanded
    # where float64 cannot hide a tie: between two matches of probability exactly 1, and between
    # matches with the same timestamp.
    matches = _matches(left_row, right_rows, lo, hi, confidence, by)
    return best_of_matches_is_acceptable(left_row, matches, chosen_id, lo, hi, tolerance)


def best_of_matches_is_acceptable(
    left_row: Row,
    matches: Sequence[Match],
    chosen_id: Any,
    lo: int,
    hi: int,
    tolerance: Fraction,
    step: Fraction | None = None,
) -> bool:
    """The same of given matches with their probabilities, whatever their timestamps are."""
    # A row may have a ``shape``, which timestamps of the same ends have in common or not. With a
    # `step`, to multiples of which probabilities are rounded before they are compared, the tie rule
    # is demanded of all that are equal, unless rounding might part them.
    if chosen_id is None or not matches:
        return chosen_id is None and not matches
    enough = max(p for p, _ in matches) - tolerance

    def acceptable(chosen: Match) -> bool:
        beaten = any(_surely_before(left_row, other, chosen, lo, hi, step) for other in matches)
        return chosen[0] >= enough and not beaten

    return any(acceptable(match) for match in matches if match[1]["id"] == chosen_id)


def _surely_before(
    left_row: Row, first: Match, second: Match, lo: int, hi: int, step: Fraction | None
) -> bool:
    """Whether `first` wins the tie with `second` whatever the rounding."""
    are_equal = first[0] == second[0]
    sure_tie = are_equal and (first[0] == 1 or (step is not None and _is_inside(first[0], step)))
    names = ("min_time", "max_time", "shape")
    same_times = all(first[1].get(name) == second[1].get(name) for name in names)
    if not sure_tie and not same_times:
        return False
    return _tie_order(left_row, first[1], lo, hi) < _tie_order(left_row, second[1], lo, hi)


def _is_inside(p: Fraction, step: Fraction) -> bool:
    """Whether all numbers near a probability are rounded alike."""
    return round((p - BEST_TOLERANCE) / step) == round((p + BEST_TOLERANCE) / step)


PREFERENCES = ("probability", "nearest", "first", "last")


class Pair(NamedTuple):
    """A pair that qualifies: its rows by number, and its probability."""

    left: int
    right: int
    probability: Fraction


def _always(left: Row, right: Row) -> bool:
    return True


class Asked(NamedTuple):
    """Both sides, the window on T_right - T_left in ticks, the confidence, keys, and which pairs may be.

    `by_rows` says whether rows decide among matches that are equal in all else, or their ids.
    """

    left: Sequence[Row]
    right: Sequence[Row]
    lo: int
    hi: int
    confidence: float
    by: Sequence[str] = ()
    admits: Callable[[Row, Row], bool] = _always
    by_rows: bool = True


def pairs(asked: Asked) -> list[Pair]:
    """All pairs that qualify."""
    found = []
    for i, one in enumerate(asked.left):
        for j, other in enumerate(asked.right):
            times = [row[name] for row in (one, other) for name in ("min_time", "max_time")]
            keys = [(one[name], other[name]) for name in asked.by]
            if None in times or any(a is None or a != b for a, b in keys):
                continue
            if not asked.admits(one, other):
                continue
            p = satisfaction_probability(times[0], times[1], times[2], times[3], asked.lo, asked.hi)
            if qualifies(p, asked.confidence):
                found.append(Pair(i, j, p))
    return found


Preferences = str | Sequence[str]
"""By what matches are preferred, and by which column of right where they are equal in that."""


def place(asked: Asked, pair: Pair, prefer: Preferences, match: str) -> tuple[Any, ...]:
    """The place of a pair among those of its event; `match` is the side of the other one."""
    prefer, *columns = [prefer] if isinstance(prefer, str) else prefer
    left, right = asked.left[pair.left], asked.right[pair.right]
    number, other = (pair.right, right) if match == "right" else (pair.left, left)
    middle = Fraction(right["min_time"] + right["max_time"], 2) - Fraction(
        left["min_time"] + left["max_time"], 2
    )
    words = {"probability": 0, "nearest": abs(middle), "first": middle, "last": -middle}
    first = words[prefer] if prefer in PREFERENCES else by_column(asked.right, right, prefer)
    if columns and prefer == "probability":
        first = -pair.probability
    then = [by_column(asked.right, right, column) for column in columns]
    from_middle = abs(middle - Fraction(asked.lo + asked.hi, 2))
    times = other["max_time"], other["min_time"]
    # The latest match is the last row, too: of a left event its `last`, of a right one its `first`.
    is_latest = prefer == ("last" if match == "right" else "first")
    rows = (-number if is_latest else number,) if asked.by_rows else (other["id"], number)
    return (first, *then, -pair.probability, from_middle, *times, *rows)


def by_column(rows: Sequence[Row], right: Row, prefer: str) -> tuple[int, int]:
    """The place of one right row by a column of its own: values, then NaN, then null."""
    name = prefer.lstrip("+-")
    value = right[name]
    if value is None:
        return 2, 0
    if value != value:
        return 1, 0
    known = {row[name] for row in rows} - {None}
    place = sorted(each for each in known if each == each).index(value)
    return 0, -place if prefer.startswith("-") else place


def best_matches(asked: Asked, prefer: Preferences, k: int) -> list[tuple[int, int, int]]:
    """Left row, right row and rank of the k best matches of each left event."""
    found, chosen = pairs(asked), []
    for i in range(len(asked.left)):
        own = [pair for pair in found if pair.left == i]
        own.sort(key=lambda pair: place(asked, pair, prefer, "right"))
        chosen += [(i, pair.right, rank) for rank, pair in enumerate(own[:k], 1)]
    return chosen


def mutual_pairs(asked: Asked, prefer: Preferences) -> list[tuple[int, int]]:
    """Left and right rows of the pairs in which each is the other's best."""
    found, chosen = pairs(asked), []
    for pair in found:
        of_left = [each for each in found if each.left == pair.left]
        of_right = [each for each in found if each.right == pair.right]
        if pair == min(
            of_left, key=lambda each: place(asked, each, prefer, "right")
        ) and pair == min(of_right, key=lambda each: place(asked, each, prefer, "left")):
            chosen.append((pair.left, pair.right))
    return chosen


def unambiguous_pairs(asked: Asked) -> list[tuple[int, int]]:
    """Left and right rows of the pairs of which neither event is in another."""
    found = pairs(asked)
    return [
        (one.left, one.right)
        for one in found
        if not any((each.left == one.left) != (each.right == one.right) for each in found)
    ]


def optimum(asked: Asked, prefer: str) -> tuple[Any, ...]:
    """What no one-to-one assignment exceeds, by trying all."""
    return _optimum(asked, prefer, pairs(asked))


def value(asked: Asked, prefer: str, chosen: Sequence[Pair]) -> tuple[Any, ...]:
    """The same of one assignment."""
    if prefer == "probability":
        return (sum(pair.probability for pair in chosen),)
    apart = [place(asked, pair, "nearest", "right")[0] for pair in chosen]
    return (len(chosen), -sum(apart))


def _optimum(asked: Asked, prefer: str, left_over: Sequence[Pair]) -> tuple[Any, ...]:
    if not left_over:
        return value(asked, prefer, ())
    first, *others = left_over
    without = _optimum(asked, prefer, others)
    free = [pair for pair in others if pair.left != first.left and pair.right != first.right]
    own = value(asked, prefer, (first,))
    rest = _optimum(asked, prefer, free)
    return max(without, tuple(a + b for a, b in zip(own, rest, strict=True)))


Bucket = tuple[int, int, float]
Histogram = Sequence[Bucket]


def placed(edges: Sequence[int], masses: Sequence[float], max_time: int) -> list[Bucket]:
    """The histogram of an event: its template, moved so that the last edge is at `max_time`."""
    shift = max_time - edges[-1]
    return [(edges[k] + shift, edges[k + 1] + shift, masses[k]) for k in range(len(masses))]


def histogram_probability(left: Histogram, right: Histogram, lo: int, hi: int) -> Fraction:
    """Probability that lo <= T_right - T_left <= hi for independent histogram timestamps."""
    total = Fraction(0)
    for low_l, high_l, mass_l in left:
        for low_r, high_r, mass_r in right:
            part = satisfaction_probability(low_l, high_l, low_r, high_r, lo, hi)
            total += Fraction(mass_l) * Fraction(mass_r) * part
    return total / (_total(left) * _total(right))


def histogram_pairs(
    left: Sequence[Histogram], right: Sequence[Histogram], lo: int, hi: int, confidence: float
) -> list[tuple[int, int]]:
    """Positions of all pairs that qualify."""
    return [
        (i, j)
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if qualifies(histogram_probability(a, b, lo, hi), confidence)
    ]


def _total(histogram: Histogram) -> Fraction:
    return sum((Fraction(mass) for _, _, mass in histogram), Fraction(0))
