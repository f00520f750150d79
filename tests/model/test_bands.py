"""The midpoint bands: what the inner and outer ranges promise, and that they promise enough."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from bench.hunt.intervals import LIMIT
from coincide import CorrelateOptions, TimingCondition, Window, correlate_tables, within
from coincide.model.bands import (
    INNER_HI,
    INNER_LO,
    OUTER_HI,
    OUTER_LO,
    band_table,
    longest_match,
    midpoint_reach,
)
from coincide.model.classes import ShapeClasses, length_classes
from coincide.model.probability import qualifies
from cpu_fallback.reference import decision as reference

CONFIDENCES = (0.5, 1.0, 0.75, 0.8, 0.1, 0.9, 0.25, 1 / 3, 0.01, 1e-6, 1e-12, 1 - 2.0**-53)

Range = tuple[int, int]


class Band(NamedTuple):
    """One row of a band table."""

    outer_lo: int
    inner_lo: int
    inner_hi: int
    outer_hi: int

    def is_inner(self, d: int) -> bool:
        return self.inner_lo <= d <= self.inner_hi

    def is_outside(self, d: int) -> bool:
        return not self.outer_lo <= d <= self.outer_hi

    @property
    def shell(self) -> int:
        return (self.outer_hi - self.outer_lo) - (self.inner_hi - self.inner_lo)


def one_class(lengths: Range) -> ShapeClasses:
    ends = [np.array([end], np.int64) for end in lengths]
    return ShapeClasses(*ends, np.ones(1))


def band_of(left: Range, right: Range, window: Window) -> Band:
    return Band(*band_table(one_class(left), one_class(right), window)[0, 0].tolist())


@cache
def exact_probability(d: int, l1: int, l2: int, width: int):  # type: ignore[no-untyped-def]
    """P for a doubled midpoint difference d from the window's doubled middle."""
    # Left [0, l1], right [r, r + l2], window [0, width]: 2r + l2 - l1 - width = d.
    r = (d + l1 - l2 + width) // 2
    return reference.satisfaction_probability(0, l1, r, r + l2, 0, width)


def check_exhaustively(left: Range, right: Range, window: Window) -> None:
    band = band_of(left, right, window)
    middle = window.lo + window.hi
    reach = window.width + left[1] + right[1] + 4
    for l1 in range(left[0], left[1] + 1):
        for l2 in range(right[0], right[1] + 1):
            for d in range(-reach, reach + 1):
                if (d + l1 + l2 + window.width) % 2 == 0:
                    p = exact_probability(d, l1, l2, window.width)
                    found = reference.qualifies(p, window.confidence)
                    where = (left, right, window, band, l1, l2, d)
                    assert found or not band.is_inner(middle + d), where
                    assert not (found and band.is_outside(middle + d)), where


def test_band_columns() -> None:
    assert (OUTER_LO, INNER_LO, INNER_HI, OUTER_HI) == (0, 1, 2, 3)


def test_hand_worked() -> None:
    # Two exact instants: delta in [-5, 5], so D in [-10, 10].
    assert band_of((0, 0), (0, 0), Window(-5, 5, 0.5)) == (-10, -10, 10, 10)
    # Equal lengths 10 and w = 20 >= l1 + l2: h = w / 2 at ct 0.5, w / 2 - 10 at ct 1.
    assert band_of((10, 10), (10, 10), Window(-10, 10, 0.5)) == (-20, -20, 20, 20)
    assert band_of((10, 10), (10, 10), Window(-10, 10, 1.0)) == (0, 0, 0, 0)
    # An odd sum of lengths takes odd D only.
    assert band_of((0, 0), (1, 1), Window(-5, 5, 1.0)) == (-9, -9, 9, 9)
    # Too narrow for anything.
    empty = band_of((10, 10), (10, 10), Window(-1, 1, 0.5))
    assert empty.outer_lo > empty.outer_hi
    assert empty.inner_lo > empty.inner_hi


@pytest.mark.parametrize("seed", range(6))
def test_random_classes_exhaustively(seed: int) -> None:
    rng = np.random.default_rng([2010, seed])
    for _ in range(30):
        most = int(rng.choice([1, 3, 7]))
        left, right = (tuple(int(x) for x in np.sort(rng.integers(0, most + 1, 2))) for _ in "lr")
        lo = int(rng.integers(-9, 10))
        width = int(rng.integers(0, int(rng.choice([2, most + 1, 2 * most + 4]))))
        check_exhaustively(left, right, Window(lo, lo + width, float(rng.choice(CONFIDENCES))))


