"""What a page shows of clocks: peaks by offset, residuals about segments, their spread; and its words."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from bench.clocks import SECOND, Truth, made
from coincide import explore_tables
from coincide.engine.clocks.arguments import ClockArguments
from coincide.engine.clocks.drawing import ClockPage
from coincide.engine.clocks.tables import ClockAnswers, errors_of_tables
from coincide.engine.exploration.lags import clock_words

JUMP = Truth(-3.0, 20e-6, 0.01, 9000.0, ((4000.0, 2.5),))


@pytest.fixture(scope="module")
def answers() -> ClockAnswers:
    """A clock that was set, one with nothing in common, a comb, and one of a single event."""
    rng = np.random.default_rng(4)
    one = made(rng, 400, 600, 600, JUMP)
    comb = np.arange(4000) * 0.5
    own, others = (comb[rng.uniform(0, 1, 4000) < 0.8] for _ in range(2))
    sides = {
        "comb": (own * SECOND, (others + 1) * SECOND + rng.normal(0, 2000, others.size)),
        "jump": (one.left, one.right),
        "lone": (np.array([5]), np.array([5])),
        "none": tuple(np.sort(rng.uniform(0, 8000, 300)) * SECOND for _ in range(2)),
    }
    tables = [
        pa.concat_tables(
            pa.table({"device": [name] * len(s[side]), "time": pa.array(s[side].astype(np.int64))})
            for name, s in sides.items()
        )
        for side in (0, 1)
    ]
    arguments = ClockArguments(max_offset=20 * SECOND, by="device")
    return errors_of_tables(tables, arguments)[0]


def test_each_status_has_its_charts(answers: ClockAnswers) -> None:
    comb, jump, lone, none = answers.views(4)
    assert [v.found.status for v in (comb, jump, lone, none)] == [
        *("ambiguous", "found", "too few", "not found"),
    ]  # fmt: skip
    assert lone.offsets is None
    assert none.residuals is None
    assert comb.offsets.second[1] > 0.9 * comb.offsets.peak[1]
    assert none.offsets.peak[1] < 6
    best, second = jump.offsets.peak, jump.offsets.second
    # The later segment of all the time has most pairs.
    assert best[0] == pytest.approx(-0.42 * SECOND, abs=0.1 * SECOND)
    assert best[1] > 5 * second[1]
    assert jump.offsets.heights.max() == pytest.approx(best[1], rel=0.3)


def test_residuals_are_about_their_segments(answers: ClockAnswers) -> None:
    jump = answers.views(2)[1]
    seen, segments = jump.residuals, jump.found.segments
    assert len(segments) == 2
    ends = [height for segment in segments for _, height in seen.ends(segment)]
    assert ends == pytest.approx([-2.5 * SECOND] * 2 + [0, 0], abs=0.02 * SECOND)
    for number, level in ((0, -2.5 * SECOND), (1, 0)):
        above = seen.above[seen.numbers == number]
        assert np.median(above) == pytest.approx(level, abs=0.01 * SECOND)
        assert above.size > 130
    assert (seen.times[seen.numbers == 0] <= segments[0].end).all()
    spread = seen.spread
    width = spread.edges[1] - spread.edges[0]
    drawn = sum(height * (high - low) for low, high, height in spread.template) / width
    assert drawn == pytest.approx(spread.pairs.sum(), rel=0.1)
    assert spread.low < -10_000 < 10_000 < spread.high


def test_the_page_says_what_it_leaves_out(answers: ClockAnswers) -> None:
    plan = answers.plan
    page = ClockPage(plan.times[0].scales[0], plan.spec.limits)
    text = page.text(answers.views(3), len(answers.found), [("clocks", "<4>")], None)
    assert "The page shows the first 3 of 4 clocks." in text
    assert "device lone: too few events, pairs or time (1 left and 1 right events)." in text
    assert "&lt;4&gt;" in text
    assert re.search(r"device comb: ambiguous\. The offsets -?[\d,]+ ticks and", text)
    charts = json.loads(re.search(r"const charts = (\{.*?\});\n", text, re.DOTALL)[1])
    assert list(charts) == ["offsets0", "offsets1", "residuals1", "template1"]


def lagging(offset: float, drift: float, noise: float = 5.0, share: float = 1.0) -> dict[str, Any]:
    """Exact events of an hour in ms, and right ones so much later."""
    rng = np.random.default_rng(1)
    left = np.sort(rng.uniform(0, 3_600_000, 4000))
    right = left + offset + drift * left + rng.normal(0, noise, left.size)
    right = np.where(rng.uniform(0, 1, left.size) < share, right, rng.uniform(0, 3_600_000, 4000))
    return {
        side: pa.table({"min_time": times.astype(np.int64), "max_time": times.astype(np.int64)})
        for side, times in (("left", left), ("right", right))
    }


@pytest.mark.parametrize(
    ("given", "window", "words"),
    [
        (lagging(0, 0), (-200, 200), None),
        (lagging(80, 0), (-200, 200), r"^The delays lie about [78]\d ticks, not about 0, as if"),
        (lagging(80, 0), (0, 200), None),  # the window says that right events are later
        (lagging(-90, 5e-5), (-200, 200), r"^The delays change by 1\d\d ticks from the first to"),
        (lagging(20, 4e-5, share=0.7), (0, 200), "--max-offset 400 finds its error.$"),
        (lagging(12_300, 1e-4), (12_000, 13_000), "--max-offset 26000 finds its error.$"),
        (lagging(0, 0, noise=1e6), (-200, 200), None),
        (lagging(0, 0, noise=60), (-200, 200), None),
    ],
)
def test_explore_tells_of_clocks(given: Any, window: tuple[int, int], words: str | None) -> None:
    found = explore_tables(**given, within=window)
    told = clock_words(found)
    assert bool(told) == (words is not None), told
    assert re.search(words or "^$", told), told
