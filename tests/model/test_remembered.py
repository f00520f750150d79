"""Values that are computed once, in threads and in processes that are forked meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from coincide.model.remembered import remembered
from tests.helpers.places import ROOT, repository_files

SECONDS = 60


class Circle:
    """A circle whose area is found once."""

    def __init__(self, radius: int) -> None:
        self.radius, self.times = radius, 0

    @remembered
    def area(self) -> int:
        """In parts of pi."""
        self.times += 1
        return self.radius**2


def test_a_value_is_computed_once_for_each_object() -> None:
    one, other = Circle(2), Circle(3)
    assert (one.area, one.area, other.area) == (4, 4, 9)
    assert (one.times, other.times) == (1, 1)
    assert one.__dict__["area"] == 4
    assert Circle.area.__doc__ == "In parts of pi."


FORKED = """
import os, sys, threading
import pyarrow as pa
from coincide import correlate_tables
from cpu_fallback.join import event_join

table = pa.table({"id": [1, 2], "t": [10, 20], "u": [11, 21]})

def joined():
    return correlate_tables(table, table, within=(0, 5), confidence=0.5, left_time="t",
                            right_time=("t", "u"), backend="cpu").num_rows

assert joined() == 2
counted, is_counting, may_go_on = event_join.tally_of_blocks, threading.Event(), threading.Event()

def count_when_told(*given):
    if threading.current_thread() is not threading.main_thread():
        is_counting.set()
        may_go_on.wait()
    return counted(*given)

event_join.tally_of_blocks = count_when_told
thread = threading.Thread(target=joined)
thread.start()
is_counting.wait()
child = os.fork()
if child == 0:
    os._exit(0 if joined() == 2 else 1)
_, status = os.waitpid(child, 0)
may_go_on.set()
thread.join()
print("child ended with", os.waitstatus_to_exitcode(status))
"""


def test_a_process_that_is_forked_while_a_thread_joins_can_join() -> None:
    given = [sys.executable, "-W", "ignore", "-c", FORKED]
    done = subprocess.run(
        given, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.stdout == "child ended with 0\n", done.stderr


ROOMS = ("coincide", "cpu_fallback", "gpu_kernels", "spark_plugin")


@pytest.mark.parametrize("room", ROOMS)
def test_no_room_takes_the_property_that_locks(room: str) -> None:
    own = ROOT / "coincide" / "model" / "remembered.py"
    users = [
        path.relative_to(ROOT)
        for path in map(Path, repository_files())
        if path.suffix == ".py"
        and path.is_relative_to(ROOT / room)
        and path != own
        and "cached_property" in path.read_text(encoding="utf-8")
    ]
    assert users == []
