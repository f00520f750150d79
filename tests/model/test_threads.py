"""Work of several threads ends soon where the thread that waits for it is interrupted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from coincide.model.threads import in_order, run_tasks, step, watched


class Interruption(BaseException):
    """As from a signal."""


def endless(done: list[int]) -> Iterator[int]:
    while True:
        step(1)
        done.append(1)
        time.sleep(0.01)
        yield 0


def interrupted(make: Callable[[int], list[int]], threads: int) -> None:
    begun = time.monotonic()

    def pulse(events: int) -> None:
        if events and time.monotonic() - begun > 0.5:
            raise Interruption

    with watched(pulse):
        list(in_order(make, range(5), threads))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("is_nested", [False, True])
def test_endless_work_ends(threads: int, is_nested: bool) -> None:
    done: list[int] = []

    def work(_: int) -> list[int]:
        if is_nested:
            return run_tasks([lambda: list(endless(done)), lambda: list(endless(done))], threads)
        return list(endless(done))

    begun = time.monotonic()
    with pytest.raises(Interruption):
        interrupted(work, threads)
    assert time.monotonic() - begun < 5
    assert done
    count = len(done)
    time.sleep(0.1)
    assert len(done) == count
    assert threading.active_count() < 20


def test_a_failure_of_one_ends_the_others() -> None:
    done: list[int] = []

    def fail() -> None:
        time.sleep(0.1)
        raise ValueError("from one")

    with pytest.raises(ValueError, match="from one"):
        run_tasks([fail, lambda: list(endless(done))], 2)


def test_an_error_of_work_is_no_timeout() -> None:
    def late() -> None:
        raise TimeoutError("from a disk")

    with pytest.raises(TimeoutError, match="from a disk"):
        run_tasks([late, late], 2)


def test_failed_work_leaves_later_work_alone() -> None:
    with pytest.raises(ZeroDivisionError):
        list(in_order(lambda n: [1 // n], [0, 1], 2))
    assert list(in_order(lambda n: [n], range(9), 3)) == [*range(9)]


def test_the_events_of_all_steps_are_told() -> None:
    told: list[int] = []

    def work(_: int) -> list[int]:
        for _ in range(10):
            step(7)
        time.sleep(0.3)
        return []

    with watched(told.append):
        list(in_order(work, range(4), 2))
    assert told
    assert told == sorted(told)
    assert 0 < told[-1] <= 280
