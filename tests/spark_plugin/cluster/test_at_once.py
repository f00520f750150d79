"""Jobs side by side."""

from __future__ import annotations

from typing import Any

import pytest

from spark_plugin.cluster import at_once as module


def test_threads_that_are_not_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    """With PYSPARK_PIN_THREAD=false PySpark gives back what it is given, instead of a wrapper."""
    monkeypatch.setattr(module, "inheritable_thread_target", lambda given: given)
    session: Any = object()
    assert module.at_once(session, [lambda: 1, lambda: 2, lambda: 3]) == [1, 2, 3]
