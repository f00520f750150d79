"""Clock errors: made ones, streams that have nothing in common, seismic stations, and speed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from bench import clocks
from bench.clocks import SECOND, Case, Truth, made
from bench.experiment import Bench, Experiment
from bench.peers import clock_peers

if TYPE_CHECKING:
    from coincide.model.clocks.errors import ClockEstimate

MAX_OFFSET_S = 60
MAX_DRIFT = 2.2e-4
CHANCE = 1e-3
_NOISES = 5
"""An answer that is farther off, in its middle, is wrong."""
_TICK_S = 2e-6
_STATION_PICKS = 20


def run(bench: Bench) -> None:
    """The bars of correctness, then those of speed."""
    _made_grid(bench)
    _jumps(bench)
    _unrelated(bench)
    _shared_bursts(bench)
    _stations(bench)
    _heartbeats(bench)
    _peers(bench)
    _speed(bench)


@dataclass(frozen=True)
class _Answer:
    case: Case
    found: ClockEstimate

    @property
    def errors(self) -> list[float]:
        """How far each segment is off in its middle, seconds."""
        return [
            abs(s.line.at(t) / SECOND - float(self.case.truth.at(np.array([t / SECOND]))[0]))
            for s in self.found.segments
            for t in [(s.start + s.end) / 2]
        ]

    @property
    def is_wrong(self) -> bool:
        """Whether a segment that is given is not the true line."""
        return any(error > max(_NOISES * self.case.truth.noise, _TICK_S) for error in self.errors)


def _answers(bench: Bench, cases: Iterable[Case], max_offset: int = MAX_OFFSET_S) -> list[_Answer]:
    def answer(case: Case) -> _Answer:
        return _Answer(case, _found(case.left, case.right, max_offset))

    with ThreadPoolExecutor(bench.cores) as pool:
        return list(pool.map(answer, cases))


def _found(
    left: np.ndarray, right: np.ndarray, max_offset: int, max_drift: float = MAX_DRIFT
) -> ClockEstimate:
    from coincide.model.clocks.errors import Limits
    from coincide.model.clocks.events import ClockEvents
    from cpu_fallback.clocks import clock_error

    limits = Limits(max_offset * SECOND, max_drift, CHANCE)
    return clock_error(ClockEvents.of(left, right), limits)


def _made_grid(bench: Bench) -> None:
    sizes = bench.pick(clocks.SIZES, (100,))
    answers = _answers(bench, clocks.grid(1, sizes, bench.pick(2, 1)))
    clear = [a for a in answers if a.case.pairs >= 10 and a.case.clearness >= 8]
    found = sum(a.found.status == "found" for a in clear)
    single = [a for a in answers if len(a.found.segments) == 1]
    even, skewed = (
        [
            error <= 4 * s.spread / SECOND / np.sqrt(s.pairs) + _TICK_S / 2
            for a in single
            if a.case.is_skewed == is_skewed
            for error, s in zip(a.errors, a.found.segments, strict=True)
        ]
        for is_skewed in (False, True)
    )
    bench.note(made=len(answers), clear=len(clear))
    bench.figure("made: wrong answers", sum(a.is_wrong for a in answers), "", 0, at_least=False)
    bench.figure("made: found where it is clear", 100 * found / max(len(clear), 1), "%", 95)
    bench.figure("made, even noise: within 4 spread/√pairs", 100 * float(np.mean(even)), "%", 95)
    bench.figure("made, skewed noise: likewise", 100 * float(np.mean(skewed)), "%")


def _jumps(bench: Bench) -> None:
    rng = np.random.default_rng(2)
    answers = _answers(bench, [_jumping(rng) for _ in range(bench.pick(40, 2))])
    covered = [
        sum(s.end - s.start for s in a.found.segments) / a.case.truth.span / SECOND for a in answers
    ]
    bench.figure("jumps: wrong segments", sum(a.is_wrong for a in answers), "", 0, at_least=False)
    bench.figure("jumps: time covered, least", 100 * min(covered), "%")
    bench.figure("jumps: time covered, median", 100 * float(np.median(covered)), "%", 90)


def _jumping(rng: np.random.Generator) -> Case:
    span = float(rng.uniform(1e4, 1e5))
    times = np.sort(rng.uniform(0.1, 0.9, rng.integers(1, 4))) * span
    jumps = tuple((float(t), float(rng.choice([-1, 1]) * rng.uniform(0.5, 8))) for t in times)
    noise = float(10 ** rng.uniform(-4, -2))
    truth = Truth(rng.uniform(-20, 20), rng.uniform(-1e-4, 1e-4), noise, span, jumps)
    return made(rng, 1500, 3000, 3000, truth)


def _unrelated(bench: Bench) -> None:
    each = bench.pick(260, 1)
    wrong = {
        kind: sum(_are_found(bench, clocks.unrelated(1, kind, each))) for kind in clocks.UNRELATED
    }
    bench.note(unrelated=each * len(wrong), found_by_kind=wrong)
    bench.figure("unrelated: found", sum(wrong.values()), "", 8, at_least=False)


def _shared_bursts(bench: Bench) -> None:
    """Bursts that both sides see: without a common event, and with one of ten events common."""
    rng, each = np.random.default_rng(19), bench.pick(200, 1)
    strangers, related = (
        _answers(bench, [clocks.shared_bursts(rng, share) for _ in range(each)])
        for share in (0.0, 0.1)
    )
    found = sum(a.found.status == "found" for a in strangers)
    right = sum(bool(a.errors) and not a.is_wrong for a in related)
    bench.note(shared_bursts=each)
    bench.figure("shared bursts: found", 100 * found / each, "%", 2, at_least=False)
    bench.figure("shared bursts, a tenth common: right", 100 * right / each, "%", 95)


def _are_found(bench: Bench, pairs: Iterator[tuple[np.ndarray, np.ndarray]]) -> list[bool]:
    def is_found(pair: tuple[np.ndarray, np.ndarray]) -> bool:
        return _found(*pair, 30).status == "found"

    with ThreadPoolExecutor(bench.cores) as pool:
        return list(pool.map(is_found, pairs))


def _stations(bench: Bench) -> None:
    """P picks of two pickers by station, the clock of one put off."""
    from bench.gpu.picks import read_picks

    try:
        sides = [_by_station(table) for table in read_picks()]
    except FileNotFoundError:
        bench.note(seismic_picks="not here")
        return
    names = [n for n in sides[0] if min(len(side.get(n, ())) for side in sides) >= _STATION_PICKS]
    rng = np.random.default_rng(7)
    right = strangers = 0
    for i, name in enumerate(bench.pick(names, names[:2])):
        left = sides[0][name]
        truth = Truth(rng.uniform(-40, 40), rng.uniform(-1e-4, 1e-4), 0.2, 86_400.0)
        start = left[0]
        seconds = (left - start) / SECOND
        off = left - np.rint(truth.at(seconds) * SECOND).astype(np.int64)
        answer = _Answer(
            Case(off - start, sides[1][name] - start, truth, 0),
            _found(off - start, sides[1][name] - start, MAX_OFFSET_S),
        )
        right += bool(answer.errors) and max(answer.errors) < 0.2
        other = sides[1][names[(i + 1) % len(names)]] + 5 * 3600 * SECOND
        strangers += _found(off, other, MAX_OFFSET_S).status == "found"
    bench.note(stations=len(names))
    bench.figure("stations: within 0.2 s", right, "", 51)
    bench.figure("stations hours apart: found", strangers, "", 0, at_least=False)


def _by_station(table: Any) -> dict[str, np.ndarray]:
    frame = table.to_pandas()
    frame = frame[frame["phase"] == "P"]
    return {
        name: np.sort(np.rint(own["t"].to_numpy() * SECOND).astype(np.int64))
        for name, own in frame.groupby("station")
    }


def _heartbeats(bench: Bench) -> None:
    rng = np.random.default_rng(17)
    drifts = np.linspace(181e-6, 676e-6, bench.pick(17, 2)) * rng.choice([-1, 1], bench.pick(17, 2))
    right = 0
    for drift in drifts:
        case = clocks.heartbeats(rng, float(drift))
        answer = _Answer(case, _found(case.left, case.right, 30, 8e-4))
        right += bool(answer.errors) and not answer.is_wrong
    bench.figure("heartbeats of two recorders: right", right, "", 16)


def _peers(bench: Bench) -> None:
    """How far answers are off in the middle of a day of 1,000 events, by the share that is common."""
    contestants = {"ours": _our_offset, **clock_peers.peers()}
    if clock_peers.missing():
        bench.note(not_installed=clock_peers.missing())
        bench.tell(f"not installed, so not measured: {', '.join(clock_peers.missing())}")
    for words, share in (("all common", 1.0), ("half common", 0.5), ("a tenth common", 0.1)):
        rng, cases = np.random.default_rng(11), bench.pick(10, 1)
        truths = [Truth(rng.uniform(-40, 40), 5e-5, 0.001, 86_400.0) for _ in range(cases)]
        made_ones = [made(rng, round(1000 * share), 1000, 1000, truth) for truth in truths]
        for name, find in contestants.items():
            errors = [_off_by(find, case) for case in made_ones]
            bench.say(f"{name}, {words}")
            bench.figure(f"{name}: {words}, off by", float(np.median(errors)), "s", spread=errors)


def _our_offset(left: np.ndarray, right: np.ndarray, most: float, at: float) -> float:
    """NaN where there is no answer, or none at that time."""
    ticks = [np.rint(side * SECOND).astype(np.int64) for side in (left, right)]
    held = [s for s in _found(*ticks, round(most)).segments if s.start <= at * SECOND <= s.end]
    return held[0].line.at(at * SECOND) / SECOND if held else math.nan


def _off_by(find: clock_peers.Offset, case: Case) -> float:
    middle = case.truth.span / 2
    found = find(case.left / SECOND, case.right / SECOND, MAX_OFFSET_S, middle)
    return abs(found - float(case.truth.at(np.array([middle]))[0]))


def _speed(bench: Bench) -> None:
    from coincide import CorrelateOptions, clock_error_tables

    rng = np.random.default_rng(3)
    events = bench.pick(10_000_000, 20_000)
    span = bench.pick(86_400.0, 8640.0)
    case = made(rng, events // 10, events, events, Truth(17.0, 5e-5, 0.001, span))
    left, right = (pa.table({"time": times}) for times in (case.left, case.right))
    options = CorrelateOptions(threads=bench.cores)

    def large() -> list[str]:
        found = clock_error_tables(left, right, max_offset=60 * SECOND, options=options)
        return found["status"].to_pylist()

    timing = bench.alternate("one key", {"ours": large}, rounds=3)["ours"]
    bench.seconds(f"{events:,} × {events:,}", timing, 10.0)
    keys = bench.pick(1000, 20)
    many = [
        made(rng, 300, 1000, 1000, Truth(rng.uniform(-40, 40), 1e-5, 0.01, 20_000.0))
        for _ in range(keys)
    ]
    own, others = (
        pa.table({"key": np.repeat(np.arange(keys), 1000), "time": np.concatenate(times)})
        for times in zip(*((c.left, c.right) for c in many), strict=True)
    )

    def each() -> list[str]:
        found = clock_error_tables(own, others, max_offset=60 * SECOND, by="key", options=options)
        return found["status"].to_pylist()

    timing = bench.alternate("many keys", {"ours": each}, rounds=1)["ours"]
    bench.seconds(f"{keys:,} keys of 1,000 × 1,000", timing, 60.0)


ABOUT = """\
Made pairs of streams: 30 to 10,000 events, 2 to 100 % of them common, noise of 1 µs to 1 s, offsets within
40 s and drifts within 200 ppm, looked for within 60 s. A case is clear with at least ten pairs, and with
eight times the root of the chance pairs near the line. An answer is wrong if it is off by more than five
times the noise. Half of the cases have skewed noise, whose peak is not at its mean. A line follows the
peak, so with many pairs it is farther off than 4 spread/√pairs. Ten kinds of unrelated streams show how
often chance is taken for an answer. P picks of two pickers by station have the clock of one put off.
Heartbeats are those of two recorders that miss some. Peers get ten days of 1,000 events on each side,
noise of 1 ms, offsets within 40 s and a drift of 50 ppm. nearest_advocate looks for one offset, which the
drift moves by 4 s.
"""

EXPERIMENT = Experiment(
    summary="errors of clocks: made ones, unrelated streams, seismic stations, heartbeats, speed",
    run=run,
    title="Errors of clocks",
    about=ABOUT,
)
