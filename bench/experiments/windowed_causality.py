"""Figures 7 to 12 of Kwon & Li (2009): recall of window policies on streams of sensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from bench.experiment import Bench, Experiment
from bench.sensors import HOME, SECOND, SensorLoad
from bench.timing import timed
from coincide import (
    CausalityCondition,
    Spatial,
    Temporal,
    WindowedCausality,
    WindowOptions,
    window_recall,
)
from coincide.model.windowed_causality import POLICIES

BOUND = "bound"
LINES = (*POLICIES, BOUND)
LABELS = {name: name.upper() for name in POLICIES[:4]} | {"expected": "expected", BOUND: "bound"}
SEEDS = 3
OURS, PAPERS_BEST = "expected", "fhcfo"


class Point(NamedTuple):
    """Recall in percent at a point of a figure, for each policy and the bound; one entry a seed."""

    at: float
    recalls: dict[str, list[float]]

    def mean(self, name: str) -> float:
        """Over seeds."""
        return float(np.mean(self.recalls[name]))


def run(bench: Bench) -> None:
    """Sweep the five parameters of Table 1, then time policies, then judge the claims."""
    base = bench.pick(SensorLoad(), SensorLoad(sensors=20, readings=60))
    bench.note(seeds=_seeds(bench), load=repr(base))
    windows = bench.pick([50, 100, 150, 200, 250, 300, 350, 400, 450, 500], [20, 100])
    small, middle, large = bench.pick((200, 300, 450), (20, 40, 60))
    points: dict[str, list[Point]] = {}
    for part, delay in (("a", 0.2), ("b", 0.1)):
        loads = [(float(n), replace(base, delay=delay), n) for n in windows]
        points["7" + part] = _figure(bench, "7" + part, "window (tuples)", loads)
    sweeps: tuple[tuple[str, str, str, list[float], Sequence[int]], ...] = (
        ("8", "period", "period of a sensor (s)", [k / 20 for k in range(2, 11)], (middle, small)),
        ("9", "delay", "delay of a hop (s)", [k / 50 for k in range(1, 11)], (middle, small)),
        ("10", "propagation", "propagation time (s)", [k / 5 for k in range(1, 11)], (middle, large)),
        ("11", "tolerance", "tolerance (s)", [k / 10 for k in range(1, 11)], (middle, large)),
    )  # fmt: skip
    for number, name, axis, values, sizes in sweeps:
        for part, n in zip("ab", sizes, strict=True):
            ends = bench.pick(values, values[:: len(values) - 1])
            loads = [(v, replace(base, **{name: v}), n) for v in ends]
            points[number + part] = _figure(bench, number + part, axis, loads)
    _times(bench, base, windows)
    _million(bench)
    _claims(bench, points)


def _seeds(bench: Bench) -> int:
    return bench.pick(SEEDS, 1)


def _figure(
    bench: Bench, name: str, axis: str, loads: Sequence[tuple[float, SensorLoad, int]]
) -> list[Point]:
    points = [_point(bench, name, *load) for load in loads]
    bench.chart(
        f"figure{name}", f"Recall by {axis.partition(' (')[0]} (Figure {name})", axis, "recall (%)",
        [point.at for point in points],
        {LABELS[who]: [point.mean(who) for point in points] for who in LINES},
        dashed=[LABELS[BOUND]],
    )  # fmt: skip
    spread = max(max(p.recalls[who]) - min(p.recalls[who]) for p in points for who in LINES)
    bench.figure(f"figure {name}: largest difference between seeds", spread, "points of recall")
    bench.note(**{f"figure {name}": {f"{p.at:g}": _rounded(p) for p in points}})
    bench.keep()
    return points


def _rounded(point: Point) -> dict[str, list[float]]:
    return {who: [round(each, 2) for each in values] for who, values in point.recalls.items()}


def _point(bench: Bench, name: str, at: float, load: SensorLoad, window: int) -> Point:
    found: dict[str, list[float]] = {who: [] for who in LINES}
    for seed in range(_seeds(bench)):
        bench.say(f"figure {name}, {at:g}, seed {seed}")
        table = window_recall(_table(load, seed), condition(load), windows=[window], **_COLUMNS)
        for row in table.to_pylist():
            found[row["policy"]].append(100 * row["recall"])
    return Point(at, found)


_COLUMNS: Any = {"place": ("x", "y"), "arrival": "arrival", "home": HOME}


def condition(load: SensorLoad) -> CausalityCondition:
    """Strict, as the paper's."""
    lo = round(SECOND * load.propagation)
    hi = lo + round(SECOND * load.tolerance)
    return CausalityCondition([Temporal(lo, hi, strict=True), Spatial(load.radius, strict=True)])


def _table(load: SensorLoad, seed: int) -> pa.Table:
    stream = load.stream(seed)
    x, y = stream.places
    ids = np.arange(x.size)
    return pa.table({"id": ids, "time": stream.times, "arrival": stream.arrivals, "x": x, "y": y})


def _push(load: SensorLoad, table: pa.Table, policy: Any, window: int) -> int:
    windowed = WindowedCausality(
        condition(load), columns=(), options=WindowOptions(window, policy), **_COLUMNS
    )
    return windowed.push(table).num_rows


