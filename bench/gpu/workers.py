"""What Spark's Python workers launch on a GPU: they tell it in a folder, by `on_path/sitecustomize.py`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

_ON_PATH = Path(__file__).parent / "on_path"


class Launch(NamedTuple):
    """A kernel that a worker launched."""

    worker: int  # The number of its process
    kernel: str


def settings(folder: Path) -> dict[str, str]:
    """Settings of a session whose workers tell in a folder what they launch."""
    environment = {"PYTHONPATH": _ON_PATH, "COINCIDE_BENCH_LAUNCHES": folder}
    return {f"spark.executorEnv.{name}": str(value) for name, value in environment.items()}


def launched(folder: Path) -> Counter[Launch]:
    """How often each worker has launched each kernel so far."""
    return Counter(
        Launch(int(file.name), kernel)
        for file in folder.iterdir()
        for kernel in file.read_text().splitlines()
    )
