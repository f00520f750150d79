"""What must be let go of without the collector of cycles: a GPU's memory would wait for it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest


def check_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, module: Any, name: str, work: Callable[[], object]
) -> None:
    """Objects of a class are made by some work, and none is there at its end."""
    work()  # first, since compilers leave cycles
    made: list[weakref.ref[Any]] = []
    kind = getattr(module, name)

    def init(self: Any, *given: Any, **more: Any) -> None:
        kind.__init__(self, *given, **more)
        made.append(weakref.ref(self))

    monkeypatch.setattr(module, name, type(name, (kind,), {"__init__": init}))
    gc.collect()
    gc.disable()
    try:
        work()
        assert made
        assert [each() for each in made] == [None] * len(made)
    finally:
        gc.enable()
