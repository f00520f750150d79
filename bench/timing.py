"""Timing contestants against each other on a machine that may be busy with other things."""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Seconds of one contestant, one entry a round, and what it returned last."""

    seconds: tuple[float, ...]
    answer: Any = None

    @property
    def median(self) -> float:
        """Median over the rounds."""
        return statistics.median(self.seconds)

    @property
    def low(self) -> float:
        """The fastest round."""
        return min(self.seconds)

    @property
    def high(self) -> float:
        """The slowest round."""
        return max(self.seconds)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "seconds": list(self.seconds),
            "median": self.median,
            "low": self.low,
            "high": self.high,
        }


def alternate(
    contestants: Mapping[str, Callable[[], Any]],
    rounds: int,
    warmups: int = 1,
    say: Callable[[str], None] = lambda text: None,
) -> dict[str, Timing]:
    """Run each contestant once per round, each round in its own order: a disturbance hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    answers: dict[str, Any] = {}
    for i in range(-warmups, rounds):
        for name in random.Random(i).sample(list(contestants), len(contestants)):
            say(f"{name}, round {i + 1} of {rounds}" if i >= 0 else f"{name}, warming up")
            elapsed, answers[name] = timed(contestants[name])
            if i >= 0:
                seconds[name].append(elapsed)
    return {name: Timing(tuple(seconds[name]), answers[name]) for name in contestants}


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds that one call took, and what it returned."""
    gc.collect()
    gc.freeze()  # Each of many calls would look again at all that packages made, for a tenth of a second
    started = time.perf_counter()
    answer = work()
    return time.perf_counter() - started, answer
