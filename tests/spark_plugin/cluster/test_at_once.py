"""Jobs side by side."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import pytest

from spark_plugin.cluster import jobs as module


def test_threads_that_are_not_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """With PYSPARK_PIN_THREAD=false PySpark gives back what it is given, instead of a wrapper."""
    monkeypatch.setattr(module, "inheritable_thread_target", lambda given: given)
    session: Any = object()
    assert module.at_once(session, [lambda: 1, lambda: 2, lambda: 3]) == [1, 2, 3]


@pytest.mark.parametrize("failing", [{0}, {1}, {0, 1}])
def test_errors_wait_for_all_jobs(monkeypatch: pytest.MonkeyPatch, failing: set[int]) -> None:
    monkeypatch.setattr(module, "inheritable_thread_target", lambda given: given)
    ended = []

    def job(number: int) -> None:
        time.sleep(0.1 * (number + 1) if number not in failing else 0)
        ended.append(number)
        if number in failing:
            raise ValueError(number)

    session: Any = object()
    with pytest.raises(ValueError, match=str(min(failing))):
        module.at_once(session, [partial(job, number) for number in range(3)])
    assert sorted(ended) == [0, 1, 2]