def test_confidences_at_ties_exhaustively() -> None:
    """Corners and insides of classes whose probability is the threshold."""
    rng = np.random.default_rng(19)
    for _ in range(60):
        a1, a2, width = (int(x) for x in rng.integers(1, 7, 3))
        d = int(rng.integers(0, 9))
        d += (d + a1 + a2 + width) % 2
        confidence = float(exact_probability(d, a1, a2, width)) or 1.0
        check_exhaustively((a1 - 1, a1 + 1), (a2, a2 + 2), Window(-1, width - 1, confidence))


@pytest.mark.parametrize("width", [0, 1, 3, 10, 40])
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_one_length_a_side_leaves_no_shell(width: int, confidence: float) -> None:
    for l1 in (0, 1, 5, 16):
        for l2 in (0, 2, 5, 21):
            band = band_of((l1, l1), (l2, l2), Window(-3, width - 3, confidence))
            if band.outer_lo <= band.outer_hi:
                assert (band.outer_lo, band.outer_hi) == (band.inner_lo, band.inner_hi)
            else:
                assert band.inner_lo > band.inner_hi


def test_no_range_leaves_the_outer_one_of_windows_around_any_middle() -> None:
    for lo in (-(10**9), -17, 0, 10**9):
        for confidence in CONFIDENCES:
            for width in (0, 7, 30, 100):
                band = band_of((3, 20), (0, 11), Window(lo, lo + width, confidence))
                middle = 2 * lo + width
                assert band.outer_lo + band.outer_hi == 2 * middle or band.outer_lo > band.outer_hi
                if band.inner_lo <= band.inner_hi:
                    assert band.inner_lo + band.inner_hi == 2 * middle
                    assert band.outer_lo <= band.inner_lo
                    assert band.inner_hi <= band.outer_hi


def near_the_bounds(band: Band) -> set[int]:
    limit = 2 * (2 * LIMIT)
    return {
        min(max(bound + step, -limit), limit)
        for bound in band
        for step in (-3, -2, -1, 0, 1, 2, 3, 1000, -1000, 2**40, -(2**40))
    }


def check_near_the_bounds(
    rng: np.random.Generator, left: Range, right: Range, window: Window
) -> int:
    """Decide pairs near the bounds by the formula, the decision that the band must not change."""
    band = band_of(left, right, window)
    checked = 0
    for d in near_the_bounds(band):
        for _ in range(4):
            l1, l2 = (
                int(rng.choice([*ends, rng.integers(*ends, endpoint=True)]))
                for ends in (left, right)
            )
            d += (d + l1 + l2) % 2 * (-1 if d > 0 else 1)
            s = (d + l2 - l1) // 2
            found = qualifies(s, l1, l2, window.lo, window.hi, window.confidence)
            assert found or not band.is_inner(d), (left, right, window, band, l1, l2, d)
            assert not (found and band.is_outside(d)), (left, right, window, band, l1, l2, d)
            checked += 1
    return checked


