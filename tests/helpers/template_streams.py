"""Streams of templates through the correlators that wait for a block, against all pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

from coincide.sides import LEFT
from coincide.streams import deferred
from coincide.streams.options import SideLimits, StreamOptions
from tests.helpers.template_tables import TemplateEvents, brute_pairs, drawn_model

_DELAY = 50


def check_streams(
    algorithm: Any, templates: tuple[int, int], live_blocks: Callable[[Any], Any], n: int = 500
) -> None:
    """Hold every pair that comes out against all pairs, and what is let go against the clocks."""
    rng = np.random.default_rng(5)
    model = drawn_model(rng, templates)
    limits = [SideLimits(_DELAY, 0, count - 1) for count in templates]
    options = StreamOptions(
        model,
        (limits[0], limits[1]),
        block=40,
        every=None,
        emit="pairs",
        classes=None,
        response=True,
    )
    kind = deferred.ClassedCorrelator if algorithm == "classes" else deferred.LazyCorrelator
    made = kind(options, live_blocks(algorithm))
    sides = rng.integers(0, 2, n).astype(np.uint8)
    times = np.sort(rng.integers(-600, 600, n)) + rng.integers(-_DELAY // 2, 1, n)
    shapes = np.array([rng.integers(0, templates[side]) for side in sides])
    with mock.patch.object(deferred, "ENOUGH", 30):
        found = [
            made.push_mixed(sides[a : a + 70], (times[a : a + 70], shapes[a : a + 70]))
            for a in range(0, n, 70)
        ]
        found.append(made.flush())
    pairs = [
        pair for one in found for pair in zip(one.left.tolist(), one.right.tolist(), strict=True)
    ]
    left, right = (
        TemplateEvents(times[sides == side], shapes[sides == side], leans)
        for side, leans in enumerate((model.left_leans, model.right_leans))
    )
    assert sorted(pairs) == brute_pairs(model, left, right) != []
    stats = made.stats
    assert min(stats.invalidated) > n / 10
    assert stats.late == (0, 0)
    assert stats.sure + stats.evaluations >= len(pairs)
    newest = [max(left.max_time[i], right.max_time[j]) for i, j in pairs]
    assert stats.response_mean is not None
    assert stats.response_mean >= times.min() - float(np.mean(newest))
    if algorithm == "classes":
        assert [each.count for each in made._classes] == list(templates)
    assert made._live.shapes(LEFT).max() < templates[LEFT]
