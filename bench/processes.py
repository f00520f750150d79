"""Memory and CPU time of the processes that an experiment starts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

_INTERVAL_S = 0.05


@dataclass
class PeakMemory:
    """Largest resident set of each process below this one, bytes; Python's by process id."""

    workers: dict[int, int] = field(default_factory=dict)
    jvm: int = 0

    @property
    def worker(self) -> int:
        """The memory of the largest worker."""
        return max(self.workers.values(), default=0)

    def sample(self) -> None:
        """Look once."""
        import psutil

        for process in psutil.Process().children(recursive=True):
            try:
                name, resident = process.name(), process.memory_info().rss
            except psutil.Error:
                continue
            if name == "java":
                self.jvm = max(self.jvm, resident)
            elif name.startswith("python"):
                self.workers[process.pid] = max(self.workers.get(process.pid, 0), resident)


@contextmanager
def peak_memory() -> Iterator[PeakMemory]:
    """Watch the processes below this one, 20 times a second, while the block runs."""
    peak, done = PeakMemory(), threading.Event()

    def watch() -> None:
        while not done.wait(_INTERVAL_S):
            peak.sample()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        done.set()
        watcher.join()


class CpuClock:
    """CPU time of this process and of all below it, since the clock was made."""

    def __init__(self) -> None:
        self._begun = _cpu_seconds()

    def seconds(self) -> float:
        """User and system, ended processes among them if their parents live."""
        return _cpu_seconds() - self._begun


def _cpu_seconds() -> float:
    import psutil

    here = psutil.Process()
    found = 0.0
    for process in (here, *here.children(recursive=True)):
        with suppress(psutil.Error):
            found += sum(process.cpu_times()[:4])
    return found
