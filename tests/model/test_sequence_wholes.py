"""The probability of the whole: in fractions it is the oracle's, and floats are within their bound."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from coincide.model.sequences.chain import chain_probability
from coincide.model.sequences.gathering import gathering_probability
from coincide.model.sequences.laws import Laws
from coincide.model.sequences.triangle import triangle_probability
from coincide.model.sequences.wholes import CHAIN, GATHERING, TRIANGLE, Whole, chain_work, doubt
from coincide.model.templates.template import Template, template_table
from cpu_fallback.reference.sequences import Bucket, probability, steps, within


def drawn_laws(rng: random.Random, n: int) -> list[list[Bucket]]:
    """Laws of a few buckets: some are exact times, some are gaps."""
    laws = []
    for _ in range(n):
        edges = [rng.randint(0, 5)]
        for _ in range(rng.choice([1, 1, 2, 3])):
            edges.append(edges[-1] + rng.choice([0, 1, 2] if n > 3 else [0, 1, 2, 4]))
        masses = [rng.choice([1, 1, 2, 0]) for _ in edges[1:]]
        masses = masses if sum(masses) else [1] * len(masses)
        shares = [mass / sum(masses) for mass in masses]
        laws.append(list(zip(edges, edges[1:], shares, strict=False)))
    return laws


def as_numbers(laws: list[list[Bucket]]) -> tuple[list[int], list[int], Laws]:
    """Last edges and numbers of laws, and the table of these."""
    templates = {
        str(i): Template([law[0][0] - law[-1][1], *(b[1] - law[-1][1] for b in law)], [b[2] for b in law])
        for i, law in enumerate(laws)
    }  # fmt: skip
    table = template_table(templates)
    numbers = [table.ids.index(str(i)) for i in range(len(laws))]
    return [law[-1][1] for law in laws], numbers, Laws(table)


def in_floats(whole: Whole, ends: list[int], numbers: list[int], laws: Laws) -> float:
    """The same formula as kernels have it."""
    sizes = np.diff(laws.table.starts)[numbers]
    given = np.array(ends), np.array(numbers), laws.buckets
    work = chain_work(sizes, np.float64)
    if whole.kind == CHAIN:
        return float(chain_probability(*given, whole.lows, whole.highs, 1.0, work))
    if whole.kind == TRIANGLE:
        return float(triangle_probability(*given, whole.lows, whole.highs, 1.0))
    return float(gathering_probability(*given, whole.highs[0], 1.0, work[2]))


@pytest.mark.parametrize("kind", [CHAIN, TRIANGLE, GATHERING])
@pytest.mark.parametrize("seed", range(120))
def test_all_three_are_the_volume_that_the_oracle_counts(kind: int, seed: int) -> None:
    rng = random.Random(seed)
    n = 3 if kind == TRIANGLE else rng.choice([2, 3, 3, 4])
    laws = drawn_laws(rng, n)
    moved = rng.choice([0, 10**15])
    if kind == GATHERING:
        bounds, windows = [(-(width := rng.randint(0, 5)), width)], within(n, width)
    else:
        count = 3 if kind == TRIANGLE else n - 1
        bounds = [(lo, lo + rng.randint(0, 5)) for lo in (rng.randint(-3, 3) for _ in range(count))]
        windows = steps(bounds[:2], bounds[2]) if kind == TRIANGLE else steps(bounds)
    lows, highs = (np.array(ends) for ends in zip(*bounds, strict=True))
    whole = Whole(kind, lows, highs)
    ends, numbers, table = as_numbers(laws)
    ends = [end + moved for end in ends]
    expected = probability(laws, windows)
    assert whole.exact(ends, numbers, table) == expected
    found = in_floats(whole, ends, numbers, table)
    assert abs(Fraction(found) - expected) <= doubt(kind, np.diff(table.table.starts)[numbers])


@pytest.mark.parametrize("n", [5, 8])
def test_floats_of_long_chains_are_within_their_bound(n: int) -> None:
    rng = random.Random(n)
    for _ in range(10):
        laws = [[(a := rng.randint(0, 10**6), a + rng.randint(0, 10**6), 1.0)] for _ in range(n)]
        ends, numbers, table = as_numbers(laws)
        lows = np.array([rng.randint(-(10**6), 0) for _ in range(n - 1)])
        whole = Whole(CHAIN, lows, lows + rng.randint(10**5, 2 * 10**6))
        bound = doubt(CHAIN, np.diff(table.table.starts)[numbers])
        exact = whole.exact(ends, numbers, table)
        assert abs(Fraction(in_floats(whole, ends, numbers, table)) - exact) <= bound


@pytest.mark.parametrize(
    ("step", "chance"), [((0, 3), 0.25), ((3, 9), 0.25), ((0, 2), 0.0), ((4, 9), 0.0)]
)
def test_both_ends_of_a_window_between_exact_times_belong_to_it(
    step: tuple[int, int], chance: float
) -> None:
    # The first and the last event are uncertain, and each meets its window with 1/2.
    laws: list[list[Bucket]] = [[(0, 2, 1.0)], [(5, 5, 1.0)], [(8, 8, 1.0)], [(9, 11, 1.0)]]
    ends, numbers, table = as_numbers(laws)
    lows, highs = (np.array(each) for each in zip((0, 4), step, (0, 2), strict=True))
    whole = Whole(CHAIN, lows, highs)
    assert whole.exact(ends, numbers, table) == probability(laws, steps([(0, 4), step, (0, 2)]))
    assert whole.exact(ends, numbers, table) == chance
    assert in_floats(whole, ends, numbers, table) == chance


def test_each_bend_of_three_windows_is_seen() -> None:
    # A bend that is left out shows in one of some hundred cases.
    for seed in range(1500):
        rng = random.Random(seed)
        laws = [[(a := rng.randint(0, 4), a + rng.choice([0, 2, 4, 6]), 1.0)] for _ in range(3)]
        bounds = [(lo, lo + rng.randint(1, 8)) for lo in (rng.randint(-5, 5) for _ in range(3))]
        lows, highs = (np.array(ends) for ends in zip(*bounds, strict=True))
        found = Whole(TRIANGLE, lows, highs).exact(*as_numbers(laws))
        assert found == probability(laws, steps(bounds[:2], bounds[2])), seed
