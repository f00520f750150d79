"""Streams of two clocks: with a known error, and ones that have nothing in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

Rng = np.random.Generator
SECOND = 1_000_000
"""Ticks."""


@dataclass(frozen=True)
class Truth:
    """The error of a made pair of streams: seconds, and a fraction; jumps are (time, by)."""

    offset: float
    drift: float
    noise: float
    span: float
    jumps: tuple[tuple[float, float], ...] = ()

    def at(self, times: np.ndarray) -> np.ndarray:
        """Right less left at left times, seconds."""
        jumps = sum(np.where(times > when, by, 0.0) for when, by in self.jumps)
        return self.offset + self.drift * times + jumps


@dataclass(frozen=True)
class Case:
    """Left and right times, ticks, and what is true of them."""

    left: np.ndarray
    right: np.ndarray
    truth: Truth
    pairs: int
    is_skewed: bool = False
    """Whether the peak of its noise is not at the mean, from which errors are measured."""

    @property
    def clearness(self) -> float:
        """Pairs by the root of the chance pairs within three noises of the line."""
        chance = self.left.size * self.right.size * 6 * self.truth.noise / self.truth.span
        return self.pairs / np.sqrt(max(chance, 1e-12))


def made(rng: Rng, common: int, left: int, right: int, truth: Truth, shape: str = "normal") -> Case:
    """Streams of events, some of which are common."""
    causes = np.sort(rng.uniform(0, truth.span, common))
    noise = (
        rng.normal(0, truth.noise, common)
        if shape == "normal"
        else (rng.gamma(2, 1, common) - 2) * truth.noise / np.sqrt(2)
    )
    seen = causes + truth.at(causes) + noise
    own = np.concatenate([causes, rng.uniform(0, truth.span, left - common)])
    ends = truth.at(np.array([0.0, truth.span])) + np.array([0.0, truth.span])
    others = np.concatenate([seen, rng.uniform(*ends, right - common)])
    return Case(_ticks(own), _ticks(others), truth, common, shape != "normal")


def _ticks(seconds: np.ndarray) -> np.ndarray:
    return np.sort(np.rint(seconds * SECOND).astype(np.int64))


SIZES = (30, 100, 300, 1000, 3000, 10_000)
SHARES = (0.02, 0.05, 0.1, 0.3, 0.6, 1.0)
NOISES = (1e-6, 1e-4, 1e-3, 1e-2, 0.1, 1.0)


def grid(seed: int, sizes: Sequence[int] = SIZES, repeats: int = 1) -> Iterator[Case]:
    """Offsets within 40 s and drifts within 200 ppm, of all sizes, shares and noises."""
    rng = np.random.default_rng(seed)
    for size in sizes:
        for share in SHARES:
            for noise in NOISES:
                for _ in range(repeats):
                    common = round(size * share)
                    if common < 2:
                        continue
                    span = float(10 ** rng.uniform(3, 5))
                    truth = Truth(rng.uniform(-40, 40), rng.uniform(-2e-4, 2e-4), noise, span)
                    yield made(rng, common, size, size, truth, rng.choice(["normal", "gamma"]))


def _poisson(rng: Rng, n: int, span: float) -> np.ndarray:
    return rng.uniform(0, span, n)


def _bursts(rng: Rng, n: int, span: float) -> np.ndarray:
    centres = rng.uniform(0, span, max(2, n // 12))
    return rng.choice(centres, n) + rng.exponential(span / n / 4, n)


def _daily(rng: Rng, n: int, span: float) -> np.ndarray:
    times = rng.uniform(0, span, 3 * n)
    keep = rng.uniform(0, 1, 3 * n) < 0.5 + 0.5 * np.sin(2 * np.pi * times / span * 4)
    return times[keep][:n]


def _periodic(rng: Rng, n: int, span: float) -> np.ndarray:
    period = span / n
    return np.arange(n) * period + rng.normal(0, period / 50, n) + rng.uniform(0, period)


def _exactly_periodic(rng: Rng, n: int, span: float) -> np.ndarray:
    return np.arange(n) * (span / n) + rng.uniform(0, span / n)


def _whole_seconds(rng: Rng, n: int, span: float) -> np.ndarray:
    return np.floor(rng.uniform(0, span, n))


def _repeats(rng: Rng, n: int, span: float) -> np.ndarray:
    return np.repeat(rng.uniform(0, span, n // 5 + 1), 5)[:n]


def _heart(rng: Rng, n: int, span: float) -> np.ndarray:
    phase = rng.uniform(0, 2 * np.pi, 2)
    k = np.arange(n)
    beats = 1 + 0.05 * np.sin(k / 5 + phase[0]) + 0.1 * np.sin(k / 90 + phase[1])
    times = np.cumsum(beats + rng.normal(0, 0.02, n))
    return times / times[-1] * span


def _gaps(rng: Rng, n: int, span: float) -> np.ndarray:
    begins = np.sort(rng.uniform(0, span, 6))
    return rng.choice(begins, n) + rng.uniform(0, span / 30, n)


def _heavy(rng: Rng, n: int, span: float) -> np.ndarray:
    times = np.cumsum(rng.pareto(1.3, n) + 1e-3)
    return times / times[-1] * span


UNRELATED: dict[str, Callable[[Rng, int, float], np.ndarray]] = {
    "Poisson": _poisson,
    "bursts": _bursts,
    "daily rate": _daily,
    "periodic": _periodic,
    "exactly periodic": _exactly_periodic,
    "whole seconds": _whole_seconds,
    "repeats": _repeats,
    "heart-like": _heart,
    "gaps": _gaps,
    "heavy tails": _heavy,
}
"""Kinds of streams, each a function of a number of events and a span, seconds."""


def unrelated(seed: int, kind: str, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Pairs of streams of one kind that have nothing in common: ticks."""
    rng = np.random.default_rng([seed, *kind.encode()])
    for _ in range(count):
        span = float(10 ** rng.uniform(2.8, 5))
        sizes = (int(10 ** rng.uniform(1.5, 3.7)) for _ in range(2))
        own, others = (_ticks(UNRELATED[kind](rng, size, span)) for size in sizes)
        yield own, others


def shared_bursts(rng: Rng, common: float = 0.0, length: float = 30.0) -> Case:
    """Events of 40 bursts of some mean length, seconds, that both sides see; a share of them is common."""
    truth = Truth(0.0, 0.0, 0.01, 21_600.0)
    bursts, n = rng.uniform(0, truth.span, 40), 600
    own, others = (rng.choice(bursts, n) + rng.exponential(length, n) for _ in range(2))
    pairs = round(common * n)
    others[:pairs] = own[:pairs] + rng.normal(0, truth.noise, pairs)
    return Case(_ticks(own), _ticks(others), truth, pairs)


def heartbeats(rng: Rng, drift: float, minutes: float = 30.0) -> Case:
    """Beats of one heart that two recorders mark: near-periodic, and each misses some."""
    beats = int(minutes * 75)
    k = np.arange(beats)
    lengths = 0.8 + 0.03 * np.sin(k / 4.3) + 0.05 * np.sin(k / 70) + rng.normal(0, 0.012, beats)
    truth = Truth(rng.uniform(-20, 20), drift, 0.004, float(lengths.sum()))
    times = np.cumsum(lengths)
    own, others = (times[rng.uniform(0, 1, beats) > 0.03] for _ in range(2))
    right = others + truth.at(others) + rng.normal(0, truth.noise, others.size)
    return Case(_ticks(own), _ticks(right), truth, np.intersect1d(own, others).size)
