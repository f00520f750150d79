"""What kernels do, by the counters of the virtual GPU: instructions, bytes, launches."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from bench.experiment import Bench
from bench.gpu.prepared import prepared_join
from bench.gpu.works import Work
from coincide.model.errors import BackendError

COPY_BAR, PROBE_BAR = 70.0, 200.0
"""PTX instructions a pair and a candidate."""

_BARS = {"copy": COPY_BAR, "probe": PROBE_BAR}


class Counts(NamedTuple):
    """Numbers of kernels since the process started."""

    instructions: int
    loaded: int  # Bytes
    stored: int  # Bytes


class Counters:
    """The counters of the virtual GPU's driver."""

    def __init__(self) -> None:
        try:
            self._read = ctypes.CDLL("libcuda.so.1").virtual_counts
        except (OSError, AttributeError) as error:
            raise BackendError(
                "there is no virtual GPU to count on: set the environment that"
                " `python -m tests.virtual_gpu` prints, with VIRTUAL_GPU_COUNTS=1"
            ) from error

    def now(self) -> Counts:
        """What was counted so far."""
        found = (ctypes.c_uint64 * 4)()
        self._read(found)
        return Counts(*found[:3])


def count_kernels(bench: Bench, name: str, work: Work) -> None:
    """Each kernel of a join's blocks, and of best matches: for an entry, a candidate or a pair."""
    from gpu_kernels.device.arrays import on_device
    from gpu_kernels.join import Block, Candidates
    from gpu_kernels.kernels.compilation import Kernel

    counters, found = Counters(), dict[str, np.ndarray]()
    real = Kernel.launch

    def launch(kernel: Any, blocks: int, *arguments: Any) -> None:
        before = counters.now()
        real(kernel, blocks, *arguments)
        counted = np.subtract(counters.now(), before)
        own = found.setdefault(kernel.py_func.__name__, np.zeros(4, np.int64))
        own += [*counted, 1]

    bench.say(f"counting, {name}")
    prepared = prepared_join(work)()
    candidates = Candidates(prepared.banded, 0, work.events)
    with mock.patch.object(Kernel, "launch", launch):
        block = Block(prepared.banded, 0, work.events)
        block.fill(prepared.left_order, prepared.right_order)
        launches = int(sum(each[3] for each in found.values()))
        candidates.best(on_device(np.arange(work.events)))
    entries = work.events * prepared.banded.classes
    items = {
        "place": entries,
        "probe": block.probed,
        "scatter": block.probed,
        "copy": block.matches,
        **dict.fromkeys(("most_probable", "nearest", "foremost"), candidates.count),
    }
    bench.note(**{name: {"entries": entries, "candidates": block.probed, "pairs": block.matches}})
    for kernel, count in items.items():
        instructions, loaded, stored, _ = (found[kernel] / count).tolist()
        label = f"{name}, {kernel}"
        bench.figure(
            label,
            instructions,
            "PTX instructions",
            bench.pick(_BARS.get(kernel), None),
            at_least=False,
        )
        bench.figure(label, loaded + stored, "bytes")
    bench.figure(f"{name}, kernels of a block", launches, "launches")
