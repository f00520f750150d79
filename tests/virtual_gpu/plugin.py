"""A plugin of pytest: a test fails that leaves a fault of the virtual GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.virtual_gpu import lines

lines.watch()  # before what it watches is loaded

from tests.virtual_gpu.faults import real_faults  # noqa: E402


@pytest.fixture(autouse=True)
def _no_faults() -> Iterator[None]:
    yield
    found = real_faults()
    assert not found, "\n".join(found)
