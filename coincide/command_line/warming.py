"""What `coincide doctor --warm` does: a small job of each operator, so that all kernels are compiled."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import coincide
from coincide import CorrelateOptions, Spatial, SpeedRange
from coincide.engine.backends import load_backend
from coincide.model.compiled import folders
from coincide.model.errors import BackendError, CoincideWarning, KernelCacheWarning
from coincide.model.key_hashes import hashes_of
from coincide.model.ordering import stable_order
from coincide.model.transitions import NONE, alternating_order
from cpu_fallback.aggregates.states import BITS, put_words, told_sums

_EVENTS, _APART, _LENGTH, _KEYS = 400, 50, 60, 4
"""Events of a side; ticks from one to the next on average, and of the longest one; keys."""
_EMITS: tuple[Any, ...] = ("pairs", "counts", "lists", "best", "aggregates")
_WINDOW: Any = {"within": (-100, 100), "confidence": 0.5}
_MILLISECONDS = CorrelateOptions(unit="ms")
_KEPT = (".nbi", ".nbc")
_MANY = 600_000
"""Rows enough to be sorted by digits."""


def warm() -> int:
    """Compile for the CPU, and for the GPU if there is one; print each job, and where the code is kept."""
    print("compiling what all operators need, once; this takes some minutes", flush=True)
    for backend in ("cpu", "gpu") if _has_gpu() else ("cpu",):
        for name, job in jobs(backend):
            started = time.perf_counter()
            with warnings.catch_warnings():  # the events are made up; only what is kept matters
                warnings.simplefilter("ignore", CoincideWarning)
                warnings.simplefilter("default", KernelCacheWarning)
                job()
            print(f"{time.perf_counter() - started:6.1f} s  {backend}  {name}", flush=True)
    if not folders:
        print("Nothing is kept: set NUMBA_CACHE_DIR to a folder that can be written.")
        return 1
    kept = [path for each in folders for path in Path(each).glob("*") if path.suffix in _KEPT]
    size = sum(path.stat().st_size for path in kept)
    print(f"Ready: {len(kept):,} files, {size / 1e6:,.0f} MB, below {os.path.commonpath(folders)}")
    return 0


def _has_gpu() -> bool:
    try:
        load_backend("gpu")
    except BackendError:
        return False
    return True


def jobs(backend: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The name of each job, and the job, the most common first."""
    left, right = _events(1), _events(2)
    correlate = partial(coincide.correlate_tables, backend=backend, options=_MILLISECONDS)
    kinds = _kinds()
    for own in kinds:
        for others in kinds:
            times = {"left_time": kinds[own], "right_time": kinds[others]}
            yield f"joins of {own} and {others}", partial(_join, correlate, left, right, times)
    yield "joins by key, and one to one", partial(_match, correlate, left, right)
    yield "spans", partial(_join_spans, correlate, left, right)
    yield "best matches and aggregates", partial(_choose, correlate, left, right)
    yield "arrays", partial(_join_arrays, left, right, backend)
    yield "sequences and coincidences", partial(_make_tuples, left, right, backend)
    yield "borders and transitions", partial(_cross_borders, backend)
    yield "causes and effects", partial(_find_effects, left, right, backend)
    if backend == "cpu":
        yield "causes and effects of histograms, and on a sphere", partial(_place, left, right)
        yield "streams", partial(_push, left, right)
        yield "delays and chance", partial(_compare, left, right)
        yield "clocks", _correct
        yield "causes through a window", partial(_pass_window, left)
        yield "clusters", partial(_cluster, left)
        yield "many rows, texts as keys, and what tasks tell each other", _sort


