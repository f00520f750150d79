"""Assignments of the greatest gain, and the groups that they are made in, against SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import fft
from scipy.optimize import linear_sum_assignment
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from cpu_fallback.clocks.correlogram import _fast_size
from cpu_fallback.join.assignment import greatest_assignment
from cpu_fallback.join.filtering import connected_groups


@st.composite
def tables(draw: st.DrawFn) -> np.ndarray:
    """Gains, with many that are equal, and with some that are as large as sums allow."""
    rows, columns = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    most = draw(st.sampled_from([0, 1, 3, 1 << 48]))
    drawn = draw(st.lists(st.integers(0, most), min_size=rows * columns, max_size=rows * columns))
    return np.array(drawn, np.float64).reshape(rows, columns)


@given(tables())
def test_assignments_are_those_of_scipy_ties_included(table: np.ndarray) -> None:
    expected = np.full(table.shape[0], -1)
    rows, columns = linear_sum_assignment(table, maximize=True)
    expected[rows] = columns
    assert greatest_assignment(table).tolist() == expected.tolist()


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=1, unique=True))
def test_groups_are_the_connected_components(pairs: list[tuple[int, int]]) -> None:
    left, right = np.array(pairs).T
    links = coo_matrix((np.ones(left.size), (left, 13 + right)), shape=(26, 26))
    _, labels = connected_components(links, directed=False)
    expected = {frozenset(np.flatnonzero(labels[left] == label).tolist()) for label in labels[left]}
    found = connected_groups(left, right)
    groups = [
        found.order[begin:end]
        for begin, end in zip(found.offsets[:-1], found.offsets[1:], strict=True)
    ]
    assert {frozenset(group.tolist()) for group in groups} == expected
    assert len(groups) == len(expected)
    for group, sizes in zip(groups, found.sizes.tolist(), strict=True):
        assert sizes == [np.unique(left[group]).size, np.unique(right[group]).size]


@pytest.mark.parametrize("least", [1, 7, 11, 1023, 4097, 100_003, 2**31 + 5])
def test_sizes_of_transforms_are_those_of_scipy(least: int) -> None:
    assert _fast_size(least) == fft.next_fast_len(least, real=True)
