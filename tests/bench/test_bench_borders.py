"""Loads and peers of the border experiments: they find what the definition says."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("duckdb")
pytest.importorskip("psutil")

from bench.border_memory import measured
from bench.borders import DOMAIN, BorderLoad, Proof, Walks, counted, fluctuation, found, proof
from bench.experiments.borders import departures
from bench.garages import accesses
from bench.moving import FAST, SIDE, between, squares
from coincide.model.borders.crossings import IN, OUT, PointCrossings
from coincide.model.borders.moves import MOVE

LOAD = BorderLoad(queries=300, width=0.02, fluctuation=0.05, streams=6, readings=20)


def by_definition(lower: np.ndarray, upper: np.ndarray, walks: Walks) -> Proof:
    held = ((lower <= walks.values[:, None]) & (walks.values[:, None] < upper)).all(axis=2)
    moves = np.flatnonzero(walks.kinds == MOVE)
    parts = []
    for event, crossed in (
        (IN, held[moves] & ~held[moves - 1]),
        (OUT, held[moves - 1] & ~held[moves]),
    ):
        at, rows = np.nonzero(crossed)
        parts.append(PointCrossings(0, 0, moves[at], rows, np.full(rows.size, event)))
    return proof(iter(parts))


def test_a_load_fluctuates_as_it_says():
    walks = BorderLoad(queries=1, fluctuation=1e-3, streams=50, readings=200).walks()
    assert fluctuation(walks) == pytest.approx(1e-3, rel=0.03)
    assert (walks.values >= 0).all()
    assert (walks.values < DOMAIN + 1).all()


@pytest.mark.parametrize("fluctuation", [2e-3, 0.3])
def test_peers_in_one_dimension_find_what_we_do(fluctuation):
    pytest.importorskip("superintervals")
    from bench.peers.diff_rmq import OwnIndex, SuperIntervals, differences, timed_parts
    from bench.peers.duckdb_borders import PLANS, DuckDBBorders

    load = BorderLoad(300, 0.02, fluctuation, 6, 20)
    ranges, walks = load.ranges(), load.walks()
    index = ranges.index()
    expected = by_definition(*ranges, walks)
    assert expected[0] > 100
    assert proof(found(index, walks)) == expected
    intervals = SuperIntervals(ranges)
    for peer in (intervals, OwnIndex(index, 2)):
        sets = peer.sets(walks)
        assert proof(differences(sets, walks, threads=2)) == expected
        assert timed_parts(peer, walks, sets, 1).events == expected[0]
    assert intervals.count(walks) == sets.rows.size
    duck = DuckDBBorders(ranges, walks, 2)
    assert {plan: duck.proof(plan) for plan in PLANS} == dict.fromkeys(PLANS, expected)
    assert {duck.count(plan) for plan in PLANS} == {expected[0]}


@pytest.mark.parametrize("cells", [1, 7])
def test_a_grid_finds_what_we_do(cells):
    from bench.peers.diff_rmq import differences
    from bench.peers.grid import Grid

    walks = FAST.walks()
    walks = Walks(*(each[:400] for each in walks))
    ranges = squares(200, 3000.0)
    expected = by_definition(*ranges, walks)
    assert expected[0] > 100
    assert proof(found(ranges.index(), walks)) == expected
    grid = Grid(ranges, SIDE, cells)
    sets = grid.sets(walks)
    assert grid.stab(walks) == sets.rows.size
    assert proof(differences(sets, walks)) == expected


def test_efficiency_is_of_what_was_retrieved():
    index, walks = LOAD.ranges().index(), LOAD.walks()
    assert counted(index, walks, "three-sided").efficiency == 100
    assert 0 < counted(index, walks, "traversal").efficiency < 100


def test_objects_move_at_the_mean_speed():
    walks = FAST.walks()
    moves = np.flatnonzero(walks.kinds == MOVE)
    step = np.hypot(*(walks.values[moves] - walks.values[moves - 1]).T).mean()
    # Turns cut corners: a little less than 20 km/h.
    assert 0.95 * 20 < step / 30 * 3.6 < 20.2
    assert ((walks.values >= 0) & (walks.values <= SIDE)).all()


def test_objects_are_on_straight_lines_between_places():
    knots = np.array([[0.0, 10.0, 20.0], [0.0, 5.0, 20.0]])
    places = np.array([[[0, 0], [10, 0], [10, 10]], [[5, 5], [5, 5], [20, 5]]], np.float64)
    found_places = between(knots, places, np.array([[5.0, 15.0], [4.0, 10.0]]))
    assert found_places.tolist() == [[[5, 0], [10, 5]], [[5, 5], [10, 5]]]


def test_the_papers_cost_of_transitions():
    assert accesses(21, 180, 1890, 0.5) == pytest.approx(126)


def test_departures_of_times_from_a_sum():
    events = [0, 1000, 4000]
    a, b, departure = departures(100, events, [1e-3 + 2e-6 * n for n in events])
    assert (a, b, departure) == pytest.approx((1e-5, 2e-6, 0), abs=1e-9)
    assert departures(100, events, [1e-3, 5e-3, 9e-3])[2] > 0.1


def test_memory_is_measured_in_a_process_of_its_own():
    stated, seen = measured(100_000, 100_000)
    assert seen.queries == pytest.approx(stated.queries, rel=0.2)
    assert seen.streams == pytest.approx(stated.streams, rel=0.3)
