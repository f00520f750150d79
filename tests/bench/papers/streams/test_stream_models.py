"""Intervals and templates, as streams declare them: bounds, and lengths that get numbers."""

from __future__ import annotations

import numpy as np
import pytest

from bench.hunt.intervals import LIMIT
from bench.papers.streams.intake import LengthNumbers
from bench.papers.streams.models import MixedStreams
from coincide.model.classes import ShapeClasses
from coincide.model.condition import Window
from coincide.model.sides import LEFT, RIGHT
from coincide.model.templates import satisfaction
from coincide.model.templates.satisfaction import forget
from coincide.model.templates.template import Template, template_table


@pytest.mark.parametrize("base_side", [LEFT, RIGHT])
@pytest.mark.parametrize("longest", [30, 2 * LIMIT])
def test_bands_of_mixed_streams_in_the_widest_window(base_side: int, longest: int) -> None:
    """The longest intervals, with templates: bounds that leave int64 are cut, and do not wrap."""
    templates = template_table({"a": Template([0, 3, 2**60 - 1], [0.5, 0.5])})
    model = MixedStreams(Window(-LIMIT, LIMIT, 0.5), LEFT, (0, longest), templates, 10)
    one = ShapeClasses.one(0, 0)
    length, lean = int(templates.lengths[0]), int(templates.leans[0])
    intervals = longest, longest
    around = [intervals, (2 * length - lean, lean)]
    places = [(2 * longest, 0), (2 * length, 0)]
    far = 2**63 - 2
    for table, target in (
        (model.bands(base_side, one, one)[0, 0], around[1 - base_side]),
        (model.max_time_bands(base_side, one, one)[0], places[1 - base_side]),
    ):
        before = around[base_side][0] + target[1]
        after = around[base_side][1] + target[0]
        outer = max(-2 * LIMIT - before, -far), min(2 * LIMIT + after, far)
        assert (table[0], table[3]) == outer
        if -2 * LIMIT + after <= 2 * LIMIT - before:
            assert table[1:3].tolist() == [-2 * LIMIT + after, 2 * LIMIT - before]
        else:
            assert table[1:3].tolist() == [outer[0], outer[0] - 1]


def test_streams_keep_no_table_beside_their_own() -> None:
    forget()
    table = template_table({"a": Template([0, 4, 20, 24], [0.5, 0.0, 0.5])})
    numbers = LengthNumbers(Window(-60, 50, 0.7), LEFT, table, 10)
    assert numbers.numbered(np.array([9, 3, 9], np.int64)).tolist() == [1, 0, 1]
    assert satisfaction._length_times.cache_info().currsize == 0