def _times(bench: Bench, base: SensorLoad, windows: Sequence[int]) -> None:
    """Figure 12: time by the size of the window, on one core."""
    table = _table(base, 0)
    lines: dict[str, list[float]] = {LABELS[policy]: [] for policy in POLICIES}
    for n in windows[:: bench.pick(3, 1)]:
        times = bench.alternate(
            f"figure 12, window {n}",
            {policy: partial(_push, base, table, policy, n) for policy in POLICIES},
            rounds=3,
        )
        for policy, timing in times.items():
            lines[LABELS[policy]].append(1e6 * timing.median / table.num_rows)
    x = [float(n) for n in windows[:: bench.pick(3, 1)]]
    title, axis = "Time by the size of the window (Figure 12)", "window (tuples)"
    bench.chart("figure12", title, axis, "microseconds a tuple", x, lines)


def _million(bench: Bench) -> None:
    """A million tuples through a window of 500, on one core."""
    load = SensorLoad(readings=bench.pick(10_000, 30), propagation=0.2)
    table, window = _table(load, 0), 500
    _push(load, table.slice(0, 100), "expected", window)
    for policy in POLICIES:
        bench.say(f"a million tuples, {policy}")
        work = partial(_push, load, table, policy, window)
        seconds = min(timed(work)[0] for _ in range(bench.rounds(3)))
        bench.figure(
            f"a million tuples, window 500: {LABELS[policy]}", seconds, "s", 2.0, at_least=False
        )


def _claims(bench: Bench, points: dict[str, list[Point]]) -> None:
    seven = points["7a"] + points["7b"]
    _gain_claim(bench, "Figure 7: FHCFO is up to 7 points better than FIFO", seven, "fhcfo", "fifo")
    _gain_claim(bench, "Figure 7: FHFO is up to 4 points better than FIFO", seven, "fhfo", "fifo")
    every = [point for each in points.values() for point in each]
    worst = sum(min(POLICIES[:4], key=point.mean) == "fcfo" for point in every)
    bench.claim(
        "FCFO has the least recall in most experiments",
        f"at {worst} of {len(every)} points",
        worst > len(every) / 2,
    )
    better = sum(point.mean("fhcfo") > point.mean("fhfo") for point in every)
    bench.claim(
        "FHCFO is better than FHFO", f"at {better} of {len(every)} points", better == len(every)
    )
    best = sum(max(POLICIES[:4], key=point.mean) == "fhcfo" for point in every)
    bench.claim(
        "FHCFO has the highest recall throughout", f"at {best} of {len(every)} points",
        best == len(every),
    )  # fmt: skip
    for number, what in (
        ("8", "grows with the period"), ("9", "falls with the delay of a hop"),
        ("10", "falls with the propagation time"), ("11", "falls with the tolerance"),
    ):  # fmt: skip
        line = [point.mean("fhcfo") for point in points[number + "a"]]
        agrees = line[-1] > line[0] if number == "8" else line[-1] < line[0]
        bench.claim(
            f"Figure {number}: recall {what}",
            f"FHCFO, {line[0]:.1f} to {line[-1]:.1f} %",
            agrees,
        )
    between = [point for point in every if 50 <= point.mean("fifo") <= 95]
    gains = [point.mean(OURS) - point.mean(PAPERS_BEST) for point in between]
    room = [point.mean(BOUND) - point.mean(OURS) for point in between]
    for name, values, bar in (
        ("expected above FHCFO where FIFO has 50-95 %: least", gains, 3.0),
        ("bound above expected where FIFO has 50-95 %: most", room, None),
    ):
        if values:
            extreme = min(values) if bar else max(values)
            bench.figure(name, extreme, "points of recall", bar, spread=values)
    against = [p.mean(OURS) - max(p.mean(each) for each in POLICIES[:4]) for p in between]
    if against:
        bench.figure(
            "expected above the best of the paper's where FIFO has 50-95 %: least", min(against),
            "points of recall", spread=against,
        )  # fmt: skip


def _gain_claim(bench: Bench, claim: str, points: Sequence[Point], one: str, other: str) -> None:
    gains = [point.mean(one) - point.mean(other) for point in points]
    bench.claim(
        claim,
        f"{min(gains):+.1f} to {max(gains):+.1f} points",
        max(gains) >= 3.0 and min(gains) > -0.5,
    )


ABOUT = """\
A hundred sensors at random places of the unit square send a thousand readings each, over as many hops of
exponential delay as their distance needs. Every reading may be cause and effect of others nearby. Recall is
the share of all pairs that a window of n tuples finds, by policy, over the ranges of the paper's Table 1.
No policy can exceed the bound. The paper leaves some parameters open: here period 0.5 s, delay 0.2 s a hop,
a hop every 0.1, propagation 0.6 s, tolerance 0.3 s.
"""

EXPERIMENT = Experiment(
    summary="recall of window policies for causality (Figures 7 to 12)",
    run=run,
    title="Causality through windows",
    about=ABOUT,
)
