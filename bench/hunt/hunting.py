"""A whole hunt: as many cases, or as long, as a user asks."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import count
from typing import Any

from bench.experiment import Bench, CheckFailedError
from bench.hunt.cases import Case, Verdict, Way
from bench.hunt.describing import description
from bench.hunt.reporting import Tally
from bench.hunt.running import draw_case, judged
from bench.hunt.times import Profile

Judged = tuple[Case, Verdict, float]


def hunt(
    bench: Bench,
    ways: Sequence[Way],
    profile: Callable[[int], Profile],
    *,
    cases: int,
    workers: int = 1,
    shrink_seconds: float = 5.0,
) -> None:
    """Hunt, and report; `cases` where neither their number nor a time is given."""
    given = bench.options
    seed, tally = given["seed"], Tally(bench, ways, shrink_seconds)
    bench.note(seed=seed, start=given["start"])

    def judge(number: int) -> Judged:
        case = draw_case(seed, number, ways, profile(number))
        started = time.monotonic()
        verdict = judged(case)
        return case, verdict, time.monotonic() - started

    if given["case"] is not None:
        case, verdict, seconds = judge(given["case"])
        bench.tell(description(bench.report.experiment, case, verdict))
        tally.take(case, verdict, seconds)
    else:
        try:
            with _without_warnings():
                for found in _judgements(judge, _numbers(given, cases), workers):
                    tally.take(*found)
        except KeyboardInterrupt:
            bench.tell("interrupted")
    tally.summarize()
    if tally.differences:
        bench.keep(last=True)
        raise CheckFailedError(f"{tally.differences} of {tally.cases} cases differ")


@contextmanager
def _without_warnings() -> Iterator[None]:
    """No warnings of what is done on purpose: slower ways, skipped rows."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def _numbers(given: dict[str, Any], cases: int) -> Iterator[int]:
    """Numbers of cases, until there are enough or time is up."""
    most, seconds = given["cases"], given["seconds"]
    if most is None and seconds is None:
        most = cases
    deadline = None if seconds is None else time.monotonic() + seconds
    for i in count():
        if (most is not None and i >= most) or (
            deadline is not None and time.monotonic() >= deadline
        ):
            return
        yield given["start"] + i


def _judgements(
    judge: Callable[[int], Judged], numbers: Iterator[int], workers: int
) -> Iterator[Judged]:
    if workers == 1:
        yield from map(judge, numbers)
        return
    with ThreadPoolExecutor(workers) as pool:
        running: set[Future[Judged]] = set()
        for number in numbers:
            running.add(pool.submit(judge, number))
            if len(running) > workers:
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in done)
        yield from (future.result() for future in running)