@pytest.mark.parametrize("bits", [20, 40, 52, 61])
def test_classes_of_any_size(bits: int) -> None:
    rng = np.random.default_rng(bits)
    for _ in range(150):
        tops = [int(2 ** rng.uniform(0, bits)) for _ in range(4)]
        left, right = (tuple(sorted(pair)) for pair in (tops[:2], tops[2:]))
        lo, hi = sorted(int(x) for x in rng.integers(-(2**bits) + 1, 2**bits, 2) // 2)
        if rng.random() < 0.5:
            hi = min(hi, lo + left[1])
        window = Window(lo, hi, float(rng.choice(CONFIDENCES)))
        assert check_near_the_bounds(rng, left, right, window) > 40


def test_the_largest_times() -> None:
    rng = np.random.default_rng(61)
    whole = (0, 2 * LIMIT)
    for window in (Window(-LIMIT, LIMIT, 0.5), Window(LIMIT, LIMIT, 0.5), Window(-LIMIT, 0, 1e-12)):
        for left in (whole, (0, 0), (2 * LIMIT, 2 * LIMIT)):
            for right in (whole, (0, 1), (2 * LIMIT, 2 * LIMIT)):
                check_near_the_bounds(rng, left, right, window)


# Found by search. With a guard of 2**-51 the first three pairs qualify outside the outer range, the
# other two lie in the inner range without qualifying: the corner and the pair round apart.
# Left class, right class, lo, hi, ct, then the pair's lengths and D.
ROUNDED_APART = [
    (
        *((10255851201374607, 10255851201374756), (10073524621176038, 10073524621176209)),
        *(-745566981, 745566981, "0x1.2ac59ec900000p-23"),
        *(10255851201374720, 10073524621176089, 1050733059679365),
    ),
    (
        *((9288844570426446, 9288844570483389), (10566529568830058, 10566529568851296)),
        *(-13142691842, 13142691842, "0x1.4de18f89f8000p-19"),
        *(9288844570436163, 10566529568837726, 1277659376742147),
    ),
    (
        *((73968569926194630, 73968569926388055), (73968425528140312, 73968425528235377)),
        *(-1419686103632, 1419686103632, "0x1.4201001368000p-15"),
        *(73968569926244024, 73968425528232525, 458289753259),
    ),
    (
        *((103927705557745793, 103927705557746009), (103770439862192721, 103770439862192727)),
        *(-1899908529549229, 1899908529549230, "0x1.26b6635d8d2eep-5"),
        *(103927705557745864, 103770439862192725, 3468652648217939),
    ),
    (
        *((162054304103007830, 162054304103008305), (167283102390465509, 167283102390466258)),
        *(-10794069429055744, 10794069429055744, "0x1.01c6e1a334092p-3"),
        *(162054304103008291, 167283102390466055, 8810284021836792),
    ),
]


@pytest.mark.parametrize("found", ROUNDED_APART)
def test_the_guard_covers_two_rounding_errors_of_huge_lengths(found: tuple[Any, ...]) -> None:
    left, right, lo, hi, confidence, l1, l2, d = found
    window = Window(lo, hi, float.fromhex(confidence))
    band = band_of(left, right, window)
    decided = qualifies((d + l2 - l1) // 2, l1, l2, lo, hi, window.confidence)
    assert decided or not band.is_inner(d)
    assert not (decided and band.is_outside(d))


@pytest.mark.parametrize("length", [10, 10**9, 2**58])
def test_certain_pairs_are_sure_at_confidence_1(length: int) -> None:
    """The guard must not ask for more than a probability of 1."""
    half = 4 * length
    band = band_of((length, length + 2), (length, length + 4), Window(-half, half, 1.0))
    # The longest two are certain while D / 2 + length + 3 <= half.
    assert band.inner_hi >= 2 * (half - length) - 6
    assert band.inner_lo == -band.inner_hi


# --- the sure part is worth having ---

TYPICAL = {
    "skewed": lambda rng: np.exp(rng.normal(11, 0.7, 20_000)).astype(np.int64),
    "even": lambda rng: rng.integers(100_000, 400_000, 20_000),
}


@pytest.mark.parametrize("kind", TYPICAL)
@pytest.mark.parametrize("confidence", [0.25, 0.75, 0.9])
@pytest.mark.parametrize("half", [500_000, 100_000])
def test_more_classes_mean_a_thinner_shell(kind: str, confidence: float, half: int) -> None:
    rng = np.random.default_rng(3)
    sides = [TYPICAL[kind](rng) for _ in "lr"]
    shells, sure = [], []
    for k in (1, 2, 4, 8, 16):
        left, right = (length_classes(side, k) for side in sides)
        table = band_table(left, right, Window(-half, half, confidence)).astype(np.float64)
        inner = np.maximum(table[:, :, INNER_HI] - table[:, :, INNER_LO], 0)
        outer = table[:, :, OUTER_HI] - table[:, :, OUTER_LO]
        shells.append(float(left.share @ (outer - inner) @ right.share))
        sure.append(float(left.share @ inner @ right.share))
    assert shells == sorted(shells, reverse=True)
    assert shells[-1] < shells[0] / 4
    assert sure == sorted(sure)


def test_wide_windows_are_mostly_sure() -> None:
    band = band_of((100, 200), (100, 200), Window(-1000, 1000, 0.8))
    assert band.inner_hi - band.inner_lo > 0.9 * (band.outer_hi - band.outer_lo)


def test_narrow_windows_do_not_probe_everything() -> None:
    window = Window(-1000, 1000, 0.5)
    band = band_of((1900, 2000), (1900, 2000), window)
    reach = 2 * (window.width + 4000)
    assert band.shell < reach / 20
    hopeless = band_of((9000, 10_000), (9000, 10_000), window)
    assert hopeless.outer_hi - hopeless.outer_lo < 10


def test_a_huge_length_beside_a_narrow_window_hides_no_pair() -> None:
    """Scaled to the longest lengths of its class, a threshold may be less than floats can tell from 0."""
    times = {"min_time": [-(2**61) + 1, 410], "max_time": [484, 452], "id": [0, 1]}
    left = pa.table({"min_time": [234], "max_time": [254], "id": [0]})
    found = correlate_tables(
        left, pa.table(times), TimingCondition(within(197, 217), 0.25),
        options=CorrelateOptions(classes=1),
    )  # fmt: skip
    assert found["right_id"].to_pylist() == [1]


@pytest.mark.parametrize("ct", [0.5, np.nextafter(0.5, 1), 0.5 + 2.0**-49, 0.51, 0.8, 1.0])
@pytest.mark.parametrize("longest", [1, 3, 40, 10**6, 2**47, 2**53, 2**60, 2**61 - 1])
def test_more_likely_than_not_midpoints_lie_in_the_window(longest: int, ct: float) -> None:
    """With lengths up to the longest no pair beyond the bounds qualifies, and one at them may."""
    random = np.random.default_rng(longest % 1000)
    for width in (0, 1, 7, 10**5, 2**59):
        window = Window(-(width // 3), width - width // 3, float(ct))
        found = midpoint_reach(window, longest)
        assert found is not None
        first, last = found
        lengths = random.integers(0, longest + 1, (30, 2)).tolist()
        for l1, l2 in [(longest, longest), (0, longest), (longest, 1), (0, 0), *lengths]:
            for beyond in (1, 2, 3, 10):
                # Right [m, m + l2] with m so that D is as far out, or one further, for its parity.
                d = last + beyond + (last + beyond + l2 - l1) % 2
                m = (d + l1 - l2) // 2
                assert not qualifies(m + l2 - l1, l1, l2, window.lo, window.hi, window.confidence)
                d = first - beyond - (first - beyond + l2 - l1) % 2
                m = (d + l1 - l2) // 2
                assert not qualifies(m + l2 - l1, l1, l2, window.lo, window.hi, window.confidence)
    assert last - 2 * window.hi == 2 * window.lo - first <= (longest >> 46) + 1


def test_ties_at_the_end_of_the_window_are_within_reach() -> None:
    """One half as probability is that of midpoints just as far apart as the window's end."""
    for longest in (10, 2**40, 2**55):
        first, last = midpoint_reach(Window(-(2**57), 2**57, 0.5), longest) or (0, 0)
        assert first <= -(2**58) < 2**58 <= last
        assert qualifies(2**57, longest, longest, -(2**57), 2**57, 0.5)
    # With long ones the decision's slack lets pairs through that are a little further out.
    steps = [k for k in range(4096) if qualifies(2**59 + k, 2**59, 2**59, -(2**59), 2**59, 0.5)]
    assert len(steps) > 100
    assert 2**60 + 2 * steps[-1] <= (midpoint_reach(Window(-(2**59), 2**59, 0.5)) or (0, 0))[1]


def test_less_likely_pairs_reach_as_far_as_their_lengths_let_them() -> None:
    assert midpoint_reach(Window(-5, 5, float(np.nextafter(0.5, 0)))) is None
    assert midpoint_reach(Window(-5, 5, 0.1)) is None


@pytest.mark.parametrize("confidence", [0.5, 1.0, 0.75, 0.8, 0.25, 1 / 3])
@pytest.mark.parametrize("shortest", [0, 1, 3, 7])
def test_the_longest_match_is_the_longest_that_matches(shortest: int, confidence: float) -> None:
    enough = Fraction(confidence) - reference.GUARD
    for width in range(12):
        longest = longest_match(Window(0, width, confidence), shortest)
        reached = -1 if longest is None else longest

        def qualify(own: int, length: int, width: int = width) -> bool:
            # For a pair whose midpoints lie in the window's middle, or half a tick off.
            d = (own + length + width) % 2
            return exact_probability(d, own, length, width) >= enough

        for length in range(reached + 1, reached + 40):
            assert not any(qualify(own, length) for own in range(shortest, shortest + 12))
        if longest is not None and (shortest + longest + width) % 2 == 0:
            assert qualify(shortest, longest)


def test_the_longest_match_of_a_low_confidence_has_no_bound() -> None:
    assert longest_match(Window(0, 5, 1e-18)) >= 2 * LIMIT