def _events(seed: int) -> pa.Table:
    random = np.random.default_rng(seed)
    first = np.sort(random.integers(0, _EVENTS * _APART, _EVENTS))
    return pa.table({
        "id": np.arange(_EVENTS),
        "key": random.integers(0, _KEYS, _EVENTS),
        "template": random.integers(0, 2, _EVENTS),
        "min_time": first,
        "max_time": first + random.integers(_LENGTH // 3, _LENGTH, _EVENTS),
        "x": random.random(_EVENTS),
        "y": random.random(_EVENTS),
    })  # fmt: skip


def _kinds() -> dict[str, Any]:
    """Arguments of times, by what they are called."""
    templates = {0: ([0, 20, 40], [0.5, 0.5]), 1: ([0, 10, 30, 60], [0.2, 0.5, 0.3])}
    return {
        "intervals": ("min_time", "max_time"),
        "exact times": "min_time",
        "histograms": coincide.histograms("min_time", template="template", templates=templates),
    }


def _join(correlate: Any, left: pa.Table, right: pa.Table, times: dict[str, Any]) -> None:
    for emit in _EMITS:
        sums = {"aggregates": {"n": "count", "x": ("x", "sum"), "top": ("x", "max")}}
        correlate(
            left, right, emit=emit, **_WINDOW, **times, **(sums if emit == _EMITS[-1] else {})
        )
    correlate(left, right, probability=True, **_WINDOW, **times)
    for emit in ("pairs", "counts"):  # one stream with itself
        correlate(left, emit=emit, within=(-100, 50), confidence=0.5, left_time=times["left_time"])
    # A window that is narrower than what is known of times.
    correlate(left, right, within=(-5, 5), confidence=0.1, **times)


def _match(correlate: Any, left: pa.Table, right: pa.Table) -> None:
    for how in ("inner", "full", "anti"):
        correlate(left, right, by="key", how=how, where="left_x < right_x", **_WINDOW)
    for matching in ("mutual", "optimal", "unambiguous"):
        correlate(left, right, by="key", matching=matching, **_WINDOW)
    for prefer in ("nearest", "first", "last", "-x"):
        correlate(left, right, emit="best", prefer=prefer, k=2, **_WINDOW)
    weights: dict[str, Any] = {"emit": "aggregates", "weights": "probability"}
    correlate(left, right, aggregates={"n": "count", "x": ("x", "sum")}, **weights, **_WINDOW)


def _join_spans(correlate: Any, left: pa.Table, right: pa.Table) -> None:
    for around in (None, 5):
        times = coincide.spans("min_time", "max_time", around=around)
        for condition in (coincide.overlapping(), coincide.inside(), coincide.following("20ms")):
            is_certain = around is None
            more = {} if is_certain else {"confidence": 0.5}
            for emit in ("pairs", "best"):
                correlate(
                    left, right, condition, emit=emit, left_time=times, right_time=times, **more
                )
    times = coincide.spans("min_time", "max_time")
    given: dict[str, Any] = {"by": "key", "options": _MILLISECONDS}
    for unions in (coincide.merged, coincide.labelled, coincide.coverage, coincide.gaps):
        unions(left, time=times, **given)
    for compared in (coincide.difference, coincide.covered):
        compared(left, right, left_time=times, right_time=times, **given)


def _choose(correlate: Any, left: pa.Table, right: pa.Table) -> None:
    """Rows that others are chosen from, and sums of numbers of each kind."""
    correlate(left, right, emit="best", where="left_x < right_x", **_WINDOW)
    aggregates = {
        f"{name}_{function}": (name, function)
        for name in ("key", "x")
        for function in ("sum", "mean", "std")
    }
    correlate(left, right, emit="aggregates", aggregates=aggregates, **_WINDOW)


def _join_arrays(left: pa.Table, right: pa.Table, backend: Any) -> None:
    own, others = (
        coincide.EventArrays(*(np.array(side[name]) for name in ("min_time", "max_time")))
        for side in (left, right)
    )
    instants = own.min_time, others.min_time
    backwards = instants[0][::-1].copy(), instants[1]
    for sides in ((own, others), instants, backwards):
        for emit in ("pairs", "counts", "best"):
            coincide.correlate_arrays(*sides, emit=emit, backend=backend, **_WINDOW)


def _make_tuples(left: pa.Table, right: pa.Table, backend: Any) -> None:
    streams: dict[str, Any] = {"backend": backend, "options": _MILLISECONDS}
    for times in (("min_time", "max_time"), "min_time"):
        given: dict[str, Any] = {**streams, "time": times, "confidence": 0.5}
        three = [left, right, _events(3)]
        for emit in ("sequences", "counts", "best"):
            coincide.sequence_tables(three, [(0, 100)] * 2, emit=emit, **given)
        coincide.sequence_tables(three, [(0, 100)] * 2, total=(0, 150), **given)
        coincide.coincidence_tables(three, 50, at_least=2, **given)
        coincide.coincidence_tables(three, 50, **given)


def _cross_borders(backend: Any) -> None:
    random = np.random.default_rng(3)
    time = np.arange(_EVENTS)
    for values in (["x"], ["x", "y"]):
        coordinates = {name: random.random(_EVENTS) for name in values}
        readings = {"stream_id": time % _KEYS, "time": time, **coordinates}
        lower = {f"lower_{name}": np.arange(9) / 10 for name in values}
        upper = {f"upper_{name}": np.arange(1, 10) / 10 for name in values}
        if len(values) == 1:
            lower, upper = {"lower": lower["lower_x"]}, {"upper": upper["upper_x"]}
        queries = {"query_id": np.arange(9), **lower, **upper}
        options = coincide.BorderOptions(backend=backend, unit="s")
        found = coincide.border_crossing_tables(readings, queries, values=values, options=options)
        coincide.inside_tables(readings, queries, values=values, options=options)
    coincide.transition_tables(found, within=9, confidence=0.5, options=CorrelateOptions(unit="s"))


def _find_effects(left: pa.Table, right: pa.Table, backend: Any) -> None:
    near = coincide.CausalityCondition((Spatial(0.5), SpeedRange(0.001, 1.0)))
    causality = partial(
        coincide.causality_tables, left, right, near, backend=backend, options=_MILLISECONDS,
        cause_place=("x", "y"),
    )  # fmt: skip
    for times in ("min_time", ("min_time", "max_time")):
        for emit in _EMITS[:4]:
            causality(cause_time=times, emit=emit)


def _place(left: pa.Table, right: pa.Table) -> None:
    histograms = _kinds()["histograms"]
    near = Spatial(0.5), SpeedRange(0.001, 1.0)
    likely = coincide.CausalityCondition(near, confidence=0.2)
    for place in (("x", "y"), ("key", "template")):  # the second are few: pairs of places are made
        for emit in _EMITS[:4]:
            coincide.causality_tables(
                left, right, likely, cause_time=histograms, cause_place=place, emit=emit,
                options=_MILLISECONDS,
            )  # fmt: skip
    given: dict[str, Any] = {
        "cause_time": histograms, "cause_place": ("x", "y"), "options": _MILLISECONDS,
    }  # fmt: skip
    ways: tuple[dict[str, Any], ...] = ({"emit": "counts"}, {"probability": True})
    for more in ways:
        coincide.causality_tables(left, None, likely, **given, **more)  # one stream with itself
    # On a grid with far more cells than events.
    wide = [
        side.append_column("east", pa.array(1e4 * np.array(side["x"]))).append_column(
            "north", pa.array(1e4 * np.array(side["y"]))
        )
        for side in (left, right)
    ]
    close = coincide.CausalityCondition((Spatial(50), coincide.Temporal(0, _EVENTS * _APART)))
    coincide.causality_tables(
        wide[0],
        wide[1],
        close,
        cause_time="min_time",
        cause_place=("east", "north"),
        options=_MILLISECONDS,
    )
    on_earth = coincide.CausalityCondition(
        (Spatial(100), coincide.Temporal(0, 100)), space=coincide.Sphere()
    )
    coincide.causality_tables(
        left, right, on_earth, cause_time="min_time", cause_place=("x", "y"),
        options=_MILLISECONDS,
    )  # fmt: skip


def _push(left: pa.Table, right: pa.Table) -> None:
    for how in ("inner", "anti"):
        stream = coincide.stream_tables(
            left_delay=200, right_delay=200, how=how, options=_MILLISECONDS, by="key", **_WINDOW
        )
        stream.push("left", left)
        stream.push("right", right)


def _compare(left: pa.Table, right: pa.Table) -> None:
    for reach in (100, _EVENTS * _APART):  # the second has more pairs than are looked at
        within = (-reach, reach)
        coincide.delay_histogram(left, right, within=within, bins=8, options=_MILLISECONDS)
    coincide.explore_tables(left, right, within=(-100, 100), options=_MILLISECONDS)
    coincide.accidental_pair_tables(
        left, right, shifts=("1s", "-1s"), options=_MILLISECONDS, **_WINDOW
    )
    times: tuple[dict[str, Any], ...] = ({}, {"left_time": "min_time"})
    for alone in times:
        coincide.accidental_pair_tables(
            left, shifts=("1s", "-1s"), options=_MILLISECONDS, **alone, **_WINDOW
        )


def _correct() -> None:
    """Two recorders that saw the same, in seconds as floats; the clock of one is off."""
    random = np.random.default_rng(5)
    causes = np.sort(random.uniform(0, 9 * _EVENTS, _EVENTS))
    others = causes + 12.4 + 8e-5 * causes + random.normal(0, 0.003, _EVENTS)
    left, right = (
        {
            "id": np.arange(2 * _EVENTS),
            "time": np.append(seen, random.uniform(0, 9 * _EVENTS, _EVENTS)),
        }
        for seen in (causes, others)
    )
    seconds = CorrelateOptions(unit="s", tick="us")
    errors = coincide.clock_error_tables(left, right, max_offset="60s", options=seconds)
    coincide.correlate_tables(
        left, right, within="10ms", confidence=0.5, right_time="time", options=seconds,
        left_time=coincide.corrected_clock("time", errors),
    )  # fmt: skip


def _pass_window(events: pa.Table) -> None:
    near = coincide.CausalityCondition((Spatial(0.5), SpeedRange(0.001, 1.0)))
    policies: tuple[Any, ...] = ("expected", "fcfo", "fhcfo")
    for policy in policies:
        stay: dict[str, Any] = {"max_stay": 1_000} if policy == "fcfo" else {}
        options = coincide.WindowOptions(window=20, policy=policy, unit="ms", **stay)
        window = coincide.WindowedCausality(
            near,
            time="min_time",
            arrival="min_time",
            place=("x", "y"),
            home=(0.0, 0.0),
            options=options,
        )
        window.push(events)
    coincide.window_recall(
        events, near, windows=(20,), time="min_time", arrival="min_time", place=("x", "y"),
        options=coincide.WindowOptions(window=20, unit="ms"), policies=("fifo",),
    )  # fmt: skip


def _cluster(events: pa.Table) -> None:
    near = coincide.CausalityCondition((Spatial(0.5), SpeedRange(0.001, 1.0)))
    coincide.clusters(events, near, time="min_time", place=("x", "y"), options=_MILLISECONDS)


def _sort() -> None:
    """What only many rows meet, and what Spark's workers do next to joins."""
    random = np.random.default_rng(4)
    times = random.integers(0, 10**9, _MANY)
    for rows in (_MANY // 10, _MANY):
        stable_order(times[:rows])
        stable_order(times[:rows], times[:rows] % _KEYS)
        stable_order(times[:rows], times[:rows] % _KEYS, threads=2)
    hashes_of([pa.array(["a", "b"]), pa.array([1, 2])])
    keys = np.sort(times[:_EVENTS] % _KEYS)
    sums = times[: 6 * _KEYS].reshape(-1, 6)
    words, starts = told_sums(sums, BITS, 0)
    words = np.frombuffer(words.tobytes(), np.int16)  # as it comes from another process
    for places in (6, 12):
        put_words(words, starts, 0, np.zeros((len(sums), 12), np.int64)[:, :places])
    alternating_order(keys, times[:_EVENTS], (times[:_EVENTS] % 2).astype(np.int8), NONE)
