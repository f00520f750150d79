"""The hunt: draw, judge, shrink what differs, and tell."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import count
from pathlib import Path

from bench.hunt.cases import CASES_PER_DATA_SET, Case, Verdict, Way
from bench.hunt.chance import Chance
from bench.hunt.data import DataSet
from bench.hunt.drawing import draw_data
from bench.hunt.jobs import draw_job
from bench.hunt.oracle import Oracle
from bench.hunt.times import Profile


def draw_case(seed: int, number: int, ways: Sequence[Way], profile: Profile) -> Case:
    """Case `number`, which depends on nothing but the seed and its number."""
    data, shared = _drawn(seed, number // CASES_PER_DATA_SET, profile, tuple(ways))
    chance = Chance(seed, number, "job")
    way = chance.weighted({way: way.weight for way in ways if way.suits(data)})
    job = draw_job(chance, data, shared, way.options)
    if job.has_previous:
        return Case(seed, number, way, data.of_instants, job)
    return Case(seed, number, way, data, job, shared)


@lru_cache(maxsize=8)
def _drawn(
    seed: int, number: int, profile: Profile, ways: tuple[Way, ...]
) -> tuple[DataSet, Oracle]:
    """A data set that some way takes, which several cases have in common, and its right answer."""
    for attempt in count():
        data = draw_data(Chance(seed, number, "data", attempt), profile)
        if any(way.suits(data) for way in ways):
            break
    return data, Oracle(data)


@contextmanager
def own_folder() -> Iterator[Path]:
    """A new folder, gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="coincide-hunt-", dir=_memory()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _memory() -> str | None:
    """A file system in memory, where there is one: files are small and live for milliseconds."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def judged(case: Case) -> Verdict:
    """Run a case in a folder of its own."""
    with own_folder() as folder:
        return case.way.judge(case, folder)


def shrunk(case: Case, verdict: Verdict, seconds: float) -> tuple[Case, Verdict]:
    """The case with as few rows as still differ in the same manner, found within some seconds."""
    deadline = time.monotonic() + seconds
    for side in (0, 1, 0, 1):
        size = len(case.data.sides[side].rows)
        step = max(1, size // 2)
        while step and time.monotonic() < deadline:
            case, verdict, smaller = _without_some(case, verdict, side, step, deadline)
            if not smaller:
                step //= 2
    return case, verdict


def _without_some(
    case: Case, verdict: Verdict, side: int, step: int, deadline: float
) -> tuple[Case, Verdict, bool]:
    """Leave out `step` rows at a time, wherever that leaves the difference."""
    smaller, start = False, 0
    while start < len(case.data.sides[side].rows) and time.monotonic() < deadline:
        rows = [list(one.rows) for one in case.data.sides]
        del rows[side][start : start + step]
        tried = replace(case, data=case.data.with_rows(tuple(rows[0]), tuple(rows[1])))
        found = judged(tried)
        if found.is_difference and found.kind == verdict.kind:
            case, verdict, smaller = tried, found, True
        else:
            start += step
    return case, verdict, smaller
