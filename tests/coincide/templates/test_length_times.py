"""Lengths of intervals beside templates are solved once, and give what solving them anew would."""

from __future__ import annotations

import numpy as np
import pytest

from coincide.condition import Window
from coincide.sides import LEFT, RIGHT
from coincide.templates import satisfaction
from coincide.templates.satisfaction import forget, satisfaction_times
from coincide.templates.satisfaction_times import SatisfactionTimes
from coincide.templates.table import TemplateTable, template_table
from coincide.templates.template import Template

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
    anew, asked = satisfaction._times, []

    def counted(left: TemplateTable, right: TemplateTable, window: Window) -> SatisfactionTimes:
        asked.append((left, right)[side].lengths.tolist())
        return anew(left, right, window)

    monkeypatch.setattr(satisfaction, "_times", counted)
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
