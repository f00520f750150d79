"""Small joins, streams and searches that launch every kernel, compared with the CPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any
from unittest import mock

import numpy as np

import cpu_fallback
import gpu_kernels
from bench.gpu import borders, causality, equality
from bench.gpu.backends import CPU, GPU
from bench.gpu.streams import makers
from bench.gpu.works import adversarial
from bench.papers.streams import correlator
from bench.streams import StreamLoad, StreamRun, mutual_deadline_us
from coincide import DataError, EventArrays, correlate_arrays
from coincide.model.borders.moves import EITHER, PEAKS
from coincide.model.condition import Window
from coincide.model.errors import BackendError, MemoryBudgetError
from coincide.model.timestamps import IntervalPairs, pairs_model
from tests.gpu_kernels.test_gpu_histograms import drawn_side

PACKAGES = {GPU: gpu_kernels, CPU: cpu_fallback}
_JOINS = "random", "many keys", "one burst", "narrow window", "certainty"


@cache
def _cases() -> dict[str, Callable[[str], str]]:
    """By name: what digests the answer of a backend."""
    joins = {name: make() for name, make in adversarial(1500) if name in _JOINS}
    # Few enough candidates that some threads have none.
    joins |= {f"few, {name}": make() for name, make in adversarial(10) if name in _JOINS}
    histograms = ("hh", 300), ("ih", 300), ("hh", 8)
    return {
        **{f"join, {name}": partial(_join, given) for name, given in joins.items()},
        **{f"histograms, {kinds}, {n}": partial(_histograms, kinds, n) for kinds, n in histograms},
        **{
            f"stream, {algorithm}": partial(_stream, algorithm) for algorithm in ("lazy", "classes")
        },
        "borders": _borders,
        "arrays": _arrays,
        **{f"causality, {name}": partial(_causality, given) for name, given in _traces().items()},
    }


def _join(given: Any, who: str) -> str:
    left, right, window = given
    model = IntervalPairs(window)
    random = np.random.default_rng(7)
    rows = [random.integers(0, len(side), 1500) for side in (left, right)]
    probabilities = PACKAGES[who].event_probabilities(left, rows[0], right, rows[1], model)
    joins = (PACKAGES[who].EventJoin(left, right, model, classes=k) for k in (None, 4))
    return " ".join([*map(equality._everything, joins), probabilities.tobytes().hex()])


def _histograms(kinds: str, size: int, who: str) -> str:
    random = np.random.default_rng(7)
    sides = [drawn_side(random, n, kind) for n, kind in zip((size, size - 5), kinds, strict=True)]
    tables = [getattr(side, "table", None) for side in sides]
    model, left, right = pairs_model(Window(-90, 70, 0.6), *tables).for_events(*sides)
    rows = random.integers(0, size - 5, 500), random.integers(0, size - 5, 500)
    probabilities = PACKAGES[who].event_probabilities(left, rows[0], right, rows[1], model)
    found = PACKAGES[who].EventJoin(left, right, model, classes=2)
    return f"{equality._everything(found)} {probabilities.tobytes().hex()}"


def _stream(algorithm: str, who: str) -> str:
    run = StreamRun(StreamLoad(100.0, 4.0), mutual_deadline_us(500, 0.8), 150)
    kept = replace(run, emit="pairs", response=True, live_blocks=makers()[who])
    # Classes are cut after a few events.
    with mock.patch.object(correlator, "ENOUGH", 12):
        return repr(kept.proof(algorithm))


def _arrays(who: str) -> str:
    """Pairs in the order of left rows, of either type of rows; and which event is invalid."""
    random = np.random.default_rng(7)
    low = random.integers(0, 9000, (2, 1500))
    sides = [EventArrays(each, each + random.integers(0, 30, each.size)) for each in low]
    wrong = EventArrays(low[0], np.where(np.arange(1500) % 500 == 77, -1, low[0]))
    if who == GPU:
        import cupy

        *sides, wrong = (EventArrays(*map(cupy.asarray, side[:2])) for side in (*sides, wrong))
    asked: dict[str, Any] = {"within": (-9, 14), "confidence": 0.6, "order": "left"}
    found = (correlate_arrays(*sides, rows=rows, **asked) for rows in ("int32", "int64"))
    rows = (each for answer in found for each in (answer.left, answer.right))
    digest = [(each if who == CPU else each.get()).tobytes().hex() for each in rows]
    try:
        correlate_arrays(wrong, sides[1], **asked)
    except DataError as error:
        digest.append(str(error))
    return " ".join(digest)


def _borders(who: str) -> str:
    works = (
        borders.Watch(300, 5, 30, width=0.05, step=0.03),
        borders.Watch(300, 5, 30, width=0.2, step=0.03, dimensions=2, grid=100),
    )
    return " ".join(
        borders._digest(PACKAGES[who], work.made(), how)
        for work in works
        for how in (EITHER, PEAKS)
    )


def _traces() -> dict[str, causality.Traces]:
    return {
        "at places": causality.Traces(300, causality._SPEEDS, places=7),
        "interval timestamps": causality.Traces(
            300, causality._SPEEDS, lengths=300, confidence=0.4
        ),
        "histogram timestamps": causality.Traces(
            300, causality._SPEEDS, places=7, are_histograms=True, confidence=0.4
        ),
        "on a sphere": causality.Traces(300, causality._NEAR, on_sphere=True, one_stream=True),
    }


def _causality(traces: causality.Traces, who: str) -> str:
    return causality._everything(causality._join(PACKAGES[who], *traces.made()))


@cache
def _truth(name: str) -> str:
    return _cases()[name](CPU)


def works() -> dict[str, Callable[[], str]]:
    """By name: returns "equal", or what went wrong."""
    return {name: partial(_compared, name) for name in _cases()}


def _compared(name: str) -> str:
    truth = _truth(name)
    try:
        return "equal" if _cases()[name](GPU) == truth else "another answer"
    except (BackendError, MemoryBudgetError, ValueError, IndexError) as error:
        return type(error).__name__
