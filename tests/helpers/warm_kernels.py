"""``coincide doctor --warm``, then two lines: what a later process compiles, and signatures by function."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys

from numba.core.dispatcher import Dispatcher

import coincide.model
import cpu_fallback
from coincide.command_line import doctor

JOINS = """
import sys
import numpy as np
from numba.core import event

compiled = []

class Listener(event.Listener):
    def on_start(self, event):
        compiled.append(event.data["dispatcher"].py_func.__qualname__)

    def on_end(self, event):
        pass

event.register("numba:compile", Listener())
import coincide
badges = {"id": ["Ann", "Bob"], "key": ["x", "y"], "at": [10_000, 12_500]}
doors = {"id": ["hall"], "key": ["x"], "min_time": [11_000], "max_time": [13_000]}
ALL = ({}, {"by": "key"}, {"emit": "counts"}, {"how": "full"}, {"emit": "lists"})
for more in ALL[: int(sys.argv[1])]:
    found = coincide.correlate_tables(
        badges, doors, within=(0, 3_000), confidence=0.9,
        left_time=coincide.around("at", 400), **more,
    )
    assert found.num_rows, more
rows = coincide.correlate_arrays(np.array([1, 9]), np.array([2, 7]), within=(0, 3))
assert rows.left.tolist() == [0]
print(compiled)
"""
"""Prints the functions that it compiles. Its argument: how many joins."""


def main() -> None:
    assert doctor.run(warm=True) == 0
    sys.stdout.flush()
    subprocess.run([sys.executable, "-c", JOINS, "5"], check=True)
    kernels = {}
    for package in (coincide.model, cpu_fallback):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            module = importlib.import_module(found.name)
            for name, each in vars(module).items():
                if isinstance(each, Dispatcher) and each.py_func.__module__ == found.name:
                    kernels[f"{found.name}.{name}"] = len(each.signatures)
    print(json.dumps(kernels))


if __name__ == "__main__":
    main()
