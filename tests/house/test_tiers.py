"""The tiers of tests: the table names files that are there, and leaves what every change needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.tiers import FILES, HERE, LATER

EVERY_DAY = (
    "spark_plugin/ways/test_contract.py",  # each way of Spark
    "command_line/test_stream_command.py",  # a stream that goes on from its checkpoint
    "gpu_kernels/test_virtual_gpu_join.py",
    "end_to_end/test_readme.py",
)


def test_the_table_names_files_once() -> None:
    assert [str(file) for file in sorted(FILES) if not file.is_file()] == []
    assert len(FILES) == sum(len(names.split()) for names in LATER.values())


def test_what_every_change_needs_is_quick() -> None:
    """Some test of each file: neither the table nor marks leave all of them to later."""
    files = [str(HERE / file) for file in EVERY_DAY]
    words = ["-m", "pytest", "--collect-only", "-q", "-n0", "-m", "not slow", *files]
    listed = subprocess.run(
        [sys.executable, *words], cwd=HERE.parent, capture_output=True, text=True, check=True
    ).stdout
    quick = {line.partition("::")[0] for line in listed.splitlines() if "::" in line}
    assert quick == {f"tests/{file}" for file in EVERY_DAY}


def test_files_of_the_table_are_slow(request: pytest.FixtureRequest) -> None:
    for item in request.session.items:
        marked = item.get_closest_marker("slow") is not None
        assert marked or item.path not in FILES
