"""Lengths of intervals among templates are solved once, and give what solving them anew would."""

from __future__ import annotations

import numpy as np
import pytest

from coincide.model.condition import Window
from coincide.model.sides import LEFT, RIGHT
from coincide.model.templates import satisfaction
from coincide.model.templates.satisfaction import forget, satisfaction_times
from coincide.model.templates.tails import SatisfactionTimes
from coincide.model.templates.template import Template, TemplateTable, template_table

TABLE = template_table(
    {
        # Two humps, so that narrow windows leave gaps.
        "a": Template([0, 4, 20, 24], [0.5, 0.0, 0.5]),
        "b": Template([0, 9], [1.0]),
        "c": Template([0, 3, 30, 30, 41], [0.4, 0.1, 0.2, 0.3]),
    }
)
WINDOWS = Window(-60, 50, 0.7), Window(-2, 3, 0.12)
SLICES = [0, 3, 9], [3], [1, 9, 40], [0, 1, 2, 3, 9, 40], [7, 40], [], [1000]


def ranges(times: SatisfactionTimes) -> list[list[tuple[int, int]]]:
    rows, columns = times.first.shape
    return [times.ranges(i, j) for i in range(rows) for j in range(columns)]


def tables(side: int, lengths: list[int]) -> tuple[TemplateTable, TemplateTable]:
    own = TemplateTable.of_lengths(np.array(lengths, np.int64))
    return (own, TABLE) if side == LEFT else (TABLE, own)


@pytest.mark.parametrize("most", [1 << 21, 12])
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("side", [LEFT, RIGHT])
def test_slices_share_what_is_solved(
    monkeypatch: pytest.MonkeyPatch, side: int, window: Window, most: int
) -> None:
    forget()
    monkeypatch.setattr(satisfaction, "_MOST_KEPT", most)
    anew, asked = satisfaction.solved_times, []

    def counted(left: TemplateTable, right: TemplateTable, window: Window) -> SatisfactionTimes:
        asked.append((left, right)[side].lengths.tolist())
        return anew(left, right, window)

    monkeypatch.setattr(satisfaction, "solved_times", counted)
    gaps = 0
    for lengths in SLICES:
        times = satisfaction_times(*tables(side, lengths), window)
        assert ranges(times) == ranges(anew(*tables(side, lengths), window))
        gaps += times.gap_first.size
    assert (gaps > 0) == (window == WINDOWS[1])
    if most > 12:
        assert asked == [[0, 3, 9], [1, 40], [2], [7], [1000]]
    else:  # room for four lengths
        assert asked == [[0, 3, 9], [1, 9, 40], [0, 1, 2, 3, 9, 40], [7], [1000]]
    forget()


def test_an_interrupted_solve_leaves_what_was_known(monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    monkeypatch.setattr(satisfaction, "_MOST_KEPT", 12)  # room for four lengths
    anew, window = satisfaction.solved_times, WINDOWS[1]

    def interrupted(*given: object) -> SatisfactionTimes:
        raise KeyboardInterrupt

    satisfaction_times(*tables(LEFT, [0, 3, 9]), window)
    for lengths in [1, 40, 41], [12]:  # in place of those, and with them
        monkeypatch.setattr(satisfaction, "solved_times", interrupted)
        with pytest.raises(KeyboardInterrupt):
            satisfaction_times(*tables(LEFT, lengths), window)
        monkeypatch.setattr(satisfaction, "solved_times", anew)
        for again in lengths, [9, 3], [0, 3, 9]:
            times = satisfaction_times(*tables(LEFT, again), window)
            assert ranges(times) == ranges(anew(*tables(LEFT, again), window))
    forget()


@pytest.mark.parametrize("most_bytes", [0, 100, 250, 1 << 25])
def test_large_tables_are_not_kept(monkeypatch: pytest.MonkeyPatch, most_bytes: int) -> None:
    forget()
    monkeypatch.setattr(satisfaction, "_MOST_BYTES", most_bytes)
    window = WINDOWS[1]
    kept = satisfaction._length_times(TABLE, LEFT, window)
    for lengths in SLICES:
        times = satisfaction_times(*tables(LEFT, lengths), window)
        anew = satisfaction.solved_times(*tables(LEFT, lengths), window)
        assert ranges(times) == ranges(anew)
        held = kept._known.times.nbytes if kept._known else 0
        assert held <= most_bytes
        if (
            0 < anew.nbytes <= most_bytes
        ):  # no longer what came before, if there is no room for both
            assert kept._known is not None
            assert kept._known.has_all(np.array(lengths, np.int64))
    both = [satisfaction_times(TABLE, TABLE, window) for _ in range(2)]
    assert both[0].gap_first.size
    assert (both[0] is both[1]) == (both[0].nbytes <= most_bytes)
    forget()


@pytest.mark.parametrize("room", [0, 1 << 23])
def test_another_window_solves_nothing_where_quantiles_are_kept(
    monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    forget()
    monkeypatch.setattr(satisfaction, "_MOST_QUANTILE_BYTES", room)
    solved, least_beyond = [], satisfaction._least_beyond

    def counted(x: TemplateTable, y: TemplateTable, confidence: float) -> np.ndarray:
        solved.append((len(x), len(y)))
        return least_beyond(x, y, confidence)

    monkeypatch.setattr(satisfaction, "_least_beyond", counted)
    other = TABLE.only(np.arange(len(TABLE) - 1))
    for window in (WINDOWS[0], Window(-3, 900, WINDOWS[0].confidence)):
        satisfaction_times(TABLE, TABLE, window)
    assert len(solved) == (2 if room else 4)
    for left in (other, TABLE):  # the last tables alone are kept
        satisfaction_times(left, TABLE, Window(-4, 900, WINDOWS[0].confidence))
    assert len(solved) == (6 if room else 8)
    forget()
