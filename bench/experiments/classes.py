"""The cost constants of `coincide.model.class_choice`: fitted to times of the counting kernel."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from bench.events import DEADLINE_US
from bench.experiment import Bench, Experiment
from coincide.model import class_choice
from coincide.model.condition import Window
from coincide.model.timestamps import IntervalEvents, IntervalPairs
from cpu_fallback import EventJoin

WINDOW = Window(-DEADLINE_US, DEADLINE_US, 0.8)
COSTS = {
    "per event": None,
    "place by a cursor": "scan",
    "step a cursor": "step",
    "probe a candidate": "probe",
    "open a group": "opening",
}
"""The terms of the cost model, in the order of `Trial.amounts`, and where their constants are."""


@dataclass(frozen=True)
class Trial:
    """A join whose counting is timed."""

    left: int
    right: int
    # Distinct ones, each a class of its own; 0: they vary freely within one class.
    left_lengths: int = 1
    right_lengths: int = 1
    rate: float = 4.0  # left events per second in each group
    groups: int = 1

    def join(self) -> EventJoin:
        """The join, sorted and not yet counted."""
        seconds = self.left / self.rate / self.groups
        left = _events(self.left, seconds, self.left_lengths, self.groups, 1)
        right = _events(self.right, seconds, self.right_lengths, self.groups, 2)
        classes = 16 if self.left_lengths and self.right_lengths else 1
        return EventJoin(left, right, IntervalPairs(WINDOW), classes=classes, threads=1)

    def amounts(self) -> list[float]:
        """How often each cost arises, per left event."""
        join = self.join()
        probes, targets = join.counters.probed / self.left, self.right / self.left
        groups = self.groups / self.left
        return [1.0, *class_choice.amounts(join.bands, probes, targets, groups)]

    def nanoseconds(self) -> float:
        """Processor time to count, per left event."""
        join = self.join()
        started = time.thread_time_ns()
        join.counts  # noqa: B018 - counts
        return (time.thread_time_ns() - started) / self.left


def run(bench: Bench) -> None:
    """Time all trials in alternating rounds and fit the constants."""
    trials = _trials(bench.pick(400_000, 4_000))
    amounts = np.array([trial.amounts() for trial in trials])
    rounds = bench.rounds(5)
    times = np.empty((rounds, len(trials)))
    for i, j in np.ndindex(*times.shape):
        bench.say(f"trial {j + 1} of {len(trials)}, round {i + 1} of {rounds}")
        times[i, j] = trials[j].nanoseconds()
    medians = np.median(times, axis=0)
    fitted, each = fit(amounts, medians), np.array([fit(amounts, row) for row in times])
    for j, (label, constant) in enumerate(COSTS.items()):
        bench.figure(label, fitted[j], "ns", spread=each[:, j])
        if constant:
            bench.figure(
                f"{label}, in class_choice", getattr(class_choice.INTERVAL_COSTS, constant), "ns"
            )
    error = np.abs(amounts @ fitted / medians - 1.0)
    bench.figure("error of the fit, mean", 100 * error.mean(), "%", spread=(0.0, 100 * error.max()))


def fit(amounts: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Costs >= 0, shape (costs,), that explain the times with the least relative squared error."""
    relative = amounts / times[:, None]
    costs = np.zeros(amounts.shape[1])
    free = np.ones(costs.size, bool)
    while free.any():
        found = np.linalg.lstsq(relative[:, free], np.ones(times.size), rcond=None)[0]
        if (found >= 0.0).all():
            costs[free] = found
            break
        free[np.flatnonzero(free)[found.argmin()]] = False
    return costs


def _trials(n: int) -> list[Trial]:
    """Trials that vary one amount at a time."""
    return [
        *(Trial(n, n, 1, k) for k in (1, 2, 4, 8, 16)),
        *(Trial(n, n, k, k2) for k in (2, 4, 8) for k2 in (1, 4)),
        *(Trial(n, n // 4, k, 1, rate=16.0) for k in (1, 4)),
        *(Trial(n // 4, n, k, 1, rate=1.0) for k in (1, 4)),
        *(Trial(n, n, k, k, groups=n // size) for k in (1, 4, 8) for size in (4, 16)),
        *(Trial(n // 4, n // 4, 0, 0, rate=rate) for rate in (4.0, 20.0, 100.0)),
    ]


def _events(n: int, seconds: float, lengths: int, groups: int, seed: int) -> IntervalEvents:
    random = np.random.default_rng(seed)
    begin = np.sort(random.integers(0, int(seconds * 1e6), n))
    if lengths:
        length = 20_000 + 10_000 * random.integers(0, lengths, n)
    else:
        length = random.integers(20_000, 200_000, n, endpoint=True)
    group = random.integers(0, groups, n) if groups > 1 else None
    return IntervalEvents(begin, begin + length, group, groups)


ABOUT = """\
The constants that choose the number of length classes (`coincide/model/class_choice.py`), fitted to times
of the counting kernel, next to those in use.
"""

EXPERIMENT = Experiment(
    summary="the cost constants by which length classes are chosen",
    run=run,
    title="Cost of length classes",
    about=ABOUT,
)
